// DirectoryLog: the log writer as snapshots see it, and the switch of the log between on and off
// (CONFIG SET appendonly).
//
// While the log is off the workers' effects are thrown away with their epochs, unless a snapshot
// taps them.
//
// Thread rules: era and SwitchLogging from any thread; OnEpoch on the log writer's; the rest from
// the directory's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/tx/engine.h"
#include "persistence/log/log_writer.h"
#include "persistence/snapshot/snapshot_job.h"

namespace hotkv {

class DirectoryLog : public SnapshotLog, public EpochTap {
 public:
  // The writer is set once it runs.
  explicit DirectoryLog(Engine* engine) : engine_(engine) {}
  void SetWriter(LogWriter* writer);

  // Makes workers log (or not) and the writer with them. On: effects are complete from
  // CompleteFrom() on. Off: returns an epoch at or past the log's last block and before the first
  // that a tap begun afterwards completes.
  Result<uint64_t> SwitchLogging(bool on);

  uint64_t era() const override { return era_.load(std::memory_order_acquire); }
  uint64_t CompleteFrom() override;
  uint64_t DurableBlockPast(uint64_t epoch) override;
  void StartTap() override;
  void StopTap() override;
  std::vector<TappedEpoch> TakeTapped() override;
  bool TappedPast(uint64_t epoch) override;

  void OnEpoch(const EpochBlock& block) override;

 private:
  void UpdateLogEffects();

  Engine* const engine_;
  LogWriter* writer_ = nullptr;
  std::atomic<uint64_t> era_{0};            // release by SwitchLogging
  std::atomic<uint64_t> complete_from_{0};  // relaxed: set before what depends on it begins
  uint64_t last_era_ = 0;                   // guarded by switch_mutex_
  std::mutex switch_mutex_;                 // one switch at a time
  bool tapping_ = false;                    // guarded by switch_mutex_
  std::mutex tapped_mutex_;
  std::vector<TappedEpoch> tapped_;  // guarded by tapped_mutex_
};

}  // namespace hotkv
