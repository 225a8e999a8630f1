#include "index/expiry.h"

#include "engine/base/clock.h"

namespace hotkv {

namespace {
std::atomic<int64_t> override_ms{0};  // relaxed: set by a test between calls
}  // namespace

int64_t ExpiryBook::NowMs() {
  const int64_t fixed = override_ms.load(std::memory_order_relaxed);
  return fixed != 0 ? fixed : Clock::NowMs();
}

void ExpiryBook::OverrideNowForTest(int64_t now_ms) {
  override_ms.store(now_ms, std::memory_order_relaxed);
}

uint64_t ExpiryBook::CountDue(int64_t now_ms) const {
  uint64_t count = 0;
  for (auto at = order_.begin(); at != order_.end() && at->first <= now_ms; ++at) ++count;
  return count;
}

std::vector<uint32_t> ExpiryBook::Due(int64_t now_ms, size_t max) const {
  std::vector<uint32_t> slots;
  for (auto at = order_.begin(); at != order_.end() && at->first <= now_ms; ++at) {
    if (slots.size() == max) break;
    slots.push_back(at->second);
  }
  return slots;
}

}  // namespace hotkv
