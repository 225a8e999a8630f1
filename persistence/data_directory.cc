// DataDirectory while it runs: snapshots, the switch of the log, upkeep of objects, status.
#include "persistence/data_directory.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/crash_point.h"
#include "engine/base/log.h"
#include "engine/base/rule_switch.h"
#include "engine/base/sync_point.h"
#include "engine/types/background_job.h"

namespace hotkv {

namespace {

constexpr int64_t kMsPerSecond = 1000;
constexpr int64_t kPeriodMs = 100;
constexpr int64_t kIdleWaitMs = 100;
constexpr int64_t kJobWaitUs = 2000;
constexpr int64_t kRetryPauseMsMin = 1000;
constexpr int64_t kRetryPauseMsMax = 60'000;
constexpr size_t kOutcomesKept = 64;
// Below the workers, but not so far that a snapshot never ends on a machine whose cores are all
// busy.
constexpr int kBackgroundNice = 10;

bool IsAutomatic(SnapshotWhy why) {
  return why == SnapshotWhy::kSavePoint || why == SnapshotWhy::kLogGrowth ||
         why == SnapshotWhy::kSlots || why == SnapshotWhy::kLogBegins;
}

}  // namespace

DataDirectory::~DataDirectory() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (engine_ != nullptr) engine_->SetObjectHost(nullptr);
  job_.reset();
  if (engine_ != nullptr) engine_->lazy_free().Drain();  // it may still call ForgetFolder
  live_writer_.store(nullptr, std::memory_order_release);
  writer_.reset();
}

Status DataDirectory::Stop(bool save) {
  if (save) {
    const uint64_t snapshot = BeginSnapshot(SnapshotWhy::kSave);
    while (OutcomeOf(snapshot) == SnapshotOutcome::kRunning) {
      const bool helped = HelpSnapshot(engine_->worker(0));
      if (options_.manual) {
        Work(Clock::NowMs());
        writer_->Cycle(Clock::MonotonicNs() / 1000);
      } else if (!helped) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    if (OutcomeOf(snapshot) == SnapshotOutcome::kFailed) {
      std::lock_guard lock(mutex_);
      return Status(Code::kIoError, last_snapshot_error_);
    }
  }
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (job_) job_->Cancel();
  const bool counts = LogCounts();
  HOTKV_RETURN_IF_ERROR(writer_->Stop());
  if (!counts) return Status::Ok();
  return catalog_->Update([this](CatalogState* state) {
    state->log_epoch = engine_->epochs().durable();
    state->epoch_max = std::max(state->epoch_max, state->log_epoch);
  });
}

void DataDirectory::Run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kBackgroundNice);
  for (;;) {
    std::shared_ptr<SnapshotJob> job;
    bool worked = false;
    {
      std::lock_guard work(work_mutex_);
      worked = Work(Clock::NowMs());
    }
    {
      std::unique_lock lock(mutex_);
      if (stop_) return;
      job = job_;
      if (!worked && job == nullptr) {
        changed_.wait_for(lock, std::chrono::milliseconds(kIdleWaitMs));
      }
    }
    if (!worked && job != nullptr) job->WaitForImages(kJobWaitUs);
  }
}

bool DataDirectory::Work(int64_t now_ms) {
  if (options_.manual || now_ms >= next_periodic_ms_) {
    next_periodic_ms_ = now_ms + kPeriodMs;
    Periodic(now_ms);
  }
  return AdvanceSnapshot(now_ms);
}

// --- snapshots ---

uint64_t DataDirectory::BeginSnapshot(SnapshotWhy why) {
  std::unique_lock lock(mutex_);
  // A waiting one has not begun: it covers this wish as well.
  uint64_t id = 0;
  if (!waiting_.empty()) {
    if (IsAutomatic(waiting_.back().why)) waiting_.back().why = why;
    id = waiting_.back().id;
  } else {
    id = ++last_request_;
    waiting_.push_back({id, why});
  }
  lock.unlock();
  changed_.notify_all();
  return id;
}

SnapshotOutcome DataDirectory::OutcomeOf(uint64_t snapshot) const {
  std::lock_guard lock(mutex_);
  const auto found = outcomes_.find(snapshot);
  if (found != outcomes_.end()) {
    return found->second ? SnapshotOutcome::kDone : SnapshotOutcome::kFailed;
  }
  const bool known = running_.id == snapshot ||
                     std::any_of(waiting_.begin(), waiting_.end(),
                                 [&](const Request& request) { return request.id == snapshot; });
  return known ? SnapshotOutcome::kRunning : SnapshotOutcome::kFailed;
}

