#include "engine/base/sim_env.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace hotkv {
namespace {

constexpr size_t kSector = 512;
constexpr size_t kPage = 4096;

std::unique_ptr<File> OpenFile(Env* env, const std::string& path,
                               OpenMode mode = OpenMode::kCreateOrOpen) {
  auto file = env->Open(path, mode);
  REQUIRE(file.ok());
  return std::move(file).value();
}

std::string Content(Env* env, const std::string& path) {
  auto content = ReadWholeFile(env, path);
  REQUIRE(content.ok());
  return *content;
}

// The file with this content, synced, in a synced folder.
std::unique_ptr<File> MakeDurable(Env* env, const std::string& path, const std::string& content) {
  auto file = OpenFile(env, path);
  REQUIRE(file->WriteAt(0, content).ok());
  REQUIRE(file->Sync().ok());
  REQUIRE(env->SyncDir(ParentFolder(path)).ok());
  return file;
}

// Everything below the root, as text.
void Describe(Env* env, const std::string& folder, std::map<std::string, std::string>* out) {
  auto entries = env->List(folder);
  REQUIRE(entries.ok());
  for (const DirEntry& entry : *entries) {
    const std::string path = JoinPath(folder, entry.name);
    (*out)[path] = entry.is_dir ? "folder" : "file " + Content(env, path);
    if (!entry.is_dir) REQUIRE(Content(env, path).size() == entry.size);
    if (entry.is_dir) Describe(env, path, out);
  }
}

std::map<std::string, std::string> Describe(Env* env, const std::string& folder) {
  std::map<std::string, std::string> out;
  Describe(env, folder, &out);
  return out;
}

TEST_CASE("sim: random operations give what the real file system gives", "[sim]") {
  std::string root = (std::filesystem::temp_directory_path() / "hotkv-sim-XXXXXX").string();
  REQUIRE(mkdtemp(root.data()) != nullptr);
  SimEnv sim;
  for (const std::string& part : {ParentFolder(root), root}) REQUIRE(sim.MakeDir(part).ok());
  std::vector<Env*> envs{&sim, PosixEnv()};
  std::mt19937 random(7);
  const std::vector<std::string> folders{root, root + "/a", root + "/a/b"};
  const auto path = [&] { return folders[random() % 3] + "/f" + std::to_string(random() % 4); };
  for (int step = 0; step < 3000; ++step) {
    const auto action = random() % 10;
    const std::string one = path();
    const std::string two = path();
    const std::string folder = folders[1 + random() % 2];
    const uint64_t offset = random() % 9000;
    const std::string data(random() % 5000, static_cast<char>('a' + random() % 26));
    std::vector<Status> results;
    for (Env* env : envs) {
      if (action < 2) results.push_back(env->MakeDir(folder));
      if (action == 2) results.push_back(env->RemoveDir(folder));
      if (action == 3) results.push_back(env->Unlink(one));
      if (action == 4) results.push_back(env->Rename(one, two));
      if (action == 5) results.push_back(env->MakeDir(one));
      if (action < 6) continue;
      auto file = env->Open(one, action == 6 ? OpenMode::kCreateNew : OpenMode::kCreateOrOpen);
      results.push_back(file.ok() ? Status::Ok() : file.status());
      if (!file.ok()) continue;
      if (action == 7) results.push_back((*file)->Truncate(offset));
      if (action == 8) results.push_back((*file)->Allocate(offset, 1 + data.size()));
      if (action == 9 || action == 6) results.push_back((*file)->WriteAt(offset, data));
    }
    REQUIRE(results.size() % 2 == 0);
    for (size_t i = 0; i < results.size() / 2; ++i) {
      INFO("step " << step << " action " << action << " " << results[i].ToString() << " / "
                   << results[results.size() / 2 + i].ToString());
      REQUIRE(results[i].ok() == results[results.size() / 2 + i].ok());
    }
    if (step % 50 == 0) REQUIRE(Describe(&sim, root) == Describe(PosixEnv(), root));
  }
  CHECK(Describe(&sim, root) == Describe(PosixEnv(), root));
  std::filesystem::remove_all(root);
}

TEST_CASE("sim: what is synced survives every cut", "[sim]") {
  SimEnv env;
  REQUIRE(env.MakeDir("d").ok());
  REQUIRE(env.SyncDir("").ok());
  std::string content(20000, 'x');
  auto file = MakeDurable(&env, "d/f", content);
  const std::string_view pieces[] = {"one", "two", "three"};
  REQUIRE(file->WriteGatherAndSyncAt(9000, pieces).ok());
  content.replace(9000, 11, "onetwothree");
  for (uint64_t seed = 0; seed < 200; ++seed) {
    auto after = env.PowerCut(seed);
    REQUIRE(Content(after.get(), "d/f") == content);
  }
}

TEST_CASE("sim: unsynced overwrites are lost, kept, torn and reordered by sectors", "[sim]") {
  SimEnv env;
  const size_t size = 3 * kPage;
  auto file = MakeDurable(&env, "f", std::string(size, 'a'));
  REQUIRE(file->WriteAt(0, std::string(size, 'b')).ok());
  // Inside one sector, and over a border of sectors.
  REQUIRE(file->WriteAt(700, std::string(10, 'c')).ok());
  std::set<std::string> images;
  bool later_without_earlier = false;
  bool torn_page = false;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    auto after = env.PowerCut(seed);
    const std::string image = Content(after.get(), "f");
    REQUIRE(image.size() == size);
    images.insert(image);
    for (size_t at = 0; at < size; at += kSector) {
      const std::string sector = image.substr(at, kSector);
      std::string third(kSector, 'b');
      if (at == kSector) third.replace(700 - kSector, 10, "cccccccccc");
      const bool legal = sector == std::string(kSector, 'a') ||
                         sector == std::string(kSector, 'b') || sector == third;
      REQUIRE(legal);
    }
    if (image[kPage] == 'b' && image[0] == 'a') later_without_earlier = true;
    if (image[0] != image[kPage - 1]) torn_page = true;
  }
  CHECK(images.contains(std::string(size, 'a')));
  CHECK(images.size() > 50);
  CHECK(later_without_earlier);
  CHECK(torn_page);
  auto again = env.PowerCut(5);
  auto same = env.PowerCut(5);
  CHECK(Content(again.get(), "f") == Content(same.get(), "f"));
}

