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

#include "index/distance/half_plain.h"

float F16Dot(const float* q, const uint16_t* row, size_t n) {
  float sum[4] = {0, 0, 0, 0};
  for (size_t i = 0; i < n; ++i) sum[i % 4] += q[i] * HalfToFloat(row[i]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

float F16L2(const float* q, const uint16_t* row, size_t n) {
  float sum[4] = {0, 0, 0, 0};
  for (size_t i = 0; i < n; ++i) {
    const float d = q[i] - HalfToFloat(row[i]);
    sum[i % 4] += d * d;
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

int32_t Q4Sum(const int8_t* q, const uint8_t* codes, size_t n) {
  int32_t sum = 0;
  for (size_t block = 0; block < n; block += 128) {
    for (size_t i = 0; i < 64; ++i) {
      const uint8_t byte = codes[block / 2 + i];
      sum += int32_t{q[block + i]} * (byte & 15) + int32_t{q[block + 64 + i]} * (byte >> 4);
    }
  }
  return sum;
}

int32_t Q8Sum(const int8_t* q, const uint8_t* codes, size_t n) {
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += int32_t{q[i]} * codes[i];
  return sum;
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
const Target kTarget = TargetNamed("scalar", &Supported);

}  // namespace hotkv::target_scalar
