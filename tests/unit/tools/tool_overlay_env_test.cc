// OverlayEnv: what is written is seen through it, and nothing of it reaches the real files.
#include "tools/hotkv_tool/overlay_env.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/unit/tools/tool_support.h"

namespace hotkv {
namespace {

std::map<std::string, std::string> Everything(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    files[entry.path().string()] = entry.is_regular_file() ? ReadFileBytes(entry.path().string()) : "folder";
  }
  return files;
}

std::string Content(Env* env, const std::string& path) {
  const auto content = ReadWholeFile(env, path);
  INFO(content.status().ToString());
  REQUIRE(content.ok());
  return *content;
}

std::vector<std::string> Names(Env* env, const std::string& folder) {
  const auto entries = env->List(folder);
  REQUIRE(entries.ok());
  std::vector<std::string> names;
  for (const DirEntry& entry : *entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("overlay: writes, mappings, new and removed files stay in it") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "data");
  const std::string written = folder.Write("data/written", "original");
  const std::string mapped = folder.Write("data/mapped", "original");
  const std::string removed = folder.Write("data/removed", "original");
  const auto before = Everything(folder / "data");
  {
    OverlayEnv env(PosixEnv());
    auto file = env.Open(written, OpenMode::kReadWrite, FileIo::kPosix);
    REQUIRE(file.ok());
    CHECK((*file)->path() == written);
    REQUIRE((*file)->WriteAt(4, "CHANGED").ok());
    REQUIRE((*file)->Sync().ok());
    CHECK(Content(&env, written) == "origCHANGED");

    auto map_file = env.Open(mapped, OpenMode::kCreateOrOpen, FileIo::kPosix);
    REQUIRE(map_file.ok());
    auto mapping = (*map_file)->Map(0, 8, MapMode::kShared);
    REQUIRE(mapping.ok());
    std::memcpy((*mapping)->data(), "ORIG", 4);
    CHECK(std::string_view((*mapping)->data(), 8) == "ORIGinal");

    REQUIRE(env.Unlink(removed).ok());
    CHECK_FALSE(*env.Exists(removed));
    CHECK(env.Open(removed, OpenMode::kRead, FileIo::kPosix).status().code() == Code::kNotFound);
    CHECK(env.Unlink(removed).code() == Code::kNotFound);

    const std::string fresh = folder / "data/fresh";
    auto made = env.Open(fresh, OpenMode::kCreateNew, FileIo::kPosix);
    REQUIRE(made.ok());
    REQUIRE((*made)->WriteAt(0, "new").ok());
    CHECK(Content(&env, fresh) == "new");
    CHECK(env.Open(fresh, OpenMode::kCreateNew, FileIo::kPosix).status().code() == Code::kExists);
    CHECK(env.Open(mapped, OpenMode::kCreateNew, FileIo::kPosix).status().code() == Code::kExists);
    CHECK(Names(&env, folder / "data") == std::vector<std::string>{"fresh", "mapped", "written"});
    CHECK(Everything(folder / "data") == before);
  }
  CHECK(Everything(folder / "data") == before);
}

TEST_CASE("overlay: a folder is emptied and made anew") {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "index/7");
  folder.Write("index/7/a", "1");
  folder.Write("index/7/b", "2");
  OverlayEnv env(PosixEnv());
  REQUIRE(RemoveTree(&env, folder / "index/7").ok());
  CHECK_FALSE(*env.Exists(folder / "index/7"));
  REQUIRE(env.MakeDir(folder / "index/7").ok());
  CHECK(Names(&env, folder / "index/7").empty());
  auto file = env.Open(folder / "index/7/a", OpenMode::kCreateNew, FileIo::kPosix);
  REQUIRE(file.ok());
  REQUIRE((*file)->WriteAt(0, "again").ok());
  CHECK(Names(&env, folder / "index/7") == std::vector<std::string>{"a"});
  CHECK(Content(&env, folder / "index/7/a") == "again");
  CHECK(ReadFileBytes(folder / "index/7/a") == "1");
}

}  // namespace
}  // namespace hotkv
