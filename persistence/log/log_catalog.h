// What the epoch log needs from the catalog: a durable, atomically changed list of segments.
// Implemented over LMDB in persistence/catalog; tests use a fake.
//
// A segment's life: *planned* before its file is made; *live* once file and folder are synced and
// before anything relies on it; *dropped* before its file is unlinked or reused under another
// number; then its entry is removed. At a start the files of planned and dropped segments are
// removed, and a file that no entry names is reported and left alone.
//
// A live segment gets its end when that is known to be durable: at rotation, when it is given up
// after a failure, and at the next start. So last_epoch of an ended segment counts as a durable
// watermark.
//
// Thread rules: any thread; calls of the log writer's threads may overlap.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/result.h"

namespace hotkv {

enum class SegmentState : uint8_t { kPlanned = 1, kLive = 2, kDropped = 3 };

struct LogSegmentEntry {
  uint64_t number = 0;
  uint64_t start = 0;  // start number of the server run that made it
  SegmentState state = SegmentState::kPlanned;
  uint64_t size_bytes = 0;  // of the file when made
  // All zero until the end is known.
  bool ended = false;
  uint64_t end_offset = 0;  // where its last block that counts ends; bytes behind it are never read
  uint64_t first_epoch = 0;  // of its blocks; 0: it has none
  uint64_t last_epoch = 0;

  bool operator==(const LogSegmentEntry&) const = default;
};

// How far a segment's blocks that count reach.
struct LogSegmentUse {
  uint64_t segment = 0;
  uint64_t end_offset = 0;
  uint64_t first_epoch = 0;
  uint64_t last_epoch = 0;
};

// All of it or nothing.
struct LogCatalogChange {
  std::vector<LogSegmentEntry> put;  // added, or replaced by number
  std::vector<uint64_t> remove;
};

class LogCatalog {
 public:
  virtual ~LogCatalog() = default;
  // Ascending by number.
  virtual Result<std::vector<LogSegmentEntry>> Segments() = 0;
  // Durable when it returns OK. After a failure the change is there or not.
  virtual Status Commit(const LogCatalogChange& change) = 0;
};

}  // namespace hotkv
