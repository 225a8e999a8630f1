// Several workers run random commands at once, with transactions, watches and commands on the whole
// keyspace among them; the log's effects, replayed in lsn order, must give the keyspace that the
// threads left behind.
#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

#include "engine/base/clock.h"
#include "tests/property/command_source.h"
#include "tests/support/engine_fixture.h"

namespace hotkv {
namespace {

// One worker's side; touches no state of the fixture but the engine.
class WorkerThread {
 public:
  WorkerThread(Engine* engine, unsigned id)
      : engine_(engine), worker_(engine->worker(id)), executor_(engine, &worker_), chain_(&pool_) {
    client_.id = id;
  }

  std::string Run(const Command& command) {
    const std::vector<std::string_view> args(command.begin(), command.end());
    for (;;) {
      worker_.now_ms = Clock::NowMs();
      ReplyWriter reply(&chain_);
      engine_->gate().Enter(worker_.id);
      const DispatchResult result =
          executor_.Dispatch(client_, executor_.Lookup(args), args, reply);
      engine_->reclaim().Collect();
      engine_->gate().Leave(worker_.id);
      std::string bytes = chain_.ToString();
      chain_.Clear();
      if (result.kind == DispatchResult::Kind::kDone) return bytes;
      std::this_thread::yield();
    }
  }

  ClientState& client() { return client_; }

 private:
  Engine* const engine_;
  WorkerState& worker_;
  Executor executor_;
  BlockPool pool_;
  OutputChain chain_;
  ClientState client_;
};

class ThreadedRun {
 public:
  explicit ThreadedRun(unsigned stripe_bits)
      : db_(Options(stripe_bits)), replica_(db_.engine().options(), &db_.commands()) {}

  // body(worker thread, worker number) is run by each worker; meanwhile the log is taken and
  // replayed.
  template <typename Body>
  void Run(Body&& body) {
    std::atomic<unsigned> running{kWorkers};
    std::vector<std::thread> threads;
    for (unsigned w = 0; w < kWorkers; ++w) {
      threads.emplace_back([&, w] {
        WorkerThread self(&db_.engine(), w);
        body(self, w);
        self.Run({"DISCARD"});
        self.Run({"UNWATCH"});
        running.fetch_sub(1);
      });
    }
    while (running.load() != 0) {
      TakeAndReplay();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (std::thread& thread : threads) thread.join();
    TakeAndReplay();
    REQUIRE(replica_.Digest() == db_.engine().Digest());
  }

  EngineFixture& db() { return db_; }
  static constexpr unsigned kWorkers = 4;

 private:
  static EngineFixtureOptions Options(unsigned stripe_bits) {
    EngineFixtureOptions options;
    options.stripe_bits = stripe_bits;
    options.workers = kWorkers;
    options.databases = 4;
    return options;
  }
  void TakeAndReplay() { EngineFixture::Replay(db_.TakeLog(), &replica_); }

  EngineFixture db_;
  Engine replica_;
};

void RandomCommands(WorkerThread& self, uint64_t seed) {
  CommandSource source(seed, 4);
  constexpr const char* kWalks[] = {"KEYS", "SCAN", "RANDOMKEY", "DBSIZE"};
  for (int i = 0; i < 20'000; ++i) {
    if (source.Chance(5)) self.client().db = static_cast<uint32_t>(source.random().Below(4));
    if (source.Chance(4)) {
      const std::string walk = kWalks[source.random().Below(4)];
      Command command{walk};
      if (walk == "KEYS") command.push_back("*1*");
      if (walk == "SCAN") command.push_back("0");
      self.Run(command);
    }
    const bool watches = source.Chance(4);
    if (watches) self.Run({"WATCH", "key1", "key2"});
    if (!watches && !source.Chance(6)) {
      self.Run(source.Next(Clock::NowMs()));
      continue;
    }
    self.Run({"MULTI"});
    for (uint64_t n = source.random().Below(5); n > 0; --n) self.Run(source.Next(Clock::NowMs()));
    self.Run({"EXEC"});
  }
}

TEST_CASE("what several workers did at once is what their log says: 2 stripes") {
  ThreadedRun run(1);
  run.Run([](WorkerThread& self, unsigned w) { RandomCommands(self, 100 + w); });
}

TEST_CASE("what several workers did at once is what their log says: 4,096 stripes") {
  ThreadedRun run(12);
  run.Run([](WorkerThread& self, unsigned w) { RandomCommands(self, 200 + w); });
}

TEST_CASE("WATCH makes read-modify-write safe among workers") {
  ThreadedRun run(2);
  constexpr int kRounds = 3000;
  run.Run([](WorkerThread& self, unsigned) {
    for (int done = 0; done < kRounds;) {
      self.Run({"WATCH", "a", "b"});
      const std::string a = self.Run({"GET", "a"});
      const int64_t value = a == "$-1\r\n" ? 0 : std::stoll(a.substr(a.find('\n') + 1));
      self.Run({"MULTI"});
      self.Run({"SET", "a", std::to_string(value + 1)});
      self.Run({"SET", "b", std::to_string(value + 1)});
      if (self.Run({"EXEC"}) != "*-1\r\n") ++done;
    }
  });
  const std::string expected =
      "$" + std::to_string(kRounds * static_cast<int>(ThreadedRun::kWorkers));
  CHECK(run.db()("GET a") == expected);
  CHECK(run.db()("GET b") == expected);
}

TEST_CASE("commands on several keys are seen whole by other workers") {
  ThreadedRun run(12);
  run.db()("MSET x 0 y 0 z 0");
  std::atomic<int> torn{0};
  run.Run([&](WorkerThread& self, unsigned w) {
    for (int i = 0; i < 20'000; ++i) {
      const std::string value = std::to_string(w * 100'000 + static_cast<unsigned>(i));
      if (w % 2 == 0) {
        self.Run({"MSET", "x", value, "y", value, "z", value});
        continue;
      }
      const std::string reply = self.Run({"MGET", "z", "x", "y"});
      const std::string items = reply.substr(reply.find('\n') + 1);
      const std::string one = items.substr(0, items.size() / 3);
      if (items != one + one + one) torn.fetch_add(1);
    }
  });
  CHECK(torn.load() == 0);
}

}  // namespace
}  // namespace hotkv