bool DataDirectory::HelpSnapshot(WorkerState& worker) {
  std::shared_ptr<SnapshotJob> job;
  {
    std::lock_guard lock(mutex_);
    job = job_;
  }
  return job != nullptr && job->Help(worker);
}

bool DataDirectory::AdvanceSnapshot(int64_t now_ms) {
  if (job_ == nullptr) {
    StartNextJob(now_ms);
    if (job_ == nullptr) return false;
  }
  const Result<SnapshotJob::Progress> progress = job_->Advance();
  if (!progress.ok()) {
    FinishJob(now_ms, progress.status());
    return true;
  }
  if (*progress == SnapshotJob::Progress::kDone) FinishJob(now_ms, Status::Ok());
  return *progress != SnapshotJob::Progress::kWaits;
}

void DataDirectory::StartNextJob(int64_t now_ms) {
  std::lock_guard lock(mutex_);
  if (waiting_.empty() || (IsAutomatic(waiting_.front().why) && now_ms < retry_after_ms_)) return;
  running_ = waiting_.front();
  waiting_.pop_front();
  job_started_ms_ = now_ms;
  job_log_bytes_ = writer_->stats().bytes_written;
  job_ = std::make_shared<SnapshotJob>(SnapshotJobOptions{env_, paths_.snapshots, catalog_.get(),
                                                          engine_, folders_.get(), log_.get(),
                                                          options_.wake_workers});
}

void DataDirectory::FinishJob(int64_t now_ms, const Status& status) {
  Status result = status;
  if (!status.ok()) job_->Cancel();
  if (status.ok()) {
    result = AfterSnapshot();
    // The snapshot stands; what it replaces goes at the next attempt or start.
    if (!result.ok()) Log(LogLevel::kWarning, "Old files stay for now: " + result.ToString());
    result = Status::Ok();
  } else if (status.code() != Code::kCancelled) {
    Log(LogLevel::kWarning, "The snapshot failed: " + status.ToString());
  }
  std::shared_ptr<SnapshotJob> ended;
  std::unique_lock lock(mutex_);
  // While the log does not count, writes are refused: they are not to wait for long.
  const bool log_begins = running_.why == SnapshotWhy::kLogBegins;
  ended = std::move(job_);
  if (status.code() == Code::kCancelled) {
    waiting_.push_front(running_);
    running_ = {};
    return;
  }
  outcomes_[running_.id] = result.ok();
  while (outcomes_.size() > kOutcomesKept) outcomes_.erase(outcomes_.begin());
  running_ = {};
  last_snapshot_error_ = result.ok() ? "" : result.ToString();
  last_snapshot_ms_ = now_ms - job_started_ms_;
  if (result.ok()) {
    ++snapshots_done_;
    last_save_ms_ = now_ms;
    changes_at_save_ = ended->changes_at_start();
    snapshot_bytes_ = ended->bytes_written();
    log_base_bytes_ = job_log_bytes_;
    retry_pause_ms_ = 0;
    retry_after_ms_ = 0;
  } else {
    retry_pause_ms_ = log_begins ? kRetryPauseMsMin
                                 : std::clamp(2 * retry_pause_ms_, kRetryPauseMsMin, kRetryPauseMsMax);
    retry_after_ms_ = now_ms + retry_pause_ms_;
  }
  lock.unlock();
  UpdateDenial();
  NoteLogCounts();
}

void DataDirectory::NoteLogCounts() {
  const bool counts = LogCounts();
  const bool changed = log_counts_.exchange(counts, std::memory_order_acq_rel) != counts;
  if (changed && options_.on_progress) options_.on_progress();  // WAITAOF may be waiting for it
}

// The new snapshot has been read back: what it replaces may go.
Status DataDirectory::AfterSnapshot() {
  const uint64_t newest = job_->number();
  uint64_t last_dropped_segment = 0;
  HOTKV_RETURN_IF_ERROR(catalog_->Update([&](CatalogState* state) {
    for (auto& [number, snapshot] : state->snapshots) {
      if (number != newest) snapshot.state = FileState::kDropped;
    }
    std::erase_if(state->ranges, [&](const auto& r) {
      return r.second.last_epoch != 0 && r.second.last_epoch < job_->from_epoch();
    });
    // Segments of no range: those before the first that is kept.
    last_dropped_segment = state->segments.empty() ? 0 : state->segments.rbegin()->first;
    for (const auto& [first, range] : state->ranges) {
      last_dropped_segment = std::min(last_dropped_segment, range.first_segment - 1);
    }
  }));
  HOTKV_CRASH_POINT("snapshot.before_dropped");
  HOTKV_RETURN_IF_ERROR(RemoveLeftovers());
  writer_->DropThrough(last_dropped_segment);
  writer_->DropBefore(LogNeededFrom());
  // Before the question, as in CheckpointObjects.
  const uint64_t durable_epoch = engine_->epochs().durable();
  return folders_->Collect(LogCounts() ? durable_epoch : 0);
}

