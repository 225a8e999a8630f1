#include "persistence/log/block_log.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/crash_point.h"
#include "engine/base/log.h"
#include "engine/base/rule_switch.h"

namespace hotkv {

namespace {

// Blocks are kept in memory until they are durable, so under everysec a second's worth is on its way
// to being used again; memory that is given back meanwhile would only be faulted in anew. So the
// pool takes what one sync lets go, and this much is kept when nothing is written any more.
constexpr size_t kIdlePoolBytesMax = size_t{32} << 20;
constexpr int64_t kIdlePoolUs = 3'000'000;
// A segment that is full sooner than this asks for a larger next one.
constexpr int64_t kFastSegmentUs = 2'000'000;
constexpr uint64_t kFileUnitBytes = 4096;

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + kFileUnitBytes - 1) / kFileUnitBytes * kFileUnitBytes;
}

LogSegmentUse UseOf(const LogEnd& end) {
  return {end.segment, end.offset, end.first_epoch, end.epoch};
}

}  // namespace

BlockLog::BlockLog(BlockLogOptions options)
    : options_(std::move(options)),
      store_(options_.store),
      tail_pending_(options_.end.epoch > options_.durable_end.epoch),
      chain_starts_(options_.durable_end.segment == 0),
      segment_bytes_(options_.segment_bytes_min),
      written_end_(options_.end),
      durable_end_(options_.durable_end),
      sync_started_epoch_(options_.end.epoch),
      files_(options_.tasks, "hotkv-log-file"),
      sync_thread_(options_.tasks, "hotkv-log-sync") {
  // Nothing of an earlier start is known durable: its log, if there is one, begins the chain.
  if (tail_pending_) chain_starts_ = false;
}

BlockLog::~BlockLog() = default;

Status BlockLog::Open() {
  HOTKV_RETURN_IF_ERROR(store_.Open());
  for (const LogSegmentUse& use : options_.uses) store_.NoteUse(use);
  return Status::Ok();
}

std::unique_ptr<EpochBlock> BlockLog::NewBlock() {
  if (pool_.empty()) return std::make_unique<EpochBlock>();
  auto block = std::move(pool_.back());
  pool_.pop_back();
  pool_bytes_ -= block->capacity_bytes();
  return block;
}

void BlockLog::Recycle(std::unique_ptr<EpochBlock> block) {
  block->Clear();
  const size_t bytes = block->capacity_bytes();
  if (pool_bytes_ + bytes > pool_bytes_max_) return;
  pool_bytes_ += bytes;
  pool_.push_back(std::move(block));
}

void BlockLog::TrimPool(int64_t now_us) {
  if (now_us - last_append_us_ < kIdlePoolUs || pool_bytes_ <= kIdlePoolBytesMax) return;
  pool_bytes_max_ = kIdlePoolBytesMax;
  while (pool_bytes_ > pool_bytes_max_) NewBlock();
}

void BlockLog::Append(std::unique_ptr<EpochBlock> block, int64_t now_us) {
  last_append_us_ = now_us;
  retained_bytes_ += block->stored_bytes();
  retained_.push_back({std::move(block), now_us, {}});
}

Status BlockLog::Trouble() const {
  if (!failure_.ok()) return failure_;
  if (next_error_.ok() || !begun_) return next_error_;
  // Writes are refused while there is still room for those under way.
  const bool short_of_room =
      current_ == nullptr || current_->size_bytes - offset_ < current_->size_bytes / 4;
  return short_of_room ? next_error_ : Status::Ok();
}

void BlockLog::Write(int64_t now_us, Sync sync) {
  room_ = sync == Sync::kWithWrite ? SegmentStore::Room::kZeroed : SegmentStore::Room::kReserved;
  if (!begun()) {
    if (now_us >= next_attempt_us_) Resume(now_us);
    return;
  }
  while (has_unwritten()) {
    const uint64_t bytes = retained_[unwritten_].block->stored_bytes();
    if (current_ == nullptr && !TakeNext(bytes, now_us)) return;
    const size_t count = CountFitting();
    if (count == 0) {
      Rotate(now_us);
    } else if (!WriteSome(count, sync, now_us)) {
      return;
    }
  }
}

