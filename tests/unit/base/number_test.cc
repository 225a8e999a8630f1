#include "engine/base/number.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

namespace hotkv {
namespace {

TEST_CASE("integers are read strictly", "[number]") {
  const std::vector<std::pair<std::string, int64_t>> good = {
      {"0", 0},
      {"7", 7},
      {"-1", -1},
      {"9223372036854775807", INT64_MAX},
      {"-9223372036854775808", INT64_MIN},
      {"1000000000000000000", 1000000000000000000},
      {"-10", -10}};
  for (const auto& [text, value] : good) {
    CAPTURE(text);
    REQUIRE(ParseInt64(text).has_value());
    CHECK(*ParseInt64(text) == value);
    CHECK(Int64ToText(value) == text);
  }
  for (const char* text : {"",
                           "-",
                           "+1",
                           " 7",
                           "7 ",
                           "007",
                           "-0",
                           "00",
                           "-01",
                           "1.0",
                           "1e3",
                           "0x10",
                           "abc",
                           "1a",
                           "9223372036854775808",
                           "-9223372036854775809",
                           "18446744073709551616",
                           "99999999999999999999",
                           "100000000000000000000",
                           "--1"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseInt64(text).has_value());
  }
  CHECK_FALSE(ParseInt64(std::string_view("1\0", 2)).has_value());
  CHECK(ParseUint64("18446744073709551615") == UINT64_MAX);
  CHECK_FALSE(ParseUint64("18446744073709551616").has_value());
  CHECK_FALSE(ParseUint64("-1").has_value());
}

TEST_CASE("integers are written as printf writes them", "[number]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const auto value =
        static_cast<int64_t>(random() >> (random() % 64)) * ((random() & 1) != 0 ? 1 : -1);
    char expected[32];
    const int size =
        std::snprintf(expected, sizeof(expected), "%lld", static_cast<long long>(value));
    REQUIRE(Int64ToText(value) == std::string_view(expected, static_cast<size_t>(size)));
    REQUIRE(Int64TextSize(value) == static_cast<size_t>(size));
    REQUIRE(ParseInt64(Int64ToText(value)) == value);
  }
}

TEST_CASE("floats are read as strtod reads them, but strictly", "[number]") {
  CHECK(*ParseDouble("1.5") == 1.5);
  CHECK(*ParseDouble("+1.5") == 1.5);
  CHECK(*ParseDouble("-.5") == -0.5);
  CHECK(*ParseDouble("5.") == 5.0);
  CHECK(*ParseDouble("1e3") == 1000.0);
  CHECK(*ParseDouble("0x1p4") == 16.0);
  CHECK(std::isinf(*ParseDouble("inf")));
  CHECK(*ParseDouble("-Infinity") < 0);
  CHECK(*ParseDouble("+inf") > 0);
  CHECK(*ParseDouble("4.9e-324") > 0);
  CHECK(*ParseLongDouble("1e400") > 1e300L);
  for (const char* text :
       {"", " 1", "1 ", "nan", "-nan", "1e400", "1e-400", "1.2.3", "abc", "1,5", "\t1", "e5"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseDouble(text).has_value());
  }
  for (const char* text : {"", " 12", "12 ", "nan", "1e5000", "x"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseLongDouble(text).has_value());
  }
}

TEST_CASE("doubles are written in their shortest form", "[number]") {
  const std::vector<std::pair<double, std::string>> cases = {
      {0.0, "0"},
      {-0.0, "-0"},
      {1.0, "1"},
      {1.5, "1.5"},
      {-2.25, "-2.25"},
      {0.1, "0.1"},
      {3.141592653589793, "3.141592653589793"},
      {1e15, "1000000000000000"},
      {1e18, "1000000000000000000"},
      {1e21, "1e+21"},
      {1.5e300, "1.5e+300"},
      {1e-5, "0.00001"},
      {1.5e-9, "1.5e-9"},
      {1e-10, "1e-10"},
      {4.9e-324, "5e-324"},
      {std::numeric_limits<double>::infinity(), "inf"},
      {-std::numeric_limits<double>::infinity(), "-inf"},
      {std::nan(""), "nan"},
      {17179869184.5, "17179869184.5"}};
  for (const auto& [value, text] : cases) CHECK(DoubleToText(value) == text);
}

TEST_CASE("every double reads back as itself and fits its buffer", "[number]") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300000; ++i) {
    const uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (i % 3 == 0) value = static_cast<double>(static_cast<int64_t>(bits % 2000000)) / 1000.0;
    if (std::isnan(value)) continue;
    const std::string text = DoubleToText(value);
    REQUIRE(text.size() <= kDoubleTextMax);
    REQUIRE(std::strtod(text.c_str(), nullptr) == value);
    REQUIRE(*ParseDouble(text) == value);
  }
}

std::string Sum(std::string_view a, std::string_view b) {
  const FloatSum sum = AddFloatTexts(a, b);
  CHECK(sum.error == FloatSumError::kNone);
  return sum.text;
}

TEST_CASE("float increments add decimals", "[number]") {
  CHECK(Sum("1000", "1.8") == "1001.8");
  CHECK(Sum("5.0e3", "2.0e2") == "5200");
  CHECK(Sum("10.50", "0.1") == "10.6");
  CHECK(Sum("1001.8", "-1000") == "1.8");
  CHECK(Sum("0.1", "0.2") == "0.3");
  CHECK(Sum("1.8", "-1.8") == "0");
  CHECK(Sum("-0.5", "0.25") == "-0.25");
  CHECK(Sum("3.0e-17", "0") == "0.00000000000000003");
  CHECK(Sum("+1", ".5") == "1.5");
  CHECK(Sum("17179869184", "1.5") == "17179869185.5");
  CHECK(Sum("0", "1e20") == "100000000000000000000");
  CHECK(Sum("0x10", "1") == "17");  // binary arithmetic
  CHECK(Sum("1e300", "1").size() == 301);
  CHECK(AddFloatTexts(" 12", "1").error == FloatSumError::kBadValue);
  CHECK(AddFloatTexts("12", "1 ").error == FloatSumError::kBadIncrement);
  CHECK(AddFloatTexts("1", "nan").error == FloatSumError::kBadIncrement);
  CHECK(AddFloatTexts("1", "+inf").error == FloatSumError::kNotFinite);
  CHECK(AddFloatTexts("", "1").error == FloatSumError::kBadValue);
  CHECK(AddFloatTexts("1e", "1").error == FloatSumError::kBadValue);
  CHECK(AddFloatTexts(".", "1").error == FloatSumError::kBadValue);
}

TEST_CASE("a thousand steps of a tenth make a hundred", "[number]") {
  std::string text = "0";
  for (int i = 0; i < 1000; ++i) text = Sum(text, "0.1");
  CHECK(text == "100");
}

TEST_CASE("long doubles are written without exponent", "[number]") {
  CHECK(LongDoubleToText(1.5L) == "1.5");
  CHECK(LongDoubleToText(-0.0L) == "0");
  CHECK(LongDoubleToText(1e20L) == "100000000000000000000");
  CHECK(LongDoubleToText(0.1L) == "0.1");
}

}  // namespace
}  // namespace hotkv
