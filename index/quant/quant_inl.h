// Plain loops of the quantisers, included inside each target's namespace: the compiler turns them
// into that CPU's vectors. A target that defines HOTKV_OWN_FHT brings its own Fht, one with
// HOTKV_OWN_BIN_SUM its own BinSum and BinSum4.

#ifndef HOTKV_OWN_FHT
// Walsh-Hadamard transform of n = 2^k values, scaled to keep lengths.
void Fht(float* x, size_t n) {
  for (size_t h = 1; h < n; h *= 2) {
    for (size_t block = 0; block < n; block += 2 * h) {
      for (size_t i = block; i < block + h; ++i) {
        const float a = x[i];
        const float b = x[i + h];
        x[i] = a + b;
        x[i + h] = a - b;
      }
    }
  }
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(n));
  for (size_t i = 0; i < n; ++i) x[i] *= scale;
}
#endif

// The cosine transform across blocks, sixteen positions at a time.
void MixBlocks(const RotationPlan& plan, float* x) {
  const size_t blocks = plan.blocks;
  for (size_t at = 0; at < plan.block; at += 16) {
    float in[kRotationBlocksMax][16];
    for (size_t b = 0; b < blocks; ++b) {
      for (size_t i = 0; i < 16; ++i) in[b][i] = x[b * plan.block + at + i];
    }
    for (size_t b = 0; b < blocks; ++b) {
      float out[16] = {};
      for (size_t k = 0; k < blocks; ++k) {
        const float weight = plan.mix[b * blocks + k];
        for (size_t i = 0; i < 16; ++i) out[i] += weight * in[k][i];
      }
      for (size_t i = 0; i < 16; ++i) x[b * plan.block + at + i] = out[i];
    }
  }
}

// `x` holds plan.length values and is 64-byte aligned.
void Rotate(const RotationPlan& plan, float* x) {
  const size_t n = plan.length;
  for (uint32_t round = 0; round < kRotationRounds; ++round) {
    const float* signs = plan.signs + round * n;
    for (size_t i = 0; i < n; ++i) x[i] *= signs[i];
    for (size_t b = 0; b < n; b += plan.block) Fht(x + b, plan.block);
    if (plan.blocks > 1) MixBlocks(plan, x);
  }
}

// Signed bytes of a query: round(x * inverse_step), which the caller has made to fit into -127 ...
// 127. Returns their sum.
int32_t QuantizeQuery(const float* x, size_t n, float inverse_step, int8_t* out) {
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) {
    // Round half up by a shift into the positive numbers; truncation is what CPUs do fast.
    const auto q = static_cast<int32_t>(x[i] * inverse_step + 128.5f) - 128;
    out[i] = static_cast<int8_t>(q);
    sum += q;
  }
  return sum;
}

float MaxAbs(const float* x, size_t n) {
  float most = 0;
  for (size_t i = 0; i < n; ++i) {
    const float a = __builtin_fabsf(x[i]);
    most = a > most ? a : most;
  }
  return most;
}

// Unsigned codes 0 ... levels - 1: level c stands for (c - (levels - 1) / 2) / inverse_step.
HOTKV_INLINE uint32_t CodeOf(float x, float inverse_step, float middle,
                                                      float top) {
  float c = x * inverse_step + middle;
  c = c < 0.0f ? 0.0f : c;
  c = c > top ? top : c;
  return static_cast<uint32_t>(static_cast<int32_t>(c + 0.5f));
}

// A block of 128 values is 64 bytes: the low nibbles hold the first 64, the high ones the rest.
void EncodeQ4(const float* x, size_t n, float inverse_step, uint8_t* out) {
  for (size_t block = 0; block < n; block += 128) {
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t low = CodeOf(x[block + i], inverse_step, 7.5f, 15.0f);
      const uint32_t high = CodeOf(x[block + 64 + i], inverse_step, 7.5f, 15.0f);
      out[block / 2 + i] = static_cast<uint8_t>(low | high << 4);
    }
  }
}

void EncodeQ8(const float* x, size_t n, float inverse_step, uint8_t* out) {
  for (size_t i = 0; i < n; ++i) {
    out[i] = static_cast<uint8_t>(CodeOf(x[i], inverse_step, 127.5f, 255.0f));
  }
}

// Codes as the signed bytes 2c - 15, returning their sum.
int32_t DecodeQ4(const uint8_t* codes, size_t n, int8_t* out) {
  int32_t sum = 0;
  for (size_t block = 0; block < n; block += 128) {
    for (size_t i = 0; i < 64; ++i) {
      const uint8_t byte = codes[block / 2 + i];
      const int32_t low = 2 * (byte & 15) - 15;
      const int32_t high = 2 * (byte >> 4) - 15;
      out[block + i] = static_cast<int8_t>(low);
      out[block + 64 + i] = static_cast<int8_t>(high);
      sum += low + high;
    }
  }
  return sum;
}

// Codes as the signed bytes c - 128, which are half a step too low each, returning their sum.
int32_t DecodeQ8(const uint8_t* codes, size_t n, int8_t* out) {
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const int32_t q = int32_t{codes[i]} - 128;
    out[i] = static_cast<int8_t>(q);
    sum += q;
  }
  return sum;
}

#ifndef HOTKV_OWN_BIN_SUM
int32_t BinSum(const int8_t* q, const uint8_t* bits, size_t n) {
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += bits[i / 8] >> i % 8 & 1 ? int32_t{q[i]} : 0;
  return sum;
}

void BinSum4(const int8_t* q, const uint8_t* const* rows, size_t n, int32_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = BinSum(q, rows[i], n);
}
#endif

float EncodeBin(const float* x, size_t n, uint8_t* out) {
  float sums[8] = {};
  for (size_t at = 0; at < n; at += 8) {
    uint32_t byte = 0;
    for (size_t i = 0; i < 8; ++i) {
      byte |= (x[at + i] >= 0 ? 1u : 0u) << i;
      sums[i] += __builtin_fabsf(x[at + i]);
    }
    out[at / 8] = static_cast<uint8_t>(byte);
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Bits as the signed bytes 1 and -1, returning their sum.
int32_t DecodeBin(const uint8_t* bits, size_t n, int8_t* out) {
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const int32_t q = bits[i / 8] >> i % 8 & 1 ? 1 : -1;
    out[i] = static_cast<int8_t>(q);
    sum += q;
  }
  return sum;
}
