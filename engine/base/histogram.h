// Histogram of non-negative integers (latencies in nanoseconds, sizes) with a relative error below 1/128 over the
// whole 64-bit range and a fixed memory of about 60 KB: each power of two is divided into 128 equal buckets.
//
// Thread rules: one writer; merge the writers' histograms to read them together.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace hotkv {

class Histogram {
 public:
  Histogram() : counts_(kBuckets, 0) {}

  void Add(uint64_t value, uint64_t times = 1) {
    counts_[BucketOf(value)] += times;
    count_ += times;
    sum_ += static_cast<double>(value) * static_cast<double>(times);
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }

  void Merge(const Histogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  void Clear() { *this = Histogram(); }

  uint64_t count() const { return count_; }
  uint64_t min() const { return count_ == 0 ? 0 : min_; }
  uint64_t max() const { return max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  // The smallest recorded value (to within the error, never above max()) such that `percent` per cent of all values
  // are not larger. 0 when empty.
  uint64_t Percentile(double percent) const {
    if (count_ == 0) return 0;
    const double share = std::clamp(percent, 0.0, 100.0) / 100.0;
    const auto wanted = std::max<uint64_t>(
        1, static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_) - 1e-9)));
    uint64_t seen = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (seen >= wanted) return std::clamp(UpperEndOf(i), min_, max_);
    }
    return max_;
  }

 private:
  static constexpr unsigned kSubBits = 7;
  static constexpr size_t kSub = size_t{1} << kSubBits;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) * kSub;

  // Values below 256 have a bucket each; above, the top 8 bits choose it.
  static size_t BucketOf(uint64_t value) {
    const unsigned width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > kSubBits + 1 ? width - kSubBits - 1 : 0;
    return shift * kSub + static_cast<size_t>(value >> shift);
  }
  static uint64_t UpperEndOf(size_t bucket) {
    if (bucket < 2 * kSub) return bucket;
    const size_t shift = bucket / kSub - 1;
    const uint64_t top = bucket - shift * kSub;
    return (top << shift) + ((uint64_t{1} << shift) - 1);
  }

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  double sum_ = 0;
  uint64_t min_ = std::numeric_limits<uint64_t>::max();
  uint64_t max_ = 0;
};

}  // namespace hotkv
