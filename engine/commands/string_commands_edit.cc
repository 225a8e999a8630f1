// String commands that read or change parts of a value, or a number.
#include <limits>

#include "engine/base/number.h"
#include "engine/commands/lcs.h"
#include "engine/commands/string_commands.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {

constexpr std::string_view kTooLong =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

bool TooLong(const CommandContext& ctx, uint64_t size) {
  return size > ctx.engine.string_bytes_max.load(std::memory_order_relaxed);
}

void Increment(CommandContext& ctx, int64_t by) {
  bool wrong = false;
  const Entry* entry = PeekString(ctx, &wrong);
  if (wrong) return;
  int64_t value = 0;
  if (entry != nullptr && entry->is_int()) {
    value = entry->int_value();
  } else if (entry != nullptr) {
    char scratch[24];
    const std::optional<int64_t> parsed = ParseInt64(entry->StringValue(scratch));
    if (!parsed) {
      ctx.reply.Error("ERR value is not an integer or out of range");
      return;
    }
    value = *parsed;
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(value, by, &sum)) {
    ctx.reply.Error("ERR increment or decrement would overflow");
    return;
  }
  ctx.txn.SetInt(ctx.db(), ctx.key(), sum, entry == nullptr ? 0 : entry->expire_at_ms());
  ctx.reply.Integer(sum);
}

struct Range {
  size_t first = 0;
  size_t size = 0;
};

// GETRANGE's range: both ends included, negative ones counted from the end, clamped to the value.
Range ClampRange(int64_t start, int64_t end, size_t length) {
  if (length == 0 || (start < 0 && end < 0 && start > end)) return {};
  const auto signed_length = static_cast<int64_t>(length);
  if (start < 0) start = std::max<int64_t>(start + signed_length, 0);
  if (end < 0) end = std::max<int64_t>(end + signed_length, 0);
  end = std::min(end, signed_length - 1);
  if (start > end) return {};
  return {static_cast<size_t>(start), static_cast<size_t>(end - start + 1)};
}

struct LcsOptions {
  bool length = false;
  bool ranges = false;
  bool with_match_length = false;
  int64_t match_length_min = 0;
};

bool ParseLcsOptions(CommandContext& ctx, LcsOptions* options) {
  for (size_t i = 3; i < ctx.argc(); ++i) {
    if (ctx.Is(i, "IDX")) {
      options->ranges = true;
    } else if (ctx.Is(i, "LEN")) {
      options->length = true;
    } else if (ctx.Is(i, "WITHMATCHLEN")) {
      options->with_match_length = true;
    } else if (ctx.Is(i, "MINMATCHLEN") && i + 1 < ctx.argc()) {
      if (!ctx.ParseInt(++i, &options->match_length_min)) return false;
    } else {
      ctx.SyntaxError();
      return false;
    }
  }
  if (options->length && options->ranges) {
    ctx.reply.Error("ERR If you want both the length and indexes, please just use IDX.");
    return false;
  }
  return true;
}

void ReplyLcsRanges(ReplyWriter& reply, const LcsResult& lcs, const LcsOptions& options) {
  reply.MapHeader(2);
  reply.Bulk("matches");
  const ReplyWriter::Deferred matches = reply.DeferArray();
  size_t count = 0;
  for (const LcsMatch& match : lcs.matches) {
    if (static_cast<int64_t>(match.size()) < options.match_length_min) continue;
    ++count;
    reply.ArrayHeader(options.with_match_length ? 3 : 2);
    reply.ArrayHeader(2);
    reply.Integer(match.a_first);
    reply.Integer(match.a_last);
    reply.ArrayHeader(2);
    reply.Integer(match.b_first);
    reply.Integer(match.b_last);
    if (options.with_match_length) reply.Integer(match.size());
  }
  reply.Close(matches, count);
  reply.Bulk("len");
  reply.Integer(static_cast<int64_t>(lcs.text.size()));
}

}  // namespace

void AppendCommand(CommandContext& ctx) {
  bool wrong = false;
  const Entry* entry = PeekString(ctx, &wrong);
  if (wrong) return;
  const size_t old_length = entry == nullptr ? 0 : entry->StringLength();
  if (TooLong(ctx, old_length + ctx.arg(2).size())) {
    ctx.reply.Error(kTooLong);
    return;
  }
  const size_t length = ctx.txn.Append(ctx.db(), ctx.key(), ctx.arg(2));
  ctx.reply.Integer(static_cast<int64_t>(length));
}

void StrLenCommand(CommandContext& ctx) {
  bool wrong = false;
  const Entry* entry = ctx.FindString(0, &wrong);
  if (wrong) return;
  ctx.reply.Integer(entry == nullptr ? 0 : static_cast<int64_t>(entry->StringLength()));
}

