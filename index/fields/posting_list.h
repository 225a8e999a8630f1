// PostingList: 32-bit numbers that one writer appends and readers read without a lock. Growing copies
// to a larger block; the old one is retired.
//
// Thread rules: Append and Thin by one thread at a time; Read by any thread with a ReaderPin.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "index/reader_pin.h"

namespace hotkv {

class PostingList {
 public:
  PostingList() = default;
  ~PostingList() { Free(block_.load(std::memory_order_relaxed)); }
  PostingList(const PostingList&) = delete;
  PostingList& operator=(const PostingList&) = delete;

  // At least what had been appended when the call began. Valid while the pin lasts.
  std::span<const uint32_t> Read() const {
    const Block* block = block_.load(std::memory_order_acquire);
    if (block == nullptr) return {};
    return {block->numbers(), block->size.load(std::memory_order_acquire)};
  }
  uint32_t size() const { return static_cast<uint32_t>(Read().size()); }
  // Whether the next Append makes a new block.
  bool full() const {
    const Block* block = block_.load(std::memory_order_relaxed);
    return block == nullptr || block->size.load(std::memory_order_relaxed) == block->capacity;
  }
  void Append(uint32_t number) {
    if (full()) {
      const std::span<const uint32_t> now = Read();
      Replace(now, std::max<uint32_t>(2, static_cast<uint32_t>(now.size() + now.size() / 2 + 1)));
    }
    Block* block = block_.load(std::memory_order_relaxed);
    const uint32_t at = block->size.load(std::memory_order_relaxed);
    block->numbers()[at] = number;
    block->size.store(at + 1, std::memory_order_release);
  }
  // Only what keep(number) wants stays: numbers that no reader needs any more may go.
  template <typename Keep>
  void Thin(Keep&& keep) {
    std::vector<uint32_t> kept;
    for (const uint32_t number : Read()) {
      if (keep(number)) kept.push_back(number);
    }
    Replace(kept, static_cast<uint32_t>(kept.size() + kept.size() / 2 + 2));
  }
  size_t bytes() const {
    const Block* block = block_.load(std::memory_order_relaxed);
    return block == nullptr ? 0 : sizeof(Block) + size_t{block->capacity} * sizeof(uint32_t);
  }

 private:
  struct Block {
    uint32_t capacity;
    std::atomic<uint32_t> size;  // release after the number is written
    uint32_t* numbers() { return reinterpret_cast<uint32_t*>(this + 1); }
    const uint32_t* numbers() const { return reinterpret_cast<const uint32_t*>(this + 1); }
  };
  static void Free(Block* block) { ::operator delete(block); }
  void Replace(std::span<const uint32_t> numbers, uint32_t capacity) {
    void* memory = ::operator new(sizeof(Block) + size_t{capacity} * sizeof(uint32_t));
    auto* block = new (memory) Block{capacity, static_cast<uint32_t>(numbers.size())};
    std::copy(numbers.begin(), numbers.end(), block->numbers());
    Block* old = block_.exchange(block, std::memory_order_acq_rel);
    if (old != nullptr) IndexReclaim().Retire([old] { Free(old); });
  }

  std::atomic<Block*> block_{nullptr};
};

}  // namespace hotkv
