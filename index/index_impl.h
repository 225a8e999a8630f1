// What a VectorIndex is made of. Split over index_impl.cc (making, slots, changes), search.cc,
// checkpoint.cc, apply.cc.
//
// Locks, in this order: checkpoint_mutex_, names_mutex_, slots_mutex_, the graph's own. Search
// takes none of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "index/distance/targets.h"
#include "index/expiry.h"
#include "index/fields/field_index.h"
#include "index/file/slab_files.h"
#include "index/graph/graph.h"
#include "index/name_map.h"
#include "index/quant/codec.h"
#include "index/record_table.h"
#include "index/search_gate.h"
#include "index/slab.h"
#include "index/vector_index.h"

namespace hotkv {

struct Generation;   // a mapped one (file/generation.h)
struct GraphHeader;  // of a generation

struct ScoredSlot {
  float distance;  // as the metric has it
  uint32_t slot;
};

inline bool Closer(const ScoredSlot& a, const ScoredSlot& b) {
  return a.distance != b.distance ? a.distance < b.distance : a.slot < b.slot;
}

// A SearchGate as the predicate of a walk.
inline bool GateAccepts(const void* gate, uint32_t slot) {
  // Walks take predicates as constant; this one counts and remembers what it was asked.
  return static_cast<SearchGate*>(const_cast<void*>(gate))->AcceptsOnWalk(slot);
}

class VectorIndex::Impl {
 public:
  using Found = ScoredSlot;

  Impl(const IndexOptions& options, Env* env_or_null, std::string dir, uint64_t uid);
  ~Impl();

  static Status CheckOptions(const IndexOptions& options);

  // A unit vector under COSINE, aligned, with the norm of what was given.
  struct Prepared {
    PrivateMemory memory;
    float* data = nullptr;
    float norm = 1;
    void* buffer = nullptr;  // of the codec's query_bytes()
    QueryView view;
  };
  Status CheckVector(std::span<const float> vector) const;
  Prepared PrepareVector(std::span<const float> vector) const;

  // ---- slots (index_impl.cc) ----
  Result<uint32_t> TakeSlot();
  Status ReserveSlots(uint32_t slots);
  void GiveBack(std::span<const uint32_t> slots);  // unlinked and out of every reader's sight
  void FreeAfterReaders(uint32_t slot);            // never linked
  void CollectFreed();
  void ReleaseSlots(uint64_t oldest_kept);
  bool IsFreeLocked(uint32_t slot) const;
  void SetFreeLocked(uint32_t slot, bool free);
  uint32_t LevelFor(std::string_view name) const;

  std::unique_ptr<SlabArray> MakeRows(const SlabGeometry& shape, const char* prefix,
                                      const char* suffix, std::unique_ptr<SlabFiles>* files) const;
  void StoreRow(uint32_t slot, const Prepared& vector);
  float* VectorAt(uint32_t slot) const { return reinterpret_cast<float*>(vectors_->Row(slot)); }
  const SlabArray* rows() const { return codes_ ? codes_.get() : vectors_.get(); }
  uint32_t SumOf(uint32_t slot) const;
  void Restore(uint32_t slot, float norm, std::vector<float>* out) const;

  // ---- names ----
  bool NameIs(uint32_t slot, std::string_view name) const;
  std::optional<uint32_t> FindLocked(std::string_view name) const;
  std::optional<uint32_t> Find(std::string_view name) const;
  // An element's record, whose slot is live; nothing when it is past its time. Under a ReaderPin.
  RecordView FindRecord(std::string_view name, uint32_t* slot) const;
  std::optional<uint32_t> FindLiveLocked(std::string_view name) const;  // not past its time
  void Kill(uint32_t slot);
  // What is counted of a live element's record; names_mutex_ is held.
  void Enlist(uint32_t slot);
  void Delist(uint32_t slot);
  void ChangeRecord(uint32_t slot, const RecordContent& content);  // of a live element
  uint64_t LiveCount() const;  // without elements past their time

