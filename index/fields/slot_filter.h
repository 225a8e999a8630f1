// SlotFilter: a filter expression brought to an index's columns, for one search: tests a slot without
// reading its JSON, says how many slots may match, and lists them.
//
// How: a part of the expression that uses one tag field is a question about each distinct value,
// answered once; a comparison with one numeric field is a set of ranges; a part over several fields is
// computed from the columns' values; what uses a field without a column is unknown. A field that is
// missing makes the whole false, wherever it stands.
//
// Thread rules: belongs to one thread, which holds a ReaderPin as long as it lives.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/fields/field_index.h"
#include "index/filter/filter_expression.h"

namespace hotkv {

class SlotFilter {
 public:
  // Both outlive it.
  SlotFilter(const FilterExpression& expression, const FieldTable& table);

  // kInJson: the columns do not know; the attributes do.
  enum class Verdict : uint8_t { kNo, kYes, kInJson };
  Verdict Test(uint32_t slot) {
    // Most filters are about one field: no need for the general way.
    if (one_range_ != nullptr) {
      double number = 0;
      const NumericColumn::State state = one_range_->StateOf(slot, &number);
      if (state == NumericColumn::State::kInJson) return Verdict::kInJson;
      const bool yes = state == NumericColumn::State::kNumber && range_.Has(number);
      return yes ? Verdict::kYes : Verdict::kNo;
    }
    if (one_tag_ != nullptr) {
      const uint32_t id = one_tag_->IdOf(slot);
      if (id == kNoValue) return Verdict::kNo;
      const std::vector<uint8_t>& answers = tests_[root_].answers;
      if (id < answers.size() && answers[id] != 0) {
        return answers[id] == kAnswerYes ? Verdict::kYes : Verdict::kNo;
      }
    }
    return TestAll(slot);
  }

  // The same for many: writes those that match to `kept`, in their order, and returns how many; those
  // of which the columns do not know are added to `in_json`.
  size_t Sift(std::span<const uint32_t> slots, uint32_t* kept, std::vector<uint32_t>* in_json);

  // Every field has a column.
  bool covered() const { return covered_; }
  // An upper bound, nearly, of how many elements match; nothing when no list holds them all.
  std::optional<uint64_t> listed() const { return listed_; }
  // Calls visit(slot) for every slot that may match, perhaps twice, and others.
  template <typename Visit>
  void ForEachListed(Visit&& visit) const {
    for (const std::span<const uint32_t>& list : lists_) {
      for (const uint32_t slot : list) visit(slot);
    }
  }
  // The same for every `step`-th.
  template <typename Visit>
  void ForEachListedStep(size_t step, Visit&& visit) const {
    size_t at = 0;
    for (const std::span<const uint32_t>& list : lists_) {
      for (; at < list.size(); at += step) visit(list[at]);
      at -= list.size();
    }
  }
  size_t listed_entries() const;

 private:
  enum class TestKind : uint8_t { kConstant, kAnd, kOr, kNot, kTag, kRanges, kComputed, kUnknown };
  // Taller parts are not asked about every value that may match.
  static constexpr uint16_t kAskedHeightMax = 16;
  static constexpr uint8_t kAnswerNo = 1;
  static constexpr uint8_t kAnswerYes = 2;
  struct TestNode {
    TestKind kind = TestKind::kUnknown;
    bool constant = false;
    uint16_t field = 0;
    uint32_t node = 0;  // of the expression
    uint32_t left = 0;  // of tests_
    uint32_t right = 0;
    std::vector<NumberRange> ranges;
    std::vector<uint8_t> answers;           // kTag: by value id; 0: not asked yet
    std::optional<std::vector<uint32_t>> ids;  // kTag: the values that match, in order, if known
  };
  struct Lists {
    std::vector<std::span<const uint32_t>> spans;
    uint64_t upper = 0;
  };
  using Ids = std::optional<std::vector<uint32_t>>;
  using Ranges = std::optional<std::vector<NumberRange>>;

  const FilterNode& Node(uint32_t at) const { return expression_.nodes()[at]; }
  const FieldColumn* ColumnOfOnlyField(uint32_t at) const;
  bool IsField(uint32_t at) const { return Node(at).op == FilterOp::kField; }
  bool IsConstant(uint32_t at) const { return Node(at).uses == 0; }
  FilterValue ConstantAt(uint32_t at) { return expression_.Evaluate(at, values_); }
  bool AskValue(uint32_t at, uint16_t field, const JsonValue& value);

  Verdict TestAll(uint32_t slot);
  size_t SiftRange(std::span<const uint32_t> slots, uint32_t* kept, std::vector<uint32_t>* in_json);
  uint32_t Compile(uint32_t at);
  Verdict Run(uint32_t test);
  bool AskTag(TestNode* test, uint32_t id);

  Ids MatchingIds(uint32_t at, const TagColumn& column);
  Ids PossibleIds(uint32_t at, const TagColumn& column);
  Ids EqualIds(const FilterValue& value, const TagColumn& column) const;
  Ids HoldingIds(const FilterValue& value, const TagColumn& column);
  Ranges RangesOf(uint32_t at);
  std::optional<Lists> ListsOf(uint32_t at);
  std::optional<Lists> ListsOfTag(uint32_t at, const TagColumn& column);
  std::optional<Lists> ListsOfNumbers(uint32_t at, const NumericColumn& column);

  const FilterExpression& expression_;
  std::array<const FieldColumn*, kFilterFieldsMax> columns_;  // by field; null without one
  std::array<JsonValue, kFilterFieldsMax> values_;            // of the slot under test
  std::array<uint32_t, kFilterFieldsMax> ids_;                // of its tags
  std::vector<uint16_t> with_column_;
  bool covered_ = true;
  std::vector<TestNode> tests_;
  uint32_t root_ = 0;
  // Set when the expression is about one field with a column: one range of numbers, or tags.
  const NumericColumn* one_range_ = nullptr;
  NumberRange range_;
  const TagColumn* one_tag_ = nullptr;
  std::vector<std::span<const uint32_t>> lists_;
  std::optional<uint64_t> listed_;
};

}  // namespace hotkv
