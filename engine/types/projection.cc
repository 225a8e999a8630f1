#include "engine/types/projection.h"

#include <cmath>

#include "engine/base/check.h"
#include "engine/base/random.h"

namespace hotkv {

namespace {
constexpr uint32_t kBits = 64;
}  // namespace

Projection::Projection(uint32_t from, uint32_t to, uint64_t seed) : from_(from), to_(to) {
  signs_.resize(size_t{(from + kBits - 1) / kBits} * to);
  for (uint64_t& word : signs_) word = SplitMix64(&seed);
}

std::vector<float> Projection::Apply(std::span<const float> vector) const {
  HOTKV_CHECK(vector.size() == from_);
  const size_t words = (from_ + kBits - 1) / kBits;
  const double scale = 1 / std::sqrt(static_cast<double>(to_));
  std::vector<float> out(to_);
  for (size_t row = 0; row < to_; ++row) {
    double sum = 0;
    for (size_t i = 0; i < from_; ++i) {
      const bool minus = (signs_[row * words + i / kBits] >> (i % kBits) & 1) != 0;
      sum += minus ? -double{vector[i]} : double{vector[i]};
    }
    out[row] = static_cast<float>(sum * scale);
  }
  return out;
}

}  // namespace hotkv
