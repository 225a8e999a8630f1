// Directories as each format version wrote them (tests/golden/v1, ...): they must be readable for
// ever, and an effect's meaning never changes within a version. contents.tsv beside the directories
// says what was put in, by the writer's own book.
//
// To write those of a new version: HOTKV_WRITE_GOLDEN=/new/empty/folder test_persistence
// "[.golden]".
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "persistence/data_directory.h"
#include "tests/support/source_dir.h"

using namespace hotkv;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kExpireAtMs = 4'000'000'000'000;  // in the year 2096

const CommandTable& NoCommands() {
  static const CommandTable table(std::span<const std::span<const CommandSpec>>{});
  return table;
}

DataDirectoryOptions OptionsFor(const std::string& path) {
  DataDirectoryOptions options;
  options.path = path;
  options.stripe_bits = 4;
  options.random_seed = 20261130;
  options.log.segment_bytes_min = 16 * 1024;
  options.log.segment_bytes_max = 16 * 1024;
  return options;
}

std::unique_ptr<Engine> MakeEngine(const DataDirectory& directory) {
  const EngineParameters parameters = directory.parameters();
  EngineOptions options;
  options.keyspace = {parameters.stripe_bits, parameters.hash_seed, 16};
  options.workers = 2;
  options.first_epoch = parameters.first_epoch;
  options.first_object_id = parameters.first_object_id;
  return std::make_unique<Engine>(options, &NoCommands());
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

// "database, key, expiry, length, value's first bytes and hash", one line a key.
std::string Line(uint32_t db, std::string_view key, int64_t expire_at_ms, std::string_view value) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{:016x}\n", db, Hex(key), expire_at_ms, value.size(),
                     Hex(value.substr(0, 16)), HashBytes(value, 7));
}

std::string Contents(Engine& engine) {
  std::map<std::string, std::string> lines;
  Keyspace& keyspace = engine.keyspace();
  for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
    for (uint32_t db = 0; db < keyspace.databases(); ++db) {
      Table* table = keyspace.stripe(i).table(db);
      for (uint32_t c = 0; table != nullptr && c < table->chunk_count(); ++c) {
        table->ForEachInChunk(c, [&](Entry** slot) {
          char scratch[24];
          const std::string line =
              Line(db, (*slot)->key(), (*slot)->expire_at_ms(), (*slot)->StringValue(scratch));
          lines[line] = line;
        });
      }
    }
  }
  std::string all;
  for (const auto& [line, same] : lines) all += line;
  return all;
}

// Writes through transactions and keeps book.
class Writer {
 public:
  explicit Writer(Engine* engine) : engine_(*engine) {}

  void Set(uint32_t db, const std::string& key, const std::string& value, int64_t expiry = 0) {
    Run(key, [&](Txn& txn, const KeyRef& ref) { txn.SetString(db, ref, value, expiry); });
    book_[{db, key}] = {value, expiry};
  }
  void SetInt(uint32_t db, const std::string& key, int64_t value, int64_t expiry = 0) {
    Run(key, [&](Txn& txn, const KeyRef& ref) { txn.SetInt(db, ref, value, expiry); });
    book_[{db, key}] = {std::to_string(value), expiry};
  }
  void Append(uint32_t db, const std::string& key, const std::string& more) {
    Run(key, [&](Txn& txn, const KeyRef& ref) { txn.Append(db, ref, more); });
    book_[{db, key}].first += more;
  }
  void SetRange(uint32_t db, const std::string& key, size_t offset, const std::string& part) {
    Run(key, [&](Txn& txn, const KeyRef& ref) { txn.SetRange(db, ref, offset, part); });
    std::string& value = book_[{db, key}].first;
    if (value.size() < offset + part.size()) value.resize(offset + part.size(), '\0');
    value.replace(offset, part.size(), part);
  }
  void Delete(uint32_t db, const std::string& key) {
    Run(key, [&](Txn& txn, const KeyRef& ref) { txn.Delete(db, ref); });
    book_.erase({db, key});
  }
  void Expire(uint32_t db, const std::string& key, int64_t expiry) {
    Run(key, [&](Txn& txn, const KeyRef& ref) { txn.SetExpire(db, ref, expiry); });
    book_[{db, key}].second = expiry;
  }
  void Rename(uint32_t db, const std::string& from, const std::string& to) {
    const KeyRef refs[] = {engine_.keyspace().MakeRef(from), engine_.keyspace().MakeRef(to)};
    Txn& txn = engine_.worker(0).txn;
    txn.Begin(Clock::NowMs());
    txn.LockKeys(refs);
    txn.Move(db, refs[0], db, refs[1]);
    txn.CommitAndUnlock();
    book_[{db, to}] = book_[{db, from}];
    book_.erase({db, from});
  }
  void FlushAndSwap(uint32_t flushed, uint32_t a, uint32_t b) {
    engine_.gate().Enter(0);
    Txn& txn = engine_.worker(0).txn;
    txn.Begin(Clock::NowMs());
    txn.StopWorld();
    txn.FlushDb(flushed);
    txn.SwapDb(a, b);
    txn.CommitAndUnlock();
    engine_.gate().Leave(0);
    std::map<std::pair<uint32_t, std::string>, std::pair<std::string, int64_t>> after;
    for (const auto& [key, value] : book_) {
      if (key.first == flushed) continue;
      after[{key.first == a ? b : key.first == b ? a : key.first, key.second}] = value;
    }
    book_ = after;
  }
  std::string Book() const {
    std::map<std::string, std::string> lines;
    for (const auto& [key, value] : book_) {
      const std::string line = Line(key.first, key.second, value.second, value.first);
      lines[line] = line;
    }
    std::string all;
    for (const auto& [line, same] : lines) all += line;
    return all;
  }

