#include "tools/hotkv_tool/log_scan.h"

#include <algorithm>

#include <fmt/format.h>

namespace hotkv {

namespace {

// As Recovery: the highest epoch of which the range is known to have a durable block, by snapshots and generations.
uint64_t KnownDurable(const CatalogState& state, const LogRange& range) {
  uint64_t epoch = 0;
  const auto note = [&](uint64_t log_epoch) {
    const bool after = range.last_epoch != 0 && log_epoch > range.last_epoch;
    if (log_epoch >= range.first_epoch && !after) epoch = std::max(epoch, log_epoch);
  };
  note(state.log_epoch);
  for (const auto& [number, snapshot] : state.snapshots) {
    if (snapshot.state == FileState::kLive) note(snapshot.log_epoch);
  }
  for (const auto& [id, object] : state.objects) {
    const uint64_t current = object.current();
    if (current != 0) note(object.generations.at(current).log_epoch);
  }
  return epoch;
}

}  // namespace

LogScanOptions OptionsForRange(StoredDirectory* directory, const LogRange& range) {
  const CatalogState& state = directory->state();
  LogScanOptions options;
  options.env = directory->env();
  options.folder = directory->paths().log;
  options.identity = {state.directory_id, 1u << state.stripe_bits, state.hash_seed};
  options.segments = Recovery::SegmentsOf(state, range);
  options.durable_epoch = KnownDurable(state, range);
  return options;
}

std::string TornText(const LogTornTail& torn) {
  return fmt::format("torn tail, as after a crash: {} @{}: {}; the next start drops {} bytes, {} whole blocks", torn.path,
                     torn.offset, torn.reason, torn.bytes, torn.blocks);
}

Status ScanAllRanges(StoredDirectory* directory, const LogBlockVisitor& visitor, Problems* problems,
                     std::vector<std::string>* notes) {
  for (const auto& [first, range] : directory->state().ranges) {
    const LogScanOptions options = OptionsForRange(directory, range);
    if (options.segments.empty()) continue;
    Status visited;
    const Result<LogScanResult> result = ScanLog(options, [&](const LogBlockRef& block) {
      visited = visitor(block);
      return visited;
    });
    if (!visited.ok()) return visited;
    if (!result.ok()) {
      problems->Add(result.status());
    } else if (result->torn) {
      notes->push_back(TornText(*result->torn));
    }
  }
  return Status::Ok();
}

}  // namespace hotkv
