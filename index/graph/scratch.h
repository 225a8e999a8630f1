// Memory of a walk, kept by its thread: pools, batch buffers and visited marks grow to what the
// largest walk needed.
//
// Thread rules: Mine() is the calling thread's own; one walk at a time uses it.
#pragma once

#include <cstdint>
#include <vector>

#include "index/graph/walk.h"
#include "index/slab.h"

namespace hotkv {

// Room for a query, at a cache line's start.
class QueryBuffer {
 public:
  explicit QueryBuffer(uint32_t bytes) : memory_(bytes) {}
  void* data() const { return memory_.data(); }

 private:
  PrivateMemory memory_;
};

class Scratch {
 public:
  static Scratch& Mine();

  struct Needs {
    uint32_t slot_limit = 0;
    uint32_t pool = 0;      // nodes that the walk may go on from
    uint32_t accepted = 0;  // 0: the walk is not filtered
    uint32_t row_width = 0;
    uint32_t query_bytes = 0;  // of a query made from a row
  };
  // Valid until the next call.
  WalkScratch& For(const Needs& needs);
  const WalkScratch& Last() const { return walk_; }

 private:
  // Grows to at least `bytes`; content is lost. Returns the memory.
  static char* Room(PrivateMemory* memory, size_t bytes);

  WalkScratch walk_;
  PrivateMemory visited_;
  PrivateMemory pool_;
  PrivateMemory accepted_;
  PrivateMemory batch_;
  PrivateMemory row_query_;
};

}  // namespace hotkv
