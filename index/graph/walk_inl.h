// The loops of walk.h, included once by each distance/kernels_*.cc inside its own namespace after it has defined:
//   struct Simd      FilterUnvisited, PoolPosition, PoolShift, MaskBelow (the CPU's way to do them)
//   F32DotSpace, ... Batch4, One, FromRow, kExpand, kPrefetchLines
// Nothing here may be an inline function of a namespace shared with other targets: the linker keeps one copy, perhaps
// the one that this CPU cannot run.
//
// Why this shape (figures in docs/vectors.md): a walk is bound by the cache lines it fetches. So the unvisited
// neighbours of a node are gathered first, their rows prefetched well ahead, the links of the next candidates prefetched
// before the batch is computed, and the pool is two flat arrays that vector instructions search and shift.

constexpr uint32_t kPrefetchAhead = 16;

HOTKV_INLINE void PrefetchLines(const char* row, uint32_t lines) {
  for (uint32_t i = 0; i < lines; ++i) __builtin_prefetch(row + size_t{i} * 64, 0, 3);
}

HOTKV_INLINE const uint32_t* LinkRow(const WalkGraph& g, uint32_t slot,
                                                             uint32_t level) {
  if (level == 0) return reinterpret_cast<const uint32_t*>(g.links.Row(slot));
  const uint32_t first =
      __atomic_load_n(reinterpret_cast<const uint32_t*>(g.upper_at.Row(slot)), __ATOMIC_ACQUIRE);
  // A damaged file may say anything; 0 is a row without links.
  const uint32_t row = first == 0 || first + level > g.upper_rows ? 0 : first + level - 1;
  return reinterpret_cast<const uint32_t*>(g.upper.Row(row));
}

HOTKV_INLINE uint8_t MetaOf(const WalkGraph& g, uint32_t slot) {
  return __atomic_load_n(reinterpret_cast<const uint8_t*>(g.meta.Row(slot)), __ATOMIC_ACQUIRE);
}

// Inserts and returns the position. The caller has checked that the distance is below the worst of a full pool.
HOTKV_INLINE uint32_t PoolInsert(WalkPool& pool, float distance,
                                                          uint32_t slot) {
  const uint32_t at = Simd::PoolPosition(pool, distance);
  const uint32_t last = pool.size < pool.capacity ? pool.size++ : pool.size - 1;
  Simd::PoolShift(pool, at, last);
  pool.distance[at] = distance;
  pool.slot[at] = slot;
  return at;
}

template <class Space>
HOTKV_INLINE void PrefetchRow(const WalkGraph& g, uint32_t slot) {
  const uint32_t lines = (g.space.row_bytes + 63) / 64;
  PrefetchLines(g.rows.Row(slot), lines < Space::kPrefetchLines ? lines : Space::kPrefetchLines);
}

// Distances of a batch, rows prefetched kPrefetchAhead before they are used.
template <class Space>
HOTKV_INLINE void BatchDistances(const WalkGraph& g, const QueryView& query,
                                                          const uint32_t* slots, uint32_t n,
                                                          float* out) {
  const uint32_t ahead = n < kPrefetchAhead ? n : kPrefetchAhead;
  for (uint32_t i = 0; i < ahead; ++i) PrefetchRow<Space>(g, slots[i]);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (uint32_t j = i + kPrefetchAhead; j < i + kPrefetchAhead + 4 && j < n; ++j) {
      PrefetchRow<Space>(g, slots[j]);
    }
    const char* rows[4] = {g.rows.Row(slots[i]), g.rows.Row(slots[i + 1]), g.rows.Row(slots[i + 2]),
                           g.rows.Row(slots[i + 3])};
    Space::Batch4(g.space, query, rows, out + i);
  }
  for (; i < n; ++i) out[i] = Space::One(g.space, query, g.rows.Row(slots[i]));
}

template <class Space>
void Distances(const WalkGraph& g, const QueryView& query, const uint32_t* slots, uint32_t count,
               float* out) {
  BatchDistances<Space>(g, query, slots, count, out);
}

HOTKV_INLINE void NextStamp(WalkScratch& s) {
  if (++s.stamp < 0x10000u) return;
  s.stamp = 1;
  for (uint32_t i = 0; i < s.visited_words; ++i) s.visited[i] = 0;
}

