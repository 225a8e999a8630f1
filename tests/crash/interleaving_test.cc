// Interleavings that random runs meet too rarely, forced one by one: commits against a writer that
// closes their epoch, a snapshot between the stripes of one commit, transactions that watch what
// the other writes.
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "engine/base/buffer.h"
#include "engine/base/reply.h"
#include "engine/base/sync_point.h"
#include "engine/commands/command_spec.h"
#include "engine/tx/executor.h"
#include "tests/crash/sim_world.h"
#include "tests/crash/slot_object.h"

using namespace hotkv;
using namespace hotkv::crash;

namespace {

void Reopen(SimWorld& world) {
  world.TakeCut();
  const auto bad = world.Open();
  INFO(bad.value_or(""));
  REQUIRE(!bad.has_value());
}

// Two keys in different stripes.
std::pair<std::string, std::string> FarKeys(Engine& engine) {
  const std::string first = "far:0";
  for (int i = 1;; ++i) {
    std::string other = "far:" + std::to_string(i);
    const Keyspace& keyspace = engine.keyspace();
    if (keyspace.MakeRef(other).stripe != keyspace.MakeRef(first).stripe) return {first, other};
  }
}

bool HasKey(Engine& engine, const std::string& key) { return Dump(engine).contains({0, key}); }

}  // namespace

TEST_CASE(
    "A commit that holds its locks takes the epoch of its announcement, not that of its begin") {
  SimWorld world({.seed = 4, .fsync = FsyncPolicy::kNo});
  REQUIRE(!world.Open().has_value());
  Engine& engine = world.engine();
  const auto [late, early] = FarKeys(engine);
  const uint64_t begun = engine.epochs().current();
  std::thread slow;
  {
    SyncBlock block("txn.locked", 1);
    slow = std::thread([&, key = late] { world.Commit(0, {key}, "late"); });
    REQUIRE(block.AwaitReached());
    // The writer goes on without it: nothing has been announced.
    engine.worker(1).txn.Begin(1);
    world.directory().RequestSync();
    world.Cycle(1'000'000);
    REQUIRE(engine.epochs().current() > begun);
    REQUIRE(engine.epochs().durable() >= begun);
  }
  slow.join();
  CHECK(EpochOf(engine.worker(0).last_lsn) > begun);
  // A cut that keeps the closed epoch only: neither the late commit nor anything that it overwrote
  // halfway.
  world.TakeCut();
  REQUIRE(!world.Open().has_value());
  CHECK(!HasKey(world.engine(), late));
}

TEST_CASE("A writer that closes an epoch waits for the commit inside it, and has all of it") {
  SimWorld world({.seed = 4, .fsync = FsyncPolicy::kNo});
  REQUIRE(!world.Open().has_value());
  Engine& engine = world.engine();
  const auto [inside, other] = FarKeys(engine);
  const uint64_t epoch = engine.epochs().current();
  std::atomic<bool> closed{false};
  std::thread committer;
  std::thread writer;
  {
    SyncBlock block("txn.inside", 1);
    committer = std::thread([&, key = inside] { world.Commit(0, {key}, "inside"); });
    REQUIRE(block.AwaitReached());
    writer = std::thread([&] {
      world.directory().log().RequestSync(epoch);
      world.Cycle(1000);
      closed = true;
    });
    while (engine.epochs().current() == epoch) std::this_thread::yield();
    // Others commit in the next epoch meanwhile.
    Txn& txn = engine.worker(1).txn;
    const KeyRef ref = engine.keyspace().MakeRef(other);
    txn.Begin(1);
    txn.LockKey(ref);
    txn.SetString(0, ref, "next", 0);
    txn.CommitAndUnlock();
    CHECK(EpochOf(engine.worker(1).last_lsn) == epoch + 1);
    CHECK(!closed);
  }
  committer.join();
  writer.join();
  CHECK(EpochOf(engine.worker(0).last_lsn) == epoch);
  CHECK(engine.epochs().durable() == epoch);
  // The other one's effect went to a later epoch, which is lost.
  Reopen(world);
  CHECK(HasKey(world.engine(), inside));
  CHECK(!HasKey(world.engine(), other));
}

TEST_CASE("FLUSHALL waits for the commit under way, and both are recovered in their order") {
  SimWorld world({.seed = 6, .fsync = FsyncPolicy::kNo});
  REQUIRE(!world.Open().has_value());
  Engine& engine = world.engine();
  world.Commit(1, {"before"}, "x");
  std::thread committer;
  std::thread flusher;
  std::atomic<bool> flushed{false};
  {
    SyncBlock block("txn.inside", 1);
    committer = std::thread([&] {
      engine.gate().Enter(0);
      world.Commit(0, {"under way"}, "x");
      engine.gate().Leave(0);
    });
    REQUIRE(block.AwaitReached());
    flusher = std::thread([&] {
      engine.gate().Enter(1);
      Txn& txn = engine.worker(1).txn;
      txn.Begin(1);
      txn.StopWorld();
      txn.FlushDb(0);
      txn.CommitAndUnlock();
      engine.gate().Leave(1);
      flushed = true;
    });
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    CHECK(!flushed);
  }
  committer.join();
  flusher.join();
  world.model().now.clear();
  world.model().Committed(EpochOf(engine.worker(1).last_lsn));
  world.Commit(2, {"after"}, "x");
  world.SyncAll();
  Reopen(world);
  CHECK(Dump(world.engine()).size() == 1);
}

