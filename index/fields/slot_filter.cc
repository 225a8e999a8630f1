#include "index/fields/slot_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hotkv {

namespace {

// Answers are kept by value for dictionaries up to this size.
constexpr uint32_t kAnswersMax = 1u << 16;

}  // namespace

SlotFilter::SlotFilter(const FilterExpression& expression, const FieldTable& table)
    : expression_(expression) {
  const std::vector<std::string>& fields = expression.fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    columns_[i] = table.Find(fields[i]);
    if (columns_[i] == nullptr) {
      covered_ = false;
    } else {
      with_column_.push_back(static_cast<uint16_t>(i));
    }
  }
  // Without fields it is still true of attributes only that are an object.
  if (fields.empty()) covered_ = false;
  if (with_column_.empty() && !fields.empty()) return;  // everything is in the JSON
  root_ = Compile(expression.root());
  const TestNode& root = tests_[root_];
  if (covered_ && with_column_.size() == 1) {
    const FieldColumn& column = *columns_[with_column_[0]];
    if (root.kind == TestKind::kTag) one_tag_ = column.tag.get();
    if (root.kind == TestKind::kRanges && root.ranges.size() == 1) {
      one_range_ = column.numeric.get();
      range_ = root.ranges[0];
    }
  }
  if (auto lists = ListsOf(expression.root())) {
    listed_ = lists->upper;
    lists_ = std::move(lists->spans);
  }
}

size_t SlotFilter::listed_entries() const {
  size_t entries = 0;
  for (const auto& list : lists_) entries += list.size();
  return entries;
}

const FieldColumn* SlotFilter::ColumnOfOnlyField(uint32_t at) const {
  const uint64_t uses = Node(at).uses;
  return std::has_single_bit(uses) ? columns_[static_cast<size_t>(std::countr_zero(uses))]
                                   : nullptr;
}

uint32_t SlotFilter::Compile(uint32_t at) {
  const FilterNode& node = Node(at);
  const FieldColumn* column = ColumnOfOnlyField(at);
  TestNode test;
  test.node = at;
  if (column != nullptr) test.field = static_cast<uint16_t>(std::countr_zero(node.uses));
  if (IsConstant(at)) {
    test.kind = TestKind::kConstant;
    test.constant = ConstantAt(at).AsBool();
  } else if (column != nullptr && column->tag) {
    test.kind = TestKind::kTag;
    if (node.height <= kAskedHeightMax) test.ids = MatchingIds(at, *column->tag);
    const uint32_t values = column->tag->values().end();
    if (values <= kAnswersMax) test.answers.resize(values);
  } else if (node.op == FilterOp::kAnd || node.op == FilterOp::kOr) {
    test.kind = node.op == FilterOp::kAnd ? TestKind::kAnd : TestKind::kOr;
    test.left = Compile(node.left);
    test.right = Compile(node.right);
  } else if (node.op == FilterOp::kNot) {
    test.kind = TestKind::kNot;
    test.left = Compile(node.left);
  } else if (auto ranges = column != nullptr ? RangesOf(at) : Ranges()) {
    test.kind = TestKind::kRanges;
    test.ranges = std::move(*ranges);
  } else {
    bool known = true;
    for (size_t i = 0; i < expression_.fields().size(); ++i) {
      if ((node.uses >> i & 1) != 0 && columns_[i] == nullptr) known = false;
    }
    test.kind = known ? TestKind::kComputed : TestKind::kUnknown;
  }
  tests_.push_back(std::move(test));
  return static_cast<uint32_t>(tests_.size()) - 1;
}

