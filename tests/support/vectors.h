// Vectors of tests: as the bytes of a command, at random, and their cosine straight from the definition.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace hotkv {

inline std::string Blob(const std::vector<float>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float)};
}

inline std::vector<float> RandomVector(std::mt19937* random, size_t dim) {
  std::normal_distribution<float> normal;
  std::vector<float> v(dim);
  for (float& x : v) x = normal(*random);
  return v;
}

inline double Cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double dot = 0;
  double na = 0;
  double nb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    dot += double{a[i]} * double{b[i]};
    na += double{a[i]} * double{a[i]};
    nb += double{b[i]} * double{b[i]};
  }
  return dot / std::sqrt(na * nb);
}

}  // namespace hotkv
