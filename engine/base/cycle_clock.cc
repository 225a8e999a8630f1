#include "engine/base/cycle_clock.h"

#include "engine/base/clock.h"

namespace hotkv {

namespace {

struct Moment {
  int64_t ns = 0;
  uint64_t cycles = 0;
};

// Both clocks at one moment: of some tries the one with the least between the reads, since a thread that is preempted
// there would have the counter's rate wrong for as long as the process lives.
Moment Now() {
  constexpr int kTries = 8;
  Moment best;
  int64_t best_gap_ns = INT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const int64_t before_ns = Clock::MonotonicNs();
    const uint64_t cycles = CycleNow();
    const int64_t gap_ns = Clock::MonotonicNs() - before_ns;
    if (gap_ns >= best_gap_ns) continue;
    best_gap_ns = gap_ns;
    best = {before_ns + gap_ns / 2, cycles};
  }
  return best;
}

double Measure() {
  constexpr int64_t kMeasureNs = 2'000'000;
  const Moment start = Now();
  while (Clock::MonotonicNs() - start.ns < kMeasureNs) {
  }
  const Moment end = Now();
  const uint64_t cycles = end.cycles - start.cycles;
  return cycles == 0 ? 1.0 : static_cast<double>(end.ns - start.ns) / static_cast<double>(cycles);
}

}  // namespace

double NanosecondsPerCycle() {
  static const double measured = Measure();
  return measured;
}

}  // namespace hotkv