size_t BlockLog::CountFitting() const {
  uint64_t room = current_->size_bytes - offset_;
  size_t count = 0;
  for (size_t i = unwritten_; i < retained_.size(); ++i, ++count) {
    const uint64_t bytes = retained_[i].block->stored_bytes();
    if (bytes > room) break;
    room -= bytes;
  }
  return count;
}

LogEnd BlockLog::SealBlocks(size_t first, size_t count, const Segment& segment, uint64_t offset,
                            LogEnd end, std::vector<std::string_view>* pieces) {
  for (size_t i = first; i < first + count; ++i) {
    EpochBlock& block = *retained_[i].block;
    block.Seal({segment.number, options_.store.start, end.checksum, durable_end_.epoch,
                options_.store.identity.checksum_seed()});
    block.AppendPieces(pieces);
    offset += block.stored_bytes();
    const uint64_t first_epoch = end.segment == segment.number ? end.first_epoch : block.epoch();
    end = {block.epoch(), segment.number, offset, block.checksum(), block.wall_ms(), first_epoch};
    retained_[i].end = end;
  }
  return end;
}

bool BlockLog::EarlierSegmentsUnsynced() const {
  return unwritten_ > 0 && retained_.front().end.segment != current_->number;
}

bool BlockLog::WriteSome(size_t count, Sync sync, int64_t now_us) {
  const bool with_sync = sync == Sync::kWithWrite;
  if (with_sync && EarlierSegmentsUnsynced()) {
    sync_thread_.Drain();
    Poll(now_us);
    if (!begun()) return false;
  }
  std::vector<std::string_view> pieces;
  const LogEnd end = SealBlocks(unwritten_, count, *current_, offset_, written_end_, &pieces);
  HOTKV_CRASH_POINT("log.block.before_write");
  File* file = current_->file.get();
  const Status status = with_sync ? file->WriteGatherAndSyncAt(offset_, pieces)
                                  : file->WriteGatherAt(offset_, pieces);
  if (!status.ok()) {
    Fail(status, now_us);
    return false;
  }
  HOTKV_CRASH_POINT("log.block.written");
  bytes_written_ += end.offset - offset_;
  offset_ = end.offset;
  written_end_ = end;
  watermark_in_file_ = durable_end_.epoch;
  unwritten_ += count;
  options_.clock->SetWritten(end.epoch);
  if (with_sync) {
    ++syncs_;
    sync_started_epoch_ = end.epoch;
    AdvanceDurable(end);
  } else if (!rules::Enabled(Rule::kSyncBeforePublish)) {
    AdvanceDurable(end);
  }
  return true;
}

void BlockLog::AdvanceDurable(const LogEnd& end) {
  if (end.epoch <= durable_end_.epoch) return;
  pool_bytes_max_ = std::max<uint64_t>(retained_bytes_, kIdlePoolBytesMax);
  while (unwritten_ > 0 && retained_.front().block->epoch() <= end.epoch) {
    retained_bytes_ -= retained_.front().block->stored_bytes();
    Recycle(std::move(retained_.front().block));
    retained_.pop_front();
    --unwritten_;
  }
  durable_end_ = end;
  chain_starts_ = false;
  options_.clock->SetDurable(end.epoch);
}

// The current segment is full. Its sync comes before any of the next one's, by the order of the
// sync thread.
void BlockLog::Rotate(int64_t now_us) {
  const SegmentRef old = std::move(current_);
  current_ = nullptr;
  if (written_end_.segment != old->number) {  // never written to: the block does not fit
    skipped_.push_back(old->number);
    return;
  }
  HOTKV_CRASH_POINT("log.rotate");
  store_.NoteUse(UseOf(written_end_));
  if (rules::Enabled(Rule::kSyncOldSegmentAtRotation)) SubmitSync(old, /*final=*/true);
  if (now_us - segment_begun_us_ < kFastSegmentUs) {
    segment_bytes_ = std::min(options_.segment_bytes_max, 2 * segment_bytes_);
  }
}

