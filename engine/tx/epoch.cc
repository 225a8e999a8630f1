#include "engine/tx/epoch.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "engine/base/sync_point.h"

namespace hotkv {

EpochClock::EpochClock(unsigned workers, uint64_t first_epoch)
    : current_(first_epoch),
      written_(first_epoch - 1),
      durable_(first_epoch - 1),
      released_(first_epoch - 1),
      slots_(workers) {
  HOTKV_CHECK(first_epoch >= 1);
}

uint64_t EpochClock::Close() {
  const uint64_t epoch = current_.load(std::memory_order_relaxed);
  HOTKV_CHECK(released_ + 1 == epoch);
  pending_bytes_hint_.store(0, std::memory_order_relaxed);
  current_.store(epoch + 1, std::memory_order_seq_cst);
  HOTKV_SYNC_POINT("epoch.closed");
  for (Slot& slot : slots_) {
    for (unsigned spins = 0;; ++spins) {
      const uint64_t inside = slot.inside.load(std::memory_order_seq_cst);
      if (inside == 0 || inside > epoch) break;
      if (spins < 64) continue;
      // The worker may have been preempted inside: its span is a few instructions once it runs again.
      timespec pause{0, 50'000};
      nanosleep(&pause, nullptr);
    }
  }
  return epoch;
}

void EpochClock::Release(uint64_t epoch) {
  HOTKV_CHECK(released_ + 1 == epoch);
  for (Slot& slot : slots_) {
    EffectBuffer& buffer = slot.buffers[epoch & 1];
    buffer.Clear();
    // A burst must not pin its memory for ever.
    if (buffer.bytes.capacity() > 4 * kHandOverBytes) buffer.bytes.Free();
  }
  released_ = epoch;
}

void EpochClock::NoteLarge(size_t bytes_in_buffer) {
  if (bytes_in_buffer >= kWaitBytes) SetWritesWait(true);
  if (CurrentIsFull()) return;
  pending_bytes_hint_.store(kHintFull, std::memory_order_relaxed);
  WakeWriter();
}

void EpochClock::WaitForWork(int64_t timeout_us, bool until_effects) {
  const uint32_t seen = wake_word_.load(std::memory_order_acquire);
  if (wake_requested_.exchange(false, std::memory_order_acq_rel)) return;
  if (until_effects) {
    writer_asleep_.store(true, std::memory_order_seq_cst);
    // A worker that stored its hint before this load may not have seen us asleep.
    if (pending_bytes_hint_.load(std::memory_order_seq_cst) != 0) timeout_us = 0;
  }
  if (timeout_us > 0) {
    timespec timeout{timeout_us / 1'000'000, (timeout_us % 1'000'000) * 1000};
    syscall(SYS_futex, &wake_word_, FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
  }
  if (until_effects) writer_asleep_.store(false, std::memory_order_relaxed);
  wake_requested_.exchange(false, std::memory_order_acquire);  // pairs with WakeWriter's release
}

void EpochClock::WakeWriter() {
  wake_requested_.store(true, std::memory_order_release);
  wake_word_.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &wake_word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace hotkv
