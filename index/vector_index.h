// VectorIndex: an approximate nearest-neighbour index (HNSW) over named vectors, searched and
// changed by many threads at once. It knows no key, no socket and no log; docs/vectors.md tells how
// it works, docs/formats/index.md its files.
//
// Thread rules: every method may be called by any thread, unless said otherwise. Search and the
// getters take no lock. Commit, Delete, SetAttr of one index are serialised inside; callers that
// log what they did call them under the lock of the key that holds the index, so that the log's
// order is the order of the changes. Prepare runs in parallel and needs no lock of the caller's. No
// method may be called during or after destruction.
//
// Errors: kInvalidArgument with a text for the user (wrong dimension, NaN, ...); kNotFound; storage
// errors with path and errno. After an error nothing has changed.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "index/fields/field_spec.h"

namespace hotkv {

class Env;
class FilterExpression;

// Stored values: never renumbered.
enum class Metric : uint8_t { kCosine = 0, kL2 = 1, kIp = 2 };
enum class ElementType : uint8_t { kF32 = 0, kF16 = 1, kQ8 = 2, kQ4 = 3, kBin = 4 };

inline constexpr uint32_t kNoSlot = 0xffffffffu;
inline constexpr uint32_t kIndexSlotsMax = 0x7fffffffu;
inline constexpr uint32_t kIndexMMax = 512;
inline constexpr uint32_t kIndexEfMax = 1u << 20;

std::string_view MetricName(Metric metric);          // "COSINE", "L2", "IP"
std::string_view ElementTypeName(ElementType type);  // "F32", "F16", "Q8", "Q4", "BIN"

// The type that an index gets when its creator names none.
ElementType DefaultElementType(uint32_t dim);

struct IndexOptions {
  uint32_t dim = 0;  // 1 ... kVectorDimMax
  Metric metric = Metric::kCosine;
  ElementType type = ElementType::kF32;
  uint32_t m =
      16;  // links of a new node on each level; the base layer holds up to 2m; 2 ... kIndexMMax
  uint32_t ef_construction = 200;  // 1 ... kIndexEfMax
  uint32_t ef_default = 100;       // of a search that names none
  uint32_t rerank = 0;             // candidates scored in float32; 0: as many as may still win
  uint64_t seed =
      0x484b5631;  // of levels and rotation; the same seed and names give the same levels
};

// What a filter sees of an element; valid during the call only.
struct ElementView {
  uint32_t slot = kNoSlot;
  std::string_view name;
  std::string_view attr;
  int64_t expire_at_ms = 0;  // 0: never
};

// A predicate over elements, borrowed for the length of a search. It is called from the searching
// thread, possibly more than once for an element, and must not call the index.
struct ElementFilter {
  bool (*accepts)(const void* context, const ElementView& element) = nullptr;
  const void* context = nullptr;
  // Expected share of elements that pass, from 0 to 1; small values make the index scan instead of
  // walking.
  double selectivity = 1.0;
  explicit operator bool() const { return accepts != nullptr; }
};

// How a search goes about it. kChoose leaves it to the index; the others are for measuring.
enum class SearchPlan : uint8_t {
  kChoose,
  kScan,    // scores every element that matches
  kWalk,    // walks the graph, collects what matches
  kTwoHop,  // walks over matching nodes only, looking past the others
};
std::string_view SearchPlanName(SearchPlan plan);  // "scan", "walk", "twohop"

// What a search did.
struct SearchReport {
  SearchPlan plan = SearchPlan::kChoose;  // that gave the answer
  uint32_t attempts = 0;                  // plans tried, the last one included
  double estimate = 0;                    // of elements that match
  bool listed = false;                    // the estimate comes from columns' lists, not from a sample
  bool covered = false;                   // every field of the filter has a column
  uint64_t tests = 0;                     // slots tested against the filter
  uint64_t json_reads = 0;                // attributes read for that
  uint64_t nodes = 0;                     // nodes visited by walks
  uint64_t distances = 0;
};

struct SearchParams {
  uint32_t k = 10;
  uint32_t offset = 0;  // rows left out at the front
  uint32_t ef = 0;      // 0: the index's default; raised to k + offset
  uint32_t rerank = 0;  // 0: the index's default
  bool exact = false;   // score every element in float32
  bool with_attr = false;
  bool with_vector = false;
  float range = std::numeric_limits<float>::infinity();  // only rows with distance <= range
  ElementFilter filter;
  const FilterExpression* where_or_null = nullptr;  // on attributes; borrowed for the search
  SearchPlan plan = SearchPlan::kChoose;
  SearchReport* report_or_null = nullptr;
};

// Distance: COSINE 1 - cos (0 ... 2), L2 the Euclidean length (not squared), IP minus the inner
// product.
struct SearchRow {
  uint32_t slot = kNoSlot;
  float distance = 0;
  std::string name;
  std::string attr;           // with_attr
  std::vector<float> vector;  // with_vector: what the user gave
};

struct IndexInfo {
  IndexOptions options;
  uint64_t live = 0;        // elements that a search can return
  uint64_t dead = 0;        // deleted, not yet unlinked by repair
  uint64_t slots = 0;       // high-water mark
  uint64_t free_slots = 0;  // reusable now
  uint64_t held_slots = 0;  // unlinked, not yet reusable (ReleaseSlots)
  uint64_t pending = 0;     // put in by ApplySet, searched exactly, not yet linked
  uint32_t top_level = 0;
  uint64_t hot_bytes = 0;     // codes and links
  uint64_t vector_bytes = 0;  // full vectors (a file's pages unless in memory)
  uint64_t other_bytes = 0;   // names, attributes, maps
  uint64_t with_attr = 0;     // live elements that have attributes
  uint64_t expiring = 0;      // live elements that end by themselves
  uint64_t field_bytes = 0;   // columns; part of other_bytes
  bool fields_ready = true;   // every declared field has its column
  std::vector<std::string> automatic_fields;  // with a column because filters use them
  const char* kernel = "";    // "avx512", "avx2", "neon", "scalar"
};

struct CommitResult {
  uint32_t slot = kNoSlot;
  uint32_t replaced_slot = kNoSlot;  // the slot that held the name until now, or kNoSlot
  bool replaced_live = false;        // and that element had not ended
};

enum class RepairWhen : uint8_t { kWorthwhile, kNow };

class VectorIndex;

// An element that is stored and linked but not yet visible. Abandoned when destroyed uncommitted.
// Must not outlive the index.
class PreparedInsert {
 public:
  PreparedInsert() = default;
  PreparedInsert(PreparedInsert&& other) noexcept { *this = std::move(other); }
  PreparedInsert& operator=(PreparedInsert&& other) noexcept;
  PreparedInsert(const PreparedInsert&) = delete;
  PreparedInsert& operator=(const PreparedInsert&) = delete;
  ~PreparedInsert();
  uint32_t slot() const { return slot_; }
  explicit operator bool() const { return index_ != nullptr; }