namespace {

// What happens between two stripes of a snapshot.
struct Between {
  const char* name;
  std::function<void(SimWorld&)> act;
};

void WholeKeyspace(SimWorld& world, const std::function<void(Txn&)>& act) {
  Engine& engine = world.engine();
  engine.gate().Enter(0);
  Txn& txn = engine.worker(0).txn;
  txn.Begin(1);
  txn.StopWorld();
  act(txn);
  txn.CommitAndUnlock();
  engine.gate().Leave(0);
  world.model().Committed(EpochOf(engine.worker(0).last_lsn));
}

void Rename(SimWorld& world, const std::string& from, const std::string& to) {
  Engine& engine = world.engine();
  Txn& txn = engine.worker(1).txn;
  const KeyRef refs[] = {engine.keyspace().MakeRef(from), engine.keyspace().MakeRef(to)};
  txn.Begin(1);
  txn.LockKeys(refs);
  txn.Move(0, refs[0], 0, refs[1]);
  txn.CommitAndUnlock();
  world.model().now[{0, to}] = world.model().now.at({0, from});
  world.model().now.erase({0, from});
  world.model().Committed(EpochOf(engine.worker(1).last_lsn));
}

std::vector<Between> AllBetween() {
  std::vector<std::string> keys;
  for (int i = 0; i < 24; ++i) keys.push_back("k" + std::to_string(i));
  return {
      {"MULTI over all stripes", [keys](SimWorld& world) { world.Commit(0, keys, "changed"); }},
      {"two MULTIs",
       [keys](SimWorld& world) {
         world.Commit(0, keys, "changed");
         world.Commit(1, {keys.begin(), keys.begin() + 12}, "changed again");
       }},
      {"RENAME there and back",
       [](SimWorld& world) {
         for (int i = 0; i < 12; ++i) {
           Rename(world, "k" + std::to_string(i), "k" + std::to_string(23 - i));
         }
       }},
      {"FLUSHALL",
       [](SimWorld& world) {
         world.model().now.clear();
         WholeKeyspace(world, [&](Txn& txn) { txn.FlushDb(0); });
       }},
      {"SWAPDB",
       [keys](SimWorld& world) {
         Contents swapped;
         for (const auto& [key, value] : world.model().now) {
           swapped[{1 - key.first, key.second}] = value;
         }
         world.model().now = swapped;
         WholeKeyspace(world, [&](Txn& txn) { txn.SwapDb(0, 1); });
         world.Commit(0, keys, "new in db 0");
       }},
  };
}

}  // namespace

