#include "persistence/log/log_writer.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "engine/base/sync_point.h"
#include "tests/support/log_rig.h"

namespace hotkv {
namespace {

// What a run on this image of the disk would find.
LogContent Reopen(LogRig& rig, std::unique_ptr<SimEnv> image) {
  FakeLogCatalog catalog(rig.catalog().entries());
  catalog.SetDurableEpoch(rig.catalog().durable_epoch());
  auto content = ReadLog(image.get(), catalog);
  INFO(content.status().ToString());
  REQUIRE(content.ok());
  return std::move(content).value();
}

// Files of the log that the catalog does not know, and entries without a file.
void RequireNoLeaks(LogRig& rig) {
  auto files = rig.env()->List("data/log");
  REQUIRE(files.ok());
  std::set<uint64_t> found;
  for (const DirEntry& file : *files) found.insert(ParseSegmentFileName(file.name));
  std::set<uint64_t> known;
  for (const auto& [number, entry] : rig.catalog().entries()) known.insert(number);
  REQUIRE(found == known);
}

TEST_CASE("log writer: what is durable is found after any cut", "[log]") {
  const auto policy = GENERATE(FsyncPolicy::kAlways, FsyncPolicy::kEverySecond, FsyncPolicy::kNo);
  LogRig rig;
  rig.options.policy = policy;
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 50; ++i) {
    rig.Put("key" + std::to_string(i % 20), std::string(static_cast<size_t>(i) * 10, 'v'), i % 2);
    rig.Turn();
  }
  rig.Put("large", std::string(40000, 'L'));
  REQUIRE(rig.Settle());
  const uint64_t durable = rig.clock().durable();
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const LogContent content = Reopen(rig, rig.env()->PowerCut(seed));
    REQUIRE(content.scan.end.epoch == durable);
    REQUIRE(content.effects == rig.model());
  }
  CHECK(rig.writer().stats().failures == 0);
  RequireNoLeaks(rig);
}

TEST_CASE("log writer: always syncs each block, everysec each second, no never by itself",
          "[log]") {
  const auto policy = GENERATE(FsyncPolicy::kAlways, FsyncPolicy::kEverySecond, FsyncPolicy::kNo);
  LogRig rig;
  rig.options.policy = policy;
  rig.options.segment_bytes_min = 1 << 20;
  REQUIRE(rig.Open().ok());
  rig.Turn();
  uint64_t lagging = 0;
  const uint64_t before = rig.writer().stats().syncs;
  for (int i = 0; i < 300; ++i) {  // three seconds
    rig.Put("k", "v");
    rig.Turn();
    CHECK(rig.clock().written() == rig.clock().current() - 1);
    if (rig.clock().durable() < rig.clock().written()) ++lagging;
  }
  const uint64_t syncs = rig.writer().stats().syncs - before;
  if (policy == FsyncPolicy::kAlways) {
    CHECK(lagging == 0);
    CHECK(syncs == 300);
  } else if (policy == FsyncPolicy::kEverySecond) {
    CHECK(syncs >= 3);
    CHECK(syncs <= 4);
  } else {
    CHECK(syncs == 0);
    CHECK(lagging == 300);
  }
}

TEST_CASE("log writer: a request syncs at once, even an epoch without effects", "[log]") {
  LogRig rig;
  rig.options.policy = FsyncPolicy::kNo;
  REQUIRE(rig.Open().ok());
  rig.Turn();
  rig.Put("k", "v");
  rig.Turn();
  CHECK(rig.clock().durable() < rig.clock().written());
  const uint64_t empty = rig.clock().current();
  rig.writer().RequestSync(empty);
  rig.Turn(10);
  CHECK(rig.clock().durable() == empty);
  const LogContent content = Reopen(rig, rig.env()->PowerCut(0));
  CHECK(content.scan.end.epoch == empty);
  const uint64_t blocks = rig.writer().stats().blocks;
  rig.writer().RequestSync(empty);  // nothing to do
  rig.Turn(10);
  CHECK(rig.writer().stats().blocks == blocks);
}