 private:
  friend class VectorIndex;
  VectorIndex* index_ = nullptr;
  uint32_t slot_ = kNoSlot;
};

// One neighbour of an element on one level.
struct LinkRow {
  std::string name;
  float distance = 0;
};

class VectorIndex {
 public:
  // A new index. With env_or_null == nullptr everything stays in memory and `dir` is ignored; else
  // `dir` is made if missing and must not hold an index yet.
  static Result<std::unique_ptr<VectorIndex>> Create(const IndexOptions& options, Env* env_or_null,
                                                     const std::string& dir);
  // The index as generation `generation` has it. Returns without reading vectors, names or links.
  // Apply* then brings it up to date; after that, and once the generations that are kept are known,
  // call ReleaseSlots.
  static Result<std::unique_ptr<VectorIndex>> Open(Env* env, const std::string& dir,
                                                   uint64_t generation);
  ~VectorIndex();

  // What Create would say of them.
  static Status CheckOptions(const IndexOptions& options);
  // Zero vectors are taken under COSINE too: their distance from everything is 1. Called before the
  // index is used.
  void AllowZeroVectors();

  // ---- changes ----
  // Checks, stores and links; the element is not visible yet. `name` may exist already: Commit
  // replaces it.
  // expire_at_ms: the element ends by itself then (milliseconds since the Unix epoch); 0: never.
  Result<PreparedInsert> Prepare(std::string_view name, std::span<const float> vector,
                                 std::string_view attr, int64_t expire_at_ms = 0);
  // Gives a prepared element other attributes and another end than Prepare did.
  void Revise(const PreparedInsert& prepared, std::string_view attr, int64_t expire_at_ms);
  CommitResult Commit(PreparedInsert&& prepared);
  void Abandon(PreparedInsert&& prepared);
  // The slot that was freed, or nothing if there was no such element.
  std::optional<uint32_t> Delete(std::string_view name);
  // The element's slot, or nothing if there is no such element.
  std::optional<uint32_t> SetAttr(std::string_view name, std::string_view attr);
  // As SetAttr; 0: the element stays.
  std::optional<uint32_t> SetExpiry(std::string_view name, int64_t expire_at_ms);
  // Deletes up to `max` elements whose time has come; what went.
  struct Deleted {
    uint32_t slot;
    std::string name;
  };
  std::vector<Deleted> DeleteExpired(size_t max);
  // Deletes up to `max` elements that match among `slots_max` slots from *slot on, which is then where
  // to go on, kNoSlot at the end.
  std::vector<Deleted> DeleteMatching(const FilterExpression& where, uint32_t slots_max, size_t max,
                                      uint32_t* slot);
  // When the next element ends; the largest number when none does.
  int64_t NextExpiryMs() const;
  // What searches use that name no EF and no RERANK.
  void SetSearchDefaults(uint32_t ef, uint32_t rerank);

