// Files that were cut, overwritten or spoiled: a start either has all the data or says which file,
// where, and what helps. It never starts with something else.
#include <catch2/catch.hpp>

#include "persistence/recovery/recovery.h"
#include "tests/crash/sim_world.h"

using namespace hotkv;
using namespace hotkv::crash;

namespace {

// The log's blocks as a scan of the stopped world's disk finds them.
std::vector<LogBlockRef> BlocksOf(SimWorld& world) {
  const CatalogState state = *DecodeCatalog(*world.store_ref().Load());
  LogScanOptions options;
  options.env = &world.env();
  options.folder = "data/log";
  options.identity = {state.directory_id, 1u << state.stripe_bits, state.hash_seed};
  options.segments = Recovery::SegmentsOf(state, state.ranges.begin()->second);
  std::vector<LogBlockRef> blocks;
  const auto scan = ScanLog(options, [&](const LogBlockRef& block) {
    blocks.push_back(block);
    return Status::Ok();
  });
  REQUIRE(scan.ok());
  return blocks;
}

std::string SegmentPath(uint64_t segment) { return "data/log/" + SegmentFileName(segment); }

// foo in one block; bar and baz by one commit in the last one, of which nothing says that it is
// durable.
void WriteTransaction(SimWorld& world) {
  REQUIRE(!world.Open().has_value());
  world.Commit(0, {"foo"}, "hello");
  world.SyncAll();
  world.Commit(1, {"bar", "baz"}, "of one commit");
  world.Cycle(10'000);
  world.Kill();
}

}  // namespace

TEST_CASE(
    "A log that ends anywhere inside its last transaction starts without it, and goes on (UR-22)") {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t segment = 0;
  {
    SimWorld world({.seed = 12, .fsync = FsyncPolicy::kNo, .snapshots = false});
    WriteTransaction(world);
    const LogBlockRef block = BlocksOf(world).back();
    segment = block.segment;
    first = block.offset;
    last = block.offset + block.header.block_bytes;
  }
  bool lost = false;
  bool kept = false;
  for (uint64_t cut = first; cut <= last; ++cut) {
    INFO("cut at " << cut);
    SimWorld world({.seed = 12, .fsync = FsyncPolicy::kNo, .snapshots = false});
    WriteTransaction(world);
    world.Truncate(SegmentPath(segment), cut);
    const auto bad = world.Open();  // compares with the model: both of bar and baz, or neither
    INFO(bad.value_or(""));
    REQUIRE(!bad.has_value());
    const Contents contents = Dump(world.engine());
    CHECK(contents.at({0, "foo"}).bytes == "hello");
    CHECK(contents.contains({0, "bar"}) == contents.contains({0, "baz"}));
    (contents.contains({0, "bar"}) ? kept : lost) = true;
    const auto& torn = world.directory().recovery().log()->torn;
    if (!contents.contains({0, "bar"}) && cut > first) {
      REQUIRE(torn.has_value());
      CHECK(torn->path == SegmentPath(segment));
      CHECK(torn->offset == first);
    }
    world.Commit(0, {"after"}, "1");
    world.SyncAll();
    world.TakeCut();
    REQUIRE(!world.Open().has_value());
    CHECK(Dump(world.engine()).at({0, "after"}).bytes == "1");
  }
  CHECK(lost);
  CHECK(kept);  // behind its last byte only padding is missing
}

namespace {

// A world with a snapshot, a log behind it and objects, stopped; the same for the same seed.
void MakeStopped(SimWorld& world) {
  REQUIRE(!world.Open().has_value());
  world.Steps(150);
  world.directory().BeginSnapshot(SnapshotWhy::kSave);
  world.FinishSnapshot();
  world.Steps(60);
  world.SyncAll();
  world.Cycle(2'000'000);
  world.Cycle(2'000'000);  // an empty block carries the watermark on
  REQUIRE(!world.Shutdown().has_value());
}

enum class Damage : uint8_t { kFlip, kZero, kCut, kEmpty, kStrange };

void Spoil(SimWorld& world, const std::string& path, Random* random) {
  auto file = world.env().Open(path, OpenMode::kReadWrite, FileIo::kPosix);
  REQUIRE(file.ok());
  const uint64_t size = *(*file)->Size();
  REQUIRE(size > 0);
  const uint64_t at = random->Below(size);
  switch (static_cast<Damage>(random->Below(5))) {
    case Damage::kFlip: {
      char byte = 0;
      REQUIRE((*file)->ReadAt(at, {&byte, 1}).ok());
      byte = static_cast<char>(byte ^ static_cast<char>(1u << random->Below(8)));
      REQUIRE((*file)->WriteAt(at, {&byte, 1}).ok());
      break;
    }
    case Damage::kZero: {
      const uint64_t from = at / 4096 * 4096;
      const std::string zeros(std::min<uint64_t>(4096, size - from), '\0');
      REQUIRE((*file)->WriteAt(from, zeros).ok());
      break;
    }
    case Damage::kCut:
      REQUIRE((*file)->Truncate(at).ok());
      break;
    case Damage::kEmpty:
      REQUIRE((*file)->Truncate(0).ok());
      break;
    case Damage::kStrange: {
      const std::string name = path + ".tmp";
      auto strange = world.env().Open(name, OpenMode::kCreateOrOpen, FileIo::kPosix);
      REQUIRE(strange.ok());
      REQUIRE((*strange)->WriteAt(0, "left by somebody").ok());
      break;
    }
  }
  REQUIRE((*file)->Sync().ok());
}

void SpoilFilesIn(const std::string& folder, uint64_t copies) {
  Random random(77);
  uint64_t refused = 0;
  uint64_t complete = 0;
  for (uint64_t copy = 0; copy < copies; ++copy) {
    SimWorld world({.seed = 21, .object_percent = 20});
    MakeStopped(world);
    std::set<std::string> files;
    world.ListFiles(folder, &files);
    REQUIRE(!files.empty());
    auto chosen = files.begin();
    std::advance(chosen, random.Below(files.size()));
    INFO("copy " << copy << ", " << *chosen);
    Spoil(world, *chosen, &random);
    const auto bad = world.Open();
    if (!bad.has_value()) {
      ++complete;
      continue;
    }
    INFO(*bad);
    // A refusal names the file; anything else would be a start with other data.
    const bool named = bad->find(folder) != std::string::npos;
    const bool refusal = bad->find("start refused: ") == 0 || bad->find("load failed: ") == 0;
    REQUIRE(refusal);
    REQUIRE(named);
    REQUIRE_THAT(*bad, Catch::Matches(".* data/[a-z]+/[0-9]+\\.hk[a-z] @[0-9]+: .*"));
    REQUIRE_THAT(*bad, Catch::Contains("hotkv-tool export --salvage"));
    ++refused;
  }
  CHECK(refused > 0);
  CHECK(complete > 0);
}

}  // namespace

TEST_CASE("A spoiled snapshot is refused by name or has done no harm (UR-26)") {
  SpoilFilesIn("data/snapshots", 120);
}

TEST_CASE("A spoiled log segment is refused by name or has done no harm (UR-26)") {
  SpoilFilesIn("data/log", 120);
}

TEST_CASE("A block that was durable and is gone is no torn tail") {
  SimWorld world({.seed = 12, .fsync = FsyncPolicy::kNo, .snapshots = false});
  REQUIRE(!world.Open().has_value());
  world.Commit(0, {"foo"}, "hello");
  world.SyncAll();
  world.Commit(0, {"bar"}, "1");
  world.SyncAll();
  world.Kill();
  const std::vector<LogBlockRef> blocks = BlocksOf(world);
  REQUIRE(blocks.size() >= 2);
  world.env().Corrupt(SegmentPath(blocks[0].segment), blocks[0].offset + 8, "x");
  const auto bad = world.Open();
  REQUIRE(bad.has_value());
  INFO(*bad);
  CHECK(bad->find("start refused: CORRUPTION: " + SegmentPath(blocks[0].segment)) == 0);
  CHECK(bad->find("@" + std::to_string(blocks[0].offset)) != std::string::npos);
  CHECK(bad->find("hotkv-tool export --salvage --dir data") != std::string::npos);
}
