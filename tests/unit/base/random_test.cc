#include "engine/base/random.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

namespace hotkv {
namespace {

TEST_CASE("random: SplitMix64 gives the published sequence for seed 0") {
  uint64_t state = 0;
  REQUIRE(SplitMix64(&state) == 0xE220A8397B1DCDAFULL);
  REQUIRE(SplitMix64(&state) == 0x6E789E6AA1B965F4ULL);
  REQUIRE(SplitMix64(&state) == 0x06C45D188009454FULL);
}

TEST_CASE("random: ranges are kept and reached") {
  Random random(3);
  bool low = false;
  bool high = false;
  for (int i = 0; i < 10000; ++i) {
    REQUIRE(random.Below(7) < 7);
    const int64_t value = random.Between(-3, 3);
    REQUIRE(value >= -3);
    REQUIRE(value <= 3);
    low = low || value == -3;
    high = high || value == 3;
    const double share = random.Uniform();
    REQUIRE(share >= 0);
    REQUIRE(share < 1);
  }
  REQUIRE(low);
  REQUIRE(high);
  REQUIRE(random.Below(0) == 0);
  REQUIRE(random.Below(1) == 0);
  random.Between(INT64_MIN, INT64_MAX);
}

TEST_CASE("random: uniform draws pass a chi-square test") {
  constexpr size_t kCells = 100;
  constexpr size_t kDraws = 200'000;
  Random random(11);
  std::vector<double> seen(kCells, 0);
  for (size_t i = 0; i < kDraws; ++i) seen[random.Below(kCells)] += 1;
  double chi = 0;
  const double expected = static_cast<double>(kDraws) / kCells;
  for (const double count : seen) chi += (count - expected) * (count - expected) / expected;
  REQUIRE(chi < 160);  // 99 degrees of freedom: above 160 has a probability of 1e-4, and the seed is fixed
}

void CheckZipf(uint64_t count, double exponent) {
  constexpr size_t kDraws = 400'000;
  double norm = 0;
  for (uint64_t rank = 1; rank <= count; ++rank) norm += std::pow(static_cast<double>(rank), -exponent);
  const ZipfGenerator zipf(count, exponent);
  Random random(5);
  std::vector<double> seen(count, 0);
  for (size_t i = 0; i < kDraws; ++i) {
    const uint64_t rank = zipf.Next(&random);
    REQUIRE(rank < count);
    seen[rank] += 1;
  }
  for (uint64_t rank = 0; rank < count && rank < 200; ++rank) {
    const double expected = kDraws * std::pow(static_cast<double>(rank + 1), -exponent) / norm;
    CAPTURE(count, exponent, rank, expected, seen[rank]);
    REQUIRE(std::abs(seen[rank] - expected) < 5 * std::sqrt(expected) + 5);
  }
}

TEST_CASE("random: Zipf frequencies follow the law") {
  CheckZipf(1, 0.99);
  CheckZipf(2, 0.99);
  CheckZipf(1000, 0.99);
  CheckZipf(1000, 1.0);
  CheckZipf(100, 2.5);
  CheckZipf(50'000, 0.5);
}

}  // namespace
}  // namespace hotkv
