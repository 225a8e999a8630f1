// Stop word, reclamation, epochs and transactions among threads.
#include <catch2/catch.hpp>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "engine/tx/client_state.h"
#include "engine/tx/engine.h"

namespace hotkv {
namespace {

struct Fixture {
  explicit Fixture(unsigned workers, unsigned stripe_bits = 4)
      : table({}), engine({{stripe_bits, 1, 4}, workers, 1, 1}, &table) {}
  CommandTable table;
  Engine engine;
};

void SetInt(Engine& engine, unsigned worker, std::string_view key, int64_t value) {
  Txn& txn = engine.worker(worker).txn;
  const KeyRef ref = engine.keyspace().MakeRef(key);
  txn.Begin(1);
  txn.LockKey(ref);
  txn.SetInt(0, ref, value, 0);
  txn.CommitAndUnlock();
}

TEST_CASE("the stop word gives one thread everything, also when several want it") {
  constexpr unsigned kWorkers = 4;
  StopGate gate(kWorkers);
  std::atomic<int> inside{0};
  std::atomic<int> stops{0};
  std::atomic<bool> overlap{false};
  std::vector<std::thread> threads;
  for (unsigned w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&, w] {
      for (int i = 0; i < 3000; ++i) {
        gate.Enter(w);
        inside.fetch_add(1);
        inside.fetch_sub(1);
        if (i % 100 == static_cast<int>(w)) {
          gate.Stop(w);
          if (inside.load() != 0) overlap = true;
          stops.fetch_add(1);
          gate.Resume();
        }
        gate.Poll(w);
        gate.Leave(w);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    gate.Stop(StopGate::kOutsider);
    if (inside.load() != 0) overlap = true;
    gate.Resume();
  }
  for (auto& thread : threads) thread.join();
  CHECK_FALSE(overlap.load());
  CHECK(stops.load() == 30 * static_cast<int>(kWorkers));
}

TEST_CASE("what a pinned reader may see is not freed") {
  ReclaimDomain domain;
  std::atomic<int*> shared{new int(1)};
  std::atomic<bool> done{false};
  std::atomic<uint64_t> bad{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&] {
      const unsigned slot = domain.Register();
      while (!done.load()) {
        ReclaimPin pin(domain, slot);
        if (*shared.load(std::memory_order_acquire) != 1) bad.fetch_add(1);
      }
      domain.Unregister(slot);
    });
  }
  const unsigned slot = domain.Register();
  for (int i = 0; i < 20000; ++i) {
    int* old = shared.exchange(new int(1), std::memory_order_acq_rel);
    domain.Retire([old] {
      *old = 0;
      delete old;
    });
    domain.Collect();
  }
  done = true;
  for (auto& reader : readers) reader.join();
  domain.Unregister(slot);
  domain.Collect();
  CHECK(domain.empty());
  CHECK(bad.load() == 0);
  delete shared.load();
}

// Reads all records of a closed epoch.
std::vector<Effect> DrainEpoch(EpochClock& clock, uint64_t epoch, std::vector<std::string>* keep) {
  std::vector<Effect> effects;
  for (unsigned w = 0; w < clock.workers(); ++w) {
    const EffectBuffer& buffer = clock.Buffer(w, epoch);
    size_t at = 0;
    while (at < buffer.bytes.size()) {
      const auto header = LoadLe<EffectBuffer::RecordHeader>(buffer.bytes.data() + at);
      at += sizeof(header);
      std::string body(buffer.bytes.view().substr(at, header.size));
      at += header.size;
      if (header.large != 0) body.append(buffer.large[header.large - 1].view());
      keep->push_back(std::move(body));
    }
  }
  for (const std::string& body : *keep) {
    ByteReader reader(body);
    Effect effect;
    REQUIRE(DecodeEffect(&reader, epoch, &effect));
    REQUIRE(reader.empty());
    effects.push_back(effect);
  }
  return effects;
}

TEST_CASE("effects of all workers, replayed by lsn, give the live state; lsns are a serial order") {
  constexpr unsigned kWorkers = 3;
  Fixture f(kWorkers);
  f.engine.log_effects = true;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&, w] {
      uint64_t n = w;
      for (int i = 0; i < 20000; ++i) {
        n = n * 6364136223846793005u + 1442695040888963407u;
        SetInt(f.engine, w, "k" + std::to_string((n >> 33) % 50), static_cast<int64_t>(n));
      }
    });
  }
  Fixture replica(1);
  std::map<uint64_t, std::vector<std::pair<uint32_t, std::string>>> order;  // by lsn: worker, key
  std::thread writer([&] {
    for (bool last = false;; ) {
      last = stop.load();
      const uint64_t epoch = f.engine.epochs().Close();
      std::vector<std::string> keep;
      std::vector<Effect> effects = DrainEpoch(f.engine.epochs(), epoch, &keep);
      std::stable_sort(effects.begin(), effects.end(),
                       [](const Effect& a, const Effect& b) { return a.lsn < b.lsn; });
      for (const Effect& effect : effects) {
        REQUIRE(EpochOf(effect.lsn) == epoch);
        order[effect.lsn].emplace_back(effect.worker, std::string(effect.key));
        REQUIRE(replica.engine.Replay(effect).ok());
      }
      f.engine.epochs().Release(epoch);
      if (last) return;
      f.engine.epochs().WaitForWork(500, false);
    }
  });
  for (auto& thread : threads) thread.join();
  stop = true;
  writer.join();
  CHECK(replica.engine.Digest() == f.engine.Digest());
  // Equal lsns only between commits of different workers that touch no common stripe.
  for (const auto& [lsn, commits] : order) {
    for (size_t i = 0; i < commits.size(); ++i) {
      for (size_t j = i + 1; j < commits.size(); ++j) {
        REQUIRE(commits[i].first != commits[j].first);
        const auto a = f.engine.keyspace().MakeRef(commits[i].second).stripe;
        const auto b = f.engine.keyspace().MakeRef(commits[j].second).stripe;
        REQUIRE(a != b);
      }
    }
  }
}

