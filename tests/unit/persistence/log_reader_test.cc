#include "persistence/log/log_reader.h"

#include <zstd.h>

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "engine/base/crc32c.h"
#include "engine/base/rule_switch.h"
#include "tests/support/log_rig.h"
#include "tests/support/source_dir.h"

namespace hotkv {
namespace {

struct BlockPlace {
  std::string path;
  uint64_t segment = 0;
  uint64_t offset = 0;
  BlockHeader header;
};

std::vector<BlockPlace> Blocks(Env* env, const FakeLogCatalog& catalog) {
  std::vector<BlockPlace> blocks;
  auto scan = ScanLog(ScanOptionsFor(env, catalog), [&](const LogBlockRef& ref) {
    blocks.push_back(
        {"data/log/" + SegmentFileName(ref.segment), ref.segment, ref.offset, ref.header});
    return Status::Ok();
  });
  REQUIRE(scan.ok());
  return blocks;
}

Result<LogContent> Read(SimEnv* env, LogRig& rig) {
  FakeLogCatalog catalog(rig.catalog().entries());
  catalog.SetDurableEpoch(rig.catalog().durable_epoch());
  return ReadLog(env, catalog);
}

// A log of `count` blocks of several groups each, the last ones not synced.
std::unique_ptr<LogRig> MakeLog(int synced, int unsynced, size_t value_bytes = 100) {
  auto rig = std::make_unique<LogRig>();
  rig->options.policy = FsyncPolicy::kNo;
  REQUIRE(rig->Open().ok());
  for (int i = 0; i < synced + unsynced; ++i) {
    for (int k = 0; k < 5; ++k) {
      rig->Put("key" + std::to_string(k),
               std::string(value_bytes, static_cast<char>('a' + i % 26)));
    }
    if (i + 1 == synced) rig->writer().RequestSync(rig->clock().current());
    rig->Turn();
  }
  return rig;
}

TEST_CASE("log reader: a file cut at each byte of the last transaction (UR-22)", "[log]") {
  auto rig = MakeLog(2, 1, 10);
  const auto blocks = Blocks(rig->env(), rig->catalog());
  REQUIRE(blocks.size() == 3);
  const BlockPlace last = blocks.back();
  const uint64_t before = blocks[1].header.epoch;
  for (uint64_t bytes = 0; bytes < last.header.block_bytes; ++bytes) {
    auto image = rig->env()->KillProcess();
    {
      auto file = image->Open(last.path, OpenMode::kReadWrite, FileIo::kPosix);
      REQUIRE((*file)->Truncate(last.offset + bytes).ok());
    }
    auto next = NextRun(*rig, std::move(image));
    REQUIRE(next->Open().ok());
    const LogScanResult& scan = next->found().scan;
    const bool whole = scan.end.epoch == last.header.epoch;
    // All of it or nothing; the bytes of padding do not matter to the records, but the block is
    // then not whole.
    REQUIRE_FALSE(whole);
    REQUIRE(scan.end.epoch == before);
    REQUIRE(next->found().effects == rig->ModelUpTo(before));
    REQUIRE(scan.torn.has_value() == (bytes > 0));
    if (scan.torn) {
      CHECK(scan.torn->path == last.path);
      CHECK(scan.torn->offset == last.offset);
      CHECK(scan.torn->bytes >= bytes);
      CHECK(scan.torn->bytes < bytes + 64);
    }
    if (bytes % 7 != 0) continue;
    next->Put("after", "1");
    REQUIRE(next->Settle());
    auto again = NextRun(*next, next->env()->PowerCut(bytes));
    REQUIRE(again->Open().ok());
    REQUIRE(again->found().effects == next->model());
    REQUIRE_FALSE(again->found().scan.torn.has_value());
  }
}

TEST_CASE("log reader: each sector of an unsynced tail missing", "[log]") {
  auto rig = MakeLog(3, 4, 300);
  const auto blocks = Blocks(rig->env(), rig->catalog());
  REQUIRE(blocks.size() == 7);
  const uint64_t begin = blocks[3].offset;
  const uint64_t end = blocks[6].offset + blocks[6].header.block_bytes;
  const std::string zeros(512, '\0');
  for (uint64_t sector = begin / 512; sector * 512 < end; ++sector) {
    const uint64_t from = std::max(begin, sector * 512);
    const uint64_t to = std::min(end, sector * 512 + 512);
    auto image = rig->env()->KillProcess();
    image->Corrupt(blocks[3].path, from, std::string_view(zeros).substr(0, to - from));
    uint64_t expected = 0;
    for (const BlockPlace& block : blocks) {
      const uint64_t used_end =
          block.offset + block.header.header_bytes() +
          (block.header.groups.empty()
               ? 0
               : block.header.groups.back().offset + block.header.groups.back().bytes -
                     block.header.header_bytes());
      if (block.offset < to && used_end > from) break;
      expected = block.header.epoch;
    }
    auto content = Read(image.get(), *rig);
    REQUIRE(content.ok());
    REQUIRE(content->scan.end.epoch == expected);
    REQUIRE(content->effects == rig->ModelUpTo(expected));
    if (expected < blocks[6].header.epoch) REQUIRE(content->scan.torn.has_value());
  }
}

TEST_CASE("log reader: a flipped bit is corruption where the log was durable, else a torn tail",
          "[log]") {
  auto rig = MakeLog(5, 3);
  const auto blocks = Blocks(rig->env(), rig->catalog());
  REQUIRE(blocks.size() == 8);
  const uint64_t durable = blocks[4].header.epoch;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const BlockPlace& block = blocks[b];
    const uint64_t used = block.header.groups.back().offset + block.header.groups.back().bytes;
    for (uint64_t at = 0; at < used; at += 5) {
      auto image = rig->env()->KillProcess();
      auto bytes = ReadWholeFile(image.get(), block.path);
      REQUIRE(bytes.ok());
      const char flipped = static_cast<char>((*bytes)[block.offset + at] ^ (1 << (at % 8)));
      image->Corrupt(block.path, block.offset + at, std::string_view(&flipped, 1));
      auto content = Read(image.get(), *rig);
      const bool in_header = at < block.header.header_bytes();
      INFO("block " << b << " byte " << at << " " << content.status().ToString());
      if (block.header.epoch <= durable) {
        // In the scan, or when the body is read; this reading does both.
        REQUIRE_FALSE(content.ok());
        REQUIRE(content.status().code() == Code::kCorruption);
        REQUIRE(content.status().path() == block.path);
        if (in_header) {
          REQUIRE(content.status().offset() == static_cast<int64_t>(block.offset));
          REQUIRE(content.status().message().find("log is damaged behind epoch") != std::string::npos);
        }
      } else {
        REQUIRE(content.ok());
        REQUIRE(content->scan.end.epoch == blocks[b - 1].header.epoch);
        REQUIRE(content->scan.torn.has_value());
        REQUIRE(content->scan.torn->offset == block.offset);
      }
    }
  }
}

TEST_CASE("log reader: later blocks' watermarks tell", "[log]") {
  // Blocks 0..5; 0 to 2 durable when 3 to 5 were written, nothing durable beyond.
  auto rig = MakeLog(3, 3);
  const auto blocks = Blocks(rig->env(), rig->catalog());
  REQUIRE(blocks[3].header.durable_epoch == blocks[2].header.epoch);
  const std::string zeros(64, '\0');
  auto lost_unsynced = rig->env()->KillProcess();
  lost_unsynced->Corrupt(blocks[3].path, blocks[3].offset, zeros);
  auto torn = Read(lost_unsynced.get(), *rig);
  REQUIRE(torn.ok());
  CHECK(torn->scan.end.epoch == blocks[2].header.epoch);
  CHECK(torn->scan.torn->blocks == 2);
  auto lost_durable = rig->env()->KillProcess();
  lost_durable->Corrupt(blocks[2].path, blocks[2].offset, zeros);
  auto corrupt = Read(lost_durable.get(), *rig);
  CHECK(corrupt.status().code() == Code::kCorruption);
  CHECK(corrupt.status().offset() == static_cast<int64_t>(blocks[2].offset));
#ifdef HOTKV_TEST_HOOKS
  {
    rules::Off off(Rule::kWatermark);
    CHECK(Read(lost_durable.get(), *rig).ok());
  }
#endif
  // The catalog knows better than what is left of the file.
  rig->catalog().SetDurableEpoch(blocks[3].header.epoch);
  CHECK(Read(lost_unsynced.get(), *rig).status().code() == Code::kCorruption);
}

TEST_CASE("log reader: watermarks of a later segment count", "[log]") {
  LogRig rig;
  rig.options.policy = FsyncPolicy::kAlways;
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 60; ++i) {
    rig.Put("k", std::string(700, 'x'));
    rig.Turn();
  }
  const auto blocks = Blocks(rig.env(), rig.catalog());
  const uint64_t second = blocks.back().segment;
  REQUIRE(second > blocks.front().segment);
  // Even if the catalog had no end for the first segment.
  auto entries = rig.catalog().entries();
  for (auto& [number, entry] : entries) {
    entry.ended = false;
    entry.end_offset = entry.first_epoch = entry.last_epoch = 0;
  }
  FakeLogCatalog without_ends(entries);
  REQUIRE(ReadLog(rig.env(), without_ends).ok());
  size_t last_of_first = 0;
  while (blocks[last_of_first + 1].segment == blocks[0].segment) ++last_of_first;
  rig.env()->Corrupt(blocks[last_of_first].path, blocks[last_of_first].offset,
                     std::string(64, '\0'));
  const Status status = ReadLog(rig.env(), without_ends).status();
  CHECK(status.code() == Code::kCorruption);
  CHECK(status.path() == blocks[last_of_first].path);
}

