// AVX-512 as Ice Lake and Zen 4 have it: F, BW, VL, DQ, VNNI, VPOPCNTDQ, VBMI, VBMI2.
#if defined(__x86_64__)

#include <immintrin.h>

#include "index/distance/targets.h"

#define HOTKV_F32_PREFETCH_LINES 8u

namespace hotkv::target_avx512 {
namespace {

inline __mmask16 TailMask(size_t left) { return static_cast<__mmask16>((1u << left) - 1); }

inline __m512 DotStep(__m512 a, __m512 b, __m512 sum) { return _mm512_fmadd_ps(a, b, sum); }
inline __m512 L2Step(__m512 a, __m512 b, __m512 sum) {
  const __m512 d = _mm512_sub_ps(a, b);
  return _mm512_fmadd_ps(d, d, sum);
}

template <__m512 (*kStep)(__m512, __m512, __m512)>
inline float Reduce1(const float* a, const float* b, size_t n) {
  __m512 s0 = _mm512_setzero_ps();
  __m512 s1 = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    s0 = kStep(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i), s0);
    s1 = kStep(_mm512_loadu_ps(a + i + 16), _mm512_loadu_ps(b + i + 16), s1);
  }
  for (; i < n; i += 16) {
    const __mmask16 mask = n - i < 16 ? TailMask(n - i) : static_cast<__mmask16>(0xffff);
    s0 = kStep(_mm512_maskz_loadu_ps(mask, a + i), _mm512_maskz_loadu_ps(mask, b + i), s0);
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(s0, s1));
}

template <__m512 (*kStep)(__m512, __m512, __m512)>
inline void Reduce4(const float* q, const float* const* rows, size_t n, float* out) {
  __m512 s[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                 _mm512_setzero_ps()};
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512 v = _mm512_loadu_ps(q + i);
    for (int j = 0; j < 4; ++j) s[j] = kStep(v, _mm512_loadu_ps(rows[j] + i), s[j]);
  }
  if (i < n) {
    const __mmask16 mask = TailMask(n - i);
    const __m512 v = _mm512_maskz_loadu_ps(mask, q + i);
    for (int j = 0; j < 4; ++j) s[j] = kStep(v, _mm512_maskz_loadu_ps(mask, rows[j] + i), s[j]);
  }
  for (int j = 0; j < 4; ++j) out[j] = _mm512_reduce_add_ps(s[j]);
}

float F32Dot(const float* a, const float* b, size_t n) { return Reduce1<DotStep>(a, b, n); }
float F32L2(const float* a, const float* b, size_t n) { return Reduce1<L2Step>(a, b, n); }
HOTKV_INLINE void F32Dot4(const float* q, const float* const* rows, size_t n, float* out) {
  Reduce4<DotStep>(q, rows, n, out);
}
HOTKV_INLINE void F32L2x4(const float* q, const float* const* rows, size_t n, float* out) {
  Reduce4<L2Step>(q, rows, n, out);
}

inline __m512 LoadHalves(const uint16_t* row, size_t i, size_t n) {
  const __mmask16 mask = n - i < 16 ? TailMask(n - i) : static_cast<__mmask16>(0xffff);
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, row + i));
}

template <__m512 (*kStep)(__m512, __m512, __m512)>
inline float ReduceHalves(const float* q, const uint16_t* row, size_t n) {
  __m512 s0 = _mm512_setzero_ps();
  __m512 s1 = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    s0 = kStep(_mm512_loadu_ps(q + i), LoadHalves(row, i, n), s0);
    s1 = kStep(_mm512_loadu_ps(q + i + 16), LoadHalves(row, i + 16, n), s1);
  }
  for (; i < n; i += 16) {
    const __mmask16 mask = n - i < 16 ? TailMask(n - i) : static_cast<__mmask16>(0xffff);
    s0 = kStep(_mm512_maskz_loadu_ps(mask, q + i), LoadHalves(row, i, n), s0);
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(s0, s1));
}

float F16Dot(const float* q, const uint16_t* row, size_t n) {
  return ReduceHalves<DotStep>(q, row, n);
}
float F16L2(const float* q, const uint16_t* row, size_t n) { return ReduceHalves<L2Step>(q, row, n); }

