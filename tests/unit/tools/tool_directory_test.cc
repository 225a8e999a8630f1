// Directories without their server: export and import again, verify against what a start says, nothing changed by either.
#include <catch2/catch.hpp>

#include <map>
#include <set>
#include <thread>

#include "engine/base/hash.h"
#include "engine/base/random.h"
#include "engine/base/sync_point.h"
#include "engine/types/durable_object.h"
#include "persistence/log/log_format.h"
#include "tests/unit/tools/tool_support.h"
#include "tools/hotkv_tool/directory_source.h"
#include "tools/hotkv_tool/engine_target.h"
#include "tools/hotkv_tool/importer.h"
#include "tools/hotkv_tool/input_format.h"
#include "tools/hotkv_tool/log_repair.h"
#include "tools/hotkv_tool/log_scan.h"
#include "tools/hotkv_tool/ndjson.h"
#include "tools/hotkv_tool/offline_directory.h"
#include "tools/hotkv_tool/salvage_source.h"
#include "tools/hotkv_tool/verifier.h"

namespace hotkv {
namespace {

namespace fs = std::filesystem;

// A directory being written, as an import does it.
class Writing {
 public:
  explicit Writing(const std::string& path) {
    auto opened = OfflineDirectory::Open({path, 2, 16});
    INFO(opened.status().ToString());
    REQUIRE(opened.ok());
    directory_ = std::move(*opened);
    target_ = std::make_unique<EngineTarget>(directory_->engine());
  }
  void operator()(const std::vector<std::string>& words, uint32_t db = 0) {
    const std::vector<std::string_view> args(words.begin(), words.end());
    const auto reply = target_->Ask(args, db);
    REQUIRE(reply.ok());
    INFO(reply->ToString());
    REQUIRE_FALSE(reply->is_error());
  }
  // A map's field.
  uint64_t Number(const std::vector<std::string>& words, std::string_view name) {
    const auto reply = target_->Ask(std::vector<std::string_view>(words.begin(), words.end()), 0);
    REQUIRE(reply.ok());
    INFO(reply->ToString());
    const RespValue* field = reply->Field(name);
    REQUIRE(field != nullptr);
    return static_cast<uint64_t>(field->integer);
  }
  void Snapshot() {
    DataDirectory* directory = directory_->directory();
    const uint64_t id = directory->BeginSnapshot(SnapshotWhy::kSave);
    while (directory->OutcomeOf(id) == SnapshotOutcome::kRunning) {
      directory->HelpSnapshot(directory_->engine()->worker(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    REQUIRE(directory->OutcomeOf(id) == SnapshotOutcome::kDone);
  }
  const Keyspace& keyspace() { return directory_->engine()->keyspace(); }
  std::string Text(const std::vector<std::string>& words) {
    return target_->Ask(std::vector<std::string_view>(words.begin(), words.end()), 0)->ToString();
  }
  // What a server's workers and its upkeep do by themselves.
  void Help() {
    directory_->directory()->HelpSnapshot(directory_->engine()->worker(1));
    for (const ObjectRef<Object>& object : directory_->engine()->objects().All()) {
      static_cast<DurableObject&>(*object).Upkeep();
    }
  }
  uint64_t Digest() { return directory_->engine()->Digest(); }
  void SetFsyncPolicy(FsyncPolicy policy) { directory_->directory()->SetFsyncPolicy(policy); }
  // What is committed next belongs to this epoch or a later one.
  uint64_t Epoch() { return directory_->engine()->epochs().current(); }
  // Until a block of this epoch or a later one is in the log's file.
  void WaitUntilWritten(uint64_t epoch) {
    while (directory_->engine()->epochs().written() < epoch) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CommandTarget& target() { return *target_; }
  void Stop() { REQUIRE(directory_->Stop().ok()); }

 private:
  std::unique_ptr<OfflineDirectory> directory_;
  std::unique_ptr<EngineTarget> target_;
};

std::string Blob(Random& random, size_t dim) {
  std::string blob(dim * sizeof(float), '\0');
  for (size_t i = 0; i < dim; ++i) {
    const auto component = static_cast<float>(random.Uniform() * 2 - 1);
    std::memcpy(blob.data() + i * sizeof(float), &component, sizeof(float));
  }
  return blob;
}

void Fill(Writing& db, Random& random, int keys) {
  for (int i = 0; i < keys; ++i) {
    const std::string key = "key:" + std::to_string(random.Below(500));
    const auto in_db = static_cast<uint32_t>(random.Below(8) == 0 ? 9 : 0);
    std::string value(random.Below(40), '\0');
    for (char& c : value) c = static_cast<char>(random.Next());
    switch (random.Below(6)) {
      case 0: db({"SET", key, std::to_string(random.Next() >> 1)}, in_db); break;
      case 1: db({"DEL", key}, in_db); break;
      case 2: db({"SET", key, value, "PXAT", "99999999999999"}, in_db); break;
      case 3: db({"SET", key, std::string(20'000 + random.Below(1000), 'x')}, in_db); break;
      default: db({"SET", key, value}, in_db);
    }
  }
}

void FillIndex(Writing& db, Random& random, const std::string& index, int elements) {
  for (int i = 0; i < elements; ++i) {
    const std::string id = "e" + std::to_string(random.Below(200));
    if (random.Below(5) == 0) {
      db({"VSIM.DEL", index, id});
    } else {
      db({"VSIM.SET", index, id, "FP32", Blob(random, 8), "ATTR", "{\"n\":" + std::to_string(i) + "}"});
    }
  }
}

// Snapshot in the middle, an index older and one younger than it, one dropped.
uint64_t MakeDirectory(const std::string& path, uint64_t seed) {
  Random random(seed);
  Writing db(path);
  db({"VSIM.CREATEINDEX", "old", "DIM", "8", "METRIC", "L2"});
  Fill(db, random, 400);
  FillIndex(db, random, "old", 200);
  db({"VSIM.CREATEINDEX", "gone", "DIM", "8", "METRIC", "L2"});
  db.Snapshot();
  db({"VSIM.CREATEINDEX", "young", "DIM", "8", "METRIC", "IP"});
  Fill(db, random, 300);
  FillIndex(db, random, "old", 60);
  FillIndex(db, random, "young", 60);
  db({"DEL", "gone"});
  const uint64_t digest = db.Digest();
  db.Stop();
  return digest;
}

// All files but the lock files, which a reader may make.
std::map<std::string, std::string> FilesOf(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    const std::string name = fs::relative(entry.path(), path).string();
    if (entry.is_regular_file() && !name.ends_with("-lock")) files[name] = ReadFileBytes(entry.path().string());
  }
  return files;
}

struct Verdict {
  std::vector<std::string> problems;
  std::vector<std::string> notes;
  VerifyCounts counts;
};

Verdict Verify(const std::string& path) {
  Verdict verdict;
  auto directory = StoredDirectory::Open(path, StoredDirectory::Locking::kRefuseLocked);
  if (!directory.ok()) {
    verdict.problems.push_back(directory.status().ToString());
    return verdict;
  }
  Problems problems;
  Verifier verifier(directory->get(), &problems);
  verifier.Run();
  return {problems.first(), verifier.notes(), verifier.counts()};
}

// What a start says: the digest, or why it refuses.
struct Start {
  uint64_t digest = 0;
  Status refusal;
};

Start TryStart(const std::string& path) {
  Start start;
  auto opened = OfflineDirectory::Open({path, 1, 16});
  if (!opened.ok()) {
    start.refusal = opened.status();
    return start;
  }
  start.digest = (*opened)->engine()->Digest();
  return start;
}

void Export(const std::string& from, const std::string& to, DataFormat format) {
  auto source = DirectorySource::Open(from);
  INFO(source.status().ToString());
  REQUIRE(source.ok());
  auto writer = OpenOutput(to, format);
  REQUIRE(writer.ok());
  Problems problems;
  const Status status = (*source)->ForEach({}, &problems, [&](const Record& record) { return (*writer)->Put(record); });
  INFO(status.ToString());
  REQUIRE(status.ok());
  REQUIRE((*writer)->Finish().ok());
}

TEST_CASE("directory: what is exported and imported again is the same, and the directory is not touched") {
  TemporaryFolder folder;
  const uint64_t digest = MakeDirectory(folder / "data", 41);
  const auto before = FilesOf(folder / "data");
  for (const DataFormat format : {DataFormat::kNdjson, DataFormat::kResp}) {
    const std::string name(DataFormatName(format));
    CAPTURE(name);
    Export(folder / "data", folder / name, format);
    CHECK(FilesOf(folder / "data") == before);
    {
      Writing copy(folder / ("copy-" + name));
      Problems problems;
      Importer importer(&copy.target(), {}, &problems);
      auto reader = OpenInput(folder / name, DataFormat::kUnknown, {});
      REQUIRE(reader.ok());
      ProgressBar progress("", 0);
      const auto done = importer.Run(reader->get(), &progress);
      INFO((problems.empty() ? "" : problems.first()[0]));
      REQUIRE(done.ok());
      REQUIRE(*done);
      copy.Stop();
    }
    CHECK(TryStart(folder / ("copy-" + name)).digest == digest);
  }
}

TEST_CASE("directory: a directory in use is refused") {
  TemporaryFolder folder;
  Writing db(folder / "data");
  CHECK(StoredDirectory::Open(folder / "data", StoredDirectory::Locking::kRefuseLocked).status().code() == Code::kLocked);
  CHECK(OfflineDirectory::Open({folder / "data", 1, 16}).status().code() == Code::kLocked);
  auto info = StoredDirectory::Open(folder / "data", StoredDirectory::Locking::kTolerate);
  REQUIRE(info.ok());
  CHECK((*info)->is_locked());
  CHECK(StoredDirectory::Open(folder / "none", StoredDirectory::Locking::kRefuseLocked).status().code() == Code::kNotFound);
}

TEST_CASE("verify: a sound directory is fine, as it is while it is looked at") {
  TemporaryFolder folder;
  const uint64_t digest = MakeDirectory(folder / "data", 42);
  const auto before = FilesOf(folder / "data");
  const Verdict verdict = Verify(folder / "data");
  INFO((verdict.problems.empty() ? "" : verdict.problems[0]));
  CHECK(verdict.problems.empty());
  CHECK(verdict.notes.empty());
  CHECK(verdict.counts.snapshots == 1);
  CHECK(verdict.counts.sections > 4096);
  CHECK(verdict.counts.generations >= 1);
  CHECK(verdict.counts.effects > 300);
  CHECK(FilesOf(folder / "data") == before);
  const Start start = TryStart(folder / "data");
  CHECK(start.digest == digest);
}

TEST_CASE("directory: slots of deleted elements come free, though the kept snapshot refers to all of them") {
  TemporaryFolder folder;
  Random random(43);
  Writing db(folder / "data");
  db({"VSIM.CREATEINDEX", "index", "DIM", "8"});
  for (int i = 0; i < 3000; ++i) db({"VSIM.SET", "index", std::to_string(i), "FP32", Blob(random, 8)});
  db.Snapshot();
  for (int i = 0; i < 2000; ++i) db({"VSIM.DEL", "index", std::to_string(i)});
  // Repair may come in several steps, and a thousand slots may wait for ever: they are not worth a snapshot.
  constexpr uint64_t kMayWait = 1000;
  uint64_t free = 0;
  while (free < 2000 - kMayWait) {  // as long as the threads behind it need: ctest's limit ends a wait for nothing
    db.Help();
    free = db.Number({"VSIM.INFO", "index"}, "free_slots");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (int i = 0; i < 2000; ++i) db({"VSIM.SET", "index", std::to_string(i), "FP32", Blob(random, 8)});
  INFO(db.Text({"VSIM.INFO", "index"}));
  CHECK(db.Number({"VSIM.INFO", "index"}, "slots") <= 3000 + kMayWait);
  db.Stop();
}

#if defined(HOTKV_TEST_HOOKS)
// A snapshot's stripes are not of one moment: what it does not hold of these indexes, the log tells.
TEST_CASE("verify: indexes that come and go while the snapshot is taken") {
  TemporaryFolder folder;
  uint64_t digest = 0;
  {
    Writing db(folder / "data");
    const auto key_in = [&](uint32_t stripe) {
      for (int i = 0;; ++i) {
        const std::string key = "i" + std::to_string(i);
        if (db.keyspace().MakeRef(key).stripe == stripe) return key;
      }
    };
    const std::string ends = key_in(0);
    const std::string begins = key_in(db.keyspace().stripe_count() - 1);
    db({"VSIM.CREATEINDEX", ends, "DIM", "4"});
    SyncBlock after_first("snapshot.after_stripe", 1);
    std::thread snapshot([&] { db.Snapshot(); });
    const bool reached = after_first.AwaitReached();
    db({"DEL", ends});  // its link is in the snapshot, its section will not be
    db({"VSIM.CREATEINDEX", begins, "DIM", "4"});
    after_first.Release();
    snapshot.join();
    REQUIRE(reached);
    digest = db.Digest();
    db.Stop();
  }
  const Verdict verdict = Verify(folder / "data");
  INFO((verdict.problems.empty() ? "" : verdict.problems[0]));
  CHECK(verdict.problems.empty());
  const Start start = TryStart(folder / "data");
  CHECK(start.refusal.ok());
  CHECK(start.digest == digest);
}
#endif

// Flips a byte in each of `count` places of the directory's files (of the log, below its end), and holds verify against
// a start: where a start refuses, verify names the same; where verify finds nothing, a start has the very same data.
TEST_CASE("verify: agrees with a start about flipped bytes") {
  TemporaryFolder folder;
  const uint64_t digest = MakeDirectory(folder / "data", 43);
  const auto files = FilesOf(folder / "data");
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files) {
    if (!bytes.empty() && name != "catalog.mdb" && name != "LOCK") names.push_back(name);
  }
  REQUIRE(names.size() >= 5);
  Random random(44);
  int refused = 0;
  int found = 0;
  for (int round = 0; round < 40; ++round) {
    const std::string& name = names[static_cast<size_t>(round) % names.size()];
    const std::string& bytes = files.at(name);
    // Where there is something: files are filled up with zeros.
    const size_t used = bytes.find_last_not_of('\0') + 1;
    if (used == 0) continue;
    const size_t at = random.Below(used);
    const std::string copy = folder / "copy";
    fs::remove_all(copy);
    fs::copy(folder / "data", copy, fs::copy_options::recursive);
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.Below(8)));
    std::ofstream(copy + "/" + name, std::ios::binary) << damaged;
    CAPTURE(name, at);
    const Verdict verdict = Verify(copy);
    const Start start = TryStart(copy);
    if (!start.refusal.ok()) {
      ++refused;
      INFO(start.refusal.ToString());
      REQUIRE_FALSE(verdict.problems.empty());
    } else if (verdict.problems.empty() && verdict.notes.empty()) {
      REQUIRE(start.digest == digest);
    }
    found += verdict.problems.empty() ? 0 : 1;
  }
  CHECK(refused > 5);
  CHECK(found >= refused);
}

// ---- repair ----

// i = 1, 2, ...: "last" and "n:i" are set in one transaction, each in an epoch of its own.
void Count(Writing& db, int from, int to) {
  for (int i = from; i <= to; ++i) {
    const uint64_t epoch = db.Epoch();
    db({"MULTI"});
    db({"SET", "last", std::to_string(i)});
    db({"SET", "n:" + std::to_string(i), "x"});
    db({"EXEC"});
    db.WaitUntilWritten(epoch);
  }
}

// How far the directory has counted; checks that it is one moment.
int Counted(const std::string& path) {
  Writing db(path);
  const std::string_view get[] = {"GET", "last"};
  const auto last = db.target().Ask(get, 0);
  REQUIRE(last.ok());
  const int count = last->is_null() ? 0 : std::stoi(last->text);
  for (int i = 1; i <= 60; ++i) {
    const std::string key = "n:" + std::to_string(i);
    const std::string_view exists[] = {"EXISTS", key};
    const auto found = db.target().Ask(exists, 0);
    REQUIRE(found.ok());
    CAPTURE(i, count);
    REQUIRE(found->integer == (i <= count ? 1 : 0));
  }
  db.Stop();
  return count;
}

std::vector<LogBlockRef> BlocksOf(const std::string& path) {
  auto directory = StoredDirectory::Open(path, StoredDirectory::Locking::kRefuseLocked);
  REQUIRE(directory.ok());
  Problems problems;
  std::vector<std::string> notes;
  std::vector<LogBlockRef> blocks;
  REQUIRE(ScanAllRanges(
              directory->get(),
              [&](const LogBlockRef& block) {
                blocks.push_back(block);
                return Status::Ok();
              },
              &problems, &notes)
              .ok());
  return blocks;
}

// What "last" is after so many of the blocks: transactions may share an epoch.
std::vector<int> CountsAfter(const std::string& path, const std::vector<LogBlockRef>& blocks) {
  LogReader reader(PosixEnv(), path + "/log");
  std::vector<int> counts = {0};
  for (const LogBlockRef& block : blocks) {
    int count = counts.back();
    for (const GroupEntry& group : block.header.groups) {
      const auto records = reader.ReadGroup(GroupRefOf(block, group));
      REQUIRE(records.ok());
      ByteReader bytes(*records);
      Effect effect;
      while (!bytes.empty()) {
        REQUIRE(DecodeEffect(&bytes, block.header.epoch, &effect));
        if (effect.key != "last") continue;
        count = effect.kind == EffectKind::kSetInt ? static_cast<int>(effect.integer)
                                                   : std::stoi(std::string(effect.bytes));
      }
    }
    counts.push_back(count);
  }
  return counts;
}

void FlipByte(const std::string& path, uint64_t offset) {
  std::string bytes = ReadFileBytes(path);
  bytes[offset] = static_cast<char>(bytes[offset] ^ 0x20);
  std::ofstream(path, std::ios::binary) << bytes;
}

std::optional<LogRepairPlan> Plan(const std::string& path) {
  auto directory = StoredDirectory::Open(path, StoredDirectory::Locking::kRefuseLocked);
  REQUIRE(directory.ok());
  auto plan = PlanLogRepair(directory->get());
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *plan;
}

TEST_CASE("repair: a log damaged in header, body or segment header is cut behind the last good block") {
  TemporaryFolder folder;
  for (const auto& [from, to] : {std::pair(1, 12), std::pair(13, 20), std::pair(21, 24)}) {
    Writing db(folder / "data");
    Count(db, from, to);
    db.Stop();
  }
  CHECK_FALSE(Plan(folder / "data").has_value());
  const std::vector<LogBlockRef> blocks = BlocksOf(folder / "data");
  const std::vector<int> counts = CountsAfter(folder / "data", blocks);
  REQUIRE(counts.back() == 24);
  REQUIRE(blocks.size() >= 6);
  const uint64_t last_segment = blocks.back().segment;
  struct Place {
    uint64_t segment;
    uint64_t offset;
    size_t good_blocks;
  };
  std::vector<Place> places;
  for (const size_t i : {size_t{0}, blocks.size() / 4, blocks.size() / 2, blocks.size() - 3}) {
    places.push_back({blocks[i].segment, blocks[i].offset + 30, i});
    const BlockHeader& header = blocks[i].header;
    if (!header.groups.empty()) places.push_back({blocks[i].segment, blocks[i].offset + header.groups[0].offset, i});
  }
  const auto first_of_last = std::find_if(blocks.begin(), blocks.end(),
                                          [&](const LogBlockRef& block) { return block.segment == last_segment; });
  places.push_back({last_segment, 40, static_cast<size_t>(first_of_last - blocks.begin())});
  for (const Place& place : places) {
    CAPTURE(place.segment, place.offset, place.good_blocks);
    const std::string work = folder / "work";
    fs::remove_all(work);
    fs::copy(folder / "data", work, fs::copy_options::recursive);
    FlipByte(work + "/log/" + SegmentFileName(place.segment), place.offset);
    const auto damaged = FilesOf(work);
    REQUIRE_FALSE(Verify(work).problems.empty());
    const auto plan = Plan(work);
    REQUIRE(plan.has_value());
    CHECK(plan->end.epoch == (place.good_blocks == 0 ? 0 : blocks[place.good_blocks - 1].header.epoch));
    CHECK_FALSE(plan->mixes_moments());
    CHECK(plan->lost_bytes > 0);
    CHECK(FilesOf(work) == damaged);
    {
      auto directory = StoredDirectory::Open(work, StoredDirectory::Locking::kRefuseLocked);
      REQUIRE(directory.ok());
      const auto kept = RepairLog(directory->get(), *plan);
      INFO(kept.status().ToString());
      REQUIRE(kept.ok());
      for (const auto& [name, bytes] : FilesOf(*kept)) CHECK(damaged.at(name) == bytes);
      CHECK(FilesOf(*kept).size() == 1 + plan->cut_segments.size());
      fs::remove_all(*kept);
    }
    const Verdict verdict = Verify(work);
    INFO((verdict.problems.empty() ? "" : verdict.problems[0]));
    REQUIRE(verdict.problems.empty());
    CHECK(Counted(work) == counts[place.good_blocks]);
    // It goes on from there, and what it writes is read again.
    {
      Writing db(work);
      db({"DEL", "last"});
      for (int i = 1; i <= 24; ++i) db({"DEL", "n:" + std::to_string(i)});
      Count(db, 1, 3);
      db.Stop();
    }
    CHECK(Counted(work) == 3);
  }
}

TEST_CASE("repair: a cut before the snapshot would mix moments") {
  TemporaryFolder folder;
  {
    Writing db(folder / "data");
    Count(db, 1, 5);
    db.Snapshot();
    Count(db, 6, 9);
    db.Stop();
  }
  const std::vector<LogBlockRef> blocks = BlocksOf(folder / "data");
  FlipByte(folder / ("data/log/" + SegmentFileName(blocks[1].segment)), blocks[1].offset + 30);
  const auto plan = Plan(folder / "data");
  if (plan) {
    CHECK(plan->mixes_moments());
    CHECK(plan->late_snapshots.size() == 1);
  } else {
    // The blocks before the snapshot are no longer part of the log.
    CHECK(Verify(folder / "data").problems.empty());
  }
}

// ---- salvage ----

struct Salvaged {
  std::map<std::pair<uint32_t, std::string>, std::string> keys;  // database and key to its line
  std::map<std::string, std::string> elements;                   // index and id to its line
  std::vector<std::string> lost;
};

Salvaged Collect(RecordSource* source) {
  Salvaged all;
  Problems problems;
  const Status status = source->ForEach({}, &problems, [&](const Record& record) {
    std::string line;
    REQUIRE(AppendNdjsonLine(record, &line).ok());
    if (record.kind == RecordKind::kVector) {
      all.elements[std::string(record.key) + "/" + std::string(record.id)] = line;
    } else {
      all.keys[{record.db, std::string(record.key)}] = line;
    }
    return Status::Ok();
  });
  INFO(status.ToString());
  REQUIRE(status.ok());
  all.lost = problems.first();
  return all;
}

Salvaged Salvage(const std::string& path) {
  auto source = SalvageSource::Open(path);
  INFO(source.status().ToString());
  REQUIRE(source.ok());
  return Collect(source->get());
}

// Places in the bodies of some sections that are not empty, objects' among them.
std::vector<uint64_t> FilledSections(const std::string& path, size_t stripes) {
  auto reader = SnapshotReader::Open(PosixEnv(), path);
  REQUIRE(reader.ok());
  std::vector<uint64_t> places;
  for (const SectionEntry& section : (*reader)->footer().sections) {
    const bool stripe = section.kind == SectionKind::kStripe;
    if (stripe && (section.entries == 0 || places.size() >= stripes)) continue;
    places.push_back(section.offset + kSectionHeaderBytes);
  }
  return places;
}

TEST_CASE("salvage: without damage it gives everything, with damage all but what it names") {
  TemporaryFolder folder;
  MakeDirectory(folder / "data", 45);
  auto whole_source = DirectorySource::Open(folder / "data");
  REQUIRE(whole_source.ok());
  const Salvaged whole = Collect(whole_source->get());
  whole_source->reset();
  {
    const Salvaged same = Salvage(folder / "data");
    CHECK(same.lost.empty());
    CHECK(same.keys == whole.keys);
    CHECK(same.elements == whole.elements);
  }
  uint64_t hash_seed = 0;
  {
    auto stored = StoredDirectory::Open(folder / "data", StoredDirectory::Locking::kRefuseLocked);
    REQUIRE(stored.ok());
    hash_seed = (*stored)->state().hash_seed;
  }
  const auto files = FilesOf(folder / "data");
  Random random(46);
  int with_losses = 0;
  for (const auto& [name, bytes] : files) {
    const bool snapshot = name.ends_with(".hks");
    if (!snapshot && !name.starts_with("index/") && !name.starts_with("log/")) continue;
    const size_t used = bytes.find_last_not_of('\0') + 1;
    std::vector<uint64_t> places;
    for (int round = 0; round < 4 && used > 4200 && !snapshot; ++round) {
      places.push_back(4096 + random.Below(used - 4096));
    }
    if (snapshot) places = FilledSections(folder / ("data/" + name), 10);
    for (const uint64_t at : places) {
      const std::string work = folder / "work";
      fs::remove_all(work);
      fs::copy(folder / "data", work, fs::copy_options::recursive);
      FlipByte(work + "/" + name, at);
      const auto damaged = FilesOf(work);
      const Salvaged found = Salvage(work);
      CHECK(FilesOf(work) == damaged);
      CAPTURE(name, at);
      std::set<uint64_t> touched;
      size_t elements_lost = 0;
      for (const auto& [key, line] : whole.keys) {
        const auto kept = found.keys.find(key);
        if (kept == found.keys.end() || kept->second != line) touched.insert(HashBytes(key.second, hash_seed) >> 52);
      }
      for (const auto& [id, line] : whole.elements) {
        const auto kept = found.elements.find(id);
        if (kept == found.elements.end() || kept->second != line) ++elements_lost;
      }
      if (!touched.empty() || elements_lost != 0) {
        REQUIRE_FALSE(found.lost.empty());
        ++with_losses;
      }
      // A section is one stripe or one index.
      if (snapshot) CHECK(touched.size() + (elements_lost == 0 ? 0 : 1) <= 1);
    }
  }
  CHECK(with_losses > 0);  // where the bytes fall differs from run to run
}

TEST_CASE("salvage: without the catalog, and with a damaged one, the files are enough") {
  TemporaryFolder folder;
  MakeDirectory(folder / "data", 47);
  auto whole_source = DirectorySource::Open(folder / "data");
  REQUIRE(whole_source.ok());
  const Salvaged whole = Collect(whole_source->get());
  whole_source->reset();
  for (const bool missing : {true, false}) {
    const std::string work = folder / (missing ? "missing" : "damaged");
    fs::copy(folder / "data", work, fs::copy_options::recursive);
    if (missing) {
      fs::remove(work + "/catalog.mdb");
    } else {
      std::ofstream(work + "/catalog.mdb", std::ios::binary) << std::string(8192, 'x');
    }
    const Salvaged found = Salvage(work);
    REQUIRE_FALSE(found.lost.empty());
    CHECK_THAT(found.lost[0], Catch::Matchers::Contains("catalog"));
    CHECK(found.lost.size() == 1);
    CHECK(found.keys == whole.keys);
    CHECK(found.elements == whole.elements);
  }
}

struct LogCut {
  std::string segment;
  uint64_t from = 0;  // the last transaction's block
  uint64_t to = 0;
};

// The block that holds the last effects.
LogCut LastTransaction(const std::string& path) {
  auto directory = StoredDirectory::Open(path, StoredDirectory::Locking::kRefuseLocked);
  REQUIRE(directory.ok());
  Problems problems;
  std::vector<std::string> notes;
  LogCut cut;
  REQUIRE(ScanAllRanges(
              directory->get(),
              [&](const LogBlockRef& block) {
                if (!block.header.groups.empty()) {
                  cut = {SegmentFileName(block.segment), block.offset, block.offset + block.header.block_bytes};
                }
                return Status::Ok();
              },
              &problems, &notes)
              .ok());
  REQUIRE(problems.empty());
  REQUIRE(cut.from != 0);
  return cut;
}

TEST_CASE("verify: a log cut inside its last transaction, at the offset that a start names") {
  TemporaryFolder folder;
  {
    Writing db(folder / "data");
    db({"SET", "foo", "hello"});
    db.Stop();
  }
  // As a kill leaves it: written, the last block not known durable.
  const std::string killed = folder / "data";
  {
    Writing db(killed);
    db.SetFsyncPolicy(FsyncPolicy::kNo);  // under everysec a slow machine would have time to sync, and to log that it has
    const uint64_t epoch = db.Epoch();
    db({"MULTI"});
    db({"SET", "bar", "1"});
    db({"SET", "baz", "2"});
    db({"EXEC"});
    db.WaitUntilWritten(epoch);
  }
  const LogCut cut = LastTransaction(killed);
  int torn = 0;
  for (uint64_t at = cut.from; at <= cut.to; at += at % 16 == 0 ? 5 : 11) {
    CAPTURE(at);
    const std::string work = folder / "work";
    fs::remove_all(work);
    fs::copy(killed, work, fs::copy_options::recursive);
    fs::resize_file(work + "/log/" + cut.segment, at);
    const auto before = FilesOf(work);
    const Verdict verdict = Verify(work);
    INFO((verdict.problems.empty() ? "" : verdict.problems[0]));
    REQUIRE(verdict.problems.empty());
    CHECK(FilesOf(work) == before);
    auto stored = StoredDirectory::Open(work, StoredDirectory::Locking::kRefuseLocked);
    REQUIRE(stored.ok());
    auto recovery = (*stored)->Inspect();
    REQUIRE(recovery.ok());
    const auto& found = (*recovery)->log()->torn;
    if (found) {
      ++torn;
      CHECK(found->offset == cut.from);
      REQUIRE(verdict.notes.size() == 1);
      CHECK(verdict.notes[0] == TornText(*found));
    }
    // foo stays; bar and baz both or neither.
    CHECK((verdict.counts.keys == 1 || verdict.counts.keys == 3));
    CHECK((at < cut.to) == (verdict.counts.keys == 1));
  }
  CHECK(torn > 3);
}

}  // namespace
}  // namespace hotkv