void GetRangeCommand(CommandContext& ctx) {
  int64_t start = 0;
  int64_t end = 0;
  if (!ctx.ParseInt(2, &start) || !ctx.ParseInt(3, &end)) return;
  bool wrong = false;
  const Entry* entry = ctx.FindString(0, &wrong);
  if (wrong) return;
  char scratch[24];
  const std::string_view value =
      entry == nullptr ? std::string_view("") : entry->StringValue(scratch);
  const Range range = ClampRange(start, end, value.size());
  const std::string_view part = value.substr(range.first, range.size);
  if (part.size() < ReplyWriter::kReferenceBytesMin || entry->form() != Entry::Form::kRef) {
    ctx.reply.Bulk(part);
    return;
  }
  entry->block()->Ref();
  ctx.reply.BulkReference(part, entry->block(),
                          [](void* block) { static_cast<SharedBlock*>(block)->Unref(); });
}

void SetRangeCommand(CommandContext& ctx) {
  int64_t offset = 0;
  if (!ctx.ParseInt(2, &offset)) return;
  if (offset < 0) {
    ctx.reply.Error("ERR offset is out of range");
    return;
  }
  bool wrong = false;
  const Entry* entry = PeekString(ctx, &wrong);
  if (wrong) return;
  const std::string_view bytes = ctx.arg(3);
  if (bytes.empty()) {
    ctx.reply.Integer(entry == nullptr ? 0 : static_cast<int64_t>(entry->StringLength()));
    return;
  }
  const auto start = static_cast<uint64_t>(offset);
  if (TooLong(ctx, start + bytes.size())) {
    ctx.reply.Error(kTooLong);
    return;
  }
  const size_t length = ctx.txn.SetRange(ctx.db(), ctx.key(), start, bytes);
  ctx.reply.Integer(static_cast<int64_t>(length));
}

void LcsCommand(CommandContext& ctx) {
  const Entry* first = ctx.Find(0);
  const Entry* second = ctx.Find(1);
  if ((first != nullptr && first->type() != ValueType::kString) ||
      (second != nullptr && second->type() != ValueType::kString)) {
    ctx.reply.Error("ERR The specified keys must contain string values");
    return;
  }
  LcsOptions options;
  if (!ParseLcsOptions(ctx, &options)) return;
  char scratch_a[24];
  char scratch_b[24];
  const std::string_view a = first == nullptr ? std::string_view() : first->StringValue(scratch_a);
  const std::string_view b =
      second == nullptr ? std::string_view() : second->StringValue(scratch_b);
  // Redis's bound, which is that of its table's memory; here it bounds the time under the lock.
  const uint64_t row_bytes = sizeof(uint32_t) * (b.size() + 1);
  if (a.size() + 1 > ctx.engine.string_bytes_max.load(std::memory_order_relaxed) / row_bytes) {
    ctx.reply.Error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
    return;
  }
  if (options.length) {
    ctx.reply.Integer(static_cast<int64_t>(LcsLength(a, b)));
    return;
  }
  const LcsResult lcs = FindLcs(a, b);
  if (options.ranges) {
    ReplyLcsRanges(ctx.reply, lcs, options);
  } else {
    ctx.reply.Bulk(lcs.text);
  }
}

void IncrCommand(CommandContext& ctx) { Increment(ctx, 1); }
void DecrCommand(CommandContext& ctx) { Increment(ctx, -1); }

void IncrByCommand(CommandContext& ctx) {
  int64_t by = 0;
  if (ctx.ParseInt(2, &by)) Increment(ctx, by);
}

void DecrByCommand(CommandContext& ctx) {
  int64_t by = 0;
  if (!ctx.ParseInt(2, &by)) return;
  if (by == std::numeric_limits<int64_t>::min()) {
    ctx.reply.Error("ERR decrement would overflow");
    return;
  }
  Increment(ctx, -by);
}

void IncrByFloatCommand(CommandContext& ctx) {
  bool wrong = false;
  const Entry* entry = PeekString(ctx, &wrong);
  if (wrong) return;
  char scratch[24];
  const std::string_view value = entry == nullptr ? "0" : entry->StringValue(scratch);
  const FloatSum sum = AddFloatTexts(value, ctx.arg(2));
  switch (sum.error) {
    case FloatSumError::kNone:
      break;
    case FloatSumError::kBadValue:
    case FloatSumError::kBadIncrement:
      ctx.reply.Error("ERR value is not a valid float");
      return;
    case FloatSumError::kNotFinite:
      ctx.reply.Error("ERR increment would produce NaN or Infinity");
      return;
  }
  ctx.txn.SetString(ctx.db(), ctx.key(), sum.text, entry == nullptr ? 0 : entry->expire_at_ms());
  ctx.reply.Bulk(sum.text);
}

}  // namespace hotkv
