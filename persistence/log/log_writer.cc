#include "persistence/log/log_writer.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "persistence/log/block_log.h"

namespace hotkv {

namespace {

constexpr int64_t kUsPerMs = 1000;
constexpr int64_t kSleepUsMax = 1'000'000;
// everysec promises two seconds at most: a slower sync holds writers back.
constexpr int64_t kSyncLagUsMax = 2'000'000;

int64_t MonotonicUs() { return Clock::MonotonicNs() / 1000; }

}  // namespace

LogWriter::LogWriter(LogWriterOptions options)
    : options_(std::move(options)),
      clock_(options_.clock),
      last_closed_(options_.end.epoch),
      last_block_(options_.end.epoch),
      last_data_(options_.end.epoch),
      wall_ms_(options_.end.wall_ms),
      policy_(options_.policy),
      logging_(options_.logging),
      logging_wanted_(options_.logging) {
  BlockLogOptions log;
  log.store = {options_.env,      options_.folder, options_.catalog,
               options_.identity, options_.start,  options_.io};
  log.clock = clock_;
  log.segment_bytes_min = options_.segment_bytes_min;
  log.segment_bytes_max = options_.segment_bytes_max;
  log.retry_us = options_.retry_ms * kUsPerMs;
  log.tasks = options_.manual ? TaskMode::kInline : TaskMode::kThread;
  log.end = options_.end;
  log.durable_end = options_.durable_end;
  log.unsynced = options_.unsynced;
  log.uses = options_.uses;
  log_ = std::make_unique<BlockLog>(std::move(log));
  if (!options_.logging) log_->BeginNewChain();
}

Result<std::unique_ptr<LogWriter>> LogWriter::Start(LogWriterOptions options) {
  HOTKV_CHECK(options.clock->current() > options.end.epoch);
  options.clock->SetWritten(options.end.epoch);
  options.clock->SetDurable(options.durable_end.epoch);
  std::unique_ptr<LogWriter> writer(new LogWriter(std::move(options)));
  HOTKV_RETURN_IF_ERROR(writer->log_->Open());
  if (!writer->options_.manual) {
    writer->thread_ = std::thread([w = writer.get()] {
      pthread_setname_np(pthread_self(), "hotkv-log");
      w->Loop();
    });
  }
  return writer;
}

LogWriter::~LogWriter() {
  if (!thread_.joinable()) return;
  abandon_.store(true, std::memory_order_release);
  clock_->WakeWriter();
  thread_.join();
}

Status LogWriter::Stop() {
  if (options_.manual) return FinishLog(MonotonicUs());
  if (thread_.joinable()) {
    stop_.store(true, std::memory_order_release);
    clock_->WakeWriter();
    thread_.join();
  }
  std::lock_guard lock(mutex_);
  return stop_status_;
}

void LogWriter::Loop() {
  while (!abandon_.load(std::memory_order_acquire)) {
    if (stop_.load(std::memory_order_acquire)) {
      Status status = FinishLog(MonotonicUs());
      std::lock_guard lock(mutex_);
      stop_status_ = std::move(status);
      return;
    }
    const int64_t due = Cycle(MonotonicUs());
    if (due > 0) clock_->WaitForWork(std::min(due, kSleepUsMax), !clock_->CurrentHasEffects());
  }
}

void LogWriter::RequestSync(uint64_t epoch) {
  epoch = std::min(epoch, clock_->current());
  uint64_t wanted = sync_wanted_.load(std::memory_order_relaxed);
  while (wanted < epoch) {
    if (sync_wanted_.compare_exchange_weak(wanted, epoch, std::memory_order_release,
                                           std::memory_order_relaxed)) {
      clock_->WakeWriter();
      return;
    }
  }
}

void LogWriter::SetPolicy(FsyncPolicy policy) {
  policy_.store(policy, std::memory_order_relaxed);
  clock_->WakeWriter();
}

void LogWriter::SetTap(EpochTap* tap) { tap_.store(tap, std::memory_order_release); }

LogStats LogWriter::stats() const {
  std::lock_guard lock(mutex_);
  LogStats stats = stats_;
  stats.segments = log_->segments().live_count();
  stats.segment_bytes = log_->segments().live_bytes();
  return stats;
}

std::vector<LogSegmentEntry> LogWriter::Segments() const { return log_->segments().Entries(); }

void LogWriter::DropBefore(uint64_t epoch) { log_->DropBefore(epoch); }

void LogWriter::DropThrough(uint64_t segment) { log_->DropThrough(segment); }

Result<uint64_t> LogWriter::EndLogging() {
  HOTKV_RETURN_IF_ERROR(SetLogging(false));
  std::lock_guard lock(mutex_);
  return last_logged_;
}

Status LogWriter::BeginLogging() { return SetLogging(true); }

Status LogWriter::SetLogging(bool on) {
  std::unique_lock lock(mutex_);
  logging_wanted_ = on;
  logging_answered_ = false;
  lock.unlock();
  if (options_.manual) ApplyLogging(MonotonicUs());
  clock_->WakeWriter();
  lock.lock();
  changed_.wait(lock, [&] { return logging_answered_; });
  return logging_status_;
}

void LogWriter::ApplyLogging(int64_t now_us) {
  bool wanted = false;
  {
    std::lock_guard lock(mutex_);
    if (logging_answered_) return;
    wanted = logging_wanted_;
  }
  Status status;
  const bool ended = !wanted && logging();
  if (ended) {
    CloseEpoch(now_us);
    status = log_->EndChain(now_us);
  }
  // A log that cannot be ended goes on, and the caller is told why.
  if (status.ok()) logging_.store(wanted, std::memory_order_release);
  {
    std::lock_guard lock(mutex_);
    logging_answered_ = true;
    if (ended) last_logged_ = last_closed_;
    logging_status_ = std::move(status);
  }
  changed_.notify_all();
}

uint64_t LogWriter::WallMs() {
  const uint64_t now =
      options_.wall_ms ? options_.wall_ms() : static_cast<uint64_t>(Clock::NowMs());
  wall_ms_ = std::max(wall_ms_, now);
  return wall_ms_;
}

int64_t LogWriter::Cycle(int64_t now_us) {
  ApplyLogging(now_us);
  log_->Poll(now_us);
  if (ShouldClose(now_us)) CloseEpoch(now_us);
  if (logging()) {
    const bool always = policy() == FsyncPolicy::kAlways;
    log_->Write(now_us, always ? BlockLog::Sync::kWithWrite : BlockLog::Sync::kNo);
    MaybeSync(now_us);
    log_->Poll(now_us);
  }
  PublishState(now_us);
  return NextDue(now_us);
}

bool LogWriter::ShouldClose(int64_t now_us) const {
  const uint64_t wanted = sync_wanted_.load(std::memory_order_acquire);
  if (wanted > (logging() ? last_block_ : last_closed_)) return true;
  if (!clock_->CurrentHasEffects()) return IdleBlockIsDue(now_us);
  const bool waits = log_->has_unwritten();  // a failure, or no next segment yet
  if (policy() == FsyncPolicy::kAlways && logging() && !waits) return true;
  return clock_->CurrentIsFull() || now_us - last_close_us_ >= options_.close_ms * kUsPerMs;
}

bool LogWriter::IdleBlockIsDue(int64_t now_us) const {
  if (!logging() || policy() == FsyncPolicy::kNo || last_data_ <= log_->watermark_in_file())
    return false;
  if (log_->durable_end().epoch < last_data_ || log_->has_unwritten()) return false;
  return now_us - last_append_us_ >= options_.idle_ms * kUsPerMs;
}

void LogWriter::CloseEpoch(int64_t now_us) {
  const uint64_t wanted = sync_wanted_.load(std::memory_order_acquire);
  const bool idle = IdleBlockIsDue(now_us);
  const uint64_t epoch = clock_->Close();
  auto block = log_->NewBlock();
  block->Gather(clock_, epoch);
  clock_->Release(epoch);
  block->set_wall_ms(WallMs());
  last_closed_ = epoch;
  last_close_us_ = now_us;
  if (!block->empty()) {
    if (EpochTap* tap = tap_.load(std::memory_order_acquire)) tap->OnEpoch(*block);
  }
  if (!logging()) {
    log_->Recycle(std::move(block));
    clock_->SetWritten(epoch);
    clock_->SetDurable(epoch);
    return;
  }
  // An empty epoch needs a block only where somebody relies on its being in the log.
  if (block->empty() && !idle && wanted <= last_block_) {
    log_->Recycle(std::move(block));
    return;
  }
  AppendBlock(std::move(block), now_us);
}

void LogWriter::AppendBlock(std::unique_ptr<EpochBlock> block, int64_t now_us) {
  last_block_ = block->epoch();
  if (!block->empty()) last_data_ = block->epoch();
  last_append_us_ = now_us;
  ++blocks_;
  log_->Append(std::move(block), now_us);
}

void LogWriter::MaybeSync(int64_t now_us) {
  const uint64_t durable = log_->durable_end().epoch;
  if (log_->written_end().epoch <= durable) return;
  // One that was asked for after the sync in flight began needs one more: it starts when that one
  // is done.
  if (log_->sync_in_flight()) return;
  const bool wanted = sync_wanted_.load(std::memory_order_acquire) > durable;
  const bool second =
      policy() != FsyncPolicy::kNo && now_us - last_sync_us_ >= options_.sync_ms * kUsPerMs;
  const bool many = log_->retained_bytes() >= options_.sync_bytes;
  if (!wanted && !second && !many) return;
  last_sync_us_ = now_us;
  log_->StartSync();
}

void LogWriter::PublishState(int64_t now_us) {
  const Status trouble = logging() ? log_->Trouble() : Status::Ok();
  const bool read_only = !trouble.ok();
  const bool changed = read_only != read_only_.load(std::memory_order_relaxed);
  const bool lags =
      policy() == FsyncPolicy::kEverySecond && log_->oldest_us() > 0 &&
      now_us - log_->oldest_us() > std::max(kSyncLagUsMax, 2 * options_.sync_ms * kUsPerMs);
  clock_->SetWritesWait(!read_only &&
                        (lags || log_->retained_bytes() > options_.retained_bytes_max));
  {
    std::lock_guard lock(mutex_);
    stats_.logging = logging();
    stats_.read_only = read_only;
    stats_.reason = read_only ? trouble.ToString() : "";
    stats_.retained_bytes = log_->retained_bytes();
    stats_.bytes_written = log_->bytes_written();
    stats_.blocks = blocks_;
    stats_.syncs = log_->syncs();
    stats_.failures = log_->failures();
  }
  read_only_.store(read_only, std::memory_order_release);
  if (changed) {
    Log(LogLevel::kWarning,
        read_only ? "Writes are refused: " + trouble.ToString() : "Writes are accepted again");
  }
  const uint64_t durable = clock_->durable();
  if ((changed || durable != durable_told_) && options_.on_progress) options_.on_progress();
  durable_told_ = durable;
}

int64_t LogWriter::NextDue(int64_t now_us) const {
  int64_t due = kSleepUsMax;
  const auto at = [&](int64_t when_us) {
    due = std::min(due, std::max<int64_t>(when_us - now_us, 0));
  };
  if (clock_->CurrentHasEffects()) {
    const bool at_once = policy() == FsyncPolicy::kAlways && logging() && !log_->has_unwritten();
    at(at_once ? now_us : last_close_us_ + options_.close_ms * kUsPerMs);
  }
  if (!logging()) {
    if (sync_wanted_.load(std::memory_order_acquire) > last_closed_) at(now_us);
    return due;
  }
  if (sync_wanted_.load(std::memory_order_acquire) > last_block_) at(now_us);
  const int64_t attempt_us = log_->NextAttemptUs();
  if (attempt_us != INT64_MAX) at(std::max(attempt_us, now_us + kUsPerMs));
  const bool unsynced = log_->written_end().epoch > log_->durable_end().epoch;
  if (unsynced && !log_->sync_in_flight() && policy() == FsyncPolicy::kEverySecond) {
    at(last_sync_us_ + options_.sync_ms * kUsPerMs);
  }
  if (last_data_ > log_->watermark_in_file() && policy() != FsyncPolicy::kNo && !unsynced &&
      attempt_us == INT64_MAX) {
    at(last_append_us_ + options_.idle_ms * kUsPerMs);
  }
  return due;
}

// The last effects, then an empty block that says they are durable and that this start wrote
// nothing after it.
Status LogWriter::FinishLog(int64_t now_us) {
  CloseEpoch(now_us);
  if (!logging()) return Status::Ok();
  HOTKV_RETURN_IF_ERROR(log_->Flush(now_us));
  const uint64_t epoch = clock_->Close();
  auto block = log_->NewBlock();
  block->Gather(clock_, epoch);
  clock_->Release(epoch);
  HOTKV_CHECK(block->empty());  // Stop's caller has stopped all commits
  block->set_wall_ms(WallMs());
  block->set_clean_stop();
  AppendBlock(std::move(block), now_us);
  const Status status = log_->Flush(now_us);
  PublishState(now_us);
  return status;
}

}  // namespace hotkv
