// Replies that several families share.
//
// Thread rules: as the context they are given.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "engine/commands/command_context.h"

namespace hotkv {

// HELP of a container: a heading with its name, the lines, and HELP's own two. Each subcommand is a
// line, its text follows on lines that begin with four blanks.
void ReplyHelp(CommandContext& ctx, std::string_view container,
               std::initializer_list<std::string_view> lines);

// For containers that are one handler: "unknown subcommand or wrong number of arguments".
void ReplySubcommandError(CommandContext& ctx);

// The argument as an integer in [min, max]; else answers "ERR " and the message.
struct IntBounds {
  int64_t min;
  int64_t max;
};
std::optional<int64_t> ParseBounded(CommandContext& ctx, size_t index, IntBounds bounds,
                                    std::string_view message);

}  // namespace hotkv
