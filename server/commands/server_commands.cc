// INFO, TIME, ROLE, LOLWUT, MODULE, ACL.
//
// Of ACL there is what one user without rules has; rules and further users are not offered.
#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/clock.h"
#include "engine/commands/command_context.h"
#include "engine/tx/engine.h"
#include "server/commands/command_help.h"
#include "server/commands/command_info.h"
#include "server/commands/families.h"
#include "server/commands/info.h"
#include "server/commands/server_of.h"
#include "server/version.h"

namespace hotkv {

namespace {

namespace flag = command_flag;
namespace acl = acl_category;

void Info(CommandContext& ctx) {
  ctx.reply.Verbatim("txt", BuildInfo(ServerOf(ctx), ctx.args.subspan(1), ctx.now_ms()));
}

void Time(CommandContext& ctx) {
  constexpr int64_t kMicrosPerSecond = 1'000'000;
  const int64_t now_us = Clock::NowUs();
  ctx.reply.ArrayHeader(2);
  ctx.reply.BulkInt(now_us / kMicrosPerSecond);
  ctx.reply.BulkInt(now_us % kMicrosPerSecond);
}

void Role(CommandContext& ctx) {
  ctx.reply.ArrayHeader(3);
  ctx.reply.Bulk("master");
  ctx.reply.Integer(0);
  ctx.reply.EmptyArray();
}

void Lolwut(CommandContext& ctx) {
  ctx.reply.Verbatim(
      "txt", fmt::format("HotKV ver. {}, follows Redis ver. {}\n", kHotkvVersion, kRedisVersion));
}

void ModuleList(CommandContext& ctx) { ctx.reply.EmptyArray(); }

void ModuleHelp(CommandContext& ctx) {
  ReplyHelp(ctx, "MODULE", {"LIST", "    The loaded modules: always none."});
}

// --- ACL ---

void AclWhoAmI(CommandContext& ctx) {
  Client& client = Client::Of(ctx.client);
  const std::lock_guard<std::mutex> lock(client.shared.mutex);
  ctx.reply.Bulk(client.shared.user);
}

void AclUsers(CommandContext& ctx) {
  ctx.reply.ArrayHeader(1);
  ctx.reply.Bulk("default");
}

void AclCat(CommandContext& ctx) {
  if (ctx.argc() > 3) return ReplySubcommandError(ctx);
  if (ctx.argc() == 2) {
    const std::vector<std::string_view> names = AclCategoryNames(~0u);
    ctx.reply.ArrayHeader(names.size());
    for (const std::string_view name : names) ctx.reply.Bulk(name);
    return;
  }
  const std::optional<uint32_t> category = FindAclCategory(ctx.arg(2));
  if (!category) {
    constexpr size_t kShown = 128;
    return ctx.reply.Error(fmt::format("ERR Unknown category '{}'", ctx.arg(2).substr(0, kShown)));
  }
  const CommandTable& table = ctx.engine.commands();
  std::vector<std::string_view> names;
  for (uint32_t id = 0; id < table.count(); ++id) {
    if ((table.at(id).acl & *category) != 0) names.push_back(table.at(id).name);
  }
  ctx.reply.ArrayHeader(names.size());
  for (const std::string_view name : names) ctx.reply.Bulk(name);
}

void AclGenPass(CommandContext& ctx) {
  constexpr int64_t kBitsDefault = 256;
  constexpr int64_t kBitsMax = 4096;
  constexpr int64_t kBitsPerDigit = 4;
  if (ctx.argc() > 3) return ReplySubcommandError(ctx);
  int64_t bits = kBitsDefault;
  if (ctx.argc() == 3) {
    if (!ctx.ParseInt(2, &bits)) return;
    if (bits < 1 || bits > kBitsMax) {
      return ctx.reply.Error(
          "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
          "number up to 4096");
    }
  }
  std::array<unsigned char, kBitsMax / 8> bytes{};
  HOTKV_CHECK(getentropy(bytes.data(), 256) == 0 && getentropy(bytes.data() + 256, 256) == 0);
  const auto digits = static_cast<size_t>((bits + kBitsPerDigit - 1) / kBitsPerDigit);
  std::string text;
  for (size_t i = 0; text.size() < digits; ++i) text += fmt::format("{:02x}", bytes[i]);
  ctx.reply.Bulk(std::string_view(text).substr(0, digits));
}

void AclHelp(CommandContext& ctx) {
  ReplyHelp(ctx, "ACL",
            {"CAT [<category>]", "    The categories, or the commands in one.", "GENPASS [<bits>]",
             "    A random password, in hexadecimal digits (default: 256 bits).", "USERS",
             "    The users' names.", "WHOAMI", "    The connection's user."});
}

constexpr ArgumentSpec kInfoArguments[] = {
    {.name = "section", .optional = true, .multiple = true},
};
constexpr ArgumentSpec kLolwutArguments[] = {
    {.name = "version", .type = ArgumentType::kInteger, .token = "VERSION", .optional = true},
};
constexpr ArgumentSpec kCategoryArguments[] = {{.name = "category", .optional = true}};
constexpr ArgumentSpec kBitsArguments[] = {
    {.name = "bits", .type = ArgumentType::kInteger, .optional = true},
};

constexpr uint32_t kPlain = flag::kNoScript | flag::kLoading | flag::kStale;
constexpr uint32_t kHelp = flag::kLoading | flag::kStale;
constexpr uint32_t kAdminAcl = acl::kSlow | acl::kAdmin | acl::kDangerous;

constexpr CommandSpec kAclCommands[] = {
    {.name = "acl|cat",
     .arity = -2,
     .flags = kPlain,
     .acl = acl::kSlow,
     .handler = AclCat,
     .group = "server",
     .since = "6.0.0",
     .summary = "Lists categories, or one's commands.",
     .complexity = "O(1)",
     .arguments = kCategoryArguments},
    {.name = "acl|genpass",
     .arity = -2,
     .flags = kPlain,
     .acl = acl::kSlow,
     .handler = AclGenPass,
     .group = "server",
     .since = "6.0.0",
     .summary = "Makes a random password.",
     .complexity = "O(1)",
     .arguments = kBitsArguments},
    {.name = "acl|help",
     .arity = 2,
     .flags = kHelp,
     .acl = acl::kSlow,
     .handler = AclHelp,
     .group = "server",
     .since = "6.0.0",
     .summary = "Explains the subcommands.",
     .complexity = "O(1)"},
    {.name = "acl|users",
     .arity = 2,
     .flags = kPlain | flag::kAdmin,
     .acl = kAdminAcl,
     .handler = AclUsers,
     .group = "server",
     .since = "6.0.0",
     .summary = "Lists the users.",
     .complexity = "O(N) where N is the number of users"},
    {.name = "acl|whoami",
     .arity = 2,
     .flags = kPlain,
     .acl = acl::kSlow,
     .handler = AclWhoAmI,
     .group = "server",
     .since = "6.0.0",
     .summary = "Returns the connection's user.",
     .complexity = "O(1)"},
};

constexpr CommandSpec kModuleCommands[] = {
    {.name = "module|help",
     .arity = 2,
     .flags = kHelp,
     .acl = acl::kSlow,
     .handler = ModuleHelp,
     .group = "server",
     .since = "5.0.0",
     .summary = "Explains the subcommands.",
     .complexity = "O(1)"},
    {.name = "module|list",
     .arity = 2,
     .flags = flag::kAdmin | flag::kNoScript,
     .acl = kAdminAcl,
     .handler = ModuleList,
     .group = "server",
     .since = "4.0.0",
     .summary = "Lists loaded modules: none.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output_order"},
};

constexpr CommandSpec kCommands[] = {
    {.name = "acl",
     .arity = -2,
     .acl = acl::kSlow,
     .subcommands = kAclCommands,
     .group = "server",
     .since = "6.0.0",
     .summary = "Commands about users.",
     .complexity = "Depends on subcommand."},
    {.name = "info",
     .arity = -1,
     .flags = flag::kLoading | flag::kStale,
     .acl = acl::kSlow | acl::kDangerous,
     .handler = Info,
     .group = "server",
     .since = "1.0.0",
     .summary = "Returns facts and statistics of the server.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special",
     .arguments = kInfoArguments},
    {.name = "lolwut",
     .arity = -1,
     .flags = flag::kReadOnly | flag::kFast,
     .acl = acl::kRead | acl::kFast,
     .handler = Lolwut,
     .group = "server",
     .since = "5.0.0",
     .summary = "Returns the version.",
     .complexity = "O(1)",
     .arguments = kLolwutArguments},
    {.name = "module",
     .arity = -2,
     .acl = acl::kSlow,
     .subcommands = kModuleCommands,
     .group = "server",
     .since = "4.0.0",
     .summary = "Commands about modules.",
     .complexity = "Depends on subcommand."},
    {.name = "role",
     .arity = 1,
     .flags = flag::kNoScript | flag::kLoading | flag::kStale | flag::kFast,
     .acl = acl::kFast | acl::kAdmin | acl::kDangerous,
     .handler = Role,
     .group = "server",
     .since = "2.8.12",
     .summary = "Returns the server's part in replication.",
     .complexity = "O(1)"},
    {.name = "time",
     .arity = 1,
     .flags = flag::kLoading | flag::kStale | flag::kFast,
     .acl = acl::kFast,
     .handler = Time,
     .group = "server",
     .since = "2.6.0",
     .summary = "Returns the server's time.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output"},
};

}  // namespace

std::span<const CommandSpec> ServerCommands() { return kCommands; }

}  // namespace hotkv
