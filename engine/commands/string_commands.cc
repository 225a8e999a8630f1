// String commands that read or set whole values.
#include "engine/commands/string_commands.h"

#include "engine/base/limits.h"
#include "engine/base/number.h"
#include "engine/commands/set_options.h"

namespace hotkv {

namespace {

class LargeValue : public PreparedState {
 public:
  explicit LargeValue(std::string_view value) : block(SharedBlock::Copy(value)) {}
  SharedBlockRef block;
};

void PrepareValue(CommandContext& ctx, size_t arg) {
  if (ctx.argc() <= arg || ctx.arg(arg).size() <= kInlineValueBytesMax) return;
  ctx.prepared = std::make_unique<LargeValue>(ctx.arg(arg));
}

// Sets the command's first key to its value; an expiry that has passed already leaves no key.
void StoreValue(CommandContext& ctx, std::string_view value, int64_t expire_at_ms) {
  if (expire_at_ms != 0 && expire_at_ms <= ctx.now_ms()) {
    ctx.txn.Delete(ctx.db(), ctx.key());
  } else if (ctx.prepared) {
    auto& large = static_cast<LargeValue&>(*ctx.prepared);
    ctx.txn.SetBlock(ctx.db(), ctx.key(), large.block.Release(), expire_at_ms);
  } else {
    ctx.txn.SetString(ctx.db(), ctx.key(), value, expire_at_ms);
  }
}

void SetWithExpire(CommandContext& ctx, TimeForm form) {
  const std::optional<int64_t> at_ms = ParseExpireAt(ctx, 2, form, Positive::kRequired);
  if (!at_ms) return;
  StoreValue(ctx, ctx.arg(3), *at_ms);
  ctx.reply.Ok();
}

void SetWithOptions(CommandContext& ctx) {
  const std::optional<SetOptions> options = ParseSetOptions(ctx, 3, set_option::kOfSet);
  if (!options) return;
  int64_t expire_at_ms = 0;
  if (options->expiry == ExpiryChange::kAt) {
    const std::optional<int64_t> at_ms =
        ParseExpireAt(ctx, options->time_arg, options->time_form, Positive::kRequired);
    if (!at_ms) return;
    expire_at_ms = *at_ms;
  }
  const Entry* old = options->get ? ctx.Find() : ctx.txn.Peek(ctx.db(), ctx.key());
  if (options->get && old != nullptr && old->type() != ValueType::kString) {
    ctx.WrongType();
    return;
  }
  const Verdict verdict = CheckCondition(ctx, old, options->condition, options->operand);
  if (verdict == Verdict::kError) return;
  const bool met = verdict == Verdict::kMet;
  if (options->get) {
    ReplyString(ctx, old);
  } else if (met) {
    ctx.reply.Ok();
  } else {
    ctx.reply.Null();
  }
  if (!met) return;
  if (options->expiry == ExpiryChange::kKeep && old != nullptr) expire_at_ms = old->expire_at_ms();
  StoreValue(ctx, ctx.arg(2), expire_at_ms);
}

bool PairsAreWhole(CommandContext& ctx) {
  if (ctx.argc() % 2 == 1) return true;
  std::string text = "ERR wrong number of arguments for '";
  text.append(ctx.spec.name);
  text.append("' command");
  ctx.reply.Error(text);
  return false;
}

bool AnyExists(CommandContext& ctx) {
  for (const KeyRef& key : ctx.keys) {
    if (ctx.txn.Peek(ctx.db(), key) != nullptr) return true;
  }
  return false;
}

bool AllExist(CommandContext& ctx) {
  for (const KeyRef& key : ctx.keys) {
    if (ctx.txn.Peek(ctx.db(), key) == nullptr) return false;
  }
  return true;
}

// Keys of a call of MSETEX: nothing when the count is no positive 32-bit integer.
std::optional<size_t> MSetExCount(Args args) {
  if (args.size() < 2) return std::nullopt;
  const std::optional<int64_t> count = ParseInt64(args[1]);
  if (!count || *count < 1 || *count > INT32_MAX) return std::nullopt;
  return static_cast<size_t>(*count);
}

}  // namespace

void PrepareValueAt2(CommandContext& ctx) { PrepareValue(ctx, 2); }
void PrepareValueAt3(CommandContext& ctx) { PrepareValue(ctx, 3); }

Entry* PeekString(CommandContext& ctx, bool* wrong) {
  Entry* entry = ctx.txn.Peek(ctx.db(), ctx.key());
  *wrong = entry != nullptr && entry->type() != ValueType::kString;
  if (*wrong) ctx.WrongType();
  return entry;
}

void ReplyString(CommandContext& ctx, const Entry* entry) {
  if (entry == nullptr) {
    ctx.reply.Null();
    return;
  }
  switch (entry->form()) {
    case Entry::Form::kInline:
      ctx.reply.Bulk(entry->inline_value());
      break;
    case Entry::Form::kInt:
      ctx.reply.BulkInt(entry->int_value());
      break;
    case Entry::Form::kRef:
      ctx.reply.BulkShared(entry->block());
      break;
  }
}

void GetCommand(CommandContext& ctx) {
  bool wrong = false;
  const Entry* entry = ctx.FindString(0, &wrong);
  if (!wrong) ReplyString(ctx, entry);
}

void GetDelCommand(CommandContext& ctx) {
  bool wrong = false;
  const Entry* entry = ctx.FindString(0, &wrong);
  if (wrong) return;
  ReplyString(ctx, entry);
  if (entry != nullptr) ctx.txn.Delete(ctx.db(), ctx.key());
}

void GetExCommand(CommandContext& ctx) {
  const std::optional<SetOptions> options = ParseSetOptions(ctx, 2, set_option::kOfGetEx);
  if (!options) return;
  bool wrong = false;
  const Entry* entry = ctx.FindString(0, &wrong);
  if (wrong) return;
  if (entry == nullptr) {
    ctx.reply.Null();
    return;
  }
  std::optional<int64_t> at_ms;
  if (options->expiry == ExpiryChange::kAt) {
    at_ms = ParseExpireAt(ctx, options->time_arg, options->time_form, Positive::kRequired);
    if (!at_ms) return;
  }
  ReplyString(ctx, entry);
  if (at_ms && *at_ms <= ctx.now_ms()) {
    ctx.txn.Delete(ctx.db(), ctx.key());
  } else if (at_ms) {
    ctx.txn.SetExpire(ctx.db(), ctx.key(), *at_ms);
  } else if (options->expiry == ExpiryChange::kPersist && entry->has_expiry()) {
    ctx.txn.SetExpire(ctx.db(), ctx.key(), 0);
  }
}

void GetSetCommand(CommandContext& ctx) {
  bool wrong = false;
  const Entry* entry = ctx.FindString(0, &wrong);
  if (wrong) return;
  ReplyString(ctx, entry);
  StoreValue(ctx, ctx.arg(2), 0);
}

void MGetCommand(CommandContext& ctx) {
  ctx.reply.ArrayHeader(ctx.keys.size());
  for (const KeyRef& key : ctx.keys) {
    const Entry* entry = ctx.txn.Find(ctx.db(), key);
    const bool is_string = entry != nullptr && entry->type() == ValueType::kString;
    ReplyString(ctx, is_string ? entry : nullptr);
  }
}

void SetCommand(CommandContext& ctx) {
  if (ctx.argc() > 3) {
    SetWithOptions(ctx);
    return;
  }
  StoreValue(ctx, ctx.arg(2), 0);
  ctx.reply.Ok();
}

void SetNxCommand(CommandContext& ctx) {
  const bool missing = ctx.txn.Peek(ctx.db(), ctx.key()) == nullptr;
  if (missing) StoreValue(ctx, ctx.arg(2), 0);
  ctx.reply.Integer(missing ? 1 : 0);
}

void SetExCommand(CommandContext& ctx) { SetWithExpire(ctx, kRelativeSeconds); }
void PSetExCommand(CommandContext& ctx) { SetWithExpire(ctx, kRelativeMillis); }

void MSetCommand(CommandContext& ctx) {
  if (!PairsAreWhole(ctx)) return;
  for (size_t i = 0; i < ctx.keys.size(); ++i) {
    ctx.txn.SetString(ctx.db(), ctx.keys[i], ctx.arg(2 * i + 2), 0);
  }
  ctx.reply.Ok();
}

void MSetNxCommand(CommandContext& ctx) {
  if (!PairsAreWhole(ctx)) return;
  if (AnyExists(ctx)) {
    ctx.reply.Integer(0);
    return;
  }
  for (size_t i = 0; i < ctx.keys.size(); ++i) {
    ctx.txn.SetString(ctx.db(), ctx.keys[i], ctx.arg(2 * i + 2), 0);
  }
  ctx.reply.Integer(1);
}

bool MSetExKeys(Args args, std::vector<uint32_t>* indexes) {
  const std::optional<size_t> count = MSetExCount(args);
  if (!count || *count > (args.size() - 2) / 2) return false;
  for (size_t i = 0; i < *count; ++i) indexes->push_back(static_cast<uint32_t>(2 + 2 * i));
  return true;
}

void MSetExCommand(CommandContext& ctx) {
  const std::optional<size_t> count = MSetExCount(ctx.args);
  if (!count) {
    ctx.reply.Error("ERR invalid numkeys value");
    return;
  }
  if (*count > (ctx.argc() - 2) / 2) {
    ctx.reply.Error("ERR wrong number of key-value pairs");
    return;
  }
  const std::optional<SetOptions> options =
      ParseSetOptions(ctx, 2 + 2 * *count, set_option::kOfMsetEx);
  if (!options) return;
  int64_t at_ms = 0;
  if (options->expiry == ExpiryChange::kAt) {
    const std::optional<int64_t> parsed =
        ParseExpireAt(ctx, options->time_arg, options->time_form, Positive::kRequired);
    if (!parsed) return;
    at_ms = *parsed;
  }
  const bool refused = (options->condition == SetCondition::kMissing && AnyExists(ctx)) ||
                       (options->condition == SetCondition::kPresent && !AllExist(ctx));
  ctx.reply.Integer(refused ? 0 : 1);
  if (refused) return;
  for (size_t i = 0; i < ctx.keys.size(); ++i) {
    const KeyRef& key = ctx.keys[i];
    int64_t key_at_ms = at_ms;
    if (options->expiry == ExpiryChange::kKeep) {
      const Entry* old = ctx.txn.Peek(ctx.db(), key);
      key_at_ms = old == nullptr ? 0 : old->expire_at_ms();
    }
    if (key_at_ms != 0 && key_at_ms <= ctx.now_ms()) {
      ctx.txn.Delete(ctx.db(), key);
    } else {
      ctx.txn.SetString(ctx.db(), key, ctx.arg(3 + 2 * i), key_at_ms);
    }
  }
}

void DelExCommand(CommandContext& ctx) {
  if (ctx.argc() != 2 && ctx.argc() != 4) {
    ctx.reply.Error("ERR wrong number of arguments for 'delex' command");
    return;
  }
  Entry* entry = ctx.txn.Peek(ctx.db(), ctx.key());
  Verdict verdict = entry != nullptr ? Verdict::kMet : Verdict::kNotMet;
  if (ctx.argc() == 4) {
    const std::optional<SetCondition> condition = CompareConditionOf(ctx.arg(2));
    if (!condition) {
      ctx.reply.Error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
      return;
    }
    if (entry != nullptr && entry->type() != ValueType::kString) {
      ctx.reply.Error("ERR Key should be of string type if conditions are specified");
      return;
    }
    if (entry != nullptr) verdict = CheckCondition(ctx, entry, *condition, ctx.arg(3));
  }
  if (verdict == Verdict::kError) return;
  if (verdict == Verdict::kMet) ctx.txn.Delete(ctx.db(), ctx.key());
  ctx.reply.Integer(verdict == Verdict::kMet ? 1 : 0);
}

void DelIfEqCommand(CommandContext& ctx) {
  bool wrong = false;
  const Entry* entry = PeekString(ctx, &wrong);
  if (wrong) return;
  const bool equal = CheckCondition(ctx, entry, SetCondition::kEqual, ctx.arg(2)) == Verdict::kMet;
  if (equal) ctx.txn.Delete(ctx.db(), ctx.key());
  ctx.reply.Integer(equal ? 1 : 0);
}

void DigestCommand(CommandContext& ctx) {
  bool wrong = false;
  const Entry* entry = ctx.FindString(0, &wrong);
  if (wrong) return;
  if (entry == nullptr) {
    ctx.reply.Null();
    return;
  }
  char scratch[24];
  char digest[kDigestDigits];
  WriteDigest(entry->StringValue(scratch), digest);
  ctx.reply.Bulk({digest, kDigestDigits});
}

}  // namespace hotkv
