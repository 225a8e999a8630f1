#include <algorithm>
#include <cctype>

#include "engine/base/check.h"
#include "engine/base/coding.h"
#include "engine/commands/command_spec.h"

namespace hotkv {

namespace {

constexpr uint64_t kFoldMask = 0x2020202020202020;

// The first and last eight bytes of a name, letters in lower case; for up to 16 bytes that is all
// of it. Folding maps some control characters onto digits and punctuation, never anything onto a
// letter but its capital.
struct FoldedName {
  uint64_t head = 0;
  uint64_t tail = 0;
  bool operator==(const FoldedName&) const = default;
};

FoldedName Fold(std::string_view name) {
  const char* const p = name.data();
  const size_t n = name.size();
  if (n >= 8) return {LoadLe<uint64_t>(p) | kFoldMask, LoadLe<uint64_t>(p + n - 8) | kFoldMask};
  if (n >= 4) {
    const uint64_t low = LoadLe<uint32_t>(p);
    return {(low | uint64_t{LoadLe<uint32_t>(p + n - 4)} << 32) | kFoldMask, 0};
  }
  uint64_t word = 0;
  for (size_t i = 0; i < n; ++i) word |= uint64_t{static_cast<uint8_t>(p[i])} << (8 * i);
  return {word | kFoldMask, 0};
}

size_t HashOf(const FoldedName& name, size_t size) {
  const uint64_t mixed = (name.head * 0x9e3779b97f4a7c15) ^ (name.tail * 0xc2b2ae3d27d4eb4f) ^ size;
  return static_cast<size_t>((mixed * 0xff51afd7ed558ccd) >> 52);
}

bool OnlyLetters(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

bool SameName(std::string_view lower, std::string_view any_case) {
  if (lower.size() != any_case.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i) {
    const auto c = static_cast<unsigned char>(any_case[i]);
    if (static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c) != lower[i]) return false;
  }
  return true;
}

}  // namespace

CommandTable::CommandTable(std::span<const std::span<const CommandSpec>> families)
    : places_(kPlaces) {
  for (const auto family : families) {
    for (const CommandSpec& spec : family) {
      CommandSpec& own = specs_.emplace_back(spec);
      own.id = static_cast<uint32_t>(all_.size());
      all_.push_back(&own);
      top_.push_back(&own);
      if (!spec.subcommands.empty()) {
        auto& subs = subcommands_.emplace_back(spec.subcommands.begin(), spec.subcommands.end());
        for (CommandSpec& sub : subs) {
          sub.id = static_cast<uint32_t>(all_.size());
          all_.push_back(&sub);
        }
        own.subcommands = subs;
      }
      const FoldedName folded = Fold(own.name);
      size_t place = HashOf(folded, own.name.size()) % kPlaces;
      while (places_[place].spec != nullptr) {
        HOTKV_CHECK(places_[place].spec->name != own.name);
        place = (place + 1) % kPlaces;
      }
      const bool exact = own.name.size() <= 16 && OnlyLetters(own.name);
      places_[place] = {&own, folded.head, folded.tail, own.name.size(), exact};
    }
  }
}

const CommandSpec* CommandTable::Find(std::string_view name) const {
  const FoldedName folded = Fold(name);
  size_t place = HashOf(folded, name.size()) % kPlaces;
  for (; places_[place].spec != nullptr; place = (place + 1) % kPlaces) {
    const Place& at = places_[place];
    const bool same = at.size == name.size() && at.head == folded.head && at.tail == folded.tail;
    if (same && (at.exact || SameName(at.spec->name, name))) return at.spec;
  }
  return nullptr;
}

const CommandSpec* CommandTable::FindSub(const CommandSpec& container,
                                         std::string_view name) const {
  for (const CommandSpec& sub : container.subcommands) {
    const size_t bar = sub.name.find('|');
    if (SameName(sub.name.substr(bar + 1), name)) return &sub;
  }
  return nullptr;
}

}  // namespace hotkv