// Epochs before it are needed by no recovery.
uint64_t DataDirectory::LogNeededFrom() const {
  uint64_t epoch = UINT64_MAX;
  bool has_snapshot = false;
  catalog_->With([&](const CatalogState& state) {
    for (const auto& [number, snapshot] : state.snapshots) {
      if (snapshot.state != FileState::kLive) continue;
      has_snapshot = true;
      const bool kept = rules::Enabled(Rule::kKeepLogFromOldestCut);
      epoch = std::min(epoch, kept ? snapshot.from_epoch : snapshot.last_epoch + 1);
    }
    for (const auto& [id, object] : state.objects) {
      const uint64_t current = object.current();
      // One that has gone holds back nothing: a kept snapshot that refers to it began later than
      // its `from`.
      if (current != 0 && engine_->objects().Find(id)) {
        epoch = std::min(epoch, EpochOf(object.generations.at(current).from_lsn));
      }
    }
  });
  return has_snapshot ? epoch : 0;
}

// --- upkeep ---

void DataDirectory::Periodic(int64_t now_ms) {
  // While nothing is logged nobody else closes epochs, and an epoch has room for so many commits
  // only.
  if (log_->era() == 0) writer_->RequestSync(engine_->epochs().current());
  UpdateDenial();
  CheckTriggers(now_ms);
  if (job_ == nullptr) CheckpointObjects();
}

void DataDirectory::CheckTriggers(int64_t now_ms) {
  const uint64_t changes = engine_->SumOverWorkers(&WorkerState::changes);
  const LogStats stats = writer_->stats();
  const bool log_counts = LogCounts();
  const bool log_must_begin = log_->era() != 0 && !log_counts;
  const bool slots_wait = log_counts && SlotsWait();
  SnapshotWhy why = SnapshotWhy::kSavePoint;
  {
    std::lock_guard lock(mutex_);
    if (job_ != nullptr || !waiting_.empty() || now_ms < retry_after_ms_) return;
    const auto is_due = [&](const SavePoint& point) {
      return changes - changes_at_save_ >= point.changes &&
             now_ms - last_save_ms_ >= point.seconds * kMsPerSecond;
    };
    // Room is not worth more than a tenth of the background's time.
    const int64_t slots_pause_ms = std::max<int64_t>(kMsPerSecond, 10 * last_snapshot_ms_.value_or(0));
    const uint64_t growth_max =
        std::max(log_growth_.bytes_min, snapshot_bytes_ / 100 * log_growth_.percent);
    if (log_must_begin) {
      why = SnapshotWhy::kLogBegins;
    } else if (log_growth_.percent != 0 && stats.bytes_written - log_base_bytes_ > growth_max) {
      why = SnapshotWhy::kLogGrowth;
    } else if (slots_wait && now_ms - last_save_ms_ >= slots_pause_ms) {
      why = SnapshotWhy::kSlots;
    } else if (std::none_of(save_points_.begin(), save_points_.end(), is_due) ||
               changes == changes_at_save_) {
      return;
    }
  }
  BeginSnapshot(why);
}

bool DataDirectory::SlotsWait() const {
  const std::vector<ObjectRef<Object>> objects = engine_->objects().All();
  return std::any_of(objects.begin(), objects.end(), [](const ObjectRef<Object>& object) {
    return static_cast<const DurableObject&>(*object).SlotsWait();
  });
}

bool DataDirectory::LogCounts() const {
  bool counts = false;
  catalog_->With([&](const CatalogState& state) {
    for (const auto& [first, range] : state.ranges) {
      if (range.last_epoch != 0) continue;
      counts = first == 0;
      for (const auto& [number, snapshot] : state.snapshots) {
        counts = counts || (snapshot.state == FileState::kLive && snapshot.from_epoch >= first);
      }
    }
  });
  return counts && log_->era() != 0;
}

