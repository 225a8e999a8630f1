// ServerGauges: figures of the server that have to be sampled - commands and bytes a second, memory
// in use and its peak - and the decision that follows from the last: over maxmemory keys are evicted
// or commands that need memory are refused, as maxmemory-policy says. Without maxmemory they are
// refused near the limit of the control group, before the kernel kills the process.
//
// Memory in use is counted, not asked of the allocator: entries and values, tables, objects,
// buffers of clients and log. Files that are mapped (vectors of an index) do not count, since the
// kernel takes them back when it needs memory.
//
// Thread rules: Tick by one worker, ten times a second. The rest by any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace hotkv {

class Engine;
class Server;
class Settings;

struct MemoryUse {
  uint64_t entries = 0;  // keys and values in their blocks
  uint64_t tables = 0;
  uint64_t objects = 0;  // large values and vector indexes
  uint64_t stripes = 0;
  uint64_t clients = 0;  // connections and their buffers
  uint64_t log = 0;      // effects that are not written yet
  uint64_t keys = 0;

  uint64_t dataset() const { return entries + objects; }
  uint64_t overhead() const { return tables + stripes + clients + log; }
  uint64_t total() const { return dataset() + overhead(); }
};

// Takes each stripe's lock for a moment.
MemoryUse MeasureMemory(Server& server);

class ServerGauges {
 public:
  explicit ServerGauges(Server& server) : server_(server) {}

  void Tick(int64_t now_ms);
  // Takes the settings of memory over, at once.
  void ApplyMemoryLimit(const Settings& settings);
  // For tests: where /proc and /sys are looked for.
  void SetGroupRoot(std::string root);

  struct Rates {
    uint64_t commands_per_second = 0;
    double input_kib_per_second = 0;
    double output_kib_per_second = 0;
  };
  Rates rates() const;
  // Notes the peak on the way.
  MemoryUse Memory();
  uint64_t memory_peak() const { return memory_peak_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kSamples = 16;
  static constexpr int64_t kTickMs = 100;
  static constexpr uint64_t kGroupPercent = 90;  // of the control group's limit
  static constexpr unsigned kGroupTicks = 5;     // ticks from look to look at it
  struct Counters {
    uint64_t commands = 0;
    uint64_t input_bytes = 0;
    uint64_t output_bytes = 0;
  };
  Counters ReadNow() const;
  void CheckMemoryLimit();
  void CheckGroupLimit();
  void Deny(bool denied, std::string_view why);

  Server& server_;
  std::atomic<uint64_t> memory_peak_{0};
  mutable std::mutex mutex_;
  Counters last_;                             // guarded by mutex_
  int64_t last_ms_ = 0;                       // guarded by mutex_
  std::array<Counters, kSamples> samples_{};  // a second's worth each; guarded by mutex_
  size_t next_sample_ = 0;                    // guarded by mutex_
  std::string group_root_;                    // guarded by mutex_
  std::atomic<int64_t> limit_{0};             // maxmemory
  std::atomic<bool> evicts_{false};           // maxmemory-policy is not noeviction
  std::atomic<unsigned> group_ticks_{0};
};

}  // namespace hotkv
