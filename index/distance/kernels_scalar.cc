// Plain C++: the reference that every other target is held against, and what runs where no other
// does.
#include "index/distance/targets.h"

#define HOTKV_F32_PREFETCH_LINES 8u

namespace hotkv::target_scalar {
namespace {

// Four partial sums: less rounding error than one, and the compiler may use what vectors the
// baseline has.
float F32Dot(const float* a, const float* b, size_t n) {
  float sum[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t j = 0; j < 4; ++j) sum[j] += a[i + j] * b[i + j];
  }
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

float F32L2(const float* a, const float* b, size_t n) {
  float sum[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t j = 0; j < 4; ++j) {
      const float d = a[i + j] - b[i + j];
      sum[j] += d * d;
    }
  }
  for (; i < n; ++i) sum[0] += (a[i] - b[i]) * (a[i] - b[i]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void F32Dot4(const float* q, const float* const* rows, size_t n, float* out) {
  for (int i = 0; i < 4; ++i) out[i] = F32Dot(q, rows[i], n);
}

void F32L2x4(const float* q, const float* const* rows, size_t n, float* out) {
  for (int i = 0; i < 4; ++i) out[i] = F32L2(q, rows[i], n);
}

#include "index/distance/simd_plain.h"
using Simd = PlainSimd;
#include "index/distance/spaces_f32.h"
#include "index/graph/walk_inl.h"

bool Supported() { return true; }

}  // namespace

extern const Target kTarget;
const Target kTarget = {
    "scalar",
    &Supported,
    {&F32Dot, &F32L2, &F32Dot4, &F32L2x4},
    {&kOpsOf<F32DotSpace>, &kOpsOf<F32L2Space>},
};

}  // namespace hotkv::target_scalar
