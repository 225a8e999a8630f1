#include <algorithm>
#include <cctype>
#include <cstring>

#include "engine/base/check.h"
#include "engine/commands/command_spec.h"

namespace hotkv {

namespace {

constexpr uint64_t kFoldMask = 0x2020202020202020;

uint64_t LoadFolded(const char* p, size_t n) {
  uint64_t word = 0;
  std::memcpy(&word, p, n);
  return word | kFoldMask;
}

// Of the name's first and last eight bytes, in any case.
size_t HashName(std::string_view name) {
  uint64_t head = 0;
  uint64_t tail = 0;
  if (name.size() >= 8) {
    head = LoadFolded(name.data(), 8);
    tail = LoadFolded(name.data() + name.size() - 8, 8);
  } else {
    head = LoadFolded(name.data(), name.size());
  }
  const uint64_t mixed = (head * 0x9e3779b97f4a7c15) ^ (tail * 0xc2b2ae3d27d4eb4f) ^ name.size();
  return static_cast<size_t>((mixed * 0xff51afd7ed558ccd) >> 52);
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
    : places_(kPlaces, nullptr) {
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
      size_t place = HashName(own.name) % kPlaces;
      while (places_[place] != nullptr) {
        HOTKV_CHECK(places_[place]->name != own.name);
        place = (place + 1) % kPlaces;
      }
      places_[place] = &own;
    }
  }
}

const CommandSpec* CommandTable::Find(std::string_view name) const {
  for (size_t place = HashName(name) % kPlaces; places_[place] != nullptr;
       place = (place + 1) % kPlaces) {
    if (SameName(places_[place]->name, name)) return places_[place];
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