TEST_CASE("sim: writes of two files survive in any combination", "[sim]") {
  SimEnv env;
  auto one = MakeDurable(&env, "one", "a");
  auto two = MakeDurable(&env, "two", "a");
  REQUIRE(one->WriteAt(0, "b").ok());
  REQUIRE(two->WriteAt(0, "b").ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    auto after = env.PowerCut(seed);
    seen.insert(Content(after.get(), "one") + Content(after.get(), "two"));
  }
  CHECK(seen == std::set<std::string>{"aa", "ab", "ba", "bb"});
}

TEST_CASE("sim: growing files end anywhere, with zeros where data did not arrive", "[sim]") {
  SimEnv env;
  auto file = MakeDurable(&env, "f", std::string(100, 'a'));
  REQUIRE(file->WriteAt(100, std::string(6000, 'b')).ok());
  std::set<size_t> sizes;
  bool zeros = false;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    auto after = env.PowerCut(seed);
    const std::string image = Content(after.get(), "f");
    sizes.insert(image.size());
    REQUIRE(image.size() >= 100);
    REQUIRE(image.substr(0, 100) == std::string(100, 'a'));
    for (size_t i = 100; i < image.size(); ++i) {
      REQUIRE((image[i] == 'b' || image[i] == 0));
      zeros = zeros || image[i] == 0;
    }
  }
  CHECK(sizes.contains(100));
  CHECK(sizes.contains(6100));
  CHECK(sizes.size() > 3);
  CHECK(zeros);
}

TEST_CASE("sim: bytes that were cut off never come back", "[sim]") {
  SimEnv env;
  auto file = MakeDurable(&env, "f", std::string(10000, 'a'));
  REQUIRE(file->Truncate(1000).ok());
  REQUIRE(file->WriteAt(5000, std::string(3000, 'b')).ok());
  std::set<size_t> sizes;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    auto after = env.PowerCut(seed);
    const std::string image = Content(after.get(), "f");
    sizes.insert(image.size());
    if (image.size() == 10000) {
      REQUIRE(image == std::string(10000, 'a'));
      continue;
    }
    REQUIRE(image.substr(0, 1000) == std::string(1000, 'a'));
    REQUIRE(image.find('a', 1000) == std::string::npos);
    REQUIRE(image.size() <= 8000);
  }
  CHECK(sizes.contains(10000));
  CHECK(sizes.contains(1000));
  CHECK(sizes.contains(8000));
}

TEST_CASE("sim: a name is durable after a sync of its folder, not before", "[sim]") {
  SimEnv env;
  REQUIRE(env.MakeDir("d").ok());
  REQUIRE(env.SyncDir(".").ok());
  auto file = OpenFile(&env, "d/new", OpenMode::kCreateNew);
  REQUIRE(file->WriteAt(0, "x").ok());
  REQUIRE(file->Sync().ok());
  std::set<bool> found;
  for (uint64_t seed = 0; seed < 50; ++seed) found.insert(*env.PowerCut(seed)->Exists("d/new"));
  CHECK(found == std::set<bool>{false, true});
  REQUIRE(env.SyncDir("d").ok());
  REQUIRE(env.Unlink("d/new").ok());
  found.clear();
  for (uint64_t seed = 0; seed < 50; ++seed) {
    auto after = env.PowerCut(seed);
    const bool there = *after->Exists("d/new");
    found.insert(there);
    if (there) REQUIRE(Content(after.get(), "d/new") == "x");
  }
  CHECK(found == std::set<bool>{false, true});
  REQUIRE(env.SyncDir("d").ok());
  for (uint64_t seed = 0; seed < 50; ++seed) REQUIRE_FALSE(*env.PowerCut(seed)->Exists("d/new"));
}