TEST_CASE("log writer: after an idle second, and at a stop, a block carries the watermark",
          "[log]") {
  LogRig rig;
  rig.options.policy = FsyncPolicy::kAlways;
  REQUIRE(rig.Open().ok());
  rig.Put("k", "v");
  rig.Turn();
  rig.Turn();
  const uint64_t data_epoch = rig.clock().durable();
  CHECK(Reopen(rig, rig.env()->PowerCut(0)).scan.watermark < data_epoch);
  for (int i = 0; i < 500; ++i) rig.Turn();
  CHECK(rig.writer().stats().blocks == 2);  // one idle block, not one a second
  const LogContent idle = Reopen(rig, rig.env()->PowerCut(0));
  CHECK(idle.scan.watermark == data_epoch);
  CHECK_FALSE(idle.scan.clean_stop);
  rig.Put("k", "w");
  REQUIRE(rig.writer().Stop().ok());
  const LogContent stopped = Reopen(rig, rig.env()->PowerCut(0));
  CHECK(stopped.scan.clean_stop);
  CHECK(stopped.effects == rig.model());
  CHECK(stopped.scan.watermark > data_epoch);
  CHECK_FALSE(stopped.scan.torn.has_value());
}

TEST_CASE("log writer: rotation, growth, and a block larger than a segment", "[log]") {
  LogRig rig;
  REQUIRE(rig.Open().ok());
  std::set<uint64_t> sizes;
  for (int i = 0; i < 200; ++i) {
    rig.Put("k" + std::to_string(i), std::string(1500, 'x'));
    if (i == 100) rig.Put("huge", std::string(300000, 'h'));
    rig.Turn(i < 150 ? 5000 : 500000);
  }
  REQUIRE(rig.Settle());
  for (const auto& [number, entry] : rig.catalog().entries()) {
    sizes.insert(entry.size_bytes);
    CHECK(entry.state == SegmentState::kLive);
  }
  CHECK(sizes.contains(16 * 1024));
  CHECK(sizes.contains(64 * 1024));
  CHECK(*sizes.rbegin() > 300000);
  CHECK(sizes.size() == 4);
  const LogContent content = Reopen(rig, rig.env()->PowerCut(1));
  CHECK(content.effects == rig.model());
  // All but the last used one and the prepared one have their ends.
  int open = 0;
  for (const auto& [number, entry] : rig.catalog().entries()) open += entry.ended ? 0 : 1;
  CHECK(open == 2);
  RequireNoLeaks(rig);
}

TEST_CASE("log writer: segments that nobody needs are recycled, their remains never read",
          "[log]") {
  LogRig rig;
  rig.options.segment_bytes_max = 16 * 1024;
  REQUIRE(rig.Open().ok());
  bool recycled = false;
  for (int i = 0; i < 400; ++i) {
    rig.Put("k" + std::to_string(i), std::string(700, static_cast<char>('a' + i % 26)));
    rig.Turn(5000);
    if (i % 40 == 39) {
      REQUIRE(rig.Settle());
      rig.writer().DropBefore(rig.clock().durable());
      for (const auto& [number, entry] : rig.catalog().entries()) {
        auto file = ReadWholeFile(rig.env(), "data/log/" + SegmentFileName(number));
        REQUIRE(file.ok());
        recycled = recycled || DecodeSegmentHeader(*file)->recycled;
      }
    }
  }
  REQUIRE(rig.Settle());
  // Few files serve for much log.
  CHECK(rig.catalog().entries().size() <= 5);
  CHECK(rig.catalog().entries().rbegin()->first > 15);
  RequireNoLeaks(rig);
  const uint64_t durable = rig.clock().durable();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const LogContent content = Reopen(rig, rig.env()->PowerCut(seed));
    REQUIRE(content.scan.end.epoch == durable);
    REQUIRE_FALSE(content.scan.torn.has_value());
    for (const auto& [epoch, groups] : content.effects) REQUIRE(rig.model().at(epoch) == groups);
  }
  CHECK(recycled);
}