TEST_CASE("log reader: wrong files are refused by name", "[log]") {
  auto rig = MakeLog(30, 0, 300);
  auto entries = rig->catalog().entries();
  const std::string first = "data/log/" + SegmentFileName(entries.begin()->first);
  SECTION("missing") {
    auto image = rig->env()->KillProcess();
    REQUIRE(image->Unlink(first).ok());
    const Status status = Read(image.get(), *rig).status();
    CHECK(status.code() == Code::kCorruption);
    CHECK(status.path() == first);
  }
  SECTION("damaged header") {
    rig->env()->Corrupt(first, 20, "\x01");
    CHECK(Read(rig->env(), *rig).status().code() == Code::kCorruption);
  }
  SECTION("newer format") {
    auto bytes = ReadWholeFile(rig->env(), first);
    std::string header = bytes->substr(0, kSegmentHeaderBytes);
    header[8] = 2;
    rig->env()->Corrupt(first, 0, header);
    CHECK(Read(rig->env(), *rig).status().code() == Code::kUnsupported);
  }
  SECTION("another directory") {
    LogScanOptions options = ScanOptionsFor(rig->env(), rig->catalog());
    options.identity.directory_id = 78;
    auto scan = ScanLog(options, [](const LogBlockRef&) { return Status::Ok(); });
    CHECK(scan.status().code() == Code::kCorruption);
  }
  SECTION("another segment's bytes") {
    auto bytes = ReadWholeFile(rig->env(), first);
    const std::string second = "data/log/" + SegmentFileName((++entries.begin())->first);
    rig->env()->Corrupt(second, 0, bytes->substr(0, 8192));
    CHECK(Read(rig->env(), *rig).status().code() == Code::kCorruption);
  }
  SECTION("a drive that does not answer") {
    rig->env()->Inject(
        {.op = SimOp::kRead, .path_part = first, .nth = 2, .count = 1, .error = EIO});
    CHECK(Read(rig->env(), *rig).status().code() == Code::kIoError);
  }
}

