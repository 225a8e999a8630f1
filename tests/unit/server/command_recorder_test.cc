#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/base/random.h"
#include "engine/tx/engine.h"
#include "server/commands/command_latency.h"
#include "server/commands/command_recorder.h"
#include "server/commands/latency_monitor.h"
#include "server/commands/slowlog.h"
#include "tests/support/engine_fixture.h"

namespace hotkv {

TEST_CASE("latency cells: every value lies in the cell that says so") {
  for (unsigned bits = 0; bits < LatencyCells::kValueBits; ++bits) {
    for (const int64_t delta : {-1, 0, 1}) {
      const auto value = static_cast<uint64_t>(static_cast<int64_t>(uint64_t{1} << bits) + delta);
      if (value >> LatencyCells::kValueBits != 0) continue;
      const size_t cell = LatencyCells::CellOf(value);
      REQUIRE(cell < LatencyCells::kCells);
      CHECK(LatencyCells::UpperEndOf(cell) >= value);
      if (cell > 0) CHECK(LatencyCells::UpperEndOf(cell - 1) < value);
    }
  }
  CHECK(LatencyCells::CellOf(UINT64_MAX) == LatencyCells::kCells - 1);
}

TEST_CASE("latency histogram: percentiles and cumulative counts against the sorted values") {
  Random random(7);
  CommandLatencies latencies(3, 2);
  std::vector<uint64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t value = random.Next() >> (27 + random.Next() % 37);
    values.push_back(value);
    latencies.Add(static_cast<unsigned>(random.Next() % 3), 1, value);
  }
  std::sort(values.begin(), values.end());
  const LatencySnapshot snapshot = latencies.Read(1);
  REQUIRE(snapshot.count() == values.size());
  CHECK(latencies.Read(0).count() == 0);
  for (const double percent : {0.1, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    const auto rank =
        static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(values.size()) - 1e-9));
    const auto exact = static_cast<double>(values[std::max<size_t>(rank, 1) - 1]);
    const auto got = static_cast<double>(snapshot.PercentileNs(percent));
    CHECK(got >= exact);
    CHECK(got <= exact * (1 + 1.0 / 64) + 1);
  }
  uint64_t last = 0;
  for (const LatencySnapshot::Bucket& bucket : snapshot.PowerOfTwoBuckets()) {
    // The level whose label this is.
    uint64_t level = 1024;
    while ((level + level / 128 - 1) / 1000 != bucket.microseconds) level *= 2;
    const auto below = static_cast<uint64_t>(std::lower_bound(values.begin(), values.end(), level) -
                                             values.begin());
    CHECK(bucket.cumulative_count == below);
    CHECK(bucket.cumulative_count > last);
    last = bucket.cumulative_count;
  }
  CHECK(last == values.size());
}

TEST_CASE("latency histogram: labels are those of Redis") {
  CommandLatencies latencies(1, 1);
  for (uint64_t ns = 1000; ns < 40'000'000'000; ns *= 2) latencies.Add(0, 0, ns);
  std::vector<uint64_t> labels;
  for (const auto& bucket : latencies.Read(0).PowerOfTwoBuckets())
    labels.push_back(bucket.microseconds);
  // 33, 66, 264, 1056, 2113, 4227, 33816 and 270532 as seen from a Redis server.
  const std::vector<uint64_t> expected = {
      1,      2,      4,       8,       16,      33,      66,       132,     264,
      528,    1056,   2113,    4227,    8454,    16908,   33816,    67633,   135266,
      270532, 541065, 1082130, 2164260, 4328521, 8657043, 17314086, 34628173};
  CHECK(labels == expected);
}

TEST_CASE("latency histogram: a reset forgets what was before it, for each worker") {
  CommandLatencies latencies(2, 1);
  latencies.Add(0, 0, 5);
  latencies.Add(1, 0, 5);
  latencies.Reset();
  CHECK(latencies.Read(0).count() == 0);
  latencies.Add(1, 0, 9);
  CHECK(latencies.Read(0).count() == 1);
  CHECK(latencies.Read(0).PercentileNs(50) == 9);
}

TEST_CASE("slow log: newest first, bounded, arguments shortened") {
  Slowlog log;
  log.SetCapacity(3);
  for (int i = 0; i < 5; ++i) {
    SlowlogEntry entry;
    entry.run_us = i;
    const std::vector<std::string_view> args = {"GET", "k"};
    log.Add(entry, args);
  }
  REQUIRE(log.size() == 3);
  const std::vector<SlowlogEntry> entries = log.Newest(2);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].id == 4);
  CHECK(entries[0].run_us == 4);
  CHECK(entries[1].id == 3);
  log.SetCapacity(1);
  CHECK(log.size() == 1);
  log.Clear();
  CHECK(log.size() == 0);

  const std::string long_value(200, 'x');
  std::vector<std::string_view> many(40, "a");
  many[1] = long_value;
  const std::vector<std::string> shortened = ShortenArguments(many);
  REQUIRE(shortened.size() == 32);
  CHECK(shortened[0] == "a");
  CHECK(shortened[1].size() == 128 + 19);
  CHECK(shortened[1].starts_with(long_value.substr(0, 128)));
  CHECK(shortened[1].ends_with("x... (72 more bytes)"));
  CHECK(shortened[31] == "... (9 more arguments)");
  many.resize(32);
  CHECK(ShortenArguments(many)[31] == "a");
}