TEST_CASE("sim: a rename happens as a whole, in order with its folder", "[sim]") {
  SimEnv env;
  REQUIRE(env.MakeDir("d").ok());
  REQUIRE(env.MakeDir("e").ok());
  REQUIRE(env.SyncDir(".").ok());
  MakeDurable(&env, "d/f", "old");
  MakeDurable(&env, "d/f.tmp", "new");
  REQUIRE(env.Rename("d/f.tmp", "d/f").ok());
  REQUIRE(env.Rename("d/f", "e/g").ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::string state;
    auto after = env.PowerCut(seed);
    for (const auto& [path, text] : Describe(after.get(), "")) state += path + "=" + text + ";";
    seen.insert(state);
  }
  CHECK(seen == std::set<std::string>{
                    "d=folder;d/f=file old;d/f.tmp=file new;e=folder;",
                    "d=folder;d/f=file new;e=folder;",
                    "d=folder;e=folder;e/g=file new;",
                });
  // A sync of one side brings the rename, and what it rests on, to both.
  REQUIRE(env.SyncDir("e").ok());
  for (uint64_t seed = 0; seed < 50; ++seed) {
    auto after = env.PowerCut(seed);
    REQUIRE(Content(after.get(), "e/g") == "new");
    REQUIRE_FALSE(*after->Exists("d/f"));
  }
}

TEST_CASE("sim: atomic replacement of a file is atomic", "[sim]") {
  SimEnv env;
  REQUIRE(WriteFileAtomically(&env, "f", "first").ok());
  std::vector<std::unique_ptr<SimEnv>> images;
  env.SetHook([&](const SimOperation&) {
    for (uint64_t seed = 0; seed < 20; ++seed) images.push_back(env.PowerCut(seed));
  });
  REQUIRE(WriteFileAtomically(&env, "f", "second").ok());
  env.SetHook(nullptr);
  std::set<std::string> seen;
  for (const auto& image : images) seen.insert(Content(image.get(), "f"));
  CHECK(seen == std::set<std::string>{"first", "second"});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    REQUIRE(Content(env.PowerCut(seed).get(), "f") == "second");
  }
}

TEST_CASE("sim: a failed sync loses data that a later one does not bring back", "[sim]") {
  bool lost = false;
  bool arrived = false;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SimEnv env(seed);
    auto file = MakeDurable(&env, "f", std::string(kPage, 'a'));
    env.Inject({.op = SimOp::kSync, .path_part = "f", .error = EIO});
    REQUIRE(file->WriteAt(0, std::string(kPage, 'b')).ok());
    CHECK(file->Sync().sys_errno() == EIO);
    CHECK(file->Sync().ok());
    const std::string image = Content(env.PowerCut(1).get(), "f");
    lost = lost || image.find('a') != std::string::npos;
    arrived = arrived || image == std::string(kPage, 'b');
  }
  CHECK(lost);
  CHECK(arrived);
}

TEST_CASE("sim: chosen operations fail, are short and are delayed", "[sim]") {
  SimEnv env;
  auto file = MakeDurable(&env, "f", "0123456789");
  env.Inject({.op = SimOp::kWrite, .path_part = "f", .nth = 2, .error = ENOSPC, .bytes_done = 3});
  env.Inject({.op = SimOp::kRead, .path_part = "other", .error = EIO});
  env.Inject({.op = SimOp::kCreate, .count = UINT64_MAX, .error = ENOSPC});
  CHECK(file->WriteAt(0, "abc").ok());
  const std::string_view pieces[] = {"xy", "zzz"};
  const Status refused = file->WriteGatherAt(5, pieces);
  CHECK(refused.code() == Code::kNoSpace);
  CHECK(refused.path() == "f");
  CHECK(file->WriteAt(9, "!").ok());
  CHECK(Content(&env, "f") == "abc34xyz8!");
  for (int i = 0; i < 3; ++i) {
    CHECK(env.Open("g", OpenMode::kCreateNew, FileIo::kPosix).status().code() == Code::kNoSpace);
  }
  env.ClearFaults();
  CHECK(env.Open("g", OpenMode::kCreateNew, FileIo::kPosix).ok());
  env.PowerOff();
  CHECK(file->Sync().sys_errno() == EIO);
  CHECK(env.MakeDir("x").sys_errno() == EIO);
}

