// hotkv-tool repair: cuts a damaged log at its last good block. Without --yes it only says what it would do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/hotkv_tool/log_repair.h"
#include "tools/hotkv_tool/subcommands.h"
#include "tools/hotkv_tool/verifier.h"

namespace hotkv {

namespace {

using Json = nlohmann::ordered_json;

struct RepairArguments {
  CommonOptions common;
  bool yes = false;
  bool force = false;
};

std::string PlanText(const LogRepairPlan& plan) {
  std::string text = plan.end.segment == 0
                         ? std::string("no block of the log is left")
                         : fmt::format("the log is cut behind epoch {} ({} @{})", plan.end.epoch,
                                       SegmentFileName(plan.end.segment), plan.end.offset);
  text += fmt::format("; {} of log files are given up", BytesText(plan.lost_bytes));
  for (const uint64_t number : plan.late_snapshots) {
    text += fmt::format("; snapshot {} is later than that", SnapshotFileName(number));
  }
  for (const GenerationRef& ref : plan.late_generations) {
    text += fmt::format("; generation {} of index/{} is later than that", ref.generation, ref.object_id);
  }
  return text;
}

// What a start would say after the repair.
void CheckResult(const std::string& dir, Problems* problems) {
  auto directory = StoredDirectory::Open(dir, StoredDirectory::Locking::kRefuseLocked);
  if (!directory.ok()) {
    problems->Add(directory.status());
    return;
  }
  Verifier verifier(directory->get(), problems);
  verifier.Run();
}

int Repair(const RepairArguments& arguments, StoredDirectory* directory, const LogRepairPlan& plan, Json* result) {
  Problems problems;
  const std::string text = PlanText(plan);
  (*result)["cut"] = {{"epoch", plan.end.epoch},
                      {"segment", plan.end.segment == 0 ? "" : SegmentFileName(plan.end.segment)},
                      {"offset", plan.end.offset},
                      {"lost_bytes", plan.lost_bytes},
                      {"mixes_moments", plan.mixes_moments()}};
  (*result)["repaired"] = false;
  if (!arguments.yes) {
    problems.Add(plan.damage);
    return Report(arguments.common, problems, "with --yes " + text, result);
  }
  if (plan.mixes_moments() && !arguments.force) {
    problems.Add(plan.damage);
    problems.Add(text + ": the result would mix moments; --force does it all the same");
    return Report(arguments.common, problems, "nothing was changed", result);
  }
  const Result<std::string> kept = RepairLog(directory, plan);
  if (!kept.ok()) return ReportFailure(arguments.common, kept.status());
  (*result)["repaired"] = true;
  (*result)["kept"] = *kept;
  return Report(arguments.common, problems, text + "; the original files are in " + *kept, result);
}

int RunRepair(const RepairArguments& arguments) {
  const CommonOptions& common = arguments.common;
  Json result = {{"command", "repair"}, {"dir", common.dir}};
  int code = kExitFine;
  {
    auto directory = StoredDirectory::Open(common.dir, StoredDirectory::Locking::kRefuseLocked);
    if (!directory.ok()) return ReportFailure(common, directory.status());
    const Result<std::optional<LogRepairPlan>> plan = PlanLogRepair(directory->get());
    if (!plan.ok()) return ReportFailure(common, plan.status());
    if (!plan->has_value()) {
      return Report(common, {}, "the log has no damage; nothing was changed", &result);
    }
    code = Repair(arguments, directory->get(), **plan, &result);
  }
  if (code != kExitFine) return code;
  Problems problems;
  CheckResult(common.dir, &problems);
  for (const std::string& text : problems.first()) fmt::print(stderr, "hotkv-tool: still: {}\n", text);
  return problems.empty() ? kExitFine : kExitProblems;
}

}  // namespace

Subcommand AddRepair(CLI::App* root) {
  auto arguments = std::make_shared<RepairArguments>();
  CLI::App* app = root->add_subcommand("repair", "cuts a damaged log at its last good block");
  app->add_option("--dir", arguments->common.dir, "data directory of a stopped server")->required();
  app->add_flag("--yes", arguments->yes, "do it; otherwise only say what would be done");
  app->add_flag("--force", arguments->force, "also where the result mixes moments");
  app->add_flag("--json", arguments->common.json, "one JSON object on standard output");
  return {app, [arguments] { return RunRepair(*arguments); }};
}

}  // namespace hotkv
