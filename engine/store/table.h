// Table: the hash table of one stripe and one database. Chunks of 14 entries with 14 one-byte tags in two cache lines
// (after F14); linear probing by whole chunks with an overflow count a chunk instead of tombstones: it counts the
// entries that passed over a full chunk on their way from home, so a lookup stops at a chunk whose count is zero.
//
// Position: p = hash << stripe bits, home chunk = p * chunks >> 64. So entries lie in hash order at every size, any
// growth factor keeps that order, and a SCAN cursor is simply a p: what is there throughout is returned however the
// table grows, shrinks or changes between calls.
//
// Invariants: tag 0 marks a free slot. size <= kFillNumerator/kFillDenominator of the slots. Overflow counts are exact
// below 255 and stay at 255 for ever.
// Thread rules: guarded by the stripe's lock, except PrefetchChunk and PrefetchEntry, which any thread that is pinned in
// the reclaim domain may call without it.
#pragma once

#include <emmintrin.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/store/entry.h"

namespace hotkv {

struct alignas(128) Chunk {
  static constexpr unsigned kSlots = 14;
  static constexpr uint8_t kOverflowSticky = 255;
  uint8_t tags[kSlots];
  uint8_t overflow;
  uint8_t reserved;
  Entry* slots[kSlots];

  uint32_t Match(uint8_t tag) const {
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(this));
    const __m128i hit = _mm_cmpeq_epi8(all, _mm_set1_epi8(static_cast<char>(tag)));
    return static_cast<uint32_t>(_mm_movemask_epi8(hit)) & kSlotMask;
  }
  uint32_t FreeSlots() const { return Match(0); }
  static constexpr uint32_t kSlotMask = (1u << kSlots) - 1;

  // Relaxed stores: a prefetch pass may look at the chunk without the lock.
  void Put(unsigned slot, uint8_t tag, Entry* entry) {
    std::atomic_ref<Entry*>(slots[slot]).store(entry, std::memory_order_relaxed);
    std::atomic_ref<uint8_t>(tags[slot]).store(tag, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Chunk) == 128);

class Table {
 public:
  // growth_percent: how much the table grows by at a time. It differs a little from stripe to stripe, so that tables
  // that fill evenly do not all grow at the same moment.
  static Table* Make(uint32_t chunk_count, uint32_t growth_percent);
  static void Free(Table* table);  // the table only, not its entries

  // Also without the lock (DBSIZE), then only with the table kept alive by a reclaim pin.
  uint32_t size() const { return __atomic_load_n(&size_, __ATOMIC_RELAXED); }
  uint32_t chunk_count() const { return chunk_count_; }
  // Sums over the table's entries, so that a whole table can leave its stripe at once.
  struct Sums {
    int64_t entry_bytes = 0;  // allocated for entries and values
    uint32_t volatile_keys = 0;
    uint32_t objects = 0;  // entries that link to an object
  };
  Sums& sums() { return sums_; }
  const Sums& sums() const { return sums_; }
  size_t memory_bytes() const { return sizeof(Table) + size_t{chunk_count_} * sizeof(Chunk); }

  // position: hash << stripe bits. tag: TagOf(hash).
  Entry** Find(uint64_t position, uint8_t tag, std::string_view key);
  // The key must not be there and the table must have room (NeedsGrowth() false).
  void Insert(uint64_t position, uint8_t tag, Entry* entry);
  // slot: as Find gave it. The entry is the caller's.
  void Erase(uint64_t position, Entry** slot);
  // Replaces the entry of a slot that Find gave.
  static void Replace(Entry** slot, Entry* entry) {
    std::atomic_ref<Entry*>(*slot).store(entry, std::memory_order_relaxed);
  }

