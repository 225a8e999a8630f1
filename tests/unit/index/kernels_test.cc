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

TEST_CASE("half float kernels agree with double arithmetic, encoding rounds to nearest",
          "[index][kernels]") {
  Random random(3);
  for (const Target* target : Runnable()) {
    for (size_t n = 1; n <= 257; ++n) {
      std::vector<float> q(n);
      std::vector<float> x(n);
      for (size_t i = 0; i < n; ++i) {
        q[i] = static_cast<float>(random.Uniform() * 2 - 1);
        x[i] = static_cast<float>(random.Uniform() * 2 - 1);
        if (random.Below(50) == 0) x[i] *= 1e-6f;  // subnormal halves
      }
      std::vector<uint16_t> halves(n + 16, 0x7e00);  // NaN behind the end
      target->raw.f16_encode(x.data(), n, halves.data());
      std::vector<uint16_t> plain(n);
      AllTargets().back()->raw.f16_encode(x.data(), n, plain.data());
      double dot = 0;
      double l2 = 0;
      for (size_t i = 0; i < n; ++i) {
        CHECK(halves[i] == plain[i]);
        std::vector<float> one(1, 1.0f);
        const double back = target->raw.f16_dot(one.data(), halves.data() + i, 1);
        CHECK(std::abs(back - x[i]) <= std::max(std::abs(x[i]) * 0x1p-11, 0x1p-25));
        dot += back * q[i];
        l2 += (back - q[i]) * (back - q[i]);
      }
      CHECK(halves[n] == 0x7e00);
      CHECK(target->raw.f16_dot(q.data(), halves.data(), n) == Approx(dot).margin(1e-5));
      CHECK(target->raw.f16_l2(q.data(), halves.data(), n) == Approx(l2).margin(1e-5));
    }
  }
}

TEST_CASE("code kernels give exact integer sums", "[index][kernels]") {
  Random random(4);
  for (const Target* target : Runnable()) {
    for (size_t n = 128; n <= 32768; n = n < 2048 ? n + 128 : n * 2) {
      for (const bool extreme : {false, true}) {
        std::vector<int8_t> q(n);
        std::vector<std::vector<uint8_t>> rows(4, std::vector<uint8_t>(n));
        for (int8_t& b : q)
          b = extreme ? int8_t{-127} : static_cast<int8_t>(random.Between(-127, 127));
        for (auto& row : rows) {
          for (uint8_t& b : row)
            b = extreme ? uint8_t{255} : static_cast<uint8_t>(random.Below(256));
        }
        const uint8_t* four[4] = {rows[0].data(), rows[1].data(), rows[2].data(), rows[3].data()};
        int32_t got4[4];
        int32_t got8[4];
        target->raw.q4_sum4(q.data(), four, n, got4);
        target->raw.q8_sum4(q.data(), four, n, got8);
        for (int r = 0; r < 4; ++r) {
          int64_t want4 = 0;
          int64_t want8 = 0;
          for (size_t i = 0; i < n; ++i) {
            const size_t block = i / 128 * 128;
            const uint8_t byte = four[r][block / 2 + i % 64];
            want4 += int64_t{q[i]} * (i - block < 64 ? byte & 15 : byte >> 4);
            want8 += int64_t{q[i]} * four[r][i];
          }
          CHECK(got4[r] == want4);
          CHECK(got8[r] == want8);
          CHECK(target->raw.q4_sum(q.data(), four[r], n) == want4);
          CHECK(target->raw.q8_sum(q.data(), four[r], n) == want8);
          int32_t got1[4];
          target->raw.bin_sum4(q.data(), four, n, got1);
          int64_t want1 = 0;
          for (size_t i = 0; i < n; ++i) want1 += four[r][i / 8] >> i % 8 & 1 ? q[i] : 0;
          CHECK(got1[r] == want1);
          CHECK(target->raw.bin_sum(q.data(), four[r], n) == want1);
        }
      }
    }
  }
}

TEST_CASE("the rotation keeps lengths and angles and spreads what is heaped", "[index][kernels]") {
  Random random(5);
  for (const Target* target : Runnable()) {
    for (const uint32_t dim : {1u, 100u, 128u, 384u, 640u, 1000u, 1536u, 1537u, 4096u, 32768u}) {
      const Rotation rotation(dim, 42);
      const uint32_t n = rotation.plan().length;
      REQUIRE(n % 128 == 0);
      REQUIRE(n >= dim);
      PrivateMemory memory_a(n * sizeof(float));
      PrivateMemory memory_b(n * sizeof(float));
      auto* a = reinterpret_cast<float*>(memory_a.data());
      auto* b = reinterpret_cast<float*>(memory_b.data());
      a[random.Below(dim)] = 1;  // all in one component
      double dot = 0;
      double bb = 0;
      for (uint32_t i = 0; i < dim; ++i) {
        b[i] = static_cast<float>(random.Uniform() - 0.5);
        dot += double{a[i]} * b[i];
        bb += double{b[i]} * b[i];
      }
      target->raw.rotate(rotation.plan(), a);
      target->raw.rotate(rotation.plan(), b);
      CHECK(target->raw.f32_dot(a, a, n) == Approx(1).epsilon(1e-4));
      CHECK(target->raw.f32_dot(b, b, n) == Approx(bb).epsilon(1e-4));
      CHECK(target->raw.f32_dot(a, b, n) == Approx(dot).margin(1e-3));
      // A normal sample of this length has no component beyond five deviations or so.
      CHECK(target->raw.max_abs(a, n) * std::sqrt(static_cast<float>(n)) < 6);
    }
  }
}

TEST_CASE("quantisers round, clip, and tell the sum of a query", "[index][kernels]") {
  Random random(6);
  for (const Target* target : Runnable()) {
    const size_t n = 384;
    std::vector<float> x(n);
    for (float& v : x) v = static_cast<float>(random.Uniform() * 6 - 3);
    std::vector<int8_t> q(n);
    const float most = target->raw.max_abs(x.data(), n);
    const int32_t sum = target->raw.quantize_query(x.data(), n, 127 / most, q.data());
    int32_t want = 0;
    for (size_t i = 0; i < n; ++i) {
      CHECK(std::abs(q[i] - x[i] * 127 / most) <= 0.501f);
      want += q[i];
    }
    CHECK(sum == want);
    std::vector<uint8_t> four(n / 2);
    std::vector<uint8_t> eight(n);
    target->raw.encode_q4(x.data(), n, 4.0f, four.data());  // steps of 0.25, so -1.875 ... 1.875
    target->raw.encode_q8(x.data(), n, 100.0f, eight.data());
    for (size_t i = 0; i < n; ++i) {
      const size_t block = i / 128 * 128;
      const uint8_t byte = four[block / 2 + i % 64];
      const double code = i - block < 64 ? byte & 15 : byte >> 4;
      CHECK(std::abs((code - 7.5) / 4 - std::clamp(double{x[i]}, -1.875, 1.875)) <= 0.126);
      CHECK(std::abs((eight[i] - 127.5) / 100 - std::clamp(double{x[i]}, -1.275, 1.275)) <= 0.0051);
    }
    std::vector<uint8_t> bits(n / 8);
    double magnitude = 0;
    CHECK(target->raw.encode_bin(x.data(), n, bits.data()) > 0);
    for (size_t i = 0; i < n; ++i) {
      CHECK((bits[i / 8] >> i % 8 & 1) == (x[i] >= 0 ? 1 : 0));
      magnitude += std::abs(double{x[i]});
    }
    CHECK(target->raw.encode_bin(x.data(), n, bits.data()) == Approx(magnitude).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace hotkv
