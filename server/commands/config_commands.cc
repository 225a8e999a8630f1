// CONFIG.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/glob.h"
#include "engine/commands/command_context.h"
#include "engine/tx/engine.h"
#include "server/commands/command_help.h"
#include "server/commands/families.h"
#include "server/commands/reset_statistics.h"
#include "server/commands/server_of.h"

namespace hotkv {

namespace {

namespace flag = command_flag;
namespace acl = acl_category;

// A setting that was asked for by its name, or an older one, is called in the reply as it was in
// the request.
std::string_view NameAsked(Args patterns, std::string_view name) {
  for (const std::string_view pattern : patterns) {
    if (GlobIsLiteral(pattern) && FindSetting(pattern) == FindSetting(name)) return pattern;
  }
  return name;
}

void Get(CommandContext& ctx) {
  const Args patterns = ctx.args.subspan(2);
  const auto found = ServerOf(ctx).config().Get(patterns);
  ctx.reply.MapHeader(found.size());
  for (const auto& [name, value] : found) {
    ctx.reply.Bulk(NameAsked(patterns, name));
    ctx.reply.Bulk(value);
  }
}

void Set(CommandContext& ctx) {
  if (ctx.argc() % 2 != 0) return ctx.SyntaxError();
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  for (size_t i = 2; i < ctx.argc(); i += 2) pairs.emplace_back(ctx.arg(i), ctx.arg(i + 1));
  const Status status = ServerOf(ctx).config().Set(pairs, Client::Of(ctx.client).is_local);
  status.ok() ? ctx.reply.Ok() : ctx.reply.Error(status.message());
}

void Rewrite(CommandContext& ctx) {
  const Status status = ServerOf(ctx).config().Rewrite();
  if (status.ok()) return ctx.reply.Ok();
  const bool whole = status.message().starts_with("ERR ");
  ctx.reply.Error(whole ? status.message() : "ERR Rewriting config file: " + status.message());
}

void ResetStat(CommandContext& ctx) {
  ResetStatistics(ServerOf(ctx));
  ctx.reply.Ok();
}

void Help(CommandContext& ctx) {
  ReplyHelp(ctx, "CONFIG",
            {"GET <pattern> [<pattern> ...]", "    Settings whose names match, with their values.",
             "RESETSTAT", "    Set the statistics of INFO back.", "REWRITE",
             "    Write the present settings into the configuration file.",
             "SET <setting> <value> [<setting> <value> ...]",
             "    Change settings, all of them or none."});
}

constexpr ArgumentSpec kGetArguments[] = {
    {.name = "parameter", .multiple = true},
};
constexpr ArgumentSpec kSetPair[] = {{.name = "parameter"}, {.name = "value"}};
constexpr ArgumentSpec kSetArguments[] = {
    {.name = "data", .type = ArgumentType::kBlock, .multiple = true, .children = kSetPair},
};

constexpr uint32_t kFlags = flag::kAdmin | flag::kNoScript | flag::kLoading | flag::kStale;
constexpr uint32_t kAcl = acl::kSlow | acl::kAdmin | acl::kDangerous;
constexpr std::string_view kAllNodes = "request_policy:all_nodes response_policy:all_succeeded";

constexpr CommandSpec kSubcommands[] = {
    {.name = "config|get",
     .arity = -3,
     .flags = kFlags,
     .acl = kAcl,
     .handler = Get,
     .group = "server",
     .since = "2.0.0",
     .summary = "Returns settings.",
     .complexity = "O(N) where N is the number of settings",
     .arguments = kGetArguments},
    {.name = "config|help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .acl = acl::kSlow,
     .handler = Help,
     .group = "server",
     .since = "5.0.0",
     .summary = "Explains the subcommands.",
     .complexity = "O(1)"},
    {.name = "config|resetstat",
     .arity = 2,
     .flags = kFlags,
     .acl = kAcl,
     .handler = ResetStat,
     .group = "server",
     .since = "2.0.0",
     .summary = "Sets statistics back.",
     .complexity = "O(1)",
     .tips = kAllNodes},
    {.name = "config|rewrite",
     .arity = 2,
     .flags = kFlags,
     .acl = kAcl,
     .handler = Rewrite,
     .group = "server",
     .since = "2.8.0",
     .summary = "Writes the present settings into the configuration file.",
     .complexity = "O(1)",
     .tips = kAllNodes},
    {.name = "config|set",
     .arity = -4,
     .flags = kFlags,
     .acl = kAcl,
     .handler = Set,
     .group = "server",
     .since = "2.0.0",
     .summary = "Changes settings.",
     .complexity = "O(N) where N is the number of settings given",
     .tips = kAllNodes,
     .arguments = kSetArguments},
};

constexpr CommandSpec kCommands[] = {
    {.name = "config",
     .arity = -2,
     .acl = acl::kSlow,
     .subcommands = kSubcommands,
     .group = "server",
     .since = "2.0.0",
     .summary = "Commands about settings.",
     .complexity = "Depends on subcommand."},
};

}  // namespace

std::span<const CommandSpec> ConfigCommands() { return kCommands; }

}  // namespace hotkv
