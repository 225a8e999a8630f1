// Crash points: the process dies at each named point that a workload with everything in it passes.
// What a new start finds is compared with the model, and nothing may have leaked.
#include <catch2/catch.hpp>

#include <map>

#include "engine/base/crash_point.h"
#include "tests/crash/sim_world.h"

using namespace hotkv;
using namespace hotkv::crash;

namespace {

constexpr uint64_t kSeeds[] = {3, 20};

// Commits, rotations, snapshots, checkpoints, kills, a switch of the log, clean and unclean starts.
// Ends early when the image that it was to take is there.
std::optional<std::string> Workload(SimWorld& world) {
  if (auto bad = world.Open()) return bad;
  for (int life = 0; life < 4; ++life) {
    world.Steps(60);
    if (world.cut_taken()) return std::nullopt;
    world.directory().BeginSnapshot(SnapshotWhy::kBackgroundSave);
    world.FinishSnapshot();
    world.Steps(60);
    if (life == 1) {
      world.SwitchLog(false);
      world.Steps(20);
      world.SwitchLog(true);
      world.FinishSnapshot();
    }
    if (world.cut_taken()) return std::nullopt;
    if (life % 2 == 0) {
      world.Kill();
    } else if (auto bad = world.Shutdown()) {
      return bad;
    }
    if (auto bad = world.Open()) return bad;
    if (world.cut_taken()) return std::nullopt;
  }
  return std::nullopt;
}

WorldOptions Options(uint64_t seed) {
  return {.seed = seed,
          .fsync = FsyncPolicy::kEverySecond,
          .object_percent = seed == kSeeds[0] ? 30u : 10u,
          .vector_percent = seed == kSeeds[0] ? 0u : 25u};
}

// How often each point is passed.
std::map<std::string, uint64_t> CountPasses(uint64_t seed) {
  std::map<std::string, uint64_t> passes;
  SimWorld world(Options(seed));
  for (const std::string& name : crash_points::Names()) {
    crash_points::CallAt(name, [&passes, name] { ++passes[name]; });
  }
  const auto bad = Workload(world);
  crash_points::Clear();
  INFO(bad.value_or(""));
  REQUIRE(!bad.has_value());
  return passes;
}

void DieAtPass(uint64_t seed, const std::string& name, uint64_t nth) {
  INFO("seed " << seed << ", " << name << " passed for the " << nth << ". time");
  SimWorld world(Options(seed));
  uint64_t passed = 0;
  crash_points::CallAt(name, [&] {
    if (++passed == nth) world.CutNow();
  });
  auto bad = Workload(world);
  crash_points::Clear();
  if (!bad.has_value() && world.cut_taken()) {
    world.TakeCut();
    bad = world.Open();
    if (!bad.has_value()) bad = world.CheckFiles();
  }
  INFO(bad.value_or(""));
  REQUIRE(!bad.has_value());
}

}  // namespace

TEST_CASE("A crash at each named point leaves a state that was, and no file behind") {
  for (const uint64_t seed : kSeeds) {
    (void)CountPasses(seed);  // so that all names are known
    const auto passes = CountPasses(seed);
    CHECK(passes.size() >= 25);
    // With vector indexes, and copies of them.
    if (seed != kSeeds[0]) CHECK(passes.contains("object.first_generation_live"));
    for (const auto& [name, count] : passes) {
      std::set<uint64_t> which{1, (count + 1) / 2, count};
      for (const uint64_t nth : which) DieAtPass(seed, name, nth);
    }
  }
}