// Between snapshots only with a log: without one nothing is replayed onto a generation but its own
// snapshot's effects.
void DataDirectory::CheckpointObjects() {
  // Before the question: once the log is off the mark follows the epochs by itself, and no drop is
  // durable by it.
  const uint64_t durable_epoch = engine_->epochs().durable();
  Status status = PublishGenerations();
  if (!LogCounts()) return;
  HOTKV_SYNC_POINT("directory.log_counted");
  if (status.ok()) status = folders_->Collect(durable_epoch);
  for (const ObjectRef<Object>& object : engine_->objects().All()) {
    if (!status.ok() || !unpublished_.empty()) break;
    auto& durable = static_cast<DurableObject&>(*object);
    if (!durable.CheckpointDue()) continue;
    folders_->Pin(object->id());
    Result<NewGeneration> made = folders_->Checkpoint(&durable);
    if (made.ok()) {
      unpublished_.push_back(std::move(made).value());
    } else {
      folders_->Unpin(object->id());
      status = made.status();
    }
  }
  if (!status.ok()) Log(LogLevel::kWarning, "Upkeep of an index failed: " + status.ToString());
}

Status DataDirectory::PublishGenerations() {
  if (unpublished_.empty()) return Status::Ok();
  const NewGeneration& generation = unpublished_.front();
  const uint64_t log_epoch = log_->DurableBlockPast(generation.to_epoch);
  Status status;
  if (!LogCounts()) {
    status = folders_->Abandon(generation);
  } else if (log_epoch == 0 && rules::Enabled(Rule::kGenerationAfterLog)) {
    return Status::Ok();
  } else {
    status = catalog_->Update(
        [&](CatalogState* state) { ObjectFolders::MakeLive(generation, log_epoch, state); });
    HOTKV_CRASH_POINT("object.generation_live");
  }
  folders_->Unpin(generation.object->id());
  unpublished_.clear();
  return status;
}

// --- the log ---

void DataDirectory::OnLogProgress() {
  UpdateDenial();
  if (options_.on_progress) options_.on_progress();
}

void DataDirectory::UpdateDenial() {
  const LogWriter* writer = live_writer_.load(std::memory_order_acquire);
  if (writer == nullptr) return;
  std::string reason;
  if (writer->read_only()) {
    reason = writer->stats().reason;
  } else if (log_->era() == 0) {
    std::lock_guard lock(mutex_);
    if (stop_writes_on_error_ && !save_points_.empty()) reason = last_snapshot_error_;
  } else {
    std::unique_lock lock(mutex_);
    reason = last_snapshot_error_;
    lock.unlock();
    // Switched on, but the snapshot that it goes on from cannot be made: what is logged would not be
    // recovered. (Asked in this order, since the catalog may be waiting for its disk.)
    if (!reason.empty() && LogCounts()) reason.clear();
  }
  if (reason.empty()) reason = engine_->object_failure();
  if (reason != engine_->disk_denied_reason()) engine_->SetDiskDenied(reason);
}

Status DataDirectory::SetAppendOnly(bool on) {
  if (on == (log_->era() != 0)) return Status::Ok();
  if (on) {
    HOTKV_RETURN_IF_ERROR(catalog_->Update([&](CatalogState* state) {
      const uint64_t first_epoch = engine_->epochs().current();
      const uint64_t last_segment = state->segments.empty() ? 0 : state->segments.rbegin()->first;
      state->ranges[first_epoch] = {first_epoch, 0, last_segment + 1};
      state->epoch_max = std::max(state->epoch_max, first_epoch);
    }));
    HOTKV_RETURN_IF_ERROR(log_->SwitchLogging(true).status());
    NoteLogCounts();
    SetFsyncPolicy(writer_->policy());
    BeginSnapshot(SnapshotWhy::kLogBegins);
    return Status::Ok();
  }
  HOTKV_ASSIGN_OR_RETURN(const uint64_t last_epoch, log_->SwitchLogging(false));
  log_counts_.store(false, std::memory_order_release);
  SetFsyncPolicy(writer_->policy());
  return catalog_->Update([&](CatalogState* state) {
    for (auto& [first, range] : state->ranges) {
      if (range.last_epoch == 0) range.last_epoch = last_epoch;
    }
  });
}

void DataDirectory::SetFsyncPolicy(FsyncPolicy policy) {
  writer_->SetPolicy(policy);
  engine_->always_fsync.store(policy == FsyncPolicy::kAlways && log_->era() != 0,
                              std::memory_order_seq_cst);
}

