#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/base/random.h"
#include "index/distance/targets.h"

namespace hotkv {
namespace {

std::vector<const Target*> Runnable() {
  std::vector<const Target*> list;
  for (const Target* target : AllTargets()) {
    if (target->supported()) list.push_back(target);
  }
  return list;
}

// Memory at a chosen misalignment, ended by a page that must not be read.
class Rows {
 public:
  Rows(size_t count, size_t n, size_t misalign, Random* random, float scale) : n_(n) {
    for (size_t r = 0; r < count; ++r) {
      memory_.emplace_back(n + 32);
      char* start = reinterpret_cast<char*>(memory_.back().data());
      start += (64 - reinterpret_cast<uintptr_t>(start) % 64) % 64 + misalign;
      rows_.push_back(reinterpret_cast<float*>(start));
      for (size_t i = 0; i < n; ++i) {
        const auto x = static_cast<float>(random->Uniform() * 2 - 1) * scale;
        std::memcpy(start + i * sizeof(float), &x, sizeof(float));
      }
    }
  }
  const float* operator[](size_t i) const { return rows_[i]; }
  size_t n() const { return n_; }

 private:
  size_t n_;
  std::vector<std::vector<float>> memory_;
  std::vector<float*> rows_;
};

struct Truth {
  double dot = 0;
  double l2 = 0;
  double magnitude = 0;  // of the products: what rounding errors are relative to
  double l2_magnitude = 0;
};

Truth Exactly(const float* a, const float* b, size_t n) {
  Truth t;
  for (size_t i = 0; i < n; ++i) {
    const double x = a[i];
    const double y = b[i];
    t.dot += x * y;
    t.magnitude += std::abs(x * y);
    t.l2 += (x - y) * (x - y);
  }
  t.l2_magnitude = t.l2;
  return t;
}

void CheckAll(const Target& target, const Rows& rows) {
  const size_t n = rows.n();
  const double slack = 1e-6 * std::sqrt(static_cast<double>(n) + 16);
  const float* four[4] = {rows[1], rows[2], rows[3], rows[4]};
  float dots[4];
  float l2s[4];
  target.raw.f32_dot4(rows[0], four, n, dots);
  target.raw.f32_l2_4(rows[0], four, n, l2s);
  for (int i = 0; i < 4; ++i) {
    const Truth t = Exactly(rows[0], four[i], n);
    INFO(target.name << " n " << n);
    CHECK(std::abs(dots[i] - t.dot) <= slack * t.magnitude);
    CHECK(std::abs(l2s[i] - t.l2) <= slack * t.l2_magnitude);
    CHECK(std::abs(target.raw.f32_dot(rows[0], four[i], n) - t.dot) <= slack * t.magnitude);
    CHECK(std::abs(target.raw.f32_l2(rows[0], four[i], n) - t.l2) <= slack * t.l2_magnitude);
  }
}

TEST_CASE("every target that runs here is listed and can be forced", "[index][kernels]") {
  const auto targets = Runnable();
  REQUIRE(!targets.empty());
  CHECK(std::string(targets.back()->name) == "scalar");
  for (const Target* target : targets) {
    REQUIRE(OverrideTarget(target->name));
    CHECK(&CurrentTarget() == target);
  }
  CHECK_FALSE(OverrideTarget("none"));
  REQUIRE(OverrideTarget(""));
  CHECK(&CurrentTarget() == targets.front());
}

TEST_CASE("float kernels agree with double arithmetic on dimensions 1 to 257", "[index][kernels]") {
  Random random(1);
  for (const Target* target : Runnable()) {
    for (size_t n = 1; n <= 257; ++n) {
      for (const size_t misalign : {size_t{0}, size_t{4}, size_t{20}}) {
        CheckAll(*target, Rows(5, n, misalign, &random, 1.0f));
      }
    }
  }
}

TEST_CASE("float kernels agree on large, odd and extreme input", "[index][kernels]") {
  Random random(2);
  for (const Target* target : Runnable()) {
    for (const size_t n : {384u, 383u, 1536u, 1537u, 4095u, 32767u, 32768u}) {
      CheckAll(*target, Rows(5, n, 0, &random, 1.0f));
      CheckAll(*target, Rows(5, n, 12, &random, 1e15f));
      CheckAll(*target, Rows(5, n, 8, &random, 1e-12f));
    }
  }
}

TEST_CASE("float kernels do not read what lies behind a row", "[index][kernels]") {
  for (const Target* target : Runnable()) {
    for (size_t n = 1; n <= 64; ++n) {
      std::vector<float> a(n + 64, std::numeric_limits<float>::quiet_NaN());
      std::vector<float> b = a;
      for (size_t i = 0; i < n; ++i) a[i] = b[i] = 1;
      CHECK(target->raw.f32_dot(a.data(), b.data(), n) == static_cast<float>(n));
      CHECK(target->raw.f32_l2(a.data(), b.data(), n) == 0);
      const float* four[4] = {b.data(), b.data(), b.data(), b.data()};
      float out[4];
      target->raw.f32_dot4(a.data(), four, n, out);
      CHECK(out[3] == static_cast<float>(n));
      target->raw.f32_l2_4(a.data(), four, n, out);
      CHECK(out[0] == 0);
    }
  }
}

TEST_CASE("an infinite product stays infinite, NaN stays NaN", "[index][kernels]") {
  for (const Target* target : Runnable()) {
    std::vector<float> a(100, 1);
    std::vector<float> b(100, 1);
    b[99] = std::numeric_limits<float>::infinity();
    CHECK(std::isinf(target->raw.f32_dot(a.data(), b.data(), 100)));
    CHECK(std::isinf(target->raw.f32_l2(a.data(), b.data(), 100)));
    b[7] = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(target->raw.f32_dot(a.data(), b.data(), 100)));
  }
}

}  // namespace
}  // namespace hotkv
