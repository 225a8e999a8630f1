// Numbers from and to text, as Redis reads and writes them.
//
// Reading is strict where Redis is: an integer has no blanks, no '+', no leading zero, no "-0"; a
// float has no blanks and is never NaN. Writing never loses a value: a double reads back as itself.
//
// Thread rules: pure functions. The float functions assume the "C" locale for numbers, which the
// server never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace hotkv {

inline constexpr size_t kInt64TextMax = 20;  // "-9223372036854775808"
inline constexpr size_t kDoubleTextMax =
    32;  // shortest text of any double, signs and exponent included

// The whole text must be the number, in the only form that Int64ToText gives.
std::optional<int64_t> ParseInt64(std::string_view text);
std::optional<uint64_t> ParseUint64(std::string_view text);

// strtod's forms (decimal, hexadecimal, "inf"), but no blank, no NaN, no overflow and no underflow
// to zero.
std::optional<double> ParseDouble(std::string_view text);
std::optional<long double> ParseLongDouble(std::string_view text);

// Write at most kInt64TextMax bytes; return the end.
char* WriteUint64(char* out, uint64_t value);
inline char* WriteInt64(char* out, int64_t value) {
  if (value >= 0) return WriteUint64(out, static_cast<uint64_t>(value));
  *out = '-';
  return WriteUint64(out + 1, ~static_cast<uint64_t>(value) + 1);
}
std::string Int64ToText(int64_t value);
// Digits that WriteInt64 would write, sign included.
size_t Int64TextSize(int64_t value);

// The shortest text that reads back as the value: "1.5", "1e+21", "inf", "nan", "-0". At most
// kDoubleTextMax bytes; returns the end.
char* WriteDouble(char* out, double value);
std::string DoubleToText(double value);

// Plain decimal notation with at most 17 digits after the point and no trailing zeros, never an
// exponent.
std::string LongDoubleToText(long double value);

// What INCRBYFLOAT stores: value + increment. Decimal texts are added as decimals, so 1000 + 1.8 is
// 1001.8 and not what binary rounding makes of it.
enum class FloatSumError : uint8_t { kNone, kBadValue, kBadIncrement, kNotFinite };
struct FloatSum {
  FloatSumError error = FloatSumError::kNone;
  std::string text;
};
FloatSum AddFloatTexts(std::string_view value, std::string_view increment);

}  // namespace hotkv