  // ---- replay of logged changes (idempotent, in the log's order; one thread) ----
  // Sets or removes one element in one given slot, whatever the opened generation had seen of it. A
  // new element is not linked at once: it is searched exactly until LinkPending has linked it.
  Status ApplySet(uint32_t slot, std::string_view name, std::span<const float> vector,
                  std::string_view attr, int64_t expire_at_ms = 0);
  Status ApplyDelete(uint32_t slot, std::string_view name);
  Status ApplyAttr(uint32_t slot, std::string_view name, std::string_view attr);
  Status ApplyExpiry(uint32_t slot, std::string_view name, int64_t expire_at_ms);
  // Links up to `elements_max` pending elements; returns how many are left. May run on several
  // threads at once.
  uint64_t LinkPending(uint64_t elements_max);

  // ---- building anew from another index (rebuild.cc) ----
  // Live slots such that what is near in the graph is near in the list.
  std::vector<uint32_t> LocalityOrder() const;
  // Takes elements of an index with the same dimension and metric over into slots first, first + 1,
  // ..., byte for byte; those that are gone leave their slot out. They are pending until LinkPending.
  Status AdoptElements(const VectorIndex& from, std::span<const uint32_t> slots, uint32_t first);
  // Pending elements are linked in a random order: neighbours in a row make a poorer graph.
  void ShufflePending(uint64_t seed);

  // ---- reads ----
  // An element past its time is not there for any of these, but for ForEach, which shows when it
  // ends.
  Status CheckVector(std::span<const float> vector) const;  // what Prepare and Search would say
  bool Contains(std::string_view name) const;
  // Returns what the user gave (under COSINE within rounding: it is stored with unit length and its
  // norm).
  Result<std::vector<float>> GetVector(std::string_view name) const;
  std::optional<std::string> GetAttr(std::string_view name) const;
  // When the element ends, 0 for never; nothing if there is no such element.
  std::optional<int64_t> GetExpiry(std::string_view name) const;
  // Neighbours by level, the base layer first.
  Result<std::vector<std::vector<LinkRow>>> GetLinks(std::string_view name) const;
  uint64_t Count() const;
  uint64_t CountMatching(const FilterExpression& where) const;
  // Rows by distance, ties by slot.
  Result<std::vector<SearchRow>> Search(std::span<const float> query,
                                        const SearchParams& params) const;
  // Visits the live elements of up to `slots_max` slots from `from_slot` on; returns where to go
  // on, kNoSlot at the end. An element that is there throughout is visited. `vector` is empty
  // unless asked for.
  struct VisitedElement {
    ElementView view;
    std::vector<float> vector;
  };
  template <typename Visit>
  uint32_t ForEach(uint32_t from_slot, uint32_t slots_max, Visit&& visit,
                   bool with_vectors = false) const {
    uint32_t next = from_slot;
    for (const VisitedOwned& e : VisitSome(from_slot, slots_max, with_vectors, &next)) {
      visit(VisitedElement{{e.slot, e.name, e.attr, e.expire_at_ms}, e.vector});
    }
    return next;
  }
  // Visits about `count` elements in the order of their names' hashes, from `cursor` on (0: the
  // first); returns where to go on, 0 at the end. An element that is there throughout is visited
  // once, also when it is set anew meanwhile, and when another index with the same elements goes on.
  template <typename Visit>
  uint32_t ForEachByName(uint32_t cursor, uint32_t count, Visit&& visit) const {
    for (const VisitedOwned& e : VisitByName(&cursor, count)) {
      visit(VisitedElement{{e.slot, e.name, e.attr, e.expire_at_ms}, {}});
    }
    return cursor;
  }
  // A live element chosen by `random` (any 64 bits), about uniformly; nothing when empty.
  std::optional<std::string> RandomName(uint64_t random) const;
  IndexInfo Info() const;
  IndexOptions options() const;

