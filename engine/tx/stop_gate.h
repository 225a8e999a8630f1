// The stop word: one thread gets the whole keyspace for itself, without taking thousands of stripe locks.
//
// A worker is inside the gate while it executes commands (Enter at the start of a turn's execution, Leave before it
// sleeps or waits). Stop waits until every other worker is outside and keeps them there until Resume. A big-reader lock:
// entering costs one store to the worker's own cache line.
//
// Thread rules: Enter/Leave/Poll by worker `w` only for itself. Stop may be called by a worker that is inside (it leaves
// while it waits for another stopper, so it must hold no stripe lock) or by any other thread (kOutsider).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace hotkv {

class StopGate {
 public:
  static constexpr unsigned kOutsider = ~0u;

  explicit StopGate(unsigned workers)
      : workers_(workers), inside_(std::make_unique<Flag[]>(workers)) {}

  // True when it had to wait.
  bool Enter(unsigned worker) {
    // seq_cst on both sides: either Stop sees this worker inside, or the worker sees the stop word.
    inside_[worker].value.store(1, std::memory_order_seq_cst);
    if (!stop_.load(std::memory_order_seq_cst)) [[likely]]
      return false;
    EnterSlow(worker);
    return true;
  }
  void Leave(unsigned worker) {
    inside_[worker].value.store(0, std::memory_order_seq_cst);
    if (stop_.load(std::memory_order_seq_cst)) [[unlikely]] WakeStopper();
  }
  // Between batches: gives way to a stopper.
  void Poll(unsigned worker) {
    if (stop_.load(std::memory_order_relaxed)) [[unlikely]] {
      Leave(worker);
      Enter(worker);
    }
  }

  bool IsInside(unsigned worker) const {
    return inside_[worker].value.load(std::memory_order_relaxed) != 0;
  }

  // On return no other worker is inside. `worker`: the caller's number, which must be inside, or kOutsider.
  void Stop(unsigned worker);
  void Resume();

 private:
  struct alignas(64) Flag {
    std::atomic<uint32_t> value{0};
  };
  void EnterSlow(unsigned worker);
  void WakeStopper();
  bool AllOutside(unsigned except) const;

  const unsigned workers_;
  std::unique_ptr<Flag[]> inside_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;  // guarded by mutex_: somebody stops or has stopped
};

}  // namespace hotkv