TEST_CASE("latency monitor: threshold, one sample a second, the oldest go") {
  LatencyMonitor monitor;
  monitor.Add("command", 500, 1);
  CHECK(monitor.Events().empty());  // off
  monitor.SetThreshold(10);
  monitor.Add("command", 9, 1);
  CHECK(monitor.Events().empty());
  monitor.Add("command", 10, 1);
  monitor.Add("command", 30, 1);
  monitor.Add("command", 20, 1);
  REQUIRE(monitor.Find("command").samples.size() == 1);
  CHECK(monitor.Find("command").samples[0].milliseconds == 30);
  for (int64_t second = 2; second < 400; ++second) monitor.Add("command", 11, second);
  const LatencyMonitor::Event event = monitor.Find("command");
  REQUIRE(event.samples.size() == LatencyMonitor::kSamplesMax);
  CHECK(event.samples.back().time_s == 399);
  CHECK(event.samples.front().time_s == 400 - static_cast<int64_t>(LatencyMonitor::kSamplesMax));
  CHECK(event.milliseconds_max == 30);  // of all time
  monitor.Add("fast-command", 70, 400);
  CHECK(monitor.Reset("nosuch") == 0);
  CHECK(monitor.Reset("command") == 1);
  CHECK(monitor.Events().size() == 1);
  CHECK(monitor.Reset("") == 1);
  CHECK(monitor.Events().empty());
}

TEST_CASE("latency monitor: chart and report name what they were given") {
  LatencyMonitor monitor;
  monitor.SetThreshold(1);
  for (int64_t second = 0; second < 100; ++second) monitor.Add("command", 1 + second % 7, second);
  const std::string graph = LatencyGraph(monitor.Find("command"), 200);
  CHECK(graph.starts_with("command - high 7 ms, low 1 ms (all time high 7 ms)\n-----"));
  const std::string report = LatencyReport(monitor.Events(), 1, 200);
  CHECK(report.find("command: 100 spike(s)") != std::string::npos);
  CHECK(LatencyReport({}, 0, 1).find("latency-monitor-threshold") != std::string::npos);
}

TEST_CASE("recorder: which commands are remembered, without passwords") {
  EngineFixture db;
  CommandRecorder recorder(db.engine());
  const CommandSpec* get = db.commands().Find("GET");
  recorder.SetSlowerThan(1000);
  CHECK_FALSE(recorder.NeedsAttention(999'999));
  CHECK(recorder.NeedsAttention(1'000'000));
  recorder.SetSlowerThan(-1);
  CHECK_FALSE(recorder.NeedsAttention(INT64_MAX - 1));
  recorder.SetMonitorThreshold(5);
  CHECK(recorder.NeedsAttention(5'000'000));
  const std::vector<std::string_view> args = {"GET", "k"};
  recorder.RecordSlow({get, args, 5'000'000, 0, "", ""});
  CHECK(recorder.slowlog().size() == 0);
  CHECK(recorder.monitor().Find("fast-command").samples.size() == 1);
  recorder.SetSlowerThan(0);
  CHECK(recorder.NeedsAttention(0));
  recorder.AddLatency(0, get->id, 1000);
  CHECK(recorder.latencies().Read(get->id).count() == 1);

  static constexpr CommandSpec kAuth{.name = "auth"};
  static constexpr CommandSpec kHello{.name = "hello"};
  static constexpr CommandSpec kConfigSet{.name = "config|set"};
  const auto recorded = [&](const CommandSpec& spec, const std::vector<std::string_view>& words) {
    recorder.RecordSlow({&spec, words, 0, 0, "", ""});
    return recorder.slowlog().Newest(1)[0].args;
  };
  CHECK(recorded(kAuth, {"AUTH", "u", "p"}) ==
        std::vector<std::string>{"AUTH", "(redacted)", "(redacted)"});
  CHECK(recorded(kHello, {"HELLO", "3", "AUTH", "u", "p", "SETNAME", "n"}) ==
        std::vector<std::string>{"HELLO", "3", "AUTH", "(redacted)", "(redacted)", "SETNAME", "n"});
  CHECK(recorded(kConfigSet, {"CONFIG", "SET", "requirepass", "p", "port", "1"}) ==
        std::vector<std::string>{"CONFIG", "SET", "requirepass", "(redacted)", "port", "1"});
}

TEST_CASE("recorder: errors by prefix, bounded; a reset starts all counters anew") {
  EngineFixture db;
  CommandRecorder recorder(db.engine());
  recorder.RecordError(0, "ERR");
  recorder.RecordError(0, "ERR");
  recorder.RecordError(0, "WRONGTYPE");
  CHECK(recorder.Errors() ==
        std::map<std::string, uint64_t, std::less<>>{{"ERR", 2}, {"WRONGTYPE", 1}});
  for (int i = 0; i < 1000; ++i) recorder.RecordError(0, "E" + std::to_string(i));
  CHECK(recorder.Errors().size() <= 128);

  db("SET k v");
  db("GET k");
  db("GET missing");
  const uint32_t get = db.commands().Find("get")->id;
  const EngineCounters before = ReadCounters(db.engine());
  CHECK(before.hits == 1);
  CHECK(before.misses == 1);
  CHECK(before.per_command[get].calls == 2);
  recorder.Reset(before);
  CHECK(recorder.Errors().empty());
  db("GET k");
  const EngineCounters since = recorder.Since(ReadCounters(db.engine()));
  CHECK(since.hits == 1);
  CHECK(since.misses == 0);
  CHECK(since.per_command[get].calls == 1);
}

}  // namespace hotkv
