#include "server/data_durability.h"

#include <string>
#include <vector>

namespace hotkv {

namespace {

// The choices of appendfsync, in the order of the settings' table.
FsyncPolicy PolicyOf(const Settings& settings) {
  const std::string& text = settings.Text(Setting::kAppendFsync);
  if (text == "always") return FsyncPolicy::kAlways;
  return text == "no" ? FsyncPolicy::kNo : FsyncPolicy::kEverySecond;
}

std::string_view PolicyName(FsyncPolicy policy) {
  switch (policy) {
    case FsyncPolicy::kAlways:
      return "always";
    case FsyncPolicy::kEverySecond:
      return "everysec";
    case FsyncPolicy::kNo:
      return "no";
  }
  return "";
}

std::vector<SavePoint> SavePointsOf(const Settings& settings) {
  std::vector<SavePoint> points;
  for (const SaveSetting& save : settings.SavePoints()) {
    points.push_back({save.seconds, static_cast<uint64_t>(save.changes)});
  }
  return points;
}

LogGrowth LogGrowthOf(const Settings& settings) {
  return {static_cast<uint64_t>(settings.Int(Setting::kAutoRewriteMinSize)),
          static_cast<unsigned>(settings.Int(Setting::kAutoRewritePercentage))};
}

}  // namespace

DataDirectoryOptions DirectoryOptionsOf(const Settings& settings) {
  DataDirectoryOptions options;
  options.path = settings.Text(Setting::kDir);
  options.stripe_bits = 0;
  while ((int64_t{1} << options.stripe_bits) < settings.Int(Setting::kStripes))
    ++options.stripe_bits;
  options.append_only = settings.Bool(Setting::kAppendOnly);
  options.fsync = PolicyOf(settings);
  options.save_points = SavePointsOf(settings);
  options.log_growth = LogGrowthOf(settings);
  return options;
}

Status DataDurability::WhenReady() const {
  if (ready_.load(std::memory_order_acquire)) return Status::Ok();
  return Status::Busy("the data is still being loaded");
}

void DataDurability::Connect(Config& config) {
  directory_.SetStopWritesOnSnapshotError(
      config.Current()->Bool(Setting::kStopWritesOnBgsaveError));
  config.OnChange({Setting::kAppendOnly}, [this](const Settings&, const Settings& after) {
    HOTKV_RETURN_IF_ERROR(WhenReady());
    return directory_.SetAppendOnly(after.Bool(Setting::kAppendOnly));
  });
  config.OnChange(
      {Setting::kAppendFsync, Setting::kSave, Setting::kAutoRewriteMinSize,
       Setting::kAutoRewritePercentage, Setting::kStopWritesOnBgsaveError},
      [this](const Settings&, const Settings& after) {
        HOTKV_RETURN_IF_ERROR(WhenReady());
        directory_.SetFsyncPolicy(PolicyOf(after));
        directory_.SetSavePoints(SavePointsOf(after));
        directory_.SetLogGrowth(LogGrowthOf(after));
        directory_.SetStopWritesOnSnapshotError(after.Bool(Setting::kStopWritesOnBgsaveError));
        return Status::Ok();
      });
}

DurabilityStatus DataDurability::GetStatus() {
  const DirectoryStatus from = directory_.GetStatus();
  DurabilityStatus to;
  to.log_on = from.log_on;
  to.fsync_policy = PolicyName(from.fsync);
  to.log_error = from.log.read_only ? from.log.reason : std::string();
  to.log_bytes = from.log.segment_bytes;
  to.log_written_bytes = from.log.bytes_written;
  to.log_base_bytes = from.log_base_bytes;
  to.log_buffered_bytes = from.log.retained_bytes;
  to.log_segments = from.log.segments;
  to.log_blocks = from.log.blocks;
  to.log_syncs = from.log.syncs;
  to.log_failures = from.log.failures;
  to.snapshot_running = from.snapshot_running;
  to.snapshot_scheduled = from.snapshot_scheduled;
  to.snapshot_is_rewrite = from.snapshot_is_rewrite;
  to.snapshot_started_ms = from.snapshot_started_ms;
  to.snapshot_percent = from.snapshot_percent;
  to.snapshots = from.snapshots;
  to.last_snapshot_error = from.last_snapshot_error;
  to.last_snapshot_seconds = from.last_snapshot_seconds;
  to.last_save_ms = from.last_save_ms;
  to.changes_since_save = from.changes_since_save;
  to.loaded_percent = from.loaded_percent;
  to.loaded_keys = from.loaded_keys;
  to.replication_id = from.replication_id;
  return to;
}

Result<uint64_t> DataDurability::BeginSnapshot(SnapshotReason reason) {
  switch (reason) {
    case SnapshotReason::kSave:
      return directory_.BeginSnapshot(SnapshotWhy::kSave);
    case SnapshotReason::kBackgroundSave:
      return directory_.BeginSnapshot(SnapshotWhy::kBackgroundSave);
    case SnapshotReason::kRewrite:
      return directory_.BeginSnapshot(SnapshotWhy::kRewrite);
  }
  return Status::Internal("unknown reason of a snapshot");
}

SnapshotState DataDurability::StateOf(uint64_t snapshot) {
  switch (directory_.OutcomeOf(snapshot)) {
    case SnapshotOutcome::kRunning:
      return SnapshotState::kRunning;
    case SnapshotOutcome::kDone:
      return SnapshotState::kDone;
    case SnapshotOutcome::kFailed:
      return SnapshotState::kFailed;
  }
  return SnapshotState::kFailed;
}

}  // namespace hotkv