  bool NeedsGrowth() const { return (uint64_t{size_} + 1) * 16 > uint64_t{chunk_count_} * Chunk::kSlots * 13; }
  bool NeedsShrink() const {
    return chunk_count_ > 1 && uint64_t{size_} * 5 < uint64_t{chunk_count_} * Chunk::kSlots;
  }
  uint32_t GrownChunkCount() const;
  uint32_t ShrunkChunkCount() const;
  // A table of chunk_count chunks with the same entries. hash_position(entry) gives an entry's position and tag.
  struct PositionTag {
    uint64_t position;
    uint8_t tag;
  };
  template <typename Fn>
  Table* Rehash(uint32_t chunk_count, Fn&& position_of) const;

  static uint8_t TagOf(uint64_t hash) {
    const auto tag = static_cast<uint8_t>(hash);
    return tag == 0 ? uint8_t{1} : tag;
  }
  uint32_t Home(uint64_t position) const {
    return static_cast<uint32_t>((static_cast<unsigned __int128>(position) * chunk_count_) >> 64);
  }
  // The smallest position whose home is `chunk`.
  uint64_t FirstPosition(uint32_t chunk) const;

  void PrefetchChunk(uint64_t position) const {
    const Chunk* chunk = &chunks()[Home(position)];
    __builtin_prefetch(chunk);
    __builtin_prefetch(reinterpret_cast<const char*>(chunk) + 64);
  }
  void PrefetchEntry(uint64_t position, uint8_t tag) const;

  void PrefetchEntriesOf(uint32_t chunk) const {
    const Chunk& c = chunks()[chunk];
    for (unsigned i = 0; i < Chunk::kSlots; ++i) {
      if (c.tags[i] != 0) __builtin_prefetch(c.slots[i]);
    }
  }
  // Calls fn(Entry**) for every entry of the chunk's slots, whatever its home.
  template <typename Fn>
  void ForEachInChunk(uint32_t chunk, Fn&& fn) {
    Chunk& c = chunks()[chunk];
    for (unsigned i = 0; i < Chunk::kSlots; ++i) {
      if (c.tags[i] != 0) fn(&c.slots[i]);
    }
  }
  // Calls fn(Entry*) for every entry whose home is `chunk`, wherever it lies. home_of(entry) gives its home.
  template <typename HomeFn, typename Fn>
  void ForEachOfHome(uint32_t chunk, HomeFn&& home_of, Fn&& fn) {
    for (uint32_t at = chunk, probes = 0; probes < chunk_count_; ++probes) {
      ForEachInChunk(at, [&](Entry** slot) {
        if (home_of(*slot) == chunk) fn(*slot);
      });
      if (chunks()[at].overflow == 0) return;
      at = at + 1 == chunk_count_ ? 0 : at + 1;
    }
  }

  const Chunk* chunks() const { return reinterpret_cast<const Chunk*>(this + 1); }
  Chunk* chunks() { return reinterpret_cast<Chunk*>(this + 1); }

 private:
  Table(uint32_t chunk_count, uint32_t growth_percent)
      : chunk_count_(chunk_count), growth_percent_(growth_percent) {}
  uint32_t Next(uint32_t chunk) const { return chunk + 1 == chunk_count_ ? 0 : chunk + 1; }

  const uint32_t chunk_count_;
  const uint32_t growth_percent_;
  uint32_t size_ = 0;
  uint32_t reserved_ = 0;
  Sums sums_;
  char pad_[128 - 32] = {};
};
static_assert(sizeof(Table) == 128);

template <typename Fn>
Table* Table::Rehash(uint32_t chunk_count, Fn&& position_of) const {
  Table* fresh = Make(chunk_count, growth_percent_);
  fresh->sums_ = sums_;
  constexpr unsigned kAhead = 8;  // chunks whose entries are fetched before their keys are hashed
  for (uint32_t c = 0; c < chunk_count_ + kAhead; ++c) {
    if (c < chunk_count_) PrefetchEntriesOf(c);
    if (c < kAhead) continue;
    const Chunk& chunk = chunks()[c - kAhead];
    for (unsigned i = 0; i < Chunk::kSlots; ++i) {
      if (chunk.tags[i] == 0) continue;
      const PositionTag to = position_of(chunk.slots[i]);
      fresh->Insert(to.position, to.tag, chunk.slots[i]);
    }
  }
  return fresh;
}

}  // namespace hotkv
