#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/base/coding.h"
#include "engine/base/random.h"
#include "persistence/catalog/catalog.h"
#include "persistence/catalog/catalog_log.h"
#include "persistence/catalog/lmdb_store.h"
#include "persistence/catalog/sim_store.h"

using namespace hotkv;

namespace {

// A folder of its own, removed at the end.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "hotkv-catalog-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

CatalogState RandomState(uint64_t seed) {
  Random random(seed);
  CatalogState s;
  s.format = kDirectoryFormat;
  s.directory_id = random.Next();
  s.stripe_bits = static_cast<uint32_t>(random.Below(17));
  s.hash_seed = random.Next();
  s.server_id = std::string(40, 'a');
  s.replication_id = std::string(40, static_cast<char>('0' + random.Below(10)));
  s.start_number = random.Below(1000);
  s.next_object_id = random.Next() >> random.Below(64);
  s.next_file_number = random.Below(1u << 20);
  s.log_epoch = random.Next() >> random.Below(64);
  s.epoch_max = random.Next() >> random.Below(64);
  auto state = [&] { return static_cast<FileState>(1 + random.Below(3)); };
  for (uint64_t i = random.Below(4); i > 0; --i) {
    SnapshotRecord r{state(),       random.Next() >> 20,  random.Next() >> 20,
                     random.Next(), random.Below(2) == 0, static_cast<int64_t>(random.Next() >> 10),
                     random.Next(), random.Next(),        {}};
    for (uint64_t g = random.Below(3); g > 0; --g) r.generations.push_back({g, random.Next()});
    s.snapshots[random.Next() >> random.Below(64)] = r;
  }
  for (uint64_t i = random.Below(6); i > 0; --i) {
    const uint64_t number = random.Below(100000);
    s.segments[number] = {
        number,        random.Next(),        static_cast<SegmentState>(1 + random.Below(3)),
        random.Next(), random.Below(2) == 0, random.Next(),
        random.Next(), random.Next()};
  }
  for (uint64_t i = random.Below(3); i > 0; --i) {
    const uint64_t first = random.Next() >> 20;
    s.ranges[first] = {first, random.Next(), random.Next()};
  }
  for (uint64_t i = random.Below(5); i > 0; --i) {
    ObjectRecord r;
    r.state = state();
    r.type = static_cast<uint8_t>(random.Below(256));
    r.next_generation = random.Next();
    for (uint64_t g = random.Below(3); g > 0; --g) {
      r.generations[random.Below(1000)] = {state(), random.Next(), random.Next()};
    }
    s.objects[random.Below(1000)] = r;
  }
  for (uint64_t i = random.Below(3); i > 0; --i) {
    s.settings["acl/" + std::to_string(i)] = std::string(random.Below(50), '\0');
  }
  return s;
}

std::unique_ptr<Catalog> OpenLmdb(const std::string& path) {
  auto store = LmdbStore::Open(path, LmdbStore::Mode::kCreateOrOpen);
  REQUIRE(store.ok());
  auto catalog = Catalog::Open(std::move(store).value());
  INFO(catalog.status().ToString());
  REQUIRE(catalog.ok());
  return std::move(catalog).value();
}

}  // namespace

TEST_CASE("A catalog's state survives encoding") {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const CatalogState state = RandomState(seed);
    auto decoded = DecodeCatalog(EncodeCatalog(state));
    INFO(seed << ": " << decoded.status().ToString());
    REQUIRE(decoded.ok());
    REQUIRE(*decoded == state);
  }
}

TEST_CASE("A damaged catalog record is an error or another value, never a crash") {
  Random random(7);
  for (int round = 0; round < 3000; ++round) {
    CatalogRecords records = EncodeCatalog(RandomState(1 + random.Below(100)));
    auto it = records.begin();
    std::advance(it, random.Below(records.size()));
    if (it->second.empty()) continue;
    if (random.Below(2) == 0) {
      it->second[random.Below(it->second.size())] ^= static_cast<char>(1u << random.Below(8));
    } else {
      it->second.resize(random.Below(it->second.size()));
    }
    (void)DecodeCatalog(records);
  }
}

TEST_CASE("A newer directory format is refused by name before anything else is read") {
  CatalogRecords records;
  std::string format;
  AppendLe<uint32_t>(&format, kDirectoryFormat + 1);
  records["format"] = format;
  records["something new"] = "x";
  auto decoded = DecodeCatalog(records);
  REQUIRE(decoded.status().code() == Code::kUnsupported);
  REQUIRE(decoded.status().message().find("format 2") != std::string::npos);
}

TEST_CASE("LMDB keeps what was committed, and each commit changes all or nothing") {
  TempFolder folder;
  const std::string path = folder.file("catalog.mdb");
  CatalogState last;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto catalog = OpenLmdb(path);
    REQUIRE(catalog->Read() == last);
    last = RandomState(seed);
    REQUIRE(catalog->Update([&](CatalogState* s) { *s = last; }).ok());
    REQUIRE(catalog->Read() == last);
  }
}

