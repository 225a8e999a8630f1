// VSIM.* on single elements' attributes and ends, and VSIM.ALTER.
#include <algorithm>

#include "engine/base/number.h"
#include "engine/commands/expire_util.h"
#include "engine/commands/vector_args.h"
#include "engine/commands/vset_common.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {

constexpr int64_t kNoEnd = -1;
constexpr int64_t kNoElement = -2;

void SetAttr(CommandContext& ctx) {
  const VectorSetRef set = IndexOf(ctx);
  if (!set) return;
  const auto slot = set->index().SetAttr(ctx.arg(2), ctx.arg(3));
  if (slot) RecordChange(ctx, *set, VectorSet::AttrChange(*slot, ctx.arg(2), ctx.arg(3)));
  ctx.reply.Integer(slot ? 1 : 0);
}

void GetAttr(CommandContext& ctx) {
  const VectorSetRef set = IndexForLookup(ctx);
  if (!set) return;
  const auto attr = set->index().GetAttr(ctx.arg(2));
  TouchKeysStripe(ctx);
  attr && !attr->empty() ? ctx.reply.Bulk(*attr) : ctx.reply.Null();
}

void Expire(CommandContext& ctx) {
  VectorArgs args(ctx.args, 3);
  int64_t at_ms = 0;
  if (!args.Keyword("PERSIST") && !ParseLife(ctx, &args, &at_ms)) args.SyntaxError();
  if (args.ok() && !args.done()) args.SyntaxError();
  if (!args.ok()) {
    ctx.reply.Error(args.error());
    return;
  }
  const VectorSetRef set = IndexOf(ctx);
  if (!set) return;
  const auto old_ms = set->index().GetExpiry(ctx.arg(2));
  if (!old_ms || (at_ms == 0 && *old_ms == 0)) {
    ctx.reply.Integer(0);
    return;
  }
  const auto slot = set->index().SetExpiry(ctx.arg(2), at_ms);
  RecordChange(ctx, *set, VectorSet::ExpiryChange(slot.value_or(0), ctx.arg(2), at_ms));
  if (at_ms != 0) ctx.txn.NotePartEnds(ctx.key(), at_ms);
  ctx.reply.Integer(1);
}

void Ttl(CommandContext& ctx) {
  const VectorSetRef set = IndexForLookup(ctx);
  if (!set) return;
  const auto at_ms = set->index().GetExpiry(ctx.arg(2));
  TouchKeysStripe(ctx);
  if (!at_ms || *at_ms == 0) {
    ctx.reply.Integer(at_ms ? kNoEnd : kNoElement);
    return;
  }
  ctx.reply.Integer(RoundToSeconds(std::max<int64_t>(*at_ms - ctx.now_ms(), 0)));
}

void Alter(CommandContext& ctx) {
  VectorArgs args(ctx.args, 2);
  std::optional<uint32_t> ef;
  std::optional<uint32_t> rerank;
  std::optional<std::vector<FieldSpec>> fields;
  while (args.ok() && !args.done()) {
    if (!ef && args.Keyword("EF")) {
      ef = static_cast<uint32_t>(args.Count("EF", 1, kIndexEfMax));
    } else if (!rerank && args.Keyword("RERANK")) {
      rerank = static_cast<uint32_t>(args.Count("RERANK", 0, kIndexEfMax));
    } else if (!fields && args.Keyword("FIELDS")) {
      fields = ParseFields(&args);
    } else {
      args.SyntaxError();
    }
  }
  if (!args.ok()) {
    ctx.reply.Error(args.error());
    return;
  }
  const VectorSetRef set = IndexOf(ctx);
  if (!set) return;
  const IndexOptions now = set->index().options();
  const uint32_t new_ef = ef.value_or(now.ef_default);
  const uint32_t new_rerank = rerank.value_or(now.rerank);
  if (ef || rerank) {
    set->index().SetSearchDefaults(new_ef, new_rerank);
    RecordChange(ctx, *set, VectorSet::DefaultsChange(new_ef, new_rerank));
  }
  if (fields) {
    const Status status = set->index().SetFields(*fields);
    HOTKV_CHECK(status.ok());  // ParseFields has checked them
    RecordChange(ctx, *set, VectorSet::FieldsChange(*fields));
  }
  ctx.reply.Ok();
}