TEST_CASE("log writer: a failed write or sync gives the file up, nothing is lost, and it goes on",
          "[log]") {
  const auto op = GENERATE(SimOp::kWrite, SimOp::kSync);
  const auto policy = GENERATE(FsyncPolicy::kAlways, FsyncPolicy::kEverySecond);
  const uint64_t nth = GENERATE(1, 2, 3);
  LogRig rig;
  rig.options.policy = policy;
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 20; ++i) {
    rig.Put("before" + std::to_string(i), std::string(500, 'b'));
    rig.Turn();
  }
  REQUIRE(rig.Settle());
  std::vector<std::string> written;
  rig.env()->SetHook([&](const SimOperation& o) {
    if (o.op == SimOp::kWrite || o.op == SimOp::kSync)
      written.push_back((o.ok ? "+" : "-") + o.path);
  });
  rig.env()->Inject({.op = op, .path_part = "", .nth = nth, .error = EIO, .bytes_done = 700});
  for (int i = 0; i < 400; ++i) {
    rig.Put("after" + std::to_string(i), "v");
    rig.Turn();
    const uint64_t durable = rig.clock().durable();
    if (i % 10 == 0) {
      const LogContent content = Reopen(rig, rig.env()->PowerCut(static_cast<uint64_t>(i)));
      REQUIRE(content.scan.end.epoch >= durable);
      REQUIRE(content.effects == rig.ModelUpTo(content.scan.end.epoch));
    }
  }
  CHECK(rig.writer().stats().failures <= 1);
  CHECK_FALSE(rig.writer().read_only());
  REQUIRE(rig.Settle());
  // Never touched again after its failure.
  std::set<std::string> failed;
  for (const std::string& w : written) {
    if (w[0] == '-') failed.insert(w.substr(1));
    if (w[0] == '+') CHECK_FALSE(failed.contains(w.substr(1)));
  }
  CHECK(failed.size() == 1);
  CHECK(Reopen(rig, rig.env()->PowerCut(7)).effects == rig.model());
  RequireNoLeaks(rig);
}

TEST_CASE(
    "log writer: read-only with a reason while nothing can be written, every retry a second apart",
    "[log]") {
  LogRig rig;
  rig.options.policy = FsyncPolicy::kAlways;
  int told = 0;
  rig.options.on_progress = [&] { ++told; };
  REQUIRE(rig.Open().ok());
  rig.Put("a", "1");
  rig.Turn();
  const uint64_t durable = rig.clock().durable();
  rig.env()->Inject({.op = SimOp::kWrite, .path_part = "", .count = UINT64_MAX, .error = EIO});
  uint64_t attempts = 0;
  rig.env()->SetHook([&](const SimOperation& o) { attempts += o.op == SimOp::kWrite ? 1 : 0; });
  rig.Put("b", "2");
  rig.Turn();
  CHECK(rig.writer().read_only());
  CHECK(rig.writer().stats().reason.find("data/log/") != std::string::npos);
  CHECK_FALSE(rig.clock().writes_wait());
  attempts = 0;
  for (int i = 0; i < 500; ++i) rig.Turn();  // five seconds
  CHECK(attempts >= 4);
  CHECK(attempts <= 6);
  CHECK(rig.clock().durable() == durable);
  CHECK(Reopen(rig, rig.env()->PowerCut(3)).scan.end.epoch == durable);
  rig.env()->ClearFaults();
  told = 0;
  rig.Turn(1'100'000);
  CHECK_FALSE(rig.writer().read_only());
  CHECK(told >= 1);
  REQUIRE(rig.Settle());
  CHECK(Reopen(rig, rig.env()->PowerCut(3)).effects == rig.model());
  RequireNoLeaks(rig);
}

TEST_CASE("log writer: full disk, then space again (UR-23)", "[log]") {
  const auto policy = GENERATE(FsyncPolicy::kAlways, FsyncPolicy::kEverySecond);
  LogRig rig;
  rig.options.policy = policy;
  rig.options.segment_bytes_max = 16 * 1024;
  rig.options.segment_bytes_min = 16 * 1024;
  REQUIRE(rig.Open().ok());
  rig.env()->SetCapacity(128 * 1024);
  int refused = 0;
  int accepted = 0;
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    // As a server: no writes while it is read-only.
    if (rig.writer().read_only()) {
      ++refused;
    } else {
      rig.Put("k" + std::to_string(i), std::string(random() % 900, 'x'));
      ++accepted;
    }
    rig.Turn();
    if (i % 100 == 0) {
      const uint64_t durable = rig.clock().durable();
      const LogContent content = Reopen(rig, rig.env()->PowerCut(static_cast<uint64_t>(i)));
      REQUIRE(content.scan.end.epoch >= durable);
      REQUIRE(content.effects == rig.ModelUpTo(content.scan.end.epoch));
    }
    if (i == 1000) {
      CHECK(rig.writer().read_only());
      CHECK(rig.writer().stats().reason.find("NO SPACE") != std::string::npos);
      CHECK(refused > 0);
      rig.env()->SetCapacity(UINT64_MAX);
    }
    if (i == 1000 + 110) CHECK_FALSE(rig.writer().read_only());  // 1.1 seconds later
  }
  CHECK(accepted > 1000);
  REQUIRE(rig.Settle());
  CHECK(Reopen(rig, rig.env()->PowerCut(1)).effects == rig.model());
  RequireNoLeaks(rig);
}

