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

bool Graph::RepairStep(uint32_t nodes_max, bool begin_pass, std::vector<uint32_t>* unlinked) {
  std::unique_lock<std::mutex> lock(repair_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  switch (phase_) {
    case RepairPhase::kIdle:
      if (!begin_pass) return false;
      BeginRepair();
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
      if (DropInLink(target) != 0 || (meta(target) & kMetaDead) != 0) continue;
      if (entry_.load(std::memory_order_acquire) != 0) Reattach(target);
    }
  }
}

// Finds a node that links to one that nobody links to any more: its own neighbours first, then
// those that a walk from the entry meets.
void Graph::Reattach(uint32_t slot) {
  std::vector<uint32_t> own = LinksOf(slot, 0);
  if (ForceInLink(slot, Scored(slot, own.data(), static_cast<uint32_t>(own.size())))) return;
  std::vector<char> buffer(options_.query_bytes + 64);
  void* aligned = buffer.data() + (64 - reinterpret_cast<uintptr_t>(buffer.data()) % 64) % 64;
  const QueryView query = ops_->from_row(options_.params, rows_->Row(slot), aligned);
  const uint64_t entry = entry_.load(std::memory_order_acquire);
  if (entry == 0) return;
  const std::vector<Candidate> near = Candidates(slot, query, 0, EntrySlot(entry));
  if (!ForceInLink(slot, near)) ForceInLink(slot, ScanForCandidates(slot, query));
}

void Graph::RepairNode(uint32_t slot) {
  const uint8_t m = meta(slot);
  if ((m & (kMetaDead | kMetaLinked)) != kMetaLinked) return;
  for (uint32_t level = 0; level <= (m & kMetaLevelMask); ++level) RepairLevel(slot, level);
}

void Graph::RepairLevel(uint32_t slot, uint32_t level) {
  std::vector<uint32_t> row(Width(level));
  const auto is_dead = [this](uint32_t id) { return (meta(id) & kMetaDead) != 0; };
  const uint32_t seen = ReadRow(slot, level, row.data());
  if (std::none_of(row.begin(), row.begin() + seen, is_dead)) return;

  LockNode(slot);
  const uint32_t count = ReadRow(slot, level, row.data());
  std::vector<uint32_t> alive;
  std::vector<uint32_t> dead;
  for (uint32_t i = 0; i < count; ++i) (is_dead(row[i]) ? dead : alive).push_back(row[i]);
  std::vector<uint32_t> all = alive;
  for (const uint32_t id : dead) {
    for (const uint32_t next : LinksOf(id, level)) {
      if (next != slot && !is_dead(next)) all.push_back(next);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const std::vector<Candidate> scored = Scored(slot, all.data(), static_cast<uint32_t>(all.size()));
  std::vector<uint32_t> chosen = SelectFrom(slot, scored, LinksMax(level));
  if (level == 0) {
    // What was linked stays linked where there is room, and where the link is the last one.
    for (const uint32_t id : alive) {
      if (std::find(chosen.begin(), chosen.end(), id) != chosen.end()) continue;
      if (chosen.size() < LinksMax(0)) {
        chosen.push_back(id);
      } else if (!TryDropInLink(id)) {
        for (uint32_t& other : chosen) {
          const bool was = std::find(alive.begin(), alive.end(), other) != alive.end();
          if (was && !TryDropInLink(other)) continue;
          other = id;
          break;
        }
      }
    }
    for (const uint32_t id : chosen) {
      if (std::find(alive.begin(), alive.end(), id) == alive.end()) AddInLink(id);
    }
    for (const uint32_t id : dead) DropInLink(id);
  }
  WriteRow(slot, level, chosen.data(), static_cast<uint32_t>(chosen.size()));
  UnlockNode(slot);
}

void Graph::FinishRepair(std::vector<uint32_t>* unlinked) {
  for (const uint32_t slot : pass_dead_) {
    ClearNode(slot);
    unlinked->push_back(slot);
  }
  dead_count_.fetch_sub(pass_dead_.size(), std::memory_order_relaxed);
  pass_dead_.clear();
}

}  // namespace hotkv
