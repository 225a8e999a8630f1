// An element's record: name, attributes and norm in one block that never changes, so that one load
// gives parts that belong together. A new attribute makes a new block; the old one is retired. The
// same bytes serve in memory and mapped from an ids.GEN file (docs/formats/index.md).
//
// Thread rules: constant after construction; readers hold a ReaderPin.
#pragma once

#include <cstdint>
#include <string_view>

namespace hotkv {

struct RecordHeader {
  uint32_t name_bytes;
  uint32_t attr_bytes;
  float norm;  // of the vector as given (COSINE); 1 otherwise
  uint32_t reserved;
};
static_assert(sizeof(RecordHeader) == 16);

inline size_t RecordBytes(size_t name_bytes, size_t attr_bytes) {
  return sizeof(RecordHeader) + name_bytes + attr_bytes;
}

struct RecordView {
  const RecordHeader* header = nullptr;
  std::string_view name() const {
    return {reinterpret_cast<const char*>(header + 1), header->name_bytes};
  }
  std::string_view attr() const {
    return {reinterpret_cast<const char*>(header + 1) + header->name_bytes, header->attr_bytes};
  }
  explicit operator bool() const { return header != nullptr; }
};

}  // namespace hotkv