SlotFilter::Verdict SlotFilter::TestAll(uint32_t slot) {
  if (tests_.empty()) return Verdict::kInJson;
  bool in_json = !covered_;
  bool readable = true;
  for (const uint16_t field : with_column_) {
    const FieldColumn& column = *columns_[field];
    if (column.tag) {
      const uint32_t id = column.tag->IdOf(slot);
      if (id == kNoValue) return Verdict::kNo;
      if (id == kInJsonValue) readable = false;
      ids_[field] = id;
    } else {
      double number = 0;
      const NumericColumn::State state = column.numeric->StateOf(slot, &number);
      if (state == NumericColumn::State::kMissing) return Verdict::kNo;
      if (state == NumericColumn::State::kInJson) readable = false;
      values_[field].kind = JsonKind::kNumber;
      values_[field].number = number;
    }
  }
  if (!readable) return Verdict::kInJson;
  const Verdict verdict = Run(root_);
  // A field without a column may be missing, which is no whatever the rest says.
  return verdict == Verdict::kYes && in_json ? Verdict::kInJson : verdict;
}

size_t SlotFilter::Sift(std::span<const uint32_t> slots, uint32_t* kept,
                        std::vector<uint32_t>* in_json) {
  if (one_range_ != nullptr) return SiftRange(slots, kept, in_json);
  size_t n = 0;
  for (const uint32_t slot : slots) {
    const Verdict verdict = Test(slot);
    kept[n] = slot;
    n += verdict == Verdict::kYes ? 1 : 0;
    if (verdict == Verdict::kInJson) in_json->push_back(slot);
  }
  return n;
}

// Without a branch that depends on a number: whether it matches is as good as random.
size_t SlotFilter::SiftRange(std::span<const uint32_t> slots, uint32_t* kept,
                             std::vector<uint32_t>* in_json) {
  size_t n = 0;
  for (const uint32_t slot : slots) {
    double number = 0;
    const NumericColumn::State state = one_range_->StateOf(slot, &number);
    kept[n] = slot;
    if (state == NumericColumn::State::kInJson) in_json->push_back(slot);
    const bool yes = range_.Has(number);
    n += yes && state == NumericColumn::State::kNumber ? 1 : 0;
  }
  return n;
}

SlotFilter::Verdict SlotFilter::Run(uint32_t at) {
  TestNode& test = tests_[at];
  const auto verdict = [](bool yes) { return yes ? Verdict::kYes : Verdict::kNo; };
  switch (test.kind) {
    case TestKind::kConstant:
      return verdict(test.constant);
    case TestKind::kAnd:
    case TestKind::kOr: {
      const Verdict decides = verdict(test.kind == TestKind::kOr);
      const Verdict left = Run(test.left);
      if (left == decides) return left;
      const Verdict right = Run(test.right);
      if (right == decides) return right;
      return left == Verdict::kInJson ? left : right;
    }
    case TestKind::kNot: {
      const Verdict inner = Run(test.left);
      return inner == Verdict::kInJson ? inner : verdict(inner == Verdict::kNo);
    }
    case TestKind::kTag:
      return verdict(AskTag(&test, ids_[test.field]));
    case TestKind::kRanges: {
      const double number = values_[test.field].number;
      return verdict(std::any_of(test.ranges.begin(), test.ranges.end(),
                                 [number](const NumberRange& range) { return range.Has(number); }));
    }
    case TestKind::kComputed:
      for (const uint16_t field : with_column_) {
        if (!columns_[field]->tag) continue;
        values_[field] = columns_[field]->tag->values().At(ids_[field]).AsJson();
      }
      return verdict(expression_.Evaluate(test.node, values_).AsBool());
    case TestKind::kUnknown:
      break;
  }
  return Verdict::kInJson;
}

bool SlotFilter::AskValue(uint32_t at, uint16_t field, const JsonValue& value) {
  values_[field] = value;
  return expression_.Evaluate(at, values_).AsBool();
}

bool SlotFilter::AskTag(TestNode* test, uint32_t id) {
  const bool kept = id < test->answers.size();
  if (kept && test->answers[id] != 0) return test->answers[id] == kAnswerYes;
  bool yes = false;
  if (test->ids && id < columns_[test->field]->tag->values().end() && !kept) {
    yes = std::binary_search(test->ids->begin(), test->ids->end(), id);
  } else {
    yes = AskValue(test->node, test->field, columns_[test->field]->tag->values().At(id).AsJson());
  }
  if (kept) test->answers[id] = yes ? kAnswerYes : kAnswerNo;
  return yes;
}

}  // namespace hotkv