TEST_CASE("log reader: an error of the visitor's ends the scan", "[log]") {
  auto rig = MakeLog(5, 0);
  int visited = 0;
  auto scan = ScanLog(ScanOptionsFor(rig->env(), rig->catalog()), [&](const LogBlockRef&) {
    return ++visited == 3 ? Status::Cancelled("enough") : Status::Ok();
  });
  CHECK(scan.status().code() == Code::kCancelled);
  CHECK(visited == 3);
}

TEST_CASE("log reader: compressed groups, and damaged ones", "[log]") {
  SimEnv env;
  std::string raw;
  for (int i = 0; i < 1000; ++i) raw += "record " + std::to_string(i);
  std::string frame(ZSTD_compressBound(raw.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), raw.data(), raw.size(), 3));
  REQUIRE(env.MakeDir("log").ok());
  const std::string path = "log/" + SegmentFileName(5);
  REQUIRE(WriteFileAtomically(&env, path, std::string(100, '.') + frame).ok());
  LogReader reader(&env, "log");
  LogGroupRef ref{5, 100, frame.size(), 1, Crc32c(frame), GroupEncoding::kZstd};
  auto read = reader.ReadGroup(ref);
  REQUIRE(read.ok());
  CHECK(*read == raw);
  ref.crc ^= 1;
  CHECK(reader.ReadGroup(ref).status().code() == Code::kCorruption);
  // Bytes that are no frame, behind a valid checksum.
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    std::string bad = frame;
    for (int k = 0; k < 3; ++k)
      bad[random() % std::min<size_t>(bad.size(), 40)] = static_cast<char>(random());
    env.Corrupt(path, 100, bad);
    reader.Forget(5);
    ref.crc = Crc32c(bad);
    auto damaged = reader.ReadGroup(ref);
    if (damaged.ok()) CHECK(damaged->size() <= raw.size());
  }
  ref.bytes = frame.size() + 1;
  const Status beyond = reader.ReadGroup(ref).status();
  CHECK(beyond.code() == Code::kCorruption);
  CHECK(beyond.path() == path);
}

