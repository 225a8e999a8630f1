// A reference-counted byte block: the value of a large string, shared by its entry, replies under way and log buffers.
//
// Invariant: bytes of a block with more than one reference never change; whoever wants to change them copies first.
// Thread rules: the count is atomic; the bytes are guarded by the entry's stripe lock while the entry is the only owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "engine/base/allocator.h"

namespace hotkv {

class SharedBlock {
 public:
  // A block with one reference and room for `capacity` bytes. size <= capacity.
  static SharedBlock* Make(size_t size, size_t capacity) {
    void* memory = AllocateBlock(sizeof(SharedBlock) + capacity);
    return new (memory) SharedBlock(static_cast<uint32_t>(size), static_cast<uint32_t>(capacity));
  }
  static SharedBlock* New(size_t size) { return Make(size, size); }
  static SharedBlock* Copy(std::string_view bytes) {
    SharedBlock* block = Make(bytes.size(), bytes.size());
    if (!bytes.empty()) std::memcpy(block->data(), bytes.data(), bytes.size());
    return block;
  }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) FreeBlock(this);
  }
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }

  char* data() { return reinterpret_cast<char*>(this + 1); }
  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  void set_size(size_t size) { size_ = static_cast<uint32_t>(size); }
  std::string_view view() const { return {data(), size_}; }
  size_t memory_bytes() const { return BlockBytes(this); }

 private:
  SharedBlock(uint32_t size, uint32_t capacity) : refs_(1), size_(size), capacity_(capacity) {}
  std::atomic<uint32_t> refs_;
  uint32_t size_;
  uint32_t capacity_;
  uint32_t reserved_ = 0;
};

// Owns one reference.
class SharedBlockRef {
 public:
  SharedBlockRef() = default;
  explicit SharedBlockRef(SharedBlock* block) : block_(block) {}  // takes over the caller's reference
  static SharedBlockRef Share(SharedBlock* block) {
    block->Ref();
    return SharedBlockRef(block);
  }
  SharedBlockRef(SharedBlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  SharedBlockRef& operator=(SharedBlockRef&& other) noexcept {
    if (this != &other) {
      Reset();
      block_ = std::exchange(other.block_, nullptr);
    }
    return *this;
  }
  SharedBlockRef(const SharedBlockRef&) = delete;
  SharedBlockRef& operator=(const SharedBlockRef&) = delete;
  ~SharedBlockRef() { Reset(); }

  SharedBlock* get() const { return block_; }
  SharedBlock* Release() { return std::exchange(block_, nullptr); }
  explicit operator bool() const { return block_ != nullptr; }
  std::string_view view() const { return block_->view(); }

 private:
  void Reset() {
    if (block_) block_->Unref();
    block_ = nullptr;
  }
  SharedBlock* block_ = nullptr;
};

}  // namespace hotkv
