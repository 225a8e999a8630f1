// AVX2 + FMA + F16C.
#if defined(__x86_64__)

#include <immintrin.h>

#include "index/distance/targets.h"

#define HOTKV_F32_PREFETCH_LINES 8u

namespace hotkv::target_avx2 {
namespace {

inline float Sum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  s = _mm_add_ss(s, _mm_shuffle_ps(s, s, 1));
  return _mm_cvtss_f32(s);
}

alignas(32) constexpr int32_t kTail[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

inline __m256i TailMask(size_t left) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kTail + 8 - left));
}

inline __m256 DotStep(__m256 a, __m256 b, __m256 sum) { return _mm256_fmadd_ps(a, b, sum); }
inline __m256 L2Step(__m256 a, __m256 b, __m256 sum) {
  const __m256 d = _mm256_sub_ps(a, b);
  return _mm256_fmadd_ps(d, d, sum);
}

template <__m256 (*kStep)(__m256, __m256, __m256)>
inline float Reduce1(const float* a, const float* b, size_t n) {
  __m256 s0 = _mm256_setzero_ps();
  __m256 s1 = _mm256_setzero_ps();
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    s0 = kStep(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), s0);
    s1 = kStep(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8), s1);
  }
  for (; i < n; i += 8) {
    const __m256i mask = TailMask(n - i < 8 ? n - i : 8);
    s0 = kStep(_mm256_maskload_ps(a + i, mask), _mm256_maskload_ps(b + i, mask), s0);
  }
  return Sum(_mm256_add_ps(s0, s1));
}

template <__m256 (*kStep)(__m256, __m256, __m256)>
inline void Reduce4(const float* q, const float* const* rows, size_t n, float* out) {
  __m256 s[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                 _mm256_setzero_ps()};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 v = _mm256_loadu_ps(q + i);
    for (int j = 0; j < 4; ++j) s[j] = kStep(v, _mm256_loadu_ps(rows[j] + i), s[j]);
  }
  if (i < n) {
    const __m256i mask = TailMask(n - i);
    const __m256 v = _mm256_maskload_ps(q + i, mask);
    for (int j = 0; j < 4; ++j) s[j] = kStep(v, _mm256_maskload_ps(rows[j] + i, mask), s[j]);
  }
  for (int j = 0; j < 4; ++j) out[j] = Sum(s[j]);
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
struct Simd : PlainSimd {
  static uint32_t MaskBelow(const float* distances, uint32_t n, float bound) {
    const __m256 b = _mm256_set1_ps(bound);
    const auto low = static_cast<uint32_t>(
        _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(distances), b, _CMP_LT_OQ)));
    const auto high = static_cast<uint32_t>(
        _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(distances + 8), b, _CMP_LT_OQ)));
    return (low | high << 8) & (n < 16 ? (1u << n) - 1 : 0xffffu);
  }
  static void PoolShift(WalkPool& pool, uint32_t at, uint32_t last) {
    uint32_t i = last;
    for (; i >= at + 8; i -= 8) {
      _mm256_storeu_ps(pool.distance + i - 7, _mm256_loadu_ps(pool.distance + i - 8));
      const auto* from = reinterpret_cast<const __m256i*>(pool.slot + i - 8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(pool.slot + i - 7), _mm256_loadu_si256(from));
    }
    for (; i > at; --i) {
      pool.distance[i] = pool.distance[i - 1];
      pool.slot[i] = pool.slot[i - 1];
    }
  }
};
#include "index/distance/spaces_f32.h"
#include "index/graph/walk_inl.h"

bool Supported() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

}  // namespace

extern const Target kTarget;
const Target kTarget = {
    "avx2",
    &Supported,
    {&F32Dot, &F32L2, &F32Dot4, &F32L2x4},
    {&kOpsOf<F32DotSpace>, &kOpsOf<F32L2Space>},
};

}  // namespace hotkv::target_avx2

#endif
