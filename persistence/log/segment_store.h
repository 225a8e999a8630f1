// The log's files and their catalog entries: makes segments (zero-filled ahead or recycled), ends
// them, drops them. Private to persistence/log.
//
// Each file passes through the states of log_catalog.h; every change of state is durable in the
// catalog before the next step, so a crash between any two steps leaves nothing that Open does not
// clean up.
//
// Thread rules: any thread. Make may take long (it fills and syncs a file) and holds no lock
// meanwhile.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "persistence/log/log_catalog.h"
#include "persistence/log/log_format.h"

namespace hotkv {

// An open segment to write to.
struct Segment {
  uint64_t number = 0;
  uint64_t size_bytes = 0;
  std::string path;
  // Shared: the writer and a sync in flight may hold it at once.
  std::shared_ptr<File> file;
  uint64_t first_epoch = 0;  // of its blocks; the log writer's
};
using SegmentRef = std::shared_ptr<Segment>;

struct SegmentStoreOptions {
  Env* env = nullptr;
  std::string folder;
  LogCatalog* catalog = nullptr;
  LogIdentity identity;
  uint64_t start = 0;
  FileIo io = FileIo::kPosix;
};

class SegmentStore {
 public:
  explicit SegmentStore(SegmentStoreOptions options) : options_(std::move(options)) {}

  // Reads the catalog and removes what planned and dropped entries have left.
  Status Open();

  enum class Entered : uint8_t {
    kLive,     // usable as soon as it is made
    kPlanned,  // the caller makes it live together with other changes (Commit)
  };
  enum class Chain : uint8_t { kContinues, kStarts };
  enum class Room : uint8_t {
    kZeroed,    // written once: a sync of a block then changes no metadata
    kReserved,  // only allocated, at a fifth of the cost; where a sync comes once a second
  };
  // A segment of at least `bytes`, its file and name durable. On failure nothing is left of it.
  Result<SegmentRef> Make(uint64_t bytes, Entered entered, Chain chain, Room room);

  // Everything up to the end of `ended` is durable, nothing behind it counts. It and the live
  // segments before it get their ends; live ones without blocks and those behind it are dropped;
  // `live` becomes live. One transaction.
  struct Switch {
    LogSegmentUse ended;  // segment 0: none
    uint64_t live = 0;
  };
  Status SwitchTo(const Switch& change);
  // The segment ends there, and everything before is durable.
  Status End(const LogSegmentUse& use);
  // The segment has blocks up to there and gets no more; they need not be durable yet.
  void NoteUse(const LogSegmentUse& use);
  // The segment gets blocks from now on: no live one without blocks may come before it.
  void NoteInUse(uint64_t number);
  // Drops the segments up to this number, ended or not.
  Status DropThrough(uint64_t number);
  // Drops the ended segments whose blocks are all before the epoch.
  Status DropBefore(uint64_t epoch);
  // A live segment that was never written to is not needed.
  Status Discard(uint64_t number);
  // Removes files and entries of what is planned or dropped and not in use. Called again after
  // failures.
  void Sweep();

  std::vector<LogSegmentEntry> Entries() const;
  bool IsLive(uint64_t number) const;
  uint64_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }
  uint64_t live_count() const { return live_count_.load(std::memory_order_relaxed); }

 private:
  std::string PathOf(uint64_t number) const {
    return JoinPath(options_.folder, SegmentFileName(number));
  }
  Status CommitLocked(const LogCatalogChange& change);
  void CountLive();
  void SetEnd(LogSegmentEntry* entry) const;
  uint64_t TakeSpareLocked(uint64_t bytes);
  void TakeNumbersFromFolder();
  Result<SegmentRef> Fill(uint64_t number, uint64_t bytes, uint64_t spare, Chain chain,
                          Room room);
  Status FillNew(File* file, const std::string& header, uint64_t bytes, Room room);

  const SegmentStoreOptions options_;
  mutable std::mutex mutex_;
  // All guarded by mutex_.
  std::map<uint64_t, LogSegmentEntry> entries_;
  std::set<uint64_t> making_;               // planned ones whose maker is at work
  std::map<uint64_t, LogSegmentUse> uses_;  // of live segments
  uint64_t in_use_ = 0;                     // the latest segment that gets blocks
  std::set<uint64_t> spares_;               // dropped ones whose file waits to be recycled
  uint64_t last_number_ = 0;
  // Relaxed: for statistics.
  std::atomic<uint64_t> live_bytes_{0};
  std::atomic<uint64_t> live_count_{0};
};

}  // namespace hotkv
