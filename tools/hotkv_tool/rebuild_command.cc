// hotkv-tool rebuild: vector indexes of a stopped server's directory, built anew on all cores.
#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "engine/commands/command_context.h"
#include "engine/types/vector_set_rebuild.h"
#include "tools/common/progress.h"
#include "tools/hotkv_tool/offline_directory.h"
#include "tools/hotkv_tool/subcommands.h"
#include "tools/hotkv_tool/tool_report.h"

namespace hotkv {

namespace {

constexpr int64_t kTurnNs = 10'000'000;
constexpr int kPercent = 100;

struct RebuildArguments {
  CommonOptions common;
  std::vector<std::string> names;  // none: every index
  uint32_t db = 0;
  uint32_t m = 0;  // 0: as it is, as below
  uint32_t ef_construction = 0;
  std::string type;
  unsigned threads = 0;
  unsigned databases = 16;
};

struct FoundIndex {
  uint32_t db = 0;
  std::string name;
  ObjectRef<VectorSet> set;
};

std::vector<FoundIndex> FindIndexes(Engine* engine, const RebuildArguments& arguments) {
  std::vector<FoundIndex> found;
  Keyspace& keyspace = engine->keyspace();
  const auto wanted = [&](uint32_t db, std::string_view name) {
    if (arguments.names.empty()) return true;
    return db == arguments.db &&
           std::find(arguments.names.begin(), arguments.names.end(), name) != arguments.names.end();
  };
  for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
    for (uint32_t db = 0; db < keyspace.databases(); ++db) {
      Table* table = keyspace.stripe(i).table(db);
      if (table == nullptr || table->sums().objects == 0) continue;
      for (uint32_t c = 0; c < table->chunk_count(); ++c) {
        table->ForEachInChunk(c, [&](Entry** slot) {
          const Entry& entry = **slot;
          if (entry.type() != ValueType::kVectorSet || !wanted(db, entry.key())) return;
          auto* set = static_cast<VectorSet*>(entry.object());
          found.push_back({db, std::string(entry.key()), ObjectRef<VectorSet>::Share(set)});
        });
      }
    }
  }
  return found;
}

Result<IndexOptions> OptionsFor(const VectorSet& set, const RebuildArguments& arguments) {
  IndexOptions options = set.index().options();
  if (arguments.m != 0) options.m = arguments.m;
  if (arguments.ef_construction != 0) options.ef_construction = arguments.ef_construction;
  if (!arguments.type.empty()) {
    bool known = false;
    for (const ElementType type : {ElementType::kF32, ElementType::kF16, ElementType::kQ8,
                                   ElementType::kQ4, ElementType::kBin}) {
      if (!EqualsIgnoreCase(arguments.type, ElementTypeName(type))) continue;
      options.type = type;
      known = true;
    }
    if (!known) return Status::InvalidArgument("--type must be F32, F16, Q8, Q4 or BIN");
  }
  HOTKV_RETURN_IF_ERROR(VectorIndex::CheckOptions(options));
  return options;
}

Status RebuildOne(Engine* engine, const FoundIndex& index, const RebuildOptions& options) {
  index.set->rebuild_percent.store(0);
  VectorSetRebuild job(engine, index.set, options);
  ProgressBar progress(fmt::format("rebuilding {}", Printable(index.name)), kPercent);
  WorkerState& worker = engine->worker(0);
  while (job.Step() != BackgroundJob::Progress::kDone) {
    worker.now_ms = Clock::NowMs();
    engine->TurnEnd(worker, kTurnNs);
    progress.Update(static_cast<uint64_t>(std::max(0, index.set->rebuild_percent.load())));
  }
  progress.Finish();
  return job.status();
}

int RunRebuild(RebuildArguments arguments) {
  if (arguments.threads == 0) arguments.threads = std::max(1u, std::thread::hardware_concurrency());
  const CommonOptions& common = arguments.common;
  auto directory = OfflineDirectory::Open({common.dir, 1, arguments.databases});
  if (!directory.ok()) return ReportFailure(common, directory.status());
  Engine* engine = (*directory)->engine();
  const std::vector<FoundIndex> found = FindIndexes(engine, arguments);
  Problems problems;
  for (const std::string& name : arguments.names) {
    const auto is = [&name](const FoundIndex& index) { return index.name == name; };
    if (std::any_of(found.begin(), found.end(), is)) continue;
    problems.Add(fmt::format("no vector index {} in database {}", Printable(name), arguments.db));
  }
  uint64_t elements = 0;
  uint64_t rebuilt = 0;
  for (const FoundIndex& index : found) {
    const auto options = OptionsFor(*index.set, arguments);
    const Status status =
        options.ok() ? RebuildOne(engine, index, {*options, arguments.threads}) : options.status();
    if (!status.ok()) {
      problems.Add(Printable(index.name) + ": " + status.ToString());
      continue;
    }
    elements += index.set->index().Count();
    ++rebuilt;
  }
  const Status stopped = (*directory)->Stop();
  if (!stopped.ok()) return ReportFailure(common, stopped);
  nlohmann::ordered_json result = {
      {"command", "rebuild"}, {"indexes", rebuilt}, {"elements", elements}};
  return Report(common, problems, fmt::format("{} indexes rebuilt, {} elements", rebuilt, elements),
                &result);
}

}  // namespace

Subcommand AddRebuild(CLI::App* root) {
  auto arguments = std::make_shared<RebuildArguments>();
  CLI::App* app = root->add_subcommand("rebuild", "vector indexes of a stopped directory, anew");
  app->add_option("indexes", arguments->names, "keys of the indexes (default: all)");
  app->add_option("--dir", arguments->common.dir, "data directory of a stopped server")
      ->required()
      ->check(CLI::ExistingDirectory);
  app->add_option("--db", arguments->db, "database of the named indexes")->capture_default_str();
  app->add_option("--m", arguments->m, "links a node")->check(CLI::Range(2u, kIndexMMax));
  app->add_option("--ef-construction", arguments->ef_construction, "depth of building")
      ->check(CLI::Range(1u, kIndexEfMax));
  app->add_option("--type", arguments->type, "element type: F32, F16, Q8, Q4 or BIN");
  app->add_option("--threads", arguments->threads, "that build (default: one a core)")
      ->check(CLI::Range(1, 256));
  app->add_option("--databases", arguments->databases, "number of databases")->capture_default_str();
  app->add_flag("--json", arguments->common.json, "one JSON object on standard output");
  return {app, [arguments] { return RunRebuild(*arguments); }};
}

}  // namespace hotkv
