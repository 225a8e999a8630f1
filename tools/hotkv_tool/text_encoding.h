// Text forms of bytes that hotkv-tool's NDJSON needs: UTF-8 check, base64, JSON strings, float texts
// (docs/formats/ndjson.md).
//
// Thread rules: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hotkv {

// Well-formed UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view bytes);

// RFC 4648 with padding and without line breaks. Reading is strict: nothing for any other text.
void AppendBase64(std::string_view bytes, std::string* out);
std::optional<std::string> DecodeBase64(std::string_view text);

// A JSON string with its quotes; `utf8` must be UTF-8.
void AppendJsonString(std::string_view utf8, std::string* out);

// How deep brackets outside strings are nested, whether or not the text is JSON. The library that writes values recurses,
// so this is looked at first.
inline constexpr size_t kJsonNestingMax = 64;
size_t JsonNesting(std::string_view text);

// The shortest decimal text that gives the same float, also when it is read as a double and rounded then. Finite only.
void AppendFloat(float value, std::string* out);

}  // namespace hotkv