SegmentRef BlockLog::TakeReady() {
  std::lock_guard lock(mutex_);
  return std::exchange(ready_, nullptr);
}

// A ready segment that is too small will not be used: it must leave the catalog before a later one
// is.
void BlockLog::SetAsideReadyBelow(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (ready_ == nullptr || ready_->size_bytes >= bytes) return;
  skipped_.push_back(ready_->number);
  ready_ = nullptr;
}

bool BlockLog::DiscardSkipped(int64_t now_us) {
  if (skipped_.empty()) return true;
  if (!next_error_.ok() && now_us < next_retry_us_) return false;
  next_error_ = Status::Ok();
  while (!skipped_.empty()) {
    const Status status = store_.Discard(skipped_.back());
    if (!status.ok()) {
      next_error_ = status;
      next_retry_us_ = now_us + options_.retry_us;
      return false;
    }
    skipped_.pop_back();
  }
  return true;
}

bool BlockLog::TakeNext(uint64_t block_bytes, int64_t now_us) {
  const uint64_t bytes = kSegmentHeaderBytes + block_bytes;
  SetAsideReadyBelow(bytes);
  if (!DiscardSkipped(now_us)) return false;
  SegmentRef next = TakeReady();
  if (next == nullptr) {
    bool preparing = false;
    {
      std::lock_guard lock(mutex_);
      preparing = preparing_;
    }
    if (preparing || (!next_error_.ok() && now_us < next_retry_us_)) return false;
    if (bytes > segment_bytes_) return MakeOwn(bytes, now_us);
    PrepareNext();
    Poll(now_us);  // it is there already where tasks run at once
    if (!begun()) return false;
    SetAsideReadyBelow(bytes);
    next = TakeReady();
    if (next == nullptr) return false;
  }
  current_ = std::move(next);
  store_.NoteInUse(current_->number);
  offset_ = kSegmentHeaderBytes;
  segment_begun_us_ = now_us;
  PrepareNext();
  return true;
}

bool BlockLog::MakeOwn(uint64_t bytes, int64_t now_us) {
  auto made = store_.Make(RoundUp(bytes), SegmentStore::Entered::kLive,
                          SegmentStore::Chain::kContinues, room_);
  if (!made.ok()) {
    next_error_ = made.status();
    next_retry_us_ = now_us + options_.retry_us;
    return false;
  }
  next_error_ = Status::Ok();
  current_ = std::move(made).value();
  store_.NoteInUse(current_->number);
  offset_ = kSegmentHeaderBytes;
  segment_begun_us_ = now_us;
  PrepareNext();
  return true;
}

void BlockLog::PrepareNext() {
  {
    std::lock_guard lock(mutex_);
    if (preparing_ || ready_ != nullptr) return;
    preparing_ = true;
  }
  files_.Run([this, bytes = segment_bytes_, room = room_] {
    const auto make = [&](uint64_t size) {
      return store_.Make(size, SegmentStore::Entered::kLive, SegmentStore::Chain::kContinues, room);
    };
    auto made = make(bytes);
    if (made.status().code() == Code::kCancelled) made = make(bytes);
    if (!made.ok() && made.status().code() == Code::kNoSpace &&
        bytes > options_.segment_bytes_min) {
      made = make(options_.segment_bytes_min);
    }
    {
      std::lock_guard lock(mutex_);
      preparing_ = false;
      prepare_status_ = made.ok() ? Status::Ok() : made.status();
      if (made.ok()) ready_ = std::move(made).value();
    }
    options_.clock->WakeWriter();
  });
}