  // ---- fields ----
  // Exchanges the declared fields (docs/vectors.md). With elements present the columns of new ones
  // are built by BuildFields; until then filters on them read attributes.
  Status SetFields(std::vector<FieldSpec> fields);
  std::vector<FieldSpec> fields() const;

  // ---- upkeep ----
  // Looks at up to `slots_max` slots to build columns, while writers wait, or makes the sorted run
  // of a column anew, while nobody waits; true while there is more to do.
  bool BuildFields(uint32_t slots_max);
  // Does a bounded piece of the unlinking of deleted elements (about `nodes_max` nodes looked at);
  // true while there is more to do. One thread at a time does the work; others return at once.
  // kWorthwhile leaves little work lying, since a pass looks at every node; kNow (an idle index)
  // does not. The calling thread must not hold a ReaderPin.
  bool RepairStep(uint32_t nodes_max, RepairWhen when = RepairWhen::kWorthwhile);
  // Every structural invariant, by full scan; the index must be at rest. Also compares vectors with
  // their checksums.
  Status CheckInvariants() const;

  // ---- generations (only with an Env) ----
  // Writes generation `generation` while reads and writes go on, and syncs it and the vectors. The
  // caller notes the log position `from` before this and `to` after it, publishes the generation in
  // the catalog once the log is durable past `to`, and then calls ReleaseSlots. One at a time.
  Status Checkpoint(uint64_t generation);
  // Writes a copy of the index, with the same slots, as generation `generation` of another folder,
  // which must not hold an index yet, and syncs it, while reads and writes go on. As with a
  // checkpoint, changes made meanwhile may be in it or not. Slots are to be held from before this
  // until those changes have been applied to the copy.
  Status CopyTo(const std::string& dir, uint64_t generation);
  // The same for an index without an Env.
  Result<std::unique_ptr<VectorIndex>> CopyInMemory() const;
  // Says that every snapshot, backup and catalog entry refers to `oldest_kept` or a later
  // generation: slots unlinked before that generation was begun may be reused.
  void ReleaseSlots(uint64_t oldest_kept);
  // While held, no slot is reused (a snapshot or backup is running).
  void HoldSlots();
  void UnholdSlots();
  // Removes the files of one generation; OK when they are not there.
  static Status RemoveGeneration(Env* env, const std::string& dir, uint64_t generation);
  // Checks every checksum and cross-reference of a generation on disk, reading all of it.
  static Status VerifyGeneration(Env* env, const std::string& dir, uint64_t generation);
  // File names in the index's folder that belong to generation `generation`, slabs included.
  static Result<std::vector<std::string>> FilesOfGeneration(Env* env, const std::string& dir,
                                                            uint64_t generation);

 private:
  friend class PreparedInsert;
  class Impl;
  struct VisitedOwned {
    uint32_t slot;
    std::string name;
    std::string attr;
    int64_t expire_at_ms;
    std::vector<float> vector;
  };
  explicit VectorIndex(std::unique_ptr<Impl> impl);
  std::vector<VisitedOwned> VisitSome(uint32_t from_slot, uint32_t slots_max, bool with_vectors,
                                      uint32_t* next) const;
  std::vector<VisitedOwned> VisitByName(uint32_t* cursor, uint32_t count) const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace hotkv
