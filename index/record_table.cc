#include "index/record_table.h"

#include <cstdlib>
#include <cstring>

#include "engine/base/check.h"
#include "index/reader_pin.h"

namespace hotkv {

RecordTable::RecordTable()
    : refs_(SlabGeometry::For(sizeof(uint64_t), 4096, size_t{64} << 20), nullptr) {}

RecordTable::~RecordTable() {
  for (uint32_t slot = 0; slot < refs_.capacity(); ++slot) {
    const uint64_t ref = refs_.At<uint64_t>(slot).load(std::memory_order_relaxed);
    if ((ref & kHeapBit) != 0) std::free(reinterpret_cast<void*>(ref & ~kHeapBit));
  }
}

void RecordTable::Adopt(char* refs, uint32_t slabs, std::string_view arena) {
  refs_.Adopt(refs, slabs);
  arena_ = arena;
}

RecordView RecordTable::Resolve(uint64_t ref) const {
  if (ref == 0) return {};
  if ((ref & kHeapBit) != 0) return {reinterpret_cast<const RecordHeader*>(ref & ~kHeapBit)};
  // The arena is a file that nobody has checked yet: stay inside it whatever it says.
  const uint64_t offset = ref - 1;
  if (arena_.size() < sizeof(RecordHeader) || offset > arena_.size() - sizeof(RecordHeader) ||
      offset % alignof(RecordHeader) != 0) {
    return {};
  }
  const auto* header = reinterpret_cast<const RecordHeader*>(arena_.data() + offset);
  if (RecordBytes(*header) > arena_.size() - offset) return {};
  return {header};
}

void RecordTable::Set(uint32_t slot, const RecordContent& content) {
  const RecordHeader header = {static_cast<uint32_t>(content.name.size()),
                               static_cast<uint32_t>(content.attr.size()), content.norm,
                               content.expire_at_ms != 0 ? kRecordExpires : 0};
  const size_t bytes = RecordBytes(header);
  char* block = static_cast<char*>(std::malloc(bytes));
  HOTKV_CHECK(block != nullptr);
  char* at = block;
  const auto put = [&at](const void* from, size_t size) {
    if (size != 0) std::memcpy(at, from, size);
    at += size;
  };
  put(&header, sizeof(header));
  put(content.name.data(), content.name.size());
  put(content.attr.data(), content.attr.size());
  if (content.expire_at_ms != 0) put(&content.expire_at_ms, sizeof(content.expire_at_ms));
  heap_bytes_.fetch_add(bytes + 8, std::memory_order_relaxed);
  Exchange(slot, reinterpret_cast<uint64_t>(block) | kHeapBit);
}

void RecordTable::Exchange(uint32_t slot, uint64_t ref) {
  const uint64_t old = refs_.At<uint64_t>(slot).exchange(ref, std::memory_order_acq_rel);
  if ((old & kHeapBit) == 0) return;
  auto* block = reinterpret_cast<RecordHeader*>(old & ~kHeapBit);
  const size_t bytes = RecordBytes(*block) + 8;
  heap_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  IndexReclaim().Retire([block] { std::free(block); });
}

}  // namespace hotkv