void BlockLog::StartSync() {
  if (!begun() || current_ == nullptr || written_end_.segment != current_->number) return;
  if (written_end_.epoch <= sync_started_epoch_) return;
  SubmitSync(current_, /*final=*/false);
}

void BlockLog::SubmitSync(SegmentRef segment, bool final) {
  ++syncs_in_flight_;
  sync_started_epoch_ = written_end_.epoch;
  SyncDone done{generation_, written_end_, Status::Ok()};
  sync_thread_.Run([this, segment = std::move(segment), done, final]() mutable {
    {
      // Behind a failed sync nothing of the same chain may be called durable, nor may a segment get
      // its end.
      std::lock_guard lock(mutex_);
      if (done.generation == poisoned_generation_) return;
    }
    HOTKV_CRASH_POINT("log.before_sync");
    done.status = segment->file->Sync();
    HOTKV_CRASH_POINT("log.synced");
    if (done.status.ok() && final) {
      done.status = store_.End(UseOf(done.end));
    }
    {
      std::lock_guard lock(mutex_);
      if (!done.status.ok() && rules::Enabled(Rule::kFailedFileNeverWritten))
        poisoned_generation_ = done.generation;
      done_.push_back(std::move(done));
    }
    options_.clock->WakeWriter();
  });
}

void BlockLog::Poll(int64_t now_us) {
  TrimPool(now_us);
  std::vector<SyncDone> done;
  Status prepare_status;
  bool preparing = false;
  bool ready = false;
  {
    std::lock_guard lock(mutex_);
    done.swap(done_);
    preparing = preparing_;
    ready = ready_ != nullptr;
    prepare_status = prepare_status_;
    prepare_status_ = Status::Ok();
  }
  for (const SyncDone& sync : done) {
    if (sync.generation != generation_) continue;
    --syncs_in_flight_;
    if (!sync.status.ok()) {
      Fail(sync.status, now_us);
      continue;
    }
    ++syncs_;
    AdvanceDurable(sync.end);
  }
  if (ready) next_error_ = Status::Ok();
  if (!prepare_status.ok()) {
    if (next_error_.ok()) {
      Log(LogLevel::kWarning, "The next log segment cannot be made: " + prepare_status.ToString());
    }
    next_error_ = prepare_status;
    next_retry_us_ = now_us + options_.retry_us;
  }
  if (begun() && !ready && !preparing && !next_error_.ok() && now_us >= next_retry_us_)
    PrepareNext();
}

void BlockLog::Fail(const Status& status, int64_t now_us) {
  if (!rules::Enabled(Rule::kFailedFileNeverWritten)) {
    sync_started_epoch_ =
        durable_end_.epoch;  // as if a second sync could bring back what the first one lost
    return;
  }
  Log(LogLevel::kWarning,
      fmt::format(
          "Writing the log failed: {}. {} blocks ({} bytes) are kept in memory and go to a new "
          "segment",
          status.ToString(), retained_.size(), retained_bytes_));
  ++failures_;
  failure_ = status;
  ++generation_;
  syncs_in_flight_ = 0;
  current_ = nullptr;
  unwritten_ = 0;
  sync_started_epoch_ = durable_end_.epoch;
  next_attempt_us_ = now_us;
}

void BlockLog::FailedToBegin(const Status& status, int64_t now_us) {
  if (failure_.ok() || failure_.code() != status.code()) {
    Log(LogLevel::kWarning, "A new log segment cannot be begun: " + status.ToString());
  }
  failure_ = status;
  next_attempt_us_ = now_us + options_.retry_us;
}

