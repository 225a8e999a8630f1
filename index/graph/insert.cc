// Linking a new node: forward links on all levels, then the reverse ones, then the demand that
// somebody links to it.
#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/sync_point.h"
#include "index/graph/graph.h"
#include "index/reader_pin.h"
#include "index/vector_index.h"

namespace hotkv {

namespace {

// A candidate that is tried as the one that must link to a node, before the search is widened.
constexpr size_t kForceCandidatesMax = 200;
// Copies of a new node that are asked for their links.
constexpr size_t kCopiesAsked = 32;

void SortByDistance(std::vector<Candidate>* candidates) {
  std::sort(candidates->begin(), candidates->end(), [](const Candidate& a, const Candidate& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.slot < b.slot;
  });
}

}  // namespace

std::vector<Candidate> Graph::Scored(uint32_t node, const uint32_t* ids, uint32_t count) const {
  std::vector<float> distances(count);
  QueryBuffer buffer(options_.query_bytes);
  const QueryView query = ops_->from_row(options_.params, rows_->Row(node), buffer.data());
  ops_->distances(walk_graph(), query, ids, count, distances.data());
  std::vector<Candidate> scored(count);
  for (uint32_t i = 0; i < count; ++i) scored[i] = {distances[i], ids[i]};
  SortByDistance(&scored);
  return scored;
}

std::vector<Candidate> Graph::Candidates(uint32_t slot, const QueryView& query, uint32_t level,
                                         uint32_t entry) {
  const bool filtered = dead_count() != 0;
  WalkScratch& scratch = Scratch::Mine().For(Needs(options_.ef_construction, filtered));
  WalkRequest request;
  request.query = query;
  request.level = level;
  request.entry = entry;
  request.meta_mask = kMetaDead;
  const WalkGraph graph = walk_graph();
  if (filtered) {
    ops_->search_filtered(graph, request, scratch);
  } else {
    ops_->search(graph, request, scratch);
  }
  const WalkPool& found = filtered ? scratch.accepted : scratch.pool;
  std::vector<Candidate> candidates;
  candidates.reserve(found.size);
  for (uint32_t i = 0; i < found.size; ++i) {
    // Deaths during an unfiltered walk are sorted out here.
    if (found.slot[i] == slot || (meta(found.slot[i]) & kMetaDead) != 0) continue;
    candidates.push_back({found.distance[i], found.slot[i]});
  }
  return candidates;
}

// When the walk's whole answer is copies of the node, more of it would be copies too. What the
// copies link to beyond themselves is then offered as well, so that a crowd of copies stays tied to
// the rest by every one of them.
void Graph::WidenPastCopies(uint32_t slot, const QueryView& query, uint32_t level,
                            std::vector<Candidate>* candidates) const {
  if (candidates->size() < options_.ef_construction / 2) return;
  const char* own = rows_->Row(slot);
  const auto is_copy = [&](uint32_t id) {
    return std::memcmp(rows_->Row(id), own, options_.params.row_bytes) == 0;
  };
  if (!is_copy(candidates->back().slot)) return;
  std::vector<uint32_t> beyond;
  const size_t step = std::max<size_t>(1, candidates->size() / kCopiesAsked);
  for (size_t i = 0; i < candidates->size(); i += step) {
    for (const uint32_t id : LinksOf((*candidates)[i].slot, level)) {
      if (id != slot && (meta(id) & kMetaDead) == 0 && !is_copy(id)) beyond.push_back(id);
    }
  }
  std::sort(beyond.begin(), beyond.end());
  beyond.erase(std::unique(beyond.begin(), beyond.end()), beyond.end());
  std::vector<float> distances(beyond.size());
  ops_->distances(walk_graph(), query, beyond.data(), static_cast<uint32_t>(beyond.size()),
                  distances.data());
  for (size_t i = 0; i < beyond.size(); ++i) candidates->push_back({distances[i], beyond[i]});
  SortByDistance(candidates);
}

// Where the dead lie so thick that the walk met nobody else.
std::vector<Candidate> Graph::ScanForCandidates(uint32_t slot, const QueryView& query) {
  std::vector<uint32_t> ids;
  const uint32_t limit = slot_limit();
  for (uint32_t i = 0; i < limit && ids.size() < options_.ef_construction; ++i) {
    if (i != slot && (meta(i) & (kMetaDead | kMetaLinked)) == kMetaLinked) ids.push_back(i);
  }
  std::vector<float> distances(ids.size());
  ops_->distances(walk_graph(), query, ids.data(), static_cast<uint32_t>(ids.size()),
                  distances.data());
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < ids.size(); ++i) candidates.push_back({distances[i], ids[i]});
  SortByDistance(&candidates);
  return candidates;
}

