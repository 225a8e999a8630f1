// AUTH, ECHO, HELLO, PING, QUIT, RESET, SELECT.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "engine/base/number.h"
#include "engine/commands/command_context.h"
#include "engine/tx/engine.h"
#include "server/commands/client_commands.h"
#include "server/commands/families.h"
#include "server/server.h"
#include "server/session/client.h"
#include "server/version.h"

namespace hotkv {

namespace {

namespace flag = command_flag;
namespace acl = acl_category;

constexpr std::string_view kDefaultUser = "default";
constexpr std::string_view kWrongPassword =
    "WRONGPASS invalid username-password pair or user is disabled.";

// Answers WRONGPASS when the pair is not right.
bool Authenticate(CommandContext& ctx, std::string_view user, std::string_view password) {
  Client& client = Client::Of(ctx.client);
  if (!client.server().Authenticate(user, password)) {
    client.server().stats().acl_access_denied_auth.fetch_add(1, std::memory_order_relaxed);
    ctx.reply.Error(kWrongPassword);
    return false;
  }
  client.authenticated = true;
  const std::lock_guard<std::mutex> lock(client.shared.mutex);
  client.shared.user = kDefaultUser;
  return true;
}

void Auth(CommandContext& ctx) {
  if (ctx.argc() > 3) return ctx.SyntaxError();
  const bool with_user = ctx.argc() == 3;
  if (!with_user && !Client::Of(ctx.client).server().AuthRequired()) {
    return ctx.reply.Error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your "
        "configuration is correct?");
  }
  const std::string_view user = with_user ? ctx.arg(1) : kDefaultUser;
  if (Authenticate(ctx, user, ctx.arg(ctx.argc() - 1))) ctx.reply.Ok();
}

void Echo(CommandContext& ctx) { ctx.reply.Bulk(ctx.arg(1)); }

struct HelloOptions {
  std::optional<int> version;
  std::optional<std::string_view> user;
  std::string_view password;
  std::optional<std::string_view> name;
};

// False: answered with an error.
bool ParseHello(CommandContext& ctx, HelloOptions* out) {
  if (ctx.argc() >= 2) {
    const std::optional<int64_t> version = ParseInt64(ctx.arg(1));
    if (!version) {
      ctx.reply.Error("ERR Protocol version is not an integer or out of range");
      return false;
    }
    if (*version != 2 && *version != 3) {
      ctx.reply.Error("NOPROTO unsupported protocol version");
      return false;
    }
    out->version = static_cast<int>(*version);
  }
  for (size_t i = 2; i < ctx.argc(); ++i) {
    const size_t more = ctx.argc() - 1 - i;
    if (ctx.Is(i, "AUTH") && more >= 2) {
      out->user = ctx.arg(i + 1);
      out->password = ctx.arg(i + 2);
      i += 2;
    } else if (ctx.Is(i, "SETNAME") && more >= 1) {
      if (!IsClientAttribute(ctx.arg(i + 1))) {
        ctx.reply.Error(kBadClientName);
        return false;
      }
      out->name = ctx.arg(++i);
    } else {
      ctx.reply.Error(fmt::format("ERR Syntax error in HELLO option '{}'", ctx.arg(i)));
      return false;
    }
  }
  return true;
}

void Hello(CommandContext& ctx) {
  HelloOptions options;
  if (!ParseHello(ctx, &options)) return;
  Client& client = Client::Of(ctx.client);
  if (options.user && !Authenticate(ctx, *options.user, options.password)) return;
  if (!client.authenticated) {
    return ctx.reply.Error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> "
        "<pass> option can be used to authenticate the client and select the RESP protocol version "
        "at the same time");
  }
  if (options.name) SetClientName(client, *options.name);
  if (options.version) {
    client.reply.resp_version = *options.version;
    ctx.reply.resp_version = *options.version;
  }
  ReplyWriter& reply = ctx.reply;
  reply.MapHeader(7);
  reply.Bulk("server");
  reply.Bulk("redis");
  reply.Bulk("version");
  reply.Bulk(kRedisVersion);
  reply.Bulk("proto");
  reply.Integer(reply.resp_version);
  reply.Bulk("id");
  reply.Integer(static_cast<int64_t>(client.id));
  reply.Bulk("mode");
  reply.Bulk("standalone");
  reply.Bulk("role");
  reply.Bulk("master");
  reply.Bulk("modules");
  reply.EmptyArray();
}

void Ping(CommandContext& ctx) {
  if (ctx.argc() > 2) return ctx.reply.Error("ERR wrong number of arguments for 'ping' command");
  const ClientShared& shared = Client::Of(ctx.client).shared;
  const bool subscribed = shared.subscriptions.load(std::memory_order_relaxed) +
                              shared.pattern_subscriptions.load(std::memory_order_relaxed) +
                              shared.shard_subscriptions.load(std::memory_order_relaxed) !=
                          0;
  if (subscribed && !ctx.reply.resp3()) {
    // Looks like the messages that a subscribed RESP2 client expects.
    ctx.reply.ArrayHeader(2);
    ctx.reply.Bulk("pong");
    ctx.reply.Bulk(ctx.argc() == 2 ? ctx.arg(1) : std::string_view());
  } else if (ctx.argc() == 2) {
    ctx.reply.Bulk(ctx.arg(1));
  } else {
    ctx.reply.Simple("PONG");
  }
}