void BlockLog::Resume(int64_t now_us) {
  if (tail_pending_) {
    const Status status = SyncTail();
    if (!status.ok()) return FailedToBegin(status, now_us);
    tail_pending_ = false;
  }
  uint64_t bytes = kSegmentHeaderBytes;
  for (const Retained& retained : retained_) bytes += retained.block->stored_bytes();
  SetAsideReadyBelow(chain_starts_ ? UINT64_MAX : bytes);
  SegmentRef segment = TakeReady();
  if (segment == nullptr) {
    const auto chain =
        chain_starts_ ? SegmentStore::Chain::kStarts : SegmentStore::Chain::kContinues;
    // Small: this is done while blocks wait. The next one, made behind their back, is as large as
    // it should be.
    const uint64_t size = std::max(options_.segment_bytes_min, RoundUp(bytes));
    auto made = store_.Make(size, SegmentStore::Entered::kPlanned, chain, room_);
    if (!made.ok()) return FailedToBegin(made.status(), now_us);
    segment = std::move(made).value();
  }
  const Status status = ResumeIn(segment);
  if (!status.ok()) {
    (void)store_.Discard(segment->number).ok();  // else it is left over for the next switch
    return FailedToBegin(status, now_us);
  }
  if (!failure_.ok()) Log(LogLevel::kNotice, "The log goes on in " + segment->path);
  current_ = segment;
  segment_begun_us_ = now_us;
  begun_ = true;
  failure_ = Status::Ok();
  SetAsideReadyBelow(UINT64_MAX);
  skipped_.clear();  // dropped with the others
  PrepareNext();
}

// Writes all that is not durable to the segment; then, in one step, the old one's end counts and
// the new one is live.
Status BlockLog::ResumeIn(const SegmentRef& segment) {
  if (chain_starts_) durable_end_.checksum = 0;
  std::vector<std::string_view> pieces;
  const LogEnd end =
      SealBlocks(0, retained_.size(), *segment, kSegmentHeaderBytes, durable_end_, &pieces);
  if (!retained_.empty()) {
    HOTKV_RETURN_IF_ERROR(segment->file->WriteGatherAndSyncAt(kSegmentHeaderBytes, pieces));
    HOTKV_CRASH_POINT("log.resume.written");
  }
  HOTKV_RETURN_IF_ERROR(store_.SwitchTo({UseOf(durable_end_), segment->number}));
  watermark_in_file_ = retained_.empty() ? watermark_in_file_ : durable_end_.epoch;
  unwritten_ = retained_.size();
  written_end_ = end;
  offset_ = retained_.empty() ? kSegmentHeaderBytes : end.offset;
  sync_started_epoch_ = end.epoch;
  bytes_written_ += offset_ - kSegmentHeaderBytes;
  if (!retained_.empty()) {
    options_.clock->SetWritten(end.epoch);
    AdvanceDurable(end);
  }
  return Status::Ok();
}

// Blocks of an earlier start that were found in the page cache may not be on the disk, and a sync
// that failed then may have left their pages clean: so they are written again, in place, before a
// sync is believed. If their file does not take them, they go to the new segment, before the blocks
// of this start.
Status BlockLog::SyncTail() {
  // While the log was off a snapshot may have taken its place.
  if (!options_.unsynced.empty() && !store_.IsLive(options_.unsynced.back().segment)) {
    durable_end_ = options_.end;
    return Status::Ok();
  }
  if (rules::Enabled(Rule::kSyncAcceptedBlocks)) {
    HOTKV_ASSIGN_OR_RETURN(const std::vector<std::string> blocks, ReadTail());
    const Status status = RewriteTail(blocks);
    if (!status.ok()) {
      Log(LogLevel::kWarning,
          "The end of the log cannot be synced, its blocks move: " + status.ToString());
      return RetainTail(blocks);
    }
  }
  HOTKV_CRASH_POINT("log.tail.synced");
  durable_end_ = options_.end;
  options_.clock->SetDurable(durable_end_.epoch);
  return Status::Ok();
}

Result<std::vector<std::string>> BlockLog::ReadTail() {
  LogReader reader(options_.store.env, options_.store.folder);
  std::vector<std::string> blocks;
  for (const LogBlockRef& ref : options_.unsynced) {
    HOTKV_ASSIGN_OR_RETURN(std::string bytes, reader.ReadBlock(ref));
    blocks.push_back(std::move(bytes));
  }
  return blocks;
}

