// NEON (every aarch64 CPU).
#if defined(__aarch64__)

#include <arm_neon.h>

#include "index/distance/targets.h"

#define HOTKV_F32_PREFETCH_LINES 8u

namespace hotkv::target_neon {
namespace {

inline float32x4_t DotStep(float32x4_t a, float32x4_t b, float32x4_t sum) {
  return vfmaq_f32(sum, a, b);
}
inline float32x4_t L2Step(float32x4_t a, float32x4_t b, float32x4_t sum) {
  const float32x4_t d = vsubq_f32(a, b);
  return vfmaq_f32(sum, d, d);
}

template <float32x4_t (*kStep)(float32x4_t, float32x4_t, float32x4_t)>
inline void ReduceTail(const float* a, const float* b, size_t from, size_t n, float32x4_t* sum) {
  if (from == n) return;
  float ta[4] = {0, 0, 0, 0};
  float tb[4] = {0, 0, 0, 0};
  for (size_t i = from; i < n; ++i) {
    ta[i - from] = a[i];
    tb[i - from] = b[i];
  }
  *sum = kStep(vld1q_f32(ta), vld1q_f32(tb), *sum);
}

template <float32x4_t (*kStep)(float32x4_t, float32x4_t, float32x4_t)>
inline float Reduce1(const float* a, const float* b, size_t n) {
  float32x4_t s0 = vdupq_n_f32(0);
  float32x4_t s1 = vdupq_n_f32(0);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    s0 = kStep(vld1q_f32(a + i), vld1q_f32(b + i), s0);
    s1 = kStep(vld1q_f32(a + i + 4), vld1q_f32(b + i + 4), s1);
  }
  if (i + 4 <= n) {
    s0 = kStep(vld1q_f32(a + i), vld1q_f32(b + i), s0);
    i += 4;
  }
  ReduceTail<kStep>(a, b, i, n, &s1);
  return vaddvq_f32(vaddq_f32(s0, s1));
}

template <float32x4_t (*kStep)(float32x4_t, float32x4_t, float32x4_t)>
inline void Reduce4(const float* q, const float* const* rows, size_t n, float* out) {
  float32x4_t s[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const float32x4_t v = vld1q_f32(q + i);
    for (int j = 0; j < 4; ++j) s[j] = kStep(v, vld1q_f32(rows[j] + i), s[j]);
  }
  for (int j = 0; j < 4; ++j) {
    ReduceTail<kStep>(q, rows[j], i, n, &s[j]);
    out[j] = vaddvq_f32(s[j]);
  }
}

float F32Dot(const float* a, const float* b, size_t n) { return Reduce1<DotStep>(a, b, n); }
float F32L2(const float* a, const float* b, size_t n) { return Reduce1<L2Step>(a, b, n); }
void F32Dot4(const float* q, const float* const* rows, size_t n, float* out) {
  Reduce4<DotStep>(q, rows, n, out);
}
void F32L2x4(const float* q, const float* const* rows, size_t n, float* out) {
  Reduce4<L2Step>(q, rows, n, out);
}

#include "index/distance/simd_plain.h"
using Simd = PlainSimd;
#include "index/distance/spaces_f32.h"
#include "index/graph/walk_inl.h"

bool Supported() { return true; }

}  // namespace

extern const Target kTarget;
const Target kTarget = {
    "neon",
    &Supported,
    {&F32Dot, &F32L2, &F32Dot4, &F32L2x4},
    {&kOpsOf<F32DotSpace>, &kOpsOf<F32L2Space>},
};

}  // namespace hotkv::target_neon

#endif
