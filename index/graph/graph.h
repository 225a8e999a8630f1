// Graph: the HNSW graph over rows of a SlabArray (Malkov and Yashunin 2016). Nodes are slots; what
// they are called and what their vectors mean is the caller's business.
//
// How it stays readable without locks: a node's row of links is changed by one writer at a time (a
// lock bit in its meta byte), id by id with release stores; walkers load ids with acquire and thus
// see a slightly older or newer list. A new node makes its own links on all levels before anybody
// links to it, nobody clears links that others added except to make room, and no link is dropped
// that was the last one to its target (in-degree counters).
//
// Deletion: MarkDead; walks pass through dead nodes. Repair (repair.cc) then takes them out in
// bounded steps.
//
// Thread rules: all methods by any thread, except where noted. Link, MarkDead and walks may run in
// parallel.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "index/distance/targets.h"
#include "index/graph/scratch.h"
#include "index/graph/walk.h"
#include "index/slab.h"

namespace hotkv {

struct GraphOptions {
  uint32_t m = 16;
  uint32_t ef_construction = 200;
  const Target* target = nullptr;
  SpaceKind space = SpaceKind::kF32Dot;
  SpaceParams params;
  uint32_t query_bytes = 0;  // of a query made from a row
};

class Graph {
 public:
  // `rows` is what distances are computed on; it outlives the graph.
  Graph(const GraphOptions& options, const SlabArray* rows);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // ---- nodes ----
  Status Reserve(uint32_t slots);
  // Slots that walks may meet are below this; raised by InitNode.
  uint32_t slot_limit() const { return slot_limit_.load(std::memory_order_acquire); }
  void RaiseSlotLimit(uint32_t limit);
  uint8_t meta(uint32_t slot) const {
    return meta_.At<uint8_t>(slot).load(std::memory_order_acquire);
  }
  // The slot's row has been written; nobody links to it yet.
  Status InitNode(uint32_t slot, uint32_t level);
  // Links an initialised node. `query` is its own row or something finer.
  void Link(uint32_t slot, const QueryView& query);
  void SetLive(uint32_t slot) {
    meta_.At<uint8_t>(slot).fetch_or(kMetaLive, std::memory_order_acq_rel);
  }
  // Clears the live bit for good. An unlinked node is not dead afterwards but free: the caller's to
  // reuse.
  void MarkDead(uint32_t slot);
  // Takes MarkDead back (replay only, while no repair runs). False if no link to it is left.
  bool Revive(uint32_t slot);
  // Forgets a node that was never linked, once nobody can look at it.
  void ClearNode(uint32_t slot);
  uint32_t LevelOf(uint32_t slot) const { return meta(slot) & kMetaLevelMask; }
  uint64_t dead_count() const { return dead_count_.load(std::memory_order_relaxed); }
  uint32_t top_level() const;

  // ---- walks (the caller holds a ReaderPin) ----
  struct WalkPlan {
    QueryView query;
    uint32_t ef = 0;
    uint32_t pool = 0;  // filtered walks: nodes kept to go on from; 0: a multiple of ef
    bool filtered = false;
    uint8_t meta_mask = 0;
    uint8_t meta_want = 0;
    bool (*accepts)(const void* context, uint32_t slot) = nullptr;
    const void* context = nullptr;
    const bool* stop = nullptr;  // Walk: ends early once `accepts` has set this
  };
  // The nearest nodes of the base layer; valid until the thread's next walk.
  const WalkPool& Walk(const WalkPlan& plan) const;
  // The same over the nodes that plan.accepts wants only (two_hop.cc), from the query's surroundings
  // and from `seeds`, which it wants.
  struct WalkCounts {
    uint64_t nodes = 0;  // whose links were looked at
    uint64_t distances = 0;
  };
  const WalkPool& WalkMatching(const WalkPlan& plan, std::span<const uint32_t> seeds,
                               WalkCounts* counts) const;
  // Nodes that this thread's last Walk computed distances to; reads all marks.
  uint64_t VisitedByLastWalk() const;
  void Distances(const QueryView& query, const uint32_t* slots, uint32_t count, float* out) const {
    ops_->distances(walk_graph(), query, slots, count, out);
  }
  std::vector<uint32_t> LinksOf(uint32_t slot, uint32_t level) const;

  // ---- repair (repair.cc; one thread at a time, RepairStep guards itself) ----
  // Looks at about `nodes_max` nodes; slots that are unlinked and that no reader can see are added
  // to `unlinked`. Begins a pass when none is under way: kRepair takes out the dead and then
  // connects, kConnect only gives islands a link. True while a pass is under way.
  enum class PassWanted : uint8_t { kNone, kRepair, kConnect };
  bool RepairStep(uint32_t nodes_max, PassWanted wanted, std::vector<uint32_t>* unlinked);
  // Nodes linked since the last connecting pass.
  uint64_t linked_since_connect() const {
    return linked_since_connect_.load(std::memory_order_relaxed);
  }

  // A whole connecting pass at once (a copy that nobody else uses).
  void ConnectAll();

  // ---- checks (check.cc; at rest) ----
  Status CheckInvariants() const;

  size_t link_bytes() const { return links_.bytes() + upper_.bytes(); }
  size_t other_bytes() const { return meta_.bytes() + in_degree_.bytes() + upper_at_.bytes(); }
  const Target& target() const { return *options_.target; }
  const GraphOptions& options() const { return options_; }

 private:
  friend class GraphFile;  // generations (index/file) copy and map the arrays

