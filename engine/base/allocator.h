// The allocator of the store's own blocks (entries, tables, shared blocks): mimalloc, called without a detour.
//
// Under AddressSanitizer and ThreadSanitizer it is the C library's, which they watch: memory that mimalloc cuts up itself
// shows them neither a use after free nor who freed a block before its next owner wrote it. mimalloc is not linked there.
//
// Blocks of at least `bytes`; free them with FreeBlock only. A block may be used up to BlockBytes.
// Thread rules: any thread may free any block.
#pragma once

#include <cstddef>
#include <string>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOTKV_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOTKV_SANITIZED 1
#endif
#endif

#ifdef HOTKV_SANITIZED
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#else
#include <mimalloc.h>
#endif

namespace hotkv {

#ifdef HOTKV_SANITIZED

inline constexpr bool kSanitized = true;
inline constexpr const char* kAllocatorName = "libc";

// Size classes as narrow as can be: the less a block is rounded up, the more of an overrun is seen.
inline size_t SizeClassOf(size_t bytes) { return (bytes + 7) & ~size_t{7}; }
inline void* AllocateBlock(size_t bytes) { return std::malloc(SizeClassOf(bytes)); }
inline void* AllocateZeroedBlock(size_t bytes, size_t alignment) {
  const size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, whole);
  return block == nullptr ? nullptr : std::memset(block, 0, whole);
}
inline void FreeBlock(void* block) { std::free(block); }
inline size_t BlockBytes(const void* block) { return malloc_usable_size(const_cast<void*>(block)); }

inline void ReturnFreeMemory() {}
inline std::string AllocatorStatistics() {
  return "This build looks for faults in the use of memory: blocks come from the C library instead of "
         "mimalloc, and nobody counts them by size.\n";
}

#else

inline constexpr bool kSanitized = false;
inline constexpr const char* kAllocatorName = "mimalloc";

// How many bytes a block of `bytes` takes: blocks of one class can hold each other's contents.
inline size_t SizeClassOf(size_t bytes) { return mi_good_size(bytes); }
inline void* AllocateBlock(size_t bytes) { return mi_malloc(bytes); }
inline void* AllocateZeroedBlock(size_t bytes, size_t alignment) {
  return mi_zalloc_aligned(bytes, alignment);
}
inline void FreeBlock(void* block) { mi_free(block); }
inline size_t BlockBytes(const void* block) { return mi_usable_size(block); }

// Gives back to the system what is free of this thread's memory, pages that fall free in here too: with the usual delay
// only a later allocation would do it.
inline void ReturnFreeMemory() {
  const long delay_ms = mi_option_get(mi_option_decommit_delay);
  mi_option_set(mi_option_decommit_delay, 0);
  mi_collect(true);
  mi_option_set(mi_option_decommit_delay, delay_ms);
}
inline std::string AllocatorStatistics() {
  std::string text;
  mi_stats_print_out(
      [](const char* part, void* out) { static_cast<std::string*>(out)->append(part); }, &text);
  return text;
}

#endif

}  // namespace hotkv
