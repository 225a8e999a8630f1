// DataDirectory on real files and with its threads: starts that are refused, snapshots beside
// writes, the log switched on and off, a full disk, kills.
#include <catch2/catch.hpp>

#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/base/clock.h"
#include "engine/base/coding.h"
#include "engine/base/log.h"
#include "engine/base/sync_point.h"
#include "engine/base/random.h"
#include "engine/base/sim_env.h"
#include "persistence/catalog/lmdb_store.h"
#include "persistence/catalog/sim_store.h"
#include "persistence/data_directory.h"

using namespace hotkv;
namespace fs = std::filesystem;

namespace {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (fs::temp_directory_path() / "hotkv-dir-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    SetLogLevel(LogLevel::kNothing);
  }
  ~TempFolder() { fs::remove_all(path_); }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

const CommandTable& NoCommands() {
  static const CommandTable table(std::span<const std::span<const CommandSpec>>{});
  return table;
}

// An engine over a directory.
class Running {
 public:
  explicit Running(DataDirectoryOptions options, unsigned workers = 2) {
    options.log.segment_bytes_min = 256 * 1024;
    auto opened = DataDirectory::Open(std::move(options));
    INFO(opened.status().ToString());
    REQUIRE(opened.ok());
    directory = std::move(opened).value();
    const EngineParameters parameters = directory->parameters();
    EngineOptions engine_options;
    engine_options.keyspace = {parameters.stripe_bits, parameters.hash_seed, 16};
    engine_options.workers = workers;
    engine_options.first_epoch = parameters.first_epoch;
    engine_options.first_object_id = parameters.first_object_id;
    engine = std::make_unique<Engine>(engine_options, &NoCommands());
    const Status loaded = directory->Load(engine.get());
    INFO(loaded.ToString());
    REQUIRE(loaded.ok());
    REQUIRE(directory->Start().ok());
  }

  void Set(const std::string& key, const std::string& value, unsigned worker = 0,
           int64_t expire_at_ms = 0) {
    const KeyRef ref = engine->keyspace().MakeRef(key);
    Txn& txn = engine->worker(worker).txn;
    txn.Begin(Clock::NowMs());
    txn.LockKey(ref);
    txn.SetString(0, ref, value, expire_at_ms);
    txn.CommitAndUnlock();
  }
  std::string Get(const std::string& key) {
    const KeyRef ref = engine->keyspace().MakeRef(key);
    Stripe& stripe = engine->keyspace().stripe(ref.stripe);
    SpinLockGuard guard(stripe.lock);
    Entry** slot = engine->keyspace().Find(stripe, 0, ref);
    char scratch[24];
    return slot == nullptr ? "none" : std::string((*slot)->StringValue(scratch));
  }
  int64_t ExpiryOf(const std::string& key) {
    const KeyRef ref = engine->keyspace().MakeRef(key);
    Entry** slot = engine->keyspace().Find(engine->keyspace().stripe(ref.stripe), 0, ref);
    return slot == nullptr ? -1 : (*slot)->expire_at_ms();
  }
  bool Sync() {
    const uint64_t epoch = engine->epochs().current();
    for (int i = 0; i < 10'000 && engine->epochs().durable() < epoch; ++i) {
      directory->RequestSync();
      usleep(500);
    }
    return engine->epochs().durable() >= epoch;
  }
  // As SAVE, from worker 0.
  SnapshotOutcome Save() {
    const uint64_t id = directory->BeginSnapshot(SnapshotWhy::kSave);
    while (directory->OutcomeOf(id) == SnapshotOutcome::kRunning) {
      if (!directory->HelpSnapshot(engine->worker(0))) usleep(200);
    }
    return directory->OutcomeOf(id);
  }

  std::unique_ptr<Engine> engine;
  std::unique_ptr<DataDirectory> directory;  // ends first
};

DataDirectoryOptions At(const std::string& path) {
  DataDirectoryOptions options;
  options.path = path;
  options.stripe_bits = 6;
  return options;
}

Status OpenStatus(const DataDirectoryOptions& options) {
  auto opened = DataDirectory::Open(options);
  return opened.ok() ? Status::Ok() : opened.status();
}

}  // namespace

