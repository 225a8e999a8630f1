#include "persistence/directory_log.h"

#include <algorithm>

#include "engine/base/sync_point.h"

namespace hotkv {

void DirectoryLog::SetWriter(LogWriter* writer) {
  std::lock_guard lock(switch_mutex_);
  writer_ = writer;
  if (writer->logging()) era_.store(++last_era_, std::memory_order_release);
  UpdateLogEffects();
}

void DirectoryLog::UpdateLogEffects() {
  engine_->log_effects.store(tapping_ || writer_->logging(), std::memory_order_seq_cst);
}

Result<uint64_t> DirectoryLog::SwitchLogging(bool on) {
  std::lock_guard lock(switch_mutex_);
  if (!on) {
    // Before the log ends: from then on an epoch counts as durable without a block, and nobody may
    // take it for one of the log's (DurableBlockPast).
    const uint64_t era = era_.exchange(0, std::memory_order_seq_cst);
    const Result<uint64_t> last_epoch = writer_->EndLogging();
    if (!last_epoch.ok()) era_.store(era, std::memory_order_release);
    HOTKV_SYNC_POINT("log.ended");
    UpdateLogEffects();
    return last_epoch;
  }
  engine_->log_effects.store(true, std::memory_order_seq_cst);
  Status status = writer_->BeginLogging();
  if (!status.ok()) {
    UpdateLogEffects();
    return status;
  }
  // A commit of the current epoch may have read the flag before it was set.
  complete_from_.store(engine_->epochs().current() + 1, std::memory_order_relaxed);
  era_.store(++last_era_, std::memory_order_release);
  return engine_->epochs().current();
}

uint64_t DirectoryLog::CompleteFrom() {
  const uint64_t current = engine_->epochs().current();
  if (current >= complete_from_.load(std::memory_order_relaxed)) return current;
  writer_->RequestSync(current);
  return 0;
}

uint64_t DirectoryLog::DurableBlockPast(uint64_t epoch) {
  // In this order: once the log is off the mark follows the epochs by itself, and is no block's.
  const uint64_t durable = engine_->epochs().durable();
  if (era() == 0) return 0;
  if (durable >= epoch) return durable;
  writer_->RequestSync(epoch);
  return 0;
}

void DirectoryLog::StartTap() {
  {
    std::lock_guard lock(tapped_mutex_);
    tapped_.clear();
  }
  writer_->SetTap(this);
  std::lock_guard lock(switch_mutex_);
  tapping_ = true;
  UpdateLogEffects();
  complete_from_.store(engine_->epochs().current() + 1, std::memory_order_relaxed);
}

void DirectoryLog::StopTap() {
  {
    std::lock_guard lock(switch_mutex_);
    tapping_ = false;
    UpdateLogEffects();
  }
  writer_->SetTap(nullptr);
}

std::vector<TappedEpoch> DirectoryLog::TakeTapped() {
  std::lock_guard lock(tapped_mutex_);
  return std::exchange(tapped_, {});
}

bool DirectoryLog::TappedPast(uint64_t epoch) {
  if (engine_->epochs().durable() >= epoch) return true;
  writer_->RequestSync(epoch);
  return false;
}

void DirectoryLog::OnEpoch(const EpochBlock& block) {
  TappedEpoch tapped;
  tapped.epoch = block.epoch();
  std::vector<std::string_view> pieces;
  for (unsigned group = 0; group < kStripeGroups; ++group) {
    if (!block.has_group(group)) continue;
    pieces.clear();
    block.AppendGroupPieces(group, &pieces);
    std::string& records = tapped.groups.emplace_back(group, std::string()).second;
    for (const std::string_view piece : pieces) records.append(piece);
  }
  std::lock_guard lock(tapped_mutex_);
  tapped_.push_back(std::move(tapped));
}

}  // namespace hotkv