void Quit(CommandContext& ctx) {
  Client::Of(ctx.client).close_after_reply = true;
  ctx.reply.Ok();
}

void Reset(CommandContext& ctx) {
  Client& client = Client::Of(ctx.client);
  client.in_multi = false;
  client.multi_broken = false;
  client.queue.clear();
  client.queue_bytes = 0;
  Txn::Unwatch(ctx.worker, client);
  client.db = 0;
  client.reply_mode = ReplyMode::kOn;
  client.reply.resp_version = 2;
  ctx.reply.resp_version = 2;
  client.authenticated = !client.server().AuthRequired();
  client.shared.monitor.store(false, std::memory_order_relaxed);
  client.shared.no_evict.store(false, std::memory_order_relaxed);
  client.no_touch = false;
  client.shared.no_touch.store(false, std::memory_order_relaxed);
  SetClientName(client, "");
  ctx.reply.Simple("RESET");
}

void Select(CommandContext& ctx) {
  int64_t db = 0;
  if (!ctx.ParseInt(1, &db)) return;
  if (db < INT32_MIN || db > INT32_MAX) {
    return ctx.reply.Error(
        "ERR value is out of range, value must between -2147483648 and 2147483647");
  }
  if (db < 0 || db >= static_cast<int64_t>(ctx.engine.keyspace().databases())) {
    return ctx.reply.Error("ERR DB index is out of range");
  }
  ctx.client.db = static_cast<uint32_t>(db);
  ctx.reply.Ok();
}

constexpr ArgumentSpec kAuthArguments[] = {
    {.name = "username", .optional = true, .since = "6.0.0"},
    {.name = "password"},
};
constexpr ArgumentSpec kEchoArguments[] = {{.name = "message"}};
constexpr ArgumentSpec kHelloAuth[] = {{.name = "username"}, {.name = "password"}};
constexpr ArgumentSpec kHelloBlock[] = {
    {.name = "protover", .type = ArgumentType::kInteger},
    {.name = "auth",
     .type = ArgumentType::kBlock,
     .token = "AUTH",
     .optional = true,
     .children = kHelloAuth},
    {.name = "clientname", .token = "SETNAME", .optional = true},
};
constexpr ArgumentSpec kHelloArguments[] = {
    {.name = "arguments", .type = ArgumentType::kBlock, .optional = true, .children = kHelloBlock},
};
constexpr ArgumentSpec kPingArguments[] = {{.name = "message", .optional = true}};
constexpr ArgumentSpec kSelectArguments[] = {{.name = "index", .type = ArgumentType::kInteger}};

constexpr uint32_t kAlways = flag::kNoScript | flag::kLoading | flag::kStale | flag::kFast |
                             flag::kNoAuth | flag::kAllowBusy;
constexpr uint32_t kFastConnection = acl::kConnection | acl::kFast;

constexpr CommandSpec kCommands[] = {
    {.name = "auth",
     .arity = -2,
     .flags = kAlways,
     .acl = kFastConnection,
     .handler = Auth,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Gives the password of the connection.",
     .complexity = "O(1)",
     .arguments = kAuthArguments},
    {.name = "echo",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale | flag::kFast,
     .acl = kFastConnection,
     .handler = Echo,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Returns the given text.",
     .complexity = "O(1)",
     .arguments = kEchoArguments},
    {.name = "hello",
     .arity = -1,
     .flags = kAlways,
     .acl = kFastConnection,
     .handler = Hello,
     .group = "connection",
     .since = "6.0.0",
     .summary = "Chooses the protocol version and tells about server and connection.",
     .complexity = "O(1)",
     .arguments = kHelloArguments},
    {.name = "ping",
     .arity = -1,
     .flags = flag::kFast,
     .acl = kFastConnection,
     .handler = Ping,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Answers PONG, or the given text.",
     .complexity = "O(1)",
     .tips = "request_policy:all_shards response_policy:all_succeeded",
     .arguments = kPingArguments},
    {.name = "quit",
     .arity = -1,
     .flags = kAlways | flag::kImmediateInMulti,
     .acl = kFastConnection,
     .handler = Quit,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Closes the connection.",
     .complexity = "O(1)",
     .deprecated_since = "7.2.0",
     .replaced_by = "just closing the connection"},
    {.name = "reset",
     .arity = 1,
     .flags = kAlways | flag::kImmediateInMulti,
     .acl = kFastConnection,
     .handler = Reset,
     .group = "connection",
     .since = "6.2.0",
     .summary = "Makes the connection as it was when it was new.",
     .complexity = "O(1)"},
    {.name = "select",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale | flag::kFast,
     .acl = kFastConnection,
     .handler = Select,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Changes the connection's database.",
     .complexity = "O(1)",
     .arguments = kSelectArguments},
};

}  // namespace

std::span<const CommandSpec> ConnectionCommands() { return kCommands; }

}  // namespace hotkv