  // ---- search (search.cc) ----
  Result<std::vector<SearchRow>> Search(std::span<const float> query,
                                        const SearchParams& params) const;
  // One search under way: borrowed parts, and what it did so far.
  struct SearchJob {
    const Prepared& query;
    const SearchParams& params;
    SearchGate& gate;
    uint32_t want;
    uint32_t ef;
    SearchReport* report;
    uint32_t pool = 0;          // of a walk; 0: as many nodes as the graph thinks fit
    double expected_share = 0;  // a walk gives up when far fewer nodes match; 0: never
    bool gives_up_early = false;
  };
  std::vector<Found> FindNearest(const SearchJob& job) const;
  std::vector<Found> WalkFor(const SearchJob& job, bool* full) const;
  void AddPending(const SearchJob& job, std::vector<Found>* found) const;
  bool ScanIsBetter(const SearchJob& job) const;
  uint32_t EfFor(const SearchParams& params, uint32_t want) const;
  uint32_t RerankFor(const SearchParams& params) const;
  SearchGate::Parts GateParts() const;
  float MetricDistance(float walk_distance) const;
  float ExactWalkDistance(const Prepared& query, uint32_t slot) const;
  const SlabArray* MappedVectors() const;  // null: float32 rows are private memory
  void PrefetchVector(uint32_t slot) const;
  std::vector<Found> Rerank(const Prepared& query, const std::vector<Candidate>& candidates,
                            uint32_t want, uint32_t count) const;
  void ExactDistances(const Prepared& query, const uint32_t* slots, uint32_t count,
                      float* out) const;
  std::vector<SearchRow> Rows(const SearchJob& job, const std::vector<Found>& found,
                              bool* lost) const;

  // ---- search with a filter (search_filtered.cc) ----
  struct MatchEstimate {
    double matches = 0;
    uint64_t to_test = 0;         // slots that a scan would test
    std::vector<uint32_t> seeds;  // some that match
  };
  MatchEstimate EstimateMatches(const SearchJob& job) const;
  void WishColumns(const FilterExpression& where) const;
  double ShareOf(const MatchEstimate& estimate) const;
  struct PlanCosts {
    double scan = 0;
    double walk = 0;
    double two_hop = 0;
  };
  PlanCosts CostsOf(const SearchJob& job, const MatchEstimate& estimate) const;
  SearchPlan ChoosePlan(const SearchJob& job, const PlanCosts& costs, double share) const;
  std::vector<Found> FindMatching(const SearchJob& job) const;
  std::vector<Found> ScanFor(const SearchJob& job) const;
  std::vector<uint32_t> SlotsToScan(const SearchJob& job) const;
  std::vector<Found> ScanByCodes(const SearchJob& job, const std::vector<uint32_t>& slots) const;
  std::vector<Found> ScanExactly(const SearchJob& job, const std::vector<uint32_t>& slots) const;
  std::vector<Found> TwoHopFor(const SearchJob& job, const std::vector<uint32_t>& seeds) const;
  uint64_t CountMatching(const FilterExpression& where) const;

  // ---- fields ----
  bool BuildFields(uint32_t slots_max);
  bool MergeNumbers();

  Status CheckInvariants() const;
  IndexInfo Info() const;

  // ---- replay (apply.cc) ----
  enum class PendingState : uint8_t { kWaiting, kLinking, kDoomed };
  void AddToPending(uint32_t slot);
  void KillPending(uint32_t slot);
  uint64_t LinkPending(uint64_t elements_max);
  Status ClaimSlot(uint32_t slot);
  Status ApplySet(uint32_t slot, const RecordContent& content, std::span<const float> vector);
  Status ApplyRow(uint32_t slot, const RecordContent& record, const Prepared& vector);
  Status ApplyDelete(uint32_t slot, std::string_view name);
  // Changes the record of the element in the slot, if it is there.
  template <typename Change>
  Status ApplyToRecord(uint32_t slot, std::string_view name, Change&& change);

