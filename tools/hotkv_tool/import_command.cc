// hotkv-tool import: files into a data directory or a running server.
#include <chrono>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/hotkv_tool/engine_target.h"
#include "tools/hotkv_tool/importer.h"
#include "tools/hotkv_tool/input_format.h"
#include "tools/hotkv_tool/offline_directory.h"
#include "tools/hotkv_tool/server_target.h"
#include "tools/hotkv_tool/subcommands.h"

namespace hotkv {

namespace {

struct ImportArguments {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::string format;
  FbinOptions fbin;
  ImportOptions import;
  std::optional<uint32_t> db;
  unsigned lanes = 0;  // 0: chosen here
  unsigned databases = 16;
};

// The target and what it stands on.
struct OpenTarget {
  std::unique_ptr<OfflineDirectory> directory;
  std::unique_ptr<CommandTarget> target;

  Status Finish() const {
    HOTKV_RETURN_IF_ERROR(target->Finish());
    return directory ? directory->Stop() : Status::Ok();
  }
};

Result<OpenTarget> Open(ImportArguments* arguments) {
  OpenTarget open;
  unsigned lanes = arguments->lanes;
  if (lanes == 0) lanes = std::min(std::max(1u, std::thread::hardware_concurrency()), 64u);
  if (!arguments->common.url.empty()) {
    HOTKV_ASSIGN_OR_RETURN(RespAddress address, RespAddress::Parse(arguments->common.url));
    if (arguments->db) address.database = static_cast<int>(*arguments->db);
    arguments->import.db = static_cast<uint32_t>(address.database);
    HOTKV_ASSIGN_OR_RETURN(open.target, ServerTarget::Connect(address, lanes));
    return open;
  }
  arguments->import.db = arguments->db.value_or(0);
  HOTKV_ASSIGN_OR_RETURN(open.directory,
                         OfflineDirectory::Open({arguments->common.dir, lanes, arguments->databases}));
  open.target = std::make_unique<EngineTarget>(open.directory->engine());
  return open;
}

class ImportRun {
 public:
  ImportRun(ImportArguments arguments, DataFormat format)
      : arguments_(std::move(arguments)), format_(format), start_(std::chrono::steady_clock::now()) {}

  Status Run() {
    HOTKV_ASSIGN_OR_RETURN(open_, Open(&arguments_));
    arguments_.fbin.db = arguments_.import.db;
    importer_.emplace(open_.target.get(), arguments_.import, &problems_);
    Result<bool> done = RunFiles();
    // What was applied is to stay, whatever came after it.
    const Status finished = open_.Finish();
    if (!done.ok()) problems_.Add(done.status());
    return finished;
  }

  int Finish() {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    nlohmann::ordered_json result = {{"command", "import"},
                                     {"records", importer_->records()},
                                     {"applied", importer_->applied()},
                                     {"refused", importer_->refused()},
                                     {"skipped", importer_->skipped()},
                                     {"expired", importer_->expired()},
                                     {"seconds", seconds}};
    const std::string summary =
        fmt::format("{} applied, {} refused, {} skipped, {} expired already ({:.1f} s)", importer_->applied(),
                    importer_->refused(), importer_->skipped(), importer_->expired(), seconds);
    return Report(arguments_.common, problems_, summary, &result);
  }

 private:
  Result<std::unique_ptr<RecordReader>> OpenReader(const std::string& path) {
    return OpenInput(path, format_, arguments_.fbin);
  }

  // All files are checked before the first is applied. Standard input can be read only once.
  Result<bool> RunFiles() {
    for (const std::string& path : arguments_.inputs) {
      if (path == "-" || arguments_.import.skip_bad) continue;
      HOTKV_ASSIGN_OR_RETURN(auto reader, OpenReader(path));
      if (reader->total() == 0) continue;  // a pipe
      ProgressBar progress("checking " + path, reader->total());
      HOTKV_ASSIGN_OR_RETURN(const bool fine, importer_->Check(reader.get(), &progress));
      if (!fine) return false;
    }
    for (const std::string& path : arguments_.inputs) {
      HOTKV_ASSIGN_OR_RETURN(auto reader, OpenReader(path));
      ProgressBar progress("importing " + path, reader->total());
      HOTKV_ASSIGN_OR_RETURN(const bool fine, importer_->Run(reader.get(), &progress));
      if (!fine) return false;
    }
    return true;
  }

  ImportArguments arguments_;
  const DataFormat format_;
  const std::chrono::steady_clock::time_point start_;
  Problems problems_;
  OpenTarget open_;
  std::optional<Importer> importer_;
};

int RunImport(const ImportArguments& arguments) {
  const CommonOptions& common = arguments.common;
  if (common.dir.empty() == common.url.empty()) {
    return ReportFailure(common, Status::InvalidArgument("give either --dir or --url"));
  }
  DataFormat format = DataFormat::kUnknown;
  if (!arguments.format.empty()) {
    Result<DataFormat> parsed = ParseDataFormat(arguments.format);
    if (!parsed.ok()) return ReportFailure(common, parsed.status());
    format = *parsed;
  }
  for (const std::string& path : arguments.inputs) {
    const Result<std::unique_ptr<InputStream>> input = InputStream::Open(path);
    if (!input.ok()) return ReportFailure(common, input.status());
  }
  ImportRun run(arguments, format);
  const Status status = run.Run();
  if (!status.ok()) return ReportFailure(common, status);
  return run.Finish();
}

}  // namespace

Subcommand AddImport(CLI::App* root) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* app = root->add_subcommand("import", "files into a directory or a server");
  app->add_option("files", arguments->inputs, "input files; - is standard input")->required();
  app->add_option("--dir", arguments->common.dir, "data directory of a stopped server; made if missing");
  app->add_option("--url", arguments->common.url, "running server: redis://[user:password@]host:port/db");
  app->add_option("--format", arguments->format, "resp, ndjson or fbin (default: told from the first bytes)");
  app->add_option("--db", arguments->db, "database in which files of commands and .fbin files go (default: 0)");
  app->add_option("--index", arguments->fbin.index, ".fbin: key of the vector index");
  app->add_option("--keys", arguments->fbin.keys_path, ".fbin: text file, line i is row i's id");
  app->add_option("--attrs", arguments->fbin.attrs_path, ".fbin: tab-separated attributes with a header line");
  IndexDefinition& index = arguments->import.new_index;
  app->add_option("--metric", index.metric, "of an index made by this import: COSINE, L2 or IP");
  app->add_option("--type", index.type, "of an index made by this import: how its vectors are stored");
  app->add_option("--m", index.m, "of an index made by this import: links a node");
  app->add_option("--ef-construction", index.ef_construction, "of an index made by this import: depth of building");
  app->add_option("--databases", arguments->databases, "with --dir: number of databases")->capture_default_str();
  app->add_option("--threads", arguments->lanes,
                  "threads (--dir) or connections (--url) that insert vectors (default: one a core)")
      ->check(CLI::Range(1, 64));
  app->add_flag("--skip-bad", arguments->import.skip_bad,
                "leave out what cannot be read or is refused, and name it, instead of stopping there");
  app->add_flag("--json", arguments->common.json, "one JSON object on standard output");
  return {app, [arguments] { return RunImport(*arguments); }};
}

}  // namespace hotkv
