#include "persistence/snapshot/snapshot_job.h"

#include <algorithm>
#include <chrono>

#include "engine/base/clock.h"
#include "engine/base/crash_point.h"
#include "engine/base/rule_switch.h"
#include "engine/base/sync_point.h"

namespace hotkv {

SnapshotJob::SnapshotJob(const SnapshotJobOptions& options)
    : options_(options), era_(options.log->era()), with_log_(era_ != 0) {}

SnapshotJob::~SnapshotJob() {
  options_.engine->RemoveTurnTask(this);
  ReleaseObjects();
}

std::string SnapshotJob::path() const {
  return JoinPath(options_.folder, SnapshotFileName(number_));
}

// --- workers ---

bool SnapshotJob::Step(WorkerState& worker) {
  if (EncodeNext(worker)) return true;
  // The engine forgets the task now; WriteImages comes back to it.
  std::lock_guard lock(mutex_);
  registered_ = false;
  return false;
}

bool SnapshotJob::Help(WorkerState& worker) {
  bool helped = false;
  while (EncodeNext(worker)) helped = true;
  return helped;
}

bool SnapshotJob::EncodeNext(WorkerState& worker) {
  uint32_t index = 0;
  {
    std::lock_guard lock(mutex_);
    const bool done = next_stripe_ == worker.engine->keyspace().stripe_count();
    if (!open_ || done || queue_bytes_ >= kQueueBytesMax) return false;
    index = next_stripe_++;
  }
  Keyspace& keyspace = worker.engine->keyspace();
  Stripe& stripe = keyspace.stripe(index);
  HOTKV_SYNC_POINT("snapshot.before_stripe");
  Encoded encoded;
  encoded.stripe = index;
  stripe.lock.Lock();
  EncodeStripe(keyspace, stripe, &encoded.image);
  // Read under the lock: whoever changes the stripe next announces this epoch or a later one.
  encoded.cut = stripe.lsn;
  if (rules::Enabled(Rule::kCutIsEpoch)) {
    encoded.cut = std::max(encoded.cut, FirstLsnOf(worker.engine->epochs().current()));
  }
  stripe.changes = 0;
  stripe.lock.Unlock();
  HOTKV_SYNC_POINT("snapshot.after_stripe");
  {
    std::lock_guard lock(mutex_);
    queue_bytes_ += encoded.image.size_bytes();
    queue_.push_back(std::move(encoded));
  }
  changed_.notify_all();
  return true;
}

void SnapshotJob::WaitForImages(int64_t timeout_us) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::microseconds(timeout_us),
                    [this] { return !queue_.empty(); });
}

// --- the directory's thread ---

Result<SnapshotJob::Progress> SnapshotJob::Advance() {
  if (with_log_ && phase_ < Phase::kFinish && options_.log->era() != era_) {
    return Status::Cancelled("the log was switched off meanwhile");
  }
  if (tapping_ && phase_ < Phase::kLog) HOTKV_RETURN_IF_ERROR(WriteTapped(UINT64_MAX));
  switch (phase_) {
    case Phase::kBegin:
      HOTKV_RETURN_IF_ERROR(Begin());
      return Progress::kWorked;
    case Phase::kWait:
      from_epoch_ = options_.log->CompleteFrom();
      if (from_epoch_ == 0) return Progress::kWaits;
      HOTKV_RETURN_IF_ERROR(BeginSections());
      return Progress::kWorked;
    case Phase::kObjects:
      if (next_object_ == objects_.size()) {
        phase_ = Phase::kStripes;
      } else {
        HOTKV_RETURN_IF_ERROR(AddNextObject());
      }
      return Progress::kWorked;
    case Phase::kStripes: {
      HOTKV_ASSIGN_OR_RETURN(const bool worked, WriteImages());
      if (written_stripes_ == options_.engine->keyspace().stripe_count()) phase_ = Phase::kLog;
      return worked ? Progress::kWorked : Progress::kWaits;
    }
    case Phase::kLog: {
      HOTKV_ASSIGN_OR_RETURN(const bool past, LogIsPast());
      if (!past) return Progress::kWaits;
      phase_ = Phase::kFinish;
      return Progress::kWorked;
    }
    case Phase::kFinish:
      HOTKV_RETURN_IF_ERROR(Finish());
      phase_ = Phase::kCheck;
      return Progress::kWorked;
    case Phase::kCheck:
      HOTKV_RETURN_IF_ERROR(Check());
      HOTKV_RETURN_IF_ERROR(Publish());
      ReleaseObjects();
      phase_ = Phase::kDone;
      return Progress::kDone;
    case Phase::kDone:
      return Progress::kDone;
  }
  return Progress::kDone;
}

