// ColdRows: reading float32 rows that lie in a mapped file, some of which may have left memory.
//
// A page fault fetches one row's pages, with their neighbours that nobody wants, and the thread waits for each in turn. A
// reader that finds its rows slow to come because of such faults asks, for its next readings, for all rows that it will
// read before it touches the first of them (MADV_WILLNEED): their reads are under way together, and of nothing else. While
// all is in memory this costs two reads of the cycle counter.
//
// Thread rules: one object a reading, on one thread; what was learnt is kept a thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/slab.h"

namespace hotkv {

class ColdRows {
 public:
  // rows: null where the rows are private memory; then nothing is done. row_bytes: what is read of each.
  ColdRows(const SlabArray* rows_or_null, size_t row_bytes);
  ~ColdRows() {
    if (rows_ != nullptr) Learn();
  }
  ColdRows(const ColdRows&) = delete;
  ColdRows& operator=(const ColdRows&) = delete;

  // The thread's last readings had to wait: rows should be asked for.
  bool cold() const { return cold_; }
  // A row that will be read. Neighbours in the file are asked for in one call when they are told one after the other.
  void Ask(uint32_t slot);
  // Sends what has been asked for.
  void Send();
  void CountRead(size_t rows) { read_ += rows; }

 private:
  void Learn();

  const SlabArray* const rows_;
  const size_t row_bytes_;
  const bool cold_;
  uint64_t begin_ = 0;  // cycles
  size_t read_ = 0;
  uintptr_t from_ = 0;  // pages asked for and not sent yet
  uintptr_t to_ = 0;
};

}  // namespace hotkv
