// A one-word lock for spans of well under a microsecond. Spins briefly, then yields the CPU, so that a preempted holder
// on a machine with few cores gets it back.
//
// Thread rules: never held over I/O, a sleep or another lock of a lower order (docs/threads.md).
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace hotkv {

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class SpinLock {
 public:
  void Lock() {
    if (TryLock()) return;
    LockSlow();
  }
  bool TryLock() {
    return word_.load(std::memory_order_relaxed) == 0 &&
           word_.exchange(1, std::memory_order_acquire) == 0;
  }
  void Unlock() { word_.store(0, std::memory_order_release); }
  bool is_locked() const { return word_.load(std::memory_order_relaxed) != 0; }

 private:
  void LockSlow() {
    for (unsigned spins = 0;; ++spins) {
      if (TryLock()) return;
      if (spins < 100) {
        CpuRelax();
      } else {
        sched_yield();
      }
    }
  }
  std::atomic<uint32_t> word_{0};
};

class SpinLockGuard {
 public:
  explicit SpinLockGuard(SpinLock& lock) : lock_(lock) { lock_.Lock(); }
  ~SpinLockGuard() { lock_.Unlock(); }
  SpinLockGuard(const SpinLockGuard&) = delete;
  SpinLockGuard& operator=(const SpinLockGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace hotkv
