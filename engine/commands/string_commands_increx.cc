// INCREX: an increment with bounds and an expiry in one step. Integers are added in 128 bits,
// floats as decimal texts.
#include <cmath>
#include <limits>
#include <string>

#include "engine/base/number.h"
#include "engine/commands/set_options.h"
#include "engine/commands/string_commands.h"

namespace hotkv {

namespace {

__extension__ using Wide = __int128;

struct IncrExOptions {
  bool by_float = false;
  std::optional<std::string_view> by;
  std::optional<std::string_view> lower;
  std::optional<std::string_view> upper;
  bool saturate = false;
  bool only_if_no_expiry = false;  // ENX
  ExpiryChange expiry = ExpiryChange::kKeep;
  TimeForm time_form;
  size_t time_arg = 0;
};

// Unlike SET's, these options may be given only once.
class IncrExParser {
 public:
  explicit IncrExParser(const CommandContext& ctx) : ctx_(ctx) {}

  bool Parse() {
    while (at_ < ctx_.argc()) {
      if (!ParseFlag() && !ParseNumber() && !ParseTime()) return false;
    }
    const bool persists = options.expiry == ExpiryChange::kPersist;
    return !(persists && options.only_if_no_expiry);
  }
  IncrExOptions options;

 private:
  bool ParseFlag() {
    if (ctx_.Is(at_, "SATURATE") && !options.saturate) {
      options.saturate = true;
    } else if (ctx_.Is(at_, "ENX") && !options.only_if_no_expiry) {
      options.only_if_no_expiry = true;
    } else if (ctx_.Is(at_, "PERSIST") && options.expiry == ExpiryChange::kKeep) {
      options.expiry = ExpiryChange::kPersist;
    } else {
      return false;
    }
    ++at_;
    return true;
  }

  bool ParseNumber() {
    if (at_ + 1 >= ctx_.argc()) return false;
    const std::string_view value = ctx_.arg(at_ + 1);
    if ((ctx_.Is(at_, "BYINT") || ctx_.Is(at_, "BYFLOAT")) && !options.by) {
      options.by_float = ctx_.Is(at_, "BYFLOAT");
      options.by = value;
    } else if (ctx_.Is(at_, "LBOUND") && !options.lower) {
      options.lower = value;
    } else if (ctx_.Is(at_, "UBOUND") && !options.upper) {
      options.upper = value;
    } else {
      return false;
    }
    at_ += 2;
    return true;
  }

  bool ParseTime() {
    const std::optional<TimeForm> form = TimeFormOfKeyword(ctx_.arg(at_));
    if (!form || at_ + 1 >= ctx_.argc() || options.expiry != ExpiryChange::kKeep) return false;
    options.expiry = ExpiryChange::kAt;
    options.time_form = *form;
    options.time_arg = at_ + 1;
    at_ += 2;
    return true;
  }

