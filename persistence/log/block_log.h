// The log's blocks between memory and disk: keeps each block until it is durable, writes blocks to
// the current segment, rotates, syncs, and after a failure begins again in a new segment with all
// that is not durable. Private to persistence/log; log_writer.h has the epochs, the policy and the
// thread.
//
// Invariants: blocks are written in order of epochs. A segment is live in the catalog before a
// block in it counts. durable_end() moves only over blocks whose sync succeeded, in the order of
// the segments (one sync thread, first come first served). A file whose write or sync failed is
// never written again: its durable blocks get an end in the catalog, in the same transaction that
// makes the new segment live.
//
// Thread rules: the log writer's thread, but for segments() and what it hands to its own two task
// threads (making and dropping of files; syncs).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/tx/epoch.h"
#include "persistence/log/epoch_block.h"
#include "persistence/log/log_reader.h"
#include "persistence/log/segment_store.h"
#include "persistence/log/task_thread.h"

namespace hotkv {

struct BlockLogOptions {
  SegmentStoreOptions store;
  EpochClock* clock = nullptr;
  uint64_t segment_bytes_min = 0;
  uint64_t segment_bytes_max = 0;
  int64_t retry_us = 0;
  TaskMode tasks = TaskMode::kThread;
  // Where the log of earlier starts ends (LogScanResult).
  LogEnd end;
  LogEnd durable_end;
  std::vector<LogBlockRef> unsynced;
  std::vector<LogSegmentUse> uses;
};

class BlockLog {
 public:
  explicit BlockLog(BlockLogOptions options);
  ~BlockLog();

  Status Open();

  // An empty block to gather into.
  std::unique_ptr<EpochBlock> NewBlock();
  void Recycle(std::unique_ptr<EpochBlock> block);
  // Takes the block over; it is written by the next Write.
  void Append(std::unique_ptr<EpochBlock> block, int64_t now_us);

  enum class Sync : uint8_t { kNo, kWithWrite };
  // Writes what can be written now. After a failure: tries to begin again, when it is time.
  void Write(int64_t now_us, Sync sync);
  // Hands a sync of all that is written to the sync thread.
  void StartSync();
  // Takes finished syncs and a finished next segment into account; asks again for a next segment
  // that could not be made.
  void Poll(int64_t now_us);
  // Writes and syncs everything before it returns.
  Status Flush(int64_t now_us);
  // Flush, then the log ends for now; the next block begins a new chain.
  Status EndChain(int64_t now_us);
  // What is appended from here on does not follow what earlier starts have written.
  void BeginNewChain();
  void DropBefore(uint64_t epoch);
  void DropThrough(uint64_t segment);

  const LogEnd& written_end() const { return written_end_; }
  const LogEnd& durable_end() const { return durable_end_; }
  uint64_t watermark_in_file() const { return watermark_in_file_; }
  bool sync_in_flight() const { return syncs_in_flight_ > 0; }
  uint64_t retained_bytes() const { return retained_bytes_; }
  bool has_unwritten() const { return unwritten_ < retained_.size(); }
  // When the oldest block that is not durable was appended; 0: there is none.
  int64_t oldest_us() const { return retained_.empty() ? 0 : retained_.front().appended_us; }
  // Why nothing can be written, or soon cannot; OK in ordinary times.
  Status Trouble() const;
  // When Write or Poll would try again what has failed; INT64_MAX: nothing has.
  int64_t NextAttemptUs() const;
  const SegmentStore& segments() const { return store_; }
  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t syncs() const { return syncs_; }
  uint64_t failures() const { return failures_; }

 private:
  struct Retained {
    std::unique_ptr<EpochBlock> block;
    int64_t appended_us = 0;
    LogEnd end;  // once written
  };
  struct SyncDone {
    uint64_t generation = 0;
    LogEnd end;
    Status status;
  };

  bool begun() const { return begun_ && failure_.ok(); }
  size_t CountFitting() const;
  bool WriteSome(size_t count, Sync sync, int64_t now_us);
  // Seals blocks [first, first + count) for the segment from written_end on and collects their
  // bytes.
  LogEnd SealBlocks(size_t first, size_t count, const Segment& segment, uint64_t offset, LogEnd end,
                    std::vector<std::string_view>* pieces);
  void Rotate(int64_t now_us);
  bool TakeNext(uint64_t block_bytes, int64_t now_us);
  bool MakeOwn(uint64_t block_bytes, int64_t now_us);
  void PrepareNext();
  SegmentRef TakeReady();
  void SetAsideReadyBelow(uint64_t bytes);
  bool DiscardSkipped(int64_t now_us);
  void SubmitSync(SegmentRef segment, bool final);
  void AdvanceDurable(const LogEnd& end);
  void TrimPool(int64_t now_us);
  void Fail(const Status& status, int64_t now_us);
  void FailedToBegin(const Status& status, int64_t now_us);
  void Resume(int64_t now_us);
  Status ResumeIn(const SegmentRef& segment);
  Status SyncTail();
  Result<std::vector<std::string>> ReadTail();
  Status RewriteTail(const std::vector<std::string>& blocks);
  Status RetainTail(const std::vector<std::string>& blocks);
  bool EarlierSegmentsUnsynced() const;

  const BlockLogOptions options_;
  SegmentStore store_;

  std::deque<Retained> retained_;  // not durable, oldest first
  size_t unwritten_ = 0;           // index in retained_ of the first that is not in a file
  uint64_t retained_bytes_ = 0;
  std::vector<std::unique_ptr<EpochBlock>> pool_;
  size_t pool_bytes_ = 0;  // capacity of the blocks in it
  size_t pool_bytes_max_ = 0;
  int64_t last_append_us_ = 0;

  bool begun_ = false;         // this start has a segment
  bool tail_pending_ = false;  // blocks of an earlier start are not known durable yet
  bool chain_starts_ = false;  // the next block follows no other
  bool gap_ = false;           // because there were effects that are in no block
  Status failure_;
  int64_t next_attempt_us_ = 0;
  SegmentRef current_;
  uint64_t offset_ = 0;
  int64_t segment_begun_us_ = 0;
  uint64_t segment_bytes_ = 0;  // of the next one
  SegmentStore::Room room_ = SegmentStore::Room::kReserved;  // of new ones
  LogEnd written_end_;
  LogEnd durable_end_;
  uint64_t watermark_in_file_ = 0;
  uint64_t sync_started_epoch_ = 0;
  uint64_t syncs_in_flight_ = 0;
  uint64_t generation_ = 0;  // syncs of before a failure do not count
  uint64_t bytes_written_ = 0;
  uint64_t syncs_ = 0;
  uint64_t failures_ = 0;
  std::vector<uint64_t>
      skipped_;  // segments without blocks that must leave the catalog before a later one is used
  Status next_error_;  // of the last attempt to make the next segment
  int64_t next_retry_us_ = 0;

  std::mutex mutex_;
  // Guarded by mutex_: what the task threads hand back.
  std::vector<SyncDone> done_;
  uint64_t poisoned_generation_ = UINT64_MAX;  // one of its syncs has failed
  SegmentRef ready_;
  bool preparing_ = false;
  Status prepare_status_;

  // Last: their threads use all of the above.
  TaskThread files_;
  TaskThread sync_thread_;
};

}  // namespace hotkv