TEST_CASE("sim: a full disk takes what fits, and overwrites", "[sim]") {
  SimEnv env;
  env.SetCapacity(4 * kPage);
  auto file = OpenFile(&env, "f");
  REQUIRE(file->WriteAt(0, std::string(3 * kPage, 'a')).ok());
  auto other = OpenFile(&env, "g");
  const Status full = other->WriteAt(0, std::string(2 * kPage, 'b'));
  CHECK(full.code() == Code::kNoSpace);
  CHECK(*other->Size() == kPage);
  CHECK(*env.FreeBytes("") == 0);
  CHECK(file->WriteAt(100, std::string(kPage, 'c')).ok());
  CHECK(file->Allocate(0, 4 * kPage).code() == Code::kNoSpace);
  other.reset();
  REQUIRE(env.Unlink("g").ok());
  CHECK(*env.FreeBytes("") == kPage);
  CHECK(file->Allocate(0, 4 * kPage).ok());
  CHECK(file->WriteAt(3 * kPage, std::string(kPage, 'd')).ok());
}

TEST_CASE("sim: pages of a shared mapping arrive whenever they like", "[sim]") {
  SimEnv env;
  auto file = MakeDurable(&env, "f", std::string(2 * kPage, 'a'));
  auto shared = file->Map(0, 0, MapMode::kShared);
  auto own = file->Map(0, 0, MapMode::kPrivate);
  REQUIRE((shared.ok() && own.ok()));
  std::memset((*own)->data(), 'p', 100);
  std::memset((*shared)->data() + 200, 'b', 100);
  std::memset((*shared)->data() + kPage, 'b', 100);
  // Operations on other files give the kernel occasions to write pages back.
  for (int i = 0; i < 8; ++i) REQUIRE(OpenFile(&env, "other")->WriteAt(0, "x").ok());
  std::memset((*shared)->data() + kPage, 'c', 100);
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::string image = Content(env.PowerCut(seed).get(), "f");
    REQUIRE(image.find('p') == std::string::npos);
    seen.insert(std::string{image[200], image[kPage]});
  }
  CHECK(seen == std::set<std::string>{"aa", "ab", "ac", "ba", "bb", "bc"});
  // Reads and writes see the mapping, and it sees them.
  CHECK(Content(&env, "f")[kPage] == 'c');
  REQUIRE(file->WriteAt(300, "q").ok());
  CHECK((*shared)->data()[300] == 'q');
  REQUIRE((*shared)->Sync(0, kPage).ok());
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::string image = Content(env.PowerCut(seed).get(), "f");
    REQUIRE(image[200] == 'b');
    REQUIRE(image[300] == 'q');
  }
  REQUIRE(file->Sync().ok());
  for (uint64_t seed = 0; seed < 50; ++seed) {
    REQUIRE(Content(env.PowerCut(seed).get(), "f") == Content(&env, "f"));
  }
}

TEST_CASE("sim: the death of the process loses nothing but is no sync", "[sim]") {
  SimEnv env;
  auto file = MakeDurable(&env, "f", "a");
  auto lock = env.Lock("LOCK");
  REQUIRE(lock.ok());
  CHECK(env.Lock("LOCK").status().code() == Code::kLocked);
  REQUIRE(file->WriteAt(0, "b").ok());
  REQUIRE(OpenFile(&env, "g")->WriteAt(0, "c").ok());
  auto after = env.KillProcess();
  CHECK(Content(after.get(), "f") == "b");
  CHECK(Content(after.get(), "g") == "c");
  CHECK(after->Lock("LOCK").ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    auto cut = after->PowerCut(seed);
    seen.insert(Content(cut.get(), "f") + (*cut->Exists("g") ? "+" : "-"));
  }
  CHECK(seen.contains("a-"));
  CHECK(seen.contains("b+"));
  REQUIRE(OpenFile(after.get(), "f")->Sync().ok());
  for (uint64_t seed = 0; seed < 50; ++seed) {
    REQUIRE(Content(after->PowerCut(seed).get(), "f") == "b");
  }
  // The two worlds are apart.
  REQUIRE(file->WriteAt(0, "z").ok());
  CHECK(Content(after.get(), "f") == "b");
}

TEST_CASE("sim: bad drives", "[sim]") {
  SimEnv env;
  MakeDurable(&env, "f", "0123456789");
  env.Corrupt("f", 4, "x");
  CHECK(Content(&env, "f") == "0123x56789");
  CHECK(Content(env.PowerCut(3).get(), "f") == "0123x56789");
}

}  // namespace
}  // namespace hotkv