using Type = ArgumentType;
constexpr KeySpec kReadKey[] = {{.flags = key_flag::kReadOnly | key_flag::kAccess, .begin = 1}};
constexpr KeySpec kUpdateKey[] = {{.flags = key_flag::kReadWrite | key_flag::kUpdate, .begin = 1}};
constexpr ArgumentSpec kIndex{.name = "index", .type = Type::kKey, .key_spec = 0};
constexpr ArgumentSpec kId{.name = "id"};
constexpr ArgumentSpec kElementArgs[] = {kIndex, kId};
constexpr ArgumentSpec kSetAttrArgs[] = {kIndex, kId, {.name = "json"}};
constexpr ArgumentSpec kLives[] = {
    {.name = "seconds", .type = Type::kInteger, .token = "EX"},
    {.name = "milliseconds", .type = Type::kInteger, .token = "PX"},
    {.name = "unix-time-seconds", .type = Type::kUnixTime, .token = "EXAT"},
    {.name = "unix-time-milliseconds", .type = Type::kUnixTime, .token = "PXAT"},
    {.name = "persist", .type = Type::kPureToken, .token = "PERSIST"},
};
constexpr ArgumentSpec kExpireArgs[] = {
    kIndex, kId, {.name = "expiration", .type = Type::kOneOf, .children = kLives}};
constexpr ArgumentSpec kFieldKinds[] = {
    {.name = "tag", .type = Type::kPureToken, .token = "TAG"},
    {.name = "numeric", .type = Type::kPureToken, .token = "NUMERIC"},
};
constexpr ArgumentSpec kFieldArgs[] = {
    {.name = "name"}, {.name = "kind", .type = Type::kOneOf, .children = kFieldKinds}};
constexpr ArgumentSpec kFieldsArgs[] = {
    {.name = "count", .type = Type::kInteger},
    {.name = "field", .type = Type::kBlock, .optional = true, .multiple = true, .children = kFieldArgs},
};
constexpr ArgumentSpec kAlterArgs[] = {
    kIndex,
    {.name = "ef", .type = Type::kInteger, .token = "EF", .optional = true},
    {.name = "rerank", .type = Type::kInteger, .token = "RERANK", .optional = true},
    {.name = "fields", .type = Type::kBlock, .token = "FIELDS", .optional = true, .children = kFieldsArgs},
};

CommandSpec Spec(std::string_view name, int arity, std::string_view summary,
                 std::span<const ArgumentSpec> arguments) {
  CommandSpec spec;
  spec.name = name;
  spec.arity = arity;
  spec.keys = {1, 1, 1};
  spec.group = "vector";
  spec.since = "0.1.0";
  spec.summary = summary;
  spec.complexity = "O(1)";
  spec.arguments = arguments;
  return spec;
}

CommandSpec Change(CommandSpec spec, Handler handler) {
  spec.flags = command_flag::kWrite | command_flag::kDenyOom | command_flag::kFast;
  spec.acl = acl_category::kWrite | acl_category::kFast | acl_category::kVector;
  spec.handler = handler;
  spec.key_specs = kUpdateKey;
  return spec;
}

CommandSpec Lookup(CommandSpec spec, Handler lookup) {
  spec.flags = command_flag::kReadOnly | command_flag::kFast;
  spec.acl = acl_category::kRead | acl_category::kFast | acl_category::kVector;
  spec.prepare = lookup;
  spec.handler = &AnsweredByPrepare;
  spec.key_specs = kReadKey;
  return spec;
}

}  // namespace

void AppendElementCommands(std::vector<CommandSpec>* specs) {
  specs->push_back(
      Change(Spec("vsim.setattr", 4, "Sets or removes an element's JSON attributes.", kSetAttrArgs), &SetAttr));
  specs->push_back(Lookup(Spec("vsim.getattr", 3, "Returns an element's JSON attributes.", kElementArgs), &GetAttr));
  specs->push_back(
      Change(Spec("vsim.expire", -4, "Sets or removes the moment when an element ends.", kExpireArgs), &Expire));
  specs->push_back(
      Lookup(Spec("vsim.ttl", 3, "Returns the seconds until an element ends.", kElementArgs), &Ttl));
  specs->push_back(
      Change(Spec("vsim.alter", -4, "Changes an index's fields and what searches use that name no EF or RERANK.", kAlterArgs), &Alter));
}

}  // namespace hotkv
