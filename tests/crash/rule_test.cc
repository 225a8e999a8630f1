// The simulation is tested itself: with any one rule of docs/persistence.md switched off it must
// see a violation within a bounded number of seeds.
#include <catch2/catch.hpp>

#include "engine/base/rule_switch.h"
#include "tests/crash/power_cut_run.h"

using namespace hotkv;
using namespace hotkv::crash;

namespace {

constexpr uint64_t kSeedsMax = 400;
constexpr int kRounds = 3;

// Whether a run with the rule off goes wrong; with `how` it can.
bool FindsViolation(Rule rule, WorldOptions how) {
  const rules::Off off(rule);
  for (uint64_t seed = 1; seed <= kSeedsMax; ++seed) {
    how.seed = seed;
    uint64_t cuts = 0;
    if (RunCuts(how, kRounds, &cuts).has_value()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("Without a rule of the log the power-cut simulation finds a violation") {
  const WorldOptions every_second{.fsync = FsyncPolicy::kEverySecond};
  const WorldOptions failing{.fsync = FsyncPolicy::kEverySecond, .faults = true};
  CHECK(FindsViolation(Rule::kSyncOldSegmentAtRotation, every_second));
  CHECK(FindsViolation(Rule::kSegmentLiveBeforeFirstBlock, every_second));
  CHECK(FindsViolation(Rule::kCutByEpoch, every_second));
  CHECK(FindsViolation(Rule::kSyncBeforePublish, every_second));
  CHECK(FindsViolation(Rule::kSyncAcceptedBlocks, {.fsync = FsyncPolicy::kNo}));
  CHECK(FindsViolation(Rule::kFailedFileNeverWritten, failing));
  CHECK(FindsViolation(Rule::kEndInCatalogBeforeResume, failing));
}

TEST_CASE("Without a rule of snapshots the power-cut simulation finds a violation") {
  const WorldOptions every_second{.fsync = FsyncPolicy::kEverySecond};
  CHECK(FindsViolation(Rule::kSnapshotAfterLog, every_second));
  CHECK(FindsViolation(Rule::kSnapshotSyncedBeforeLive, every_second));
  CHECK(FindsViolation(Rule::kKeepLogFromOldestCut, every_second));
}

TEST_CASE("Without a rule of objects the power-cut simulation finds a violation") {
  const WorldOptions unsynced{
      .fsync = FsyncPolicy::kNo, .object_percent = 85, .snapshots = false, .large_percent = 0};
  CHECK(FindsViolation(Rule::kSlotReuse, unsynced));
  CHECK(FindsViolation(Rule::kGenerationAfterLog, unsynced));
}
