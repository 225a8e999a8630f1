// An element's record: name, attributes, norm and the moment of its end in one block that never
// changes, so that one load gives parts that belong together. A new attribute makes a new block; the
// old one is retired. The same bytes serve in memory and mapped from an ids.GEN file
// (docs/formats/index.md).
//
// Thread rules: constant after construction; readers hold a ReaderPin.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace hotkv {

struct RecordHeader {
  uint32_t name_bytes;
  uint32_t attr_bytes;
  float norm;  // of the vector as given (COSINE); 1 otherwise
  uint32_t flags;
};
static_assert(sizeof(RecordHeader) == 16);

// Of RecordHeader::flags: eight bytes behind the attributes say when the element ends, in
// milliseconds since the Unix epoch.
inline constexpr uint32_t kRecordExpires = 1;

// What a record is made of.
struct RecordContent {
  std::string_view name;
  std::string_view attr;
  float norm = 1;
  int64_t expire_at_ms = 0;  // 0: never
};

inline uint64_t RecordBytes(const RecordHeader& header) {
  return sizeof(RecordHeader) + uint64_t{header.name_bytes} + header.attr_bytes +
         ((header.flags & kRecordExpires) != 0 ? sizeof(int64_t) : 0);
}

struct RecordView {
  const RecordHeader* header = nullptr;
  std::string_view name() const {
    return {reinterpret_cast<const char*>(header + 1), header->name_bytes};
  }
  std::string_view attr() const {
    return {reinterpret_cast<const char*>(header + 1) + header->name_bytes, header->attr_bytes};
  }
  int64_t expire_at_ms() const {
    if ((header->flags & kRecordExpires) == 0) return 0;
    int64_t at_ms;
    std::memcpy(&at_ms, name().data() + header->name_bytes + header->attr_bytes, sizeof(at_ms));
    return at_ms;
  }
  bool ExpiredAt(int64_t now_ms) const {
    return (header->flags & kRecordExpires) != 0 && expire_at_ms() <= now_ms;
  }
  explicit operator bool() const { return header != nullptr; }
};

}  // namespace hotkv
