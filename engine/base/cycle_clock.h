// The CPU's time stamp counter, for durations of commands: an order of magnitude cheaper than a clock read.
//
// Thread rules: any thread; counters of different cores agree on the machines that HotKV runs on (invariant TSC).
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include "engine/base/clock.h"
#endif

namespace hotkv {

inline uint64_t CycleNow() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(Clock::MonotonicNs());
#endif
}

// Nanoseconds a cycle: measured over a few milliseconds by the first call, the same for all.
double NanosecondsPerCycle();

inline uint64_t CyclesToNs(uint64_t cycles) {
  // Fixed point: a conversion to double and back costs more than the counter's read.
  static const auto factor = static_cast<uint64_t>(NanosecondsPerCycle() * 4294967296.0);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(cycles) * factor) >> 32);
}

}  // namespace hotkv
