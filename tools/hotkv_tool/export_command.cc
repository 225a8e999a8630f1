// hotkv-tool export: a directory's or a running server's data into a file.
#include <chrono>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/common/progress.h"
#include "tools/hotkv_tool/directory_source.h"
#include "tools/hotkv_tool/input_format.h"
#include "tools/hotkv_tool/salvage_source.h"
#include "tools/hotkv_tool/server_source.h"
#include "tools/hotkv_tool/subcommands.h"

namespace hotkv {

namespace {

struct ExportArguments {
  CommonOptions common;
  std::string output;
  std::string format;
  ExportFilter filter;
  bool salvage = false;
};

Result<std::unique_ptr<RecordSource>> OpenSource(const ExportArguments& arguments) {
  if (arguments.salvage) {
    HOTKV_ASSIGN_OR_RETURN(auto source, SalvageSource::Open(arguments.common.dir));
    return std::unique_ptr<RecordSource>(std::move(source));
  }
  if (arguments.common.url.empty()) {
    HOTKV_ASSIGN_OR_RETURN(auto source, DirectorySource::Open(arguments.common.dir));
    return std::unique_ptr<RecordSource>(std::move(source));
  }
  HOTKV_ASSIGN_OR_RETURN(const RespAddress address, RespAddress::Parse(arguments.common.url));
  HOTKV_ASSIGN_OR_RETURN(auto source, ServerSource::Connect(address));
  return std::unique_ptr<RecordSource>(std::move(source));
}

Result<DataFormat> FormatOf(const ExportArguments& arguments) {
  if (!arguments.format.empty()) return ParseDataFormat(arguments.format);
  const DataFormat by_name = GuessFormat({}, 0, arguments.output);
  if (by_name == DataFormat::kUnknown) {
    return Status::InvalidArgument("give --format resp or --format ndjson");
  }
  return by_name;
}

Status Export(const ExportArguments& arguments, RecordSource* source, RecordWriter* writer,
              Problems* problems) {
  ProgressBar progress("exporting", source->total());
  HOTKV_RETURN_IF_ERROR(source->ForEach(arguments.filter, problems, [&](const Record& record) {
    progress.Update(source->done());
    return writer->Put(record);
  }));
  return writer->Finish();
}

int RunExport(const ExportArguments& arguments) {
  const CommonOptions& common = arguments.common;
  if (common.dir.empty() == common.url.empty()) {
    return ReportFailure(common, Status::InvalidArgument("give either --dir or --url"));
  }
  if (arguments.output == "-" && common.json) {
    return ReportFailure(common, Status::InvalidArgument("--json and --output - both want standard output"));
  }
  if (arguments.salvage && common.dir.empty()) {
    return ReportFailure(common, Status::InvalidArgument("--salvage reads a directory: give --dir"));
  }
  const auto start = std::chrono::steady_clock::now();
  const Result<DataFormat> format = FormatOf(arguments);
  if (!format.ok()) return ReportFailure(common, format.status());
  Result<std::unique_ptr<RecordSource>> source = OpenSource(arguments);
  if (!source.ok()) return ReportFailure(common, source.status());
  Result<std::unique_ptr<RecordWriter>> writer = OpenOutput(arguments.output, *format);
  if (!writer.ok()) return ReportFailure(common, writer.status());
  Problems problems;
  const Status status = Export(arguments, source->get(), writer->get(), &problems);
  if (!status.ok()) problems.Add(status);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const ExportCounts& counts = (*source)->counts();
  nlohmann::ordered_json result = {{"command", "export"},       {"written", status.ok()},
                                   {"keys", counts.keys},       {"vectors", counts.vectors},
                                   {"skipped", counts.skipped}, {"seconds", seconds}};
  std::string summary = fmt::format("{} keys and {} vectors exported, {} skipped ({:.1f} s)", counts.keys,
                                    counts.vectors, counts.skipped, seconds);
  if (!status.ok()) summary = "nothing was written to " + arguments.output;
  if (arguments.output == "-") {
    for (const std::string& text : problems.first()) fmt::print(stderr, "hotkv-tool: {}\n", text);
    fmt::print(stderr, "{}\n", summary);
    return problems.empty() ? kExitFine : kExitProblems;
  }
  return Report(common, problems, summary, &result);
}

}  // namespace

Subcommand AddExport(CLI::App* root) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* app = root->add_subcommand("export", "a directory's or a server's data into a file");
  app->add_option("--dir", arguments->common.dir, "data directory of a stopped server; it is only read");
  app->add_option("--url", arguments->common.url, "running server: redis://[user:password@]host:port");
  app->add_option("--output", arguments->output, "file; - is standard output")->required();
  app->add_option("--format", arguments->format, "resp or ndjson (default: by the file's name)");
  app->add_option("--db", arguments->filter.db, "this database only (default: all)");
  app->add_option("--match", arguments->filter.match, "keys that match this pattern only");
  app->add_flag("--skip-bad", arguments->filter.skip_bad,
                "leave out keys that have no form in the output, and name them, instead of stopping there");
  app->add_flag("--salvage", arguments->salvage,
                "of a damaged directory, what passes its checksums; names what is lost");
  app->add_flag("--json", arguments->common.json, "one JSON object on standard output");
  return {app, [arguments] { return RunExport(*arguments); }};
}

}  // namespace hotkv
