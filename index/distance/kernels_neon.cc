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

inline float32x4_t LoadHalves(const uint16_t* row) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(row)));
}

template <float32x4_t (*kStep)(float32x4_t, float32x4_t, float32x4_t)>
inline float ReduceHalves(const float* q, const uint16_t* row, size_t n) {
  float32x4_t s0 = vdupq_n_f32(0);
  float32x4_t s1 = vdupq_n_f32(0);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    s0 = kStep(vld1q_f32(q + i), LoadHalves(row + i), s0);
    s1 = kStep(vld1q_f32(q + i + 4), LoadHalves(row + i + 4), s1);
  }
  for (; i < n; i += 4) {
    float a[4] = {0, 0, 0, 0};
    uint16_t b[4] = {0, 0, 0, 0};
    for (size_t j = i; j < n && j < i + 4; ++j) {
      a[j - i] = q[j];
      b[j - i] = row[j];
    }
    s0 = kStep(vld1q_f32(a), LoadHalves(b), s0);
  }
  return vaddvq_f32(vaddq_f32(s0, s1));
}

float F16Dot(const float* q, const uint16_t* row, size_t n) {
  return ReduceHalves<DotStep>(q, row, n);
}
float F16L2(const float* q, const uint16_t* row, size_t n) { return ReduceHalves<L2Step>(q, row, n); }

#include "index/distance/half_plain.h"

int32_t Q4Sum(const int8_t* q, const uint8_t* codes, size_t n) {
  const uint8x16_t nibble = vdupq_n_u8(15);
  int32x4_t sum = vdupq_n_s32(0);
  for (size_t block = 0; block < n; block += 128) {
    for (size_t i = 0; i < 64; i += 16) {
      const uint8x16_t c = vld1q_u8(codes + block / 2 + i);
      const int8x16_t low = vreinterpretq_s8_u8(vandq_u8(c, nibble));
      const int8x16_t high = vreinterpretq_s8_u8(vshrq_n_u8(c, 4));
      const int8x16_t q_low = vld1q_s8(q + block + i);
      const int8x16_t q_high = vld1q_s8(q + block + 64 + i);
      // Products are below 2^11, so four of them fit 16 bits.
      int16x8_t pairs = vmull_s8(vget_low_s8(low), vget_low_s8(q_low));
      pairs = vmlal_s8(pairs, vget_high_s8(low), vget_high_s8(q_low));
      pairs = vmlal_s8(pairs, vget_low_s8(high), vget_low_s8(q_high));
      pairs = vmlal_s8(pairs, vget_high_s8(high), vget_high_s8(q_high));
      sum = vpadalq_s16(sum, pairs);
    }
  }
  return vaddvq_s32(sum);
}

int32_t Q8Sum(const int8_t* q, const uint8_t* codes, size_t n) {
  const uint8x16_t flip = vdupq_n_u8(0x80);
  int32x4_t sum = vdupq_n_s32(0);
  int32x4_t q_sum = vdupq_n_s32(0);
  for (size_t i = 0; i < n; i += 16) {
    // As signed codes c - 128; 128 times the query's sum is added at the end.
    const int8x16_t c = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(codes + i), flip));
    const int8x16_t s = vld1q_s8(q + i);
    sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(c), vget_low_s8(s)));
    sum = vpadalq_s16(sum, vmull_s8(vget_high_s8(c), vget_high_s8(s)));
    q_sum = vpadalq_s16(q_sum, vpaddlq_s8(s));
  }
  return vaddvq_s32(sum) + 128 * vaddvq_s32(q_sum);
}

void Q4Sum4(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = Q4Sum(q, rows[i], n);
}

void Q8Sum4(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = Q8Sum(q, rows[i], n);
}

#include "index/distance/simd_plain.h"
using Simd = PlainSimd;
#include "index/distance/target_table.h"

bool Supported() { return true; }

}  // namespace

extern const Target kTarget;
const Target kTarget = TargetNamed("neon", &Supported);

}  // namespace hotkv::target_neon
#endif