TEST_CASE("A catalog value with a wrong checksum names its record") {
  TempFolder folder;
  const std::string path = folder.file("catalog.mdb");
  const std::string needle(40, 'a');  // the server id
  {
    auto catalog = OpenLmdb(path);
    REQUIRE(catalog->Update([&](CatalogState* s) { *s = RandomState(3); }).ok());
  }
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  in.close();
  size_t hits = 0;
  for (size_t at = bytes.find(needle); at != std::string::npos; at = bytes.find(needle, at + 1)) {
    bytes[at + 5] = 'b';
    ++hits;
  }
  REQUIRE(hits > 0);
  std::ofstream(path, std::ios::binary) << bytes;
  auto store = LmdbStore::Open(path, LmdbStore::Mode::kReadWrite);
  REQUIRE(store.ok());
  auto catalog = Catalog::Open(std::move(store).value());
  REQUIRE(catalog.status().code() == Code::kCorruption);
  REQUIRE(catalog.status().path() == path);
  REQUIRE(catalog.status().message().find("'directory'") != std::string::npos);
}

TEST_CASE("A catalog file that is cut short or no LMDB file is an error, not a crash") {
  TempFolder folder;
  const std::string path = folder.file("catalog.mdb");
  {
    auto catalog = OpenLmdb(path);
    REQUIRE(catalog->Update([&](CatalogState* s) { *s = RandomState(5); }).ok());
  }
  const auto size = std::filesystem::file_size(path);
  for (const uintmax_t cut : {size - 4096, size / 2, uintmax_t{8192}, uintmax_t{100}}) {
    std::filesystem::resize_file(path, cut);
    auto store = LmdbStore::Open(path, LmdbStore::Mode::kReadWrite);
    INFO(cut);
    REQUIRE(!store.ok());
    REQUIRE(store.status().path() == path);
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << std::string(65536, 'x');
  REQUIRE(!LmdbStore::Open(path, LmdbStore::Mode::kReadWrite).ok());
  REQUIRE(LmdbStore::Open(folder.file("none.mdb"), LmdbStore::Mode::kReadOnly).status().code() ==
          Code::kNotFound);
}

TEST_CASE("A failed commit leaves the catalog in memory as it was") {
  auto store = std::make_unique<SimStore>();
  SimStore* sim = store.get();
  auto catalog = std::move(Catalog::Open(std::move(store)).value());
  REQUIRE(catalog->Update([&](CatalogState* s) { *s = RandomState(1); }).ok());
  const CatalogState before = catalog->Read();
  sim->FailNext(1);
  REQUIRE(!catalog->Update([&](CatalogState* s) { s->start_number = 12345; }).ok());
  REQUIRE(catalog->Read() == before);
  REQUIRE(catalog->Update([&](CatalogState* s) { s->start_number = 12346; }).ok());
  REQUIRE(catalog->Read().start_number == 12346);
}

TEST_CASE("A cut during a commit leaves the catalog before or after it, never between") {
  auto store = std::make_unique<SimStore>();
  SimStore* sim = store.get();
  auto catalog = std::move(Catalog::Open(std::move(store)).value());
  const CatalogState first = RandomState(1);
  const CatalogState second = RandomState(2);
  REQUIRE(catalog->Update([&](CatalogState* s) { *s = first; }).ok());
  size_t saw_first = 0;
  size_t saw_second = 0;
  sim->SetHook([&] {
    for (uint64_t seed = 0; seed < 32; ++seed) {
      auto records = sim->Image(seed)->Load();
      auto state = DecodeCatalog(*records);
      REQUIRE(state.ok());
      REQUIRE((*state == first || *state == second));
      ++(*state == first ? saw_first : saw_second);
    }
  });
  REQUIRE(catalog->Update([&](CatalogState* s) { *s = second; }).ok());
  REQUIRE(saw_first > 0);
  REQUIRE(saw_second > saw_first);  // certain once the commit is done
}

TEST_CASE(
    "The log sees its segments in the catalog, and the highest epoch stays known when they go") {
  auto catalog = std::move(Catalog::Open(std::make_unique<SimStore>()).value());
  REQUIRE(catalog
              ->Update([&](CatalogState* s) {
                *s = CatalogState();
                s->format = 1;
              })
              .ok());
  CatalogLog log(catalog.get());
  LogSegmentEntry entry{.number = 4, .start = 2, .state = SegmentState::kLive, .size_bytes = 100};
  REQUIRE(log.Commit({.put = {entry}, .remove = {}}).ok());
  REQUIRE(catalog->Read().epoch_max == 0);
  entry.ended = true;
  entry.first_epoch = 5;
  entry.last_epoch = 9;
  REQUIRE(log.Commit({.put = {entry}, .remove = {}}).ok());
  REQUIRE(catalog->Read().epoch_max == 9);
  REQUIRE(log.Segments().value() == std::vector<LogSegmentEntry>{entry});
  REQUIRE(log.Commit({.put = {}, .remove = {4}}).ok());
  REQUIRE(log.Segments().value().empty());
  REQUIRE(catalog->Read().epoch_max == 9);
}
