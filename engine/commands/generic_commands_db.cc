// Commands on whole databases.
#include "engine/base/number.h"
#include "engine/commands/generic_commands.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {

// FLUSHDB and FLUSHALL take ASYNC or SYNC. Memory is given back in the background either way; the
// reply comes when nothing of the database can be seen any more.
bool FlushOptionsAreValid(CommandContext& ctx) {
  if (ctx.argc() == 1) return true;
  if (ctx.argc() == 2 && (ctx.Is(1, "ASYNC") || ctx.Is(1, "SYNC"))) return true;
  ctx.SyntaxError();
  return false;
}

std::optional<int32_t> ParseDbIndex(CommandContext& ctx, size_t i, std::string_view error) {
  const std::optional<int64_t> value = ParseInt64(ctx.arg(i));
  if (value && *value >= INT32_MIN && *value <= INT32_MAX) return static_cast<int32_t>(*value);
  ctx.reply.Error(error);
  return std::nullopt;
}

}  // namespace

void DbSizeCommand(CommandContext& ctx) {
  const ReclaimPin pin(ctx.engine.reclaim(), ctx.worker.reclaim_slot);
  ctx.reply.Integer(static_cast<int64_t>(ctx.txn.keyspace().Size(ctx.db())));
}

void FlushAllCommand(CommandContext& ctx) {
  if (!FlushOptionsAreValid(ctx)) return;
  for (uint32_t db = 0; db < ctx.txn.keyspace().databases(); ++db) ctx.txn.FlushDb(db);
  ctx.reply.Ok();
}

void FlushDbCommand(CommandContext& ctx) {
  if (!FlushOptionsAreValid(ctx)) return;
  ctx.txn.FlushDb(ctx.db());
  ctx.reply.Ok();
}

void SwapDbCommand(CommandContext& ctx) {
  const std::optional<int32_t> a = ParseDbIndex(ctx, 1, "ERR invalid first DB index");
  if (!a) return;
  const std::optional<int32_t> b = ParseDbIndex(ctx, 2, "ERR invalid second DB index");
  if (!b) return;
  const auto databases = static_cast<int64_t>(ctx.txn.keyspace().databases());
  if (*a < 0 || *b < 0 || *a >= databases || *b >= databases) {
    ctx.reply.Error("ERR DB index is out of range");
    return;
  }
  if (*a != *b) ctx.txn.SwapDb(static_cast<uint32_t>(*a), static_cast<uint32_t>(*b));
  ctx.reply.Ok();
}

}  // namespace hotkv
