// hotkv-tool info: what a data directory holds, by its catalog and the files' headers. The only subcommand that also looks
// at the directory of a running server.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/tx/epoch.h"
#include "engine/types/durable_object.h"
#include "persistence/catalog/catalog_state.h"
#include "persistence/log/log_format.h"
#include "persistence/recovery/object_loader.h"
#include "tools/hotkv_tool/log_scan.h"
#include "tools/hotkv_tool/offline_directory.h"
#include "tools/hotkv_tool/subcommands.h"

namespace hotkv {

namespace {

using Json = nlohmann::ordered_json;

std::string_view StateName(FileState state) {
  switch (state) {
    case FileState::kPlanned: return "planned";
    case FileState::kLive: return "live";
    case FileState::kDropped: return "dropped";
  }
  return "unknown";
}

std::string_view StateName(SegmentState state) { return StateName(static_cast<FileState>(state)); }

uint64_t FolderBytes(Env* env, const std::string& folder) {
  const Result<std::vector<DirEntry>> entries = env->List(folder);
  uint64_t bytes = 0;
  if (entries.ok()) {
    for (const DirEntry& entry : *entries) bytes += entry.size;
  }
  return bytes;
}

Json SnapshotsJson(const CatalogState& state) {
  Json list = Json::array();
  for (const auto& [number, s] : state.snapshots) {
    list.push_back({{"file", SnapshotFileName(number)},
                    {"state", StateName(s.state)},
                    {"from_epoch", s.from_epoch},
                    {"last_epoch", s.last_epoch},
                    {"log_epoch", s.log_epoch},
                    {"has_effects", s.has_effects},
                    {"created_ms", s.created_us / 1000},
                    {"bytes", s.bytes},
                    {"keys", s.entries},
                    {"indexes", s.generations.size()}});
  }
  return list;
}

Json SegmentsJson(const CatalogState& state) {
  Json list = Json::array();
  for (const auto& [number, s] : state.segments) {
    Json json = {{"file", SegmentFileName(number)},
                 {"state", StateName(s.state)},
                 {"start", s.start},
                 {"bytes", s.size_bytes}};
    if (s.ended) {
      json["end_offset"] = s.end_offset;
      json["first_epoch"] = s.first_epoch;
      json["last_epoch"] = s.last_epoch;
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json ObjectsJson(StoredDirectory* directory) {
  Json list = Json::array();
  for (const auto& [id, object] : directory->state().objects) {
    Json json = {{"object", id},
                 {"type", object.type},
                 {"state", StateName(object.state)},
                 {"generation", object.current()},
                 {"generations", object.generations.size()},
                 {"bytes", FolderBytes(directory->env(), ObjectFolder(directory->paths().index, id))}};
    if (object.current() != 0) json["from_epoch"] = EpochOf(object.generations.at(object.current()).from_lsn);
    list.push_back(std::move(json));
  }
  return list;
}

// What a start would find. On a directory in use the log moves on under the scan, so it is left out.
void AddRecovery(StoredDirectory* directory, Problems* problems, Json* json) {
  const Result<std::unique_ptr<Recovery>> recovery = directory->Inspect();
  if (!recovery.ok()) {
    problems->Add(recovery.status());
    return;
  }
  const Recovery& r = **recovery;
  Json log = {{"last_epoch", r.last_epoch()}, {"durable_epoch", r.durable_epoch()}, {"blocks", r.blocks()}};
  if (r.log()) {
    log["watermark"] = r.log()->watermark;
    log["clean_stop"] = r.log()->clean_stop;
    if (r.log()->torn) {
      const LogTornTail& torn = *r.log()->torn;
      log["torn"] = {{"file", torn.path}, {"offset", torn.offset}, {"bytes", torn.bytes}, {"reason", torn.reason}};
    }
  }
  (*json)["recovery"] = std::move(log);
}

Json MakeInfo(StoredDirectory* directory, Problems* problems) {
  const CatalogState& state = directory->state();
  Json ranges = Json::array();
  for (const auto& [first, range] : state.ranges) {
    ranges.push_back({{"first_epoch", range.first_epoch},
                      {"last_epoch", range.last_epoch},
                      {"first_segment", range.first_segment}});
  }
  Json json = {{"command", "info"},
               {"dir", directory->paths().root},
               {"in_use", directory->is_locked()},
               {"format", state.format},
               {"directory_id", fmt::format("{:016x}", state.directory_id)},
               {"stripes", 1u << state.stripe_bits},
               {"server_id", state.server_id},
               {"replication_id", state.replication_id},
               {"starts", state.start_number},
               {"epoch_max", state.epoch_max},
               {"next_object_id", state.next_object_id},
               {"snapshots", SnapshotsJson(state)},
               {"log_segments", SegmentsJson(state)},
               {"log_ranges", std::move(ranges)},
               {"objects", ObjectsJson(directory)},
               {"settings", state.settings.size()}};
  if (!directory->is_locked()) AddRecovery(directory, problems, &json);
  return json;
}

std::string Summary(const Json& info) {
  std::string text = fmt::format("{}: format {}, {} stripes, started {} times{}\n", info["dir"].get<std::string>(),
                                 info["format"].get<uint32_t>(), info["stripes"].get<uint32_t>(),
                                 info["starts"].get<uint64_t>(), info["in_use"].get<bool>() ? ", in use" : "");
  for (const Json& s : info["snapshots"]) {
    text += fmt::format("  snapshot {} {}: {} keys, {} indexes, {}, epochs {} to {}, {}\n",
                        s["file"].get<std::string>(), s["state"].get<std::string>(), s["keys"].get<uint64_t>(),
                        s["indexes"].get<uint64_t>(), BytesText(s["bytes"].get<uint64_t>()),
                        s["from_epoch"].get<uint64_t>(), s["last_epoch"].get<uint64_t>(),
                        TimeText(s["created_ms"].get<int64_t>()));
  }
  for (const Json& s : info["log_segments"]) {
    text += fmt::format("  log {} {}: {}", s["file"].get<std::string>(), s["state"].get<std::string>(),
                        BytesText(s["bytes"].get<uint64_t>()));
    if (s.contains("last_epoch")) {
      text += fmt::format(", epochs {} to {}, ends at {}", s["first_epoch"].get<uint64_t>(),
                          s["last_epoch"].get<uint64_t>(), s["end_offset"].get<uint64_t>());
    }
    text += "\n";
  }
  for (const Json& o : info["objects"]) {
    text += fmt::format("  index/{} {}: generation {}, {}\n", o["object"].get<uint64_t>(),
                        o["state"].get<std::string>(), o["generation"].get<uint64_t>(),
                        BytesText(o["bytes"].get<uint64_t>()));
  }
  if (!info.contains("recovery")) return text;
  const Json& r = info["recovery"];
  text += fmt::format("  a start would reach epoch {} with {} log blocks; durable up to epoch {}",
                      r["last_epoch"].get<uint64_t>(), r["blocks"].get<uint64_t>(),
                      r["durable_epoch"].get<uint64_t>());
  if (r.contains("torn")) {
    text += fmt::format("; torn tail: {} @{}, {} bytes", r["torn"]["file"].get<std::string>(),
                        r["torn"]["offset"].get<uint64_t>(), r["torn"]["bytes"].get<uint64_t>());
  }
  return text + "\n";
}

int RunInfo(const CommonOptions& common) {
  auto directory = StoredDirectory::Open(common.dir, StoredDirectory::Locking::kTolerate);
  if (!directory.ok()) return ReportFailure(common, directory.status());
  Problems problems;
  Json info = MakeInfo(directory->get(), &problems);
  std::string summary = Summary(info);
  summary.pop_back();
  return Report(common, problems, summary, &info);
}

}  // namespace

Subcommand AddInfo(CLI::App* root) {
  auto common = std::make_shared<CommonOptions>();
  CLI::App* app = root->add_subcommand("info", "what a data directory holds");
  app->add_option("--dir", common->dir, "data directory; also that of a running server")->required();
  app->add_flag("--json", common->json, "one JSON object on standard output");
  return {app, [common] { return RunInfo(*common); }};
}

}  // namespace hotkv
