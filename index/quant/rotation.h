// A random rotation, the same for all vectors of an index: sign flips and fast Walsh-Hadamard
// transforms. After it every component of a unit vector is about normal with deviation
// 1/sqrt(length), whatever the vector was, so that one scale known beforehand quantises all of
// them.
//
// The length is an odd number of blocks (15 at most) of a power of two. A round is: signs, a
// transform of each block, an orthonormal cosine transform across the blocks; two rounds (Ailon and
// Chazelle 2009, with blocks for lengths between powers of two).
//
// Thread rules: constant after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hotkv {

inline constexpr uint32_t kRotationRounds = 2;
inline constexpr uint32_t kRotationMultiple = 128;
inline constexpr uint32_t kRotationBlocksMax = 15;

// What the kernels need of a rotation.
struct RotationPlan {
  uint32_t length = 0;  // a multiple of kRotationMultiple
  uint32_t block = 0;   // a power of two
  uint32_t blocks = 0;
  const float* signs = nullptr;  // length a round, +1 or -1
  const float* mix = nullptr;    // blocks x blocks
};

class Rotation {
 public:
  Rotation(uint32_t dim, uint64_t seed);
  static uint32_t LengthFor(uint32_t dim);
  const RotationPlan& plan() const { return plan_; }

 private:
  std::vector<float> signs_;
  std::vector<float> mix_;
  RotationPlan plan_;
};

}  // namespace hotkv