  const CommandContext& ctx_;
  size_t at_ = 2;
};

// Leaves *value alone where the option was not given.
bool IntegerOption(CommandContext& ctx, const std::optional<std::string_view>& text,
                   std::string_view what, int64_t* value) {
  if (!text) return true;
  const std::optional<int64_t> parsed = ParseInt64(*text);
  if (parsed) {
    *value = *parsed;
  } else {
    ctx.reply.Error("ERR " + std::string(what) + " is not an integer or out of range");
  }
  return parsed.has_value();
}

std::optional<long double> FloatOption(CommandContext& ctx, std::string_view text,
                                       std::string_view what) {
  const std::optional<long double> value = ParseLongDouble(text);
  if (!value) ctx.reply.Error("ERR " + std::string(what) + " is not a valid float");
  return value;
}

void ReplyBoundsCrossed(CommandContext& ctx) {
  ctx.reply.Error("ERR LBOUND can't be greater than UBOUND");
}

// The expiry that the key is to have. Times have been parsed to `at_ms`.
int64_t NewExpiry(const IncrExOptions& options, const Entry* entry, int64_t at_ms) {
  const int64_t old_at_ms = entry == nullptr ? 0 : entry->expire_at_ms();
  if (options.expiry == ExpiryChange::kPersist) return 0;
  if (options.expiry == ExpiryChange::kKeep) return old_at_ms;
  return options.only_if_no_expiry && old_at_ms != 0 ? old_at_ms : at_ms;
}

bool FindValue(CommandContext& ctx, const Entry** entry) {
  *entry = ctx.txn.Peek(ctx.db(), ctx.key());
  if (*entry == nullptr || (*entry)->type() == ValueType::kString) return true;
  ctx.WrongType();
  return false;
}

bool ParseTimeOption(CommandContext& ctx, const IncrExOptions& options, int64_t* at_ms) {
  if (options.expiry != ExpiryChange::kAt) return true;
  const std::optional<int64_t> parsed =
      ParseExpireAt(ctx, options.time_arg, options.time_form, Positive::kRequired);
  if (parsed) *at_ms = *parsed;
  return parsed.has_value();
}

void IncrementInteger(CommandContext& ctx, const IncrExOptions& options) {
  int64_t by = 1;
  int64_t lower = std::numeric_limits<int64_t>::min();
  int64_t upper = std::numeric_limits<int64_t>::max();
  if (!IntegerOption(ctx, options.by, "Increment", &by) ||
      !IntegerOption(ctx, options.lower, "LBOUND", &lower) ||
      !IntegerOption(ctx, options.upper, "UBOUND", &upper)) {
    return;
  }
  if (lower > upper) return ReplyBoundsCrossed(ctx);
  int64_t at_ms = 0;
  if (!ParseTimeOption(ctx, options, &at_ms)) return;
  const Entry* entry = nullptr;
  if (!FindValue(ctx, &entry)) return;
  char scratch[24];
  const std::optional<int64_t> value =
      ParseInt64(entry == nullptr ? "0" : entry->StringValue(scratch));
  if (!value) {
    ctx.reply.Error("ERR value is not an integer or out of range");
    return;
  }
  Wide result = Wide{*value} + by;
  const bool outside = result < lower || result > upper;
  if (outside) result = result < lower ? lower : upper;
  const Wide applied = result - *value;
  const bool kept = outside && !options.saturate;
  if (!kept && (applied > std::numeric_limits<int64_t>::max() ||
                applied < std::numeric_limits<int64_t>::min())) {
    ctx.reply.Error("ERR applied increment would overflow");
    return;
  }
  ctx.reply.ArrayHeader(2);
  ctx.reply.Integer(kept ? *value : static_cast<int64_t>(result));
  ctx.reply.Integer(kept ? 0 : static_cast<int64_t>(applied));
  if (kept) return;
  const int64_t new_at_ms = NewExpiry(options, entry, at_ms);
  if (new_at_ms != 0 && new_at_ms <= ctx.now_ms()) {
    ctx.txn.Delete(ctx.db(), ctx.key());
  } else {
    ctx.txn.SetInt(ctx.db(), ctx.key(), static_cast<int64_t>(result), new_at_ms);
  }
}

void ReplyFloats(ReplyWriter& reply, std::string_view value, std::string_view applied) {
  reply.ArrayHeader(2);
  for (const std::string_view text : {value, applied}) {
    if (!reply.resp3()) {
      reply.Bulk(text);
      continue;
    }
    // The text itself, which may have more digits than a double.
    reply.Raw(",");
    reply.Raw(text);
    reply.Raw("\r\n");
  }
}

std::string Negated(std::string_view text) {
  return text.front() == '-' ? std::string(text.substr(1)) : "-" + std::string(text);
}

struct FloatBounds {
  long double lower = -std::numeric_limits<long double>::max();
  long double upper = std::numeric_limits<long double>::max();
};

// What an increment makes of a value: texts, and whether the result was outside of the bounds.
struct FloatOutcome {
  std::string result;
  std::string applied;
  bool outside = false;
  bool infinite = false;  // no finite increment leads there
};

FloatOutcome AddWithinBounds(std::string_view value, std::string_view by,
                             const FloatBounds& bounds) {
  FloatOutcome outcome;
  const FloatSum sum = AddFloatTexts(value, by);
  const bool overflow = sum.error == FloatSumError::kNotFinite;
  const long double result =
      overflow ? (by.front() == '-' ? -INFINITY : INFINITY) : ParseLongDouble(sum.text).value_or(0);
  outcome.outside = result < bounds.lower || result > bounds.upper;
  if (!outcome.outside) {
    outcome.result = sum.text;
    outcome.applied = AddFloatTexts("0", by).text;
    return outcome;
  }
  const long double bound = result < bounds.lower ? bounds.lower : bounds.upper;
  outcome.infinite = std::isinf(bound);
  if (outcome.infinite) return outcome;
  outcome.result = LongDoubleToText(bound);
  const FloatSum applied = AddFloatTexts(outcome.result, Negated(AddFloatTexts(value, "0").text));
  outcome.infinite = applied.error != FloatSumError::kNone;
  outcome.applied = applied.text;
  return outcome;
}

bool ParseFloatBounds(CommandContext& ctx, const IncrExOptions& options, FloatBounds* bounds) {
  if (options.lower) {
    const std::optional<long double> value = FloatOption(ctx, *options.lower, "LBOUND");
    if (!value) return false;
    bounds->lower = *value;
  }
  if (options.upper) {
    const std::optional<long double> value = FloatOption(ctx, *options.upper, "UBOUND");
    if (!value) return false;
    bounds->upper = *value;
  }
  if (bounds->lower > bounds->upper) {
    ReplyBoundsCrossed(ctx);
    return false;
  }
  return true;
}

void IncrementFloat(CommandContext& ctx, const IncrExOptions& options) {
  const std::optional<long double> by = FloatOption(ctx, *options.by, "Increment");
  if (!by) return;
  if (std::isinf(*by)) {
    ctx.reply.Error("ERR BYFLOAT increment cannot be Infinity");
    return;
  }
  FloatBounds bounds;
  if (!ParseFloatBounds(ctx, options, &bounds)) return;
  int64_t at_ms = 0;
  if (!ParseTimeOption(ctx, options, &at_ms)) return;
  const Entry* entry = nullptr;
  if (!FindValue(ctx, &entry)) return;
  char scratch[24];
  const std::string_view text = entry == nullptr ? "0" : entry->StringValue(scratch);
  const std::optional<long double> value = ParseLongDouble(text);
  if (!value || std::isinf(*value)) {
    ctx.reply.Error(value ? "ERR value cannot be Infinity" : "ERR value is not a valid float");
    return;
  }
  const FloatOutcome outcome = AddWithinBounds(text, *options.by, bounds);
  if (outcome.outside && !options.saturate) {
    ReplyFloats(ctx.reply, AddFloatTexts(text, "0").text, "0");
    return;
  }
  if (outcome.infinite) {
    ctx.reply.Error("ERR applied increment would be Infinity");
    return;
  }
  ReplyFloats(ctx.reply, outcome.result, outcome.applied);
  const int64_t new_at_ms = NewExpiry(options, entry, at_ms);
  if (new_at_ms != 0 && new_at_ms <= ctx.now_ms()) {
    ctx.txn.Delete(ctx.db(), ctx.key());
  } else {
    ctx.txn.SetString(ctx.db(), ctx.key(), outcome.result, new_at_ms);
  }
}

}  // namespace

void IncrExCommand(CommandContext& ctx) {
  IncrExParser parser(ctx);
  if (!parser.Parse()) {
    ctx.SyntaxError();
    return;
  }
  const IncrExOptions& options = parser.options;
  if (options.only_if_no_expiry && options.expiry != ExpiryChange::kAt) {
    ctx.reply.Error("ERR ENX flag requires an expiration");
    return;
  }
  options.by_float ? IncrementFloat(ctx, options) : IncrementInteger(ctx, options);
}

}  // namespace hotkv
