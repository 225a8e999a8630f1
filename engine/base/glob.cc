#include "engine/base/glob.h"

#include <algorithm>
#include <cstddef>

namespace hotkv {

namespace {

class Fold {
 public:
  explicit Fold(GlobCase letter_case) : insensitive_(letter_case == GlobCase::kInsensitive) {}
  unsigned char operator()(char c) const {
    const auto byte = static_cast<unsigned char>(c);
    return insensitive_ && byte >= 'A' && byte <= 'Z' ? static_cast<unsigned char>(byte + 32)
                                                      : byte;
  }

 private:
  const bool insensitive_;
};

// A set that starts at pattern[at] == '['. Advances *at behind it.
bool SetMatches(std::string_view pattern, size_t* at, char c, Fold fold) {
  size_t i = *at + 1;
  const bool negated = i < pattern.size() && pattern[i] == '^';
  if (negated) ++i;
  const unsigned char wanted = fold(c);
  bool found = false;
  while (i < pattern.size() && pattern[i] != ']') {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      found |= fold(pattern[i + 1]) == wanted;
      i += 2;
    } else if (i + 2 < pattern.size() && pattern[i + 1] == '-') {
      unsigned char low = fold(pattern[i]);
      unsigned char high = fold(pattern[i + 2]);
      if (low > high) std::swap(low, high);
      found |= wanted >= low && wanted <= high;
      i += 3;
    } else {
      found |= fold(pattern[i]) == wanted;
      ++i;
    }
  }
  *at = i < pattern.size() ? i + 1 : i;
  return found != negated;
}

// Matches one byte of text against the element at pattern[*at], which is no star. Advances *at
// behind the element.
bool ElementMatches(std::string_view pattern, size_t* at, char c, Fold fold) {
  const char head = pattern[*at];
  if (head == '[') return SetMatches(pattern, at, c, fold);
  if (head == '\\' && *at + 1 < pattern.size()) ++*at;
  const bool any = head == '?';
  return fold(pattern[(*at)++]) == fold(c) || any;
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view text, GlobCase letter_case) {
  const Fold fold(letter_case);
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t p = 0;
  size_t t = 0;
  size_t behind_star =
      kNone;             // where to go on in the pattern when the last star takes one byte more
  size_t star_text = 0;  // first byte of text behind what the last star has taken
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      behind_star = ++p;
      star_text = t;
      continue;
    }
    if (p < pattern.size() && ElementMatches(pattern, &p, text[t], fold)) {
      ++t;
      continue;
    }
    if (behind_star == kNone) return false;
    if (behind_star == pattern.size()) return true;
    p = behind_star;
    t = ++star_text;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool GlobIsLiteral(std::string_view pattern) {
  return pattern.find_first_of("*?[\\") == std::string_view::npos;
}

}  // namespace hotkv
