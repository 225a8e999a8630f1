// ByteBuffer: a growing byte string for hot append paths. Unlike std::string it extends without
// filling, and the test for room is inlined into the writer.
//
// Thread rules: none, one thread at a time. Memory that runs out ends the process, as everywhere.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace hotkv {

class ByteBuffer {
 public:
  // `count` more bytes, unset; valid until the next call that appends.
  char* Extend(size_t count) {
    if (capacity_ - size_ < count) [[unlikely]]
      Grow(count);
    char* out = bytes_.get() + size_;
    size_ += count;
    return out;
  }
  // Gives back what Extend gave from `end` on.
  void TrimTo(const char* end) { size_ = static_cast<size_t>(end - bytes_.get()); }
  void Append(std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(Extend(bytes.size()), bytes.data(), bytes.size());
  }

  const char* data() const { return bytes_.get(); }
  char* data() { return bytes_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  std::string_view view() const { return {bytes_.get(), size_}; }
  void Clear() { size_ = 0; }
  void Free() {
    bytes_.reset();
    size_ = capacity_ = 0;
  }

 private:
  static constexpr size_t kCapacityMin = 512;
  void Grow(size_t count) {
    size_t capacity = capacity_ < kCapacityMin ? kCapacityMin : capacity_ * 2;
    // Room to spare: the next user of the buffer may need a little more.
    const size_t needed = size_ + count;
    if (capacity < needed) capacity = needed + needed / 4;
    std::unique_ptr<char[]> bytes(new char[capacity]);
    if (size_ != 0) std::memcpy(bytes.get(), bytes_.get(), size_);
    bytes_ = std::move(bytes);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace hotkv
