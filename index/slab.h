// SlabArray: fixed-size rows addressed by slot number, in slabs that double in size up to a cap.
// Growing adds slabs and never moves a row, so that readers need no lock: a slot that a reader has
// met (through a link, loaded with acquire) lies in a slab whose address was stored before.
//
// Thread rules: Row and SlabView::Row by any thread, for slots below what Reserve has granted;
// Reserve by any thread (a mutex inside). New rows are zero.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/base/result.h"

namespace hotkv {

// Zeroed private memory; from 2 MiB on aligned to huge pages and advised to use them.
class PrivateMemory {
 public:
  PrivateMemory() = default;
  explicit PrivateMemory(size_t bytes);
  PrivateMemory(PrivateMemory&& other) noexcept { *this = std::move(other); }
  PrivateMemory& operator=(PrivateMemory&& other) noexcept;
  ~PrivateMemory();
  bool is_mapped() const { return mapped_ != 0; }
  char* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
  size_t mapped_ = 0;  // 0: from the allocator
};

struct SlabGeometry {
  uint32_t stride = 0;
  uint8_t first_bits =
      0;  // log2 of the slots of slab 0; slab i > 0 holds [2^(first+i-1), 2^(first+i)) ...
  uint8_t cap_bits = 0;  // ... until slabs hold 2^cap slots each

  static SlabGeometry For(uint32_t stride, size_t first_bytes, size_t cap_bytes);
  uint32_t SlabOf(uint32_t slot) const {
    const uint32_t high = slot >> cap_bits;
    return high != 0 ? high + static_cast<uint32_t>(cap_bits - first_bits)
                     : static_cast<uint32_t>(std::bit_width(slot >> first_bits));
  }
  uint32_t FirstSlot(uint32_t slab) const {
    if (slab == 0) return 0;
    const uint32_t doubling = static_cast<uint32_t>(cap_bits - first_bits);
    return slab <= doubling ? 1u << (first_bits + slab - 1) : (slab - doubling) << cap_bits;
  }
  uint32_t SlotsIn(uint32_t slab) const { return FirstSlot(slab + 1) - FirstSlot(slab); }
  size_t BytesIn(uint32_t slab) const { return static_cast<size_t>(SlotsIn(slab)) * stride; }
};

// What a walk needs of a SlabArray: by value, valid as long as the array.
struct SlabView {
  const std::atomic<uintptr_t>* slabs = nullptr;  // each less its first slot's offset
  size_t stride = 0;
  uint8_t first_bits = 0;
  uint8_t cap_bits = 0;

  __attribute__((always_inline)) char* Row(uint32_t slot) const {
    const uint32_t high = slot >> cap_bits;
    const uint32_t low = slot >> first_bits;
    const uint32_t slab = high != 0
                              ? high + static_cast<uint32_t>(cap_bits - first_bits)
                              : (low == 0 ? 0u : 32u - static_cast<uint32_t>(__builtin_clz(low)));
    // Acquire pairs with the store in Install: free on x86, and a promoted slab's bytes are there
    // before its address.
    const uintptr_t base =
        __atomic_load_n(reinterpret_cast<const uintptr_t*>(slabs + slab), __ATOMIC_ACQUIRE);
    return reinterpret_cast<char*>(base + slot * stride);
  }
};

class SlabArray {
 public:
  // Called under the array's mutex for each new slab; returns memory of BytesIn(slab) bytes that
  // outlives the array.
  using Source = std::function<Result<char*>(uint32_t slab, size_t bytes)>;

  // Without a source the rows are private memory.
  SlabArray(SlabGeometry geometry, Source source_or_null);
  SlabArray(const SlabArray&) = delete;
  SlabArray& operator=(const SlabArray&) = delete;

  const SlabGeometry& geometry() const { return geometry_; }
  SlabView view() const {
    return {table_entries(), geometry_.stride, geometry_.first_bits, geometry_.cap_bits};
  }
  char* Row(uint32_t slot) const { return view().Row(slot); }
  template <typename T>
  std::atomic_ref<T> At(uint32_t slot) const {
    return std::atomic_ref<T>(*reinterpret_cast<T*>(Row(slot)));
  }
  uint32_t capacity() const { return capacity_.load(std::memory_order_acquire); }
  // Makes rows 0 ... slots - 1 usable.
  Status Reserve(uint32_t slots) { return slots <= capacity() ? Status::Ok() : Grow(slots); }
  // Uses `memory` (which outlives the array) for whole slabs 0 ... n - 1, laid out one after the
  // other. Before any use.
  void Adopt(char* memory, uint32_t slabs);
  // Uses another array's slabs, of the same geometry, as its own. Before any use.
  void AdoptFrom(const SlabArray& other);
  // Slabs that hold `slots` slots.
  uint32_t SlabsFor(uint32_t slots) const {
    return slots == 0 ? 0 : geometry_.SlabOf(slots - 1) + 1;
  }
  uint32_t slab_count() const { return slab_count_; }
  // Exchanges a slab's memory for private memory with the same content. No row of it may be written
  // meanwhile.
  void Promote(uint32_t slab);
  // Bytes of private memory, the table of slabs with it, and of what was adopted.
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  const std::atomic<uintptr_t>* table_entries() const {
    return reinterpret_cast<const std::atomic<uintptr_t>*>(table_.data());
  }
  void Install(uint32_t slab, char* memory);
  Status Grow(uint32_t slots);

  const SlabGeometry geometry_;
  const Source source_;
  PrivateMemory table_;  // std::atomic<uintptr_t> a slab; release in Install, acquire in Row
  std::mutex mutex_;
  std::vector<PrivateMemory> owned_;     // guarded by mutex_
  std::atomic<uint32_t> slab_count_{0};  // written under mutex_
  std::atomic<uint32_t> capacity_{0};    // release after the slab is installed
  std::atomic<size_t> bytes_{0};         // relaxed: a statistic
};

}  // namespace hotkv
