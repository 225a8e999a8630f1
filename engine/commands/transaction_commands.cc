// MULTI, EXEC, DISCARD, WATCH, UNWATCH: thin handlers over Executor and Txn, which do the work.
#include "engine/commands/command_context.h"
#include "engine/tx/engine.h"
#include "engine/tx/executor.h"

namespace hotkv {

namespace {

void MultiCommand(CommandContext& ctx) {
  if (ctx.client.in_multi) {
    ctx.reply.Error("ERR MULTI calls can not be nested");
    return;
  }
  ctx.client.in_multi = true;
  ctx.client.multi_broken = false;
  ctx.reply.Ok();
}

void ExecCommand(CommandContext& ctx) { Executor::Exec(ctx); }

void DiscardCommand(CommandContext& ctx) {
  if (!ctx.client.in_multi) {
    ctx.reply.Error("ERR DISCARD without MULTI");
    return;
  }
  ctx.client.in_multi = false;
  ctx.client.multi_broken = false;
  ctx.client.queue.clear();
  ctx.client.queue_bytes = 0;
  ctx.client.exec_finished = true;
  ctx.reply.Ok();
}

void WatchCommand(CommandContext& ctx) {
  if (ctx.client.in_multi) {
    ctx.reply.Error("ERR WATCH inside MULTI is not allowed");
    return;
  }
  for (const KeyRef& key : ctx.keys) ctx.txn.Watch(ctx.client, ctx.db(), key);
  ctx.reply.Ok();
}

void UnwatchCommand(CommandContext& ctx) {
  // Queued in a transaction it does nothing: EXEC drops the watches itself, once its locks are.
  if (!ctx.client.in_exec) Txn::Unwatch(ctx.worker, ctx.client);
  ctx.reply.Ok();
}

constexpr uint32_t kAlways =
    command_flag::kNoScript | command_flag::kLoading | command_flag::kStale;
constexpr uint32_t kAlwaysFast = kAlways | command_flag::kFast | command_flag::kAllowBusy;
constexpr uint32_t kAclFast = acl_category::kTransaction | acl_category::kFast;

constexpr KeySpec kWatchedKeys[] = {{.flags = key_flag::kReadOnly, .begin = 1, .last = -1}};
constexpr ArgumentSpec kWatchArgs[] = {
    {.name = "key", .type = ArgumentType::kKey, .multiple = true, .key_spec = 0}};

constexpr CommandSpec kTransactionCommands[] = {
    {.name = "discard",
     .arity = 1,
     .flags = kAlwaysFast | command_flag::kImmediateInMulti,
     .acl = kAclFast,
     .handler = DiscardCommand,
     .group = "transactions",
     .since = "2.0.0",
     .summary = "Drops a transaction's queue and the watches.",
     .complexity = "O(N), N the number of queued commands."},
    {.name = "exec",
     .arity = 1,
     .flags = kAlways | command_flag::kSkipSlowlog | command_flag::kImmediateInMulti,
     .acl = acl_category::kTransaction | acl_category::kSlow,
     .handler = ExecCommand,
     .group = "transactions",
     .since = "1.2.0",
     .summary = "Runs a transaction's queued commands at one moment.",
     .complexity = "As the queued commands."},
    {.name = "multi",
     .arity = 1,
     .flags = kAlwaysFast | command_flag::kImmediateInMulti,
     .acl = kAclFast,
     .handler = MultiCommand,
     .group = "transactions",
     .since = "1.2.0",
     .summary = "Starts a transaction: commands are queued until EXEC.",
     .complexity = "O(1)"},
    {.name = "unwatch",
     .arity = 1,
     .flags = kAlwaysFast,
     .acl = kAclFast,
     .handler = UnwatchCommand,
     .group = "transactions",
     .since = "2.2.0",
     .summary = "Drops the watches of this connection.",
     .complexity = "O(N), N the number of watched keys."},
    {.name = "watch",
     .arity = -2,
     .flags = kAlwaysFast | command_flag::kImmediateInMulti,
     .acl = kAclFast,
     .keys = {1, -1, 1},
     .handler = WatchCommand,
     .group = "transactions",
     .since = "2.2.0",
     .summary = "Watches keys: the next EXEC does nothing if one of them changes before.",
     .complexity = "O(1) for each key.",
     .key_specs = kWatchedKeys,
     .arguments = kWatchArgs},
};

}  // namespace

std::span<const CommandSpec> TransactionCommands() { return kTransactionCommands; }

}  // namespace hotkv
