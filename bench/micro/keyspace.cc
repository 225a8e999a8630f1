// In-process cost of whole commands: lookup, hash, two prefetch passes, lock, handler, effects, reply; network and parsing
// left out. Usage: micro_keyspace [keys [rounds]]. Prints nanoseconds a command, best of `rounds`.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/commands/command_spec.h"
#include "engine/tx/engine.h"
#include "engine/tx/executor.h"

namespace hotkv {
namespace {

constexpr size_t kWindow = 32;
constexpr size_t kBatch = 64;

struct Bench {
  explicit Bench(uint64_t keys_in)
      : keys(keys_in),
        families{StringCommands()},
        table(families),
        engine({{12, 1, 16}, 1, 1, 1}, &table),
        executor(&engine, &engine.worker(0)),
        chain(&pool),
        reply(&chain) {
    client.id = 1;
    engine.worker(0).now_ms = Clock::NowMs();
  }

  std::string Key(uint64_t n) const {
    char text[32];
    std::snprintf(text, sizeof(text), "key:%012llu", static_cast<unsigned long long>(n));
    return text;
  }

  // Runs `count` commands of random keys; returns nanoseconds a command.
  double Run(const std::vector<std::string_view>& words, uint64_t count) {
    std::vector<std::string> names(kBatch);
    std::vector<std::vector<std::string_view>> args(kBatch, words);
    int64_t spent = 0;
    for (uint64_t done = 0; done < count; done += kBatch) {
      for (size_t i = 0; i < kBatch; ++i) {
        names[i] = Key(random.Next() % keys);
        args[i][1] = names[i];
      }
      const int64_t start = Clock::MonotonicNs();
      RunBatch(args);
      spent += Clock::MonotonicNs() - start;
      HOTKV_CHECK(reply.errors() == 0);
      chain.Clear();
      MaybeCloseEpoch();
    }
    return static_cast<double>(spent) / static_cast<double>(count);
  }

  void RunBatch(const std::vector<std::vector<std::string_view>>& args) {
    const Keyspace& keyspace = engine.keyspace();
    std::array<const CommandSpec*, kWindow> specs{};
    std::array<KeyRef, kWindow> refs{};
    for (size_t at = 0; at < args.size(); at += kWindow) {
      for (size_t i = 0; i < kWindow; ++i) {
        specs[i] = executor.Lookup(args[at + i]);
        refs[i] = keyspace.MakeRef(args[at + i][1]);
        keyspace.PrefetchChunk(refs[i], 0);
      }
      for (size_t i = 0; i < kWindow; ++i) keyspace.PrefetchEntry(refs[i], 0);
      for (size_t i = 0; i < kWindow; ++i) {
        const DispatchResult result = executor.Dispatch(client, specs[i], args[at + i], reply);
        HOTKV_CHECK(result.kind == DispatchResult::Kind::kDone);
      }
    }
  }

  void MaybeCloseEpoch() {
    // A few milliseconds' worth, or a full buffer, as the log writer does it.
    constexpr uint64_t kBatchesPerEpoch = 300;
    const uint64_t epoch = engine.epochs().current();
    const bool full = engine.epochs().Buffer(0, epoch).size_bytes() >= EpochClock::kHandOverBytes;
    if (++batches % kBatchesPerEpoch != 0 && !full) return;
    engine.epochs().Release(engine.epochs().Close());
  }

  uint64_t keys;
  std::array<std::span<const CommandSpec>, 1> families;
  CommandTable table;
  Engine engine;
  Executor executor;
  BlockPool pool;
  OutputChain chain;
  ReplyWriter reply;
  ClientState client;
  uint64_t batches = 0;
  Random random{42};
};

void Report(Bench& bench, const char* name, const std::vector<std::string_view>& words, int rounds) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) best = std::min(best, bench.Run(words, 1'000'000));
  std::printf("%-18s %7.1f ns\n", name, best);
}

}  // namespace
}  // namespace hotkv

int main(int argc, char** argv) {
  const uint64_t keys = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const std::string value(64, 'v');
  hotkv::Bench bench(keys);
  for (uint64_t i = 0; i < keys * 3; i += 1'000'000) bench.Run({"SET", "", value}, 1'000'000);
  std::printf("%llu keys, 64-byte values\n", static_cast<unsigned long long>(keys));
  hotkv::Report(bench, "SET, no log", {"SET", "", value}, rounds);
  hotkv::Report(bench, "GET", {"GET", ""}, rounds);
  bench.engine.log_effects = true;
  hotkv::Report(bench, "SET, effects", {"SET", "", value}, rounds);
  hotkv::Bench counters(keys);
  counters.engine.log_effects = true;
  for (uint64_t i = 0; i < keys * 3; i += 1'000'000) counters.Run({"INCR", ""}, 1'000'000);
  hotkv::Report(counters, "INCR, effects", {"INCR", ""}, rounds);
  return 0;
}
