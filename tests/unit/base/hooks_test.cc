// Crash points, sync points, rule switches and the server's log.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <thread>

#include "engine/base/crash_point.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/rule_switch.h"
#include "engine/base/sync_point.h"

namespace hotkv {
namespace {

#ifdef HOTKV_TEST_HOOKS

void PassTestPoint() { HOTKV_CRASH_POINT("test.point"); }

TEST_CASE("crash point: dies at the nth pass and is listed", "[hooks]") {
  PassTestPoint();
  const auto names = crash_points::Names();
  CHECK(std::find(names.begin(), names.end(), "test.point") != names.end());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    crash_points::DieAt("test.point", 3);
    PassTestPoint();
    PassTestPoint();
    PassTestPoint();
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == crash_points::kExitCode);
}

TEST_CASE("crash point: calls back until cleared", "[hooks]") {
  int calls = 0;
  crash_points::CallAt("test.point", [&] { ++calls; });
  PassTestPoint();
  PassTestPoint();
  crash_points::Clear();
  PassTestPoint();
  CHECK(calls == 2);
}

TEST_CASE("sync point: holds the threads asked for", "[hooks]") {
  std::atomic<int> passed{0};
  const auto run = [&] {
    HOTKV_SYNC_POINT("test.sync");
    passed.fetch_add(1);
  };
  SyncBlock block("test.sync", 1);
  std::thread first(run);
  REQUIRE(block.AwaitReached(1));
  std::thread second(run);  // over the limit: passes
  second.join();
  CHECK(passed.load() == 1);
  block.Release();
  first.join();
  CHECK(passed.load() == 2);
  run();
  CHECK(passed.load() == 3);
}

TEST_CASE("rule switch: off only while it lives", "[hooks]") {
  {
    rules::Off off(Rule::kWatermark);
    CHECK_FALSE(rules::Enabled(Rule::kWatermark));
    CHECK(rules::Enabled(Rule::kChain));
  }
  CHECK(rules::Enabled(Rule::kWatermark));
}

#endif

TEST_CASE("log: line format, levels, reopening", "[hooks]") {
  std::string folder = (std::filesystem::temp_directory_path() / "hotkv-log-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/log";
  SetLogLevel(LogLevel::kNotice);
  REQUIRE(OpenLogFile(path).ok());
  Log(LogLevel::kVerbose, "not shown");
  Log(LogLevel::kNotice, "one");
  std::filesystem::rename(path, path + ".1");
  Log(LogLevel::kWarning, "two");
  REQUIRE(ReopenLogFile().ok());
  SetLogLevel(LogLevel::kDebug);
  SetLogRole('S');
  Log(LogLevel::kDebug, "three");
  SetLogLevel(LogLevel::kNotice);
  SetLogRole('M');
  CHECK_FALSE(OpenLogFile(folder + "/none/log").ok());
  REQUIRE(OpenLogFile("").ok());
  auto before = ReadWholeFile(PosixEnv(), path + ".1");
  auto after = ReadWholeFile(PosixEnv(), path);
  REQUIRE((before.ok() && after.ok()));
  const std::string when = R"(\d\d \w{3} \d{4} \d\d:\d\d:\d\d\.\d{3})";
  CHECK(std::regex_match(*before,
                         std::regex("\\d+:M " + when + " \\* one\n\\d+:M " + when + " # two\n")));
  CHECK(std::regex_match(*after, std::regex("\\d+:S " + when + " \\. three\n")));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hotkv