TEST_CASE("log writer: a catalog that fails holds the log up but loses nothing", "[log]") {
  const int failures = GENERATE(1, 2, 5);
  LogRig rig;
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 300; ++i) {
    if (i == 100) rig.catalog().failures = failures;
    rig.Put("k" + std::to_string(i), std::string(700, 'x'));
    rig.Turn(20000);
  }
  REQUIRE(rig.Settle(500'000));
  CHECK(Reopen(rig, rig.env()->PowerCut(1)).effects == rig.model());
}

TEST_CASE("log writer: many bytes are synced before their second is over", "[log]") {
  LogRig rig;
  rig.options.sync_bytes = 50'000;
  rig.options.segment_bytes_min = 4 << 20;  // no rotation, which syncs too
  rig.options.retained_bytes_max = 100'000;
  rig.options.policy = GENERATE(FsyncPolicy::kEverySecond, FsyncPolicy::kNo);
  REQUIRE(rig.Open().ok());
  rig.Turn();
  const uint64_t before = rig.writer().stats().syncs;
  uint64_t largest = 0;
  for (int i = 0; i < 200; ++i) {  // two seconds
    rig.Put("k" + std::to_string(i), std::string(5000, 'x'));
    rig.Turn();
    CHECK_FALSE(rig.clock().writes_wait());
    largest = std::max(largest, rig.writer().stats().retained_bytes);
  }
  CHECK(largest >= 45'000);
  CHECK(largest <= 60'000);
  const uint64_t syncs = rig.writer().stats().syncs - before;
  CHECK(syncs >= 200 * 5000 / 60'000);
  CHECK(syncs <= 200 * 5200 / 45'000 + 2);
}

TEST_CASE("log writer: kill, restart, power cut keeps what the restart has shown", "[log]") {
  LogRig rig;
  rig.options.policy = FsyncPolicy::kNo;
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 60; ++i) {
    rig.Put("k" + std::to_string(i), std::string(700, 'x'));
    rig.Turn();
  }
  const uint64_t written = rig.clock().written();
  auto next = NextRun(rig, rig.env()->KillProcess());
  REQUIRE(next->Open().ok());
  CHECK(next->found().scan.end.epoch == written);
  CHECK(next->clock().written() == written);
  CHECK(next->clock().durable() < written);  // not durable yet, so `always` holds replies back
  next->Turn();
  CHECK(next->clock().durable() == written);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    REQUIRE(Reopen(*next, next->env()->PowerCut(seed)).scan.end.epoch == written);
  }
}

TEST_CASE("log writer: a tail that its file does not take moves to the new segment", "[log]") {
  const auto op = GENERATE(SimOp::kWrite, SimOp::kSync);
  LogRig rig;
  rig.options.policy = FsyncPolicy::kNo;
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 60; ++i) {
    rig.Put("k" + std::to_string(i), std::string(700, 'x'));
    rig.Turn();
  }
  const uint64_t written = rig.clock().written();
  auto next = NextRun(rig, rig.env()->KillProcess());
  const std::string old = "data/log/" + SegmentFileName(next->catalog().entries().begin()->first);
  next->env()->Inject({.op = op, .path_part = "data/log/", .count = 1, .error = EIO});
  REQUIRE(next->Open().ok());
  next->Put("more", "1");
  next->Turn();
  next->Turn(1'100'000);
  CHECK(next->clock().durable() >= written);
  REQUIRE(next->Settle());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    REQUIRE(Reopen(*next, next->env()->PowerCut(seed)).effects == next->model());
  }
  RequireNoLeaks(*next);
}

TEST_CASE("log writer: logging off and on leaves a gap that no scan crosses", "[log]") {
  LogRig rig;
  REQUIRE(rig.Open().ok());
  rig.Put("logged", "1");
  rig.Turn();
  const LogModel before = rig.model();
  REQUIRE(rig.writer().EndLogging().ok());
  rig.Put("unlogged", "2");
  rig.Turn();
  CHECK(rig.clock().durable() == rig.clock().current() - 1);
  CHECK(Reopen(rig, rig.env()->PowerCut(0)).effects == before);
  REQUIRE(rig.writer().BeginLogging().ok());
  rig.Turn();
  rig.Put("later", "3");
  REQUIRE(rig.Settle());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const LogContent content = Reopen(rig, rig.env()->PowerCut(seed));
    REQUIRE(content.effects == before);
    REQUIRE_FALSE(content.scan.torn.has_value());
  }
  // A snapshot taken since makes the old segments needless: what is left is the new chain.
  rig.writer().DropBefore(rig.clock().durable());
  const LogContent content = Reopen(rig, rig.env()->PowerCut(0));
  CHECK(content.effects.size() == 1);
  CHECK(content.scan.end.epoch == rig.clock().durable());
  RequireNoLeaks(rig);
}

