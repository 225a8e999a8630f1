// Half floats without hardware for them. Included inside a target's namespace.

inline float HalfToFloat(uint16_t h) {
  const uint32_t sign = uint32_t{h} >> 15 << 31;
  const uint32_t exponent = h >> 10 & 31;
  const uint32_t fraction = h & 1023;
  if (exponent == 0) {
    // Zero and subnormals: fraction * 2^-24.
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const uint32_t bits = exponent == 31 ? sign | 0x7f800000u | fraction << 13
                                       : sign | (exponent + 112) << 23 | fraction << 13;
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// To nearest, ties to even, as the hardware does.
inline uint16_t FloatToHalf(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000u;
  bits &= 0x7fffffffu;
  if (bits >= 0x7f800000u) return static_cast<uint16_t>(sign | 0x7c00u | (bits > 0x7f800000u ? 0x200u : 0u));
  if (bits >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (bits < 0x38800000u) {
    // Subnormal: adding 0.5 aligns the fraction, rounding as the addition does.
    float magnitude;
    __builtin_memcpy(&magnitude, &bits, sizeof(magnitude));
    magnitude += 0.5f;
    __builtin_memcpy(&bits, &magnitude, sizeof(bits));
    return static_cast<uint16_t>(sign | (bits - 0x3f000000u));
  }
  bits += 0xfffu + (bits >> 13 & 1u);
  return static_cast<uint16_t>(sign | (bits - 0x38000000u) >> 13);
}

void F16Encode(const float* x, size_t n, uint16_t* out) {
  for (size_t i = 0; i < n; ++i) out[i] = FloatToHalf(x[i]);
}

void F16Decode(const uint16_t* x, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = HalfToFloat(x[i]);
}