TEST_CASE("What was written is there after a stop, a kill, and a kill behind a snapshot") {
  TempFolder folder;
  const auto options = At(folder.path("data"));
  {
    Running server(options);
    for (int i = 0; i < 500; ++i) server.Set("k" + std::to_string(i), "v" + std::to_string(i));
    server.Set("expiring", "v", 0, Clock::NowMs() + 1'000'000);
    REQUIRE(server.directory->Stop(false).ok());
  }
  int64_t expiry = 0;
  {
    Running server(options);
    CHECK(server.Get("k499") == "v499");
    expiry = server.ExpiryOf("expiring");
    CHECK(expiry > Clock::NowMs());
    CHECK(server.directory->GetStatus().loaded_keys == 501);
    server.Set("k7", "after the stop");
    REQUIRE(server.Sync());
  }
  {
    Running server(options);
    CHECK(server.Get("k7") == "after the stop");
    REQUIRE(server.Save() == SnapshotOutcome::kDone);
    server.Set("k8", "behind the snapshot");
    REQUIRE(server.Sync());
  }
  {
    Running server(options);
    CHECK(server.directory->recovery().snapshot_number() != 0);
    CHECK(server.Get("k7") == "after the stop");
    CHECK(server.Get("k8") == "behind the snapshot");
    CHECK(server.Get("k9") == "v9");
    CHECK(server.ExpiryOf("expiring") == expiry);  // UR-12: the moment, not the time that was left
    CHECK(server.directory->GetStatus().start_number == 4);
  }
}

TEST_CASE(
    "A directory in use, of a newer format, of another server or without a catalog is refused "
    "untouched") {
  TempFolder folder;
  SECTION("in use") {
    Running server(At(folder.path("data")));
    const Status status = OpenStatus(At(folder.path("data")));
    CHECK(status.code() == Code::kLocked);
    CHECK(status.path() == folder.path("data"));
  }
  SECTION("newer format") {
    { Running server(At(folder.path("data"))); }
    auto store = LmdbStore::Open(folder.path("data/catalog.mdb"), LmdbStore::Mode::kReadWrite);
    std::string format;
    AppendLe<uint32_t>(&format, kDirectoryFormat + 1);
    REQUIRE((*store)->Commit({{"format", format}}).ok());
    store->reset();
    const Status status = OpenStatus(At(folder.path("data")));
    CHECK(status.code() == Code::kUnsupported);
  }
  SECTION("another server's files") {
    for (const char* name : {"dump.rdb", "appendonly.aof"}) {
      const std::string path = folder.path(std::string("of-") + name);
      fs::create_directory(path);
      std::ofstream(path + "/" + name) << "REDIS0011";
      const Status status = OpenStatus(At(path));
      CHECK(status.code() == Code::kExists);
      CHECK(status.path() == path + "/" + name);
      CHECK(status.message().find("hotkv-tool import") != std::string::npos);
      CHECK(!fs::exists(path + "/catalog.mdb"));
      fs::remove(path + "/" + name);
      CHECK(OpenStatus(At(path)).ok());
    }
    fs::create_directories(folder.path("x/appendonlydir"));
    CHECK(OpenStatus(At(folder.path("x"))).code() == Code::kExists);
  }
  SECTION("no catalog") {
    { Running server(At(folder.path("data"))); }
    fs::remove(folder.path("data/catalog.mdb"));
    const Status status = OpenStatus(At(folder.path("data")));
    CHECK(status.code() == Code::kCorruption);
    CHECK(status.message().find("no catalog") != std::string::npos);
    CHECK(status.message().find("hotkv-tool export --salvage --dir " + folder.path("data")) !=
          std::string::npos);
    CHECK(!fs::exists(folder.path("data/catalog.mdb")));
  }
  SECTION("a path that cannot be a folder") {
    std::ofstream(folder.path("file")) << "x";
    const Status status = OpenStatus(At(folder.path("file")));
    CHECK(!status.ok());
    CHECK(status.path().find(folder.path("file")) == 0);
  }
}