class RecordingTap : public EpochTap {
 public:
  void OnEpoch(const EpochBlock& block) override {
    for (unsigned group = 0; group < kStripeGroups; ++group) {
      if (!block.has_group(group)) continue;
      std::vector<std::string_view> pieces;
      block.AppendGroupPieces(group, &pieces);
      std::string bytes;
      for (std::string_view piece : pieces) bytes += piece;
      ByteReader reader(bytes);
      Effect effect;
      while (!reader.empty()) {
        REQUIRE(DecodeEffect(&reader, block.epoch(), &effect));
        seen[block.epoch()][group].push_back(EffectText(effect));
      }
    }
  }
  LogModel seen;
};

TEST_CASE("log writer: a tap gets every effect, logged or not", "[log]") {
  LogRig rig;
  rig.options.logging = GENERATE(true, false);
  RecordingTap tap;
  REQUIRE(rig.Open().ok());
  rig.writer().SetTap(&tap);
  for (int i = 0; i < 30; ++i) {
    rig.Put("k" + std::to_string(i), std::string(static_cast<size_t>(i) * 1000, 'x'), i % 2);
    rig.Turn();
  }
  rig.Turn();
  CHECK(tap.seen == rig.model());
}

TEST_CASE("log writer: files of planned and dropped segments go, strangers stay", "[log]") {
  LogRig rig;
  REQUIRE(rig.Open().ok());
  rig.Put("a", "1");
  REQUIRE(rig.Settle());
  FakeLogCatalog::Entries entries = rig.catalog().entries();
  auto image = rig.env()->PowerCut(0);
  for (uint64_t number : {90, 91, 99}) {
    auto file =
        image->Open("data/log/" + SegmentFileName(number), OpenMode::kCreateNew, FileIo::kPosix);
    REQUIRE(file.ok());
  }
  entries[90] = {.number = 90, .start = 1, .state = SegmentState::kPlanned};
  entries[91] = {.number = 91, .start = 1, .state = SegmentState::kDropped};
  entries[92] = {.number = 92, .start = 1, .state = SegmentState::kDropped};
  LogRig next(std::shared_ptr<SimEnv>(std::move(image)), entries, 0, rig.model(), 2);
  REQUIRE(next.Open().ok());
  next.Turn();
  CHECK_FALSE(*next.env()->Exists("data/log/" + SegmentFileName(90)));
  CHECK_FALSE(*next.env()->Exists("data/log/" + SegmentFileName(91)));
  CHECK(*next.env()->Exists("data/log/" + SegmentFileName(99)));
  for (const auto& [number, entry] : next.catalog().entries()) {
    CHECK(entry.state == SegmentState::kLive);
    CHECK(number != 99);
  }
  CHECK(next.catalog().entries().rbegin()->first > 99);
}

#ifdef HOTKV_TEST_HOOKS

