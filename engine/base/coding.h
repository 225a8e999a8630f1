// Little-endian integers and varints (LEB128) in byte strings, and a bounds-checked reader for hostile bytes.
//
// Thread rules: none, values only.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace hotkv {

static_assert(std::endian::native == std::endian::little, "formats are little-endian; add swaps for this target");

inline constexpr size_t kVarint64BytesMax = 10;

template <typename T>
inline T LoadLe(const char* p) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

template <typename T>
inline void StoreLe(char* p, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(p, &value, sizeof(T));
}

template <typename T>
inline void AppendLe(std::string* out, T value) {
  char buffer[sizeof(T)];
  StoreLe(buffer, value);
  out->append(buffer, sizeof(T));
}

// Writes at most kVarint64BytesMax bytes; returns the end.
inline char* EncodeVarint(char* p, uint64_t value) {
  while (value >= 0x80) {
    *p++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *p++ = static_cast<char>(value);
  return p;
}

inline void AppendVarint(std::string* out, uint64_t value) {
  char buffer[kVarint64BytesMax];
  out->append(buffer, static_cast<size_t>(EncodeVarint(buffer, value) - buffer));
}

inline void AppendLengthPrefixed(std::string* out, std::string_view bytes) {
  AppendVarint(out, bytes.size());
  out->append(bytes);
}

inline constexpr uint64_t ZigZag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}
inline constexpr int64_t UnZigZag(uint64_t v) {
  return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
}

// Reads from a byte string and never past its end. After the first failure ok() is false and every read gives zero or
// an empty view, so a decoder may read a whole record and test once.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : p_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return ok_; }
  bool empty() const { return p_ == end_; }
  size_t remaining() const { return static_cast<size_t>(end_ - p_); }
  const char* position() const { return p_; }

  template <typename T>
  T Le() {
    if (remaining() < sizeof(T)) return Fail<T>();
    T value = LoadLe<T>(p_);
    p_ += sizeof(T);
    return value;
  }

  uint64_t Varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && p_ < end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*p_++);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return Fail<uint64_t>();
  }

  std::string_view Bytes(uint64_t count) {
    if (remaining() < count) return Fail<std::string_view>();
    std::string_view view(p_, static_cast<size_t>(count));
    p_ += count;
    return view;
  }

  std::string_view LengthPrefixed() { return Bytes(Varint()); }

 private:
  template <typename T>
  T Fail() {
    ok_ = false;
    p_ = end_;
    return T{};
  }

  const char* p_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace hotkv