void F16Encode(const float* x, size_t n, uint16_t* out) {
  for (size_t i = 0; i < n; i += 16) {
    const __mmask16 mask = n - i < 16 ? TailMask(n - i) : static_cast<__mmask16>(0xffff);
    const __m256i halves =
        _mm512_cvtps_ph(_mm512_maskz_loadu_ps(mask, x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_mask_storeu_epi16(out + i, mask, halves);
  }
}

void F16Decode(const uint16_t* x, size_t n, float* out) {
  for (size_t i = 0; i < n; i += 16) {
    const __mmask16 mask = n - i < 16 ? TailMask(n - i) : static_cast<__mmask16>(0xffff);
    _mm512_mask_storeu_ps(out + i, mask, LoadHalves(x, i, n));
  }
}

int32_t Q4Sum(const int8_t* q, const uint8_t* codes, size_t n) {
  const __m512i nibble = _mm512_set1_epi8(15);
  __m512i low = _mm512_setzero_si512();
  __m512i high = _mm512_setzero_si512();
  for (size_t block = 0; block < n; block += 128) {
    const __m512i c = _mm512_loadu_si512(codes + block / 2);
    low = _mm512_dpbusd_epi32(low, _mm512_and_si512(c, nibble), _mm512_loadu_si512(q + block));
    high = _mm512_dpbusd_epi32(high, _mm512_and_si512(_mm512_srli_epi16(c, 4), nibble),
                               _mm512_loadu_si512(q + block + 64));
  }
  return _mm512_reduce_add_epi32(_mm512_add_epi32(low, high));
}

// Four vectors of partial sums to four sums, with one reduction for all.
inline __m128i Sum4(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  const __m512i all =
      _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  const __m256i half =
      _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

HOTKV_INLINE void Q4Sum4(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out) {
  const __m512i nibble = _mm512_set1_epi8(15);
  __m512i s[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                  _mm512_setzero_si512()};
  for (size_t block = 0; block < n; block += 128) {
    const __m512i q_low = _mm512_loadu_si512(q + block);
    const __m512i q_high = _mm512_loadu_si512(q + block + 64);
    for (int j = 0; j < 4; ++j) {
      const __m512i c = _mm512_loadu_si512(rows[j] + block / 2);
      s[j] = _mm512_dpbusd_epi32(s[j], _mm512_and_si512(c, nibble), q_low);
      s[j] = _mm512_dpbusd_epi32(s[j], _mm512_and_si512(_mm512_srli_epi16(c, 4), nibble), q_high);
    }
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), Sum4(s[0], s[1], s[2], s[3]));
}

int32_t Q8Sum(const int8_t* q, const uint8_t* codes, size_t n) {
  __m512i s0 = _mm512_setzero_si512();
  __m512i s1 = _mm512_setzero_si512();
  for (size_t i = 0; i < n; i += 128) {
    s0 = _mm512_dpbusd_epi32(s0, _mm512_loadu_si512(codes + i), _mm512_loadu_si512(q + i));
    s1 = _mm512_dpbusd_epi32(s1, _mm512_loadu_si512(codes + i + 64), _mm512_loadu_si512(q + i + 64));
  }
  return _mm512_reduce_add_epi32(_mm512_add_epi32(s0, s1));
}

HOTKV_INLINE void Q8Sum4(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out) {
  __m512i s[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                  _mm512_setzero_si512()};
  for (size_t i = 0; i < n; i += 64) {
    const __m512i v = _mm512_loadu_si512(q + i);
    for (int j = 0; j < 4; ++j) s[j] = _mm512_dpbusd_epi32(s[j], _mm512_loadu_si512(rows[j] + i), v);
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), Sum4(s[0], s[1], s[2], s[3]));
}

// One in-register stage: lanes that differ in one index bit are added, or subtracted where that bit is set.
inline __m512 Butterfly(__m512 v, __m512 swapped, __mmask16 upper) {
  return _mm512_mask_sub_ps(_mm512_add_ps(v, swapped), upper, swapped, v);
}

inline __m512 FhtLanes(__m512 v) {
  v = Butterfly(v, _mm512_permute_ps(v, 0xb1), 0xaaaa);
  v = Butterfly(v, _mm512_permute_ps(v, 0x4e), 0xcccc);
  v = Butterfly(v, _mm512_shuffle_f32x4(v, v, 0xb1), 0xf0f0);
  return Butterfly(v, _mm512_shuffle_f32x4(v, v, 0x4e), 0xff00);
}

#define HOTKV_OWN_FHT
void Fht(float* x, size_t n) {
  const __m512 scale = _mm512_set1_ps(1.0f / __builtin_sqrtf(static_cast<float>(n)));
  for (size_t i = 0; i < n; i += 16) {
    _mm512_storeu_ps(x + i, _mm512_mul_ps(FhtLanes(_mm512_loadu_ps(x + i)), scale));
  }
  size_t h = 16;
  // Two stages at a time: half the loads and stores.
  for (; h * 4 <= n; h *= 4) {
    for (size_t block = 0; block < n; block += 4 * h) {
      for (size_t i = block; i < block + h; i += 16) {
        const __m512 a = _mm512_loadu_ps(x + i);
        const __m512 b = _mm512_loadu_ps(x + i + h);
        const __m512 c = _mm512_loadu_ps(x + i + 2 * h);
        const __m512 d = _mm512_loadu_ps(x + i + 3 * h);
        const __m512 ab = _mm512_add_ps(a, b);
        const __m512 a_b = _mm512_sub_ps(a, b);
        const __m512 cd = _mm512_add_ps(c, d);
        const __m512 c_d = _mm512_sub_ps(c, d);
        _mm512_storeu_ps(x + i, _mm512_add_ps(ab, cd));
        _mm512_storeu_ps(x + i + h, _mm512_add_ps(a_b, c_d));
        _mm512_storeu_ps(x + i + 2 * h, _mm512_sub_ps(ab, cd));
        _mm512_storeu_ps(x + i + 3 * h, _mm512_sub_ps(a_b, c_d));
      }
    }
  }
  for (; h < n; h *= 2) {
    for (size_t block = 0; block < n; block += 2 * h) {
      for (size_t i = block; i < block + h; i += 16) {
        const __m512 a = _mm512_loadu_ps(x + i);
        const __m512 b = _mm512_loadu_ps(x + i + h);
        _mm512_storeu_ps(x + i, _mm512_add_ps(a, b));
        _mm512_storeu_ps(x + i + h, _mm512_sub_ps(a, b));
      }
    }
  }
}

#define HOTKV_OWN_BIN_SUM
HOTKV_INLINE __mmask64 BitsAt(const uint8_t* bits, size_t at) {
  uint64_t mask;
  __builtin_memcpy(&mask, bits + at / 8, sizeof(mask));
  return mask;
}

HOTKV_INLINE int32_t BinSum(const int8_t* q, const uint8_t* bits, size_t n) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum = _mm512_setzero_si512();
  for (size_t i = 0; i < n; i += 64) {
    sum = _mm512_dpbusd_epi32(sum, ones, _mm512_maskz_loadu_epi8(BitsAt(bits, i), q + i));
  }
  return _mm512_reduce_add_epi32(sum);
}

