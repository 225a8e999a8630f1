#include "engine/base/file.h"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <unistd.h>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace hotkv {
namespace {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hotkv-file-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  std::string operator/(std::string_view name) const { return JoinPath(path_, name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Random(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string data(size, '\0');
  for (char& c : data) c = static_cast<char>(random());
  return data;
}

std::string ReadBack(const std::string& path) {
  auto content = ReadWholeFile(PosixEnv(), path);
  REQUIRE(content.ok());
  return *content;
}

TEST_CASE("file: gathered writes of many pieces arrive whole", "[file]") {
  const auto io = GENERATE(FileIo::kPosix, FileIo::kUring);
  const bool with_sync = GENERATE(false, true);
  TempDir dir;
  auto file = PosixEnv()->Open(dir / "f", OpenMode::kCreateNew, io);
  REQUIRE(file.ok());
  // Far more pieces than one call takes, some of them empty.
  std::vector<std::string> pieces;
  std::string expected(100, '\0');
  std::mt19937 random(3);
  for (uint32_t i = 0; i < 3 * IOV_MAX + 5; ++i) {
    pieces.push_back(Random(random() % 50, i));
    expected += pieces.back();
  }
  const std::vector<std::string_view> views(pieces.begin(), pieces.end());
  const Status status =
      with_sync ? (*file)->WriteGatherAndSyncAt(100, views) : (*file)->WriteGatherAt(100, views);
  REQUIRE(status.ok());
  REQUIRE((*file)->Sync().ok());
  REQUIRE((*file)->WriteAt(3, "abc").ok());
  expected.replace(3, 3, "abc");
  CHECK(ReadBack(dir / "f") == expected);
  CHECK(*(*file)->Size() == expected.size());
}

TEST_CASE("file: nothing to write is no error", "[file]") {
  const auto io = GENERATE(FileIo::kPosix, FileIo::kUring);
  TempDir dir;
  auto file = PosixEnv()->Open(dir / "f", OpenMode::kCreateNew, io);
  REQUIRE(file.ok());
  CHECK((*file)->WriteAt(0, "").ok());
  CHECK((*file)->WriteGatherAndSyncAt(0, {}).ok());
  CHECK(*(*file)->Size() == 0);
}

TEST_CASE("file: errors name path, offset and errno", "[file]") {
  const auto io = GENERATE(FileIo::kPosix, FileIo::kUring);
  TempDir dir;
  CHECK(PosixEnv()->Open(dir / "none", OpenMode::kReadWrite, io).status().code() ==
        Code::kNotFound);
  REQUIRE(PosixEnv()->Open(dir / "f", OpenMode::kCreateNew, io).ok());
  const Status exists = PosixEnv()->Open(dir / "f", OpenMode::kCreateNew, io).status();
  CHECK(exists.code() == Code::kExists);
  CHECK(exists.path() == dir / "f");
  CHECK(PosixEnv()->Open(dir.path(), OpenMode::kRead).status().sys_errno() == EISDIR);
  // A device that is always full.
  auto full = PosixEnv()->Open("/dev/full", OpenMode::kReadWrite, io);
  REQUIRE(full.ok());
  const std::string data(5000, 'x');
  const std::string_view piece = data;
  const Status refused = (*full)->WriteGatherAndSyncAt(7, {&piece, 1});
  CHECK(refused.code() == Code::kNoSpace);
  CHECK(refused.offset() == 7);
  CHECK((*full)->WriteAt(0, "x").code() == Code::kNoSpace);
}

TEST_CASE("file: reads stop at the end", "[file]") {
  TempDir dir;
  auto file = PosixEnv()->Open(dir / "f", OpenMode::kCreateNew);
  REQUIRE(file.ok());
  REQUIRE((*file)->WriteAt(0, "hello world").ok());
  char buffer[32];
  auto n = (*file)->ReadAt(6, buffer);
  REQUIRE(n.ok());
  CHECK(std::string_view(buffer, *n) == "world");
  CHECK(*(*file)->ReadAt(11, buffer) == 0);
  CHECK(*(*file)->ReadAt(100, buffer) == 0);
  REQUIRE((*file)->Truncate(5).ok());
  CHECK(*(*file)->Size() == 5);
  REQUIRE((*file)->Allocate(0, 10000).ok());
  CHECK(*(*file)->Size() == 10000);
  CHECK(ReadBack(dir / "f") == "hello" + std::string(9995, '\0'));
}

TEST_CASE("file: mappings", "[file]") {
  TempDir dir;
  const std::string content = Random(10000, 5);
  REQUIRE(WriteFileAtomically(PosixEnv(), dir / "f", content).ok());
  auto file = PosixEnv()->Open(dir / "f", OpenMode::kReadWrite);
  REQUIRE(file.ok());
  auto shared = (*file)->Map(0, 0, MapMode::kShared);
  auto own = (*file)->Map(4096, 100, MapMode::kPrivate);
  auto read = (*file)->Map(4096, 0, MapMode::kReadOnly);
  REQUIRE((shared.ok() && own.ok() && read.ok()));
  CHECK((*shared)->size() == 10000);
  CHECK((*read)->size() == 10000 - 4096);
  std::memcpy((*own)->data(), "private", 7);
  std::memcpy((*shared)->data() + 5000, "shared", 6);
  CHECK((*shared)->Sync(5000, 6).ok());
  CHECK((*shared)->Sync(9999, 2).code() == Code::kOutOfRange);
  file->reset();  // mappings outlive their file
  std::string expected = content;
  expected.replace(5000, 6, "shared");
  CHECK(ReadBack(dir / "f") == expected);
  CHECK(std::string_view((*read)->data() + 5000 - 4096, 6) == "shared");
  auto again = PosixEnv()->Open(dir / "f", OpenMode::kRead);
  CHECK((*again)->Map(100, 10, MapMode::kReadOnly).status().code() == Code::kInvalidArgument);
  CHECK((*again)->Map(4096, 9000, MapMode::kReadOnly).status().code() == Code::kOutOfRange);
}

// On a full tmpfs a page that a write to a private mapping asks of the file system is a SIGBUS.
TEST_CASE("file: writing to holes of a private mapping takes nothing of the file system", "[file]") {
  const std::string path = "/dev/shm/hotkv-holes-" + std::to_string(getpid());
  auto file = PosixEnv()->Open(path, OpenMode::kCreateNew);
  if (!file.ok()) return;  // no such folder on this machine
  constexpr size_t kBytes = 1 << 20;
  REQUIRE((*file)->Truncate(kBytes).ok());
  REQUIRE((*file)->WriteAt(40'000, "middle").ok());
  REQUIRE((*file)->WriteAt(500'000, std::string(10'000, 'x')).ok());
  const auto blocks = [&] {
    struct stat info;
    REQUIRE(stat(path.c_str(), &info) == 0);
    return info.st_blocks;
  };
  const auto before = blocks();
  for (const uint64_t offset : {uint64_t{0}, uint64_t{8192}}) {
    auto own = (*file)->Map(offset, kBytes - offset, MapMode::kPrivate);
    REQUIRE(own.ok());
    std::string expected(kBytes - offset, '\0');
    expected.replace(40'000 - offset, 6, "middle");
    expected.replace(500'000 - offset, 10'000, 10'000, 'x');
    CHECK(std::memcmp((*own)->data(), expected.data(), expected.size()) == 0);
    std::memset((*own)->data(), 'o', kBytes - offset);
    CHECK(blocks() == before);
  }
  char middle[6];
  REQUIRE((*file)->ReadAt(40'000, middle).ok());
  CHECK(std::string_view(middle, 6) == "middle");
  CHECK(PosixEnv()->Unlink(path).ok());
}

TEST_CASE("file: folders, renames, removal of a tree", "[file]") {
  Env* env = PosixEnv();
  TempDir dir;
  REQUIRE(env->MakeDir(dir / "a").ok());
  REQUIRE(env->MakeDir(dir / "a").ok());
  REQUIRE(env->MakeDir(dir / "a/b").ok());
  REQUIRE(WriteFileAtomically(env, dir / "a/b/x", "one").ok());
  REQUIRE(WriteFileAtomically(env, dir / "a/b/x", "two").ok());
  REQUIRE(WriteFileAtomically(env, dir / "a/y", "three").ok());
  CHECK(ReadBack(dir / "a/b/x") == "two");
  CHECK(env->MakeDir(dir / "a/y").code() == Code::kExists);
  CHECK(env->RemoveDir(dir / "a").code() != Code::kOk);
  REQUIRE(env->Rename(dir / "a/b/x", dir / "a/y").ok());
  CHECK(ReadBack(dir / "a/y") == "two");
  auto entries = env->List(dir / "a");
  REQUIRE(entries.ok());
  REQUIRE(entries->size() == 2);
  for (const DirEntry& e : *entries) {
    CHECK(((e.name == "b" && e.is_dir) || (e.name == "y" && !e.is_dir && e.size == 3)));
  }
  CHECK(env->SyncDir(dir / "a").ok());
  CHECK(RemoveTree(env, dir / "a").ok());
  CHECK_FALSE(*env->Exists(dir / "a"));
  CHECK(RemoveTree(env, dir / "a").ok());
  CHECK(*env->FreeBytes(dir.path()) > 0);
  CHECK(ParentFolder("a/b/c") == "a/b");
  CHECK(ParentFolder("a/b/") == "a");
  CHECK(ParentFolder("/a") == "/");
  CHECK(ParentFolder("a") == ".");
}

TEST_CASE("file: a lock is held once", "[file]") {
  TempDir dir;
  auto lock = PosixEnv()->Lock(dir / "LOCK");
  REQUIRE(lock.ok());
  CHECK(PosixEnv()->Lock(dir / "LOCK").status().code() == Code::kLocked);
  lock->reset();
  CHECK(PosixEnv()->Lock(dir / "LOCK").ok());
}

}  // namespace
}  // namespace hotkv
