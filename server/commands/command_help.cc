#include "server/commands/command_help.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/base/number.h"

namespace hotkv {

namespace {

std::string Upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return out;
}

}  // namespace

void ReplyHelp(CommandContext& ctx, std::string_view container,
               std::initializer_list<std::string_view> lines) {
  ctx.reply.ArrayHeader(lines.size() + 3);
  ctx.reply.Simple(
      fmt::format("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", container));
  for (const std::string_view line : lines) ctx.reply.Simple(line);
  ctx.reply.Simple("HELP");
  ctx.reply.Simple("    Print this help.");
}

void ReplySubcommandError(CommandContext& ctx) {
  constexpr size_t kShown = 128;
  ctx.reply.Error(
      fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
                  ctx.arg(1).substr(0, kShown), Upper(ctx.arg(0).substr(0, kShown))));
}

std::optional<int64_t> ParseBounded(CommandContext& ctx, size_t index, IntBounds bounds,
                                    std::string_view message) {
  const std::optional<int64_t> value = ParseInt64(ctx.arg(index));
  if (value && *value >= bounds.min && *value <= bounds.max) return value;
  ctx.reply.Error(fmt::format("ERR {}", message));
  return std::nullopt;
}

}  // namespace hotkv
