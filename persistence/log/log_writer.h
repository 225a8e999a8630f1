// LogWriter: the thread that makes the workers' effects durable. It closes epochs, gathers their
// buffers into blocks, writes and syncs these by the policy, and publishes how far the log has come
// in the EpochClock (written: survives kill -9; durable: survives a power cut). docs/formats/log.md
// has the bytes, block_log.h the files.
//
// - always: the next epoch closes as soon as the last is durable; whoever holds replies back calls
// RequestSync.
// - everysec: blocks are written every few milliseconds and synced each second.
// - no: the kernel decides; synced on request, and when half of the memory for blocks is used.
// Under every policy RequestSync(epoch) makes the writer sync now (WAITAOF, snapshots). Where
// nothing was written in that epoch, an empty block carries it: each durable epoch of the clock is
// that of a block, or older than one. After one idle second, and at Stop, an empty block carries
// the watermark on.
//
// Failures. After a failed write or sync the server is read-only (read_only(), reason in stats()):
// every `retry_ms` the writer tries to write all blocks that are not durable to a new segment, and
// goes on by itself once they are. Blocks stay in memory until they are durable; beyond
// retained_bytes_max the clock's writes_wait() is set. It is never set while read_only(): callers
// refuse writes then. Replies held for an epoch above durable() when read_only() turns true are of
// unknown outcome.
//
// Thread rules: Start, Stop, EndLogging, BeginLogging, destructor: the owner. All else: any thread. on_progress
// and the tap run on the writer's thread and must be short.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/file.h"
#include "engine/tx/epoch.h"
#include "persistence/log/epoch_block.h"
#include "persistence/log/log_catalog.h"
#include "persistence/log/log_reader.h"

namespace hotkv {

class BlockLog;

enum class FsyncPolicy : uint8_t { kAlways, kEverySecond, kNo };

// Gets each closed epoch that has effects, in order, before it is written: a snapshot that runs
// while logging is off, replication.
class EpochTap {
 public:
  virtual ~EpochTap() = default;
  virtual void OnEpoch(const EpochBlock& block) = 0;
};

struct LogWriterOptions {
  Env* env = nullptr;
  std::string folder;  // .../log, made if missing
  EpochClock* clock = nullptr;
  LogCatalog* catalog = nullptr;
  LogIdentity identity;
  uint64_t start = 0;  // of this run; no earlier run may have had it
  // From LogScanResult. The clock's first epoch must be past end.epoch.
  LogEnd end;
  LogEnd durable_end;
  std::vector<LogBlockRef> unsynced;
  std::vector<LogSegmentUse> uses;

  FsyncPolicy policy = FsyncPolicy::kEverySecond;
  bool logging = true;
  uint64_t segment_bytes_min = 4 * 1024 * 1024;
  uint64_t segment_bytes_max = 256 * 1024 * 1024;
  uint64_t retained_bytes_max = 256 * 1024 * 1024;
  int64_t close_ms = 5;     // an epoch with effects is closed after that long (everysec, no)
  int64_t sync_ms = 1000;   // everysec
  // A sync starts sooner when so much was written since the last one (everysec, no). Blocks stay in memory until they are
  // durable; a second's worth at full speed would be written to, and read from, memory that no cache holds.
  uint64_t sync_bytes = 4 * 1024 * 1024;
  int64_t idle_ms = 1000;   // until the watermark block
  int64_t retry_ms = 1000;  // after a failure
  // On this kind of file a ring was measured dearer than system calls (docs/formats/log.md).
  FileIo io = FileIo::kPosix;
  // No threads: the owner calls Cycle, and everything happens inside it. For deterministic tests.
  bool manual = false;
  std::function<uint64_t()> wall_ms;  // none: the system clock
  std::function<void()> on_progress;  // durable() or read_only() has changed
};

struct LogStats {
  bool logging = false;
  bool read_only = false;
  std::string reason;  // why it is read-only
  uint64_t retained_bytes = 0;
  uint64_t bytes_written = 0;
  uint64_t blocks = 0;
  uint64_t syncs = 0;
  uint64_t failures = 0;
  uint64_t segments = 0;
  uint64_t segment_bytes = 0;
};

class LogWriter {
 public:
  // Cleans up what the catalog lists as planned or dropped. The first segment of this start is made
  // by the thread; until then blocks wait.
  static Result<std::unique_ptr<LogWriter>> Start(LogWriterOptions options);
  // Without Stop: as a crash, what is not written is lost.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Everything up to now is durable, and the log says so, when this returns OK. No commit may run
  // any more.
  Status Stop();