TEST_CASE("two transactions that each watch what the other writes cannot both go through") {
  for (int round = 0; round < 300; ++round) {
    Fixture f(2);
    std::atomic<int> ready{0};
    std::atomic<int> passed{0};
    auto run = [&](unsigned worker, std::string_view watched, std::string_view written) {
      Txn& txn = f.engine.worker(worker).txn;
      ClientState client;
      const KeyRef watch_ref = f.engine.keyspace().MakeRef(watched);
      const KeyRef write_ref = f.engine.keyspace().MakeRef(written);
      txn.Begin(1);
      txn.LockKey(watch_ref);
      txn.Watch(client, 0, watch_ref);
      txn.CommitAndUnlock();
      ready.fetch_add(1);
      while (ready.load() < 2) {
      }
      const KeyRef keys[] = {watch_ref, write_ref};
      txn.Begin(1);
      txn.LockKeys(keys);
      if (!txn.WatchBroken(client)) {
        txn.SetInt(0, write_ref, 1, 0);
        passed.fetch_add(1);
      }
      txn.CommitAndUnlock();
      f.engine.gate().Enter(worker);
      Txn::Unwatch(f.engine.worker(worker), client);
      f.engine.gate().Leave(worker);
    };
    std::thread a(run, 0u, "x", "y");
    std::thread b(run, 1u, "y", "x");
    a.join();
    b.join();
    REQUIRE(passed.load() == 1);
  }
}

TEST_CASE("large operands travel by reference and replay whole") {
  Fixture f(1);
  f.engine.log_effects = true;
  Txn& txn = f.engine.worker(0).txn;
  const KeyRef ref = f.engine.keyspace().MakeRef("big");
  const std::string big(40000, 'a');
  txn.Begin(1);
  txn.LockKey(ref);
  txn.SetString(0, ref, big, 0);
  CHECK(txn.Append(0, ref, std::string(20000, 'b')) == 60000);
  CHECK(txn.SetRange(0, ref, 70000, "end") == 70003);
  txn.SetExpire(0, ref, 12345);
  txn.CommitAndUnlock();
  const uint64_t epoch = f.engine.epochs().Close();
  std::vector<std::string> keep;
  Fixture replica(1);
  for (const Effect& effect : DrainEpoch(f.engine.epochs(), epoch, &keep)) {
    REQUIRE(replica.engine.Replay(effect).ok());
  }
  f.engine.epochs().Release(epoch);
  CHECK(replica.engine.Digest() == f.engine.Digest());
}

TEST_CASE("active expiry removes what is past its time and nothing else") {
  Fixture f(1);
  Txn& txn = f.engine.worker(0).txn;
  for (int i = 0; i < 2000; ++i) {
    const std::string key = "k" + std::to_string(i);
    const KeyRef ref = f.engine.keyspace().MakeRef(key);
    txn.Begin(1);
    txn.LockKey(ref);
    txn.SetString(0, ref, "v", i % 3 == 0 ? 0 : 1000 + i);
    txn.CommitAndUnlock();
  }
  f.engine.worker(0).now_ms = 2000;  // those up to i = 1000 are due
  while (f.engine.TurnEnd(f.engine.worker(0), 1'000'000)) {
  }
  uint64_t expected = 0;
  for (int i = 0; i < 2000; ++i) expected += (i % 3 == 0 || 1000 + i > 2000) ? 1 : 0;
  CHECK(f.engine.keyspace().Size(0) == expected);
  CHECK(f.engine.CountTotals().volatile_keys == expected - 667);
}

}  // namespace
}  // namespace hotkv
