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

// Eight halves at i, zeros behind the end.
inline __m256 LoadHalves(const uint16_t* row, size_t i, size_t n) {
  if (i + 8 <= n) return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i)));
  alignas(16) uint16_t rest[8] = {};
  for (size_t j = i; j < n; ++j) rest[j - i] = row[j];
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(rest)));
}

template <__m256 (*kStep)(__m256, __m256, __m256)>
inline float ReduceHalves(const float* q, const uint16_t* row, size_t n) {
  __m256 s0 = _mm256_setzero_ps();
  __m256 s1 = _mm256_setzero_ps();
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    s0 = kStep(_mm256_loadu_ps(q + i), LoadHalves(row, i, n), s0);
    s1 = kStep(_mm256_loadu_ps(q + i + 8), LoadHalves(row, i + 8, n), s1);
  }
  for (; i < n; i += 8) {
    const __m256i mask = TailMask(n - i < 8 ? n - i : 8);
    s0 = kStep(_mm256_maskload_ps(q + i, mask), LoadHalves(row, i, n), s0);
  }
  return Sum(_mm256_add_ps(s0, s1));
}

float F16Dot(const float* q, const uint16_t* row, size_t n) {
  return ReduceHalves<DotStep>(q, row, n);
}
float F16L2(const float* q, const uint16_t* row, size_t n) { return ReduceHalves<L2Step>(q, row, n); }

void F16Encode(const float* x, size_t n, uint16_t* out) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) out[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
}

void F16Decode(const uint16_t* x, size_t n, float* out) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(out + i, LoadHalves(x, i, n));
  for (; i < n; ++i) out[i] = _cvtsh_ss(x[i]);
}

inline int32_t SumInts(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

inline __m256i LoadInts(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

int32_t Q4Sum(const int8_t* q, const uint8_t* codes, size_t n) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sum = _mm256_setzero_si256();
  for (size_t block = 0; block < n; block += 128) {
    const __m256i c0 = LoadInts(codes + block / 2);
    const __m256i c1 = LoadInts(codes + block / 2 + 32);
    // Each product pair is below 2^12, so four of them fit 16 bits.
    __m256i pairs = _mm256_maddubs_epi16(_mm256_and_si256(c0, nibble), LoadInts(q + block));
    pairs = _mm256_add_epi16(
        pairs, _mm256_maddubs_epi16(_mm256_and_si256(c1, nibble), LoadInts(q + block + 32)));
    pairs = _mm256_add_epi16(
        pairs, _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(c0, 4), nibble),
                                    LoadInts(q + block + 64)));
    pairs = _mm256_add_epi16(
        pairs, _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(c1, 4), nibble),
                                    LoadInts(q + block + 96)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
  }
  return SumInts(sum);
}

int32_t Q8Sum(const int8_t* q, const uint8_t* codes, size_t n) {
  __m256i sum = _mm256_setzero_si256();
  for (size_t i = 0; i < n; i += 16) {
    // Byte products would saturate in pairs of 16 bits.
    const __m256i c =
        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i)));
    const __m256i s = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q + i)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(c, s));
  }
  return SumInts(sum);
}

void Q4Sum4(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = Q4Sum(q, rows[i], n);
}

void Q8Sum4(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = Q8Sum(q, rows[i], n);
}

#define HOTKV_OWN_BIN_SUM
// The 32 query bytes whose bits are set, as pairs summed to 16 bits and then to 32.
HOTKV_INLINE __m256i BinStep(__m256i q, const uint8_t* bits, __m256i sum) {
  int32_t word;
  __builtin_memcpy(&word, bits, sizeof(word));
  const __m256i byte_of = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2,
                                           2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit_of = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(word), byte_of);
  const __m256i mask = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit_of), bit_of);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_and_si256(q, mask));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

HOTKV_INLINE int32_t AddUp(__m256i v) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

HOTKV_INLINE int32_t BinSum(const int8_t* q, const uint8_t* bits, size_t n) {
  __m256i sum = _mm256_setzero_si256();
  for (size_t i = 0; i < n; i += 32) {
    sum = BinStep(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + i)), bits + i / 8, sum);
  }
  return AddUp(sum);
}

HOTKV_INLINE void BinSum4(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out) {
  __m256i sums[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                     _mm256_setzero_si256()};
  for (size_t i = 0; i < n; i += 32) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + i));
    for (int r = 0; r < 4; ++r) sums[r] = BinStep(v, rows[r] + i / 8, sums[r]);
  }
  for (int r = 0; r < 4; ++r) out[r] = AddUp(sums[r]);
}

#include "index/distance/simd_plain.h"
struct Simd : PlainSimd {
  HOTKV_INLINE static uint32_t MaskBelow(const float* distances, uint32_t n, float bound) {
    const __m256 b = _mm256_set1_ps(bound);
    const auto low = static_cast<uint32_t>(
        _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(distances), b, _CMP_LT_OQ)));
    const auto high = static_cast<uint32_t>(
        _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(distances + 8), b, _CMP_LT_OQ)));
    return (low | high << 8) & (n < 16 ? (1u << n) - 1 : 0xffffu);
  }
  HOTKV_INLINE static void PoolShift(WalkPool& pool, uint32_t at, uint32_t last) {
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
#include "index/distance/target_table.h"

bool Supported() {
#ifndef __clang__  // clang 14 does not know the name; no CPU has AVX2 without it
  if (!__builtin_cpu_supports("f16c")) return false;
#endif
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

}  // namespace

extern const Target kTarget;
const Target kTarget = TargetNamed("avx2", &Supported);

}  // namespace hotkv::target_avx2
#endif
