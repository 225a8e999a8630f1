#include "engine/store/table.h"

#include <algorithm>
#include <bit>
#include <new>

#include "engine/base/allocator.h"
#include "engine/base/check.h"

namespace hotkv {

Table* Table::Make(uint32_t chunk_count, uint32_t growth_percent) {
  HOTKV_CHECK(chunk_count >= 1);
  const size_t bytes = sizeof(Table) + size_t{chunk_count} * sizeof(Chunk);
  void* memory = AllocateZeroedBlock(bytes, alignof(Chunk));
  return new (memory) Table(chunk_count, growth_percent);
}

void Table::Free(Table* table) { FreeBlock(table); }

Entry** Table::Find(uint64_t position, uint8_t tag, std::string_view key) {
  uint32_t at = Home(position);
  for (uint32_t probes = 0; probes < chunk_count_; ++probes) {
    Chunk& chunk = chunks()[at];
    for (uint32_t hits = chunk.Match(tag); hits != 0; hits &= hits - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(hits));
      if (chunk.slots[i]->key() == key) return &chunk.slots[i];
    }
    if (chunk.overflow == 0) return nullptr;
    at = Next(at);
  }
  return nullptr;
}

void Table::Insert(uint64_t position, uint8_t tag, Entry* entry) {
  uint32_t at = Home(position);
  for (uint32_t probes = 0; probes < chunk_count_; ++probes) {
    Chunk& chunk = chunks()[at];
    if (const uint32_t free = chunk.FreeSlots(); free != 0) {
      chunk.Put(static_cast<unsigned>(std::countr_zero(free)), tag, entry);
      __atomic_store_n(&size_, size_ + 1, __ATOMIC_RELAXED);
      return;
    }
    if (chunk.overflow < Chunk::kOverflowSticky) {
      const auto count = static_cast<uint8_t>(chunk.overflow + 1);
      std::atomic_ref<uint8_t>(chunk.overflow).store(count, std::memory_order_relaxed);
    }
    at = Next(at);
  }
  HOTKV_CHECK(false && "insert into a full table");
}

void Table::Erase(uint64_t position, Entry** slot) {
  for (uint32_t at = Home(position);; at = Next(at)) {
    Chunk& chunk = chunks()[at];
    if (slot >= chunk.slots && slot < chunk.slots + Chunk::kSlots) {
      chunk.Put(static_cast<unsigned>(slot - chunk.slots), 0, nullptr);
      __atomic_store_n(&size_, size_ - 1, __ATOMIC_RELAXED);
      return;
    }
    HOTKV_DCHECK(chunk.overflow != 0);
    if (chunk.overflow < Chunk::kOverflowSticky) {
      const auto count = static_cast<uint8_t>(chunk.overflow - 1);
      std::atomic_ref<uint8_t>(chunk.overflow).store(count, std::memory_order_relaxed);
    }
  }
}

uint32_t Table::GrownChunkCount() const {
  const uint64_t grown = uint64_t{chunk_count_} * growth_percent_ / 100;
  return static_cast<uint32_t>(std::max<uint64_t>(chunk_count_ + 1, grown));
}

uint32_t Table::ShrunkChunkCount() const {
  const uint64_t needed = uint64_t{size_} * 10 / (Chunk::kSlots * 6) + 1;  // to 60% full
  return static_cast<uint32_t>(std::min<uint64_t>(needed, chunk_count_));
}

uint64_t Table::FirstPosition(uint32_t chunk) const {
  // ceil(chunk * 2^64 / chunk_count)
  const unsigned __int128 wide = static_cast<unsigned __int128>(chunk) << 64;
  return static_cast<uint64_t>((wide + chunk_count_ - 1) / chunk_count_);
}

void Table::PrefetchEntry(uint64_t position, uint8_t tag) const {
  // Without the lock: the chunk may change meanwhile; a stale pointer is only prefetched, never followed.
  const Chunk& chunk = chunks()[Home(position)];
  uint64_t low = __atomic_load_n(reinterpret_cast<const uint64_t*>(&chunk), __ATOMIC_RELAXED);
  uint64_t high = __atomic_load_n(reinterpret_cast<const uint64_t*>(&chunk) + 1, __ATOMIC_RELAXED);
  const __m128i all = _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
  const __m128i hit = _mm_cmpeq_epi8(all, _mm_set1_epi8(static_cast<char>(tag)));
  const uint32_t hits = static_cast<uint32_t>(_mm_movemask_epi8(hit)) & Chunk::kSlotMask;
  if (hits == 0) return;
  const auto i = static_cast<unsigned>(std::countr_zero(hits));
  const Entry* entry = __atomic_load_n(&chunk.slots[i], __ATOMIC_RELAXED);
  __builtin_prefetch(entry);
  __builtin_prefetch(reinterpret_cast<const char*>(entry) + 64);
}

}  // namespace hotkv
