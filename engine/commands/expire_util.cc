#include "engine/commands/expire_util.h"

#include <limits>
#include <string>

namespace hotkv {

namespace {
constexpr int64_t kMillisPerSecond = 1000;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
}  // namespace

std::optional<int64_t> ToExpireAt(int64_t value, TimeForm form, int64_t now_ms) {
  if (form.seconds) {
    if (value > kMax / kMillisPerSecond || value < kMin / kMillisPerSecond) return std::nullopt;
    value *= kMillisPerSecond;
  }
  if (form.absolute) return value;
  if (value > kMax - now_ms) return std::nullopt;
  return value + now_ms;
}

int64_t RoundToSeconds(int64_t ms) {
  return ms / kMillisPerSecond + (ms % kMillisPerSecond >= kMillisPerSecond / 2 ? 1 : 0);
}

std::optional<int64_t> ParseExpireAt(CommandContext& ctx, size_t i, TimeForm form,
                                     Positive positive) {
  int64_t value = 0;
  if (!ctx.ParseInt(i, &value)) return std::nullopt;
  std::optional<int64_t> at_ms;
  if (positive == Positive::kNotRequired || value > 0)
    at_ms = ToExpireAt(value, form, ctx.now_ms());
  if (!at_ms) ReplyInvalidExpireTime(ctx);
  return at_ms;
}

void ReplyInvalidExpireTime(CommandContext& ctx) {
  std::string text = "ERR invalid expire time in '";
  text.append(ctx.spec.name);
  text.append("' command");
  ctx.reply.Error(text);
}

}  // namespace hotkv