// Format version 1 as it was first written. A segment of this version must be readable for ever.
std::string GoldenPath() { return SourcePath("tests/golden/log-v1/00000001.hkl"); }

void WriteGoldenLog(LogRig* rig) {
  rig->options.segment_bytes_min = 8192;
  rig->options.policy = FsyncPolicy::kAlways;
  rig->now_us = 1'796'000'000'000'000;
  REQUIRE(rig->Open().ok());
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 3; ++k) {
      rig->Put("key" + std::to_string(k), "value" + std::to_string(i),
               static_cast<unsigned>(k % 2));
    }
    rig->Turn();
  }
  REQUIRE(rig->writer().Stop().ok());
}

// Run by name, once for each new version.
TEST_CASE("log reader: make the golden segment", "[.golden]") {
  LogRig rig;
  WriteGoldenLog(&rig);
  auto bytes = ReadWholeFile(rig.env(), "data/log/00000001.hkl");
  REQUIRE(bytes.ok());
  REQUIRE(WriteFileAtomically(PosixEnv(), GoldenPath(), *bytes).ok());
}

TEST_CASE("log reader: the golden segment of version 1", "[log]") {
  LogScanOptions options;
  options.env = PosixEnv();
  options.folder = ParentFolder(GoldenPath());
  options.identity = TestIdentity();
  options.segments = {{.number = 1, .start = 1, .state = SegmentState::kLive, .size_bytes = 8192}};
  options.check_all_bodies = true;
  LogReader reader(PosixEnv(), options.folder);
  std::string text;
  auto scan = ScanLog(options, [&](const LogBlockRef& block) -> Status {
    text += std::to_string(block.header.epoch) + ":";
    for (const GroupEntry& group : block.header.groups) {
      HOTKV_ASSIGN_OR_RETURN(const std::string bytes, reader.ReadGroup(GroupRefOf(block, group)));
      ByteReader records(bytes);
      Effect effect;
      while (!records.empty()) {
        if (!DecodeEffect(&records, block.header.epoch, &effect))
          return Status::Corruption("record");
        text += " [" + std::to_string(group.group) + "] " + EffectToString(effect) + ";";
      }
    }
    text += "\n";
    return Status::Ok();
  });
  INFO(scan.status().ToString());
  REQUIRE(scan.ok());
  CHECK(scan->clean_stop);
  CHECK(scan->watermark == 6);
  auto expected = ReadWholeFile(PosixEnv(), ParentFolder(GoldenPath()) + "/effects.txt");
  REQUIRE(expected.ok());
  CHECK(text == *expected);
}

TEST_CASE("log reader: random damage never crashes a scan nor invents effects", "[log]") {
  auto rig = MakeLog(20, 10);
  const std::string path = "data/log/" + SegmentFileName(rig->catalog().entries().begin()->first);
  std::mt19937 random(11);
  for (int i = 0; i < 400; ++i) {
    auto image = rig->env()->KillProcess();
    for (unsigned k = 0; k < 1 + random() % 4; ++k) {
      std::string bytes(1 + random() % 200, '\0');
      for (char& c : bytes) c = random() % 2 == 0 ? '\0' : static_cast<char>(random());
      image->Corrupt(path, kSegmentHeaderBytes + random() % 8000, bytes);
    }
    auto content = Read(image.get(), *rig);
    if (content.ok()) REQUIRE(content->effects == rig->ModelUpTo(content->scan.end.epoch));
  }
}

}  // namespace
}  // namespace hotkv
