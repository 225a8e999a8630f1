// A walk over the nodes that match a filter only. Where a node's neighbours do not match, it looks
// past them at theirs, so it stays on the matching nodes without computing distances to others (after
// ACORN, Patel, Kraft, Guestrin and Zaharia 2024).
#include <algorithm>
#include <bit>
#include <vector>

#include "index/graph/graph.h"
#include "index/graph/slot_marks.h"
#include "index/vector_index.h"

namespace hotkv {

namespace {

struct Marks {
  SlotMarks tested;
  SlotMarks bridge;  // does not match, and has not been looked past yet
};

Marks& MyMarks() {
  thread_local Marks marks;
  return marks;
}

void Insert(WalkPool* pool, float distance, uint32_t slot, uint32_t* cursor) {
  if (pool->size == pool->capacity && !(distance < pool->distance[pool->size - 1])) return;
  const auto at = static_cast<uint32_t>(
      std::upper_bound(pool->distance, pool->distance + pool->size, distance) - pool->distance);
  const uint32_t last = pool->size < pool->capacity ? pool->size++ : pool->size - 1;
  std::copy_backward(pool->distance + at, pool->distance + last, pool->distance + last + 1);
  std::copy_backward(pool->slot + at, pool->slot + last, pool->slot + last + 1);
  pool->distance[at] = distance;
  pool->slot[at] = slot;
  *cursor = std::min(*cursor, at);
}

}  // namespace

// Adds matching neighbours of a row that were not met before to `batch`, and the others to `bridges`
// unless it is null.
void Graph::GatherMatching(const WalkPlan& plan, uint32_t slot, uint32_t limit,
                           std::vector<uint32_t>* batch, std::vector<uint32_t>* bridges) const {
  Marks& marks = MyMarks();
  const uint32_t* row = LinkRowOf(slot, 0);
  for (uint32_t i = 0; i < link_width_; ++i) {
    const uint32_t to = std::atomic_ref<const uint32_t>(row[i]).load(std::memory_order_acquire);
    if (to == kNoSlot) break;
    if (to >= limit) continue;
    if (marks.tested.Set(to)) {
      if (plan.accepts(plan.context, to)) {
        batch->push_back(to);
        continue;
      }
      marks.bridge.Set(to);
    }
    if (bridges == nullptr || !marks.bridge.Has(to)) continue;
    marks.bridge.Clear(to);
    bridges->push_back(to);
    const char* links = reinterpret_cast<const char*>(LinkRowOf(to, 0));
    for (uint32_t at = 0; at < link_width_ * sizeof(uint32_t); at += 64) {
      __builtin_prefetch(links + at);
    }
  }
}

const WalkPool& Graph::WalkMatching(const WalkPlan& plan, std::span<const uint32_t> seeds,
                                    WalkCounts* counts) const {
  WalkScratch& scratch = Scratch::Mine().For(Needs(plan.ef, true));
  WalkPool& pool = scratch.accepted;
  const uint32_t limit = scratch.limit;
  const uint64_t entry = entry_.load(std::memory_order_acquire);
  if (entry == 0 || EntrySlot(entry) >= limit) return pool;
  Marks& marks = MyMarks();
  marks.tested.Begin(limit);
  marks.bridge.Begin(limit);
  std::vector<uint32_t> batch;
  std::vector<uint32_t> bridges;
  std::vector<float> distances;
  uint32_t cursor = 0;
  const auto offer = [&] {
    distances.resize(batch.size());
    Distances(plan.query, batch.data(), static_cast<uint32_t>(batch.size()), distances.data());
    counts->distances += batch.size();
    for (size_t i = 0; i < batch.size(); ++i) Insert(&pool, distances[i], batch[i], &cursor);
    batch.clear();
  };
  // Looks at a node's neighbours, and past those that do not match until there are enough.
  const auto expand = [&](uint32_t slot) {
    ++counts->nodes;
    bridges.clear();
    GatherMatching(plan, slot, limit, &batch, &bridges);
    for (size_t i = 0; i < bridges.size() && batch.size() < link_width_; ++i) {
      GatherMatching(plan, bridges[i], limit, &batch, nullptr);
      ++counts->nodes;
    }
    offer();
  };
  for (const uint32_t slot : seeds) {
    if (slot < limit && marks.tested.Set(slot)) batch.push_back(slot);
  }
  offer();
  const uint32_t start =
      ops_->descend(walk_graph(), plan.query, EntrySlot(entry), EntryLevel(entry), 0, scratch);
  if (marks.tested.Set(start) && plan.accepts(plan.context, start)) batch.push_back(start);
  expand(start);
  while (cursor < pool.size) {
    if ((pool.slot[cursor] & kExpandedBit) != 0) {
      ++cursor;
      continue;
    }
    const uint32_t slot = pool.slot[cursor];
    pool.slot[cursor] |= kExpandedBit;
    expand(slot);
  }
  for (uint32_t i = 0; i < pool.size; ++i) pool.slot[i] &= ~kExpandedBit;
  return pool;
}

uint64_t Graph::VisitedByLastWalk() const {
  const WalkScratch& scratch = Scratch::Mine().Last();
  uint64_t visited = 0;
  for (uint32_t i = 0; i < scratch.visited_words; ++i) {
    if (scratch.visited[i] >> 16 != scratch.stamp) continue;
    visited += static_cast<uint64_t>(std::popcount(scratch.visited[i] & 0xffffu));
  }
  return visited;
}

}  // namespace hotkv