Status SnapshotJob::Begin() {
  created_us_ = Clock::NowUs();
  SnapshotHeader header;
  HOTKV_RETURN_IF_ERROR(options_.catalog->Update([&](CatalogState* state) {
    number_ = state->next_file_number++;
    SnapshotRecord& record = state->snapshots[number_];
    record.state = FileState::kPlanned;
    record.created_us = created_us_;
    header = {state->directory_id, state->stripe_bits, state->hash_seed, number_,
              state->start_number, created_us_};
  }));
  HOTKV_CRASH_POINT("snapshot.planned");
  HOTKV_ASSIGN_OR_RETURN(writer_, SnapshotWriter::Create(options_.env, path(), header));
  if (!with_log_) {
    options_.log->StartTap();
    tapping_ = true;
  }
  phase_ = Phase::kWait;
  return Status::Ok();
}

Status SnapshotJob::BeginSections() {
  changes_at_start_ = options_.engine->SumOverWorkers(&WorkerState::changes);
  last_epoch_ = from_epoch_;
  objects_ = options_.engine->objects().All();
  std::sort(objects_.begin(), objects_.end(),
            [](const auto& a, const auto& b) { return a->id() < b->id(); });
  for (const ObjectRef<Object>& object : objects_) {
    options_.objects->Pin(object->id());
    static_cast<DurableObject&>(*object).HoldSlots();
  }
  phase_ = Phase::kObjects;
  return Status::Ok();
}

void SnapshotJob::ReleaseObjects() {
  for (const ObjectRef<Object>& object : objects_) {
    static_cast<DurableObject&>(*object).UnholdSlots();
    options_.objects->Unpin(object->id());
  }
  objects_.clear();
}

// The generation that the snapshot refers to: the current one where nothing has changed since, else
// a new one.
Status SnapshotJob::RefreshGeneration(DurableObject* object, NewGeneration* fresh) {
  fresh->object = ObjectRef<Object>::Share(object);
  // Before the question: a change that is not seen yet has this epoch or a later one.
  fresh->from_lsn = FirstLsnOf(options_.engine->epochs().current());
  fresh->to_epoch = EpochOf(fresh->from_lsn);
  uint64_t current = 0;
  options_.catalog->With([&](const CatalogState& state) {
    const auto record = state.objects.find(object->id());
    if (record != state.objects.end()) current = record->second.current();
  });
  if (options_.objects->IsAsIn(*object, current)) {
    fresh->generation = current;
    moved_from_.push_back({{object->id(), current}, fresh->from_lsn});
    return Status::Ok();
  }
  HOTKV_ASSIGN_OR_RETURN(*fresh, options_.objects->Checkpoint(object));
  generations_.push_back(*fresh);
  return Status::Ok();
}

Status SnapshotJob::AddNextObject() {
  auto& object = static_cast<DurableObject&>(*objects_[next_object_]);
  ++next_object_;
  NewGeneration fresh;
  HOTKV_RETURN_IF_ERROR(RefreshGeneration(&object, &fresh));
  RaiseLastEpoch(fresh.to_epoch);
  refs_.push_back({object.id(), fresh.generation});
  std::string definition;
  object.EncodeDefinition(&definition);
  return writer_->AddObject(object.id(), fresh.from_lsn,
                            {static_cast<uint8_t>(object.type()), definition, fresh.generation});
}

Result<bool> SnapshotJob::WriteImages() {
  std::deque<Encoded> images;
  bool add_task = false;
  {
    std::lock_guard lock(mutex_);
    images.swap(queue_);
    queue_bytes_ = 0;
    open_ = true;
    if (!registered_ && next_stripe_ < options_.engine->keyspace().stripe_count()) {
      registered_ = add_task = true;
    }
  }
  if (add_task) {
    options_.engine->AddTurnTask(this);
    if (options_.wake_workers) options_.wake_workers();
  }
  for (const Encoded& encoded : images) {
    RaiseLastEpoch(EpochOf(encoded.cut));
    from_epoch_ = std::min(from_epoch_, EpochOf(encoded.cut));
    HOTKV_RETURN_IF_ERROR(writer_->AddStripe(encoded.stripe, encoded.cut, encoded.image));
    ++written_stripes_;
  }
  stripes_done_.store(written_stripes_, std::memory_order_relaxed);
  bytes_.store(writer_->bytes(), std::memory_order_relaxed);
  return add_task || !images.empty();
}

