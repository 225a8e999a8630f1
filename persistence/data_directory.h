// DataDirectory: everything that keeps a keyspace on disk, as the one class that a server uses:
// lock, catalog, recovery, log, snapshots, folders of objects. docs/persistence.md tells how it
// works.
//
//   auto directory = DataDirectory::Open(options);              // takes the lock, reads what there
//   is, changes nothing Engine engine({.keyspace = ..., .first_epoch = ...});       // from
//   directory->parameters() directory->Load(&engine);                                   // fills it
//   directory->Start();                                         // log and background thread;
//   commits may begin
//   ...
//   directory->Stop();                                          // no worker runs any more
//
// Thread rules: Open, Load, Start, Stop and the destructor by the owner, in this order; the engine
// must outlive the directory. SetAppendOnly, Reload: one caller at a time, from a worker outside of
// its stripes or any other thread. All else: any thread at any time; nothing else waits for a disk.
// Errors: Open and Load name file and offset and say which tool helps; nothing has been changed
// then.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/file.h"
#include "engine/base/limits.h"
#include "engine/tx/engine.h"
#include "persistence/catalog/catalog.h"
#include "persistence/catalog/catalog_log.h"
#include "persistence/directory_log.h"
#include "persistence/log/log_writer.h"
#include "persistence/object_folders.h"
#include "persistence/recovery/recovery.h"
#include "persistence/snapshot/snapshot_job.h"

namespace hotkv {

// A snapshot is due when so many changes are older than so many seconds.
struct SavePoint {
  int64_t seconds = 0;
  uint64_t changes = 0;
};

// A snapshot is due when the log since the last one is larger than `bytes_min` and than `percent`
// of the last snapshot's file; 0 percent: never for that reason.
struct LogGrowth {
  uint64_t bytes_min = uint64_t{64} << 20;
  unsigned percent = 100;
};

struct DataDirectoryOptions {
  std::string path = "hotkv-data";
  Env* env = nullptr;  // null: the operating system's
  // Null: LMDB. `create` is false where the directory holds data already.
  std::function<Result<std::unique_ptr<CatalogStore>>(const std::string& path, bool create)>
      open_catalog;
  // Fixed at the first start.
  unsigned stripe_bits = kStripeBitsDefault;
  uint64_t random_seed = 0;  // of ids and the hash seed; 0: from the system

  bool append_only = true;
  FsyncPolicy fsync = FsyncPolicy::kEverySecond;
  std::vector<SavePoint> save_points;
  LogGrowth log_growth;
  unsigned load_threads = 0;  // 0: one a core
  bool manual = false;        // no threads: the owner calls Work and the log writer's Cycle; for
                              // deterministic tests
  std::function<void()> wake_workers;  // there is turn work to do
  std::function<void()> on_progress;   // durable epoch, or whether writes are accepted, has changed
  LogWriterOptions log;  // sizes and times; what the directory knows itself is filled in
};

// What the engine has to be built with.
struct EngineParameters {
  unsigned stripe_bits = 0;
  uint64_t hash_seed = 0;
  uint64_t first_epoch = 1;
  uint64_t first_object_id = 1;
};

struct DirectoryStatus {
  bool log_on = false;
  FsyncPolicy fsync = FsyncPolicy::kEverySecond;
  LogStats log;
  uint64_t log_base_bytes = 0;  // of log.bytes_written, when the newest snapshot began

  bool snapshot_running = false;
  bool snapshot_scheduled = false;
  bool snapshot_is_rewrite = false;
  int64_t snapshot_started_ms = 0;
  double snapshot_percent = 0;
  uint64_t snapshots = 0;           // completed since start
  std::string last_snapshot_error;  // empty: fine
  int64_t last_snapshot_seconds = -1;
  int64_t last_save_ms = 0;  // when the newest snapshot went live; the start, where there is none
  uint64_t changes_since_save = 0;

  double loaded_percent = 0;
  uint64_t loaded_keys = 0;
  std::string server_id;
  std::string replication_id;
  uint64_t start_number = 0;
};

enum class SnapshotWhy : uint8_t {
  kSave,
  kBackgroundSave,
  kRewrite,  // BGREWRITEAOF
  kSavePoint,
  kLogGrowth,
  kSlots,      // slots of deleted elements wait for the kept snapshot to refer to what is without them
  kLogBegins,  // appendonly was switched on: the log counts once this one is live
};
enum class SnapshotOutcome : uint8_t { kRunning, kDone, kFailed };

class DataDirectory {
 public:
  static Result<std::unique_ptr<DataDirectory>> Open(DataDirectoryOptions options);
  // Without Stop: as a crash.
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  EngineParameters parameters() const;
  Status Load(Engine* engine);
  Status Start();
  // The log is synced and ended cleanly. save: a snapshot before that; when it fails, nothing is
  // stopped.
  Status Stop(bool save);

  // --- while it runs ---
  // Begins a snapshot, or queues it behind the one that runs. The number is for OutcomeOf.
  uint64_t BeginSnapshot(SnapshotWhy why);
  SnapshotOutcome OutcomeOf(uint64_t snapshot) const;
  // Encodes what a snapshot under way still wants, in the calling worker, which holds no stripe's
  // lock: for a caller that wants the snapshot without waiting for other workers' turns. True while
  // there is a snapshot under way.
  bool HelpSnapshot(WorkerState& worker);

