#include "index/slab.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/base/check.h"
#include "index/vector_index.h"

namespace hotkv {

namespace {
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;
constexpr size_t kMapFrom = size_t{128} << 10;
}  // namespace

PrivateMemory::PrivateMemory(size_t bytes) : bytes_(bytes) {
  if (bytes < kMapFrom) {
    const size_t rounded = (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
    data_ = static_cast<char*>(std::aligned_alloc(64, rounded));
    HOTKV_CHECK(data_ != nullptr);
    std::memset(data_, 0, rounded);
    return;
  }
  const bool huge = bytes >= kHugePage;
  const size_t length = huge ? bytes + kHugePage : bytes;
  void* at = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HOTKV_CHECK(at != MAP_FAILED);
  char* start = static_cast<char*>(at);
  if (huge) {
    // Trim to huge-page alignment, so that the first and last pages are huge as well.
    const size_t lead = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
    if (lead != 0) munmap(start, lead);
    const size_t kept = (bytes + 4095) / 4096 * 4096;
    const size_t tail = length - lead - kept;
    if (tail >= 4096) munmap(start + lead + kept, tail / 4096 * 4096);
    start += lead;
    madvise(start, kept, MADV_HUGEPAGE);
    mapped_ = kept;
  } else {
    mapped_ = length;
  }
  data_ = start;
}

PrivateMemory& PrivateMemory::operator=(PrivateMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

PrivateMemory::~PrivateMemory() {
  if (data_ == nullptr) return;
  if (mapped_ != 0) {
    munmap(data_, mapped_);
  } else {
    std::free(data_);
  }
}

SlabGeometry SlabGeometry::For(uint32_t stride, size_t first_bytes, size_t cap_bytes) {
  const auto bits = [stride](size_t bytes) {
    const size_t slots = std::max<size_t>(1, bytes / stride);
    return static_cast<uint8_t>(std::min<int>(static_cast<int>(std::bit_width(slots)) - 1, 30));
  };
  return {stride, bits(first_bytes), std::max(bits(first_bytes), bits(cap_bytes))};
}

SlabArray::SlabArray(SlabGeometry geometry, Source source_or_null)
    : geometry_(geometry), source_(std::move(source_or_null)) {
  static_assert(sizeof(std::atomic<uintptr_t>) == sizeof(uintptr_t));
  const size_t slabs = geometry_.SlabOf(kIndexSlotsMax) + 1;
  table_ = PrivateMemory(slabs * sizeof(uintptr_t));
  // A mapped one has hardly a page in memory.
  bytes_ = table_.is_mapped() ? kPage : slabs * sizeof(uintptr_t);
}

void SlabArray::Install(uint32_t slab, char* memory) {
  const uintptr_t biased =
      reinterpret_cast<uintptr_t>(memory) - size_t{geometry_.FirstSlot(slab)} * geometry_.stride;
  auto* entry = reinterpret_cast<std::atomic<uintptr_t>*>(table_.data()) + slab;
  entry->store(biased, std::memory_order_release);
}

Status SlabArray::Grow(uint32_t slots) {
  std::lock_guard<std::mutex> lock(mutex_);
  while (capacity_.load(std::memory_order_relaxed) < slots) {
    const uint32_t slab = slab_count_.load(std::memory_order_relaxed);
    const size_t bytes = geometry_.BytesIn(slab);
    char* memory;
    if (source_) {
      HOTKV_ASSIGN_OR_RETURN(memory, source_(slab, bytes));
    } else {
      owned_.emplace_back(bytes);
      memory = owned_.back().data();
      bytes_.fetch_add(bytes, std::memory_order_relaxed);
    }
    Install(slab, memory);
    slab_count_.store(slab + 1, std::memory_order_relaxed);
    capacity_.store(geometry_.FirstSlot(slab + 1), std::memory_order_release);
  }
  return Status::Ok();
}

void SlabArray::Adopt(char* memory, uint32_t slabs) {
  std::lock_guard<std::mutex> lock(mutex_);
  HOTKV_CHECK(slab_count_ == 0);
  for (uint32_t slab = 0; slab < slabs; ++slab) {
    Install(slab, memory + size_t{geometry_.FirstSlot(slab)} * geometry_.stride);
  }
  slab_count_.store(slabs, std::memory_order_relaxed);
  const uint32_t slots = slabs == 0 ? 0 : geometry_.FirstSlot(slabs);
  bytes_.fetch_add(size_t{slots} * geometry_.stride, std::memory_order_relaxed);
  capacity_.store(slots, std::memory_order_release);
}

void SlabArray::AdoptFrom(const SlabArray& other) {
  std::lock_guard<std::mutex> lock(mutex_);
  HOTKV_CHECK(slab_count_ == 0 && geometry_.stride == other.geometry_.stride &&
              geometry_.first_bits == other.geometry_.first_bits);
  const uint32_t slabs = other.slab_count_;
  for (uint32_t slab = 0; slab < slabs; ++slab) {
    Install(slab, other.Row(geometry_.FirstSlot(slab)));
  }
  const uint32_t slots = slabs == 0 ? 0 : geometry_.FirstSlot(slabs);
  bytes_.fetch_add(size_t{slots} * geometry_.stride, std::memory_order_relaxed);
  slab_count_.store(slabs, std::memory_order_relaxed);
  capacity_.store(slots, std::memory_order_release);
}

void SlabArray::Promote(uint32_t slab) {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t bytes = geometry_.BytesIn(slab);
  owned_.emplace_back(bytes);
  std::memcpy(owned_.back().data(), Row(geometry_.FirstSlot(slab)), bytes);
  Install(slab, owned_.back().data());
}

}  // namespace hotkv
