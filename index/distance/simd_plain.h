// Plain C++ versions of the walk's bookkeeping, for targets without anything better. Included inside a target's
// namespace, as walk_inl.h is.

struct PlainSimd {
  HOTKV_INLINE static void MarkVisited(WalkScratch& s, uint32_t slot) {
    uint32_t& word = s.visited[slot >> 4];
    const uint32_t bit = 1u << (slot & 15);
    word = (word >> 16) == s.stamp ? word | bit : (s.stamp << 16) | bit;
  }

  // Unvisited ids of a row, marked as visited; returns how many.
  HOTKV_INLINE static uint32_t FilterUnvisited(const uint32_t* row, uint32_t width, WalkScratch& s,
                                  uint32_t* out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < width; ++i) {
      const uint32_t slot = __atomic_load_n(row + i, __ATOMIC_ACQUIRE);
      if (slot >= s.limit) {
        if (slot == 0xffffffffu) break;
        continue;
      }
      uint32_t word = s.visited[slot >> 4];
      if ((word >> 16) != s.stamp) word = s.stamp << 16;
      const uint32_t bit = 1u << (slot & 15);
      out[n] = slot;
      n += (word & bit) == 0 ? 1u : 0u;
      s.visited[slot >> 4] = word | bit;
    }
    return n;
  }

  HOTKV_INLINE static uint32_t PoolPosition(const WalkPool& pool, float distance) {
    uint32_t low = 0;
    uint32_t high = pool.size;
    while (low < high) {
      const uint32_t mid = (low + high) / 2;
      if (pool.distance[mid] <= distance) {
        low = mid + 1;
      } else {
        high = mid;
      }
    }
    return low;
  }

  // Moves elements at ... last - 1 up by one.
  HOTKV_INLINE static void PoolShift(WalkPool& pool, uint32_t at, uint32_t last) {
    for (uint32_t i = last; i > at; --i) {
      pool.distance[i] = pool.distance[i - 1];
      pool.slot[i] = pool.slot[i - 1];
    }
  }

  HOTKV_INLINE static uint32_t MaskBelow(const float* distances, uint32_t n, float bound) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < n && i < 16; ++i) {
      mask |= distances[i] < bound ? 1u << i : 0u;
    }
    return mask;
  }
};
