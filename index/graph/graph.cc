#include "index/graph/graph.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/spin_lock.h"
#include "index/vector_index.h"

namespace hotkv {

namespace {

constexpr size_t kFirstBytes = 4096;
constexpr size_t kCapBytes = size_t{64} << 20;
// Nodes that a filtered walk may keep to go on from, beyond what it accepts.
constexpr uint32_t kFilteredPoolMin = 4096;

uint32_t RoundUp16(uint32_t n) { return (n + 15) / 16 * 16; }

SlabGeometry Shape(uint32_t stride) { return SlabGeometry::For(stride, kFirstBytes, kCapBytes); }

}  // namespace

Graph::Graph(const GraphOptions& options, const SlabArray* rows)
    : options_(options),
      ops_(&OpsOf(*options.target, options.space)),
      rows_(rows),
      link_width_(RoundUp16(2 * options.m)),
      upper_width_(RoundUp16(options.m)),
      links_(Shape(link_width_ * 4), nullptr),
      upper_at_(Shape(4), nullptr),
      upper_(Shape(upper_width_ * 4), nullptr),
      meta_(Shape(1), nullptr),
      in_degree_(Shape(1), nullptr) {}

Status Graph::Reserve(uint32_t slots) {
  HOTKV_RETURN_IF_ERROR(links_.Reserve(slots));
  HOTKV_RETURN_IF_ERROR(upper_at_.Reserve(slots));
  HOTKV_RETURN_IF_ERROR(in_degree_.Reserve(slots));
  return meta_.Reserve(slots);
}

void Graph::RaiseSlotLimit(uint32_t limit) {
  uint32_t now = slot_limit_.load(std::memory_order_relaxed);
  while (now < limit && !slot_limit_.compare_exchange_weak(now, limit, std::memory_order_release,
                                                           std::memory_order_relaxed)) {
  }
}

uint32_t Graph::top_level() const {
  const uint64_t entry = entry_.load(std::memory_order_acquire);
  return entry == 0 ? 0 : EntryLevel(entry);
}

WalkGraph Graph::walk_graph() const {
  WalkGraph graph;
  graph.rows = rows_->view();
  graph.links = links_.view();
  graph.upper_at = upper_at_.view();
  graph.upper = upper_.view();
  graph.meta = meta_.view();
  graph.link_width = link_width_;
  graph.upper_width = upper_width_;
  graph.upper_rows = upper_rows_.load(std::memory_order_acquire);
  graph.space = options_.params;
  return graph;
}

Scratch::Needs Graph::Needs(uint32_t ef, bool filtered) const {
  Scratch::Needs needs;
  needs.slot_limit = slot_limit();
  needs.pool = ef;
  if (filtered) {
    needs.accepted = ef;
    needs.pool = std::max(kFilteredPoolMin, ef < (1u << 26) ? ef * 8 : ef);
  }
  needs.row_width = link_width_;
  needs.query_bytes = options_.query_bytes;
  return needs;
}

uint32_t* Graph::LinkRowOf(uint32_t slot, uint32_t level) const {
  if (level == 0) return reinterpret_cast<uint32_t*>(links_.Row(slot));
  const uint32_t first = upper_at_.At<uint32_t>(slot).load(std::memory_order_acquire);
  const uint32_t rows = upper_rows_.load(std::memory_order_acquire);
  return reinterpret_cast<uint32_t*>(
      upper_.Row(first == 0 || first + level > rows ? 0 : first + level - 1));
}

uint32_t Graph::ReadRow(uint32_t slot, uint32_t level, uint32_t* out) const {
  uint32_t* row = LinkRowOf(slot, level);
  const uint32_t width = Width(level);
  uint32_t count = 0;
  for (; count < width; ++count) {
    out[count] = std::atomic_ref<uint32_t>(row[count]).load(std::memory_order_acquire);
    if (out[count] == kNoSlot) break;
  }
  return count;
}

void Graph::WriteRow(uint32_t slot, uint32_t level, const uint32_t* ids, uint32_t count) {
  uint32_t* row = LinkRowOf(slot, level);
  const auto store = [row](uint32_t at, uint32_t id) {
    std::atomic_ref<uint32_t>(row[at]).store(id, std::memory_order_release);
  };
  std::vector<uint32_t> old(Width(level));
  const uint32_t old_count = ReadRow(slot, level, old.data());
  const auto holds = [](const uint32_t* list, uint32_t n, uint32_t id) {
    return std::find(list, list + n, id) != list + n;
  };
  std::vector<uint32_t> fresh;
  for (uint32_t i = 0; i < count; ++i) {
    if (!holds(old.data(), old_count, ids[i])) fresh.push_back(ids[i]);
  }
  uint32_t end = old_count;
  size_t next_fresh = 0;
  for (uint32_t i = 0; i < end; ++i) {
    if (holds(ids, count, old[i])) continue;
    if (next_fresh < fresh.size()) {
      old[i] = fresh[next_fresh++];
      store(i, old[i]);
      continue;
    }
    // Fill the hole from the end, which itself may be on its way out.
    --end;
    while (end > i && !holds(ids, count, old[end])) store(end--, kNoSlot);
    if (end > i) {
      old[i] = old[end];
      store(i, old[i]);
    }
    store(end, kNoSlot);
  }
  for (; next_fresh < fresh.size(); ++next_fresh) store(end++, fresh[next_fresh]);
}

void Graph::LockNode(uint32_t slot) {
  const std::atomic_ref<uint8_t> meta = meta_.At<uint8_t>(slot);
  for (unsigned spins = 0;; ++spins) {
    if ((meta.load(std::memory_order_relaxed) & kMetaLock) == 0 &&
        (meta.fetch_or(kMetaLock, std::memory_order_acquire) & kMetaLock) == 0) {
      return;
    }
    if (spins < 100) {
      CpuRelax();
    } else {
      sched_yield();
    }
  }
}

void Graph::UnlockNode(uint32_t slot) {
  meta_.At<uint8_t>(slot).fetch_and(static_cast<uint8_t>(~kMetaLock), std::memory_order_release);
}

void Graph::AddInLink(uint32_t slot) {
  const std::atomic_ref<uint8_t> degree = in_degree_.At<uint8_t>(slot);
  uint8_t now = degree.load(std::memory_order_relaxed);
  while (now < 255 && !degree.compare_exchange_weak(now, static_cast<uint8_t>(now + 1),
                                                    std::memory_order_relaxed)) {
  }
}

bool Graph::TryDropInLink(uint32_t slot) {
  const std::atomic_ref<uint8_t> degree = in_degree_.At<uint8_t>(slot);
  uint8_t now = degree.load(std::memory_order_relaxed);
  for (;;) {
    if (now == 255) return true;
    if (now <= 1) return false;
    if (degree.compare_exchange_weak(now, static_cast<uint8_t>(now - 1),
                                     std::memory_order_relaxed)) {
      return true;
    }
  }
}

uint32_t Graph::DropInLink(uint32_t slot) {
  const std::atomic_ref<uint8_t> degree = in_degree_.At<uint8_t>(slot);
  uint8_t now = degree.load(std::memory_order_relaxed);
  for (;;) {
    if (now == 255 || now == 0) return now;
    if (degree.compare_exchange_weak(now, static_cast<uint8_t>(now - 1),
                                     std::memory_order_relaxed)) {
      return now - 1u;
    }
  }
}

Status Graph::AllocateUpper(uint32_t slot, uint32_t level) {
  std::lock_guard<std::mutex> lock(upper_mutex_);
  uint32_t first;
  const uint32_t rows = upper_rows_.load(std::memory_order_relaxed);
  const bool recycled = !upper_free_[level].empty();
  if (recycled) {
    first = upper_free_[level].back();
  } else {
    const bool virgin = upper_.capacity() == 0;
    HOTKV_RETURN_IF_ERROR(upper_.Reserve(rows + level));
    if (virgin) std::fill_n(reinterpret_cast<uint32_t*>(upper_.Row(0)), upper_width_, kNoSlot);
    first = rows;
  }
  for (uint32_t row = first; row < first + level; ++row) {
    uint32_t* ids = reinterpret_cast<uint32_t*>(upper_.Row(row));
    for (uint32_t i = 0; i < upper_width_; ++i) {
      std::atomic_ref<uint32_t>(ids[i]).store(kNoSlot, std::memory_order_relaxed);
    }
  }
  if (recycled) {
    upper_free_[level].pop_back();
  } else {
    upper_rows_.store(rows + level, std::memory_order_release);
  }
  upper_at_.At<uint32_t>(slot).store(first, std::memory_order_release);
  return Status::Ok();
}

void Graph::FreeUpper(uint32_t slot) {
  const uint32_t level = LevelOf(slot);
  if (level == 0) return;
  std::lock_guard<std::mutex> lock(upper_mutex_);
  const std::atomic_ref<uint32_t> at = upper_at_.At<uint32_t>(slot);
  const uint32_t first = at.load(std::memory_order_relaxed);
  if (first == 0) return;
  upper_free_[level].push_back(first);
  at.store(0, std::memory_order_release);
}

Status Graph::InitNode(uint32_t slot, uint32_t level) {
  // Descents start at row 0 for nodes without upper rows, so it must exist.
  if (upper_.capacity() == 0 || level != 0) {
    HOTKV_RETURN_IF_ERROR(AllocateUpper(slot, level));
  }
  if (level == 0) upper_at_.At<uint32_t>(slot).store(0, std::memory_order_relaxed);
  uint32_t* row = reinterpret_cast<uint32_t*>(links_.Row(slot));
  for (uint32_t i = 0; i < link_width_; ++i) {
    std::atomic_ref<uint32_t>(row[i]).store(kNoSlot, std::memory_order_relaxed);
  }
  in_degree_.At<uint8_t>(slot).store(0, std::memory_order_relaxed);
  meta_.At<uint8_t>(slot).store(static_cast<uint8_t>(level), std::memory_order_release);
  RaiseSlotLimit(slot + 1);
  return Status::Ok();
}

void Graph::ClearNode(uint32_t slot) {
  FreeUpper(slot);
  meta_.At<uint8_t>(slot).store(0, std::memory_order_release);
}

void Graph::MarkDead(uint32_t slot) {
  const std::atomic_ref<uint8_t> meta = meta_.At<uint8_t>(slot);
  // Under the node's lock: whoever adds a link to its row checks for death under the same lock, so
  // afterwards the row is only changed by repair.
  LockNode(slot);
  const uint8_t before =
      meta.fetch_and(static_cast<uint8_t>(~kMetaLive), std::memory_order_acq_rel);
  if ((before & kMetaLinked) != 0) meta.fetch_or(kMetaDead, std::memory_order_acq_rel);
  UnlockNode(slot);
  if ((before & kMetaLinked) == 0) return;
  dead_count_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(dead_mutex_);
  dead_list_.push_back(slot);
}

bool Graph::Revive(uint32_t slot) {
  meta_.At<uint8_t>(slot).fetch_and(static_cast<uint8_t>(~kMetaDead), std::memory_order_acq_rel);
  dead_count_.fetch_sub(1, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(dead_mutex_);
  std::erase(dead_list_, slot);
  return in_degree_.At<uint8_t>(slot).load(std::memory_order_relaxed) != 0;
}

const WalkPool& Graph::Walk(const WalkPlan& plan) const {
  Scratch::Needs needs = Needs(plan.ef, plan.filtered);
  if (plan.filtered && plan.pool != 0) needs.pool = plan.pool;
  WalkScratch& scratch = Scratch::Mine().For(needs);
  const uint64_t entry = entry_.load(std::memory_order_acquire);
  WalkPool& answer = plan.filtered ? scratch.accepted : scratch.pool;
  if (entry == 0) return answer;
  // The entry may have come after the limit was taken.
  if (EntrySlot(entry) >= scratch.limit) return Walk(plan);
  const WalkGraph graph = walk_graph();
  WalkRequest request;
  request.query = plan.query;
  request.entry = ops_->descend(graph, plan.query, EntrySlot(entry), EntryLevel(entry), 0, scratch);
  request.meta_mask = plan.meta_mask;
  request.meta_want = plan.meta_want;
  request.accepts = plan.accepts;
  request.context = plan.context;
  request.stop = plan.stop;
  if (plan.filtered) {
    ops_->search_filtered(graph, request, scratch);
  } else {
    ops_->search(graph, request, scratch);
  }
  return answer;
}

std::vector<uint32_t> Graph::LinksOf(uint32_t slot, uint32_t level) const {
  std::vector<uint32_t> links(Width(level));
  links.resize(ReadRow(slot, level, links.data()));
  return links;
}

}  // namespace hotkv
