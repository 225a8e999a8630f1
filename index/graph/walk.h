// The hot loops over a graph, as plain structs and function pointers: each CPU target compiles its
// own copy (walk_inl.h inside distance/kernels_*.cc), so that distances, visited tests and pool
// shifts are inlined into one loop.
//
// A space is an element type with a metric. A walk's distance orders rows as the metric does but
// need not equal it: minus the inner product for COSINE and IP, the squared length for L2.
//
// Thread rules: everything here is reentrant; a WalkScratch belongs to one walk at a time. The
// caller holds a ReaderPin.
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/slab.h"

// In the loops of a target every call is inlined: a call would cost as much as the work, and would force what the loops
// keep in registers into memory.
#define HOTKV_INLINE __attribute__((always_inline)) inline

namespace hotkv {

enum class SpaceKind : uint8_t {
  kF32Dot,
  kF32L2,
  kF16Dot,
  kF16L2,
  kQ8Unit,  // both sides of unit length
  kQ8Dot,
  kQ8L2,
  kQ4Unit,
  kQ4Dot,
  kQ4L2,
  kBinUnit,
  kBinDot,
  kBinL2,
  kCount,
};

// A node's meta byte.
inline constexpr uint8_t kMetaLevelMask = 0x0f;
inline constexpr uint8_t kMetaLock = 0x10;  // a writer changes its links
inline constexpr uint8_t kMetaLive = 0x20;  // committed: a search may return it
inline constexpr uint8_t kMetaDead =
    0x40;  // deleted or abandoned; still walked through until repair unlinks it
inline constexpr uint8_t kMetaLinked = 0x80;  // all its own links are made
inline constexpr uint32_t kLevelMax = 15;

struct SpaceParams {
  uint32_t dim = 0;     // of the vectors as given
  uint32_t length = 0;  // elements that a kernel runs over (after rotation and padding)
  uint32_t row_bytes = 0;
  float scale = 1;  // codes: half a step
};

// The side of a distance that stays the same.
struct QueryView {
  const void* data = nullptr;
  float norm = 1;    // its length
  float factor = 1;  // codes: what one unit of a query byte is worth
  float sum = 0;     // codes: sum of the query bytes
};

struct Candidate {
  float distance;
  uint32_t slot;
};

struct WalkGraph {
  SlabView rows;            // what distances are computed on
  SlabView links;           // base layer: link_width ids a slot, kNoSlot at the end
  SlabView upper_at;        // uint32_t a slot: first row in upper, 0 for none
  SlabView upper;           // upper_width ids a row, one row a level
  SlabView meta;            // a byte a slot
  uint32_t link_width = 0;  // multiples of 16
  uint32_t upper_width = 0;
  uint32_t upper_rows = 0;  // bound of indexes into upper
  SpaceParams space;
};

// Sorted by distance, worst last; arrays have kPoolSlack elements beyond `capacity`.
struct WalkPool {
  float* distance = nullptr;
  uint32_t* slot = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;
};
inline constexpr uint32_t kPoolSlack = 64;
inline constexpr uint32_t kExpandedBit = 0x80000000u;

struct WalkScratch {
  // A word for 16 slots: low half marks, high half the stamp of the walk that they belong to.
  uint32_t* visited = nullptr;
  uint32_t visited_words = 0;
  uint32_t stamp = 0;
  uint32_t limit = 0;  // slots from here on are not visited (they came after the walk began)
  WalkPool pool;       // where the walk goes on; the answer of an unfiltered walk
  WalkPool accepted;   // the answer of a filtered walk
  uint32_t* batch_slots = nullptr;  // 2 * the widest row + slack
  float* batch_distances = nullptr;
  void* row_query = nullptr;  // room for a query made from a row
};

struct WalkRequest {
  QueryView query;
  uint32_t level = 0;
  uint32_t entry = 0;
  // Filtered walks only: a slot counts when (meta & mask) == want and `accepts` says yes.
  uint8_t meta_mask = 0;
  uint8_t meta_want = 0;
  bool (*accepts)(const void* context, uint32_t slot) = nullptr;
  const void* context = nullptr;
  const bool* stop = nullptr;  // the walk ends early once `accepts` has set this
};

struct SelectRequest {
  const Candidate* candidates = nullptr;  // sorted by distance from the node
  uint32_t count = 0;
  const char* node_row = nullptr;
  uint32_t node_slot = 0;
  uint32_t select_max = 0;
  uint32_t duplicates_max = 0;  // of selected rows equal to the node's own
};

struct SpaceOps {
  // Walks one level from request.entry; the answer is in scratch.pool or, filtered, in
  // scratch.accepted.
  void (*search)(const WalkGraph& graph, const WalkRequest& request, WalkScratch& scratch);
  void (*search_filtered)(const WalkGraph& graph, const WalkRequest& request, WalkScratch& scratch);
  // Descends greedily from `from_level` to the level above `to_level`; returns the closest node
  // met.
  uint32_t (*descend)(const WalkGraph& graph, const QueryView& query, uint32_t entry,
                      uint32_t from_level, uint32_t to_level, WalkScratch& scratch);
  // Heuristic selection (Malkov and Yashunin 2016, algorithm 4): writes the chosen slots, returns
  // how many.
  uint32_t (*select)(const WalkGraph& graph, const SelectRequest& request, WalkScratch& scratch,
                     uint32_t* chosen);
  // Distances from a query to rows.
  void (*distances)(const WalkGraph& graph, const QueryView& query, const uint32_t* slots,
                    uint32_t count, float* distances);
  // The query that stands for a stored row; `buffer` is used when the row itself cannot serve.
  QueryView (*from_row)(const SpaceParams& space, const char* row, void* buffer);
};

}  // namespace hotkv
