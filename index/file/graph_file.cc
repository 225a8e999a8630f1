#include "index/file/graph_file.h"

#include <algorithm>

#include "engine/base/check.h"
#include "index/reader_pin.h"

namespace hotkv {

namespace {

constexpr uint32_t kCopyBatch = 4096;  // slots copied under one pin

void Place(const SlabArray& array, uint32_t rows, FileSection* section, uint64_t* end) {
  *section = {};
  section->offset = *end;
  section->bytes = uint64_t{rows} * array.geometry().stride;
  const uint32_t slabs = array.SlabsFor(rows);
  const uint64_t whole =
      slabs == 0 ? 0 : uint64_t{array.geometry().FirstSlot(slabs)} * array.geometry().stride;
  *end += RoundToPage(whole);
}

}  // namespace

void GraphFile::LayOut(const Graph& shape, uint32_t slots, uint32_t upper_rows, GraphHeader* header,
                       uint64_t* end) {
  header->slots = slots;
  header->upper_rows = upper_rows;
  auto& sections = header->sections;
  Place(shape.links_, slots, &sections[kSectionLinks], end);
  Place(shape.upper_at_, slots, &sections[kSectionUpperAt], end);
  Place(shape.upper_, upper_rows, &sections[kSectionUpper], end);
  Place(shape.meta_, slots, &sections[kSectionMeta], end);
  Place(shape.in_degree_, slots, &sections[kSectionInDegree], end);
}

void GraphFile::Adopt(char* base, const GraphHeader& header, const std::vector<uint32_t>& dead,
                      Graph* graph) {
  const auto adopt = [&](GraphSection section, uint32_t rows, SlabArray* array) {
    array->Adopt(base + header.sections[section].offset, array->SlabsFor(rows));
  };
  adopt(kSectionLinks, header.slots, &graph->links_);
  adopt(kSectionUpperAt, header.slots, &graph->upper_at_);
  adopt(kSectionUpper, header.upper_rows, &graph->upper_);
  adopt(kSectionMeta, header.slots, &graph->meta_);
  adopt(kSectionInDegree, header.slots, &graph->in_degree_);
  graph->upper_rows_.store(std::max(1u, header.upper_rows), std::memory_order_release);
  graph->slot_limit_.store(header.slots, std::memory_order_release);
  graph->entry_.store(header.entry, std::memory_order_release);
  graph->dead_count_.store(dead.size(), std::memory_order_relaxed);
  graph->dead_list_ = dead;
}

std::vector<uint8_t> GraphFile::Classify(const Graph& from) {
  std::vector<uint8_t> metas(from.slot_limit());
  for (uint32_t slot = 0; slot < metas.size(); ++slot) {
    const uint8_t m = from.meta(slot);
    const auto level = static_cast<uint8_t>(m & kMetaLevelMask);
    if ((m & kMetaLinked) == 0) {
      metas[slot] = (m & kMetaLive) != 0 ? static_cast<uint8_t>(level | kMetaLive) : uint8_t{0};
    } else {
      metas[slot] = static_cast<uint8_t>(level | kMetaLinked |
                                         ((m & kMetaLive) != 0 ? kMetaLive : kMetaDead));
    }
  }
  return metas;
}

uint32_t GraphFile::UpperRowsFor(const std::vector<uint8_t>& metas) {
  uint32_t rows = 1;
  for (const uint8_t m : metas) {
    if (m != 0) rows += m & kMetaLevelMask;
  }
  return rows;
}

void GraphFile::CopyRow(const Graph& from, const std::vector<uint8_t>& metas, uint32_t slot,
                        uint32_t level, Graph* to) {
  const uint32_t width = to->Width(level);
  uint32_t* row = to->LinkRowOf(slot, level);
  uint32_t ids[2 * kIndexMMax + 16];
  const uint32_t count = (metas[slot] & kMetaLinked) != 0 ? from.ReadRow(slot, level, ids) : 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t id = ids[i];
    if (id >= metas.size() || id == slot || (metas[id] & kMetaLinked) == 0) continue;
    if ((metas[id] & kMetaLevelMask) < level) continue;
    // A row that was being rewritten may show an id twice.
    if (std::find(row, row + n, id) != row + n) continue;
    row[n++] = id;
    if (level == 0) to->AddInLink(id);
  }
  for (uint32_t i = n; i < width; ++i) row[i] = kNoSlot;
}

void GraphFile::CopyInto(const Graph& from, const std::vector<uint8_t>& metas, Graph* to) {
  const auto slots = static_cast<uint32_t>(metas.size());
  std::fill_n(reinterpret_cast<uint32_t*>(to->upper_.Row(0)), to->upper_width_, kNoSlot);
  uint32_t next_upper = 1;
  uint64_t best = 0;
  for (uint32_t begin = 0; begin < slots; begin += kCopyBatch) {
    ReaderPin pin;
    const uint32_t end = begin + std::min(slots - begin, kCopyBatch);
    for (uint32_t slot = begin; slot < end; ++slot) {
      const uint8_t m = metas[slot];
      if (m == 0) continue;
      const uint32_t level = m & kMetaLevelMask;
      to->meta_.At<uint8_t>(slot).store(m, std::memory_order_relaxed);
      if (level != 0) {
        to->upper_at_.At<uint32_t>(slot).store(next_upper, std::memory_order_relaxed);
        next_upper += level;
      }
      for (uint32_t l = 0; l <= level; ++l) CopyRow(from, metas, slot, l, to);
      const bool linked = (m & kMetaLinked) != 0;
      const bool alive = (m & kMetaLive) != 0;
      if (linked && alive && (best == 0 || level > Graph::EntryLevel(best))) {
        best = Graph::PackEntry(slot, level);
      }
    }
  }
  // The entry stays the same where it lives on: then the copy answers as the original.
  const uint64_t entry = from.entry_.load(std::memory_order_acquire);
  const uint32_t at = Graph::EntrySlot(entry);
  if (entry != 0 && at < slots &&
      (metas[at] & (kMetaLive | kMetaLinked)) == (kMetaLive | kMetaLinked)) {
    best = entry;
  }
  to->entry_.store(best, std::memory_order_release);
  to->ConnectAll();
}

}  // namespace hotkv
