// PendingShutdown: the SHUTDOWN that waits for its snapshot, so that SHUTDOWN ABORT can take it
// back. A later attempt takes the place of an earlier one.
//
// Thread rules: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace hotkv {

class PendingShutdown {
 public:
  uint64_t Begin() {
    const uint64_t attempt = next_.fetch_add(1, std::memory_order_relaxed);
    pending_.store(attempt, std::memory_order_relaxed);
    return attempt;
  }
  bool Holds(uint64_t attempt) const { return pending_.load(std::memory_order_relaxed) == attempt; }
  bool any() const { return pending_.load(std::memory_order_relaxed) != 0; }
  // False when there is none.
  bool Abort() { return pending_.exchange(0, std::memory_order_relaxed) != 0; }

 private:
  std::atomic<uint64_t> next_{1};
  std::atomic<uint64_t> pending_{0};  // 0: none
};

}  // namespace hotkv
