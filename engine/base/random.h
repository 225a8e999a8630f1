// Pseudo-random numbers for load, tests and data structures: SplitMix64 (seeding), xoshiro256** (everything else) and
// a Zipf distribution. None of it is for secrets.
//
// Sources: Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2018); Hörmann and Derflinger,
// "Rejection-inversion to generate variates from monotone discrete distributions" (1996).
// Thread rules: one object a thread; a ZipfGenerator is constant after construction and may be shared.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace hotkv {

// One step of SplitMix64: a good mixer of any 64-bit state, used to fill larger states from a small seed.
inline uint64_t SplitMix64(uint64_t* state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = SplitMix64(&seed);
  }

  uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // In [0, bound); 0 for bound 0. The bias is below bound / 2^64.
  uint64_t Below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(Next()) * bound) >> 64);
  }

  // In [low, high], both included.
  int64_t Between(int64_t low, int64_t high) {
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
    const uint64_t step = span == 0 ? Next() : Below(span);
    return static_cast<int64_t>(static_cast<uint64_t>(low) + step);
  }

  // In [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  std::array<uint64_t, 4> state_;
};

// Ranks 0 … count-1, rank r with a probability proportional to 1 / (r + 1)^exponent. Constant memory and time.
class ZipfGenerator {
 public:
  // count >= 1, exponent > 0 (0.99 is what key-value benchmarks use).
  ZipfGenerator(uint64_t count, double exponent);
  uint64_t Next(Random* random) const;

 private:
  double IntegralOfDensity(double x) const;
  double InverseOfIntegral(double y) const;
  double Density(double x) const;

  double count_;
  double exponent_;
  double integral_at_first_;
  double integral_at_last_;
  double accept_below_;
};

}  // namespace hotkv
