// Taking dead nodes out of the graph, in passes of bounded steps:
//   1. freeze the set of the dead, wait until every writer that may still have met one of them
//   alive has finished
//      (from then on nobody links to them);
//   2. detach: what they link to no longer counts on them; whom that leaves without an in-link gets
//   another;
//   3. look at every node once: rows that link to the dead choose anew among their own links and
//   those of the dead
//      (as FreshDiskANN's consolidation does);
//   4. wait until no reader can be looking at them; their slots are free.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/sync_point.h"
#include "index/graph/graph.h"
#include "index/reader_pin.h"
#include "index/vector_index.h"

namespace hotkv {

void Graph::RequestGrace() {
  grace_over_ = std::make_shared<std::atomic<bool>>(false);
  IndexReclaim().Retire([over = grace_over_] { over->store(true, std::memory_order_release); });
}

bool Graph::RepairStep(uint32_t nodes_max, PassWanted wanted, std::vector<uint32_t>* unlinked) {
  std::unique_lock<std::mutex> lock(repair_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  switch (phase_) {
    case RepairPhase::kIdle:
      if (wanted == PassWanted::kNone) return false;
      wanted == PassWanted::kRepair ? BeginRepair() : BeginConnect();
      break;
    case RepairPhase::kAwaitWriters:
      IndexReclaim().Collect();
      if (!grace_over_->load(std::memory_order_acquire)) break;
      DetachDead();
      pass_cursor_ = 0;
      pass_end_ = slot_limit();
      phase_ = RepairPhase::kScan;
      break;
    case RepairPhase::kScan: {
      ReaderPin pin;
      const uint32_t left = pass_end_ - pass_cursor_;
      const uint32_t end = pass_cursor_ + std::min(left, nodes_max);
      for (; pass_cursor_ < end; ++pass_cursor_) RepairNode(pass_cursor_);
      if (pass_cursor_ < pass_end_) break;
      RequestGrace();
      phase_ = RepairPhase::kAwaitReaders;
      break;
    }
    case RepairPhase::kAwaitReaders:
      IndexReclaim().Collect();
      if (!grace_over_->load(std::memory_order_acquire)) break;
      FinishRepair(unlinked);
      BeginConnect();
      break;
    case RepairPhase::kConnect:
      if (ConnectSome(nodes_max)) break;
      FinishConnect();
      phase_ = RepairPhase::kIdle;
      return false;
  }
  return true;
}

void Graph::BeginRepair() {
  {
    std::lock_guard<std::mutex> lock(dead_mutex_);
    pass_dead_.swap(dead_list_);
  }
  in_pass_.assign(slot_limit(), false);
  for (const uint32_t slot : pass_dead_) in_pass_[slot] = true;
  RequestGrace();
  phase_ = RepairPhase::kAwaitWriters;
}

// The entry must be a node that stays: the highest one that lives.
void Graph::ReplaceDeadEntry() {
  for (;;) {
    uint64_t entry = entry_.load(std::memory_order_acquire);
    if (entry == 0 || (meta(EntrySlot(entry)) & kMetaDead) == 0) return;
    uint64_t best = 0;
    const uint32_t limit = slot_limit();
    for (uint32_t slot = 0; slot < limit; ++slot) {
      const uint8_t m = meta(slot);
      if ((m & (kMetaDead | kMetaLinked)) != kMetaLinked) continue;
      const uint32_t level = m & kMetaLevelMask;
      if (best == 0 || level > EntryLevel(best)) best = PackEntry(slot, level);
    }
    if (entry_.compare_exchange_strong(entry, best, std::memory_order_acq_rel)) return;
  }
}

void Graph::DetachDead() {
  ReaderPin pin;
  ReplaceDeadEntry();
  std::vector<uint32_t> row(link_width_);
  for (const uint32_t dead : pass_dead_) {
    const uint32_t count = ReadRow(dead, 0, row.data());
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t target = row[i];
      // A node that died since the set was frozen counts as well: others may hang on it.
      if (DropInLink(target) != 0 || InPass(target)) continue;
      if (entry_.load(std::memory_order_acquire) != 0) Reattach(target);
    }
  }
}

void Graph::RepairNode(uint32_t slot) {
  const uint8_t m = meta(slot);
  if ((m & kMetaLinked) == 0) return;
  for (uint32_t level = 0; level <= (m & kMetaLevelMask); ++level) RepairLevel(slot, level);
}

void Graph::RepairLevel(uint32_t slot, uint32_t level) {
  std::vector<uint32_t> row(Width(level));
  const auto goes = [this](uint32_t id) { return InPass(id); };
  const uint32_t seen = ReadRow(slot, level, row.data());
  if (std::none_of(row.begin(), row.begin() + seen, goes)) return;

  LockNode(slot);
  const uint32_t count = ReadRow(slot, level, row.data());
  std::vector<uint32_t> kept;
  std::vector<uint32_t> gone;
  for (uint32_t i = 0; i < count; ++i) (goes(row[i]) ? gone : kept).push_back(row[i]);
  if ((meta(slot) & kMetaDead) != 0) {
    // Died during this pass, so it stays until the next one: it only forgets whom this one frees.
    WriteRow(slot, level, kept.data(), static_cast<uint32_t>(kept.size()));
    UnlockNode(slot);
    return;
  }
  std::vector<uint32_t> all = kept;
  for (const uint32_t id : gone) {
    for (const uint32_t next : LinksOf(id, level)) {
      if (next != slot && (meta(next) & kMetaDead) == 0) all.push_back(next);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const std::vector<Candidate> scored = Scored(slot, all.data(), static_cast<uint32_t>(all.size()));
  std::vector<uint32_t> chosen = SelectFrom(slot, scored, LinksMax(level));
  if (level == 0) KeepLastLinks(kept, &chosen);
  WriteRow(slot, level, chosen.data(), static_cast<uint32_t>(chosen.size()));
  UnlockNode(slot);
}

// What was linked stays linked where there is room, and where the link is the last one.
void Graph::KeepLastLinks(const std::vector<uint32_t>& kept, std::vector<uint32_t>* chosen) {
  const auto holds = [](const std::vector<uint32_t>& ids, uint32_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  for (const uint32_t id : kept) {
    if (holds(*chosen, id)) continue;
    if (chosen->size() < LinksMax(0)) {
      chosen->push_back(id);
      continue;
    }
    if (TryDropInLink(id)) continue;
    for (uint32_t& other : *chosen) {
      if (holds(kept, other) && !TryDropInLink(other)) continue;
      other = id;
      break;
    }
  }
  for (const uint32_t id : *chosen) {
    if (!holds(kept, id)) AddInLink(id);
  }
}

void Graph::FinishRepair(std::vector<uint32_t>* unlinked) {
  for (const uint32_t slot : pass_dead_) {
    ClearNode(slot);
    unlinked->push_back(slot);
  }
  dead_count_.fetch_sub(pass_dead_.size(), std::memory_order_relaxed);
  pass_dead_.clear();
  in_pass_ = {};
}

}  // namespace hotkv
