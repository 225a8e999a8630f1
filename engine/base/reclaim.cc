#include "engine/base/reclaim.h"

#include "engine/base/check.h"

namespace hotkv {

ReclaimDomain::ReclaimDomain() : slots_(std::make_unique<Slot[]>(kSlotsMax)) {}

ReclaimDomain::~ReclaimDomain() {
  for (Retired& item : retired_) item.free();
}

unsigned ReclaimDomain::Register() {
  for (unsigned i = 0; i < kSlotsMax; ++i) {
    bool expected = false;
    if (slots_[i].used.compare_exchange_strong(expected, true, std::memory_order_acq_rel)) return i;
  }
  HOTKV_CHECK(false && "more threads than reclamation slots");
  return 0;
}

void ReclaimDomain::Unregister(unsigned slot) {
  slots_[slot].pinned.store(0, std::memory_order_release);
  slots_[slot].used.store(false, std::memory_order_release);
}

void ReclaimDomain::Retire(std::function<void()> free) {
  std::lock_guard<std::mutex> lock(mutex_);
  retired_.push_back({global_.load(std::memory_order_seq_cst), std::move(free)});
  pending_.store(retired_.size(), std::memory_order_relaxed);
}

uint64_t ReclaimDomain::OldestPinned() const {
  uint64_t oldest = UINT64_MAX;
  for (unsigned i = 0; i < kSlotsMax; ++i) {
    const uint64_t pinned = slots_[i].pinned.load(std::memory_order_seq_cst);
    if (pinned != 0 && pinned < oldest) oldest = pinned;
  }
  return oldest;
}

void ReclaimDomain::Collect() {
  if (empty()) return;
  std::vector<std::function<void()>> ready;
  {
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    // A reader that pins from now on sees the new reclaim epoch and cannot reach what was retired before.
    global_.fetch_add(1, std::memory_order_seq_cst);
    const uint64_t oldest = OldestPinned();
    while (!retired_.empty() && retired_.front().at < oldest) {
      ready.push_back(std::move(retired_.front().free));
      retired_.pop_front();
    }
    pending_.store(retired_.size(), std::memory_order_relaxed);
  }
  for (auto& free : ready) free();
}

}  // namespace hotkv