HOTKV_INLINE void BinSum4(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                     _mm512_setzero_si512()};
  for (size_t i = 0; i < n; i += 64) {
    const __m512i v = _mm512_loadu_si512(q + i);
    for (int r = 0; r < 4; ++r) {
      sums[r] = _mm512_dpbusd_epi32(sums[r], ones, _mm512_maskz_mov_epi8(BitsAt(rows[r], i), v));
    }
  }
  for (int r = 0; r < 4; ++r) out[r] = _mm512_reduce_add_epi32(sums[r]);
}

#include "index/distance/simd_plain.h"
struct Simd : PlainSimd {
#if !defined(__SANITIZE_THREAD__)
  // (Gathering sixteen visited words at once was 10% slower on Zen 5, whose gathers are.)
  HOTKV_INLINE static uint32_t FilterUnvisited(const uint32_t* row,
                                                                        uint32_t width,
                                                                        WalkScratch& s,
                                                                        uint32_t* out) {
    const __m512i limit = _mm512_set1_epi32(static_cast<int>(s.limit));
    const uint32_t fresh = s.stamp << 16;
    uint32_t* const visited = s.visited;
    alignas(64) uint32_t ids[16];
    uint32_t n = 0;
    for (uint32_t i = 0; i < width; i += 16) {
      // An aligned vector load takes each id whole, and once; ordering is that of x86 loads.
      const __m512i all = _mm512_load_si512(row + i);
      const __mmask16 valid = _mm512_cmplt_epu32_mask(all, limit);
      if (valid == 0) break;
      _mm512_store_si512(ids, _mm512_maskz_compress_epi32(valid, all));
      const auto count = static_cast<uint32_t>(__builtin_popcount(valid));
      for (uint32_t j = 0; j < count; ++j) {
        const uint32_t slot = ids[j];
        uint32_t word = visited[slot >> 4];
        word = (word >> 16) == s.stamp ? word : fresh;
        const uint32_t mark = 1u << (slot & 15);
        out[n] = slot;
        n += (word & mark) == 0 ? 1u : 0u;
        visited[slot >> 4] = word | mark;
      }
    }
    return n;
  }
#endif

