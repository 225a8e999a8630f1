// Power cuts at random moments: a recovered state is the model's at some epoch that is at least the last acknowledged one.
#include <catch2/catch.hpp>

#include <cstdlib>

#include "tests/crash/sim_world.h"

using namespace hotkv;
using namespace hotkv::crash;

namespace {

// HOTKV_LONG=1: as many times as long.
uint64_t Scaled(uint64_t runs) { return std::getenv("HOTKV_LONG") != nullptr ? runs * 50 : runs; }

// The running process ends: mostly by a cut at some operation, else killed or stopped.
std::optional<std::string> End(SimWorld& world) {
  const uint64_t dice = world.random().Below(10);
  const uint64_t events = dice < 7 ? 1 + world.random().Below(400) : 0;
  world.ArmCut(events);
  for (int i = 0; i < 400 && !world.cut_taken(); ++i) world.Step();
  if (dice == 8) {
    world.Kill();
  } else if (dice == 9 && !world.options().faults) {
    return world.Shutdown();
  } else {
    world.TakeCut();
  }
  return std::nullopt;
}

// One run: work, an end, a start that is cut as well, a start, and so on. Returns the first violation.
std::optional<std::string> Run(const WorldOptions& options, int rounds, uint64_t* cuts) {
  SimWorld world(options);
  if (auto bad = world.Open()) return bad;
  for (int round = 0; round < rounds; ++round) {
    if (auto bad = End(world)) return bad;
    // The second cut, somewhere in the start.
    world.ArmCut(1 + world.random().Below(60));
    if (auto bad = world.Open()) return bad;
    for (int i = 0; i < 10 && !world.cut_taken(); ++i) world.Step();
    world.TakeCut();
    if (auto bad = world.Open()) return bad;
  }
  *cuts += world.cuts();
  return std::nullopt;
}

void RunSeeds(WorldOptions options, uint64_t first, uint64_t seeds, int rounds) {
  uint64_t cuts = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    options.seed = seed;
    const auto bad = Run(options, rounds, &cuts);
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

TEST_CASE("Power cuts with failing writes and syncs before them") {
  RunSeeds({.fsync = FsyncPolicy::kEverySecond, .faults = true}, 6001, Scaled(40), 4);
  RunSeeds({.fsync = FsyncPolicy::kAlways, .faults = true}, 7001, Scaled(40), 4);
}

TEST_CASE("Power cuts without a log: each state is a snapshot's moment") {
  RunSeeds({.append_only = false}, 3001, Scaled(40), 4);
}
