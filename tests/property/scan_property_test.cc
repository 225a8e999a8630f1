// SCAN's promise: what is there from the first call to the last is returned at least once, and the
// walk ends, however the tables grow and shrink between the calls (UR-13).
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "engine/base/random.h"
#include "tests/support/engine_fixture.h"

namespace hotkv {
namespace {

struct Scale {
  int keep = 1000;
  int drop = 20'000;
  int drop_step = 500;  // deleted after every 50 calls
  int fresh = 10'000;
};

class ScanRun {
 public:
  ScanRun(uint64_t seed, unsigned stripe_bits, const Scale& scale)
      : db_(Options(seed, stripe_bits)), random_(seed), scale_(scale) {}

  void Run() {
    Change("MSET", "keep:", 0, scale_.keep);
    Change("MSET", "drop:", 0, scale_.drop);
    std::string cursor = "0";
    int dropped = 0;
    int added = 0;
    int calls = 0;
    do {
      cursor = Call(cursor);
      if (++calls % 50 != 0) continue;
      if (dropped < scale_.drop) {
        Change("DEL", "drop:", dropped, scale_.drop_step);
        dropped += scale_.drop_step;
      } else if (added < scale_.fresh) {
        Change("MSET", "new:", added, scale_.drop_step);
        added += scale_.drop_step;
      }
      if (random_.Below(8) == 0) Change("DEL", "new:", added / 2, scale_.drop_step);
    } while (cursor != "0");
    REQUIRE(seen_.size() == static_cast<size_t>(scale_.keep));
    REQUIRE(dropped > 0);
  }

 private:
  static EngineFixtureOptions Options(uint64_t seed, unsigned stripe_bits) {
    EngineFixtureOptions options;
    options.hash_seed = seed;
    options.stripe_bits = stripe_bits;
    options.log_effects = false;
    return options;
  }

  void Change(const std::string& command, const std::string& prefix, int from, int count) {
    std::vector<std::string> words{command};
    for (int i = from; i < from + count; ++i) {
      words.push_back(prefix + std::to_string(i));
      if (command == "MSET") words.push_back("v");
    }
    db_.Dispatch(1, 0, std::vector<std::string_view>(words.begin(), words.end()));
  }

  std::string Call(const std::string& cursor) {
    const std::string reply = db_.Call({"SCAN", cursor, "COUNT", "10"});
    const size_t comma = reply.find(", ");
    const std::string keys = reply.substr(comma + 2, reply.size() - comma - 3);
    size_t count = 0;
    for (const std::string& key : SplitArray(keys)) {
      ++count;
      if (key.compare(0, 6, "$keep:") == 0) seen_.insert(key);
    }
    REQUIRE(count < 100);  // a call does not do much more than it was asked for
    return reply.substr(2, comma - 2);
  }

  EngineFixture db_;
  Random random_;
  const Scale scale_;
  std::set<std::string> seen_;
};

TEST_CASE("SCAN returns what is there throughout while tables shrink and grow (UR-13)") {
  constexpr unsigned kStripeBits[] = {0, 3, 6, 12};
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    ScanRun(seed, kStripeBits[seed % 4], {}).Run();
  }
}

TEST_CASE("SCAN returns what is there throughout, at the size of the report (UR-13)") {
  const Scale scale{1000, 200'000, 5000, 100'000};
  ScanRun(101, 0, scale).Run();
  ScanRun(102, 12, scale).Run();
}

}  // namespace
}  // namespace hotkv
