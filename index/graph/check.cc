#include <string>

#include "index/graph/graph.h"
#include "index/vector_index.h"

namespace hotkv {

namespace {

Status Broken(uint32_t slot, const std::string& what) {
  return Status::Corruption("graph: node " + std::to_string(slot) + " " + what);
}

bool Linked(uint8_t meta) { return (meta & kMetaLinked) != 0; }

}  // namespace

Status Graph::CheckNode(uint32_t slot, std::vector<uint32_t>* in_degree) const {
  const uint8_t m = meta(slot);
  if (!Linked(m)) return Status::Ok();
  if ((m & kMetaLock) != 0) return Broken(slot, "is locked");
  if ((m & kMetaDead) != 0 && (m & kMetaLive) != 0) return Broken(slot, "is dead and alive");
  const uint32_t level = m & kMetaLevelMask;
  if (level != 0) {
    const uint32_t first = upper_at_.At<uint32_t>(slot).load(std::memory_order_relaxed);
    if (first == 0 || first + level > upper_rows_.load(std::memory_order_relaxed)) {
      return Broken(slot, "has no upper rows");
    }
  }
  for (uint32_t l = 0; l <= level; ++l) {
    const std::vector<uint32_t> links = LinksOf(slot, l);
    if (links.size() > LinksMax(l)) return Broken(slot, "has too many links");
    for (size_t i = 0; i < links.size(); ++i) {
      const uint32_t to = links[i];
      if (to >= slot_limit()) return Broken(slot, "links to a slot that is not there");
      if (to == slot) return Broken(slot, "links to itself");
      for (size_t j = 0; j < i; ++j) {
        if (links[j] == to) return Broken(slot, "links twice to " + std::to_string(to));
      }
      if (!Linked(meta(to))) return Broken(slot, "links to a free slot, " + std::to_string(to));
      if (LevelOf(to) < l) return Broken(slot, "links on a level that its target has not");
      if (l == 0) ++(*in_degree)[to];
    }
    const uint32_t* row = LinkRowOf(slot, l);
    for (size_t i = links.size(); i < Width(l); ++i) {
      if (row[i] != kNoSlot) return Broken(slot, "has a link behind the end of its row");
    }
  }
  return Status::Ok();
}

Status Graph::CheckReachable() const {
  const uint32_t limit = slot_limit();
  const uint64_t entry = entry_.load(std::memory_order_acquire);
  std::vector<bool> met(limit);
  std::vector<uint32_t> queue;
  if (entry != 0) {
    queue.push_back(EntrySlot(entry));
    met[EntrySlot(entry)] = true;
  }
  while (!queue.empty()) {
    const uint32_t slot = queue.back();
    queue.pop_back();
    for (const uint32_t to : LinksOf(slot, 0)) {
      if (met[to]) continue;
      met[to] = true;
      queue.push_back(to);
    }
  }
  for (uint32_t slot = 0; slot < limit; ++slot) {
    const uint8_t m = meta(slot);
    if (Linked(m) && (m & kMetaDead) == 0 && !met[slot]) return Broken(slot, "cannot be reached");
  }
  return Status::Ok();
}

Status Graph::CheckInvariants() const {
  const uint32_t limit = slot_limit();
  const uint64_t entry = entry_.load(std::memory_order_acquire);
  std::vector<uint32_t> in_degree(limit);
  uint64_t alive = 0;
  uint64_t dead = 0;
  for (uint32_t slot = 0; slot < limit; ++slot) {
    const uint8_t m = meta(slot);
    if (!Linked(m)) continue;
    ++((m & kMetaDead) != 0 ? dead : alive);
    HOTKV_RETURN_IF_ERROR(CheckNode(slot, &in_degree));
  }
  if (dead != dead_count()) return Status::Corruption("graph: the count of dead nodes is wrong");
  if (entry == 0) {
    return alive == 0 ? Status::Ok() : Status::Corruption("graph: nodes, but no entry");
  }
  if (EntrySlot(entry) >= limit || !Linked(meta(EntrySlot(entry)))) {
    return Status::Corruption("graph: the entry is not a node");
  }
  if (LevelOf(EntrySlot(entry)) != EntryLevel(entry)) {
    return Status::Corruption("graph: the entry's level is wrong");
  }
  for (uint32_t slot = 0; slot < limit; ++slot) {
    const uint8_t m = meta(slot);
    if (!Linked(m) || (m & kMetaDead) != 0) continue;
    const uint8_t counted = in_degree_.At<uint8_t>(slot).load(std::memory_order_relaxed);
    if (counted != 255 && counted != in_degree[slot]) {
      return Broken(slot, "counts " + std::to_string(counted) + " links to it, there are " +
                              std::to_string(in_degree[slot]));
    }
    if (in_degree[slot] == 0 && slot != EntrySlot(entry)) return Broken(slot, "has no link to it");
  }
  return CheckReachable();
}

}  // namespace hotkv
