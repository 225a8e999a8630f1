// CPU targets: one file each (kernels_*.cc), compiled for that CPU, chosen at run time. A target
// has raw kernels (held against the plain ones by a test) and for each space the walk's loops built
// on them.
//
// Thread rules: constant after start, except OverrideTarget, which tests call while no index is in
// use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "index/graph/walk.h"

namespace hotkv {

struct RawKernels {
  // Any length, any alignment.
  float (*f32_dot)(const float* a, const float* b, size_t n);
  float (*f32_l2)(const float* a, const float* b, size_t n);  // squared
  void (*f32_dot4)(const float* q, const float* const* rows, size_t n, float* out);
  void (*f32_l2_4)(const float* q, const float* const* rows, size_t n, float* out);
};

struct Target {
  const char* name;
  bool (*supported)();
  RawKernels raw;
  const SpaceOps* spaces[static_cast<size_t>(SpaceKind::kCount)];
};

// Compiled in, best first; not all need run on this CPU.
std::span<const Target* const> AllTargets();
// The best one that runs here, or the overridden one.
const Target& CurrentTarget();
// Used by indexes made from now on; false when unknown or not supported here. An empty name ends
// the override.
bool OverrideTarget(std::string_view name);

inline const SpaceOps& OpsOf(const Target& target, SpaceKind kind) {
  return *target.spaces[static_cast<size_t>(kind)];
}

}  // namespace hotkv