Status BlockLog::RewriteTail(const std::vector<std::string>& blocks) {
  std::unique_ptr<File> file;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const LogBlockRef& ref = options_.unsynced[i];
    const std::string path = JoinPath(options_.store.folder, SegmentFileName(ref.segment));
    if (file == nullptr || file->path() != path) {
      if (file != nullptr) HOTKV_RETURN_IF_ERROR(file->Sync());
      HOTKV_ASSIGN_OR_RETURN(file,
                             options_.store.env->Open(path, OpenMode::kReadWrite, FileIo::kPosix));
    }
    HOTKV_RETURN_IF_ERROR(file->WriteAt(ref.offset, blocks[i]));
  }
  return file == nullptr ? Status::Ok() : file->Sync();
}

Status BlockLog::RetainTail(const std::vector<std::string>& blocks) {
  if (gap_) return Status::Busy("the end of the old log cannot be synced");
  std::vector<Retained> tail;
  for (size_t i = 0; i < blocks.size(); ++i) {
    auto block = NewBlock();
    HOTKV_RETURN_IF_ERROR(block->Restore(options_.unsynced[i].header, blocks[i]));
    tail.push_back({std::move(block), 1, {}});
  }
  for (auto block = tail.rbegin(); block != tail.rend(); ++block) {
    retained_bytes_ += block->block->stored_bytes();
    retained_.push_front(std::move(*block));
  }
  chain_starts_ = durable_end_.segment == 0;
  return Status::Ok();
}

Status BlockLog::Flush(int64_t now_us) {
  next_attempt_us_ = 0;
  next_retry_us_ = 0;
  Write(now_us, Sync::kWithWrite);
  for (int tries = 0; tries < 2 && begun() && has_unwritten(); ++tries) {
    files_.Drain();
    Poll(now_us);
    Write(now_us, Sync::kWithWrite);
  }
  sync_thread_.Drain();
  Poll(now_us);
  if (!begun() || has_unwritten()) {
    const Status trouble = Trouble();
    return trouble.ok() ? Status::Busy("the log is not written out") : trouble;
  }
  if (written_end_.epoch <= durable_end_.epoch) return Status::Ok();
  const Status status = current_->file->Sync();
  if (!status.ok()) {
    Fail(status, now_us);
    return status;
  }
  ++syncs_;
  AdvanceDurable(written_end_);
  return Status::Ok();
}

Status BlockLog::EndChain(int64_t now_us) {
  HOTKV_RETURN_IF_ERROR(Flush(now_us));
  HOTKV_RETURN_IF_ERROR(store_.End(UseOf(durable_end_)));
  files_.Drain();
  // Those without blocks are dropped here or, at the latest, when a new chain begins.
  if (current_ != nullptr && current_->number != durable_end_.segment) {
    skipped_.push_back(current_->number);
  }
  SetAsideReadyBelow(UINT64_MAX);
  DiscardSkipped(now_us);
  current_ = nullptr;
  begun_ = false;
  next_attempt_us_ = 0;
  BeginNewChain();
  return Status::Ok();
}

void BlockLog::BeginNewChain() {
  chain_starts_ = true;
  gap_ = true;
}

int64_t BlockLog::NextAttemptUs() const {
  if (!begun()) return next_attempt_us_;
  return next_error_.ok() ? INT64_MAX : next_retry_us_;
}

void BlockLog::DropThrough(uint64_t segment) {
  files_.Run([this, segment] {
    const Status status = store_.DropThrough(segment);
    if (!status.ok())
      Log(LogLevel::kWarning, "Old log segments stay for now: " + status.ToString());
  });
}

void BlockLog::DropBefore(uint64_t epoch) {
  files_.Run([this, epoch] {
    const Status status = store_.DropBefore(epoch);
    if (!status.ok())
      Log(LogLevel::kWarning, "Old log segments stay for now: " + status.ToString());
  });
}

}  // namespace hotkv
