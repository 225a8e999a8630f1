// NumericColumn: a number a slot, and the slots in the order of their numbers: a sorted run, and a
// tail of what came since. The number of a slot is the truth; run and tail may hold slots that have
// moved on, or one twice, but never lack one.
//
// A tail that has grown is merged into a new run. Small ones are by Set; a large run is made beside
// reads and writes, between BeginMerge and FinishMerge.
//
// Thread rules: Set, merge_due, BeginMerge and FinishMerge by one thread at a time; DoMerge by any
// thread, also beside Set; reads by any thread with a ReaderPin.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "index/fields/posting_list.h"
#include "index/filter/json_fields.h"
#include "index/slab.h"

namespace hotkv {

// Both ends belong to it.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool Has(double number) const { return number >= low && number <= high; }
};

class NumericColumn {
 public:
  enum class State : uint8_t { kMissing, kNumber, kInJson };

  NumericColumn();
  ~NumericColumn();

  // kMissing: the slot has no value (any more).
  void Set(uint32_t slot, const JsonValue& value);
  // kInJson: a value that is no number; read the JSON.
  State StateOf(uint32_t slot, double* number) const {
    if (slot >= bits_.capacity()) return State::kMissing;
    const uint64_t bits = bits_.At<uint64_t>(slot).load(std::memory_order_acquire) ^ kMissingBits;
    if (bits == kMissingBits) return State::kMissing;
    if (bits == kInJsonBits) return State::kInJson;
    *number = std::bit_cast<double>(bits);
    return State::kNumber;
  }

  // Where slots with a number in one of `ranges` may be, and about how many there are.
  struct Places {
    std::vector<std::span<const uint32_t>> lists;
    uint64_t estimate = 0;
  };
  Places Find(std::span<const NumberRange> ranges) const;
  const PostingList& in_json() const { return in_json_; }

  // A new run under way.
  struct Merge;
  struct MergeDeleter {
    void operator()(Merge* merge) const;
  };
  using MergePtr = std::unique_ptr<Merge, MergeDeleter>;
  // The tail is longer than a `share`-th of the run and not very short, and nobody merges it.
  static constexpr uint32_t kTailShare = 64;
  bool merge_due(uint32_t share = kTailShare) const;
  MergePtr BeginMerge();
  void DoMerge(Merge* merge) const;
  void FinishMerge(MergePtr merge);
  // Elements that have the field.
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  size_t bytes() const;

 private:
  struct Run {
    std::vector<double> numbers;  // ascending
    std::vector<uint32_t> slots;
  };
  // Run and tail are exchanged together.
  struct Order {
    Run run;
    PostingList tail;
  };
  // Two NaNs that JSON cannot give.
  static constexpr uint64_t kMissingBits = 0xfff8000000000001u;
  static constexpr uint64_t kInJsonBits = 0xfff8000000000002u;
  static uint64_t BitsOf(const JsonValue& value);
  static std::pair<size_t, size_t> Within(const Run& run, const NumberRange& range);

  SlabArray bits_;  // uint64_t a slot: the number's bits, so changed that 0 is missing
  std::atomic<Order*> order_;  // exchanged by FinishMerge only
  bool merging_ = false;       // from BeginMerge to FinishMerge
  PostingList in_json_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace hotkv
