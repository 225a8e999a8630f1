// RecordTable: slot -> record. A reference is a 64-bit word: a heap block's address with the top
// bit set, or one plus an offset into a mapped arena, or 0. So a table mapped from a file is usable
// as it is.
//
// Thread rules: Get by any thread with a ReaderPin; Set and Clear of one slot by one thread at a
// time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "engine/base/result.h"
#include "index/record.h"
#include "index/slab.h"

namespace hotkv {

class RecordTable {
 public:
  RecordTable();
  ~RecordTable();
  RecordTable(const RecordTable&) = delete;
  RecordTable& operator=(const RecordTable&) = delete;

  Status Reserve(uint32_t slots) { return refs_.Reserve(slots); }
  // Records of an opened file: `refs` holds whole slabs, `arena` what they point into. Both outlive
  // the table.
  void Adopt(char* refs, uint32_t slabs, std::string_view arena);
  uint32_t SlabsFor(uint32_t slots) const { return refs_.SlabsFor(slots); }
  const SlabGeometry& geometry() const { return refs_.geometry(); }

  RecordView Get(uint32_t slot) const {
    if (slot >= refs_.capacity()) return {};
    return Resolve(refs_.At<uint64_t>(slot).load(std::memory_order_acquire));
  }
  void Set(uint32_t slot, const RecordContent& content);
  void Clear(uint32_t slot) { Exchange(slot, 0); }
  size_t bytes() const { return heap_bytes_.load(std::memory_order_relaxed) + refs_.bytes(); }

 private:
  static constexpr uint64_t kHeapBit = uint64_t{1} << 63;
  RecordView Resolve(uint64_t ref) const;
  void Exchange(uint32_t slot, uint64_t ref);

  SlabArray refs_;  // uint64_t a slot; release in Exchange, acquire in Get
  std::string_view arena_;
  std::atomic<size_t> heap_bytes_{0};  // relaxed: a statistic
};

}  // namespace hotkv
