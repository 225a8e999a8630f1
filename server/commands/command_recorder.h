// CommandRecorder: what the server remembers of the commands that ran - latency histograms, slow
// log, latency spikes, errors by prefix - and the baseline that CONFIG RESETSTAT sets. The session
// calls it after each command.
//
// Counters of the engine have one writer and are never set back: RESETSTAT notes their values
// instead, and INFO subtracts them.
//
// Thread rules: Record and RecordError(worker, ...): only by that worker's thread. The rest: any
// thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/commands/command_spec.h"
#include "server/commands/command_latency.h"
#include "server/commands/latency_monitor.h"
#include "server/commands/slowlog.h"

namespace hotkv {

class Engine;

// The engine's counters at one moment, over all workers.
struct EngineCounters {
  struct Command {
    uint64_t calls = 0;
    uint64_t nanoseconds = 0;
    uint64_t rejected = 0;
    uint64_t failed = 0;
  };
  uint64_t commands = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t expired_keys = 0;
  uint64_t evicted_keys = 0;
  uint64_t error_replies = 0;
  std::vector<uint64_t> waited_ns;   // by WaitCause
  std::vector<Command> per_command;  // by command number
};
EngineCounters ReadCounters(Engine& engine);

// A command that took long enough to be remembered by itself.
struct SlowCommand {
  const CommandSpec* spec = nullptr;
  Args args;
  int64_t run_ns = 0;
  int64_t waited_ns = 0;
  std::string client_addr;
  std::string client_name;
};

class CommandRecorder {
 public:
  explicit CommandRecorder(Engine& engine);

  // What INFO latencystats and LATENCY HISTOGRAM tell; while track_latency().
  void AddLatency(unsigned worker, uint32_t command, uint64_t run_ns) {
    latencies_.Add(worker, command, run_ns);
  }
  // True when RecordSlow is to be called.
  bool NeedsAttention(int64_t run_ns) const {
    return run_ns >= attention_ns_.load(std::memory_order_relaxed);
  }
  // The slow log's number of it; none where only the latency monitor wants it.
  std::optional<uint64_t> RecordSlow(const SlowCommand& command);
  // prefix: "ERR", "WRONGTYPE", ... At most kErrorPrefixesMax different ones are told apart.
  void RecordError(unsigned worker, std::string_view prefix);

  // --- settings ---
  void SetSlowerThan(int64_t microseconds);  // negative: no slow log; 0: every command
  void SetMonitorThreshold(int64_t milliseconds);
  void SetTrackLatency(bool on) { track_latency_.store(on, std::memory_order_relaxed); }
  bool track_latency() const { return track_latency_.load(std::memory_order_relaxed); }
  void SetPercentiles(std::vector<double> percentiles);
  std::vector<double> percentiles() const;

  Slowlog& slowlog() { return slowlog_; }
  LatencyMonitor& monitor() { return monitor_; }
  const CommandLatencies& latencies() const { return latencies_; }
  std::map<std::string, uint64_t, std::less<>> Errors() const;  // by prefix, since the last reset

  // CONFIG RESETSTAT's part.
  void Reset(const EngineCounters& now);
  // Counters since the last reset.
  EngineCounters Since(const EngineCounters& now) const;

 private:
  static constexpr size_t kErrorPrefixesMax = 128;
  struct alignas(64) WorkerErrors {
    mutable std::mutex mutex;
    std::map<std::string, uint64_t, std::less<>> counts;  // guarded by mutex
  };
  void UpdateAttention();

  const unsigned workers_;
  std::atomic<bool> track_latency_{true};
  std::atomic<int64_t> attention_ns_{10'000'000};  // the lower of the two thresholds
  std::atomic<int64_t> slower_than_us_{10'000};
  Slowlog slowlog_;
  LatencyMonitor monitor_;
  CommandLatencies latencies_;
  std::unique_ptr<WorkerErrors[]> errors_;
  mutable std::mutex mutex_;
  std::vector<double> percentiles_{50, 99, 99.9};  // guarded by mutex_
  EngineCounters baseline_;                        // guarded by mutex_
};

}  // namespace hotkv