 private:
  template <typename Fn>
  void Run(const std::string& key, Fn&& fn) {
    const unsigned worker = ++commits_ % 2;
    Txn& txn = engine_.worker(worker).txn;
    const KeyRef ref = engine_.keyspace().MakeRef(key);
    txn.Begin(Clock::NowMs());
    txn.LockKey(ref);
    fn(txn, ref);
    txn.CommitAndUnlock();
  }

  Engine& engine_;
  unsigned commits_ = 0;
  std::map<std::pair<uint32_t, std::string>, std::pair<std::string, int64_t>> book_;
};

void FirstHalf(Writer* writer) {
  for (int i = 0; i < 40; ++i)
    writer->Set(0, fmt::format("small:{}", i), fmt::format("value {}", i));
  writer->Set(0, "", "of the empty key");
  writer->Set(0, std::string("\0\xff binary", 10), std::string("\0\1\2", 3));
  writer->Set(0, std::string(300, 'k'), "of a long key");
  writer->Set(3, "expiring", "v", kExpireAtMs);
  writer->SetInt(3, "int", -42);
  writer->SetInt(9, "int expiring", INT64_MAX, kExpireAtMs + 1);
  std::string large(20'000, 'L');
  large.append("end");
  writer->Set(1, "large", large);
  writer->Set(1, "medium", std::string(3'000, 'm'));
}

void SecondHalf(Writer* writer) {
  writer->Append(0, "small:1", " and more");
  writer->Append(1, "large", std::string(17'000, 'M'));
  writer->SetRange(0, "small:2", 12, "patched");
  writer->SetRange(0, "ranged", 5, "new");
  writer->Delete(0, "small:3");
  writer->Expire(0, "small:4", kExpireAtMs + 7);
  writer->Expire(3, "expiring", 0);
  writer->Rename(0, "small:5", "renamed");
  writer->Set(4, "to be flushed", "x");
  writer->FlushAndSwap(4, 3, 9);
  writer->Set(3, "after the swap", "y");
}

void Save(DataDirectory* directory, Engine* engine) {
  const uint64_t id = directory->BeginSnapshot(SnapshotWhy::kSave);
  while (directory->OutcomeOf(id) == SnapshotOutcome::kRunning) {
    directory->HelpSnapshot(engine->worker(0));
  }
  REQUIRE(directory->OutcomeOf(id) == SnapshotOutcome::kDone);
}

void WriteDirectory(const std::string& path, bool with_log) {
  auto options = OptionsFor(path);
  options.append_only = with_log;
  std::string book;
  {
    auto directory = std::move(DataDirectory::Open(options).value());
    const auto engine = MakeEngine(*directory);
    REQUIRE(directory->Load(engine.get()).ok());
    REQUIRE(directory->Start().ok());
    Writer writer(engine.get());
    FirstHalf(&writer);
    if (with_log) Save(directory.get(), engine.get());
    SecondHalf(&writer);
    if (!with_log) Save(directory.get(), engine.get());
    REQUIRE(directory->Stop(false).ok());
    book = writer.Book();
    REQUIRE(Contents(*engine) == book);
    directory.reset();
  }
  fs::remove(path + "/LOCK");
  fs::remove(path + "/catalog.mdb-lock");
  std::ofstream(path + "/contents.tsv") << book;
}

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("Write golden directories", "[.golden]") {
  const char* folder = std::getenv("HOTKV_WRITE_GOLDEN");
  REQUIRE(folder != nullptr);
  WriteDirectory(std::string(folder) + "/log", true);
  WriteDirectory(std::string(folder) + "/snapshot", false);
}

TEST_CASE("Directories of every format version are read as they were meant") {
  SetLogLevel(LogLevel::kNothing);
  size_t read = 0;
  for (const auto& version : fs::directory_iterator(SourcePath("tests/golden"))) {
    const bool plain = version.path().filename().string().starts_with("v");
    if (!plain || !version.is_directory()) continue;
    for (const auto& golden : fs::directory_iterator(version.path())) {
      INFO(golden.path());
      std::string copy = (fs::temp_directory_path() / "hotkv-golden-XXXXXX").string();
      REQUIRE(mkdtemp(copy.data()) != nullptr);
      fs::copy(golden.path(), copy, fs::copy_options::recursive);
      const std::string expected = ReadText(copy + "/contents.tsv");
      {
        auto directory = DataDirectory::Open(OptionsFor(copy));
        INFO(directory.status().ToString());
        REQUIRE(directory.ok());
        const auto engine = MakeEngine(**directory);
        const Status loaded = (*directory)->Load(engine.get());
        INFO(loaded.ToString());
        REQUIRE(loaded.ok());
        CHECK(Contents(*engine) == expected);
        CHECK(std::count(expected.begin(), expected.end(), '\n') > 45);
        directory->reset();
      }
      fs::remove_all(copy);
      ++read;
    }
  }
  CHECK(read >= 2);
}
