// Power cuts at random moments: a recovered state is the model's at some epoch that is at least the
// last acknowledged one.
#include <catch2/catch.hpp>

#include <cstdlib>

#include "tests/crash/power_cut_run.h"

using namespace hotkv;
using namespace hotkv::crash;

namespace {

// HOTKV_LONG=1: as many times as long.
uint64_t Scaled(uint64_t runs) { return std::getenv("HOTKV_LONG") != nullptr ? runs * 50 : runs; }

void RunSeeds(WorldOptions options, uint64_t first, uint64_t seeds, int rounds) {
  uint64_t cuts = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    options.seed = seed;
    const auto bad = RunCuts(options, rounds, &cuts);
    INFO("seed " << seed << ": " << bad.value_or(""));
    REQUIRE(!bad.has_value());
  }
  CHECK(cuts >= seeds * static_cast<uint64_t>(rounds));
}

}  // namespace

TEST_CASE("Power cuts under appendfsync everysec") {
  RunSeeds({.fsync = FsyncPolicy::kEverySecond}, 1, Scaled(40), 4);
}

TEST_CASE("Power cuts under appendfsync always") {
  RunSeeds({.fsync = FsyncPolicy::kAlways}, 1001, Scaled(40), 4);
}

TEST_CASE("Power cuts under appendfsync no") {
  RunSeeds({.fsync = FsyncPolicy::kNo}, 2001, Scaled(40), 4);
}

TEST_CASE("Power cuts while the log is switched on and off") {
  RunSeeds({.switch_log = true}, 4001, Scaled(60), 4);
  RunSeeds({.append_only = false, .fsync = FsyncPolicy::kAlways, .switch_log = true}, 5001,
           Scaled(60), 4);
}

TEST_CASE("Power cuts with objects in folders of their own") {
  RunSeeds(
      {.fsync = FsyncPolicy::kNo, .object_percent = 85, .snapshots = false, .large_percent = 0},
      11001, Scaled(30), 4);
  RunSeeds({.object_percent = 33}, 8001, Scaled(30), 4);
  RunSeeds({.append_only = false, .object_percent = 33}, 9001, Scaled(30), 4);
  RunSeeds({.switch_log = true, .object_percent = 33}, 10001, Scaled(30), 4);
}

TEST_CASE("Power cuts with vector indexes") {
  RunSeeds({.vector_percent = 50}, 12001, Scaled(6), 4);
  RunSeeds({.fsync = FsyncPolicy::kNo, .vector_percent = 80, .large_percent = 0}, 13001, Scaled(6),
           4);
  RunSeeds({.append_only = false, .vector_percent = 50}, 14001, Scaled(6), 4);
}

TEST_CASE("Power cuts with failing writes and syncs before them") {
  RunSeeds({.fsync = FsyncPolicy::kEverySecond, .faults = true}, 6001, Scaled(40), 4);
  RunSeeds({.fsync = FsyncPolicy::kAlways, .faults = true}, 7001, Scaled(40), 4);
}

TEST_CASE("Power cuts without a log: each state is a snapshot's moment") {
  RunSeeds({.append_only = false}, 3001, Scaled(40), 4);
}