void DataDirectory::SetSavePoints(std::vector<SavePoint> points) {
  std::lock_guard lock(mutex_);
  save_points_ = std::move(points);
}

void DataDirectory::SetLogGrowth(LogGrowth growth) {
  std::lock_guard lock(mutex_);
  log_growth_ = growth;
}

void DataDirectory::SetStopWritesOnSnapshotError(bool stop) {
  std::lock_guard lock(mutex_);
  stop_writes_on_error_ = stop;
}

Status DataDirectory::ChangeReplicationId() {
  std::string id;
  {
    std::lock_guard lock(mutex_);
    id = RandomHex(replication_id_.size());
  }
  HOTKV_RETURN_IF_ERROR(catalog_->Update([&](CatalogState* state) { state->replication_id = id; }));
  std::lock_guard lock(mutex_);
  replication_id_ = id;
  return Status::Ok();
}

// Nobody but the registry and the keys has a hold of an object. Commands that read without a lock
// have; so has one whose insert is prepared, and a rebuild.
bool DataDirectory::ObjectsAreIdle() const {
  constexpr uint32_t kRegistryKeyAndHere = 3;
  const std::vector<ObjectRef<Object>> all = engine_->objects().All();
  return std::all_of(all.begin(), all.end(), [](const ObjectRef<Object>& object) {
    return object->refs() <= kRegistryKeyAndHere;
  });
}

void DataDirectory::EmptyKeyspace() {
  Keyspace& keyspace = engine_->keyspace();
  for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
    for (uint32_t db = 0; db < keyspace.databases(); ++db) {
      Table* table = keyspace.TakeTable(keyspace.stripe(i), db);
      if (table == nullptr) continue;
      // The objects must be closed before they are opened again; the table itself may still be
      // looked at by a worker that stopped in a prefetch pass.
      Keyspace::DestroyEntries(table);
      engine_->reclaim().Retire([table] { Table::Free(table); });
    }
  }
  for (const ObjectRef<Object>& object : engine_->objects().All()) {
    engine_->objects().Take(object->id());
  }
}

Status DataDirectory::Reload() {
  const std::unique_lock work(work_mutex_, std::try_to_lock);
  if (!work.owns_lock() || job_ != nullptr || !unpublished_.empty()) {
    return Status(Code::kBusy, "files are being written just now");
  }
  BackgroundJobs* jobs = engine_->background_jobs_or_null();
  if (jobs != nullptr && !jobs->TryPause()) {
    return Status(Code::kBusy, "an index is worked on just now");
  }
  const auto load = [this]() -> Status {
    if (!ObjectsAreIdle()) return Status(Code::kBusy, "an index is in use just now");
    HOTKV_ASSIGN_OR_RETURN(auto fresh, Recovery::Inspect(env_, paths_, catalog_->Read()));
    EmptyKeyspace();
    return fresh->Load(engine_, 1);
  };
  const Status status = load();
  if (jobs != nullptr) jobs->Resume();
  return status;
}

DirectoryStatus DataDirectory::GetStatus() const {
  DirectoryStatus status;
  status.loaded_percent = recovery_->loaded_percent();
  status.server_id = server_id_;
  uint64_t changes = 0;
  if (started_.load(std::memory_order_acquire)) {
    status.log_on = log_->era() != 0;
    status.log = writer_->stats();
    status.fsync = writer_->policy();
    changes = engine_->SumOverWorkers(&WorkerState::changes);
  }
  std::lock_guard lock(mutex_);
  status.log_base_bytes = log_base_bytes_;
  status.snapshot_running = running_.id != 0;
  status.snapshot_scheduled = !waiting_.empty();
  status.snapshot_is_rewrite = running_.why == SnapshotWhy::kRewrite;
  status.snapshot_started_ms = job_started_ms_;
  if (job_ != nullptr) {
    status.snapshot_percent = 100.0 * static_cast<double>(job_->stripes_done()) /
                              static_cast<double>(engine_->keyspace().stripe_count());
  }
  status.snapshots = snapshots_done_;
  status.last_snapshot_error = last_snapshot_error_;
  status.last_snapshot_seconds = last_snapshot_ms_ ? *last_snapshot_ms_ / kMsPerSecond : -1;
  status.last_save_ms = last_save_ms_;
  status.changes_since_save = changes - changes_at_save_;
  status.loaded_keys = loaded_keys_;
  status.replication_id = replication_id_;
  status.start_number = start_number_;
  return status;
}

}  // namespace hotkv
