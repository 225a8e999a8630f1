// SearchGate: which slots count in one search: those that are live, not past their time, and match its
// filter. Columns are asked first, attributes only when the columns do not know.
//
// Thread rules: belongs to one search on one thread, which holds a ReaderPin as long as it lives.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/fields/slot_filter.h"
#include "index/graph/graph.h"
#include "index/record_table.h"
#include "index/vector_index.h"

namespace hotkv {

class SearchGate {
 public:
  struct Parts {
    const Graph* graph;
    const RecordTable* records;
    const FieldTable* fields;
    int64_t due_ms;  // ExpiryBook::DueMs
  };
  // What is borrowed outlives the gate.
  SearchGate(const Parts& parts, const ElementFilter& filter, const FilterExpression* where_or_null);

  // Nothing but the live bit decides.
  bool open() const { return open_; }
  bool filtered() const { return where_ != nullptr || filter_; }
  bool Accepts(uint32_t slot);
  // Appends those of `slots`, none twice, that Accepts; the order is kept but for those whose
  // attributes had to be read.
  void AcceptMany(std::span<const uint32_t> slots, std::vector<uint32_t>* accepted);
  // Accepts for a walk, which is told to stop when after so many tests fewer slots than so many were
  // accepted. No tests: never.
  struct Patience {
    uint32_t tests = 0;
    uint32_t hits_min = 0;
  };
  void BeginWalk(const Patience& early, const Patience& late);
  const bool* stopped() const { return &stopped_; }
  bool AcceptsOnWalk(uint32_t slot) {
    const bool yes = Accepts(slot);
    walk_hits_ += yes ? 1 : 0;
    ++walk_tests_;
    if (walk_tests_ == early_.tests && walk_hits_ < early_.hits_min) stopped_ = true;
    if (walk_tests_ == late_.tests && walk_hits_ < late_.hits_min) stopped_ = true;
    return yes;
  }
  // The same by the record alone: what is returned matches as it is returned.
  bool AcceptsRecord(uint32_t slot, const RecordView& record) const;
  // Null without an expression.
  SlotFilter* columns() { return columns_ ? &*columns_ : nullptr; }

  uint64_t tests() const { return tests_; }
  uint64_t json_reads() const { return json_reads_; }

 private:
  bool AsksJson(uint32_t slot, const RecordView& record);

  const Parts parts_;
  const ElementFilter filter_;
  const FilterExpression* const where_;
  const bool open_;
  std::optional<SlotFilter> columns_;
  // Answers of JSON by slot (slot * 2 + 2 + yes), for walks that are repeated; made at first use.
  std::vector<uint32_t> asked_;
  std::vector<uint32_t> unknown_;  // of AcceptMany
  Patience early_;
  Patience late_;
  uint32_t walk_tests_ = 0;
  uint32_t walk_hits_ = 0;
  bool stopped_ = false;
  uint64_t tests_ = 0;
  uint64_t json_reads_ = 0;
};

}  // namespace hotkv
