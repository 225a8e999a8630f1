#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "server/commands/families.h"
#include "tests/support/source_dir.h"
#include "tests/unit/server/command_rig.h"

namespace hotkv {

namespace {

std::string ReadSource(const std::string& name) {
  std::ifstream file(SourcePath(name));
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The upper-case words of the list in docs/compatibility.md.
std::set<std::string> DocumentedCommands() {
  const std::string page = ReadSource("docs/compatibility.md");
  const size_t begin = page.find("```commands\n");
  REQUIRE(begin != std::string::npos);
  std::istringstream block(page.substr(begin + 12, page.find("```", begin + 12) - begin - 12));
  std::set<std::string> names;
  for (std::string word; block >> word;) {
    const bool is_name =
        std::all_of(word.begin(), word.end(), [](char c) { return std::isupper(c) || c == '.'; });
    if (is_name) names.insert(word);
  }
  return names;
}

std::string Upper(std::string_view name) {
  std::string out(name);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

}  // namespace

TEST_CASE("docs/compatibility.md lists the commands that there are, and no others") {
  const std::span<const CommandSpec> families[] = {
      StringCommands(),     GenericCommands(),     TransactionCommands(), VectorCommands(),
      ConnectionCommands(), ClientCommands(),      CommandCommands(),     ServerCommands(),
      ConfigCommands(),     PersistenceCommands(), DebugCommands(),       MemoryCommands(),
      MonitoringCommands()};
  const CommandTable table(families);
  const std::set<std::string> documented = DocumentedCommands();
  std::set<std::string> offered;
  for (const CommandSpec* spec : table.top_level()) offered.insert(Upper(spec->name));
  for (const std::string& name : offered) {
    INFO("offered: " << name);
    CHECK(documented.contains(name));
  }
  for (const std::string& name : documented) {
    INFO("documented: " << name);
    CHECK(offered.contains(name));
  }
}

TEST_CASE("each of the server's commands and subcommands is on a page") {
  const std::string pages =
      ReadSource("docs/commands/connection.md") + ReadSource("docs/commands/server.md");
  const std::span<const CommandSpec> families[] = {
      ConnectionCommands(), ClientCommands(), CommandCommands(),
      ServerCommands(),     ConfigCommands(), PersistenceCommands(),
      DebugCommands(),      MemoryCommands(), MonitoringCommands()};
  const CommandTable table(families);
  for (uint32_t id = 0; id < table.count(); ++id) {
    const std::string_view full = table.at(id).name;
    const std::string name = Upper(full.substr(full.find('|') + 1));
    if (name == "HELP") continue;  // every container has it
    INFO(full);
    CHECK(Contains(pages, name));
  }
}

}  // namespace hotkv
