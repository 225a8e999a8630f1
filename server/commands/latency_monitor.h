// LatencyMonitor: spikes by event ("command", "fast-command"), for LATENCY. An
// event is kept when it took at least latency-monitor-threshold milliseconds; of one second only
// the longest.
//
// Thread rules: any thread. Exceeds() is one relaxed load; the mutex is taken only for a spike and
// by LATENCY.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hotkv {

class LatencyMonitor {
 public:
  static constexpr size_t kSamplesMax = 160;  // of one event

  struct Sample {
    int64_t time_s = 0;
    int64_t milliseconds = 0;
  };
  struct Event {
    std::string name;
    int64_t milliseconds_max = 0;  // ever since the last reset
    std::vector<Sample> samples;   // oldest first
  };

  // 0: off.
  void SetThreshold(int64_t milliseconds) {
    threshold_ms_.store(milliseconds, std::memory_order_relaxed);
  }
  int64_t threshold_ms() const { return threshold_ms_.load(std::memory_order_relaxed); }
  bool Exceeds(int64_t milliseconds) const {
    const int64_t threshold = threshold_ms();
    return threshold > 0 && milliseconds >= threshold;
  }

  // Keeps the sample when it exceeds the threshold.
  void Add(std::string_view event, int64_t milliseconds, int64_t now_s);

  std::vector<Event> Events() const;  // in order of name
  // No samples: there is no such event.
  Event Find(std::string_view event) const;
  // How many events were forgotten. An empty name: all.
  size_t Reset(std::string_view event);

 private:
  std::atomic<int64_t> threshold_ms_{0};
  mutable std::mutex mutex_;
  std::map<std::string, Event, std::less<>> events_;  // guarded by mutex_
};

// "event - high 120 ms, low 3 ms (all time high 500 ms)", a rule, and a chart of the samples,
// newest right.
std::string LatencyGraph(const LatencyMonitor::Event& event, int64_t now_s);
// What LATENCY DOCTOR says.
std::string LatencyReport(const std::vector<LatencyMonitor::Event>& events, int64_t threshold_ms,
                          int64_t now_s);

}  // namespace hotkv