  HOTKV_INLINE static uint32_t PoolPosition(const WalkPool& pool, float distance) {
    const __m512 d = _mm512_set1_ps(distance);
    uint32_t base = 0;
    // Long pools: halve until a few vectors are left.
    for (uint32_t left = pool.size; left > 256; left = pool.size - base) {
      const uint32_t probe = base + left / 2;
      if (pool.distance[probe] > distance) {
        return CountUpTo(pool, base, probe, d);
      }
      base = probe + 1;
    }
    return CountUpTo(pool, base, pool.size, d);
  }

  HOTKV_INLINE static void PoolShift(WalkPool& pool, uint32_t at, uint32_t last) {
    uint32_t i = last;
    for (; i >= at + 16; i -= 16) {
      _mm512_storeu_ps(pool.distance + i - 15, _mm512_loadu_ps(pool.distance + i - 16));
      _mm512_storeu_si512(pool.slot + i - 15, _mm512_loadu_si512(pool.slot + i - 16));
    }
    const __mmask16 rest = TailMask(i - at);
    const __m512 d = _mm512_loadu_ps(pool.distance + at);
    const __m512i s = _mm512_loadu_si512(pool.slot + at);
    _mm512_mask_storeu_ps(pool.distance + at + 1, rest, d);
    _mm512_mask_storeu_epi32(pool.slot + at + 1, rest, s);
  }

  HOTKV_INLINE static uint32_t MaskBelow(const float* distances, uint32_t n, float bound) {
    const __mmask16 mask =
        _mm512_cmp_ps_mask(_mm512_loadu_ps(distances), _mm512_set1_ps(bound), _CMP_LT_OQ);
    return mask & (n < 16 ? (1u << n) - 1 : 0xffffu);
  }

 private:
  // First position in [from, to) whose distance is above d; the pool is sorted.
  HOTKV_INLINE static uint32_t CountUpTo(const WalkPool& pool, uint32_t from, uint32_t to, __m512 d) {
    for (; from < to; from += 16) {
      const uint32_t in = to - from < 16 ? (1u << (to - from)) - 1 : 0xffffu;
      const uint32_t mask =
          _mm512_cmp_ps_mask(_mm512_loadu_ps(pool.distance + from), d, _CMP_LE_OQ) & in;
      if (mask != 0xffffu) return from + static_cast<uint32_t>(__builtin_popcount(mask));
    }
    return to;
  }
};
#include "index/distance/target_table.h"

bool Supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vpopcntdq") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
         __builtin_cpu_supports("fma");
}

}  // namespace

extern const Target kTarget;
const Target kTarget = TargetNamed("avx512", &Supported);

}  // namespace hotkv::target_avx512
#endif
