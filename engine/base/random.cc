#include "engine/base/random.h"

#include <algorithm>
#include <cmath>

namespace hotkv {
namespace {

// (e^x - 1) / x and ln(1 + x) / x, continuous at 0 (where an exponent of exactly 1 leads).
double ExpM1OverX(double x) {
  return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2 * (1 + x / 3);
}
double Log1POverX(double x) {
  return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x * (0.5 - x / 3);
}

}  // namespace

ZipfGenerator::ZipfGenerator(uint64_t count, double exponent)
    : count_(static_cast<double>(std::max<uint64_t>(count, 1))), exponent_(exponent) {
  integral_at_first_ = IntegralOfDensity(1.5) - 1;
  integral_at_last_ = IntegralOfDensity(count_ + 0.5);
  accept_below_ = 2 - InverseOfIntegral(IntegralOfDensity(2.5) - Density(2));
}

double ZipfGenerator::Density(double x) const { return std::exp(-exponent_ * std::log(x)); }

double ZipfGenerator::IntegralOfDensity(double x) const {
  const double log_x = std::log(x);
  return ExpM1OverX((1 - exponent_) * log_x) * log_x;
}

double ZipfGenerator::InverseOfIntegral(double y) const {
  const double t = std::max(y * (1 - exponent_), -1.0);
  return std::exp(Log1POverX(t) * y);
}

uint64_t ZipfGenerator::Next(Random* random) const {
  for (;;) {
    const double u =
        integral_at_last_ + random->Uniform() * (integral_at_first_ - integral_at_last_);
    const double x = InverseOfIntegral(u);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, count_);
    if (rank - x <= accept_below_ || u >= IntegralOfDensity(rank + 0.5) - Density(rank)) {
      return static_cast<uint64_t>(rank) - 1;
    }
  }
}

}  // namespace hotkv
