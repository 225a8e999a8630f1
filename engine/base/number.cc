#include "engine/base/number.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace hotkv {

namespace {

constexpr std::array<char, 200> MakeDigitPairs() {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; ++i) {
    pairs[i * 2] = static_cast<char>('0' + i / 10);
    pairs[i * 2 + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}
constexpr std::array<char, 200> kDigitPairs = MakeDigitPairs();

unsigned DigitCount(uint64_t value) {
  unsigned digits = 1;
  for (;;) {
    if (value < 10) return digits;
    if (value < 100) return digits + 1;
    if (value < 1000) return digits + 2;
    if (value < 10000) return digits + 3;
    value /= 10000;
    digits += 4;
  }
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Digits only, no leading zero unless the text is "0", no overflow of 64 bits.
bool ParseDigits(std::string_view digits, uint64_t* value) {
  if (digits.empty() || digits.size() > 20) return false;
  if (digits[0] == '0') {
    *value = 0;
    return digits.size() == 1;
  }
  uint64_t sum = 0;
  const size_t safe = digits.size() < 19 ? digits.size() : 19;  // 19 digits always fit in 64 bits
  for (size_t i = 0; i < safe; ++i) {
    const auto digit = static_cast<unsigned>(static_cast<unsigned char>(digits[i])) - '0';
    if (digit > 9) return false;
    sum = sum * 10 + digit;
  }
  if (digits.size() == 20) {
    const auto digit = static_cast<unsigned>(static_cast<unsigned char>(digits[19])) - '0';
    if (digit > 9 || sum > (UINT64_MAX - digit) / 10) return false;
    sum = sum * 10 + digit;
  }
  *value = sum;
  return true;
}

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// strtod and strtold by the same rules; the text is copied since they need a terminating zero.
template <typename Float>
std::optional<Float> ParseWithStrto(std::string_view text, Float (*parse)(const char*, char**)) {
  constexpr size_t kTextMax = 5 * 1024;
  if (text.empty() || text.size() >= kTextMax || IsBlank(text[0])) return std::nullopt;
  char buffer[kTextMax];
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  errno = 0;
  char* end = nullptr;
  const Float value = parse(buffer, &end);
  if (static_cast<size_t>(end - buffer) != text.size() || std::isnan(value)) return std::nullopt;
  const bool out_of_range = std::isinf(value) || value == 0;
  if (errno == EINVAL || (errno == ERANGE && out_of_range)) return std::nullopt;
  return value;
}

// A decimal number times 10^17, exact.
using Decimal = __int128;
constexpr int kFractionDigits = 17;
// Far enough below 2^127 that two of them can be added.
constexpr Decimal kDecimalMax = Decimal{1} << 125;

// The exponent after 'e'; empty when it is malformed or so large that the caller need not care.
std::optional<int> ParseExponent(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty() || text.size() > 4) return std::nullopt;
  int exponent = 0;
  for (char c : text) {
    if (!IsDigit(c)) return std::nullopt;
    exponent = exponent * 10 + (c - '0');
  }
  return negative ? -exponent : exponent;
}

// Empty for texts that are no plain decimal number or do not fit in 17 digits after the point.
std::optional<Decimal> ParseDecimal(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  Decimal mantissa = 0;
  int scale = 0;  // value = mantissa / 10^scale
  bool digits_seen = false;
  bool point_seen = false;
  size_t i = 0;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.' && !point_seen) {
      point_seen = true;
      continue;
    }
    if (!IsDigit(text[i]) || mantissa > kDecimalMax / 10 - 1) return std::nullopt;
    mantissa = mantissa * 10 + (text[i] - '0');
    digits_seen = true;
    scale += point_seen ? 1 : 0;
  }
  if (!digits_seen) return std::nullopt;
  if (i < text.size()) {
    const std::optional<int> exponent = ParseExponent(text.substr(i + 1));
    if (!exponent) return std::nullopt;
    scale -= *exponent;
  }
  if (mantissa == 0) return Decimal{0};
  for (; scale > kFractionDigits; --scale) {
    if (mantissa % 10 != 0) return std::nullopt;
    mantissa /= 10;
  }
  for (; scale < kFractionDigits; ++scale) {
    if (mantissa > kDecimalMax / 10) return std::nullopt;
    mantissa *= 10;
  }
  return negative ? -mantissa : mantissa;
}

std::string DecimalToText(Decimal value) {
  char buffer[64];
  char* p = buffer + sizeof(buffer);
  const bool negative = value < 0;
  Decimal rest = negative ? -value : value;
  bool significant = false;  // zeros at the end of the fraction are left out
  for (int digit = 0; digit < kFractionDigits || rest != 0 || digit == kFractionDigits; ++digit) {
    if (digit == kFractionDigits && significant) *--p = '.';
    const char c = static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
    significant = significant || c != '0';
    if (digit >= kFractionDigits || significant) *--p = c;
  }
  if (negative && value != 0) *--p = '-';
  return {p, static_cast<size_t>(buffer + sizeof(buffer) - p)};
}

// Digits d1 d2 ... dn and the power of ten of the last one.
struct ShortestDigits {
  char digits[24];
  int count = 0;
  int exponent = 0;
};

ShortestDigits ToShortestDigits(double magnitude) {
  char text[40];
  const auto end =
      std::to_chars(text, text + sizeof(text), magnitude, std::chars_format::scientific).ptr;
  ShortestDigits result;
  const char* p = text;
  for (; p < end && *p != 'e'; ++p) {
    if (*p != '.') result.digits[result.count++] = *p;
  }
  int exponent = 0;
  for (const char* q = p + 2; q < end; ++q) exponent = exponent * 10 + (*q - '0');
  if (p[1] == '-') exponent = -exponent;
  result.exponent = exponent - (result.count - 1);
  return result;
}

