#include "engine/base/histogram.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "engine/base/random.h"

namespace hotkv {
namespace {

uint64_t ExactPercentile(std::vector<uint64_t> values, double percent) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(values.size()) - 1e-9));
  return values[std::max<size_t>(rank, 1) - 1];
}

TEST_CASE("histogram: percentiles agree with sorting to within the promised error") {
  Random random(7);
  for (int round = 0; round < 30; ++round) {
    Histogram histogram;
    std::vector<uint64_t> values;
    const unsigned bits = static_cast<unsigned>(random.Between(1, 64));
    const auto count = static_cast<size_t>(random.Between(1, 3000));
    for (size_t i = 0; i < count; ++i) {
      const uint64_t value = random.Next() >> (64 - bits) >> random.Below(bits);
      values.push_back(value);
      histogram.Add(value);
    }
    for (const double percent : {0.0, 0.1, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const uint64_t exact = ExactPercentile(values, percent);
      const uint64_t got = histogram.Percentile(percent);
      CAPTURE(round, percent, exact, got);
      REQUIRE(got >= exact);
      REQUIRE(got - exact <= exact / 128);
    }
    REQUIRE(histogram.max() == *std::max_element(values.begin(), values.end()));
    REQUIRE(histogram.min() == *std::min_element(values.begin(), values.end()));
    REQUIRE(histogram.count() == count);
  }
}

TEST_CASE("histogram: merging equals adding everything to one") {
  Random random(8);
  Histogram parts[3];
  Histogram whole;
  for (int i = 0; i < 5000; ++i) {
    const uint64_t value = random.Below(1'000'000);
    const uint64_t times = 1 + random.Below(3);
    parts[random.Below(3)].Add(value, times);
    whole.Add(value, times);
  }
  Histogram merged;
  for (const Histogram& part : parts) merged.Merge(part);
  REQUIRE(merged.count() == whole.count());
  REQUIRE(merged.mean() == Approx(whole.mean()));
  for (int percent = 0; percent <= 100; ++percent) {
    REQUIRE(merged.Percentile(percent) == whole.Percentile(percent));
  }
}

TEST_CASE("histogram: empty") {
  Histogram histogram;
  REQUIRE(histogram.Percentile(50) == 0);
  REQUIRE(histogram.min() == 0);
  REQUIRE(histogram.mean() == 0);
  histogram.Add(5);
  histogram.Clear();
  REQUIRE(histogram.count() == 0);
}

}  // namespace
}  // namespace hotkv