  // 0: no entry; else level + 1 in the high half, slot in the low one.
  static uint64_t PackEntry(uint32_t slot, uint32_t level) {
    return (uint64_t{level} + 1) << 32 | slot;
  }
  static uint32_t EntrySlot(uint64_t entry) { return static_cast<uint32_t>(entry); }
  static uint32_t EntryLevel(uint64_t entry) { return static_cast<uint32_t>(entry >> 32) - 1; }

  struct Forward {
    std::array<std::vector<uint32_t>, kLevelMax + 1> links;
    std::vector<Candidate> base;  // candidates of the base layer, best first
  };

  WalkGraph walk_graph() const;
  Scratch::Needs Needs(uint32_t ef, bool filtered) const;
  void GatherMatching(const WalkPlan& plan, uint32_t slot, uint32_t limit,
                      std::vector<uint32_t>* batch, std::vector<uint32_t>* bridges) const;
  uint32_t Width(uint32_t level) const { return level == 0 ? link_width_ : upper_width_; }
  uint32_t LinksMax(uint32_t level) const { return level == 0 ? 2 * options_.m : options_.m; }
  uint32_t* LinkRowOf(uint32_t slot, uint32_t level) const;
  uint32_t ReadRow(uint32_t slot, uint32_t level, uint32_t* out) const;
  // Under the node's lock: changes the row to hold `ids`, leaving what stays in its place.
  void WriteRow(uint32_t slot, uint32_t level, const uint32_t* ids, uint32_t count);

  void LockNode(uint32_t slot);
  void UnlockNode(uint32_t slot);

  // in-degree of the base layer; 255 stays 255
  void AddInLink(uint32_t slot);
  bool TryDropInLink(uint32_t slot);   // unless it is the last one
  uint32_t DropInLink(uint32_t slot);  // returns what is left

  bool FindForward(uint32_t slot, const QueryView& query, uint64_t entry, Forward* forward);
  std::vector<Candidate> Candidates(uint32_t slot, const QueryView& query, uint32_t level,
                                    uint32_t entry);
  std::vector<Candidate> ScanForCandidates(uint32_t slot, const QueryView& query);
  std::vector<uint32_t> SelectFrom(uint32_t slot, const std::vector<Candidate>& candidates,
                                   uint32_t select_max);
  void WriteForward(uint32_t slot, const Forward& forward);
  bool AddReverse(uint32_t node, uint32_t target, uint32_t level);
  void MakeRoom(uint32_t node, uint32_t target, uint32_t level, uint32_t* row, uint32_t count);
  // Makes some node link to `slot` whatever it takes; false if none of the candidates can.
  bool ForceInLink(uint32_t slot, const std::vector<Candidate>& candidates);
  void RaiseEntry(uint32_t slot, uint32_t level);
  std::vector<Candidate> Scored(uint32_t node, const uint32_t* ids, uint32_t count) const;

  Status AllocateUpper(uint32_t slot, uint32_t level);
  void FreeUpper(uint32_t slot);

  enum class RepairPhase : uint8_t { kIdle, kAwaitWriters, kScan, kAwaitReaders, kConnect };
  void BeginRepair();
  void ReplaceDeadEntry();
  void DetachDead();
  void Reattach(uint32_t slot);
  void RepairNode(uint32_t slot);
  void RepairLevel(uint32_t slot, uint32_t level);
  bool InPass(uint32_t slot) const { return slot < in_pass_.size() && in_pass_[slot]; }
  void KeepLastLinks(const std::vector<uint32_t>& kept, std::vector<uint32_t>* chosen);
  void FinishRepair(std::vector<uint32_t>* unlinked);
  void RequestGrace();
  void BeginConnect();
  void Meet(uint32_t slot);
  bool ConnectSome(uint32_t nodes_max);
  void FinishConnect();
  void WidenPastCopies(uint32_t slot, const QueryView& query, uint32_t level,
                       std::vector<Candidate>* candidates) const;

  Status CheckNode(uint32_t slot, std::vector<uint32_t>* in_degree) const;
  Status CheckReachable() const;

  const GraphOptions options_;
  const SpaceOps* const ops_;
  const SlabArray* const rows_;
  const uint32_t link_width_;
  const uint32_t upper_width_;

  SlabArray links_;
  SlabArray upper_at_;
  SlabArray upper_;
  SlabArray meta_;
  SlabArray in_degree_;

  std::atomic<uint64_t> entry_{0};       // release when a node becomes it, acquire by walks
  std::atomic<uint32_t> slot_limit_{0};  // release after the slot's arrays are there
  std::atomic<uint64_t> linked_since_connect_{0};  // relaxed: a hint
  std::atomic<uint64_t> dead_count_{0};            // relaxed: a statistic, and a hint for walks

  std::mutex upper_mutex_;
  std::atomic<uint32_t> upper_rows_{1};  // written under upper_mutex_; row 0 stays empty
  std::array<std::vector<uint32_t>, kLevelMax + 1> upper_free_;  // guarded by upper_mutex_

  std::mutex dead_mutex_;
  std::vector<uint32_t> dead_list_;  // guarded by dead_mutex_: dead since the last pass began

  std::mutex repair_mutex_;  // held by the thread that does a step; guards the rest
  RepairPhase phase_ = RepairPhase::kIdle;
  std::vector<uint32_t> pass_dead_;
  std::vector<bool> in_pass_;
  uint32_t pass_cursor_ = 0;
  uint32_t pass_end_ = 0;
  uint32_t connect_limit_ = 0;  // slots that the connecting pass looks at
  std::vector<bool> met_;
  std::vector<uint32_t> to_expand_;
  std::shared_ptr<std::atomic<bool>>
      grace_over_;  // shared with the reclamation domain, which may outlive the graph
};

}  // namespace hotkv
