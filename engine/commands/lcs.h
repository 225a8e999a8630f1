// Longest common subsequence of two strings, with the ranges in which it lies, as LCS reports them.
//
// Where several subsequences are longest, the choice is Redis's: the table is walked back from the
// ends of both strings; equal bytes are taken, else the walk goes back in the first string where
// that keeps the longer rest, else in the second. The walk needs one bit a cell, so memory is cells
// / 8 bytes, not 4 bytes a cell.
//
// Thread rules: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hotkv {

// First and last position, both included, in each string.
struct LcsMatch {
  uint32_t a_first = 0;
  uint32_t a_last = 0;
  uint32_t b_first = 0;
  uint32_t b_last = 0;
  uint32_t size() const { return a_last - a_first + 1; }
};

struct LcsResult {
  std::string text;
  std::vector<LcsMatch> matches;  // from the ends of the strings to their beginnings
};

// Both strings shorter than 2^32 bytes. Time: a.size() * b.size().
size_t LcsLength(std::string_view a, std::string_view b);
LcsResult FindLcs(std::string_view a, std::string_view b);

}  // namespace hotkv
