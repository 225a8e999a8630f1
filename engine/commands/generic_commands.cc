// Commands on keys of any type: existence, type, deletion, names and databases.
#include "engine/commands/generic_commands.h"

#include <algorithm>

#include "engine/commands/vset_copy.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {

constexpr std::string_view kSameObject = "ERR source and destination objects are the same";
constexpr std::string_view kNoSuchKey = "ERR no such key";

enum class Target : uint8_t { kAny, kMustBeMissing };

void Rename(CommandContext& ctx, Target target) {
  if (ctx.txn.Peek(ctx.db(), ctx.key(0)) == nullptr) {
    ctx.reply.Error(kNoSuchKey);
    return;
  }
  const bool same = ctx.key(0).key == ctx.key(1).key;
  const bool refused =
      target == Target::kMustBeMissing && (same || ctx.txn.Peek(ctx.db(), ctx.key(1)) != nullptr);
  if (!refused && !same) ctx.txn.Move(ctx.db(), ctx.key(0), ctx.db(), ctx.key(1));
  if (target == Target::kAny) {
    ctx.reply.Ok();
  } else {
    ctx.reply.Integer(refused ? 0 : 1);
  }
}

struct CopyOptions {
  uint32_t to_db = 0;
  bool replace = false;
};

std::optional<CopyOptions> ParseCopyOptions(CommandContext& ctx) {
  CopyOptions options{ctx.db(), false};
  for (size_t i = 3; i < ctx.argc(); ++i) {
    if (ctx.Is(i, "REPLACE")) {
      options.replace = true;
    } else if (ctx.Is(i, "DB") && i + 1 < ctx.argc()) {
      const std::optional<uint32_t> db = ParseDb(ctx, ++i);
      if (!db) return std::nullopt;
      options.to_db = *db;
    } else {
      ctx.SyntaxError();
      return std::nullopt;
    }
  }
  return options;
}

}  // namespace

Entry* LookAtKey(CommandContext& ctx, size_t i) {
  Entry* entry = ctx.txn.Peek(ctx.db(), ctx.key(i));
  AddRelaxed(entry != nullptr ? ctx.worker.hits : ctx.worker.misses, 1);
  return entry;
}

std::string_view TypeName(ValueType type) {
  switch (type) {
    case ValueType::kString:
      return "string";
    case ValueType::kList:
      return "list";
    case ValueType::kSet:
      return "set";
    case ValueType::kSortedSet:
      return "zset";
    case ValueType::kHash:
      return "hash";
    case ValueType::kStream:
      return "stream";
    case ValueType::kVectorSet:
      return "vectorset";
  }
  return "unknown";
}

std::optional<uint32_t> ParseDb(CommandContext& ctx, size_t i) {
  int64_t db = 0;
  if (!ctx.ParseInt(i, &db)) return std::nullopt;
  if (db < 0 || db >= static_cast<int64_t>(ctx.txn.keyspace().databases())) {
    ctx.reply.Error("ERR DB index is out of range");
    return std::nullopt;
  }
  return static_cast<uint32_t>(db);
}

void PrepareCopy(CommandContext& ctx) {
  const std::optional<CopyOptions> options = ParseCopyOptions(ctx);
  ctx.finished = !options;
  if (!options || (options->to_db == ctx.db() && ctx.key(0).key == ctx.key(1).key)) return;
  bool occupied = false;
  if (!options->replace && !ctx.client.in_exec) {
    Stripe& stripe = ctx.txn.keyspace().stripe(ctx.key(1).stripe);
    ctx.txn.LockStripe(stripe);
    occupied = ctx.txn.Peek(options->to_db, ctx.key(1)) != nullptr;
    ctx.txn.UnlockStripe(stripe);
  }
  if (!occupied) PrepareCopyOfSet(ctx);
}

void CopyCommand(CommandContext& ctx) {
  const std::optional<CopyOptions> options = ParseCopyOptions(ctx);
  if (!options) return;
  if (options->to_db == ctx.db() && ctx.key(0).key == ctx.key(1).key) {
    ctx.reply.Error(kSameObject);
    return;
  }
  const Entry* source = ctx.Find(0);
  const bool occupied = !options->replace && ctx.txn.Peek(options->to_db, ctx.key(1)) != nullptr;
  if (source == nullptr || occupied) {
    ctx.reply.Integer(0);
    return;
  }
  if (source->type() == ValueType::kVectorSet) return CopySet(ctx, options->to_db);
  if (source->type() != ValueType::kString) {
    ctx.reply.Error("ERR not supported for this module key");
    return;
  }
  ctx.txn.CopyString(ctx.db(), ctx.key(0), options->to_db, ctx.key(1));
  ctx.reply.Integer(1);
}

void DelCommand(CommandContext& ctx) {
  const auto deleted = std::count_if(ctx.keys.begin(), ctx.keys.end(), [&](const KeyRef& key) {
    return ctx.txn.Delete(ctx.db(), key);
  });
  ctx.reply.Integer(deleted);
}

void ExistsCommand(CommandContext& ctx) {
  int64_t found = 0;
  for (size_t i = 0; i < ctx.keys.size(); ++i) found += LookAtKey(ctx, i) != nullptr ? 1 : 0;
  ctx.reply.Integer(found);
}

void MoveCommand(CommandContext& ctx) {
  const std::optional<uint32_t> to_db = ParseDb(ctx, 2);
  if (!to_db) return;
  if (*to_db == ctx.db()) {
    ctx.reply.Error(kSameObject);
    return;
  }
  const bool possible =
      ctx.txn.Peek(ctx.db(), ctx.key()) != nullptr && ctx.txn.Peek(*to_db, ctx.key()) == nullptr;
  if (possible) ctx.txn.Move(ctx.db(), ctx.key(), *to_db, ctx.key());
  ctx.reply.Integer(possible ? 1 : 0);
}

void RenameCommand(CommandContext& ctx) { Rename(ctx, Target::kAny); }
void RenameNxCommand(CommandContext& ctx) { Rename(ctx, Target::kMustBeMissing); }

void TouchCommand(CommandContext& ctx) {
  const auto found = std::count_if(ctx.keys.begin(), ctx.keys.end(), [&](const KeyRef& key) {
    return ctx.txn.Find(ctx.db(), key) != nullptr;
  });
  ctx.reply.Integer(found);
}

void TypeCommand(CommandContext& ctx) {
  const Entry* entry = LookAtKey(ctx, 0);
  ctx.reply.Simple(entry == nullptr ? "none" : TypeName(entry->type()));
}

}  // namespace hotkv
