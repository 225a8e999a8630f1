// FilterExpression: a condition on an element's JSON attributes, in the grammar of Redis's vector
// sets: `.year >= 1980 and .genre in ["a", "b"]` (docs/commands/vectors.md has all of it).
//
// Meaning, as in Redis 8.2: an element matches only when its attributes are a JSON object that has
// every field which the expression names (an object, or an array of anything but strings and
// numbers, counts as missing). Booleans are 1 and 0. Strings compare by bytes with strings; anything
// else compares as numbers, where a string that is no number, an array and null are 0; but null
// equals null only.
//
// Thread rules: constant after parsing; Matches by any thread.
//
// Errors: kInvalidArgument with what is wrong and the position (from 1) where it is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "index/filter/json_fields.h"

namespace hotkv {

inline constexpr size_t kFilterTextMax = 64 << 10;
inline constexpr uint32_t kFilterDepthMax = 128;    // of parentheses and nots
inline constexpr uint32_t kFilterHeightMax = 1024;  // of the tree, so of its evaluation too
inline constexpr uint32_t kFilterNodesMax = 8192;
inline constexpr uint32_t kFilterFieldsMax = 64;

enum class FilterOp : uint8_t {
  kNumber,
  kString,
  kNull,
  kTuple,  // [1, "a"]
  kField,
  kNot,
  kPower,
  kMultiply,
  kDivide,
  kModulo,
  kAdd,
  kSubtract,
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kIn,
  kAnd,
  kOr,
};

struct FilterNode {
  FilterOp op = FilterOp::kNull;
  uint16_t field = 0;   // kField: index into fields()
  uint16_t height = 1;  // of the node's subtree
  uint32_t left = 0;   // operands, as indexes into nodes(); kNot uses left only
  uint32_t right = 0;
  double number = 0;
  std::string text;               // kString
  std::vector<FilterNode> items;  // kTuple: kNumber and kString nodes
  uint64_t uses = 0;              // a bit for each field in the node's subtree
};

// What a node is worth. `tuple` is set for a tuple of the expression; an array of the element has
// its JSON in `text`.
struct FilterValue {
  enum class Kind : uint8_t { kNumber, kString, kNull, kTuple, kArray };
  Kind kind = Kind::kNumber;
  double number = 0;
  std::string_view text;
  const FilterNode* tuple = nullptr;

  static FilterValue Of(const JsonValue& json);
  double AsNumber() const;
  bool AsBool() const;
};

class FilterExpression {
 public:
  static Result<FilterExpression> Parse(std::string_view text);

  bool Matches(std::string_view json) const;

  // ---- for planners ----
  const std::vector<std::string>& fields() const { return fields_.names(); }
  // The tree; operands come before the nodes that use them, the root is the last.
  const std::vector<FilterNode>& nodes() const { return nodes_; }
  uint32_t root() const { return static_cast<uint32_t>(nodes_.size()) - 1; }
  // What node `at` is worth when the fields have `values` (by field number; all that the node uses
  // are there and usable).
  FilterValue Evaluate(uint32_t at, std::span<const JsonValue> values) const;
  static bool Equal(const FilterValue& a, const FilterValue& b);
  // A missing value, or one that counts as missing.
  static bool Unusable(JsonKind kind) {
    return kind == JsonKind::kMissing || kind == JsonKind::kOther;
  }

 private:
  friend class FilterParser;
  FilterExpression() = default;
  bool MatchesWith(std::string_view json, std::span<JsonValue> used) const;
  static double Compute(FilterOp op, const FilterValue& a, const FilterValue& b);

  std::vector<FilterNode> nodes_;
  JsonFields fields_;
};

}  // namespace hotkv
