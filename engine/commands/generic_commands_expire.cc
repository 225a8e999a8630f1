// Commands that set, remove and tell the expiry of a key.
#include "engine/commands/expire_util.h"
#include "engine/commands/generic_commands.h"

namespace hotkv {

namespace {

struct ExpireConditions {
  bool if_none = false;     // NX
  bool if_some = false;     // XX
  bool if_later = false;    // GT
  bool if_earlier = false;  // LT
};

std::optional<ExpireConditions> ParseConditions(CommandContext& ctx) {
  ExpireConditions conditions;
  for (size_t i = 3; i < ctx.argc(); ++i) {
    if (ctx.Is(i, "NX")) {
      conditions.if_none = true;
    } else if (ctx.Is(i, "XX")) {
      conditions.if_some = true;
    } else if (ctx.Is(i, "GT")) {
      conditions.if_later = true;
    } else if (ctx.Is(i, "LT")) {
      conditions.if_earlier = true;
    } else {
      ctx.reply.Error("ERR Unsupported option " + std::string(ctx.arg(i)));
      return std::nullopt;
    }
  }
  if (conditions.if_none && (conditions.if_some || conditions.if_later || conditions.if_earlier)) {
    ctx.reply.Error("ERR NX and XX, GT or LT options at the same time are not compatible");
    return std::nullopt;
  }
  if (conditions.if_later && conditions.if_earlier) {
    ctx.reply.Error("ERR GT and LT options at the same time are not compatible");
    return std::nullopt;
  }
  return conditions;
}

// old_at_ms 0: no expiry, which counts as later than any.
bool ConditionsHold(const ExpireConditions& conditions, int64_t old_at_ms, int64_t at_ms) {
  const bool has_expiry = old_at_ms != 0;
  if (conditions.if_none && has_expiry) return false;
  if (conditions.if_some && !has_expiry) return false;
  if (conditions.if_later && (!has_expiry || at_ms <= old_at_ms)) return false;
  return !(conditions.if_earlier && has_expiry && at_ms >= old_at_ms);
}

void Expire(CommandContext& ctx, TimeForm form) {
  const std::optional<ExpireConditions> conditions = ParseConditions(ctx);
  if (!conditions) return;
  const std::optional<int64_t> at_ms = ParseExpireAt(ctx, 2, form, Positive::kNotRequired);
  if (!at_ms) return;
  const Entry* entry = ctx.txn.Peek(ctx.db(), ctx.key());
  if (entry == nullptr || !ConditionsHold(*conditions, entry->expire_at_ms(), *at_ms)) {
    ctx.reply.Integer(0);
    return;
  }
  if (*at_ms <= ctx.now_ms()) {
    ctx.txn.Delete(ctx.db(), ctx.key());
  } else {
    ctx.txn.SetExpire(ctx.db(), ctx.key(), *at_ms);
  }
  ctx.reply.Integer(1);
}

enum class Unit : uint8_t { kSeconds, kMillis };
enum class From : uint8_t { kNow, kUnixEpoch };

void ReplyExpiry(CommandContext& ctx, Unit unit, From from) {
  constexpr int64_t kNoKey = -2;
  constexpr int64_t kNoExpiry = -1;
  const Entry* entry = LookAtKey(ctx, 0);
  if (entry == nullptr || !entry->has_expiry()) {
    ctx.reply.Integer(entry == nullptr ? kNoKey : kNoExpiry);
    return;
  }
  const int64_t ms = entry->expire_at_ms() - (from == From::kNow ? ctx.now_ms() : 0);
  ctx.reply.Integer(unit == Unit::kSeconds ? RoundToSeconds(ms) : ms);
}

}  // namespace

void ExpireCommand(CommandContext& ctx) { Expire(ctx, kRelativeSeconds); }
void ExpireAtCommand(CommandContext& ctx) { Expire(ctx, kAbsoluteSeconds); }
void PExpireCommand(CommandContext& ctx) { Expire(ctx, kRelativeMillis); }
void PExpireAtCommand(CommandContext& ctx) { Expire(ctx, kAbsoluteMillis); }

void TtlCommand(CommandContext& ctx) { ReplyExpiry(ctx, Unit::kSeconds, From::kNow); }
void PTtlCommand(CommandContext& ctx) { ReplyExpiry(ctx, Unit::kMillis, From::kNow); }
void ExpireTimeCommand(CommandContext& ctx) { ReplyExpiry(ctx, Unit::kSeconds, From::kUnixEpoch); }
void PExpireTimeCommand(CommandContext& ctx) { ReplyExpiry(ctx, Unit::kMillis, From::kUnixEpoch); }

void PersistCommand(CommandContext& ctx) {
  const Entry* entry = ctx.txn.Peek(ctx.db(), ctx.key());
  const bool had_expiry = entry != nullptr && entry->has_expiry();
  if (had_expiry) ctx.txn.SetExpire(ctx.db(), ctx.key(), 0);
  ctx.reply.Integer(had_expiry ? 1 : 0);
}

}  // namespace hotkv
