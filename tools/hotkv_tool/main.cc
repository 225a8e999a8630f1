// hotkv-tool: what can be done with a data directory without its server, and moving data into and out of one or a running
// server. Exit codes: 0 fine, 1 problems found, 2 could not run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "tools/hotkv_tool/subcommands.h"
#include "tools/hotkv_tool/tool_report.h"

namespace hotkv {
namespace {

int Main(int argc, char** argv) {
  // A closed pipe (`| head`) is an error of the write, which says so.
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Works on HotKV's data: of a stopped server (--dir) or a running one (--url)", "hotkv-tool");
  app.require_subcommand(1);
  app.footer("Exit codes: 0 fine, 1 problems found, 2 could not run.");
  const Subcommand subcommands[] = {AddInfo(&app),   AddVerify(&app), AddRepair(&app),
                                    AddImport(&app), AddExport(&app), AddLogDump(&app),
                                    AddRebuild(&app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kExitFine : kExitCouldNotRun;
  }
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.app->parsed()) return subcommand.run();
  }
  return kExitCouldNotRun;
}

}  // namespace
}  // namespace hotkv

int main(int argc, char** argv) { return hotkv::Main(argc, argv); }