TEST_CASE("Whatever happens between two stripes of a snapshot, it is recovered whole") {
  const bool with_log = GENERATE(true, false);
  const bool next_epoch = GENERATE(false, true);
  const auto actions = AllBetween();
  for (const Between& between : actions) {
    for (uint32_t position = 0; position <= 8; ++position) {
      INFO(between.name << " before stripe " << position << ", log " << with_log);
      SimWorld world({.seed = 5, .append_only = with_log, .fsync = FsyncPolicy::kNo});  // 8 stripes
      REQUIRE(!world.Open().has_value());
      REQUIRE(world.engine().keyspace().stripe_count() == 8);
      for (int i = 0; i < 24; ++i) {
        world.Commit(2, {"k" + std::to_string(i)}, "old " + std::to_string(i));
      }
      world.Cycle(10'000);
      world.directory().BeginSnapshot(SnapshotWhy::kBackgroundSave);
      while (world.directory().snapshot_job_or_null() == nullptr ||
             !world.directory().snapshot_job_or_null()->collecting()) {
        world.Work();
        world.Cycle(1000);
      }
      for (uint32_t i = 0; i < position; ++i) world.EncodeStripe(0);
      if (next_epoch) world.Cycle(10'000);
      between.act(world);
      if (next_epoch) world.Cycle(10'000);
      world.FinishSnapshot();
      CHECK(world.directory().GetStatus().snapshots == 1);
      // SimWorld compares with the model; without a log the snapshot is all there is.
      world.TakeCut();
      const auto bad = world.Open();
      INFO(bad.value_or(""));
      REQUIRE(!bad.has_value());
    }
  }
}

namespace {

void LinkNewObject(SimWorld& world, const std::string& key) {
  Engine& engine = world.engine();
  const uint64_t id = engine.objects().NewId();
  const auto folder = engine.object_host_or_null()->MakeFolder(id, SlotObject::kType);
  REQUIRE(folder.ok());
  const auto made = SlotObject::Create({id, &world.env(), *folder}, "definition");
  REQUIRE(made.ok());
  Txn& txn = engine.worker(0).txn;
  const KeyRef ref = engine.keyspace().MakeRef(key);
  txn.Begin(1);
  txn.LockKey(ref);
  txn.LinkNewObject(0, ref, *made, "definition");
  txn.CommitAndUnlock();
  world.model().now[{0, key}] = {.bytes = "", .is_object = true};
  world.model().Committed(EpochOf(engine.worker(0).last_lsn));
}

void DropKey(SimWorld& world, const std::string& key) {
  Engine& engine = world.engine();
  Txn& txn = engine.worker(0).txn;
  const KeyRef ref = engine.keyspace().MakeRef(key);
  txn.Begin(1);
  txn.LockKey(ref);
  txn.Delete(0, ref);
  txn.CommitAndUnlock();
  engine.lazy_free().Drain();
  world.model().now.erase({0, key});
  world.model().Committed(EpochOf(engine.worker(0).last_lsn));
}

}  // namespace

TEST_CASE("A start that makes an object anew from the log has its folder at every moment") {
  SimWorld world({.seed = 7});
  REQUIRE(!world.Open().has_value());
  LinkNewObject(world, "key");
  world.SyncAll();
  world.Kill();
  const auto bad = world.Open();  // the world looks at each file operation
  INFO(bad.value_or(""));
  CHECK(!bad.has_value());
  CHECK(HasKey(world.engine(), "key"));
}

TEST_CASE("A first generation that goes live while garbage is looked for is none") {
  SimWorld world({.seed = 7});
  REQUIRE(!world.Open().has_value());
  ObjectHost* host = world.engine().object_host_or_null();
  const uint64_t id = world.engine().objects().NewId();
  REQUIRE(host->MakeFolder(id, SlotObject::kType).ok());
  const auto generation = host->PlanGeneration(id);
  REQUIRE(generation.ok());
  std::atomic<bool> published{false};
  std::thread collector;
  std::thread publisher;
  {
    SyncBlock block("object.find_garbage", 1);
    collector = std::thread([&] { world.Work(); });
    REQUIRE(block.AwaitReached());
    publisher = std::thread([&] {
      published = host->PublishGeneration(id, *generation).ok();
    });
    // As long as it takes, if it may.
    for (int i = 0; i < 200 && !published; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  collector.join();
  publisher.join();
  CHECK(published);
  const CatalogState state = world.directory().catalog().Read();
  CHECK(state.objects.at(id).current() == *generation);
}

TEST_CASE("The folder of an object stays that was dropped after the log had ended") {
  SimWorld world({.seed = 7});
  REQUIRE(!world.Open().has_value());
  LinkNewObject(world, "key");
  world.SyncAll();
  std::thread upkeep;
  {
    SyncBlock block("directory.log_counted", 1);
    upkeep = std::thread([&] { world.Work(); });
    REQUIRE(block.AwaitReached());
    world.SwitchLog(false);
    DropKey(world, "key");
    world.SyncAll();
  }
  upkeep.join();
  // What a start comes to is the end of the log, which has the link and no drop.
  Reopen(world);
  CHECK(HasKey(world.engine(), "key"));
}

namespace {

// One client on a worker of its own.
class Session {
 public:
  Session(Engine* engine, unsigned worker)
      : engine_(engine), worker_(worker), executor_(engine, &engine->worker(worker)) {}

  std::string Run(std::vector<std::string_view> args) {
    OutputChain chain(&pool_);
    ReplyWriter reply(&chain, 2);
    engine_->gate().Enter(worker_);
    executor_.Dispatch(client_, executor_.Lookup(args), args, reply);
    engine_->gate().Leave(worker_);
    return chain.ToString();
  }

 private:
  Engine* const engine_;
  const unsigned worker_;
  Executor executor_;
  ClientState client_;
  BlockPool pool_;
};

}  // namespace

TEST_CASE("Of two transactions that each watch what the other writes only one succeeds") {
  const std::span<const CommandSpec> families[] = {StringCommands(), TransactionCommands()};
  const CommandTable commands(families);
  EngineOptions options;
  options.keyspace.stripe_bits = 4;
  options.workers = 2;
  Engine engine(options, &commands);
  engine.log_effects = true;
  const auto [x, y] = FarKeys(engine);
  Session first(&engine, 0);
  Session second(&engine, 1);
  first.Run({"WATCH", x});
  second.Run({"WATCH", y});
  for (Session* session : {&first, &second}) session->Run({"MULTI"});
  first.Run({"SET", y, "of the first"});
  second.Run({"SET", x, "of the second"});
  std::string first_reply;
  std::string second_reply;
  std::thread one;
  std::thread two;
  {
    SyncBlock block("txn.locked", 1);
    one = std::thread([&] { first_reply = first.Run({"EXEC"}); });
    REQUIRE(block.AwaitReached());
    // The first has looked at its watched key and not yet committed.
    two = std::thread([&] { second_reply = second.Run({"EXEC"}); });
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  }
  one.join();
  two.join();
  CHECK(first_reply == "*1\r\n+OK\r\n");
  CHECK(second_reply == "*-1\r\n");
  CHECK(!HasKey(engine, x));
  CHECK(HasKey(engine, y));
}
