// Reading chosen top-level fields of a JSON object in one pass, without building anything: what a
// filter sees of an element's attributes. The pass checks the whole text (RFC 8259; bytes above
// 0x7f are taken as they are), so a text that is not an object never yields values.
//
// Thread rules: constant after construction.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hotkv {

// Deeper nesting counts as malformed.
inline constexpr uint32_t kJsonDepthMax = 128;

enum class JsonKind : uint8_t {
  kMissing,
  kNull,
  kBool,    // number: 0 or 1
  kNumber,  // number
  kString,  // text: decoded
  kArray,   // text: the array as written, of strings and numbers only
  kOther,   // an object, or an array of something else
};

struct JsonValue {
  JsonKind kind = JsonKind::kMissing;
  double number = 0;
  std::string_view text;
};

class JsonFields {
 public:
  JsonFields() = default;
  explicit JsonFields(std::vector<std::string> names) : names_(std::move(names)) {}
  const std::vector<std::string>& names() const { return names_; }

  // Fills values[i] with the field names()[i], the first one where a name occurs twice. False when
  // `json` is not an object; the values then mean nothing. Texts point into `json` or `arena`.
  bool Read(std::string_view json, std::span<JsonValue> values, std::string* arena) const;

 private:
  std::vector<std::string> names_;
};

// Visits the strings and numbers of an array as JsonKind::kArray has it, until `visit` returns
// false. Strings are decoded and valid during the call only.
template <typename Visit>
void ForEachInJsonArray(std::string_view array, Visit&& visit);

// One element of such an array; `at` moves behind it. False at the end.
bool NextInJsonArray(std::string_view array, size_t* at, JsonValue* value, std::string* scratch);

template <typename Visit>
void ForEachInJsonArray(std::string_view array, Visit&& visit) {
  std::string scratch;
  JsonValue value;
  size_t at = 0;
  while (NextInJsonArray(array, &at, &value, &scratch)) {
    if (!visit(value)) return;
  }
}

// Any text as a number: strtod of the whole, else 0.
double TextToNumber(std::string_view text);

}  // namespace hotkv
