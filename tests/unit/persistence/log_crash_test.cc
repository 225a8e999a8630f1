// Power cuts and kills at every moment of the log's life, over several runs, against a model; and
// the proof that the simulation sees what it is for: with one rule off it must find a violation.
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "engine/base/crash_point.h"
#include "engine/base/rule_switch.h"
#include "tests/support/log_rig.h"

namespace hotkv {
namespace {

// The machine or the process at one moment.
struct Moment {
  std::unique_ptr<SimEnv> disk;
  FakeLogCatalog::Entries entries;
  uint64_t catalog_durable = 0;
  uint64_t durable = 0;  // told to somebody
  uint64_t written = 0;
  bool power_cut = true;
};

Moment Take(LogRig& rig, uint64_t seed, bool power_cut) {
  Moment moment;
  moment.disk = power_cut ? rig.env()->PowerCut(seed) : rig.env()->KillProcess();
  moment.entries = rig.catalog().entries();
  moment.catalog_durable = rig.catalog().durable_epoch();
  moment.durable = rig.clock().durable();
  moment.written = rig.clock().written();
  moment.power_cut = power_cut;
  return moment;
}

// A life of several runs; each ends at a random operation.
class Life {
 public:
  explicit Life(uint64_t seed) : random_(seed) {}

  // What went wrong; empty: nothing.
  std::string Live(int runs) {
    auto env = std::make_shared<SimEnv>(random_());
    auto rig = std::make_unique<LogRig>(env, FakeLogCatalog::Entries{}, 0, LogModel{}, 1);
    for (int run = 0; run < runs; ++run) {
      Choose(&rig->options);
      const Status opened = rig->Open();
      if (!opened.ok()) return "does not start: " + opened.ToString();
      if (std::string wrong = Check(*rig); !wrong.empty()) return wrong;
      Run(rig.get());
      if (!moment_) return "";
      auto next = std::make_unique<LogRig>(std::shared_ptr<SimEnv>(std::move(moment_->disk)),
                                           moment_->entries, moment_->catalog_durable, rig->model(),
                                           rig->start() + 1);
      next->now_us = rig->now_us + 1000;
      rig->Close();
      must_ = std::max(must_, moment_->durable);
      // A failed sync may have taken what was in the page cache with it.
      at_least_ = moment_->power_cut || faulty_ ? 0 : moment_->written;
      rig = std::move(next);
    }
    return "";
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  void Choose(LogWriterOptions* options) {
    const FsyncPolicy policies[] = {FsyncPolicy::kAlways, FsyncPolicy::kEverySecond,
                                    FsyncPolicy::kEverySecond, FsyncPolicy::kNo};
    options->policy = policies[Below(4)];
    options->segment_bytes_min = 8192;
    options->segment_bytes_max = 8192 << Below(3);
    options->retry_ms = 20;
    options->sync_ms = 50;
    options->idle_ms = 100;
  }

  std::string Check(LogRig& rig) const {
    const LogContent& found = rig.found();
    const uint64_t end = found.scan.end.epoch;
    if (end < must_)
      return "epoch " + std::to_string(must_) + " was durable, found " + std::to_string(end);
    if (end < at_least_) return "a kill lost what was written";
    LogModel expected = rig.ModelUpTo(end);
    // What was dropped behind a cut is not there any more.
    while (!expected.empty() && expected.begin()->first < dropped_before_) {
      if (found.effects.contains(expected.begin()->first)) break;
      expected.erase(expected.begin());
    }
    LogModel effects = found.effects;
    effects.erase(effects.begin(),
                  effects.lower_bound(expected.empty() ? 0 : expected.begin()->first));
    if (effects != expected) return "content is not that of epoch " + std::to_string(end);
    return "";
  }

  void InjectSomething(SimEnv* env) {
    const SimOp ops[] = {SimOp::kWrite,   SimOp::kSync,   SimOp::kSync,  SimOp::kCreate,
                         SimOp::kSyncDir, SimOp::kRename, SimOp::kUnlink};
    const int errors[] = {EIO, ENOSPC};
    env->Inject({.op = ops[Below(7)],
                 .path_part = "",
                 .nth = 1 + Below(4),
                 .count = 1 + Below(3),
                 .error = errors[Below(2)],
                 .bytes_done = Below(3000)});
  }

  void Run(LogRig* rig) {
    moment_.reset();
    const uint64_t seed = random_();
    const bool power_cut = Below(4) != 0;
    uint64_t countdown = 1 + Below(uint64_t{1} << (1 + Below(9)));
    const auto tick = [&] {
      if (moment_ || --countdown != 0) return;
      moment_ = Take(*rig, seed, power_cut);
      rig->env()->PowerOff();
    };
    faulty_ = false;
    rig->env()->SetHook([&](const SimOperation& operation) {
      if (!operation.ok && !moment_) faulty_ = true;
      tick();
    });
    rig->catalog().on_commit = tick;
    for (int step = 0; step < 600 && !moment_; ++step) {
      const uint64_t what = Below(100);
      if (what == 0) InjectSomething(rig->env());
      if (what == 1) rig->env()->SetCapacity(rig->env()->UsedBytes() + Below(20000));
      if (what == 2) rig->env()->SetCapacity(UINT64_MAX);
      if (what == 3) rig->writer().RequestSync(rig->clock().current());
      if (what == 4) rig->catalog().failures = static_cast<int>(Below(3));
      if (what == 5) {
        // As a snapshot does: what is before its cut must be durable first.
        dropped_before_ = std::max(dropped_before_, rig->clock().durable());
        rig->writer().DropBefore(dropped_before_);
      }
      if (what > 20 && !rig->writer().read_only()) {
        const size_t size = Below(10) == 0 ? Below(9000) : Below(300);
        rig->Put("k" + std::to_string(Below(50)),
                 std::string(size, static_cast<char>('a' + Below(26))));
      }
      if (what > 50) rig->Turn(static_cast<int64_t>(Below(15'000)));
    }
    rig->catalog().on_commit = nullptr;
    rig->env()->SetHook(nullptr);
    if (!moment_) moment_ = Take(*rig, seed, power_cut);
  }

  std::mt19937_64 random_;
  std::optional<Moment> moment_;
  bool faulty_ = false;
  uint64_t must_ = 0;
  uint64_t at_least_ = 0;
  uint64_t dropped_before_ = 0;
};

// More by HOTKV_SIM_SEEDS, from HOTKV_SIM_FIRST on.
uint64_t FromEnvironment(const char* name, uint64_t standard) {
  const char* text = std::getenv(name);
  return text == nullptr ? standard : std::strtoull(text, nullptr, 10);
}

TEST_CASE("log crash: cuts and kills at random moments of several runs", "[log][crash]") {
  const uint64_t first = FromEnvironment("HOTKV_SIM_FIRST", 1);
  const uint64_t seeds = FromEnvironment("HOTKV_SIM_SEEDS", 600);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const std::string wrong = Life(seed).Live(5);
    INFO("seed " << seed << ": " << wrong);
    REQUIRE(wrong.empty());
  }
}

TEST_CASE("log crash: cuts while the writer's own threads run, on a slow and failing disk",
          "[log][crash]") {
  const auto policy = GENERATE(FsyncPolicy::kAlways, FsyncPolicy::kEverySecond);
  SetLogLevel(LogLevel::kNothing);
  SimEnv env(3);
  REQUIRE(env.MakeDir("data").ok());
  REQUIRE(env.SyncDir("").ok());
  FakeLogCatalog catalog;
  EpochClock clock(1, 1);
  LogWriterOptions options = LogRig::DefaultOptions();
  options.env = &env;
  options.clock = &clock;
  options.catalog = &catalog;
  options.start = 1;
  options.policy = policy;
  options.manual = false;
  options.close_ms = 1;
  options.sync_ms = 5;
  options.retry_ms = 2;
  auto started = LogWriter::Start(options);
  REQUIRE(started.ok());
  LogWriter& writer = **started;
  env.Inject(
      {.op = SimOp::kSync, .path_part = "log", .nth = 3, .count = UINT64_MAX, .delay_us = 200});
  LogModel model;
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    for (uint64_t i = 1; !stop.load(); ++i) {
      Effect effect;
      effect.kind = EffectKind::kSetString;
      const std::string key = "k" + std::to_string(i);
      const std::string value(i % 700, 'v');
      effect.key = key;
      effect.bytes = value;
      effect.lsn = i & kLsnCountMask;
      const unsigned group = static_cast<unsigned>(i % kStripeGroups);
      const uint64_t epoch = CommitEffect(&clock, 0, effect, group);
      model[epoch][group].push_back(EffectText(effect));
      if (i % 50 == 0) writer.RequestSync(epoch);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  std::vector<Moment> moments;
  std::mt19937_64 random(9);
  // At least so many, and until something became durable between them, however slow the machine is.
  constexpr size_t kMomentsMin = 60, kMomentsMax = 4000;
  while (moments.size() < kMomentsMin || (moments.back().durable == moments.front().durable &&
                                          moments.size() < kMomentsMax)) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    const bool fault = random() % 4 == 0;
    const SimOp op = random() % 2 == 0 ? SimOp::kSync : SimOp::kWrite;
    if (fault) env.Inject({.op = op, .path_part = "log/", .nth = 1, .count = 1, .error = EIO});
    Moment moment;
    moment.durable = clock.durable();
    catalog.Freeze([&](const FakeLogCatalog::Entries& entries, uint64_t durable) {
      moment.entries = entries;
      moment.catalog_durable = durable;
      moment.disk = env.PowerCut(random());
    });
    moments.push_back(std::move(moment));
  }
  env.ClearFaults();
  stop.store(true);
  worker.join();
  REQUIRE(writer.Stop().ok());
  started->reset();
  for (Moment& moment : moments) {
    FakeLogCatalog then(moment.entries);
    then.SetDurableEpoch(moment.catalog_durable);
    auto content = ReadLog(moment.disk.get(), then);
    INFO(content.status().ToString());
    REQUIRE(content.ok());
    REQUIRE(content->scan.end.epoch >= moment.durable);
    LogModel expected = model;
    expected.erase(expected.upper_bound(content->scan.end.epoch), expected.end());
    REQUIRE(content->effects == expected);
  }
  auto last = ReadLog(&env, catalog);
  REQUIRE(last.ok());
  CHECK(last->effects == model);
  CHECK(moments.back().durable > moments.front().durable);
}

#ifdef HOTKV_TEST_HOOKS

TEST_CASE("log crash: with any one rule off the simulation finds a violation", "[log][crash]") {
  const Rule rule = GENERATE(Rule::kSyncOldSegmentAtRotation, Rule::kSegmentLiveBeforeFirstBlock,
                             Rule::kCutByEpoch, Rule::kChain, Rule::kSyncAcceptedBlocks,
                             Rule::kFailedFileNeverWritten, Rule::kEndInCatalogBeforeResume,
                             Rule::kSyncBeforePublish);
  INFO("rule " << static_cast<int>(rule));
  rules::Off off(rule);
  std::string wrong;
  uint64_t seed = 1;
  for (; seed <= 3000 && wrong.empty(); ++seed) wrong = Life(seed).Live(5);
  INFO("seed " << seed << ": " << wrong);
  CHECK_FALSE(wrong.empty());
}

// A workload that passes every crash point of the log; dies at the nth pass of one, or not at all.
std::optional<Moment> RunToPoint(LogRig* rig, const std::string& point, uint64_t nth, uint64_t seed,
                                 bool power_cut) {
  std::optional<Moment> moment;
  uint64_t passes = 0;
  if (!point.empty()) {
    crash_points::CallAt(point, [&] {
      if (moment || ++passes != nth) return;
      moment = Take(*rig, seed, power_cut);
      rig->env()->PowerOff();
    });
  }
  for (int i = 0; i < 160 && !moment; ++i) {
    rig->Put("k" + std::to_string(i), std::string(400, 'x'));
    rig->Turn(20'000);
    if (i == 60) rig->env()->Inject({.op = SimOp::kSync, .path_part = "log/", .error = EIO});
    if (i % 30 == 29) rig->writer().DropBefore(rig->clock().durable());
  }
  crash_points::Clear();
  return moment;
}

std::unique_ptr<LogRig> MakeCrashRig() {
  auto rig = std::make_unique<LogRig>();
  rig->options.segment_bytes_min = 8192;
  rig->options.segment_bytes_max = 8192;
  rig->options.sync_ms = 50;
  rig->options.policy = FsyncPolicy::kEverySecond;
  // A first run without a clean end, so that the next one has a tail to sync.
  REQUIRE(rig->Open().ok());
  rig->Put("first", "1");
  rig->Turn();
  rig->Turn();
  rig->Put("second", "2");
  rig->Turn();
  auto next = NextRun(*rig, rig->env()->KillProcess());
  next->options = rig->options;
  REQUIRE(next->Open().ok());
  return next;
}

TEST_CASE("log crash: at every crash point, without a leak", "[log][crash]") {
  {
    auto rig = MakeCrashRig();
    RunToPoint(rig.get(), "", 0, 0, true);
    REQUIRE(rig->writer().Stop().ok());
  }
  std::set<std::string> points;
  for (const std::string& name : crash_points::Names()) {
    if (name.starts_with("log.")) points.insert(name);
  }
  CHECK(points.size() >= 12);
  for (const std::string& point : points) {
    for (const uint64_t nth : {1, 2, 7}) {
      for (uint64_t seed = 0; seed < 6; ++seed) {
        INFO(point << " pass " << nth << " seed " << seed);
        auto rig = MakeCrashRig();
        auto moment = RunToPoint(rig.get(), point, nth, seed, seed != 0);
        if (!moment) continue;
        LogRig next(std::shared_ptr<SimEnv>(std::move(moment->disk)), moment->entries,
                    moment->catalog_durable, rig->model(), rig->start() + 1);
        const Status status = next.Open();
        INFO(status.ToString());
        REQUIRE(status.ok());
        REQUIRE(next.found().scan.end.epoch >= moment->durable);
        next.Put("after", "1");
        REQUIRE(next.Settle());
        REQUIRE(next.writer().Stop().ok());
        std::set<uint64_t> files;
        const auto entries = next.env()->List("data/log");
        REQUIRE(entries.ok());
        for (const DirEntry& file : *entries) files.insert(ParseSegmentFileName(file.name));
        std::set<uint64_t> known;
        for (const auto& [number, entry] : next.catalog().entries()) {
          known.insert(number);
          REQUIRE(entry.state == SegmentState::kLive);
        }
        REQUIRE(files == known);
      }
    }
  }
}

#endif

}  // namespace
}  // namespace hotkv