Status SnapshotJob::WriteTapped(uint64_t up_to_epoch) {
  for (const TappedEpoch& tapped : options_.log->TakeTapped()) {
    // All cuts are at or past from_epoch.
    if (tapped.epoch > up_to_epoch || tapped.epoch < from_epoch_ || from_epoch_ == 0) continue;
    for (const auto& [group, records] : tapped.groups) {
      HOTKV_RETURN_IF_ERROR(writer_->AddEffects(tapped.epoch, group, {records}));
    }
    // An epoch that is in the file with its effects must not lie behind the moment that the file
    // stands for.
    if (up_to_epoch == UINT64_MAX) RaiseLastEpoch(tapped.epoch);
  }
  return Status::Ok();
}

Result<bool> SnapshotJob::LogIsPast() {
  if (with_log_) {
    log_epoch_ = options_.log->DurableBlockPast(last_epoch_);
    return log_epoch_ != 0 || !rules::Enabled(Rule::kSnapshotAfterLog);
  }
  if (!options_.log->TappedPast(last_epoch_)) return false;
  HOTKV_RETURN_IF_ERROR(WriteTapped(last_epoch_));
  options_.log->StopTap();
  tapping_ = false;
  return true;
}

Status SnapshotJob::Finish() {
  SnapshotFooter footer;
  footer.from_epoch = from_epoch_;
  footer.last_epoch = last_epoch_;
  footer.has_effects = !with_log_;
  footer.next_object_id = options_.engine->objects().next_id();
  HOTKV_RETURN_IF_ERROR(writer_->Finish(std::move(footer)));
  bytes_.store(writer_->bytes(), std::memory_order_relaxed);
  if (rules::Enabled(Rule::kSnapshotSyncedBeforeLive)) {
    HOTKV_RETURN_IF_ERROR(options_.env->SyncDir(options_.folder));
  }
  HOTKV_CRASH_POINT("snapshot.folder_synced");
  return Status::Ok();
}

Status SnapshotJob::Publish() {
  HOTKV_RETURN_IF_ERROR(options_.catalog->Update([&](CatalogState* state) {
    SnapshotRecord& record = state->snapshots[number_];
    record.state = FileState::kLive;
    record.from_epoch = from_epoch_;
    record.last_epoch = last_epoch_;
    record.log_epoch = log_epoch_;
    record.has_effects = !with_log_;
    record.bytes = writer_->bytes();
    record.entries = writer_->entries();
    record.generations = refs_;
    state->epoch_max = std::max(state->epoch_max, last_epoch_);
    state->next_object_id = std::max(state->next_object_id, options_.engine->objects().next_id());
    for (const NewGeneration& generation : generations_) {
      ObjectFolders::MakeLive(generation, log_epoch_, state);
    }
    for (const auto& [ref, from_lsn] : moved_from_) {
      const auto object = state->objects.find(ref.object_id);
      if (object != state->objects.end()) {
        object->second.generations[ref.generation].from_lsn = from_lsn;
      }
    }
  }));
  HOTKV_CRASH_POINT("snapshot.live");
  return Status::Ok();
}

Status SnapshotJob::Check() {
  HOTKV_ASSIGN_OR_RETURN(const auto reader, SnapshotReader::Open(options_.env, path()));
  return reader->VerifyAll();
}

void SnapshotJob::Cancel() {
  options_.engine->RemoveTurnTask(this);
  if (tapping_) options_.log->StopTap();
  tapping_ = false;
  ReleaseObjects();
  writer_.reset();
  if (number_ == 0) return;
  Status status = options_.catalog->Update([&](CatalogState* state) {
    const auto record = state->snapshots.find(number_);
    if (record != state->snapshots.end()) record->second.state = FileState::kDropped;
  });
  for (const NewGeneration& generation : generations_) {
    if (status.ok()) status = options_.objects->Abandon(generation);
  }
  generations_.clear();
  if (!status.ok()) return;
  status = options_.env->Unlink(path());
  if (!status.ok() && status.code() != Code::kNotFound) return;
  if (!options_.env->SyncDir(options_.folder).ok()) return;
  (void)options_.catalog->Update([&](CatalogState* state) { state->snapshots.erase(number_); });
}

}  // namespace hotkv
