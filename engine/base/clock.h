// HotKV's clock: wall time at start plus monotonic time since, so that a step of the system's clock neither expires
// everything nor keeps it for ever. Follow() moves it, slowly checked, when the two have differed for a while.
//
// Thread rules: all functions from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace hotkv {

inline constexpr int64_t kMicrosPerMilli = 1000;

class Clock {
 public:
  // Microseconds since the Unix epoch.
  static int64_t NowUs();
  static int64_t NowMs() { return NowUs() / kMicrosPerMilli; }
  // Monotonic nanoseconds from an arbitrary start.
  static int64_t MonotonicNs();
  // The system's wall clock minus this one, in microseconds.
  static int64_t DriftUs();
  // Moves this clock by delta_us.
  static void Shift(int64_t delta_us);

 private:
  static std::atomic<int64_t> offset_us_;  // wall minus monotonic
};

}  // namespace hotkv
