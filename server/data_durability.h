// DataDurability: the data directory behind the server's DurabilityControl, and the settings that
// concern it.
//
// Thread rules: as DurabilityControl. Connect before the workers start.
#pragma once

#include <atomic>

#include "persistence/data_directory.h"
#include "server/config/config.h"
#include "server/durability.h"

namespace hotkv {

// What a directory is opened with, except for the functions that call back into the server.
DataDirectoryOptions DirectoryOptionsOf(const Settings& settings);

class DataDurability final : public DurabilityControl {
 public:
  explicit DataDurability(DataDirectory* directory) : directory_(*directory) {}

  // appendonly, appendfsync, save and stop-writes-on-bgsave-error reach the directory, now and when
  // they change.
  void Connect(Config& config);
  void SetReady() { ready_.store(true, std::memory_order_release); }

  DurabilityStatus GetStatus() override;
  Result<uint64_t> BeginSnapshot(SnapshotReason reason) override;
  SnapshotState StateOf(uint64_t snapshot) override;
  void HelpSnapshot(WorkerState& worker) override { directory_.HelpSnapshot(worker); }
  bool LogCounts() override { return directory_.log_counts(); }
  void RequestSync() override { directory_.RequestSync(); }
  Status Reload() override { return directory_.Reload(); }
  Status ChangeReplicationId() override { return directory_.ChangeReplicationId(); }
  void Tick(int64_t) override {}  // the directory has a thread of its own
  Status Shutdown(bool save) override { return directory_.Stop(save); }

 private:
  // Settings can be changed once the data is loaded and the log has begun.
  Status WhenReady() const;
  DataDirectory& directory_;
  std::atomic<bool> ready_{false};
};

}  // namespace hotkv
