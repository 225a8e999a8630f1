// PendingShutdown: the SHUTDOWN that waits for its snapshot. It belongs to the server, not to the
// client that asked: that one may have gone before the snapshot ends. SHUTDOWN ABORT takes it back;
// a later attempt takes the place of an earlier one.
//
// Thread rules: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace hotkv {

class PendingShutdown {
 public:
  enum class Step : uint8_t { kWait, kStop, kGiveUp };
  // `step` says how far the snapshot is; called under a mutex, so it must not come back here.
  uint64_t Begin(std::function<Step()> step) {
    const std::lock_guard<std::mutex> lock(mutex_);
    step_ = std::move(step);
    return attempt_ = ++last_;
  }
  // Asked ten times a second and by the client that waits. True once: the server is to stop now.
  bool Advance() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (attempt_ == 0 || step_ == nullptr) return false;
    const Step step = step_();
    if (step == Step::kGiveUp) attempt_ = 0;
    if (step != Step::kWait) step_ = nullptr;
    return step == Step::kStop;
  }
  // Still waits, or stops the server already.
  bool Holds(uint64_t attempt) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return attempt_ == attempt;
  }
  // False when there is none.
  bool Abort() {
    const std::lock_guard<std::mutex> lock(mutex_);
    step_ = nullptr;
    return std::exchange(attempt_, 0) != 0;
  }

 private:
  mutable std::mutex mutex_;
  std::function<Step()> step_;  // guarded by mutex_; empty: none, or the server stops already
  uint64_t attempt_ = 0;        // guarded by mutex_; 0: none
  uint64_t last_ = 0;           // guarded by mutex_
};

}  // namespace hotkv
