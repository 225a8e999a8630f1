#include "engine/base/cycle_clock.h"

#include "engine/base/clock.h"

namespace hotkv {

double NanosecondsPerCycle() {
  constexpr int64_t kMeasureNs = 2'000'000;
  const int64_t start_ns = Clock::MonotonicNs();
  const uint64_t start = CycleNow();
  int64_t now_ns = start_ns;
  while (now_ns - start_ns < kMeasureNs) now_ns = Clock::MonotonicNs();
  const uint64_t cycles = CycleNow() - start;
  return cycles == 0 ? 1.0 : static_cast<double>(now_ns - start_ns) / static_cast<double>(cycles);
}

}  // namespace hotkv
