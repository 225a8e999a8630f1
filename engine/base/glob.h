// Glob patterns as KEYS, SCAN, PSUBSCRIBE, CONFIG GET and ACL rules use them: `*` any bytes, `?`
// one byte, `[abc]`,
// `[a-z]`, `[^a]` one byte of (or not of) a set, `\x` the byte x itself. Bytes, not characters.
//
// Redis's corner cases: a set that is not closed ends with the pattern, a range given backwards is
// turned round, a lone backslash at the end stands for itself, `[]` matches nothing and `[^]` any
// byte.
//
// Time: at most pattern length × text length, however many stars there are (only the last star is
// ever taken back). Thread rules: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace hotkv {

enum class GlobCase : uint8_t { kSensitive, kInsensitive };

bool GlobMatches(std::string_view pattern, std::string_view text,
                 GlobCase letter_case = GlobCase::kSensitive);

// True when the pattern has no special byte, so that it matches only itself.
bool GlobIsLiteral(std::string_view pattern);

}  // namespace hotkv