std::vector<uint32_t> Graph::SelectFrom(uint32_t slot, const std::vector<Candidate>& candidates,
                                        uint32_t select_max) {
  std::vector<uint32_t> chosen(select_max);
  SelectRequest request;
  request.candidates = candidates.data();
  request.count = static_cast<uint32_t>(candidates.size());
  request.node_row = rows_->Row(slot);
  request.node_slot = slot;
  request.select_max = select_max;
  request.duplicates_max = std::max(1u, select_max / 4);
  WalkScratch& scratch = Scratch::Mine().For(Needs(options_.ef_construction, false));
  chosen.resize(ops_->select(walk_graph(), request, scratch, chosen.data()));
  return chosen;
}

bool Graph::FindForward(uint32_t slot, const QueryView& query, uint64_t entry, Forward* forward) {
  const uint32_t level = LevelOf(slot);
  const uint32_t top = EntryLevel(entry);
  uint32_t at = EntrySlot(entry);
  WalkScratch& scratch = Scratch::Mine().For(Needs(options_.ef_construction, false));
  if (at >= scratch.limit) return false;
  if (top > level) at = ops_->descend(walk_graph(), query, at, top, level, scratch);
  for (uint32_t l = std::min(level, top) + 1; l-- > 0;) {
    std::vector<Candidate> candidates = Candidates(slot, query, l, at);
    if (candidates.empty() && l == 0) candidates = ScanForCandidates(slot, query);
    if (!candidates.empty()) at = candidates.front().slot;
    WidenPastCopies(slot, query, l, &candidates);
    forward->links[l] = SelectFrom(slot, candidates, options_.m);
    if (l == 0) forward->base = std::move(candidates);
  }
  return true;
}

void Graph::Link(uint32_t slot, const QueryView& query) {
  ReaderPin pin;
  const uint32_t level = LevelOf(slot);
  const std::atomic_ref<uint8_t> my_meta = meta_.At<uint8_t>(slot);
  Forward forward;
  for (;;) {
    uint64_t entry = entry_.load(std::memory_order_acquire);
    if (entry != 0 && EntrySlot(entry) != slot && !FindForward(slot, query, entry, &forward)) {
      continue;
    }
    if (!forward.base.empty()) break;
    // The first node, or the first after all others died. Linked before it can be met.
    my_meta.fetch_or(kMetaLinked, std::memory_order_acq_rel);
    if (entry_.compare_exchange_strong(entry, PackEntry(slot, level), std::memory_order_acq_rel)) {
      return;
    }
    my_meta.fetch_and(static_cast<uint8_t>(~kMetaLinked), std::memory_order_acq_rel);
  }
  WriteForward(slot, forward);
  my_meta.fetch_or(kMetaLinked, std::memory_order_acq_rel);
  HOTKV_SYNC_POINT("graph.link.forward_made");
  for (uint32_t l = level + 1; l-- > 0;) {
    for (const uint32_t node : forward.links[l]) AddReverse(node, slot, l);
  }
  if (in_degree_.At<uint8_t>(slot).load(std::memory_order_relaxed) == 0 &&
      !ForceInLink(slot, forward.base)) {
    // Everybody near has died meanwhile or holds only last links.
    ForceInLink(slot, ScanForCandidates(slot, query));
  }
  linked_since_connect_.fetch_add(1, std::memory_order_relaxed);
  RaiseEntry(slot, level);
}

