// Repair of a damaged log: finds the last good block, and cuts the log behind it in the catalog. The files that the cut
// concerns and the catalog are copied beside the directory first.
//
// A log that only ends in a torn tail needs no repair: the server cuts it by itself. A snapshot that is later than the cut
// cannot be used with the log before it: an older one is taken where there is one, else the result would mix moments, which
// only `force` allows.
//
// Thread rules: one thread; the directory's lock is held by the caller's StoredDirectory.
// Errors: those of the files; kBusy where only `force` would go on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "persistence/catalog/catalog_state.h"
#include "persistence/log/log_reader.h"
#include "tools/hotkv_tool/offline_directory.h"

namespace hotkv {

// What is wrong and what a repair would do about it.
struct LogRepairPlan {
  Status damage;                       // of the first bad place
  LogRange range;                      // the range that is damaged
  LogEnd end;                          // the last good block; segment 0: none
  std::vector<uint64_t> cut_segments;  // the one that is cut, if any, and those behind it
  uint64_t lost_bytes = 0;             // of log files behind the cut
  std::vector<uint64_t> late_snapshots;  // live ones that are later than the cut
  bool has_snapshot = false;           // a live one is not
  std::vector<GenerationRef> late_generations;  // index generations published after the cut
  bool mixes_moments() const {
    return (!late_snapshots.empty() && !has_snapshot) || !late_generations.empty();
  }
};

// The blocks of the range up to the first place that is damaged; the damage, or OK.
Status ScanGoodPart(LogScanOptions options, std::vector<LogBlockRef>* blocks);

// Nothing: the log has no damage.
Result<std::optional<LogRepairPlan>> PlanLogRepair(StoredDirectory* directory);

// Returns the folder that the original files were copied to.
Result<std::string> RepairLog(StoredDirectory* directory, const LogRepairPlan& plan);

}  // namespace hotkv
