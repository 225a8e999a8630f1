// The subcommands of hotkv-tool: each Add... declares one with its options and returns how to run it.
//
// Thread rules: main's thread.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace hotkv {

struct Subcommand {
  CLI::App* app = nullptr;
  std::function<int()> run;  // the process's exit code
};

Subcommand AddInfo(CLI::App* root);
Subcommand AddVerify(CLI::App* root);
Subcommand AddRepair(CLI::App* root);
Subcommand AddRebuild(CLI::App* root);
Subcommand AddImport(CLI::App* root);
Subcommand AddExport(CLI::App* root);
// "log" with its own subcommand "dump".
Subcommand AddLogDump(CLI::App* root);

}  // namespace hotkv