TEST_CASE("A file that the catalog does not know is neither used nor deleted") {
  TempFolder folder;
  {
    Running server(At(folder.path("data")));
    server.Set("a", "1");
    REQUIRE(server.Save() == SnapshotOutcome::kDone);
  }
  const std::string mine = folder.path("data/snapshots/00000099.hks");
  std::ofstream(mine) << "mine";
  fs::create_directory(folder.path("data/index/5"));
  {
    Running server(At(folder.path("data")));
    CHECK(server.Get("a") == "1");
    REQUIRE(server.Save() == SnapshotOutcome::kDone);
  }
  CHECK(fs::file_size(mine) == 4);
  CHECK(fs::exists(folder.path("data/index/5")));
}

TEST_CASE(
    "Stripes and hash seed stay as they were at the first start, other databases are a clear "
    "error") {
  TempFolder folder;
  auto options = At(folder.path("data"));
  {
    Running server(options);
    server.Set("a", "1");
    REQUIRE(server.Save() == SnapshotOutcome::kDone);
  }
  options.stripe_bits = 10;
  Running server(options);
  CHECK(server.engine->keyspace().stripe_count() == 64);
  CHECK(server.Get("a") == "1");
}

TEST_CASE("Without a log a kill goes back to the last snapshot, an exact moment") {
  TempFolder folder;
  auto options = At(folder.path("data"));
  options.append_only = false;
  {
    Running server(options);
    server.Set("a", "1");
    REQUIRE(server.Save() == SnapshotOutcome::kDone);
    server.Set("a", "2");
    CHECK(server.directory->GetStatus().changes_since_save == 1);
  }
  {
    Running server(options);
    CHECK(server.Get("a") == "1");
    server.Set("a", "3");
    // Switched on: the log counts once a snapshot is live.
    REQUIRE(server.directory->SetAppendOnly(true).ok());
    for (int i = 0; i < 10'000 && !server.directory->LogCounts(); ++i) {
      if (!server.directory->HelpSnapshot(server.engine->worker(0))) usleep(500);
    }
    REQUIRE(server.directory->LogCounts());
    server.Set("b", "logged");
    REQUIRE(server.Sync());
  }
  {
    Running server(options);
    CHECK(server.Get("a") == "3");
    CHECK(server.Get("b") == "logged");
    REQUIRE(server.directory->Stop(true).ok());
  }
  CHECK(fs::is_empty(folder.path("data/log")));
}

