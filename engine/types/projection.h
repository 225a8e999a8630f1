// Projection: random projection of vectors to fewer dimensions (VADD's REDUCE). Each output is a sum of the inputs with
// random signs (Achlioptas, 2003), so lengths and angles are kept about as well as by normal weights. The signs follow
// from the seed alone: nothing but dimensions and seed need be stored, and every machine gets the same.
//
// Thread rules: constant after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hotkv {

class Projection {
 public:
  Projection(uint32_t from, uint32_t to, uint64_t seed);
  uint32_t from() const { return from_; }
  uint32_t to() const { return to_; }
  std::vector<float> Apply(std::span<const float> vector) const;  // of from() components

 private:
  const uint32_t from_;
  const uint32_t to_;
  std::vector<uint64_t> signs_;  // a bit an input, whole words an output
};

}  // namespace hotkv
