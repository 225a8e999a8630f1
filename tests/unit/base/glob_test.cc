#include "engine/base/glob.h"

#include <catch2/catch.hpp>

#include <string>

#include "engine/base/random.h"

namespace hotkv {
namespace {

// The definition, by recursion; for `*`, `?`, `\x` and plain bytes.
bool Reference(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return Reference(pattern.substr(1), text) ||
           (!text.empty() && Reference(pattern, text.substr(1)));
  }
  if (text.empty()) return false;
  if (pattern[0] == '?') return Reference(pattern.substr(1), text.substr(1));
  if (pattern[0] == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
  return pattern[0] == text[0] && Reference(pattern.substr(1), text.substr(1));
}

TEST_CASE("glob patterns match as their definition says") {
  Random random(7);
  constexpr std::string_view kPatternBytes = "ab*?\\*";
  constexpr std::string_view kTextBytes = "ab?*";
  for (int i = 0; i < 200000; ++i) {
    std::string pattern;
    std::string text;
    for (uint64_t n = random.Below(8); n > 0; --n) pattern += kPatternBytes[random.Below(6)];
    for (uint64_t n = random.Below(8); n > 0; --n) text += kTextBytes[random.Below(4)];
    INFO(pattern << " on " << text);
    REQUIRE(GlobMatches(pattern, text) == Reference(pattern, text));
  }
}

TEST_CASE("glob sets") {
  CHECK(GlobMatches("h[ae]llo", "hello"));
  CHECK_FALSE(GlobMatches("h[ae]llo", "hillo"));
  CHECK(GlobMatches("h[^e]llo", "hallo"));
  CHECK_FALSE(GlobMatches("h[^e]llo", "hello"));
  CHECK(GlobMatches("[a-c]", "b"));
  CHECK(GlobMatches("[c-a]", "b"));
  CHECK(GlobMatches("[\\]]", "]"));
  CHECK(GlobMatches("[\\-x]", "-"));
  // Corner cases as redis-server 7.0 answers them.
  CHECK(GlobMatches("[abc", "c"));
  CHECK_FALSE(GlobMatches("[]", "a"));
  CHECK(GlobMatches("[^]", "a"));
  CHECK_FALSE(GlobMatches("[]a]", "a"));
  CHECK_FALSE(GlobMatches("[a-]", "-"));  // a range up to ']', which then closes nothing
  CHECK(GlobMatches("[a-]", "^"));
  CHECK(GlobMatches("a\\", "a\\"));
  CHECK(GlobMatches("*[b]*", "abc"));
  const std::string zero("a\0b", 3);
  CHECK(GlobMatches("a?b", zero));
  CHECK(GlobMatches("[\x80-\xff]", "\xe9"));
}

TEST_CASE("glob patterns ignore case on demand") {
  CHECK_FALSE(GlobMatches("HeLLo*", "hello"));
  CHECK(GlobMatches("HeLLo*", "hElLo world", GlobCase::kInsensitive));
  CHECK(GlobMatches("[A-C]", "b", GlobCase::kInsensitive));
}

TEST_CASE("a glob with many stars takes no exponential time") {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "a*";
  pattern += "b";
  const std::string text(20000, 'a');
  CHECK_FALSE(GlobMatches(pattern, text));
}

TEST_CASE("literal globs are known") {
  CHECK(GlobIsLiteral("abc:def"));
  CHECK_FALSE(GlobIsLiteral("abc*"));
  CHECK_FALSE(GlobIsLiteral("a\\b"));
}

}  // namespace
}  // namespace hotkv
