#include "index/filter/filter_expression.h"

#include <array>
#include <cmath>

#include "engine/base/check.h"

namespace hotkv {

namespace {

constexpr size_t kFewFields = 4;  // room that costs nothing to clear

bool InTuple(const FilterValue& value, const FilterNode& tuple) {
  for (const FilterNode& item : tuple.items) {
    FilterValue other;
    other.kind = item.op == FilterOp::kString ? FilterValue::Kind::kString
                                              : FilterValue::Kind::kNumber;
    other.number = item.number;
    other.text = item.text;
    if (FilterExpression::Equal(value, other)) return true;
  }
  return false;
}

bool InArray(const FilterValue& value, std::string_view array) {
  bool found = false;
  ForEachInJsonArray(array, [&](const JsonValue& item) {
    found = FilterExpression::Equal(value, FilterValue::Of(item));
    return !found;
  });
  return found;
}

bool In(const FilterValue& a, const FilterValue& b) {
  using Kind = FilterValue::Kind;
  if (b.kind == Kind::kTuple) return InTuple(a, *b.tuple);
  if (b.kind == Kind::kArray) return InArray(a, b.text);
  if (a.kind != Kind::kString || b.kind != Kind::kString) return false;
  return b.text.find(a.text) != std::string_view::npos;
}

}  // namespace

FilterValue FilterValue::Of(const JsonValue& json) {
  FilterValue value;
  switch (json.kind) {
    case JsonKind::kNumber:
    case JsonKind::kBool:
      value.number = json.number;
      break;
    case JsonKind::kString:
      value.kind = Kind::kString;
      value.text = json.text;
      break;
    case JsonKind::kArray:
      value.kind = Kind::kArray;
      value.text = json.text;
      break;
    case JsonKind::kNull:
    case JsonKind::kMissing:
    case JsonKind::kOther:
      value.kind = Kind::kNull;
      break;
  }
  return value;
}

double FilterValue::AsNumber() const {
  if (kind == Kind::kNumber) return number;
  return kind == Kind::kString ? TextToNumber(text) : 0;
}

bool FilterValue::AsBool() const {
  switch (kind) {
    case Kind::kNumber:
      return number != 0;
    case Kind::kString:
      return !text.empty();
    case Kind::kNull:
      return false;
    case Kind::kTuple:
    case Kind::kArray:
      break;
  }
  return true;
}

bool FilterExpression::Equal(const FilterValue& a, const FilterValue& b) {
  using Kind = FilterValue::Kind;
  if (a.kind == Kind::kString && b.kind == Kind::kString) return a.text == b.text;
  if (a.kind == Kind::kNull || b.kind == Kind::kNull) return a.kind == b.kind;
  return a.AsNumber() == b.AsNumber();
}

double FilterExpression::Compute(FilterOp op, const FilterValue& a, const FilterValue& b) {
  if (op == FilterOp::kEqual) return Equal(a, b) ? 1 : 0;
  if (op == FilterOp::kNotEqual) return Equal(a, b) ? 0 : 1;
  if (op == FilterOp::kIn) return In(a, b) ? 1 : 0;
  const double x = a.AsNumber();
  const double y = b.AsNumber();
  switch (op) {
    case FilterOp::kPower:
      return std::pow(x, y);
    case FilterOp::kMultiply:
      return x * y;
    case FilterOp::kDivide:
      return x / y;
    case FilterOp::kModulo:
      return std::fmod(x, y);
    case FilterOp::kAdd:
      return x + y;
    case FilterOp::kSubtract:
      return x - y;
    case FilterOp::kGreater:
      return x > y ? 1 : 0;
    case FilterOp::kGreaterEqual:
      return x >= y ? 1 : 0;
    case FilterOp::kLess:
      return x < y ? 1 : 0;
    case FilterOp::kLessEqual:
      return x <= y ? 1 : 0;
    default:
      break;
  }
  HOTKV_CHECK(false && "not an operator on two values");
  return 0;
}

// Recursion is bounded by kFilterHeightMax.
FilterValue FilterExpression::Evaluate(uint32_t at, std::span<const JsonValue> values) const {
  const FilterNode& node = nodes_[at];
  FilterValue result;
  switch (node.op) {
    case FilterOp::kNumber:
      result.number = node.number;
      return result;
    case FilterOp::kString:
      result.kind = FilterValue::Kind::kString;
      result.text = node.text;
      return result;
    case FilterOp::kNull:
      result.kind = FilterValue::Kind::kNull;
      return result;
    case FilterOp::kTuple:
      result.kind = FilterValue::Kind::kTuple;
      result.tuple = &node;
      return result;
    case FilterOp::kField:
      return FilterValue::Of(values[node.field]);
    case FilterOp::kNot:
      result.number = Evaluate(node.left, values).AsBool() ? 0 : 1;
      return result;
    case FilterOp::kAnd:
      result.number =
          Evaluate(node.left, values).AsBool() && Evaluate(node.right, values).AsBool() ? 1 : 0;
      return result;
    case FilterOp::kOr:
      result.number =
          Evaluate(node.left, values).AsBool() || Evaluate(node.right, values).AsBool() ? 1 : 0;
      return result;
    default:
      result.number = Compute(node.op, Evaluate(node.left, values), Evaluate(node.right, values));
      return result;
  }
}

bool FilterExpression::Matches(std::string_view json) const {
  if (fields().size() > kFewFields) {
    std::array<JsonValue, kFilterFieldsMax> values;
    return MatchesWith(json, {values.data(), fields().size()});
  }
  std::array<JsonValue, kFewFields> values;
  return MatchesWith(json, {values.data(), fields().size()});
}

bool FilterExpression::MatchesWith(std::string_view json, std::span<JsonValue> used) const {
  std::string arena;
  if (!fields_.Read(json, used, &arena)) return false;
  for (const JsonValue& value : used) {
    if (Unusable(value.kind)) return false;
  }
  return Evaluate(root(), used).AsBool();
}

}  // namespace hotkv
