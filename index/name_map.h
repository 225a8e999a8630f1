// NameMap: name -> slot, as an open hash of 64-bit words (32 bits of hash, slot + 1). Names
// themselves are in the records; the map asks for them through a callback when hashes agree.
// Positions keep the order of the hashes, so growing reads and writes forwards, and a table mapped
// from a file is usable as it is.
//
// Thread rules: none of its own; VectorIndex guards it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/check.h"

namespace hotkv {

class NameMap {
 public:
  static uint32_t HashOf(std::string_view name);

  // Words of an opened file; changed in place, left when the table grows.
  void Adopt(uint64_t* words, uint64_t capacity, uint64_t count);

  // The slot of the first entry with this hash for which matches(slot) is true.
  template <typename Matches>
  std::optional<uint32_t> Find(uint32_t hash, Matches&& matches) const {
    const uint64_t at = Locate(hash, matches);
    if (at == kNowhere) return std::nullopt;
    return SlotOf(words_[at]);
  }
  // `hash` is not there yet under this name.
  void Insert(uint32_t hash, uint32_t slot);
  // Entries for which matches(slot) is true: changed or removed. False when there is none.
  template <typename Matches>
  bool Replace(uint32_t hash, Matches&& matches, uint32_t new_slot) {
    const uint64_t at = Locate(hash, matches);
    if (at == kNowhere) return false;
    words_[at] = Word(hash, new_slot);
    return true;
  }
  template <typename Matches>
  bool Erase(uint32_t hash, Matches&& matches) {
    const uint64_t at = Locate(hash, matches);
    if (at == kNowhere) return false;
    EraseAt(at);
    return true;
  }
  // Calls visit(slot) for the entries with hashes from `first` to `last`.
  template <typename Visit>
  void ForEachWithin(uint32_t first, uint32_t last, Visit&& visit) const {
    if (capacity_ == 0) return;
    // They stand from their home on, before the next empty word.
    const uint64_t begin = HomeOf(first, capacity_);
    const uint64_t homes = HomeOf(last, capacity_) - begin + 1;
    uint64_t at = begin;
    for (uint64_t passed = 0; passed < capacity_; ++passed) {
      const uint64_t word = words_[at];
      if (word == 0 && passed >= homes) return;
      if (word != 0 && HashIn(word) >= first && HashIn(word) <= last) visit(SlotOf(word));
      if (++at == capacity_) at = 0;
    }
  }
  uint64_t size() const { return count_; }
  uint64_t capacity() const { return capacity_; }
  size_t bytes() const { return own_.capacity() * sizeof(uint64_t); }

  // Layout of the words, shared with the file format.
  static uint64_t Word(uint32_t hash, uint32_t slot) {
    return uint64_t{hash} << 32 | (slot + uint64_t{1});
  }
  static uint32_t HashIn(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
  static uint32_t SlotOf(uint64_t word) { return static_cast<uint32_t>(word) - 1; }
  static uint64_t HomeOf(uint32_t hash, uint64_t capacity) { return hash * capacity >> 32; }
  static uint64_t CapacityFor(uint64_t count) { return count < 6 ? 8 : count + count / 2; }

 private:
  static constexpr uint64_t kNowhere = UINT64_MAX;

  template <typename Matches>
  uint64_t Locate(uint32_t hash, Matches&& matches) const {
    if (capacity_ == 0) return kNowhere;
    uint64_t at = HomeOf(hash, capacity_);
    for (uint64_t probes = 0; probes < capacity_; ++probes) {
      const uint64_t word = words_[at];
      if (word == 0) return kNowhere;
      if (HashIn(word) == hash && matches(SlotOf(word))) return at;
      if (++at == capacity_) at = 0;
    }
    return kNowhere;
  }
  void EraseAt(uint64_t at);
  void Grow();
  void Place(uint64_t word);

  uint64_t* words_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t count_ = 0;
  std::vector<uint64_t> own_;  // what words_ points to once it has grown
};

}  // namespace hotkv
