#include "index/quant/rotation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "engine/base/random.h"

namespace hotkv {

// The least odd * 2^k that is large enough, so that at most a fifteenth is padding.
uint32_t Rotation::LengthFor(uint32_t dim) {
  uint32_t best = std::max(kRotationMultiple, std::bit_ceil(dim));
  for (uint32_t blocks = 3; blocks <= kRotationBlocksMax; blocks += 2) {
    const uint32_t block = std::max(kRotationMultiple, std::bit_ceil((dim + blocks - 1) / blocks));
    best = std::min(best, block * blocks);
  }
  return best;
}

Rotation::Rotation(uint32_t dim, uint64_t seed) {
  plan_.length = LengthFor(dim);
  plan_.block = 1u << std::countr_zero(plan_.length);
  plan_.blocks = plan_.length / plan_.block;
  Random random(seed);  // part of the file format: codes on disk depend on it
  signs_.resize(size_t{plan_.length} * kRotationRounds);
  for (float& sign : signs_) sign = (random.Next() >> 63) != 0 ? -1.0f : 1.0f;
  const double n = plan_.blocks;
  for (uint32_t row = 0; row < plan_.blocks; ++row) {
    const double norm = std::sqrt((row == 0 ? 1 : 2) / n);
    for (uint32_t column = 0; column < plan_.blocks; ++column) {
      mix_.push_back(
          static_cast<float>(norm * std::cos(std::numbers::pi / n * (column + 0.5) * row)));
    }
  }
  plan_.signs = signs_.data();
  plan_.mix = mix_.data();
}

}  // namespace hotkv
