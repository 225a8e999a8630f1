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
#include "index/quant/rotation.h"

namespace hotkv {

struct RawKernels {
  // Any length, any alignment.
  float (*f32_dot)(const float* a, const float* b, size_t n);
  float (*f32_l2)(const float* a, const float* b, size_t n);  // squared
  void (*f32_dot4)(const float* q, const float* const* rows, size_t n, float* out);
  void (*f32_l2_4)(const float* q, const float* const* rows, size_t n, float* out);
  // Rows of IEEE half floats.
  float (*f16_dot)(const float* q, const uint16_t* row, size_t n);
  float (*f16_l2)(const float* q, const uint16_t* row, size_t n);
  void (*f16_encode)(const float* x, size_t n, uint16_t* out);
  // n a multiple of 128; sums of code times query byte. Layout of codes: quant_inl.h.
  int32_t (*q4_sum)(const int8_t* q, const uint8_t* codes, size_t n);
  int32_t (*q8_sum)(const int8_t* q, const uint8_t* codes, size_t n);
  void (*q4_sum4)(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out);
  void (*q8_sum4)(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out);
  // n a power of two from 16 on; scaled to keep lengths.
  void (*fht)(float* x, size_t n);
  void (*rotate)(const RotationPlan& plan, float* x);
  float (*max_abs)(const float* x, size_t n);
  int32_t (*quantize_query)(const float* x, size_t n, float inverse_step, int8_t* out);
  void (*encode_q4)(const float* x, size_t n, float inverse_step, uint8_t* out);
  void (*encode_q8)(const float* x, size_t n, float inverse_step, uint8_t* out);
  // n a multiple of 128; the sum of the query bytes whose bit is set.
  int32_t (*bin_sum)(const int8_t* q, const uint8_t* bits, size_t n);
  void (*bin_sum4)(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out);
  // A bit a component, set where it is not negative; returns the sum of the absolute values.
  float (*encode_bin)(const float* x, size_t n, uint8_t* out);
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
