#include "tools/hotkv_tool/log_repair.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/tx/epoch.h"
#include "persistence/catalog/catalog.h"
#include "persistence/catalog/lmdb_store.h"
#include "tools/hotkv_tool/log_scan.h"
#include "tools/hotkv_tool/tool_report.h"

namespace hotkv {

namespace {

// The segment whose file the status is about; 0: none.
uint64_t SegmentOf(const Status& status) {
  const std::string& path = status.path();
  return ParseSegmentFileName(std::string_view(path).substr(path.rfind('/') + 1));
}

Status NoVisit(const LogBlockRef&) { return Status::Ok(); }

// Cuts the scan at a bad place; false when there is nothing left of it.
bool CutAt(uint64_t segment, uint64_t offset, LogScanOptions* options) {
  std::erase_if(options->segments, [&](const LogSegmentEntry& entry) {
    return entry.number > segment || (entry.number == segment && offset <= kSegmentHeaderBytes);
  });
  if (options->segments.empty()) return false;
  LogSegmentEntry& last = options->segments.back();
  if (last.number == segment) {
    last.ended = true;
    last.end_offset = offset;
    last.last_epoch = 0;
  }
  return true;
}

}  // namespace

Status ScanGoodPart(LogScanOptions options, std::vector<LogBlockRef>* blocks) {
  Status damage;
  for (size_t round = 0; round <= options.segments.size() + 2; ++round) {
    blocks->clear();
    const Result<LogScanResult> scan = ScanLog(options, [blocks](const LogBlockRef& block) {
      blocks->push_back(block);
      return Status::Ok();
    });
    if (scan.ok()) return damage;
    if (damage.ok()) damage = scan.status();
    const uint64_t segment = SegmentOf(scan.status());
    const auto offset = static_cast<uint64_t>(std::max<int64_t>(scan.status().offset(), 0));
    options.durable_epoch = 0;
    if (segment == 0 || !CutAt(segment, offset, &options)) break;
  }
  blocks->clear();
  return damage;
}

namespace {

LogEnd EndOf(const std::vector<LogBlockRef>& blocks) {
  LogEnd end;
  if (blocks.empty()) return end;
  const LogBlockRef& last = blocks.back();
  const auto first = std::find_if(blocks.begin(), blocks.end(),
                                  [&](const LogBlockRef& block) { return block.segment == last.segment; });
  return {last.header.epoch,    last.segment,        last.offset + last.header.block_bytes,
          last.header.checksum, last.header.wall_ms, first->header.epoch};
}

void NoteLate(const CatalogState& state, LogRepairPlan* plan) {
  for (const auto& [number, snapshot] : state.snapshots) {
    if (snapshot.state != FileState::kLive) continue;
    if (snapshot.last_epoch > plan->end.epoch) {
      plan->late_snapshots.push_back(number);
    } else {
      plan->has_snapshot = true;
    }
  }
  for (const auto& [id, object] : state.objects) {
    const uint64_t current = object.current();
    if (current == 0) continue;
    if (object.generations.at(current).log_epoch > plan->end.epoch) plan->late_generations.push_back({id, current});
  }
}

Status CopyFile(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::copy_file(from, to, error);
  if (error) return Status::FromErrno(error.value(), "copy", from);
  HOTKV_ASSIGN_OR_RETURN(auto file, PosixEnv()->Open(to, OpenMode::kReadWrite));
  return file->Sync();
}

Result<std::string> KeepOriginals(const DirectoryPaths& paths, const LogRepairPlan& plan) {
  Env* env = PosixEnv();
  std::string root = paths.root;
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  const std::string folder = fmt::format("{}.before-repair-{}", root, Clock::NowUs());
  HOTKV_RETURN_IF_ERROR(env->MakeDir(folder));
  HOTKV_RETURN_IF_ERROR(CopyFile(paths.catalog, JoinPath(folder, "catalog.mdb")));
  HOTKV_RETURN_IF_ERROR(env->MakeDir(JoinPath(folder, "log")));
  HOTKV_RETURN_IF_ERROR(env->MakeDir(JoinPath(folder, "snapshots")));
  for (const uint64_t number : plan.cut_segments) {
    const std::string name = SegmentFileName(number);
    const std::string from = JoinPath(paths.log, name);
    HOTKV_ASSIGN_OR_RETURN(const bool exists, env->Exists(from));
    if (exists) HOTKV_RETURN_IF_ERROR(CopyFile(from, JoinPath(JoinPath(folder, "log"), name)));
  }
  for (const uint64_t number : plan.late_snapshots) {
    const std::string name = SnapshotFileName(number);
    HOTKV_RETURN_IF_ERROR(CopyFile(JoinPath(paths.snapshots, name), JoinPath(JoinPath(folder, "snapshots"), name)));
  }
  for (const char* part : {"log", "snapshots"}) HOTKV_RETURN_IF_ERROR(env->SyncDir(JoinPath(folder, part)));
  HOTKV_RETURN_IF_ERROR(env->SyncDir(folder));
  HOTKV_RETURN_IF_ERROR(env->SyncDir(ParentFolder(folder)));
  return folder;
}

std::string RandomId() {
  std::random_device device;
  std::string id;
  while (id.size() < 40) id += fmt::format("{:08x}", device());
  return id;
}

void Cut(const LogRepairPlan& plan, CatalogState* state) {
  // Later epochs have been used, also where no block of them is left.
  const auto used = [state](uint64_t epoch) { state->epoch_max = std::max(state->epoch_max, epoch); };
  const auto lower = [&](uint64_t* log_epoch) {
    used(*log_epoch);
    *log_epoch = std::min(*log_epoch, plan.end.epoch);
  };
  for (const uint64_t number : plan.cut_segments) {
    LogSegmentEntry& entry = state->segments.at(number);
    used(entry.last_epoch);
    if (number != plan.end.segment) {
      entry.state = SegmentState::kDropped;
      continue;
    }
    entry.ended = true;
    entry.end_offset = plan.end.offset;
    entry.first_epoch = plan.end.first_epoch;
    entry.last_epoch = plan.end.epoch;
  }
  lower(&state->log_epoch);
  for (auto& [number, snapshot] : state->snapshots) {
    used(snapshot.last_epoch);
    lower(&snapshot.log_epoch);
  }
  for (auto& [id, object] : state->objects) {
    for (auto& [number, generation] : object.generations) {
      used(EpochOf(generation.from_lsn));
      lower(&generation.log_epoch);
    }
  }
  if (plan.has_snapshot) {
    for (const uint64_t number : plan.late_snapshots) state->snapshots.at(number).state = FileState::kDropped;
  }
  state->replication_id = RandomId();
}

}  // namespace

Result<std::optional<LogRepairPlan>> PlanLogRepair(StoredDirectory* directory) {
  const CatalogState& state = directory->state();
  for (const auto& [first, range] : state.ranges) {
    LogScanOptions options = OptionsForRange(directory, range);
    if (options.segments.empty()) continue;
    options.check_all_bodies = true;
    const Result<LogScanResult> scan = ScanLog(options, NoVisit);
    if (scan.ok()) continue;
    LogRepairPlan plan;
    plan.damage = scan.status();
    plan.range = range;
    std::vector<LogBlockRef> blocks;
    static_cast<void>(ScanGoodPart(options, &blocks).ok());
    plan.end = EndOf(blocks);
    for (const LogSegmentEntry& entry : options.segments) {
      if (entry.number < plan.end.segment) continue;
      plan.cut_segments.push_back(entry.number);
      const uint64_t kept = entry.number == plan.end.segment ? plan.end.offset : 0;
      const uint64_t end = entry.ended ? entry.end_offset : entry.size_bytes;
      plan.lost_bytes += end - std::min(kept, end);
    }
    NoteLate(state, &plan);
    return std::optional<LogRepairPlan>(std::move(plan));
  }
  return std::optional<LogRepairPlan>();
}

Result<std::string> RepairLog(StoredDirectory* directory, const LogRepairPlan& plan) {
  HOTKV_ASSIGN_OR_RETURN(const std::string kept, KeepOriginals(directory->paths(), plan));
  HOTKV_ASSIGN_OR_RETURN(auto store, LmdbStore::Open(directory->paths().catalog, LmdbStore::Mode::kReadWrite));
  HOTKV_ASSIGN_OR_RETURN(const auto catalog, Catalog::Open(std::move(store)));
  HOTKV_RETURN_IF_ERROR(catalog->Update([&](CatalogState* state) { Cut(plan, state); }));
  return kept;
}

}  // namespace hotkv
