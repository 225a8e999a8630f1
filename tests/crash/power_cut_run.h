// Runs of the power-cut simulation.
#pragma once

#include <optional>
#include <string>

#include "tests/crash/sim_world.h"

namespace hotkv::crash {

// The running process ends: mostly by a cut at some operation, else killed or stopped.
inline std::optional<std::string> EndProcess(SimWorld& world) {
  const uint64_t dice = world.random().Below(10);
  const uint64_t events = dice < 6 ? 1 + world.random().Below(400) : 0;
  world.ArmCut(events);
  for (int i = 0; i < 400 && !world.cut_taken(); ++i) world.Step();
  if (dice == 7 || dice == 8) {
    world.Kill();
  } else if (dice == 9 && !world.options().faults) {
    return world.Shutdown();
  } else {
    world.TakeCut();
  }
  return std::nullopt;
}

// One run: work, an end, a start that is cut as well, a start, and so on. Returns the first
// violation.
inline std::optional<std::string> RunCuts(const WorldOptions& options, int rounds, uint64_t* cuts) {
  SimWorld world(options);
  if (auto bad = world.Open()) return bad;
  for (int round = 0; round < rounds; ++round) {
    if (auto bad = EndProcess(world)) return bad;
    // The second cut, somewhere in the start.
    world.ArmCut(1 + world.random().Below(world.random().Below(2) == 0 ? 40 : 200));
    if (auto bad = world.Open()) return bad;
    for (int i = 0; i < 25 && !world.cut_taken(); ++i) world.Step();
    world.TakeCut();
    if (auto bad = world.Open()) return bad;
  }
  *cuts += world.cuts();
  return world.CheckFiles();
}

}  // namespace hotkv::crash
