// The CRC instruction takes one step of 8 bytes a cycle but has a latency of three, so three
// neighbouring ranges are summed side by side and joined: the sum of a range followed by n more
// bytes is its sum times x^8n (modulo the polynomial), one carry-less multiplication with a
// constant.
#include "engine/base/crc32c.h"

#if defined(__x86_64__)

#include <nmmintrin.h>
#include <wmmintrin.h>

#include <cstddef>
#include <cstring>

namespace hotkv {

namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;

// Product of two polynomials modulo the CRC's, all reflected (bit 31 is the coefficient of x^0).
constexpr uint32_t MultiplyModulo(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

constexpr uint32_t PowerOfX(uint64_t exponent) {
  uint32_t result = uint32_t{1} << 31;
  uint32_t square = uint32_t{1} << 30;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = MultiplyModulo(result, square);
    square = MultiplyModulo(square, square);
  }
  return result;
}

// The 64-bit product of two reflected 32-bit polynomials stands one place too low, and the CRC step
// over it multiplies by x^32: so the factor for "n more bytes" is x^(8n - 33).
template <size_t kBytes>
uint32_t Append(uint32_t crc) {
  constexpr uint32_t kFactor = PowerOfX(8 * kBytes - 33);
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(crc)),
                                               _mm_cvtsi32_si128(static_cast<int>(kFactor)), 0);
  return static_cast<uint32_t>(_mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(product))));
}

inline uint64_t Load(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// Sums 3 * kRange bytes.
template <size_t kRange>
uint32_t ThreeRanges(uint32_t crc, const char* p) {
  uint64_t a = crc;
  uint64_t b = 0;
  uint64_t c = 0;
  for (const char* end = p + kRange; p < end; p += 8) {
    a = _mm_crc32_u64(a, Load(p));
    b = _mm_crc32_u64(b, Load(p + kRange));
    c = _mm_crc32_u64(c, Load(p + 2 * kRange));
  }
  return Append<2 * kRange>(static_cast<uint32_t>(a)) ^ Append<kRange>(static_cast<uint32_t>(b)) ^
         static_cast<uint32_t>(c);
}

constexpr size_t kLong = 4096;
constexpr size_t kShort = 128;

}  // namespace

uint32_t ExtendCrc32cSse42(uint32_t crc, std::string_view data) {
  uint32_t sum = ~crc;
  const char* p = data.data();
  size_t left = data.size();
  for (; left >= 3 * kLong; p += 3 * kLong, left -= 3 * kLong) sum = ThreeRanges<kLong>(sum, p);
  for (; left >= 3 * kShort; p += 3 * kShort, left -= 3 * kShort) sum = ThreeRanges<kShort>(sum, p);
  for (; left >= 8; p += 8, left -= 8) sum = static_cast<uint32_t>(_mm_crc32_u64(sum, Load(p)));
  for (; left > 0; ++p, --left) sum = _mm_crc32_u8(sum, static_cast<unsigned char>(*p));
  return ~sum;
}

}  // namespace hotkv

#else

namespace hotkv {

uint32_t ExtendCrc32cSse42(uint32_t crc, std::string_view data) {
  return ExtendCrc32cTable(crc, data);
}

}  // namespace hotkv

#endif
