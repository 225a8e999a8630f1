// Which values and slots can match at all: the half of SlotFilter that lists them.
#include <algorithm>
#include <bit>
#include <cmath>

#include "index/fields/slot_filter.h"

namespace hotkv {

namespace {

// Dictionaries up to this size are asked value by value.
constexpr uint32_t kSweepMax = 512;
constexpr size_t kArraysMax = 4096;
constexpr size_t kRangesMax = 4096;

JsonValue Number(double number) { return {JsonKind::kNumber, number, {}}; }
JsonValue String(std::string_view text) { return {JsonKind::kString, 0, text}; }

void AddId(uint32_t id, std::vector<uint32_t>* ids) {
  if (id != kNoValue) ids->push_back(id);
}

constexpr NumberRange kNothing = {1, 0};

NumberRange Above(double number, bool equal) {
  if (std::isnan(number)) return kNothing;
  if (equal) return {number, INFINITY};
  if (number == INFINITY) return kNothing;
  return {std::nextafter(number, INFINITY), INFINITY};
}

NumberRange Below(double number, bool equal) {
  if (std::isnan(number)) return kNothing;
  if (equal) return {-INFINITY, number};
  if (number == -INFINITY) return kNothing;
  return {-INFINITY, std::nextafter(number, -INFINITY)};
}

NumberRange Exactly(double number) {
  return std::isnan(number) ? kNothing : NumberRange{number, number};
}

FilterOp Mirrored(FilterOp op) {
  switch (op) {
    case FilterOp::kGreater:
      return FilterOp::kLess;
    case FilterOp::kGreaterEqual:
      return FilterOp::kLessEqual;
    case FilterOp::kLess:
      return FilterOp::kGreater;
    case FilterOp::kLessEqual:
      return FilterOp::kGreaterEqual;
    default:
      return op;
  }
}

}  // namespace

SlotFilter::Ids SlotFilter::EqualIds(const FilterValue& value, const TagColumn& column) const {
  const ValueDictionary& values = column.values();
  std::vector<uint32_t> ids;
  if (value.kind == FilterValue::Kind::kNull) {
    AddId(values.Find({JsonKind::kNull, 0, {}}), &ids);
    return ids;
  }
  // Other kinds compare as numbers; a string's number is not to be found by it.
  const bool is_string = value.kind == FilterValue::Kind::kString;
  if (!is_string && values.strings() != 0) return std::nullopt;
  const double number = value.AsNumber();
  if (is_string) AddId(values.Find(String(value.text)), &ids);
  AddId(values.Find(Number(number)), &ids);
  if (number == 0) {
    const auto arrays = column.arrays().Read();
    if (arrays.size() > kArraysMax) return std::nullopt;
    ids.insert(ids.end(), arrays.begin(), arrays.end());
  }
  return ids;
}

SlotFilter::Ids SlotFilter::HoldingIds(const FilterValue& value, const TagColumn& column) {
  const bool is_string = value.kind == FilterValue::Kind::kString;
  if (!is_string && value.kind != FilterValue::Kind::kNumber) return std::nullopt;
  // A string may be part of any string; a number may equal a string's number.
  if (is_string && column.values().strings() != 0) return std::nullopt;
  const ValueDictionary& items = column.items();
  std::vector<uint32_t> of_items;
  if (is_string) AddId(items.Find(String(value.text)), &of_items);
  AddId(items.Find(Number(value.AsNumber())), &of_items);
  if (!is_string && items.strings() != 0) {
    if (items.end() > kSweepMax) return std::nullopt;
    for (uint32_t id = kFirstValueId; id < items.end(); ++id) {
      if (FilterExpression::Equal(value, FilterValue::Of(items.At(id).AsJson()))) {
        of_items.push_back(id);
      }
    }
  }
  std::vector<uint32_t> ids;
  for (const uint32_t item : of_items) {
    const auto arrays = items.At(item).postings.Read();
    ids.insert(ids.end(), arrays.begin(), arrays.end());
  }
  return ids;
}

// Values outside of what is returned do not match.
SlotFilter::Ids SlotFilter::PossibleIds(uint32_t at, const TagColumn& column) {
  const FilterNode& node = Node(at);
  switch (node.op) {
    case FilterOp::kAnd: {
      Ids left = PossibleIds(node.left, column);
      Ids right = PossibleIds(node.right, column);
      if (!left || !right) return left ? left : right;
      return left->size() < right->size() ? left : right;
    }
    case FilterOp::kOr: {
      Ids left = PossibleIds(node.left, column);
      const Ids right = PossibleIds(node.right, column);
      if (!left || !right) return std::nullopt;
      left->insert(left->end(), right->begin(), right->end());
      return left;
    }
    case FilterOp::kEqual:
      if (IsField(node.left) && IsConstant(node.right)) {
        return EqualIds(ConstantAt(node.right), column);
      }
      if (IsField(node.right) && IsConstant(node.left)) {
        return EqualIds(ConstantAt(node.left), column);
      }
      return std::nullopt;
    case FilterOp::kIn: {
      if (IsField(node.right) && IsConstant(node.left)) {
        return HoldingIds(ConstantAt(node.left), column);
      }
      if (!IsField(node.left) || Node(node.right).op != FilterOp::kTuple) return std::nullopt;
      std::vector<uint32_t> ids;
      for (const FilterNode& item : Node(node.right).items) {
        const bool is_string = item.op == FilterOp::kString;
        const Ids equal = EqualIds(FilterValue::Of(is_string ? String(item.text) : Number(item.number)), column);
        if (!equal) return std::nullopt;
        ids.insert(ids.end(), equal->begin(), equal->end());
      }
      return ids;
    }
    default:
      return std::nullopt;
  }
}

// The values that match, in order, or those of a tall tree that may.
SlotFilter::Ids SlotFilter::MatchingIds(uint32_t at, const TagColumn& column) {
  const auto field = static_cast<uint16_t>(std::countr_zero(Node(at).uses));
  const uint32_t end = column.values().end();
  const bool tall = Node(at).height > kAskedHeightMax;
  Ids ids = PossibleIds(at, column);
  if (ids) {
    std::sort(ids->begin(), ids->end());
    ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
  } else {
    if (tall || end - kFirstValueId > kSweepMax) return std::nullopt;
    ids.emplace();
    for (uint32_t id = kFirstValueId; id < end; ++id) ids->push_back(id);
  }
  if (tall) return ids;
  std::erase_if(*ids, [&](uint32_t id) {
    return !AskValue(at, field, column.values().At(id).AsJson());
  });
  return ids;
}

// The numbers for which a node over one numeric field is true; nothing: not a matter of ranges.
SlotFilter::Ranges SlotFilter::RangesOf(uint32_t at) {
  const FilterNode& node = Node(at);
  if (node.op == FilterOp::kAnd || node.op == FilterOp::kOr) {
    Ranges left = RangesOf(node.left);
    const Ranges right = RangesOf(node.right);
    if (!left || !right) return std::nullopt;
    if (node.op == FilterOp::kOr) {
      left->insert(left->end(), right->begin(), right->end());
      return left;
    }
    if (left->size() * right->size() > kRangesMax) return std::nullopt;
    std::vector<NumberRange> both;
    for (const NumberRange& a : *left) {
      for (const NumberRange& b : *right) {
        const NumberRange common = {std::max(a.low, b.low), std::min(a.high, b.high)};
        if (common.low <= common.high) both.push_back(common);
      }
    }
    return both;
  }
  if (node.op == FilterOp::kIn) {
    if (!IsField(node.left) || Node(node.right).op != FilterOp::kTuple) return std::nullopt;
    std::vector<NumberRange> ranges;
    for (const FilterNode& item : Node(node.right).items) {
      ranges.push_back(Exactly(item.op == FilterOp::kString ? TextToNumber(item.text) : item.number));
    }
    return ranges;
  }
  if (node.op < FilterOp::kGreater || node.op > FilterOp::kEqual) return std::nullopt;
  const bool field_first = IsField(node.left) && IsConstant(node.right);
  if (!field_first && !(IsField(node.right) && IsConstant(node.left))) return std::nullopt;
  const FilterValue constant = ConstantAt(field_first ? node.right : node.left);
  const double number = constant.AsNumber();
  switch (field_first ? node.op : Mirrored(node.op)) {
    case FilterOp::kGreater:
      return {{Above(number, false)}};
    case FilterOp::kGreaterEqual:
      return {{Above(number, true)}};
    case FilterOp::kLess:
      return {{Below(number, false)}};
    case FilterOp::kLessEqual:
      return {{Below(number, true)}};
    default:
      break;
  }
  const bool null = constant.kind == FilterValue::Kind::kNull;
  return {{null ? kNothing : Exactly(number)}};
}

std::optional<SlotFilter::Lists> SlotFilter::ListsOfTag(uint32_t at, const TagColumn& column) {
  const Ids ids = MatchingIds(at, column);
  if (!ids) return std::nullopt;
  Lists lists;
  for (const uint32_t id : *ids) {
    const DictionaryValue& value = column.values().At(id);
    lists.spans.push_back(value.postings.Read());
    lists.upper += value.count.load(std::memory_order_relaxed);
  }
  lists.spans.push_back(column.in_json().Read());
  lists.upper += lists.spans.back().size();
  return lists;
}

std::optional<SlotFilter::Lists> SlotFilter::ListsOfNumbers(uint32_t at,
                                                            const NumericColumn& column) {
  const Ranges ranges = RangesOf(at);
  if (!ranges) return std::nullopt;
  NumericColumn::Places places = column.Find(*ranges);
  Lists lists;
  lists.spans = std::move(places.lists);
  lists.spans.push_back(column.in_json().Read());
  lists.upper = places.estimate + lists.spans.back().size();
  return lists;
}

std::optional<SlotFilter::Lists> SlotFilter::ListsOf(uint32_t at) {
  const FilterNode& node = Node(at);
  const FieldColumn* column = ColumnOfOnlyField(at);
  if (column != nullptr) {
    auto lists = column->tag ? ListsOfTag(at, *column->tag) : ListsOfNumbers(at, *column->numeric);
    if (lists) return lists;
  }
  if (node.op != FilterOp::kAnd && node.op != FilterOp::kOr) return std::nullopt;
  auto left = ListsOf(node.left);
  auto right = ListsOf(node.right);
  if (node.op == FilterOp::kAnd) {
    if (!left || !right) return left ? left : right;
    return left->upper <= right->upper ? left : right;
  }
  if (!left || !right) return std::nullopt;
  left->spans.insert(left->spans.end(), right->spans.begin(), right->spans.end());
  left->upper += right->upper;
  return left;
}

}  // namespace hotkv
