// Longest common subsequences against the plain table of lengths.
#include <catch2/catch.hpp>

#include <algorithm>

#include "engine/base/random.h"
#include "engine/commands/lcs.h"

namespace hotkv {
namespace {

using Table = std::vector<std::vector<uint32_t>>;

Table LengthTable(std::string_view a, std::string_view b) {
  Table length(a.size() + 1, std::vector<uint32_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      length[i][j] = a[i - 1] == b[j - 1] ? length[i - 1][j - 1] + 1
                                          : std::max(length[i - 1][j], length[i][j - 1]);
    }
  }
  return length;
}

// The walk back through the whole table that the choice among equals is defined by.
std::string Walk(const Table& length, std::string_view a, std::string_view b) {
  std::string text;
  for (size_t i = a.size(), j = b.size(); i > 0 && j > 0;) {
    if (a[i - 1] == b[j - 1]) {
      text.push_back(a[--i]);
      --j;
    } else if (length[i - 1][j] > length[i][j - 1]) {
      --i;
    } else {
      --j;
    }
  }
  std::reverse(text.begin(), text.end());
  return text;
}

std::string RandomText(Random& random, size_t length_max, unsigned letters) {
  std::string text(random.Below(length_max + 1), '\0');
  for (char& c : text) c = static_cast<char>('a' + random.Below(letters));
  return text;
}

TEST_CASE("LCS finds the subsequence that the table of lengths gives") {
  Random random(11);
  for (int round = 0; round < 3000; ++round) {
    const auto letters = static_cast<unsigned>(1 + random.Below(6));
    const std::string a = RandomText(random, round % 10 == 0 ? 200 : 12, letters);
    const std::string b = RandomText(random, round % 10 == 0 ? 200 : 12, letters);
    INFO(a << " " << b);
    const Table table = LengthTable(a, b);
    const LcsResult lcs = FindLcs(a, b);
    REQUIRE(LcsLength(a, b) == table[a.size()][b.size()]);
    REQUIRE(lcs.text == Walk(table, a, b));
  }
}

TEST_CASE("LCS's ranges are equal stretches, from the end, that make up the text") {
  Random random(12);
  for (int round = 0; round < 3000; ++round) {
    const std::string a = RandomText(random, 40, 3);
    const std::string b = RandomText(random, 40, 3);
    INFO(a << " " << b);
    const LcsResult lcs = FindLcs(a, b);
    std::string joined;
    const LcsMatch* behind = nullptr;
    for (const LcsMatch& match : lcs.matches) {
      REQUIRE(match.a_first <= match.a_last);
      REQUIRE(match.a_last < a.size());
      REQUIRE(match.b_last < b.size());
      REQUIRE(match.b_last - match.b_first + 1 == match.size());
      const std::string part = a.substr(match.a_first, match.size());
      REQUIRE(part == b.substr(match.b_first, match.size()));
      if (behind != nullptr) {
        REQUIRE(match.a_last < behind->a_first);
        REQUIRE(match.b_last < behind->b_first);
        // Two that touch in both strings would be one.
        REQUIRE((match.a_last + 1 < behind->a_first || match.b_last + 1 < behind->b_first));
      }
      joined.insert(0, part);
      behind = &match;
    }
    REQUIRE(joined == lcs.text);
  }
}

}  // namespace
}  // namespace hotkv