  // ---- generations (checkpoint.cc) ----
  struct CopyPlan;
  CopyPlan PlanCopy() const;
  bool PlaceName(uint32_t slot, CopyPlan* plan) const;
  // Where a generation is written: the index's own folder, or a copy's.
  struct CopyPlace {
    std::string dir;
    uint64_t uid = 0;
    uint64_t generation = 0;
  };
  GraphHeader HeaderOf(const CopyPlace& place) const;
  Status WriteGraph(const CopyPlace& place, const CopyPlan& plan) const;
  Status WriteIds(const CopyPlace& place, const CopyPlan& plan) const;
  // Plans and writes a generation while reads and changes go on; how each slot went into it.
  Result<std::vector<uint8_t>> WriteCopy(const CopyPlace& place);
  Status CopyTo(const std::string& dir, uint64_t generation);  // copy.cc
  Status CopyRows(const CopyPlace& place, const std::vector<uint8_t>& metas) const;
  Status Checkpoint(uint64_t generation);
  Status Adopt(std::unique_ptr<Generation> generation);
  Status AdoptRecords(const Generation& generation);

  // Constant after construction.
  const IndexOptions options_;
  Env* const env_;
  const std::string dir_;
  const uint64_t uid_;
  bool zero_allowed_ = false;  // constant once the index is used
  const Target& target_;

  std::unique_ptr<Generation> opened_;  // mappings that the arrays below may point into

  const Codec codec_;
  std::unique_ptr<SlabFiles> vector_files_;  // null without an Env
  std::unique_ptr<SlabFiles> code_files_;    // null without an Env or without codes
  std::unique_ptr<SlabArray> vectors_;       // float32 rows
  // Rows that walks use, where they are not the vectors: private memory, or the files' slabs of an
  // opened index until they are promoted.
  std::unique_ptr<SlabArray> codes_;
  std::unique_ptr<SlabArray> code_file_rows_;  // the same rows in their files; null without files
  SlabArray sums_;                             // uint32_t a slot: CRC32C of its row
  std::unique_ptr<Graph> graph_;
  RecordTable records_;
  std::atomic<uint64_t> live_{0};  // relaxed: counts
  std::atomic<uint32_t> with_attr_{0};
  // Constant but for VSIM.ALTER; relaxed: each stands for itself.
  std::atomic<uint32_t> ef_default_;
  std::atomic<uint32_t> rerank_;

  mutable std::shared_mutex names_mutex_;
  NameMap names_;  // guarded by names_mutex_
  ExpiryBook expiry_;
  mutable FieldIndex fields_;  // searches tell it which columns they miss

  mutable std::mutex slots_mutex_;
  uint32_t next_slot_ =
      0;  // guarded by slots_mutex_, as all below: slots from here on were never used
  std::vector<uint64_t> free_bits_;  // reusable slots
  uint64_t free_count_ = 0;
  uint32_t free_hint_ = 0;   // word of free_bits_ to look at first
  uint32_t reuse_held_ = 0;  // HoldSlots less UnholdSlots
  uint64_t checkpoints_begun_ = 0;
  std::map<uint64_t, uint64_t> begun_;  // generation -> checkpoints_begun_ at its beginning
  struct Held {
    uint64_t begun;  // checkpoints begun when these were unlinked
    std::vector<uint32_t> slots;
  };
  std::deque<Held> held_;
  uint64_t held_count_ = 0;
  uint64_t reuse_from_ =
      0;  // opened from a file: free slots wait for ReleaseSlots of this generation
  bool reuse_open_ = true;
  struct Waiting {
    uint32_t slot;
    std::shared_ptr<std::atomic<bool>> over;
  };
  std::vector<Waiting> waiting_;  // never linked, but a search may be looking at them
  bool copying_ = false;  // a checkpoint copies: what it took for live keeps its record meanwhile

  mutable std::mutex pending_mutex_;
  // Live but not linked, or linked without a link to it; guarded by pending_mutex_. The queue may
  // hold slots that are pending no more.
  std::unordered_map<uint32_t, PendingState> pending_;
  std::deque<uint32_t> pending_queue_;
  std::atomic<uint64_t> pending_count_{
      0};  // release after the vector is stored, acquire by searches

  std::mutex checkpoint_mutex_;
};

}  // namespace hotkv
