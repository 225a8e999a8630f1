// Entry: key and value of a small string, or key and a reference, in one heap block.
//
//   u8  type in the low 4 bits, flags in the high 4
//   u8  key length     (kLong: unused)
//   u8  value length   (kLong: unused)
//   u8  access clock
//   i64 expiry, Unix milliseconds       only with kExpiry
//   u32 key length, u32 value length    only with kLong
//   key, value
//
// The value is the string's bytes; with kInt an i64; with kRef a pointer (SharedBlock* for a string, Object* otherwise).
// Unaligned on purpose: 12 + 32 bytes of key and value then fit a 48-byte allocation.
//
// Invariant: an entry's address is known only to its table slot, so an entry may be replaced by a copy at any write.
// Thread rules: guarded by the stripe's lock.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/base/allocator.h"
#include "engine/base/coding.h"
#include "engine/store/object.h"
#include "engine/base/shared_block.h"

namespace hotkv {

// Stored in files: never renumber.
enum class ValueType : uint8_t {
  kString = 0,
  kList = 1,
  kSet = 2,
  kSortedSet = 3,
  kHash = 4,
  kStream = 5,
  kVectorSet = 6,
};

class Entry {
 public:
  enum class Form : uint8_t { kInline, kInt, kRef };
  // What an entry is made from. For kInline `bytes`, for kInt `integer`, for kRef `pointer` (whose reference the entry
  // takes over).
  struct Spec {
    std::string_view key = {};
    ValueType type = ValueType::kString;
    Form form = Form::kInline;
    std::string_view bytes = {};
    int64_t integer = 0;
    void* pointer = nullptr;
    int64_t expire_at_ms = 0;  // 0: none
    uint8_t access_clock = 0;
  };

  static Entry* Create(const Spec& spec);
  // What this entry is, to make a changed one from it. Views into this entry; takes no reference.
  Spec Describe() const;
  // Frees the block and drops the reference it holds, if any.
  static void Destroy(Entry* entry);
  // Frees the block only: the reference lives on elsewhere.
  static void DestroyShell(Entry* entry);

  ValueType type() const { return static_cast<ValueType>(head_ & 0x0f); }
  bool has_expiry() const { return (head_ & kExpiry) != 0; }
  int64_t expire_at_ms() const { return has_expiry() ? LoadLe<int64_t>(body()) : 0; }
  void set_expire_at_ms(int64_t at) { StoreLe<int64_t>(body(), at); }  // requires has_expiry()
  bool ExpiredAt(int64_t now_ms) const { return has_expiry() && expire_at_ms() <= now_ms; }
  uint8_t access_clock() const { return clock_; }
  void set_access_clock(uint8_t clock) {
    if (clock_ != clock) clock_ = clock;
  }

  std::string_view key() const {
    if ((head_ & (kLong | kExpiry)) == 0) return {body(), key_length_};
    return {key_begin(), key_size()};
  }
  Form form() const {
    if ((head_ & kInt) != 0) return Form::kInt;
    return (head_ & kRef) != 0 ? Form::kRef : Form::kInline;
  }
  bool is_int() const { return (head_ & kInt) != 0; }
  std::string_view inline_value() const { return {value_begin(), value_size()}; }
  char* mutable_inline_value() { return value_begin(); }
  int64_t int_value() const { return LoadLe<int64_t>(value_begin()); }
  void set_int_value(int64_t v) { StoreLe<int64_t>(value_begin(), v); }
  void* pointer() const { return LoadLe<void*>(value_begin()); }
  void set_pointer(void* p) { StoreLe<void*>(value_begin(), p); }
  SharedBlock* block() const { return static_cast<SharedBlock*>(pointer()); }
  Object* object() const { return static_cast<Object*>(pointer()); }

  // The string's bytes; an integer is written into scratch (at least 24 bytes).
  std::string_view StringValue(char* scratch) const;
  size_t StringLength() const;

  // Replaces the inline bytes in place; true only where the allocation's size class stays the same.
  bool TryReplaceInline(std::string_view bytes);

  size_t allocated_bytes() const { return BlockBytes(this); }

 private:
  static constexpr uint8_t kExpiry = 0x10;
  static constexpr uint8_t kLong = 0x20;
  static constexpr uint8_t kInt = 0x40;
  static constexpr uint8_t kRef = 0x80;
  static constexpr size_t kHeaderBytes = 4;

  const char* body() const { return reinterpret_cast<const char*>(this) + kHeaderBytes; }
  char* body() { return reinterpret_cast<char*>(this) + kHeaderBytes; }
  size_t lengths_offset() const { return has_expiry() ? 8 : 0; }
  size_t key_offset() const { return lengths_offset() + ((head_ & kLong) != 0 ? 8 : 0); }
  size_t key_size() const {
    return (head_ & kLong) != 0 ? LoadLe<uint32_t>(body() + lengths_offset()) : key_length_;
  }
  size_t value_size() const {
    return (head_ & kLong) != 0 ? LoadLe<uint32_t>(body() + lengths_offset() + 4) : value_length_;
  }
  const char* key_begin() const { return body() + key_offset(); }
  const char* value_begin() const { return key_begin() + key_size(); }
  char* value_begin() { return body() + key_offset() + key_size(); }

  uint8_t head_;
  uint8_t key_length_;
  uint8_t value_length_;
  uint8_t clock_;
};
static_assert(sizeof(Entry) == 4);

}  // namespace hotkv