  // Asks for durable() >= epoch soon (while logging is off: for its close). Cheap when somebody has
  // asked already.
  void RequestSync(uint64_t epoch);
  FsyncPolicy policy() const { return policy_.load(std::memory_order_relaxed); }
  void SetPolicy(FsyncPolicy policy);
  bool read_only() const { return read_only_.load(std::memory_order_acquire); }
  LogStats stats() const;
  // Segments that end before this epoch are no longer needed by anybody.
  void DropBefore(uint64_t epoch);
  // Nor are those up to this number, all of a log that was ended: also where a crash left them without an end.
  void DropThrough(uint64_t segment);
  // Null: none.
  void SetTap(EpochTap* tap);
  // The catalog's segments as the writer knows them.
  std::vector<LogSegmentEntry> Segments() const;

  // CONFIG SET appendonly no: all is synced, the log ends; epochs go on, and both marks follow at
  // once. Waits. Returns the last epoch that is in the log.
  Result<uint64_t> EndLogging();
  // CONFIG SET appendonly yes: a new chain begins, which no scan connects with what was before the
  // gap; it counts once a snapshot taken since is live. Waits.
  Status BeginLogging();
  bool logging() const { return logging_.load(std::memory_order_acquire); }

  // Manual mode: one turn. The value is when the next one is due, in microseconds from now_us.
  int64_t Cycle(int64_t now_us);

 private:
  explicit LogWriter(LogWriterOptions options);
  Status SetLogging(bool on);

  void Loop();
  bool ShouldClose(int64_t now_us) const;
  void CloseEpoch(int64_t now_us);
  void AppendBlock(std::unique_ptr<EpochBlock> block, int64_t now_us);
  void MaybeSync(int64_t now_us);
  bool IdleBlockIsDue(int64_t now_us) const;
  void ApplyLogging(int64_t now_us);
  void PublishState(int64_t now_us);
  int64_t NextDue(int64_t now_us) const;
  Status FinishLog(int64_t now_us);
  uint64_t WallMs();

  const LogWriterOptions options_;
  EpochClock* const clock_;
  std::unique_ptr<BlockLog> log_;

  // The writer's thread only.
  uint64_t last_closed_ = 0;  // epoch
  uint64_t last_block_ = 0;   // epoch of the last block
  uint64_t last_data_ = 0;    // epoch of the last block with effects, also of earlier starts
  uint64_t wall_ms_ = 0;
  int64_t last_close_us_ = 0;
  int64_t last_append_us_ = 0;
  int64_t last_sync_us_ = 0;
  uint64_t blocks_ = 0;
  uint64_t durable_told_ = 0;

  std::atomic<FsyncPolicy> policy_;  // relaxed
  std::atomic<uint64_t> sync_wanted_{
      0};  // highest epoch asked for; release in RequestSync, acquire by the writer
  std::atomic<bool> read_only_{false};   // release by the writer
  std::atomic<bool> logging_;            // release by the writer
  std::atomic<EpochTap*> tap_{nullptr};  // release in SetTap, acquire by the writer
  std::atomic<bool> stop_{false};        // release by the owner
  std::atomic<bool> abandon_{false};     // release by the owner

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  LogStats stats_;
  bool logging_wanted_;
  bool logging_answered_ = true;
  uint64_t last_logged_ = 0;  // when the log was last ended
  Status logging_status_;
  Status stop_status_;

  std::thread thread_;
};

}  // namespace hotkv