template <bool kFiltered>
HOTKV_INLINE float WalkBound(const WalkScratch& s) {
  const WalkPool& pool = s.pool;
  float bound = pool.size == pool.capacity ? pool.distance[pool.size - 1] : __builtin_inff();
  if (kFiltered && s.accepted.size == s.accepted.capacity) {
    const float worst = s.accepted.distance[s.accepted.size - 1];
    if (worst < bound) bound = worst;
  }
  return bound;
}

template <bool kFiltered>
HOTKV_INLINE void Offer(const WalkGraph& g, const WalkRequest& r,
                                                 WalkScratch& s, float distance, uint32_t slot,
                                                 uint32_t* cursor) {
  const uint32_t at = PoolInsert(s.pool, distance, slot);
  if (at < *cursor) *cursor = at;
  // What enters near the front is expanded soon: its links are the next miss.
  if (at < *cursor + 2) {
    const char* links = reinterpret_cast<const char*>(LinkRow(g, slot, r.level));
    PrefetchLines(links, 2);
  }
  if (!kFiltered) return;
  if ((MetaOf(g, slot) & r.meta_mask) != r.meta_want) return;
  if (r.accepts != nullptr && !r.accepts(r.context, slot)) return;
  WalkPool& accepted = s.accepted;
  if (accepted.size == accepted.capacity && !(distance < accepted.distance[accepted.size - 1])) return;
  PoolInsert(accepted, distance, slot);
}

// Takes up to kExpand nodes from the pool and gathers their unvisited neighbours; returns how many.
template <class Space, bool kFiltered>
HOTKV_INLINE uint32_t ExpandNext(const WalkGraph& g, const WalkRequest& r,
                                                          WalkScratch& s, uint32_t width,
                                                          uint32_t* cursor) {
  WalkPool& pool = s.pool;
  uint32_t n = 0;
  uint32_t at = *cursor;
  const float bound = kFiltered && s.accepted.size == s.accepted.capacity
                          ? s.accepted.distance[s.accepted.size - 1]
                          : __builtin_inff();
  for (uint32_t taken = 0; taken < Space::kExpand && at < pool.size; ++at) {
    if ((pool.slot[at] & kExpandedBit) != 0) continue;
    if (kFiltered && pool.distance[at] > bound) {
      at = pool.size;
      break;
    }
    const uint32_t slot = pool.slot[at];
    pool.slot[at] |= kExpandedBit;
    n += Simd::FilterUnvisited(LinkRow(g, slot, r.level), width, s, s.batch_slots + n);
    ++taken;
  }
  *cursor = at;
  for (uint32_t peek = at, found = 0; found < 2 && peek < pool.size && peek < at + 8; ++peek) {
    if ((pool.slot[peek] & kExpandedBit) != 0) continue;
    PrefetchLines(reinterpret_cast<const char*>(LinkRow(g, pool.slot[peek], r.level)), 2);
    ++found;
  }
  return n;
}

template <class Space, bool kFiltered>
HOTKV_INLINE void SearchLocal(const WalkGraph& g, const WalkRequest& r,
                                                       WalkScratch& s) {
  WalkPool& pool = s.pool;
  const uint32_t width = r.level == 0 ? g.link_width : g.upper_width;
  Simd::MarkVisited(s, r.entry);
  uint32_t cursor = 0;
  Offer<kFiltered>(g, r, s, Space::One(g.space, r.query, g.rows.Row(r.entry)), r.entry, &cursor);
  while (cursor < pool.size && !(kFiltered && r.stop != nullptr && *r.stop)) {
    const uint32_t n = ExpandNext<Space, kFiltered>(g, r, s, width, &cursor);
    BatchDistances<Space>(g, r.query, s.batch_slots, n, s.batch_distances);
    float bound = WalkBound<kFiltered>(s);
    for (uint32_t i = 0; i < n; i += 16) {
      uint32_t below = Simd::MaskBelow(s.batch_distances + i, n - i, bound);
      for (; below != 0; below &= below - 1) {
        const uint32_t j = i + static_cast<uint32_t>(__builtin_ctz(below));
        if (!(s.batch_distances[j] < bound)) continue;
        Offer<kFiltered>(g, r, s, s.batch_distances[j], s.batch_slots[j], &cursor);
        bound = WalkBound<kFiltered>(s);
      }
    }
  }
  for (uint32_t i = 0; i < pool.size; ++i) pool.slot[i] &= ~kExpandedBit;
}

