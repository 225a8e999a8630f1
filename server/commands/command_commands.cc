// COMMAND and its subcommands, answered from the CommandTable that dispatch uses.
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/glob.h"
#include "engine/commands/command_context.h"
#include "engine/tx/engine.h"
#include "engine/tx/executor.h"
#include "server/commands/command_help.h"
#include "server/commands/command_info.h"
#include "server/commands/families.h"

namespace hotkv {

namespace {

namespace flag = command_flag;
namespace acl = acl_category;

// "get", "config|set"; null when there is none.
const CommandSpec* FindByFullName(const CommandTable& table, std::string_view name) {
  const size_t bar = name.find('|');
  const CommandSpec* spec = table.Find(name.substr(0, bar));
  if (spec == nullptr || bar == std::string_view::npos) return spec;
  return table.FindSub(*spec, name.substr(bar + 1));
}

void All(CommandContext& ctx) {
  const auto commands = ctx.engine.commands().top_level();
  ctx.reply.ArrayHeader(commands.size());
  for (const CommandSpec* spec : commands) ReplyCommandInfo(ctx.reply, *spec);
}

void Count(CommandContext& ctx) {
  ctx.reply.Integer(static_cast<int64_t>(ctx.engine.commands().top_level().size()));
}

void Info(CommandContext& ctx) {
  if (ctx.argc() == 2) return All(ctx);
  ctx.reply.ArrayHeader(ctx.argc() - 2);
  for (size_t i = 2; i < ctx.argc(); ++i) {
    const CommandSpec* spec = FindByFullName(ctx.engine.commands(), ctx.arg(i));
    spec == nullptr ? ctx.reply.Null() : ReplyCommandInfo(ctx.reply, *spec);
  }
}

void Docs(CommandContext& ctx) {
  const auto one = [&](const CommandSpec& spec) {
    ctx.reply.Bulk(spec.name);
    ReplyCommandDocs(ctx.reply, spec);
  };
  if (ctx.argc() == 2) {
    const auto commands = ctx.engine.commands().top_level();
    ctx.reply.MapHeader(commands.size());
    for (const CommandSpec* spec : commands) one(*spec);
    return;
  }
  std::vector<const CommandSpec*> found;
  for (size_t i = 2; i < ctx.argc(); ++i) {
    const CommandSpec* spec = FindByFullName(ctx.engine.commands(), ctx.arg(i));
    if (spec != nullptr) found.push_back(spec);
  }
  ctx.reply.MapHeader(found.size());
  for (const CommandSpec* spec : found) one(*spec);
}

enum class WithFlags : uint8_t { kNo, kYes };

void ReplyKeys(CommandContext& ctx, WithFlags with_flags) {
  const Args call = ctx.args.subspan(2);
  const CommandTable& table = ctx.engine.commands();
  const CommandSpec* spec = table.Find(call[0]);
  if (spec != nullptr && !spec->subcommands.empty() && call.size() >= 2) {
    spec = table.FindSub(*spec, call[1]);
  }
  if (spec == nullptr) return ctx.reply.Error("ERR Invalid command specified");
  if (spec->keys.first == 0 && spec->get_keys == nullptr) {
    return ctx.reply.Error("ERR The command has no key arguments");
  }
  if (!spec->ArityFits(call.size())) {
    return ctx.reply.Error("ERR Invalid number of arguments specified for command");
  }
  std::vector<uint32_t> indexes;
  if (!Executor::KeysOf(*spec, call, &indexes)) {
    return ctx.reply.Error("ERR Invalid arguments specified for command");
  }
  ctx.reply.ArrayHeader(indexes.size());
  for (const uint32_t index : indexes) {
    if (with_flags == WithFlags::kNo) {
      ctx.reply.Bulk(call[index]);
      continue;
    }
    ctx.reply.ArrayHeader(2);
    ctx.reply.Bulk(call[index]);
    ReplyKeyFlags(ctx.reply, KeyFlagsOf(*spec, call, index));
  }
}

void GetKeysCommand(CommandContext& ctx) { ReplyKeys(ctx, WithFlags::kNo); }
void GetKeysAndFlags(CommandContext& ctx) { ReplyKeys(ctx, WithFlags::kYes); }

// Commands and subcommands alike.
template <typename Accepts>
void ReplyList(CommandContext& ctx, Accepts&& accepts) {
  const CommandTable& table = ctx.engine.commands();
  std::vector<std::string_view> names;
  for (uint32_t id = 0; id < table.count(); ++id) {
    if (accepts(table.at(id))) names.push_back(table.at(id).name);
  }
  ctx.reply.ArrayHeader(names.size());
  for (const std::string_view name : names) ctx.reply.Bulk(name);
}

void List(CommandContext& ctx) {
  if (ctx.argc() == 2) {
    return ReplyList(ctx, [](const CommandSpec&) { return true; });
  }
  if (ctx.argc() != 5 || !ctx.Is(2, "FILTERBY")) return ctx.SyntaxError();
  const std::string_view value = ctx.arg(4);
  if (ctx.Is(3, "PATTERN")) {
    ReplyList(ctx, [&](const CommandSpec& spec) {
      return GlobMatches(value, spec.name, GlobCase::kInsensitive);
    });
  } else if (ctx.Is(3, "ACLCAT")) {
    const std::optional<uint32_t> category = FindAclCategory(value);
    ReplyList(ctx,
              [&](const CommandSpec& spec) { return category && (spec.acl & *category) != 0; });
  } else if (ctx.Is(3, "MODULE")) {
    ReplyList(ctx, [](const CommandSpec&) { return false; });
  } else {
    ctx.SyntaxError();
  }
}

void Help(CommandContext& ctx) {
  ReplyHelp(
      ctx, "COMMAND",
      {"(no subcommand)", "    Describe all commands.", "COUNT", "    How many commands there are.",
       "DOCS [<command-name> ...]", "    Documentation of the named commands, or of all.",
       "GETKEYS <full-command>", "    The keys in a command with its arguments.",
       "GETKEYSANDFLAGS <full-command>", "    The keys, each with what the command does to it.",
       "INFO [<command-name> ...]", "    Describe the named commands, or all.",
       "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
       "    The commands' names."});
}

constexpr ArgumentSpec kNameArguments[] = {
    {.name = "command-name", .optional = true, .multiple = true},
};
constexpr ArgumentSpec kCallArguments[] = {
    {.name = "command"},
    {.name = "arg", .optional = true, .multiple = true},
};
constexpr ArgumentSpec kFilters[] = {
    {.name = "module-name", .token = "MODULE"},
    {.name = "category", .token = "ACLCAT"},
    {.name = "pattern", .type = ArgumentType::kPattern, .token = "PATTERN"},
};
constexpr ArgumentSpec kListArguments[] = {
    {.name = "filterby",
     .type = ArgumentType::kOneOf,
     .token = "FILTERBY",
     .optional = true,
     .children = kFilters},
};

constexpr uint32_t kFlags = flag::kLoading | flag::kStale;
constexpr uint32_t kAcl = acl::kSlow | acl::kConnection;
constexpr std::string_view kPerCommand = "O(N) where N is the number of commands to look up";

constexpr CommandSpec kSubcommands[] = {
    {.name = "command|count",
     .arity = 2,
     .flags = kFlags,
     .acl = kAcl,
     .handler = Count,
     .group = "server",
     .since = "2.8.13",
     .summary = "Returns how many commands there are.",
     .complexity = "O(1)"},
    {.name = "command|docs",
     .arity = -2,
     .flags = kFlags,
     .acl = kAcl,
     .handler = Docs,
     .group = "server",
     .since = "7.0.0",
     .summary = "Documents commands.",
     .complexity = kPerCommand,
     .tips = "nondeterministic_output_order",
     .arguments = kNameArguments},
    {.name = "command|getkeys",
     .arity = -3,
     .flags = kFlags,
     .acl = kAcl,
     .handler = GetKeysCommand,
     .group = "server",
     .since = "2.8.13",
     .summary = "Returns the keys in a command.",
     .complexity = "O(N) where N is the number of arguments",
     .arguments = kCallArguments},
    {.name = "command|getkeysandflags",
     .arity = -3,
     .flags = kFlags,
     .acl = kAcl,
     .handler = GetKeysAndFlags,
     .group = "server",
     .since = "7.0.0",
     .summary = "Returns the keys in a command and what it does to them.",
     .complexity = "O(N) where N is the number of arguments",
     .arguments = kCallArguments},
    {.name = "command|help",
     .arity = 2,
     .flags = kFlags,
     .acl = kAcl,
     .handler = Help,
     .group = "server",
     .since = "5.0.0",
     .summary = "Explains the subcommands.",
     .complexity = "O(1)"},
    {.name = "command|info",
     .arity = -2,
     .flags = kFlags,
     .acl = kAcl,
     .handler = Info,
     .group = "server",
     .since = "2.8.13",
     .summary = "Describes commands.",
     .complexity = kPerCommand,
     .tips = "nondeterministic_output_order",
     .arguments = kNameArguments},
    {.name = "command|list",
     .arity = -2,
     .flags = kFlags,
     .acl = kAcl,
     .handler = List,
     .group = "server",
     .since = "7.0.0",
     .summary = "Lists the commands' names.",
     .complexity = "O(N) where N is the number of commands",
     .tips = "nondeterministic_output_order",
     .arguments = kListArguments},
};

constexpr CommandSpec kCommands[] = {
    {.name = "command",
     .arity = -1,
     .flags = kFlags,
     .acl = kAcl,
     .handler = All,
     .subcommands = kSubcommands,
     .group = "server",
     .since = "2.8.13",
     .summary = "Describes all commands.",
     .complexity = "O(N) where N is the number of commands",
     .tips = "nondeterministic_output_order"},
};

}  // namespace

std::span<const CommandSpec> CommandCommands() { return kCommands; }

}  // namespace hotkv
