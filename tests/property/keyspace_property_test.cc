// Random commands on the engine and on a model of std::map, side by side: every reply is compared;
// after each batch the effects are replayed into a second engine, whose digest must be that of the
// first, and the content with the model's.
#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/property/command_source.h"
#include "tests/property/keyspace_model.h"
#include "tests/support/engine_fixture.h"

namespace hotkv {
namespace {

struct Setup {
  uint64_t seed;
  unsigned stripe_bits;
  unsigned workers;
  int batches;
};

class ModelRun {
 public:
  explicit ModelRun(const Setup& setup)
      : setup_(setup),
        db_(Options(setup)),
        replica_(db_.engine().options(), &db_.commands()),
        model_(db_.engine().keyspace().databases()),
        source_(setup.seed, db_.engine().keyspace().databases()) {}

  void Run() {
    for (int batch = 0; batch < setup_.batches; ++batch) {
      if (source_.Chance(30))
        model_.db = static_cast<uint32_t>(source_.random().Below(model_.databases()));
      db_.client(0).db = model_.db;
      for (int i = 0; i < 40; ++i) {
        model_.now_ms = db_.now_ms();
        source_.Chance(8) ? Transaction() : Compare(source_.Next(model_.now_ms));
        if (source_.Chance(20)) db_.Advance(10 * source_.random().Between(0, 6));
        if (source_.Chance(3)) db_.ExpireNow();
      }
      model_.now_ms = db_.now_ms();
      CompareContent();
      EngineFixture::Replay(db_.TakeLog(), &replica_);
      REQUIRE(replica_.Digest() == db_.engine().Digest());
    }
  }

 private:
  static EngineFixtureOptions Options(const Setup& setup) {
    EngineFixtureOptions options;
    options.stripe_bits = setup.stripe_bits;
    options.workers = setup.workers;
    options.hash_seed = setup.seed;
    return options;
  }

  static std::string Shorten(const Command& command) {
    std::string text;
    for (const std::string& word : command) text += word.substr(0, 40) + " ";
    return text;
  }

  std::string Dispatch(const Command& command) {
    const std::vector<std::string_view> args(command.begin(), command.end());
    // Any worker may run a command: their lsns are woven together.
    return db_.Dispatch(0, static_cast<unsigned>(source_.random().Below(setup_.workers)), args);
  }

  void Compare(const Command& command) {
    const std::string expected = model_.Run(command);
    const std::string got = Dispatch(command);
    if (got == expected) return;  // no assertion a command: a run has some ten thousands
    FAIL("seed " << setup_.seed << ", " << Shorten(command) << "replied " << got.substr(0, 100)
                 << ", not " << expected.substr(0, 100));
  }

  void Transaction() {
    REQUIRE(Dispatch({"MULTI"}) == "+OK");
    std::string expected = "[";
    for (uint64_t n = source_.random().Below(6); n > 0; --n) {
      const Command command = source_.Next(model_.now_ms);
      REQUIRE(Dispatch(command) == "+QUEUED");
      expected += (expected.size() > 1 ? ", " : "") + model_.Run(command);
    }
    REQUIRE(Dispatch({"EXEC"}) == expected + "]");
  }

  void CompareContent() {
    for (uint32_t index = 0; index < model_.databases(); ++index) {
      const KeyspaceModel::Database& live = model_.Live(index);
      db_.client(1).db = index;
      std::vector<std::string> expected;
      for (const auto& [key, value] : live) expected.push_back(key);
      std::vector<std::string> got;
      for (const std::string& key : SplitArray(db_.As(1, "KEYS *"))) got.push_back(key.substr(1));
      std::sort(got.begin(), got.end());
      REQUIRE(got == expected);
      for (const auto& [key, value] : live) {
        REQUIRE(db_.Dispatch(1, 0, std::vector<std::string_view>{"GET", key}) == "$" + value.bytes);
        const int64_t at_ms = value.expire_at_ms == 0 ? -1 : value.expire_at_ms;
        REQUIRE(db_.Dispatch(1, 0, std::vector<std::string_view>{"PEXPIRETIME", key}) ==
                ":" + std::to_string(at_ms));
      }
    }
  }

  const Setup setup_;
  EngineFixture db_;
  Engine replica_;
  KeyspaceModel model_;
  CommandSource source_;
};

TEST_CASE("random commands do what the model says, and replay gives the same keyspace: 1 stripe") {
  for (uint64_t seed = 1; seed <= 8; ++seed) ModelRun({seed, 0, 1, 250}).Run();
}

TEST_CASE(
    "random commands do what the model says, and replay gives the same keyspace: 16 stripes, 3 "
    "workers") {
  for (uint64_t seed = 11; seed <= 18; ++seed) ModelRun({seed, 4, 3, 250}).Run();
}

TEST_CASE(
    "random commands do what the model says, and replay gives the same keyspace: 4,096 stripes") {
  for (uint64_t seed = 21; seed <= 24; ++seed) ModelRun({seed, 12, 2, 250}).Run();
}

}  // namespace
}  // namespace hotkv