template <class Space, bool kFiltered>
void SearchLevel(const WalkGraph& graph, const WalkRequest& request, WalkScratch& scratch) {
  scratch.pool.size = 0;
  scratch.accepted.size = 0;
  NextStamp(scratch);
  if (request.entry >= scratch.limit) return;
  // Copies that no store through a pointer can change: the compiler keeps them in registers.
  const WalkGraph g = graph;
  const WalkRequest r = request;
  WalkScratch s = scratch;
  SearchLocal<Space, kFiltered>(g, r, s);
  scratch = s;
}

template <class Space>
uint32_t Descend(const WalkGraph& g, const QueryView& query, uint32_t entry, uint32_t from_level,
                 uint32_t to_level, WalkScratch& s) {
  uint32_t best = entry;
  float best_distance = Space::One(g.space, query, g.rows.Row(entry));
  for (uint32_t level = from_level; level > to_level; --level) {
    for (bool moved = true; moved;) {
      moved = false;
      const uint32_t* row = LinkRow(g, best, level);
      uint32_t n = 0;
      for (uint32_t i = 0; i < g.upper_width; ++i) {
        const uint32_t slot = __atomic_load_n(row + i, __ATOMIC_ACQUIRE);
        if (slot >= s.limit) {
          if (slot == 0xffffffffu) break;
          continue;
        }
        s.batch_slots[n++] = slot;
      }
      BatchDistances<Space>(g, query, s.batch_slots, n, s.batch_distances);
      for (uint32_t i = 0; i < n; ++i) {
        if (!(s.batch_distances[i] < best_distance)) continue;
        best_distance = s.batch_distances[i];
        best = s.batch_slots[i];
        moved = true;
      }
    }
  }
  return best;
}

// Is the candidate closer to the node than to each chosen one?
template <class Space>
HOTKV_INLINE bool Diverse(const WalkGraph& g, const Candidate& candidate,
                                                   const uint32_t* chosen, uint32_t count,
                                                   WalkScratch& s) {
  if (count == 0) return true;
  const QueryView query = Space::FromRow(g.space, g.rows.Row(candidate.slot), s.row_query);
  uint32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const char* rows[4] = {g.rows.Row(chosen[i]), g.rows.Row(chosen[i + 1]),
                           g.rows.Row(chosen[i + 2]), g.rows.Row(chosen[i + 3])};
    float d[4];
    Space::Batch4(g.space, query, rows, d);
    if (d[0] < candidate.distance || d[1] < candidate.distance || d[2] < candidate.distance ||
        d[3] < candidate.distance) {
      return false;
    }
  }
  for (; i < count; ++i) {
    if (Space::One(g.space, query, g.rows.Row(chosen[i])) < candidate.distance) return false;
  }
  return true;
}

template <class Space>
uint32_t Select(const WalkGraph& g, const SelectRequest& r, WalkScratch& s, uint32_t* chosen) {
  // Copies of the node's own row lie at the front. Taking them all would cut the node off from the rest, so only a few
  // are taken, and not always the same ones: else all copies would hang on the first.
  uint32_t copies = 0;
  while (copies < r.count && r.candidates[copies].distance == r.candidates[0].distance &&
         __builtin_memcmp(g.rows.Row(r.candidates[copies].slot), r.node_row, g.space.row_bytes) == 0) {
    ++copies;
  }
  uint32_t n = 0;
  const uint32_t copies_taken = copies < r.duplicates_max ? copies : r.duplicates_max;
  const uint32_t start = copies > r.duplicates_max ? (r.node_slot * 2654435761u) % copies : 0;
  for (uint32_t i = 0; i < copies_taken && n < r.select_max; ++i) {
    chosen[n++] = r.candidates[(start + i) % copies].slot;
  }
  for (uint32_t i = copies; i < r.count && n < r.select_max; ++i) {
    if (i + 2 < r.count) PrefetchRow<Space>(g, r.candidates[i + 2].slot);
    if (Diverse<Space>(g, r.candidates[i], chosen, n, s)) chosen[n++] = r.candidates[i].slot;
  }
  return n;
}

template <class Space>
inline constexpr SpaceOps kOpsOf = {
    &SearchLevel<Space, false>, &SearchLevel<Space, true>, &Descend<Space>,
    &Select<Space>,             &Distances<Space>,         &Space::FromRow,
};
