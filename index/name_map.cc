#include "index/name_map.h"

#include <algorithm>

#include "engine/base/hash.h"

namespace hotkv {

namespace {
constexpr uint64_t kNameSeed = 0x6e616d6573ULL;  // part of the file format
}

uint32_t NameMap::HashOf(std::string_view name) {
  return static_cast<uint32_t>(HashBytes(name, kNameSeed) >> 32);
}

void NameMap::Adopt(uint64_t* words, uint64_t capacity, uint64_t count) {
  HOTKV_CHECK(count_ == 0);
  words_ = words;
  capacity_ = capacity;
  count_ = count;
}

void NameMap::Place(uint64_t word) {
  uint64_t at = HomeOf(HashIn(word), capacity_);
  while (words_[at] != 0) {
    if (++at == capacity_) at = 0;
  }
  words_[at] = word;
}

void NameMap::Grow() {
  std::vector<uint64_t> old(words_, words_ + capacity_);
  capacity_ = std::max<uint64_t>(8, capacity_ * 2);
  own_.assign(capacity_, 0);
  words_ = own_.data();
  for (const uint64_t word : old) {
    if (word != 0) Place(word);
  }
}

void NameMap::Insert(uint32_t hash, uint32_t slot) {
  if ((count_ + 1) * 5 > capacity_ * 4) Grow();
  Place(Word(hash, slot));
  ++count_;
}

void NameMap::EraseAt(uint64_t at) {
  // Backward shift: what follows and may stand here moves up, so that no marker is left behind.
  uint64_t hole = at;
  uint64_t next = at;
  for (;;) {
    if (++next == capacity_) next = 0;
    const uint64_t word = words_[next];
    if (word == 0 || next == at) break;
    const uint64_t home = HomeOf(HashIn(word), capacity_);
    const uint64_t from_home = next >= home ? next - home : next + capacity_ - home;
    const uint64_t from_hole = next >= hole ? next - hole : next + capacity_ - hole;
    if (from_home < from_hole) continue;
    words_[hole] = word;
    hole = next;
  }
  words_[hole] = 0;
  --count_;
}

}  // namespace hotkv
