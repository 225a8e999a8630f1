// Reachability. Every node keeps at least one link to it, which makes islands rare but does not
// rule them out: two nodes may link to each other only. A pass walks the base layer from the entry
// in bounded steps and gives each island a link from the rest.
#include <algorithm>

#include "index/graph/graph.h"
#include "index/reader_pin.h"
#include "index/vector_index.h"

namespace hotkv {

void Graph::BeginConnect() {
  linked_since_connect_.store(0, std::memory_order_relaxed);
  connect_limit_ = slot_limit();
  met_.assign(connect_limit_, false);
  to_expand_.clear();
  pass_cursor_ = 0;
  const uint64_t entry = entry_.load(std::memory_order_acquire);
  if (entry != 0) Meet(EntrySlot(entry));
  phase_ = RepairPhase::kConnect;
}

void Graph::Meet(uint32_t slot) {
  if (slot >= connect_limit_ || met_[slot]) return;
  met_[slot] = true;
  to_expand_.push_back(slot);
}

// True while there is more to do.
bool Graph::ConnectSome(uint32_t nodes_max) {
  ReaderPin pin;
  std::vector<uint32_t> row(link_width_);
  for (uint32_t done = 0; done < nodes_max; ++done) {
    if (!to_expand_.empty()) {
      const uint32_t slot = to_expand_.back();
      to_expand_.pop_back();
      const uint32_t count = ReadRow(slot, 0, row.data());
      for (uint32_t i = 0; i < count; ++i) Meet(row[i]);
      continue;
    }
    if (pass_cursor_ == connect_limit_) return false;
    const uint32_t slot = pass_cursor_++;
    if (met_[slot] || (meta(slot) & (kMetaDead | kMetaLinked)) != kMetaLinked) continue;
    if (entry_.load(std::memory_order_acquire) == 0) return false;
    Reattach(slot);
    Meet(slot);
  }
  return true;
}

void Graph::ConnectAll() {
  BeginConnect();
  while (ConnectSome(1u << 16)) {
  }
  FinishConnect();
  phase_ = RepairPhase::kIdle;
}

void Graph::FinishConnect() {
  met_ = {};
  to_expand_ = {};
}

// A node that nobody links to, or that cannot be reached: near nodes that can be reached are asked
// first, then any.
void Graph::Reattach(uint32_t slot) {
  std::vector<uint32_t> own = LinksOf(slot, 0);
  if (phase_ == RepairPhase::kConnect) {
    std::erase_if(own, [this](uint32_t id) { return id >= connect_limit_ || !met_[id]; });
  }
  if (ForceInLink(slot, Scored(slot, own.data(), static_cast<uint32_t>(own.size())))) return;
  QueryBuffer buffer(options_.query_bytes);
  const QueryView query = ops_->from_row(options_.params, rows_->Row(slot), buffer.data());
  const uint64_t entry = entry_.load(std::memory_order_acquire);
  if (entry == 0) return;
  if (ForceInLink(slot, Candidates(slot, query, 0, EntrySlot(entry)))) return;
  ForceInLink(slot, ScanForCandidates(slot, query));
}

}  // namespace hotkv
