// CatalogState: what the catalog says, as values. It names files and what they cover, never what
// the data is: each entry can be found again from the files' headers (`hotkv-tool export --salvage`
// works without a catalog).
//
// A file or folder is `planned` before it is made, `live` once it and its directory are synced and
// before anything relies on it, `dropped` before it is unlinked. So a crash leaves nothing unknown:
// planned and dropped ones are removed at start.
//
// Thread rules: values only. Bytes: docs/formats/catalog.md; change together with it,
// catalog_state.cc and tests/golden.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "persistence/catalog/catalog_store.h"
#include "persistence/log/log_catalog.h"

namespace hotkv {

// Of the directory as a whole: each file's header repeats it. A newer one is refused.
inline constexpr uint32_t kDirectoryFormat = 1;

enum class FileState : uint8_t { kPlanned = 1, kLive = 2, kDropped = 3 };

struct GenerationRef {
  uint64_t object_id = 0;
  uint64_t generation = 0;
  auto operator<=>(const GenerationRef&) const = default;
};

struct SnapshotRecord {
  FileState state = FileState::kPlanned;
  uint64_t from_epoch = 0;  // effects from this epoch on are needed with it (the oldest cut)
  uint64_t last_epoch = 0;  // of its last section
  // The log had a durable block of this epoch when the snapshot went live (0: there was no log): a
  // watermark.
  uint64_t log_epoch = 0;
  bool has_effects = false;  // the effects between first and last cut are in the file: it is an
                             // exact moment by itself
  int64_t created_us = 0;
  uint64_t bytes = 0;
  uint64_t entries = 0;
  std::vector<GenerationRef> generations;  // what its object sections refer to
  auto operator<=>(const SnapshotRecord&) const = default;
};

// A stretch of epochs that the log covers without a gap. appendonly no ends one; a later yes begins
// another. A snapshot goes on with a range that began no later than the snapshot did; with no
// snapshot only a range that began at epoch 0 will do.
struct LogRange {
  uint64_t first_epoch = 0;
  uint64_t last_epoch = 0;     // 0: still going on
  uint64_t first_segment = 0;  // its segments: from this number up to the next range's first
  auto operator<=>(const LogRange&) const = default;
};

struct GenerationRecord {
  FileState state = FileState::kPlanned;
  uint64_t from_lsn = 0;   // effects after it are applied to the generation
  uint64_t log_epoch = 0;  // as in SnapshotRecord
  auto operator<=>(const GenerationRecord&) const = default;
};

struct ObjectRecord {
  FileState state = FileState::kPlanned;  // of the folder
  uint8_t type = 0;
  uint64_t next_generation = 1;
  std::map<uint64_t, GenerationRecord> generations;
  // The newest live one; 0: none.
  uint64_t current() const;
  auto operator<=>(const ObjectRecord&) const = default;
};

struct CatalogState {
  // Of the directory, fixed at its first start.
  uint32_t format = 0;        // 0: not initialised
  uint64_t directory_id = 0;  // random; every file's header has it
  uint32_t stripe_bits = 0;
  uint64_t hash_seed = 0;

  std::string server_id;       // 40 hexadecimal digits
  std::string replication_id;  // 40 hexadecimal digits; a new one when a tail was cut
  uint64_t start_number = 0;   // of the running or last process
  uint64_t next_object_id = 1;
  uint64_t next_file_number = 1;  // of snapshots
  // The log had a durable block of this epoch at the last clean stop: a cut tail of a log that was
  // stopped is no crash's.
  uint64_t log_epoch = 0;
  uint64_t epoch_max = 0;  // the highest epoch that any file named in here is known to have

  std::map<uint64_t, SnapshotRecord> snapshots;
  std::map<uint64_t, LogSegmentEntry> segments;
  std::map<uint64_t, LogRange> ranges;  // by first epoch
  std::map<uint64_t, ObjectRecord> objects;
  std::map<std::string, std::string> settings;  // of the server (ACL users), kept as they are

  bool operator==(const CatalogState&) const = default;
};

CatalogRecords EncodeCatalog(const CatalogState& state);
// kUnsupported for a newer format (told before anything else is read), kCorruption with the
// record's name.
Result<CatalogState> DecodeCatalog(const CatalogRecords& records);

std::string SnapshotFileName(uint64_t number);  // "00000007.hks"
// The number of a file of this kind, or nothing for another name.
Result<uint64_t> ParseFileNumber(const std::string& name, const std::string& extension);

}  // namespace hotkv
