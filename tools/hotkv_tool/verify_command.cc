// hotkv-tool verify: every checksum and cross-reference of a data directory; changes nothing.
#include <chrono>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/hotkv_tool/subcommands.h"
#include "tools/hotkv_tool/verifier.h"

namespace hotkv {

namespace {

int RunVerify(const CommonOptions& common) {
  const auto start = std::chrono::steady_clock::now();
  nlohmann::ordered_json result = {{"command", "verify"}, {"dir", common.dir}};
  Problems problems;
  auto directory = StoredDirectory::Open(common.dir, StoredDirectory::Locking::kRefuseLocked);
  if (!directory.ok() && directory.status().code() == Code::kCorruption) {
    problems.Add(directory.status());
    return Report(common, problems, "the catalog is damaged", &result);
  }
  if (!directory.ok()) return ReportFailure(common, directory.status());
  Verifier verifier(directory->get(), &problems);
  verifier.Run();
  const VerifyCounts& counts = verifier.counts();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.update({{"snapshots", counts.snapshots},
                 {"sections", counts.sections},
                 {"blocks", counts.blocks},
                 {"effects", counts.effects},
                 {"generations", counts.generations},
                 {"keys", counts.keys},
                 {"notes", nlohmann::ordered_json::array()},
                 {"seconds", seconds}});
  for (const std::string& note : verifier.notes()) {
    result["notes"].push_back(JsonBytes(note));
    if (!common.json) fmt::print("{}\n", note);
  }
  const std::string summary = fmt::format(
      "{}: {} snapshots with {} sections, {} log blocks with {} effects, {} index generations, {} keys ({:.1f} s)",
      problems.empty() ? "fine" : "damaged", counts.snapshots, counts.sections, counts.blocks, counts.effects,
      counts.generations, counts.keys, seconds);
  return Report(common, problems, summary, &result);
}

}  // namespace

Subcommand AddVerify(CLI::App* root) {
  auto common = std::make_shared<CommonOptions>();
  CLI::App* app = root->add_subcommand("verify", "every checksum and cross-reference of a data directory");
  app->add_option("--dir", common->dir, "data directory of a stopped server; it is only read")->required();
  app->add_flag("--json", common->json, "one JSON object on standard output");
  return {app, [common] { return RunVerify(*common); }};
}

}  // namespace hotkv
