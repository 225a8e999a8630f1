#include "server/commands/client_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/number.h"
#include "engine/commands/command_context.h"
#include "server/commands/client_pause.h"
#include "server/commands/command_help.h"
#include "server/commands/families.h"
#include "server/commands/server_of.h"

namespace hotkv {

bool IsClientAttribute(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

void SetClientName(Client& client, std::string_view name) {
  const std::lock_guard<std::mutex> lock(client.shared.mutex);
  client.shared.name = name;
}

namespace {

namespace flag = command_flag;
namespace acl = acl_category;

constexpr int64_t kMillisPerSecond = 1000;
constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();

enum class ClientType : uint8_t { kNormal, kReplica, kPubSub, kMaster };

std::optional<ClientType> ParseClientType(std::string_view text) {
  if (EqualsIgnoreCase(text, "NORMAL")) return ClientType::kNormal;
  if (EqualsIgnoreCase(text, "SLAVE") || EqualsIgnoreCase(text, "REPLICA")) {
    return ClientType::kReplica;
  }
  if (EqualsIgnoreCase(text, "PUBSUB")) return ClientType::kPubSub;
  if (EqualsIgnoreCase(text, "MASTER")) return ClientType::kMaster;
  return std::nullopt;
}

ClientType TypeOf(const Client& client) {
  const ClientShared& shared = client.shared;
  const uint32_t subscriptions = shared.subscriptions.load(std::memory_order_relaxed) +
                                 shared.pattern_subscriptions.load(std::memory_order_relaxed) +
                                 shared.shard_subscriptions.load(std::memory_order_relaxed);
  return subscriptions != 0 ? ClientType::kPubSub : ClientType::kNormal;
}

void ReplyUnknownType(CommandContext& ctx, size_t index) {
  ctx.reply.Error(fmt::format("ERR Unknown client type '{}'", ctx.arg(index)));
}

// ON or OFF at args[2]; answers the error otherwise.
std::optional<bool> ParseOnOff(CommandContext& ctx) {
  if (ctx.Is(2, "ON")) return true;
  if (ctx.Is(2, "OFF")) return false;
  ctx.SyntaxError();
  return std::nullopt;
}

// --- reading ---

void ClientGetName(CommandContext& ctx) {
  ClientShared& shared = Client::Of(ctx.client).shared;
  const std::lock_guard<std::mutex> lock(shared.mutex);
  shared.name.empty() ? ctx.reply.Null() : ctx.reply.Bulk(shared.name);
}

void ClientId(CommandContext& ctx) { ctx.reply.Integer(static_cast<int64_t>(ctx.client.id)); }

void ClientInfo(CommandContext& ctx) {
  ctx.reply.Verbatim("txt", DescribeClient(Client::Of(ctx.client), ctx.now_ms()) + "\n");
}

// CLIENT LIST ID id ...; false: answered with an error.
bool ListById(CommandContext& ctx, std::string* text) {
  for (size_t i = 3; i < ctx.argc(); ++i) {
    const std::optional<int64_t> id =
        ParseBounded(ctx, i, {std::numeric_limits<int64_t>::min(), kInt64Max}, "Invalid client ID");
    if (!id) return false;
    if (*id <= 0) continue;
    ServerOf(ctx).clients().With(static_cast<uint64_t>(*id), [&](Client& client) {
      *text += DescribeClient(client, ctx.now_ms()) + "\n";
    });
  }
  return true;
}

void ClientList(CommandContext& ctx) {
  std::string text;
  if (ctx.argc() > 3 && ctx.Is(2, "ID")) {
    if (!ListById(ctx, &text)) return;
    return ctx.reply.Verbatim("txt", text);
  }
  std::optional<ClientType> type;
  if (ctx.argc() == 4 && ctx.Is(2, "TYPE")) {
    type = ParseClientType(ctx.arg(3));
    if (!type) return ReplyUnknownType(ctx, 3);
  } else if (ctx.argc() != 2) {
    return ctx.SyntaxError();
  }
  ServerOf(ctx).clients().ForEach([&](Client& client) {
    if (!type || TypeOf(client) == *type) text += DescribeClient(client, ctx.now_ms()) + "\n";
  });
  ctx.reply.Verbatim("txt", text);
}

// --- own connection ---

void ClientSetName(CommandContext& ctx) {
  if (!IsClientAttribute(ctx.arg(2))) return ctx.reply.Error(kBadClientName);
  SetClientName(Client::Of(ctx.client), ctx.arg(2));
  ctx.reply.Ok();
}

void ClientSetInfo(CommandContext& ctx) {
  ClientShared& shared = Client::Of(ctx.client).shared;
  std::string* target = nullptr;
  if (ctx.Is(2, "LIB-NAME")) target = &shared.lib_name;
  if (ctx.Is(2, "LIB-VER")) target = &shared.lib_version;
  if (target == nullptr) {
    return ctx.reply.Error(fmt::format("ERR Unrecognized option '{}'", ctx.arg(2)));
  }
  if (!IsClientAttribute(ctx.arg(3))) {
    return ctx.reply.Error(
        fmt::format("ERR {} cannot contain spaces, newlines or special characters.", ctx.arg(2)));
  }
  const std::lock_guard<std::mutex> lock(shared.mutex);
  *target = ctx.arg(3);
  ctx.reply.Ok();
}

void ClientNoEvict(CommandContext& ctx) {
  const std::optional<bool> on = ParseOnOff(ctx);
  if (!on) return;
  Client::Of(ctx.client).shared.no_evict.store(*on, std::memory_order_relaxed);
  ctx.reply.Ok();
}

void ClientNoTouch(CommandContext& ctx) {
  const std::optional<bool> on = ParseOnOff(ctx);
  if (!on) return;
  Client& client = Client::Of(ctx.client);
  client.no_touch = *on;
  client.shared.no_touch.store(*on, std::memory_order_relaxed);
  ctx.reply.Ok();
}

void ClientReply(CommandContext& ctx) {
  Client& client = Client::Of(ctx.client);
  if (ctx.Is(2, "ON")) {
    client.reply_mode = ReplyMode::kOn;
    ctx.reply.Ok();
  } else if (ctx.Is(2, "OFF")) {
    client.reply_mode = ReplyMode::kOff;
  } else if (ctx.Is(2, "SKIP")) {
    if (client.reply_mode == ReplyMode::kOn) client.reply_mode = ReplyMode::kSkipNext;
  } else {
    ctx.SyntaxError();
  }
}

// What the client can do (redirects of a cluster, for one): nothing here depends on it yet.
void ClientCapa(CommandContext& ctx) { ctx.reply.Ok(); }

// --- other clients ---

struct KillFilter {
  std::optional<std::string_view> addr;
  std::optional<std::string_view> laddr;
  std::optional<std::string_view> user;
  std::optional<ClientType> type;
  std::optional<uint64_t> id;
  int64_t age_min_s = 0;
  bool skip_me = true;

  bool Matches(Client& client, int64_t now_ms) const {
    if (addr && client.peer_address != *addr) return false;
    if (laddr && client.local_address != *laddr) return false;
    if (type && TypeOf(client) != *type) return false;
    if (id && client.id != *id) return false;
    if (age_min_s > 0 && (now_ms - client.created_ms) / kMillisPerSecond < age_min_s) return false;
    if (!user) return true;
    const std::lock_guard<std::mutex> lock(client.shared.mutex);
    return client.shared.user == *user;
  }
};

// One option with its value at args[i] and [i + 1]; false: answered with an error.
bool ParseKillOption(CommandContext& ctx, size_t i, KillFilter* filter) {
  const std::string_view value = ctx.arg(i + 1);
  if (ctx.Is(i, "ID")) {
    const auto id = ParseBounded(ctx, i + 1, {1, kInt64Max}, "client-id should be greater than 0");
    if (!id) return false;
    filter->id = static_cast<uint64_t>(*id);
  } else if (ctx.Is(i, "MAXAGE")) {
    const auto age = ParseBounded(ctx, i + 1, {std::numeric_limits<int64_t>::min(), kInt64Max},
                                  "maxage is not an integer or out of range");
    if (!age) return false;
    if (*age <= 0) {
      ctx.reply.Error("ERR maxage should be greater than 0");
      return false;
    }
    filter->age_min_s = *age;
  } else if (ctx.Is(i, "TYPE")) {
    filter->type = ParseClientType(value);
    if (!filter->type) {
      ReplyUnknownType(ctx, i + 1);
      return false;
    }
  } else if (ctx.Is(i, "ADDR")) {
    filter->addr = value;
  } else if (ctx.Is(i, "LADDR")) {
    filter->laddr = value;
  } else if (ctx.Is(i, "USER")) {
    if (value != "default") {
      ctx.reply.Error(fmt::format("ERR No such user '{}'", value));
      return false;
    }
    filter->user = value;
  } else if (ctx.Is(i, "SKIPME") && (ctx.Is(i + 1, "YES") || ctx.Is(i + 1, "NO"))) {
    filter->skip_me = ctx.Is(i + 1, "YES");
  } else {
    ctx.SyntaxError();
    return false;
  }
  return true;
}

// Returns how many; the caller's own connection is closed once the reply is sent.
int64_t KillMatching(CommandContext& ctx, const KillFilter& filter) {
  std::vector<uint64_t> others;
  bool own = false;
  ServerOf(ctx).clients().ForEach([&](Client& client) {
    if (!filter.Matches(client, ctx.now_ms())) return;
    if (client.id != ctx.client.id) {
      others.push_back(client.id);
    } else if (!filter.skip_me) {
      own = true;
    }
  });
  int64_t killed = own ? 1 : 0;
  for (const uint64_t id : others) killed += ServerOf(ctx).KillClient(id) ? 1 : 0;
  if (own) Client::Of(ctx.client).close_after_reply = true;
  return killed;
}

void ClientKill(CommandContext& ctx) {
  KillFilter filter;
  if (ctx.argc() == 3) {
    filter.addr = ctx.arg(2);
    filter.skip_me = false;
    if (KillMatching(ctx, filter) == 0) return ctx.reply.Error("ERR No such client");
    return ctx.reply.Ok();
  }
  for (size_t i = 2; i < ctx.argc(); i += 2) {
    if (i + 1 == ctx.argc()) return ctx.SyntaxError();
    if (!ParseKillOption(ctx, i, &filter)) return;
  }
  ctx.reply.Integer(KillMatching(ctx, filter));
}

void ClientPauseCommand(CommandContext& ctx) {
  if (ctx.argc() > 4) return ReplySubcommandError(ctx);
  const bool write_only = ctx.argc() == 4 && ctx.Is(3, "WRITE");
  if (ctx.argc() == 4 && !write_only && !ctx.Is(3, "ALL")) {
    return ctx.reply.Error("ERR CLIENT PAUSE mode must be WRITE or ALL");
  }
  const std::optional<int64_t> timeout_ms =
      ParseBounded(ctx, 2, {std::numeric_limits<int64_t>::min(), kInt64Max},
                   "timeout is not an integer or out of range");
  if (!timeout_ms) return;
  if (*timeout_ms < 0) return ctx.reply.Error("ERR timeout is negative");
  const int64_t until_ms =
      *timeout_ms > kInt64Max - ctx.now_ms() ? kInt64Max : ctx.now_ms() + *timeout_ms;
  ServerOf(ctx).pause().Pause(write_only ? ClientPause::Mode::kWrite : ClientPause::Mode::kAll,
                              until_ms);
  ctx.reply.Ok();
}

void ClientUnpause(CommandContext& ctx) {
  ServerOf(ctx).pause().Unpause();
  ctx.reply.Ok();
}

void ClientUnblock(CommandContext& ctx) {
  if (ctx.argc() > 4) return ReplySubcommandError(ctx);
  const bool error = ctx.argc() == 4 && ctx.Is(3, "ERROR");
  if (ctx.argc() == 4 && !error && !ctx.Is(3, "TIMEOUT")) {
    return ctx.reply.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  }
  int64_t id = 0;
  if (!ctx.ParseInt(2, &id)) return;
  const bool unblocked = id > 0 && ServerOf(ctx).UnblockClient(static_cast<uint64_t>(id), error);
  ctx.reply.Integer(unblocked ? 1 : 0);
}

void ClientHelp(CommandContext& ctx) {
  ReplyHelp(ctx, "CLIENT",
            {"CAPA <capability> [<capability> ...]",
             "    Tell what this client can do.",
             "GETNAME",
             "    Name of this connection.",
             "ID",
             "    Number of this connection.",
             "INFO",
             "    This connection's line of CLIENT LIST.",
             "KILL <ip:port>",
             "    Close the connection from this address.",
             "KILL <option> <value> [<option> <value> [...]]",
             "    Close the connections that fit all options:",
             "    * ID <client-id>, ADDR <ip:port>, LADDR <ip:port>, USER <name>",
             "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
             "    * MAXAGE <seconds>: at least as old",
             "    * SKIPME (YES|NO): spare this connection (default: yes)",
             "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB) | ID <client-id> [<client-id> ...]]",
             "    One line a connection.",
             "NO-EVICT (ON|OFF)",
             "    Protect this connection from being closed for its memory.",
             "NO-TOUCH (ON|OFF)",
             "    Leave the keys' access times alone.",
             "PAUSE <milliseconds> [WRITE|ALL]",
             "    Hold back all commands, or those that write.",
             "REPLY (ON|OFF|SKIP)",
             "    Send replies, send none, or leave out the next one.",
             "SETINFO (LIB-NAME|LIB-VER) <value>",
             "    Tell which client library this is.",
             "SETNAME <name>",
             "    Give this connection a name.",
             "UNBLOCK <client-id> [TIMEOUT|ERROR]",
             "    End the wait of a blocked client.",
             "UNPAUSE",
             "    End a pause."});
}

constexpr ArgumentSpec kOnOffWords[] = {
    {.name = "on", .type = ArgumentType::kPureToken, .token = "ON"},
    {.name = "off", .type = ArgumentType::kPureToken, .token = "OFF"},
};
constexpr ArgumentSpec kOnOff[] = {
    {.name = "enabled", .type = ArgumentType::kOneOf, .children = kOnOffWords},
};
constexpr ArgumentSpec kCapaArguments[] = {{.name = "capability", .multiple = true}};
constexpr ArgumentSpec kTypeWords[] = {
    {.name = "normal", .type = ArgumentType::kPureToken, .token = "NORMAL"},
    {.name = "master", .type = ArgumentType::kPureToken, .token = "MASTER"},
    {.name = "replica", .type = ArgumentType::kPureToken, .token = "REPLICA"},
    {.name = "pubsub", .type = ArgumentType::kPureToken, .token = "PUBSUB"},
};
constexpr ArgumentSpec kYesNo[] = {
    {.name = "yes", .type = ArgumentType::kPureToken, .token = "YES"},
    {.name = "no", .type = ArgumentType::kPureToken, .token = "NO"},
};
constexpr ArgumentSpec kKillOptions[] = {
    {.name = "client-id", .type = ArgumentType::kInteger, .token = "ID", .optional = true},
    {.name = "client-type",
     .type = ArgumentType::kOneOf,
     .token = "TYPE",
     .optional = true,
     .children = kTypeWords},
    {.name = "username", .token = "USER", .optional = true},
    {.name = "addr", .token = "ADDR", .optional = true},
    {.name = "laddr", .token = "LADDR", .optional = true},
    {.name = "skipme",
     .type = ArgumentType::kOneOf,
     .token = "SKIPME",
     .optional = true,
     .children = kYesNo},
    {.name = "maxage", .type = ArgumentType::kInteger, .token = "MAXAGE", .optional = true},
};
constexpr ArgumentSpec kKillForms[] = {
    {.name = "old-format"},
    {.name = "new-format",
     .type = ArgumentType::kOneOf,
     .multiple = true,
     .children = kKillOptions},
};
constexpr ArgumentSpec kKillArguments[] = {
    {.name = "filter", .type = ArgumentType::kOneOf, .children = kKillForms},
};
constexpr ArgumentSpec kListArguments[] = {
    {.name = "client-type",
     .type = ArgumentType::kOneOf,
     .token = "TYPE",
     .optional = true,
     .children = kTypeWords},
    {.name = "client-id",
     .type = ArgumentType::kInteger,
     .token = "ID",
     .optional = true,
     .multiple = true},
};
constexpr ArgumentSpec kPauseModes[] = {
    {.name = "write", .type = ArgumentType::kPureToken, .token = "WRITE"},
    {.name = "all", .type = ArgumentType::kPureToken, .token = "ALL"},
};
constexpr ArgumentSpec kPauseArguments[] = {
    {.name = "timeout", .type = ArgumentType::kInteger},
    {.name = "mode",
     .type = ArgumentType::kOneOf,
     .optional = true,
     .since = "6.2.0",
     .children = kPauseModes},
};
constexpr ArgumentSpec kReplyWords[] = {
    {.name = "on", .type = ArgumentType::kPureToken, .token = "ON"},
    {.name = "off", .type = ArgumentType::kPureToken, .token = "OFF"},
    {.name = "skip", .type = ArgumentType::kPureToken, .token = "SKIP"},
};
constexpr ArgumentSpec kReplyArguments[] = {
    {.name = "action", .type = ArgumentType::kOneOf, .children = kReplyWords},
};
constexpr ArgumentSpec kAttributes[] = {
    {.name = "libname", .token = "LIB-NAME"},
    {.name = "libver", .token = "LIB-VER"},
};
constexpr ArgumentSpec kSetInfoArguments[] = {
    {.name = "attr", .type = ArgumentType::kOneOf, .children = kAttributes},
};
constexpr ArgumentSpec kSetNameArguments[] = {{.name = "connection-name"}};
constexpr ArgumentSpec kUnblockReasons[] = {
    {.name = "timeout", .type = ArgumentType::kPureToken, .token = "TIMEOUT"},
    {.name = "error", .type = ArgumentType::kPureToken, .token = "ERROR"},
};
constexpr ArgumentSpec kUnblockArguments[] = {
    {.name = "client-id", .type = ArgumentType::kInteger},
    {.name = "unblock-type",
     .type = ArgumentType::kOneOf,
     .optional = true,
     .children = kUnblockReasons},
};

constexpr uint32_t kPlain = flag::kNoScript | flag::kLoading | flag::kStale;
constexpr uint32_t kAdmin = kPlain | flag::kAdmin;
constexpr uint32_t kPlainAcl = acl::kConnection | acl::kSlow;
constexpr uint32_t kAdminAcl = kPlainAcl | acl::kAdmin | acl::kDangerous;

constexpr CommandSpec kSubcommands[] = {
    {.name = "client|capa",
     .arity = -3,
     .flags = kPlain | flag::kAllowBusy,
     .acl = kPlainAcl,
     .handler = ClientCapa,
     .group = "connection",
     .since = "8.0.0",
     .summary = "Tells what the client can do.",
     .complexity = "O(1)",
     .arguments = kCapaArguments},
    {.name = "client|getname",
     .arity = 2,
     .flags = kPlain,
     .acl = kPlainAcl,
     .handler = ClientGetName,
     .group = "connection",
     .since = "2.6.9",
     .summary = "Returns the connection's name.",
     .complexity = "O(1)"},
    {.name = "client|help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .acl = kPlainAcl,
     .handler = ClientHelp,
     .group = "connection",
     .since = "5.0.0",
     .summary = "Explains the subcommands.",
     .complexity = "O(1)"},
    {.name = "client|id",
     .arity = 2,
     .flags = kPlain,
     .acl = kPlainAcl,
     .handler = ClientId,
     .group = "connection",
     .since = "5.0.0",
     .summary = "Returns the connection's number.",
     .complexity = "O(1)"},
    {.name = "client|info",
     .arity = 2,
     .flags = kPlain,
     .acl = kPlainAcl,
     .handler = ClientInfo,
     .group = "connection",
     .since = "6.2.0",
     .summary = "Describes the connection.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output"},
    {.name = "client|kill",
     .arity = -3,
     .flags = kAdmin,
     .acl = kAdminAcl,
     .handler = ClientKill,
     .group = "connection",
     .since = "2.4.0",
     .summary = "Closes connections.",
     .complexity = "O(N) where N is the number of connections",
     .arguments = kKillArguments},
    {.name = "client|list",
     .arity = -2,
     .flags = kAdmin,
     .acl = kAdminAcl,
     .handler = ClientList,
     .group = "connection",
     .since = "2.4.0",
     .summary = "Describes the open connections.",
     .complexity = "O(N) where N is the number of connections",
     .tips = "nondeterministic_output",
     .arguments = kListArguments},
    {.name = "client|no-evict",
     .arity = 3,
     .flags = kAdmin,
     .acl = kAdminAcl,
     .handler = ClientNoEvict,
     .group = "connection",
     .since = "7.0.0",
     .summary = "Protects the connection from being closed for its memory.",
     .complexity = "O(1)",
     .arguments = kOnOff},
    {.name = "client|no-touch",
     .arity = 3,
     .flags = kPlain,
     .acl = kPlainAcl,
     .handler = ClientNoTouch,
     .group = "connection",
     .since = "7.2.0",
     .summary = "Makes the connection's commands leave access times alone.",
     .complexity = "O(1)",
     .arguments = kOnOff},
    {.name = "client|pause",
     .arity = -3,
     .flags = kAdmin,
     .acl = kAdminAcl,
     .handler = ClientPauseCommand,
     .group = "connection",
     .since = "3.0.0",
     .summary = "Holds back all commands, or those that write.",
     .complexity = "O(1)",
     .arguments = kPauseArguments},
    {.name = "client|reply",
     .arity = 3,
     .flags = kPlain,
     .acl = kPlainAcl,
     .handler = ClientReply,
     .group = "connection",
     .since = "3.2.0",
     .summary = "Switches replies on or off.",
     .complexity = "O(1)",
     .arguments = kReplyArguments},
    {.name = "client|setinfo",
     .arity = 4,
     .flags = kPlain,
     .acl = kPlainAcl,
     .handler = ClientSetInfo,
     .group = "connection",
     .since = "7.2.0",
     .summary = "Tells which client library this is.",
     .complexity = "O(1)",
     .tips = "request_policy:all_nodes response_policy:all_succeeded",
     .arguments = kSetInfoArguments},
    {.name = "client|setname",
     .arity = 3,
     .flags = kPlain,
     .acl = kPlainAcl,
     .handler = ClientSetName,
     .group = "connection",
     .since = "2.6.9",
     .summary = "Names the connection.",
     .complexity = "O(1)",
     .tips = "request_policy:all_nodes response_policy:all_succeeded",
     .arguments = kSetNameArguments},
    {.name = "client|unblock",
     .arity = -3,
     .flags = kAdmin,
     .acl = kAdminAcl,
     .handler = ClientUnblock,
     .group = "connection",
     .since = "5.0.0",
     .summary = "Ends the wait of a blocked client.",
     .complexity = "O(log N) where N is the number of connections",
     .arguments = kUnblockArguments},
    {.name = "client|unpause",
     .arity = 2,
     .flags = kAdmin,
     .acl = kAdminAcl,
     .handler = ClientUnpause,
     .group = "connection",
     .since = "6.2.0",
     .summary = "Ends a pause.",
     .complexity = "O(1)"},
};

constexpr CommandSpec kCommands[] = {
    {.name = "client",
     .arity = -2,
     .acl = acl::kSlow,
     .subcommands = kSubcommands,
     .group = "connection",
     .since = "2.4.0",
     .summary = "Commands about connections.",
     .complexity = "Depends on subcommand."},
};

}  // namespace

std::span<const CommandSpec> ClientCommands() { return kCommands; }

}  // namespace hotkv