char* CopyDigits(char* out, const char* digits, int count) {
  std::memcpy(out, digits, static_cast<size_t>(count));
  return out + count;
}

char* FillZeros(char* out, int count) {
  std::memset(out, '0', static_cast<size_t>(count));
  return out + count;
}

char* WriteScientific(char* out, const ShortestDigits& d, int leading_exponent) {
  *out++ = d.digits[0];
  if (d.count > 1) {
    *out++ = '.';
    out = CopyDigits(out, d.digits + 1, d.count - 1);
  }
  *out++ = 'e';
  *out++ = leading_exponent < 0 ? '-' : '+';
  return WriteUint64(out, static_cast<uint64_t>(std::abs(leading_exponent)));
}

// Where plain notation ends and the exponent begins follows Redis, whose clients compare these
// texts.
char* WriteFraction(char* out, double magnitude) {
  const ShortestDigits d = ToShortestDigits(magnitude);
  const int leading_exponent = d.exponent + d.count - 1;
  if (d.exponent >= 0 && std::abs(leading_exponent) < d.count + 7) {
    return FillZeros(CopyDigits(out, d.digits, d.count), d.exponent);
  }
  if (d.exponent < 0 && (d.exponent > -7 || std::abs(leading_exponent) < 4)) {
    const int whole = d.count + d.exponent;
    if (whole <= 0) {
      *out++ = '0';
      *out++ = '.';
      return CopyDigits(FillZeros(out, -whole), d.digits, d.count);
    }
    out = CopyDigits(out, d.digits, whole);
    *out++ = '.';
    return CopyDigits(out, d.digits + whole, d.count - whole);
  }
  return WriteScientific(out, d, leading_exponent);
}

char* WriteText(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace

std::optional<int64_t> ParseInt64(std::string_view text) {
  uint64_t magnitude = 0;
  if (!text.empty() && text[0] == '-') {
    if (!ParseDigits(text.substr(1), &magnitude) || magnitude == 0) return std::nullopt;
    if (magnitude > uint64_t{1} << 63) return std::nullopt;
    return static_cast<int64_t>(~magnitude + 1);
  }
  if (!ParseDigits(text, &magnitude) || magnitude > static_cast<uint64_t>(INT64_MAX))
    return std::nullopt;
  return static_cast<int64_t>(magnitude);
}

std::optional<uint64_t> ParseUint64(std::string_view text) {
  uint64_t value = 0;
  if (!ParseDigits(text, &value)) return std::nullopt;
  return value;
}

std::optional<double> ParseDouble(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (std::isnan(value)) return std::nullopt;
    return value;
  }
  return ParseWithStrto<double>(text, strtod);  // '+', hexadecimal, and everything that is refused
}

std::optional<long double> ParseLongDouble(std::string_view text) {
  return ParseWithStrto<long double>(text, strtold);
}

char* WriteUint64(char* out, uint64_t value) {
  char* const end = out + DigitCount(value);
  char* p = end;
  while (value >= 100) {
    p -= 2;
    std::memcpy(p, &kDigitPairs[(value % 100) * 2], 2);
    value /= 100;
  }
  if (value >= 10) {
    std::memcpy(p - 2, &kDigitPairs[value * 2], 2);
  } else {
    p[-1] = static_cast<char>('0' + value);
  }
  return end;
}

std::string Int64ToText(int64_t value) {
  char buffer[kInt64TextMax];
  return {buffer, static_cast<size_t>(WriteInt64(buffer, value) - buffer)};
}

size_t Int64TextSize(int64_t value) {
  if (value >= 0) return DigitCount(static_cast<uint64_t>(value));
  return 1 + DigitCount(~static_cast<uint64_t>(value) + 1);
}

char* WriteDouble(char* out, double value) {
  if (std::isnan(value)) return WriteText(out, "nan");
  if (std::signbit(value)) {
    *out++ = '-';
    value = -value;
  }
  if (std::isinf(value)) return WriteText(out, "inf");
  constexpr double kIntegerMax = static_cast<double>(INT64_MAX / 2);
  if (value <= kIntegerMax) {
    const auto whole = static_cast<uint64_t>(value);
    if (static_cast<double>(whole) == value) return WriteUint64(out, whole);
  }
  return WriteFraction(out, value);
}

std::string DoubleToText(double value) {
  char buffer[kDoubleTextMax];
  return {buffer, static_cast<size_t>(WriteDouble(buffer, value) - buffer)};
}

std::string LongDoubleToText(long double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const int size = std::snprintf(nullptr, 0, "%.17Lf", value);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), "%.17Lf", value);
  text.pop_back();
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

FloatSum AddFloatTexts(std::string_view value, std::string_view increment) {
  const std::optional<Decimal> a = ParseDecimal(value);
  const std::optional<Decimal> b = ParseDecimal(increment);
  if (a && b) {
    // The sum of a sum stays in range only if it would be read back as a decimal; else binary takes
    // over.
    return {FloatSumError::kNone, DecimalToText(*a + *b)};
  }
  const std::optional<long double> x = ParseLongDouble(value);
  if (!x) return {FloatSumError::kBadValue, {}};
  const std::optional<long double> y = ParseLongDouble(increment);
  if (!y) return {FloatSumError::kBadIncrement, {}};
  const long double sum = *x + *y;
  if (std::isnan(sum) || std::isinf(sum)) return {FloatSumError::kNotFinite, {}};
  return {FloatSumError::kNone, LongDoubleToText(sum)};
}

}  // namespace hotkv
