#include "tools/hotkv_tool/text_encoding.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace hotkv {

namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNotBase64 = 0xff;

constexpr std::array<uint8_t, 256> MakeReverse() {
  std::array<uint8_t, 256> reverse{};
  for (uint8_t& r : reverse) r = kNotBase64;
  for (uint8_t i = 0; i < kAlphabet.size(); ++i) reverse[static_cast<uint8_t>(kAlphabet[i])] = i;
  return reverse;
}
constexpr std::array<uint8_t, 256> kReverse = MakeReverse();

uint32_t Byte(std::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

// Length of the sequence that begins at `i`; 0 when it is not well formed.
size_t Utf8Sequence(std::string_view bytes, size_t i) {
  const uint32_t lead = Byte(bytes, i);
  if (lead < 0x80) return 1;
  size_t length = 0;
  uint32_t least = 0;
  uint32_t code = 0;
  if ((lead & 0xe0) == 0xc0) {
    length = 2, least = 0x80, code = lead & 0x1f;
  } else if ((lead & 0xf0) == 0xe0) {
    length = 3, least = 0x800, code = lead & 0x0f;
  } else if ((lead & 0xf8) == 0xf0) {
    length = 4, least = 0x10000, code = lead & 0x07;
  }
  if (length == 0 || bytes.size() - i < length) return 0;
  for (size_t k = 1; k < length; ++k) {
    const uint32_t next = Byte(bytes, i + k);
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3f);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < least || code > 0x10ffff || surrogate ? 0 : length;
}

}  // namespace

bool IsUtf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = Utf8Sequence(bytes, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

void AppendBase64(std::string_view bytes, std::string* out) {
  size_t i = 0;
  auto put = [out](uint32_t bits, size_t digits) {
    for (size_t d = 0; d < digits; ++d) out->push_back(kAlphabet[bits >> (18 - 6 * d) & 63]);
    out->append(4 - digits, '=');
  };
  for (; i + 3 <= bytes.size(); i += 3) {
    put(Byte(bytes, i) << 16 | Byte(bytes, i + 1) << 8 | Byte(bytes, i + 2), 4);
  }
  if (bytes.size() - i == 1) put(Byte(bytes, i) << 16, 2);
  if (bytes.size() - i == 2) put(Byte(bytes, i) << 16 | Byte(bytes, i + 1) << 8, 3);
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    uint32_t bits = 0;
    for (size_t d = 0; d < 4; ++d) {
      const uint8_t value = d < digits ? kReverse[static_cast<uint8_t>(text[i + d])] : 0;
      if (value == kNotBase64) return std::nullopt;
      bits = bits << 6 | value;
    }
    // Bits behind the last byte must be zero, or two texts would stand for the same bytes.
    if (digits < 4 && (bits & (digits == 3 ? 0xffu : 0xffffu)) != 0) return std::nullopt;
    out.push_back(static_cast<char>(bits >> 16));
    if (digits > 2) out.push_back(static_cast<char>(bits >> 8 & 0xff));
    if (digits > 3) out.push_back(static_cast<char>(bits & 0xff));
  }
  return out;
}

void AppendJsonString(std::string_view utf8, std::string* out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out->push_back('"');
  for (const char c : utf8) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte >= 0x20 && byte != 0x7f) {
      out->push_back(c);
    } else if (c == '\n') {
      out->append("\\n");
    } else if (c == '\t') {
      out->append("\\t");
    } else {
      out->append("\\u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
    }
  }
  out->push_back('"');
}

size_t JsonNesting(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

void AppendFloat(float value, std::string* out) {
  char text[64];
  char* end = std::to_chars(text, text + sizeof(text), value).ptr;
  double nearest = 0;
  std::from_chars(text, end, nearest);
  if (static_cast<float>(nearest) != value) {
    end = std::to_chars(text, text + sizeof(text), static_cast<double>(value)).ptr;
  }
  out->append(text, end);
}

}  // namespace hotkv
