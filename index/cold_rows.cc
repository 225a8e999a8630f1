#include "index/cold_rows.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "engine/base/cycle_clock.h"

namespace hotkv {

namespace {

constexpr uintptr_t kPage = 4096;
// A reading that takes longer has waited for a device, or the thread was preempted: a row in memory comes at more than a
// byte a nanosecond.
constexpr uint64_t kWarmNs = 30'000;
// Readings in a row without a wait until rows are not asked for any more.
constexpr uint32_t kColdReadings = 64;

// Neighbours are asked for together up to this much, so that the first ones arrive early.
constexpr uintptr_t kAskBytesMax = uintptr_t{1} << 20;

struct Learnt {
  uint32_t cold_readings = 0;
  long major_faults = 0;
};
thread_local Learnt learnt;

// Of this thread, since it began.
long MajorFaults() {
  rusage usage = {};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_majflt : 0;
}

}  // namespace

ColdRows::ColdRows(const SlabArray* rows_or_null, size_t row_bytes)
    : rows_(rows_or_null),
      row_bytes_(row_bytes),
      cold_(rows_or_null != nullptr && learnt.cold_readings != 0) {
  if (rows_ != nullptr) begin_ = CycleNow();
}

void ColdRows::Ask(uint32_t slot) {
  const auto row = reinterpret_cast<uintptr_t>(rows_->Row(slot));
  const uintptr_t from = row / kPage * kPage;
  const uintptr_t to = row + row_bytes_;
  const bool joins = to_ != 0 && from >= from_ && from <= to_ + kPage && to > to_ && to - from_ <= kAskBytesMax;
  if (joins) {
    to_ = to;
    return;
  }
  Send();
  from_ = from;
  to_ = to;
}

void ColdRows::Send() {
  // Only advice: where it is refused, the faults come one by one.
  if (to_ != 0) madvise(reinterpret_cast<void*>(from_), to_ - from_, MADV_WILLNEED);
  from_ = to_ = 0;
}

void ColdRows::Learn() {
  if (CyclesToNs(CycleNow() - begin_) <= kWarmNs + read_ * row_bytes_) [[likely]] {
    if (learnt.cold_readings != 0) --learnt.cold_readings;
    return;
  }
  // Rows that were asked for arrive without a major fault.
  const long faults = MajorFaults();
  if (cold_ || faults > learnt.major_faults) learnt.cold_readings = kColdReadings;
  learnt.major_faults = faults;
}

}  // namespace hotkv
