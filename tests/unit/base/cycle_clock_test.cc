// The cycle counter against the monotonic clock.
#include <catch2/catch.hpp>

#include <chrono>
#include <thread>

#include "engine/base/clock.h"
#include "engine/base/cycle_clock.h"

namespace hotkv {
namespace {

TEST_CASE("a cycle is measured once, and is as long as the clock says") {
  const double per_cycle = NanosecondsPerCycle();
  CHECK(NanosecondsPerCycle() == per_cycle);
  // The counter's interval lies between the two of the clock, however late this thread comes to run.
  const int64_t outer_begin = Clock::MonotonicNs();
  const uint64_t begin = CycleNow();
  const int64_t inner_begin = Clock::MonotonicNs();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const int64_t inner_end = Clock::MonotonicNs();
  const uint64_t cycles = CycleNow() - begin;
  const int64_t outer_end = Clock::MonotonicNs();
  const auto ns = static_cast<double>(CyclesToNs(cycles));
  CHECK(ns >= 0.98 * static_cast<double>(inner_end - inner_begin));
  CHECK(ns <= 1.02 * static_cast<double>(outer_end - outer_begin));
  CHECK(ns == Approx(static_cast<double>(cycles) * per_cycle).epsilon(1e-6));
}

}  // namespace
}  // namespace hotkv
