#include "index/distance/targets.h"

#include <atomic>

namespace hotkv {

namespace target_scalar {
extern const Target kTarget;
}
#if defined(__x86_64__)
namespace target_avx2 {
extern const Target kTarget;
}
namespace target_avx512 {
extern const Target kTarget;
}
#endif
#if defined(__aarch64__)
namespace target_neon {
extern const Target kTarget;
}
#endif

namespace {

constexpr const Target* kTargets[] = {
#if defined(__x86_64__)
    &target_avx512::kTarget,
    &target_avx2::kTarget,
#endif
#if defined(__aarch64__)
    &target_neon::kTarget,
#endif
    &target_scalar::kTarget,
};

// Null: the best one. Relaxed: set by tests before they make an index.
std::atomic<const Target*> override_or_null{nullptr};

const Target& Best() {
  static const Target& best = []() -> const Target& {
    for (const Target* target : kTargets) {
      if (target->supported()) return *target;
    }
    return target_scalar::kTarget;
  }();
  return best;
}

}  // namespace

std::span<const Target* const> AllTargets() { return kTargets; }

const Target& CurrentTarget() {
  const Target* forced = override_or_null.load(std::memory_order_relaxed);
  return forced != nullptr ? *forced : Best();
}

bool OverrideTarget(std::string_view name) {
  if (name.empty()) {
    override_or_null.store(nullptr, std::memory_order_relaxed);
    return true;
  }
  for (const Target* target : kTargets) {
    if (name != target->name || !target->supported()) continue;
    override_or_null.store(target, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace hotkv
