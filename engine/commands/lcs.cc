#include "engine/commands/lcs.h"

#include <algorithm>
#include <utility>

namespace hotkv {

namespace {

// One row of the table after the other: row[j] is the length for the first i bytes of a and the
// first j of b. `mark` is called for each cell whose bytes differ and whose upper neighbour (one
// byte of a less) is the longer one.
template <typename Mark>
size_t FillTable(std::string_view a, std::string_view b, Mark&& mark) {
  std::vector<uint32_t> row(b.size() + 1, 0);
  for (size_t i = 0; i < a.size(); ++i) {
    uint32_t diagonal = 0;  // of the row above
    for (size_t j = 0; j < b.size(); ++j) {
      const uint32_t above = row[j + 1];
      if (a[i] == b[j]) {
        row[j + 1] = diagonal + 1;
      } else if (above > row[j]) {
        mark(i, j);
      } else {
        row[j + 1] = row[j];
      }
      diagonal = above;
    }
  }
  return row[b.size()];
}

class BitTable {
 public:
  BitTable(size_t rows, size_t columns)
      : columns_(columns), words_((rows * columns + 63) / 64, 0) {}
  void Set(size_t row, size_t column) {
    const size_t bit = row * columns_ + column;
    words_[bit / 64] |= uint64_t{1} << (bit % 64);
  }
  bool Get(size_t row, size_t column) const {
    const size_t bit = row * columns_ + column;
    return (words_[bit / 64] >> (bit % 64) & 1) != 0;
  }

 private:
  const size_t columns_;
  std::vector<uint64_t> words_;
};

void AddMatch(LcsResult* result, uint32_t i, uint32_t j) {
  if (!result->matches.empty()) {
    LcsMatch& last = result->matches.back();
    if (last.a_first == i + 1 && last.b_first == j + 1) {
      last.a_first = i;
      last.b_first = j;
      return;
    }
  }
  result->matches.push_back({i, i, j, j});
}

}  // namespace

size_t LcsLength(std::string_view a, std::string_view b) {
  return FillTable(a, b, [](size_t, size_t) {});
}

LcsResult FindLcs(std::string_view a, std::string_view b) {
  LcsResult result;
  BitTable up(a.size(), b.size());
  const size_t length = FillTable(a, b, [&](size_t i, size_t j) { up.Set(i, j); });
  result.text.resize(length);
  size_t left = length;
  size_t i = a.size();
  size_t j = b.size();
  while (i > 0 && j > 0 && left > 0) {
    if (a[i - 1] == b[j - 1]) {
      --i;
      --j;
      result.text[--left] = a[i];
      AddMatch(&result, static_cast<uint32_t>(i), static_cast<uint32_t>(j));
    } else if (up.Get(i - 1, j - 1)) {
      --i;
    } else {
      --j;
    }
  }
  return result;
}

}  // namespace hotkv
