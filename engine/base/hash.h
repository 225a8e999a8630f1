// XXH3-64 of a key with the directory's seed: the top bits choose the stripe, the next ones the position in its table,
// the low 8 the tag. Kept in every file's header, so the function may not change within a format version.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace hotkv {

inline uint64_t HashBytes(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace hotkv
