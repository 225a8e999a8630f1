#include "engine/base/clock.h"

#include <ctime>

namespace hotkv {

namespace {

int64_t ReadNs(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

int64_t WallMinusMonotonicUs() { return (ReadNs(CLOCK_REALTIME) - ReadNs(CLOCK_MONOTONIC)) / 1000; }

}  // namespace

std::atomic<int64_t> Clock::offset_us_{WallMinusMonotonicUs()};

int64_t Clock::MonotonicNs() { return ReadNs(CLOCK_MONOTONIC); }

int64_t Clock::NowUs() {
  return ReadNs(CLOCK_MONOTONIC) / 1000 + offset_us_.load(std::memory_order_relaxed);
}

int64_t Clock::DriftUs() {
  return WallMinusMonotonicUs() - offset_us_.load(std::memory_order_relaxed);
}

void Clock::Shift(int64_t delta_us) { offset_us_.fetch_add(delta_us, std::memory_order_relaxed); }

}  // namespace hotkv