TEST_CASE("Save points and the log's growth begin snapshots, and old log goes") {
  TempFolder folder;
  auto options = At(folder.path("data"));
  options.save_points = {{0, 100}};
  Running server(options);
  auto turn = [&] { server.engine->TurnEnd(server.engine->worker(0), 1'000'000); };
  auto await = [&](uint64_t snapshots) {
    for (int i = 0; i < 20'000 && server.directory->GetStatus().snapshots < snapshots; ++i) {
      turn();
      usleep(500);
    }
    return server.directory->GetStatus().snapshots >= snapshots;
  };
  for (int i = 0; i < 100; ++i) server.Set("k" + std::to_string(i), "v");
  CHECK(await(1));
  CHECK(server.directory->GetStatus().last_snapshot_error.empty());
  server.directory->SetSavePoints({});
  const uint64_t before = server.directory->GetStatus().snapshots;
  auto write_much = [&] {
    for (int i = 0; i < 400; ++i) {
      server.Set("k" + std::to_string(i % 10), std::string(4000, static_cast<char>('a' + i % 26)));
      if (i % 50 == 0) REQUIRE(server.Sync());
    }
  };
  // 1.6 MB of log and a snapshot of a few bytes: only the percentage 0 keeps the next one away.
  server.directory->SetLogGrowth({200'000, 0});
  write_much();
  for (int i = 0; i < 200; ++i) {
    turn();
    usleep(500);
  }
  CHECK(server.directory->GetStatus().snapshots == before);
  server.directory->SetLogGrowth({200'000, 100});
  write_much();
  CHECK(await(before + 1));
  REQUIRE(server.Save() == SnapshotOutcome::kDone);
  // The one that is written to, perhaps one before it, and the next.
  for (int i = 0; i < 4000 && server.directory->GetStatus().log.segments > 3; ++i) usleep(1000);
  CHECK(server.directory->GetStatus().log.segments <= 3);
}

TEST_CASE("A snapshot that fails leaves the one before in use, nothing behind, and is told") {
  SetLogLevel(LogLevel::kNothing);
  SimEnv env(3);
  DataDirectoryOptions options = At("data");
  options.env = &env;
  options.open_catalog = [](const std::string&, bool) -> Result<std::unique_ptr<CatalogStore>> {
    return std::unique_ptr<CatalogStore>(std::make_unique<SimStore>());
  };
  Running server(options);
  server.Set("a", "1");
  REQUIRE(server.Save() == SnapshotOutcome::kDone);
  env.Inject({.op = SimOp::kSync, .path_part = "/snapshots/", .error = ENOSPC});
  REQUIRE(server.Save() == SnapshotOutcome::kFailed);
  CHECK(!server.directory->GetStatus().last_snapshot_error.empty());
  CHECK(env.List("data/snapshots")->size() == 1);
  CHECK(!server.engine->disk_denied.load());  // the log has everything
  REQUIRE(server.Save() == SnapshotOutcome::kDone);
  CHECK(server.directory->GetStatus().last_snapshot_error.empty());
  CHECK(env.List("data/snapshots")->size() == 1);
}

TEST_CASE("A full disk refuses writes and is over by itself once there is room again (UR-23)") {
  SetLogLevel(LogLevel::kNothing);
  SimEnv env(4);
  DataDirectoryOptions options = At("data");
  options.env = &env;
  options.fsync = FsyncPolicy::kAlways;
  options.open_catalog = [](const std::string&, bool) -> Result<std::unique_ptr<CatalogStore>> {
    return std::unique_ptr<CatalogStore>(std::make_unique<SimStore>());
  };
  options.log.retry_ms = 5;
  Running server(options);
  server.Set("before", "x");
  REQUIRE(server.Sync());
  env.SetCapacity(env.UsedBytes());
  uint64_t written = 0;
  const std::string value(30'000, 'v');
  for (; written < 200 && !server.engine->disk_denied.load(); ++written) {
    server.Set("k" + std::to_string(written), value);
    usleep(2000);
  }
  for (int ms = 0; ms < 60'000 && !server.engine->disk_denied.load(); ++ms) usleep(1000);  // the log's thread may lag
  CHECK(server.engine->disk_denied.load());
  CHECK(server.engine->disk_denied_reason().find("No space left") != std::string::npos);
  CHECK(server.Get("before") == "x");
  CHECK(server.Save() == SnapshotOutcome::kFailed);
  env.SetCapacity(UINT64_MAX);
  for (int i = 0; i < 10'000 && server.engine->disk_denied.load(); ++i) usleep(1000);
  CHECK(!server.engine->disk_denied.load());
  server.Set("after", "y");
  CHECK(server.Sync());
  CHECK(server.Save() == SnapshotOutcome::kDone);
}

TEST_CASE(
    "Counters under load, snapshots in a loop, kills: at least what was acknowledged, at most what "
    "was sent (UR-24)") {
  TempFolder folder;
  auto options = At(folder.path("data"));
  options.fsync = FsyncPolicy::kAlways;
  constexpr unsigned kWorkers = 3;
  uint64_t acknowledged[kWorkers] = {};
  uint64_t sent[kWorkers] = {};
  for (int life = 0; life < 4; ++life) {
    Running server(options, kWorkers);
    std::atomic<bool> stop{false};
    std::vector<std::thread> workers;
    for (unsigned w = 0; w < kWorkers; ++w) {
      const std::string name = "counter:" + std::to_string(w);
      const std::string twin = "twin:" + std::to_string(w);
      const std::string found = server.Get(name);
      const uint64_t value = found == "none" ? 0 : std::stoull(found);
      REQUIRE(value >= acknowledged[w]);
      REQUIRE(value <= sent[w]);
      REQUIRE(server.Get(twin) == found);  // one commit wrote both
      workers.emplace_back([&, w, name, twin, value] {
        Engine& engine = *server.engine;
        WorkerState& worker = engine.worker(w);
        const KeyRef refs[] = {engine.keyspace().MakeRef(name), engine.keyspace().MakeRef(twin)};
        for (uint64_t n = value + 1; !stop.load(); ++n) {
          engine.gate().Enter(w);
          worker.txn.Begin(Clock::NowMs());
          worker.txn.LockKeys(refs);
          for (const KeyRef& ref : refs) worker.txn.SetString(0, ref, std::to_string(n), 0);
          sent[w] = n;
          const uint64_t epoch = worker.txn.CommitAndUnlock();
          engine.TurnEnd(worker, 200'000);
          engine.gate().Leave(w);
          server.directory->RequestSync();
          for (int i = 0; i < 20 && engine.epochs().durable() < epoch; ++i) usleep(100);
          if (engine.epochs().durable() >= epoch) acknowledged[w] = n;
        }
      });
    }
    for (int i = 0; i < 3; ++i) {
      const uint64_t id = server.directory->BeginSnapshot(SnapshotWhy::kRewrite);
      for (int ms = 0; ms < 60'000 && server.directory->OutcomeOf(id) == SnapshotOutcome::kRunning;
           ++ms) {
        usleep(1000);
      }
    }
    stop = true;
    for (std::thread& worker : workers) worker.join();
    CHECK(server.directory->GetStatus().snapshots >= 1);
  }
  CHECK(acknowledged[0] > 0);
}

TEST_CASE("The log switched on without a snapshot to go on from: writes are refused until there is one") {
  TempFolder folder;
  DataDirectoryOptions options = At(folder.path("data"));
  options.append_only = false;
  const std::string snapshots = folder.path("data") + "/snapshots";
  {
    Running server(options);
    server.Set("a", "1");
    std::filesystem::rename(snapshots, snapshots + ".away");
    REQUIRE(server.directory->SetAppendOnly(true).ok());
    CHECK(!server.directory->log_counts());
    const auto denied = [&] { return server.engine->disk_denied.load(); };
    for (int ms = 0; ms < 10'000 && !denied(); ++ms) usleep(1000);
    CHECK(denied());
    CHECK(!server.directory->LogCounts());
    CHECK(!server.directory->log_counts());
    std::filesystem::rename(snapshots + ".away", snapshots);
    for (int ms = 0; ms < 10'000 && denied(); ++ms) {
      if (!server.directory->HelpSnapshot(server.engine->worker(0))) usleep(1000);
    }
    CHECK(!denied());
    CHECK(server.directory->LogCounts());
    for (int ms = 0; ms < 10'000 && !server.directory->log_counts(); ++ms) usleep(1000);
    CHECK(server.directory->log_counts());
    server.Set("b", "logged");
    REQUIRE(server.Sync());
  }
  Running server(options);
  CHECK(server.Get("a") == "1");
  CHECK(server.Get("b") == "logged");
}

#ifdef HOTKV_TEST_HOOKS
// What a kill would leave at a moment between the log's end and its being noted anywhere.
TEST_CASE("A snapshot that ends while the log is being switched off does not count on the log") {
  TempFolder folder;
  bool killed_has_it = false;
  {
    Running server(At(folder.path("data")));
    server.Set("a", "logged");
    REQUIRE(server.Sync());
    const uint64_t snapshot = server.directory->BeginSnapshot(SnapshotWhy::kSave);
    SyncBlock first_stripe("snapshot.after_stripe", 1);
    std::thread helper([&] {
      while (!server.directory->HelpSnapshot(server.engine->worker(1))) usleep(200);
    });
    REQUIRE(first_stripe.AwaitReached());
    server.Set("b", "logged");  // needed with this snapshot
    SyncBlock ended("log.ended");
    std::thread off([&] { CHECK(server.directory->SetAppendOnly(false).ok()); });
    REQUIRE(ended.AwaitReached());
    server.Set("a", "not logged");
    REQUIRE(server.Sync());
    // The snapshot may end now or wait for the switch; either way it has to hold what it stands for.
    first_stripe.Release();
    helper.join();
    const auto running = [&] { return server.directory->OutcomeOf(snapshot) == SnapshotOutcome::kRunning; };
    for (int ms = 0; ms < 300 && running(); ++ms) {
      if (!server.directory->HelpSnapshot(server.engine->worker(0))) usleep(1000);
    }
    killed_has_it = !running();
    fs::copy(folder.path("data"), folder.path("killed"), fs::copy_options::recursive);
    ended.Release();
    off.join();
    while (running()) {
      if (!server.directory->HelpSnapshot(server.engine->worker(0))) usleep(200);
    }
    CHECK(server.directory->OutcomeOf(snapshot) == SnapshotOutcome::kDone);
  }
  CHECK(Running(At(folder.path("killed"))).Get("a") == (killed_has_it ? "not logged" : "logged"));
  CHECK(Running(At(folder.path("data"))).Get("a") == "not logged");
}
#endif

TEST_CASE("A full disk below an object makes the server read-only for a second") {
  TempFolder folder;
  Running server(At(folder.path("data")));
  const std::string reason = "data/index/1/vectors.03.f32: allocate: No space left on device";
  const int64_t begin_ns = Clock::MonotonicNs();
  server.engine->NoteObjectFailure(reason);
  const bool denied = server.engine->disk_denied.load();
  const std::string told = server.engine->disk_denied_reason();
  if (Clock::MonotonicNs() - begin_ns < 1'000'000'000) {  // else it may be over before it was looked at
    CHECK(denied);
    CHECK(told == reason);
  }
  for (int ms = 0; ms < 20'000 && server.engine->disk_denied.load(); ++ms) usleep(1000);
  CHECK(!server.engine->disk_denied.load());
  CHECK(server.engine->object_failure().empty());
  CHECK(server.engine->disk_denied_reason().empty());
}

TEST_CASE("A data directory whose catalog is empty is refused as it is; an empty directory's is not") {
  TempFolder folder;
  const std::string catalog = folder.path("data") + "/catalog.mdb";
  {
    Running server(At(folder.path("data")));
    server.Set("k", "v");
    REQUIRE(server.Save() == SnapshotOutcome::kDone);
  }
  std::filesystem::resize_file(catalog, 0);
  CHECK(DataDirectory::Open(At(folder.path("data"))).status().code() == Code::kCorruption);
  CHECK(std::filesystem::file_size(catalog) == 0);
  // What a first start leaves that ended before there was anything in it.
  std::filesystem::create_directory(folder.path("new"));
  std::ofstream(folder.path("new") + "/catalog.mdb").flush();
  Running fresh(At(folder.path("new")));
  fresh.Set("k", "v");
  CHECK(fresh.Get("k") == "v");
}

TEST_CASE("Reload brings back what is on disk, in place") {
  TempFolder folder;
  Running server(At(folder.path("data")));
  for (int i = 0; i < 200; ++i) server.Set("k" + std::to_string(i), "v" + std::to_string(i));
  REQUIRE(server.Save() == SnapshotOutcome::kDone);
  server.Set("k1", "behind the snapshot");
  const uint64_t digest = server.engine->Digest();
  REQUIRE(server.Sync());
  Status reloaded = server.directory->Reload();
  while (reloaded.code() == Code::kBusy) {  // the background thread has its turn
    usleep(1000);
    reloaded = server.directory->Reload();
  }
  REQUIRE(reloaded.ok());
  CHECK(server.engine->Digest() == digest);
  server.Set("k2", "and on");
  REQUIRE(server.Sync());
  CHECK(server.Get("k1") == "behind the snapshot");
}
