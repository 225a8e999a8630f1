// Random commands for property tests: string, generic and database commands over a small key set,
// with values of sizes around the bounds of the entries' encodings.
//
// Thread rules: one thread an object.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "engine/base/random.h"

namespace hotkv {

using Command = std::vector<std::string>;

class CommandSource {
 public:
  CommandSource(uint64_t seed, uint32_t databases) : random_(seed), databases_(databases) {}

  Random& random() { return random_; }
  bool Chance(uint64_t percent) { return random_.Below(100) < percent; }

  Command Next(int64_t now_ms) {
    now_ms_ = now_ms;
    const uint64_t dice = random_.Below(1000);
    if (dice < 2) return {Chance(30) ? "FLUSHALL" : "FLUSHDB"};
    if (dice < 8) return {"SWAPDB", Db(), Db()};
    if (dice < 550) return OnValue();
    return OnKeys();
  }

 private:
  std::string Key() {
    const uint64_t n = random_.Below(24);
    // One key is long enough for lengths of four bytes in its entry.
    return n == 0 ? std::string(300, 'k') : "key" + std::to_string(n);
  }
  std::string Db() { return std::to_string(random_.Below(databases_)); }
  std::string Value() {
    constexpr size_t kSizes[] = {0,   1,   7,   8,     31,    100,   254,
                                 255, 256, 257, 16383, 16384, 16385, 40000};
    if (Chance(35)) return std::to_string(random_.Between(-1000, 1000));
    if (Chance(5)) return std::to_string(static_cast<int64_t>(random_.Next()));
    const uint64_t pick = Chance(80) ? random_.Below(10) : random_.Below(std::size(kSizes));
    std::string value(kSizes[pick], '\0');
    for (char& c : value) c = static_cast<char>(random_.Next());
    return value;
  }
  // In steps of 10 ms, as the clock goes, so that times are often equal.
  std::string Time() { return std::to_string(10 * random_.Between(-2, 40)); }
  std::string Millis() { return std::to_string(10 * random_.Between(1, 40)); }
  std::string At() { return std::to_string(now_ms_ + 10 * random_.Between(-2, 40)); }

  Command Set() {
    Command set{"SET", Key(), Value()};
    const uint64_t condition = random_.Below(10);
    if (condition == 0) set.push_back("NX");
    if (condition == 1) set.push_back("XX");
    if (condition == 2) set.insert(set.end(), {"IFEQ", std::to_string(random_.Below(10))});
    if (condition == 3) set.insert(set.end(), {"IFNE", Value()});
    if (Chance(20)) set.push_back("GET");
    const uint64_t expiry = random_.Below(8);
    if (expiry == 0) set.insert(set.end(), {"PX", Millis()});
    if (expiry == 1) set.insert(set.end(), {"PXAT", At()});
    if (expiry == 2) set.push_back("KEEPTTL");
    return set;
  }

  Command OnValue() {
    switch (random_.Below(14)) {
      case 0:
        return {"GET", Key()};
      case 1:
        return {"STRLEN", Key()};
      case 2:
        return {"SETNX", Key(), Value()};
      case 3:
        return {"INCRBY", Key(), std::to_string(random_.Between(-50, 50))};
      case 4:
        return {"INCRBY", Key(), std::to_string(static_cast<int64_t>(random_.Next()))};
      case 5:
        return {"APPEND", Key(), Value()};
      case 6:
        return {"SETRANGE", Key(), std::to_string(random_.Below(Chance(90) ? 300 : 30000)),
                Value()};
      case 7:
        return {"GETRANGE", Key(), std::to_string(random_.Below(300)),
                std::to_string(random_.Below(20000))};
      case 8:
        return {"GETDEL", Key()};
      case 9:
        return {"GETSET", Key(), Value()};
      case 10:
        return Chance(50) ? Command{"GETEX", Key(), "PERSIST"}
                          : Command{"GETEX", Key(), "PX", Millis()};
      case 11:
        return {Chance(50) ? "MSET" : "MSETNX", Key(), Value(), Key(), Value(), Key(), Value()};
      default:
        return Set();
    }
  }

  Command OnKeys() {
    constexpr const char* kConditions[] = {"NX", "XX", "GT", "LT"};
    Command expire{Chance(50) ? "PEXPIRE" : "PEXPIREAT", Key(), ""};
    expire[2] = expire[0] == "PEXPIRE" ? Time() : At();
    if (Chance(50)) expire.push_back(kConditions[random_.Below(4)]);
    switch (random_.Below(10)) {
      case 0:
        return {"PERSIST", Key()};
      case 1:
        return {"PTTL", Key()};
      case 2:
        return {"DEL", Key(), Key()};
      case 3:
        return {"EXISTS", Key(), Key(), Key()};
      case 4:
        return DifferentKeys("RENAME");
      case 5:
        return DifferentKeys("RENAMENX");
      case 6:
        return {"MOVE", Key(), Db()};
      case 7:
        return {"MGET", Key(), Key(), Key()};
      case 8: {
        Command copy{"COPY", Key(), Key(), "DB", Db()};
        if (Chance(50)) copy.push_back("REPLACE");
        return copy;
      }
      default:
        return expire;
    }
  }

  Command DifferentKeys(const char* name) {
    Command command{name, Key(), Key()};
    while (command[1] == command[2]) command[2] = Key();
    return command;
  }

  Random random_;
  const uint32_t databases_;
  int64_t now_ms_ = 0;
};

}  // namespace hotkv