  void RequestSync() { writer_->RequestSync(engine_->epochs().current()); }
  Status SetAppendOnly(bool on);
  void SetFsyncPolicy(FsyncPolicy policy);
  void SetSavePoints(std::vector<SavePoint> points);
  void SetLogGrowth(LogGrowth growth);
  // Without a log, and save points set: a failed snapshot refuses writes
  // (stop-writes-on-bgsave-error).
  void SetStopWritesOnSnapshotError(bool stop);
  Status ChangeReplicationId();
  // DEBUG RELOAD: empties the keyspace and loads it again. All workers are stopped; what is to come
  // back is durable. kBusy, and nothing has changed: a snapshot is under way, or somebody works on
  // an object - a command that waits for the workers to go on among them. Let them, then try again.
  Status Reload();

  // The log is on and goes on from something that is durable: what it holds will be recovered.
  // False for a moment after it was switched on.
  bool LogCounts() const;
  // The same as of the last time that it changed, for those who must not wait for the catalog's disk.
  bool log_counts() const { return log_counts_.load(std::memory_order_acquire); }
  DirectoryStatus GetStatus() const;
  LogWriter& log() { return *writer_; }
  Catalog& catalog() { return *catalog_; }
  const Recovery& recovery() const { return *recovery_; }
  const DirectoryPaths& paths() const { return paths_; }

  // Manual mode: a piece of the background thread's work; false when there was none.
  bool Work(int64_t now_ms);
  SnapshotJob* snapshot_job_or_null() { return job_.get(); }

 private:
  struct Request {
    uint64_t id = 0;
    SnapshotWhy why = SnapshotWhy::kBackgroundSave;
  };

  explicit DataDirectory(DataDirectoryOptions options);
  // data_directory_open.cc
  Result<bool> HasCatalog() const;
  Status CheckForeignFiles(bool has_catalog) const;
  Status TakeLock();
  Status OpenCatalog();
  Status InitialiseCatalog();
  Status EnterStart();
  void ChooseLogRange(CatalogState* state) const;
  Status RemoveLeftovers();
  void ReportUnknownFiles() const;
  LogWriterOptions WriterOptions() const;
  uint64_t LogNeededFrom() const;

  void Run();
  void OnLogProgress();
  void UpdateDenial();
  void NoteLogCounts();
  bool AdvanceSnapshot(int64_t now_ms);
  void StartNextJob(int64_t now_ms);
  void FinishJob(int64_t now_ms, const Status& status);
  Status AfterSnapshot();
  void Periodic(int64_t now_ms);
  void CheckTriggers(int64_t now_ms);
  bool SlotsWait() const;
  void CheckpointObjects();
  bool ObjectsAreIdle() const;
  void EmptyKeyspace();
  Status PublishGenerations();
  std::string RandomHex(size_t digits);
  uint64_t RandomNumber();

  const DataDirectoryOptions options_;
  Env* const env_;
  const DirectoryPaths paths_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<CatalogLog> catalog_log_;
  std::unique_ptr<Recovery> recovery_;
  Engine* engine_ = nullptr;
  std::unique_ptr<ObjectFolders> folders_;
  std::unique_ptr<DirectoryLog> log_;
  std::unique_ptr<LogWriter> writer_;
  // The same for the writer's own thread, which runs before Start has the pointer and while the
  // destructor ends it.
  std::atomic<LogWriter*> live_writer_{nullptr};  // release by the owner
  uint64_t random_state_ = 0;
  std::string server_id_;

  // The background thread's only.
  std::vector<NewGeneration> unpublished_;
  int64_t next_periodic_ms_ = 0;
  int64_t retry_after_ms_ = 0;
  int64_t retry_pause_ms_ = 0;
  std::mutex work_mutex_;  // held by that thread while it works, and by Reload: objects change hands

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  // Made and ended by the background thread. Shared: a worker may be encoding for it just then.
  std::shared_ptr<SnapshotJob> job_;
  Request running_;  // id 0: none
  std::deque<Request> waiting_;
  std::map<uint64_t, bool> outcomes_;  // of the last ones: completed?
  uint64_t last_request_ = 0;
  std::vector<SavePoint> save_points_;
  LogGrowth log_growth_;
  bool stop_writes_on_error_ = false;
  uint64_t snapshots_done_ = 0;
  std::string last_snapshot_error_;
  int64_t job_started_ms_ = 0;
  std::optional<int64_t> last_snapshot_ms_;  // how long it took
  int64_t last_save_ms_ = 0;
  uint64_t changes_at_save_ = 0;
  uint64_t snapshot_bytes_ = 0;  // of the newest
  uint64_t log_base_bytes_ = 0;
  uint64_t job_log_bytes_ = 0;  // written when the running job began
  bool stop_ = false;
  std::string replication_id_;
  uint64_t start_number_ = 0;
  uint64_t loaded_keys_ = 0;

  std::atomic<bool> log_counts_{false};
  std::atomic<bool> started_{false};  // release by Start: all of the above is there
  std::thread thread_;
};

}  // namespace hotkv
