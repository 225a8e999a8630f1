// DurabilityControl: what the server asks of the part that keeps the data on disk, and what it
// tells of it.
//
// Thread rules: any thread may call anything at any time, workers with stripe locks held (inside
// EXEC) included: except for Reload and Shutdown nothing here waits for a disk, a stripe or another
// worker. What takes long is begun and asked for again.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/result.h"

namespace hotkv {

struct WorkerState;

struct DurabilityStatus {
  bool log_on = false;              // appendonly
  std::string fsync_policy;         // "always", "everysec", "no"
  std::string log_error;            // empty: fine
  uint64_t log_bytes = 0;           // of its segments' files
  uint64_t log_written_bytes = 0;   // since start
  uint64_t log_base_bytes = 0;      // of these, before the newest snapshot began
  uint64_t log_buffered_bytes = 0;  // kept in memory until they are durable
  uint64_t log_segments = 0;
  uint64_t log_blocks = 0;
  uint64_t log_syncs = 0;
  uint64_t log_failures = 0;  // of writes and syncs

  bool snapshot_running = false;
  bool snapshot_scheduled = false;
  bool snapshot_is_rewrite = false;  // asked for by BGREWRITEAOF
  int64_t snapshot_started_ms = 0;
  double snapshot_percent = 0;
  uint64_t snapshots = 0;           // completed since start
  std::string last_snapshot_error;  // of the last one; empty: fine
  int64_t last_snapshot_seconds = -1;
  int64_t last_save_ms = 0;  // when the newest snapshot became live; start, where there is none
  uint64_t changes_since_save = 0;

  double loaded_percent = 100;  // of stripes and objects
  uint64_t loaded_keys = 0;     // at the last start
  std::string replication_id;   // 40 hex digits
};

enum class SnapshotReason : uint8_t { kSave, kBackgroundSave, kRewrite };
enum class SnapshotState : uint8_t { kRunning, kDone, kFailed };

class DurabilityControl {
 public:
  virtual ~DurabilityControl() = default;
  virtual DurabilityStatus GetStatus() = 0;
  // Begins a snapshot, or queues it behind the one that runs. The number is for StateOf.
  virtual Result<uint64_t> BeginSnapshot(SnapshotReason reason) = 0;
  virtual SnapshotState StateOf(uint64_t snapshot) = 0;
  // Does in this worker what a snapshot under way wants of all workers; for a caller that has
  // stopped the others.
  virtual void HelpSnapshot(WorkerState& worker) = 0;
  // The log is on and goes on from something that is on disk. False from CONFIG SET appendonly yes
  // until the snapshot that it begins with is in place: what is synced before would not come back.
  virtual bool LogCounts() = 0;
  // The log writer syncs what there is now, not at the next second.
  virtual void RequestSync() = 0;
  // DEBUG RELOAD, DEBUG LOADAOF: empties the keyspace and loads it from disk again, in place. The
  // caller has stopped all other workers and seen to it that what is to come back is durable.
  virtual Status Reload() = 0;
  virtual Status ChangeReplicationId() = 0;
  virtual void Tick(int64_t now_ms) = 0;  // ten times a second: save points
  virtual Status Shutdown(bool save) = 0;
};

}  // namespace hotkv
