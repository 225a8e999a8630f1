#include "persistence/catalog/catalog_log.h"

#include <algorithm>

namespace hotkv {

Result<std::vector<LogSegmentEntry>> CatalogLog::Segments() {
  std::vector<LogSegmentEntry> segments;
  catalog_->With([&](const CatalogState& state) {
    for (const auto& [number, entry] : state.segments) segments.push_back(entry);
  });
  return segments;
}

Status CatalogLog::Commit(const LogCatalogChange& change) {
  return catalog_->Update([&](CatalogState* state) {
    for (const LogSegmentEntry& entry : change.put) {
      state->segments[entry.number] = entry;
      if (entry.ended) state->epoch_max = std::max(state->epoch_max, entry.last_epoch);
    }
    for (const uint64_t number : change.remove) state->segments.erase(number);
  });
}

}  // namespace hotkv
