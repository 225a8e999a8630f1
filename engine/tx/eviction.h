// Eviction: while more memory is used than maxmemory allows, keys go that the policy picks out of a few looked at.
//
// Whoever measures memory says by how much it is over (SetExcess); workers evict between turns and before each command
// that needs memory, and take off what they have freed. A key is chosen by sampling: `samples` entries of one or more
// stripes, the worst of them goes. Idle time is the entry's access clock, so it is known to 8 s and comes round after 35
// minutes. Frequency is a logarithmic counter in the same byte; it ages when entries are sampled (after GCLOCK, Smith 1978), so
// it falls as fast as room is needed.
//
// Evicting is a delete like any other: an effect in the log, seen by WATCH.
//
// Thread rules: Evict by a worker inside the stop gate, with no lock held and no transaction begun. The rest: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/store/keyspace.h"

namespace hotkv {

class Engine;
struct WorkerState;

enum class EvictionRank : uint8_t { kNone, kLeastRecent, kLeastFrequent, kRandom, kNearestExpiry };

class Eviction {
 public:
  explicit Eviction(Engine* engine) : engine_(engine) {}

  // rank kNone: nothing is evicted. volatile_only: only keys with an expiry.
  struct Settings {
    EvictionRank rank = EvictionRank::kNone;
    bool volatile_only = false;
    unsigned samples = 5;
    unsigned lfu_log_factor = 10;
  };
  void Configure(const Settings& settings);
  void SetExcess(int64_t bytes) { excess_.store(bytes, std::memory_order_relaxed); }

  bool due() const { return excess_.load(std::memory_order_relaxed) > 0; }
  bool may_run() const;  // not while the log is behind, the disk has failed or data is being loaded
  // Up to keys_max keys, fewer when there is room again. Returns how many; 0 while due: nothing can be evicted.
  size_t Evict(WorkerState& worker, size_t keys_max);

  // The counter of a new entry, and what becomes of one at an access (Redis's formula with lfu-log-factor).
  static constexpr uint8_t kNewFrequency = 5;
  uint8_t Accessed(uint8_t counter, uint64_t random) const;

 private:
  struct Candidate {
    bool found = false;
    uint64_t score = 0;  // the highest goes
    uint32_t db = 0;
    std::string key;
  };
  bool EvictOne(WorkerState& worker);
  Candidate Sample(WorkerState& worker, uint32_t chunks_max);
  void SampleTable(WorkerState& worker, Table& table, uint32_t db, uint32_t chunks_max, unsigned* left,
                   Candidate* best);
  void Consider(WorkerState& worker, uint32_t db, Entry& entry, Candidate* best) const;
  uint64_t ScoreOf(WorkerState& worker, Entry& entry) const;

  Engine* const engine_;
  std::atomic<int64_t> excess_{0};
  std::atomic<EvictionRank> rank_{EvictionRank::kNone};
  std::atomic<bool> volatile_only_{false};
  std::atomic<unsigned> samples_{5};
  std::atomic<unsigned> lfu_log_factor_{10};
};

}  // namespace hotkv