void Graph::WriteForward(uint32_t slot, const Forward& forward) {
  LockNode(slot);
  const std::vector<uint32_t>& base = forward.links[0];
  // Links that are there already: a revived node, or others that met this one at the entry.
  const std::vector<uint32_t> old = LinksOf(slot, 0);
  const auto holds = [](const std::vector<uint32_t>& ids, uint32_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  for (const uint32_t target : base) {
    if (!holds(old, target)) AddInLink(target);
  }
  std::vector<uint32_t> kept = base;
  for (const uint32_t target : old) {
    if (holds(base, target)) continue;
    if (kept.size() < LinksMax(0)) {
      kept.push_back(target);
    } else if (!TryDropInLink(target)) {
      // A last link stays; one of the new ones, which is linked from elsewhere, goes.
      for (uint32_t& id : kept) {
        if (holds(old, id) || !TryDropInLink(id)) continue;
        id = target;
        break;
      }
    }
  }
  WriteRow(slot, 0, kept.data(), static_cast<uint32_t>(kept.size()));
  for (uint32_t l = 1; l <= LevelOf(slot); ++l) {
    WriteRow(slot, l, forward.links[l].data(), static_cast<uint32_t>(forward.links[l].size()));
  }
  UnlockNode(slot);
}

bool Graph::AddReverse(uint32_t node, uint32_t target, uint32_t level) {
  LockNode(node);
  if ((meta(node) & kMetaDead) != 0) {
    UnlockNode(node);
    return false;
  }
  std::vector<uint32_t> row(Width(level) + 1);
  const uint32_t count = ReadRow(node, level, row.data());
  if (std::find(row.begin(), row.begin() + count, target) == row.begin() + count) {
    if (count < LinksMax(level)) {
      if (level == 0) AddInLink(target);
      std::atomic_ref<uint32_t>(LinkRowOf(node, level)[count])
          .store(target, std::memory_order_release);
    } else {
      MakeRoom(node, target, level, row.data(), count);
    }
  }
  UnlockNode(node);
  return true;
}

// The row is full: keeps the best of it and the new target. On the base layer a link that is the
// last one to its target is never dropped.
void Graph::MakeRoom(uint32_t node, uint32_t target, uint32_t level, uint32_t* row,
                     uint32_t count) {
  row[count] = target;
  std::vector<Candidate> all = Scored(node, row, count + 1);
  std::vector<Candidate> usable;
  for (const Candidate& c : all) {
    if ((meta(c.slot) & kMetaDead) == 0) usable.push_back(c);
  }
  const uint32_t links_max = LinksMax(level);
  std::vector<uint32_t> chosen = SelectFrom(node, usable, links_max);
  if (level == 0) {
    const auto is_chosen = [&chosen](uint32_t id) {
      return std::find(chosen.begin(), chosen.end(), id) != chosen.end();
    };
    std::vector<uint32_t> last_links;
    for (uint32_t i = 0; i < count; ++i) {
      if (is_chosen(row[i])) continue;
      if (!TryDropInLink(row[i])) last_links.push_back(row[i]);
    }
    for (const uint32_t id : last_links) {
      if (chosen.size() < links_max) {
        chosen.push_back(id);
        continue;
      }
      // Only with the target chosen can all places be taken, so there is always one to give up.
      for (size_t victim = chosen.size(); victim-- > 0;) {
        if (chosen[victim] != target && !TryDropInLink(chosen[victim])) continue;
        chosen[victim] = id;
        break;
      }
    }
    if (is_chosen(target)) AddInLink(target);
  }
  WriteRow(node, level, chosen.data(), static_cast<uint32_t>(chosen.size()));
}

bool Graph::ForceInLink(uint32_t slot, const std::vector<Candidate>& candidates) {
  std::vector<uint32_t> row(link_width_ + 1);
  const size_t tries = std::min(candidates.size(), kForceCandidatesMax);
  for (size_t i = 0; i < tries; ++i) {
    const uint32_t node = candidates[i].slot;
    if (node == slot) continue;
    LockNode(node);
    bool made = false;
    if ((meta(node) & (kMetaDead | kMetaLinked)) == kMetaLinked) {
      const uint32_t count = ReadRow(node, 0, row.data());
      uint32_t at = count;
      // Somebody may have made the link meanwhile.
      made = std::find(row.begin(), row.begin() + count, slot) != row.begin() + count;
      if (!made && count >= LinksMax(0)) {
        const std::vector<Candidate> scored = Scored(node, row.data(), count);
        for (size_t j = scored.size(); j-- > 0;) {
          if (!TryDropInLink(scored[j].slot)) continue;
          at = static_cast<uint32_t>(std::find(row.begin(), row.end(), scored[j].slot) -
                                     row.begin());
          break;
        }
      }
      if (!made && at < LinksMax(0)) {
        AddInLink(slot);
        std::atomic_ref<uint32_t>(LinkRowOf(node, 0)[at]).store(slot, std::memory_order_release);
        made = true;
      }
    }
    UnlockNode(node);
    if (made) return true;
  }
  return false;
}

void Graph::RaiseEntry(uint32_t slot, uint32_t level) {
  uint64_t entry = entry_.load(std::memory_order_acquire);
  while (entry != 0 && EntryLevel(entry) < level &&
         !entry_.compare_exchange_weak(entry, PackEntry(slot, level), std::memory_order_acq_rel)) {
  }
}

}  // namespace hotkv
