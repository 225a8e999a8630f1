// What a keyspace should hold, per epoch: the model that recovered states are compared with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "engine/base/check.h"
#include "engine/tx/engine.h"

namespace hotkv::crash {

struct Value {
  std::string bytes;
  int64_t expire_at_ms = 0;
  bool is_object = false;
  std::map<std::string, std::string> elements = {};  // of an object
  bool operator==(const Value&) const = default;
};

using Contents = std::map<std::pair<uint32_t, std::string>, Value>;  // by database and key

// The state as it is, and as it was at the end of each epoch with commits.
class Model {
 public:
  Contents now;

  // A commit of this epoch has been made; later ones are of this epoch or a later one.
  void Committed(uint64_t epoch) {
    HOTKV_CHECK(at_end_.empty() || epoch >= at_end_.rbegin()->first);
    at_end_[epoch] = now;
  }
  // The state at the end of the epoch.
  const Contents& At(uint64_t epoch) const {
    static const Contents kEmpty;
    auto it = at_end_.upper_bound(epoch);
    return it == at_end_.begin() ? kEmpty : std::prev(it)->second;
  }
  // What came after the epoch is lost.
  void CutAfter(uint64_t epoch) {
    at_end_.erase(at_end_.upper_bound(epoch), at_end_.end());
    now = At(epoch);
  }
  // States before the epoch are not asked for any more.
  void ForgetBefore(uint64_t epoch) {
    auto it = at_end_.upper_bound(epoch);
    if (it != at_end_.begin()) at_end_.erase(at_end_.begin(), std::prev(it));
  }
  uint64_t last_epoch() const { return at_end_.empty() ? 0 : at_end_.rbegin()->first; }

 private:
  std::map<uint64_t, Contents> at_end_;
};

// Everything in the engine. No worker runs.
Contents Dump(Engine& engine);

// Where two states differ first, for a failing test's message.
inline std::string Difference(const Contents& expected, const Contents& actual) {
  auto show = [](const Contents& c, const std::pair<uint32_t, std::string>& key) {
    const auto it = c.find(key);
    if (it == c.end()) return std::string("none");
    if (it->second.is_object) {
      std::string text = "object {";
      for (const auto& [name, value] : it->second.elements) text += name + "=" + value + " ";
      return text + "}";
    }
    return std::to_string(it->second.bytes.size()) + " bytes \"" + it->second.bytes.substr(0, 40) +
           "\" expiry " + std::to_string(it->second.expire_at_ms);
  };
  for (const Contents* side : {&expected, &actual}) {
    for (const auto& [key, value] : *side) {
      const auto e = expected.find(key);
      const auto a = actual.find(key);
      if (e == expected.end() || a == actual.end() || !(e->second == a->second)) {
        return "db" + std::to_string(key.first) + " \"" + key.second + "\": expected " +
               show(expected, key) + ", found " + show(actual, key);
      }
    }
  }
  return "no difference";
}

}  // namespace hotkv::crash
