// Elements that end by themselves: the order of their ends, and the index's clock.
//
// An element past its time is there until it is removed like any other, with an effect; until then
// every lookup passes it over. So a lookup needs to know only whether anything is due at all.
//
// Thread rules: next_ms and NowMs from any thread; the rest under VectorIndex's names_mutex_.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace hotkv {

class ExpiryBook {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // Milliseconds since the Unix epoch.
  static int64_t NowMs();
  // 0: the real time again.
  static void OverrideNowForTest(int64_t now_ms);

  // The earliest end; kNever without one.
  int64_t next_ms() const { return next_ms_.load(std::memory_order_acquire); }
  bool AnyDue() const {
    const int64_t next = next_ms();
    return next != kNever && next <= NowMs();
  }
  // Until which moment an element counts as ended: 0 when none has.
  int64_t DueMs() const {
    const int64_t next = next_ms();
    if (next == kNever) return 0;
    const int64_t now = NowMs();
    return next <= now ? now : 0;
  }

  void Add(int64_t at_ms, uint32_t slot) {
    order_.emplace(at_ms, slot);
    Publish();
  }
  void Remove(int64_t at_ms, uint32_t slot) {
    order_.erase({at_ms, slot});
    Publish();
  }
  uint64_t size() const { return order_.size(); }
  size_t bytes() const { return order_.size() * kNodeBytes; }
  uint64_t CountDue(int64_t now_ms) const;
  // Slots whose time has come, the earliest first.
  std::vector<uint32_t> Due(int64_t now_ms, size_t max) const;

 private:
  static constexpr size_t kNodeBytes = 64;
  void Publish() {
    next_ms_.store(order_.empty() ? kNever : order_.begin()->first, std::memory_order_release);
  }
  std::set<std::pair<int64_t, uint32_t>> order_;
  std::atomic<int64_t> next_ms_{kNever};
};

}  // namespace hotkv