TEST_CASE("log writer: a worker inside the epoch that is being closed is still in its block",
          "[log]") {
  LogRig rig;
  REQUIRE(rig.Open().ok());
  rig.Turn();
  rig.Put("early", "1");
  const uint64_t closing = rig.clock().current();
  Effect effect;
  effect.kind = EffectKind::kSetString;
  effect.key = "inside";
  effect.lsn = 7;
  // Worker 1 has announced the epoch; the writer moves on and waits for it.
  REQUIRE(rig.clock().Enter(1) == closing);
  SyncBlock block("epoch.closed", 1);
  std::thread writer([&] { rig.Turn(); });
  REQUIRE(block.AwaitReached());
  REQUIRE(rig.clock().current() == closing + 1);
  // A commit of another worker goes to the next epoch meanwhile.
  effect.key = "next";
  CHECK(CommitEffect(&rig.clock(), 0, effect, 3) == closing + 1);
  block.Release();
  std::string body;
  effect.key = "inside";
  AppendVarint(&body, 7);
  body.push_back(1);
  AppendEffectTail(effect, &body);
  EffectBuffer& buffer = rig.clock().Buffer(1, closing);
  const EffectBuffer::RecordHeader header{static_cast<uint32_t>(body.size()), 0, 3, 0};
  buffer.bytes.Append({reinterpret_cast<const char*>(&header), sizeof(header)});
  buffer.bytes.Append(body);
  CHECK(rig.clock().written() < closing);
  rig.clock().Leave(1);
  writer.join();
  CHECK(rig.clock().written() == closing);
  rig.Turn();
  const LogContent content = Reopen(rig, rig.env()->KillProcess());
  CHECK(content.effects.at(closing).at(3) == std::vector<std::string>{"inside="});
  CHECK(content.effects.at(closing + 1).at(3) == std::vector<std::string>{"next="});
}

#endif

TEST_CASE("log writer: threads, real files, several workers", "[log]") {
  const auto policy = GENERATE(FsyncPolicy::kAlways, FsyncPolicy::kEverySecond, FsyncPolicy::kNo);
  const auto io = GENERATE(FileIo::kPosix, FileIo::kUring);
  std::string root = (std::filesystem::temp_directory_path() / "hotkv-logwriter-XXXXXX").string();
  REQUIRE(mkdtemp(root.data()) != nullptr);
  FakeLogCatalog catalog;
  EpochClock clock(3, 1);
  LogWriterOptions options = LogRig::DefaultOptions();
  options.env = PosixEnv();
  options.folder = root + "/log";
  options.clock = &clock;
  options.catalog = &catalog;
  options.start = 1;
  options.policy = policy;
  options.manual = false;
  options.sync_ms = 20;
  options.io = io;
  auto writer = LogWriter::Start(options);
  REQUIRE(writer.ok());
  std::vector<std::thread> threads;
  std::vector<LogModel> models(3);
  for (unsigned w = 0; w < 3; ++w) {
    threads.emplace_back([&, w] {
      for (uint64_t i = 1; i <= 2000; ++i) {
        const std::string key = std::to_string(w) + ":" + std::to_string(i);
        const std::string value(i % 500 == 0 ? 30000 : i % 100, 'v');
        Effect effect;
        effect.kind = EffectKind::kSetString;
        effect.key = key;
        effect.bytes = value;
        effect.lsn = i;
        const unsigned group = static_cast<unsigned>(i % kStripeGroups);
        const uint64_t epoch = CommitEffect(&clock, w, effect, group);
        models[w][epoch][group].push_back(EffectText(effect));
        if (i % 200 == 0) {
          (*writer)->RequestSync(epoch);
          while (clock.durable() < epoch) std::this_thread::yield();
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  REQUIRE((*writer)->Stop().ok());
  writer->reset();
  LogModel all;
  for (const LogModel& model : models) {
    for (const auto& [epoch, groups] : model) {
      for (const auto& [group, texts] : groups) {
        auto& to = all[epoch][group];
        to.insert(to.end(), texts.begin(), texts.end());
      }
    }
  }
  LogScanOptions scan = ScanOptionsFor(PosixEnv(), catalog);
  scan.folder = options.folder;
  scan.check_all_bodies = true;
  LogModel found;
  LogReader reader(PosixEnv(), options.folder);
  auto result = ScanLog(scan, [&](const LogBlockRef& block) -> Status {
    for (const GroupEntry& group : block.header.groups) {
      HOTKV_ASSIGN_OR_RETURN(const std::string bytes, reader.ReadGroup(GroupRefOf(block, group)));
      ByteReader records(bytes);
      Effect effect;
      while (!records.empty()) {
        if (!DecodeEffect(&records, block.header.epoch, &effect))
          return Status::Corruption("record");
        found[block.header.epoch][group.group].push_back(EffectText(effect));
      }
    }
    return Status::Ok();
  });
  REQUIRE(result.ok());
  CHECK(result->clean_stop);
  CHECK(found == all);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace hotkv
