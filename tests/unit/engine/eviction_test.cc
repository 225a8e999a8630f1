// Eviction: who goes, that what is freed is counted, and that it is a delete like any other.
#include <catch2/catch.hpp>

#include <set>
#include <thread>

#include "tests/support/engine_fixture.h"

namespace hotkv {
namespace {

constexpr int64_t kMuch = int64_t{1} << 40;  // more than any eviction of a test can free

std::string Key(int i) { return "key:" + std::to_string(i); }

Eviction::Settings With(EvictionRank rank, bool volatile_only = false, unsigned samples = 10) {
  return {rank, volatile_only, samples, 10};
}

class Rig {
 public:
  explicit Rig(EvictionRank rank, bool volatile_only = false, unsigned samples = 10,
               unsigned stripe_bits = 4)
      : db({.stripe_bits = stripe_bits}) {
    db.engine().eviction().Configure(With(rank, volatile_only, samples));
    db.engine().lfu_policy = rank == EvictionRank::kLeastFrequent;
  }
  // Inside the gate, as a worker does.
  size_t Evict(size_t keys, int64_t excess = kMuch) {
    Engine& engine = db.engine();
    engine.eviction().SetExcess(excess);
    engine.gate().Enter(0);
    const size_t evicted = engine.eviction().Evict(engine.worker(0), keys);
    engine.gate().Leave(0);
    left_due = engine.eviction().due();
    engine.eviction().SetExcess(0);
    return evicted;
  }
  std::set<int> Present(int count) {
    std::set<int> present;
    for (int i = 0; i < count; ++i) {
      if (db("EXISTS " + Key(i)) == ":1") present.insert(i);
    }
    return present;
  }
  EngineFixture db;
  bool left_due = false;
};

TEST_CASE("With as many samples as keys the one idle longest goes, in exact order", "[eviction]") {
  Rig rig(EvictionRank::kLeastRecent, false, 64, GENERATE(0u, 4u));
  constexpr int kKeys = 20;
  for (int i = 0; i < kKeys; ++i) {
    rig.db("SET " + Key(i) + " v");
    rig.db.Advance(10'000);
  }
  rig.db("GET " + Key(0));  // the oldest is used again
  rig.db.Advance(10'000);
  for (int gone = 1; gone < kKeys; ++gone) {
    REQUIRE(rig.Evict(1) == 1);
    REQUIRE(rig.db("EXISTS " + Key(gone)) == ":0");
    REQUIRE(rig.db("DBSIZE") == ":" + std::to_string(kKeys - gone));
  }
  CHECK(rig.db("EXISTS " + Key(0)) == ":1");
}

TEST_CASE("Sampled: keys in use stay, idle ones go", "[eviction]") {
  Rig rig(EvictionRank::kLeastRecent);
  for (int i = 0; i < 2000; ++i) rig.db("SET " + Key(i) + " v");
  rig.db.Advance(60'000);
  for (int i = 0; i < 1000; ++i) rig.db("GET " + Key(i));
  CHECK(rig.Evict(600) == 600);
  int used_gone = 1000;
  for (const int i : rig.Present(2000)) used_gone -= i < 1000 ? 1 : 0;
  // Ten samples of which none is among the idle ones, of which at least 400 of 1400 are there: 0.035 each time.
  CHECK(used_gone < 20);
}

TEST_CASE("LFU: keys that are used often stay, and counters age where room is made", "[eviction]") {
  Rig rig(EvictionRank::kLeastFrequent);
  for (int i = 0; i < 1000; ++i) rig.db("SET " + Key(i) + " v");
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 50; ++i) rig.db("GET " + Key(i));
  }
  const std::string often = rig.db("OBJECT FREQ " + Key(0));
  CHECK(rig.db("OBJECT FREQ " + Key(999)) == ":5");
  CHECK(std::stoi(often.substr(1)) > 8);
  rig.db("SET " + Key(0) + " w");  // the same key: its counter lives on
  CHECK(std::stoi(rig.db("OBJECT FREQ " + Key(0)).substr(1)) >= std::stoi(often.substr(1)));
  CHECK(rig.Evict(700) == 700);
  const std::set<int> present = rig.Present(1000);
  const auto often_used = std::distance(present.begin(), present.lower_bound(50));
  CHECK(often_used >= 47);
  int least = 255;
  for (const int i : present) {
    least = std::min(least, std::stoi(rig.db("OBJECT FREQ " + Key(i)).substr(1)));
  }
  CHECK(least < 5);
}

TEST_CASE("volatile-*: only keys with an expiry, the nearest first where ttl ranks", "[eviction]") {
  const auto rank = GENERATE(EvictionRank::kLeastRecent, EvictionRank::kLeastFrequent,
                             EvictionRank::kRandom, EvictionRank::kNearestExpiry);
  Rig rig(rank, true, 64);
  for (int i = 0; i < 300; ++i) rig.db("SET " + Key(1000 + i) + " v");
  for (int i = 0; i < 30; ++i) {
    rig.db("SET " + Key(i) + " v PX " + std::to_string(1'000'000 + i * 1000));
  }
  if (rank == EvictionRank::kNearestExpiry) {
    CHECK(rig.Evict(10) == 10);
    CHECK(*rig.Present(30).begin() == 10);
    CHECK(rig.Present(30).size() == 20);
  }
  rig.Evict(1000);
  CHECK(rig.Present(30).empty());
  CHECK(rig.db("DBSIZE") == ":300");
  CHECK(rig.Evict(1) == 0);
  CHECK(rig.left_due);
}

TEST_CASE("Few keys among many stripes and databases are found; nothing is found in none", "[eviction]") {
  Rig rig(EvictionRank::kRandom, false, 5, 12);
  CHECK(rig.Evict(1) == 0);
  rig.db("SET a v");
  rig.db("SELECT 9");
  rig.db("SET b v");
  CHECK(rig.Evict(10) == 2);
  CHECK(rig.db("DBSIZE") == ":0");
  CHECK(rig.db.engine().SumOverWorkers(&WorkerState::evicted_keys) == 2);
}

TEST_CASE("What is freed is what the keyspace shrinks by, and no more goes than must", "[eviction]") {
  Rig rig(EvictionRank::kRandom);
  for (int i = 0; i < 500; ++i) {
    rig.db("SET " + Key(i) + " " + std::string(static_cast<size_t>(i) * 40 + 1, 'v'));
  }
  Engine& engine = rig.db.engine();
  const int64_t before = engine.CountTotals().entry_bytes;
  const int64_t excess = before / 3;
  const size_t evicted = rig.Evict(500, excess);
  CHECK_FALSE(rig.left_due);
  const int64_t freed = before - engine.CountTotals().entry_bytes;
  CHECK(freed >= excess);
  CHECK(freed < excess + 30'000);  // the last one may be the largest
  CHECK(evicted < 400);
}

TEST_CASE("An index that is evicted goes with its object, and its memory counts", "[eviction]") {
  Rig rig(EvictionRank::kRandom);
  rig.db("VSIM.CREATEINDEX vectors DIM 2");
  CHECK(rig.db.engine().objects().size() == 1);
  CHECK(rig.db("VSIM.SET vectors element VALUES 2 1 0") == ":1");
  const auto bytes = static_cast<int64_t>(rig.db.engine().objects().All()[0]->MemoryBytes());
  CHECK(rig.Evict(1, bytes + 1) == 1);
  CHECK_FALSE(rig.left_due);
  CHECK(rig.db.engine().objects().size() == 0);
  CHECK(rig.db("EXISTS vectors") == ":0");
}

TEST_CASE("An eviction is logged and breaks WATCH", "[eviction]") {
  Rig rig(EvictionRank::kRandom);
  EngineFixture& db = rig.db;
  for (int i = 0; i < 100; ++i) db("SET " + Key(i) + " v");
  db("WATCH " + Key(0));
  CHECK(rig.Evict(60) == 60);
  CHECK(rig.Evict(60) == 40);
  CHECK(db("DBSIZE") == ":0");
  db("MULTI");
  db("SET " + Key(0) + " w");
  CHECK(db("EXEC") == "nil");
  db("SET after v");
  EngineFixture replica;
  const EffectLog log = db.TakeLog();
  EngineFixture::Replay(log, &replica.engine());
  CHECK(replica.engine().Digest() == db.engine().Digest());
}

TEST_CASE("Commands that need memory make room first, or are refused", "[eviction]") {
  Rig rig(EvictionRank::kLeastRecent, true);
  EngineFixture& db = rig.db;
  Eviction& eviction = db.engine().eviction();
  const std::string oom = "-OOM command not allowed when used memory > 'maxmemory'.";
  db("SET stays v");
  db("SET goes v EX 1000");
  eviction.SetExcess(kMuch);
  CHECK(db("SET new v EX 1000") == "+OK");
  CHECK(db("EXISTS goes") == ":0");
  CHECK(db("SET other v") == "+OK");  // room was made: of `new`
  CHECK(db("SET other w") == oom);    // nothing may go any more
  CHECK(db("GET other") == "$v");
  CHECK(db("DEL other") == ":1");
  db("MULTI");
  CHECK(db("SET x y") == oom);
  CHECK(db("EXEC").starts_with("-EXECABORT"));
  // Where nothing can be written, nothing is evicted.
  eviction.SetExcess(0);
  db("SET volatile v EX 1000");
  eviction.SetExcess(kMuch);
  db.engine().SetDiskDenied("full");
  CHECK(db("SET x y").starts_with("-MISCONF"));
  db.engine().TurnEnd(db.engine().worker(0), 1'000'000);
  CHECK(db("EXISTS volatile") == ":1");
  db.engine().SetDiskDenied("");
  db.engine().TurnEnd(db.engine().worker(0), 1'000'000);
  CHECK(db("EXISTS volatile stays") == ":1");
}

TEST_CASE("Workers evict side by side without losing count", "[eviction][threads]") {
  EngineFixture db({.workers = 2});
  Engine& engine = db.engine();
  for (int i = 0; i < 3000; ++i) db("SET " + Key(i) + " v");
  engine.eviction().Configure(With(EvictionRank::kRandom));
  engine.eviction().SetExcess(kMuch);
  std::vector<std::thread> threads;
  for (unsigned w = 0; w < 2; ++w) {
    threads.emplace_back([&engine, w] {
      for (int i = 0; i < 100; ++i) {
        engine.gate().Enter(w);
        engine.eviction().Evict(engine.worker(w), 10);
        engine.gate().Leave(w);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t evicted = engine.SumOverWorkers(&WorkerState::evicted_keys);
  CHECK(evicted > 1500);
  CHECK(engine.keyspace().Size(0) == 3000 - evicted);
}

}  // namespace
}  // namespace hotkv
