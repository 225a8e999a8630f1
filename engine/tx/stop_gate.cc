#include "engine/tx/stop_gate.h"

namespace hotkv {

bool StopGate::AllOutside(unsigned except) const {
  for (unsigned i = 0; i < workers_; ++i) {
    if (i != except && inside_[i].value.load(std::memory_order_seq_cst) != 0) return false;
  }
  return true;
}

void StopGate::WakeStopper() {
  std::lock_guard<std::mutex> lock(mutex_);
  changed_.notify_all();
}

void StopGate::EnterSlow(unsigned worker) {
  std::unique_lock<std::mutex> lock(mutex_);
  inside_[worker].value.store(0, std::memory_order_seq_cst);
  changed_.notify_all();
  changed_.wait(lock, [this] { return !stopped_; });
  // Under the mutex no new stopper can begin before this store is seen.
  inside_[worker].value.store(1, std::memory_order_seq_cst);
}

void StopGate::Stop(unsigned worker) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (stopped_ && worker != kOutsider) {
    // Another one is first: let it have this worker, or both would wait for each other.
    inside_[worker].value.store(0, std::memory_order_seq_cst);
    changed_.notify_all();
  }
  changed_.wait(lock, [this] { return !stopped_; });
  stopped_ = true;
  if (worker != kOutsider) inside_[worker].value.store(1, std::memory_order_seq_cst);
  stop_.store(true, std::memory_order_seq_cst);
  changed_.wait(lock, [this, worker] { return AllOutside(worker); });
}

void StopGate::Resume() {
  std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = false;
  stop_.store(false, std::memory_order_seq_cst);
  changed_.notify_all();
}

}  // namespace hotkv
