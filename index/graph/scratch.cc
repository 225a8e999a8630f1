#include "index/graph/scratch.h"

#include <algorithm>

namespace hotkv {

namespace {

void LayOutPool(char* memory, uint32_t capacity, WalkPool* pool) {
  const size_t length = size_t{capacity} + kPoolSlack;
  pool->distance = reinterpret_cast<float*>(memory);
  pool->slot = reinterpret_cast<uint32_t*>(memory + length * sizeof(float));
  pool->capacity = capacity;
  pool->size = 0;
}

size_t PoolBytes(uint32_t capacity) { return (size_t{capacity} + kPoolSlack) * 8; }

}  // namespace

Scratch& Scratch::Mine() {
  thread_local Scratch scratch;
  return scratch;
}

char* Scratch::Room(PrivateMemory* memory, size_t bytes) {
  if (memory->size() < bytes) {
    *memory = PrivateMemory();  // first, so that the two are not there at once
    *memory = PrivateMemory(std::max(bytes, size_t{4096}) * 5 / 4);
  }
  return memory->data();
}

WalkScratch& Scratch::For(const Needs& needs) {
  const size_t visited_bytes = (size_t{needs.slot_limit} / 16 + 1) * sizeof(uint32_t);
  if (visited_.size() < visited_bytes) {
    walk_.visited = reinterpret_cast<uint32_t*>(Room(&visited_, visited_bytes));
    walk_.visited_words = static_cast<uint32_t>(visited_.size() / sizeof(uint32_t));
    walk_.stamp = 0;
  }
  walk_.limit = needs.slot_limit;
  LayOutPool(Room(&pool_, PoolBytes(needs.pool)), needs.pool, &walk_.pool);
  LayOutPool(Room(&accepted_, PoolBytes(needs.accepted)), needs.accepted, &walk_.accepted);
  const size_t batch = size_t{needs.row_width} * 2 + kPoolSlack;
  char* room = Room(&batch_, batch * 8);
  walk_.batch_slots = reinterpret_cast<uint32_t*>(room);
  walk_.batch_distances = reinterpret_cast<float*>(room + batch * sizeof(uint32_t));
  walk_.row_query = Room(&row_query_, needs.query_bytes);
  return walk_;
}

}  // namespace hotkv
