// SlotMarks: a bit a slot that is cleared for all slots at once, by a stamp: 16 bits with the stamp
// that they belong to share a word.
//
// Thread rules: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hotkv {

class SlotMarks {
 public:
  // No slot below `slots` is marked; others must not be asked for.
  void Begin(uint32_t slots) {
    if (words_.size() < size_t{slots} / 16 + 1) words_.assign(size_t{slots} / 16 + 1, 0);
    if (++stamp_ < 0x10000u) return;
    stamp_ = 1;
    std::fill(words_.begin(), words_.end(), 0);
  }
  bool Has(uint32_t slot) const {
    const uint32_t word = words_[slot >> 4];
    return word >> 16 == stamp_ && (word >> (slot & 15) & 1) != 0;
  }
  // True when it was not marked.
  bool Set(uint32_t slot) {
    uint32_t& word = words_[slot >> 4];
    if (word >> 16 != stamp_) word = stamp_ << 16;
    const uint32_t bit = 1u << (slot & 15);
    const bool fresh = (word & bit) == 0;
    word |= bit;
    return fresh;
  }
  // Calls visit(slot) for every marked slot below `slots`, in order.
  template <typename Visit>
  void ForEach(uint32_t slots, Visit&& visit) const {
    for (uint32_t word = 0; word < (slots + 15) / 16; ++word) {
      if (words_[word] >> 16 != stamp_) continue;
      for (uint32_t bits = words_[word] & 0xffffu; bits != 0; bits &= bits - 1) {
        visit(word * 16 + static_cast<uint32_t>(__builtin_ctz(bits)));
      }
    }
  }
  void Clear(uint32_t slot) { words_[slot >> 4] &= ~(1u << (slot & 15)); }

 private:
  std::vector<uint32_t> words_;
  uint32_t stamp_ = 0;
};

}  // namespace hotkv
