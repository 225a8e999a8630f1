// Times of expiry: from arguments (seconds or milliseconds, relative or absolute) to absolute Unix
// milliseconds, with every overflow caught.
//
// Thread rules: pure functions, and helpers on a CommandContext for its own thread.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/commands/command_context.h"

namespace hotkv {

// How a time argument is to be read: EX, PX, EXAT, PXAT.
struct TimeForm {
  bool seconds = true;
  bool absolute = false;
};

inline constexpr TimeForm kRelativeSeconds{true, false};
inline constexpr TimeForm kRelativeMillis{false, false};
inline constexpr TimeForm kAbsoluteSeconds{true, true};
inline constexpr TimeForm kAbsoluteMillis{false, true};

// Absolute milliseconds, negative where the argument says so; nothing where they do not fit.
std::optional<int64_t> ToExpireAt(int64_t value, TimeForm form, int64_t now_ms);

// Milliseconds to seconds, rounded to the nearest as TTL and EXPIRETIME do. ms >= 0.
int64_t RoundToSeconds(int64_t ms);

// Argument i as a time. Answers an error and returns nothing when it is no integer, does not fit,
// or, for options that set a life (EX, SETEX, ...), is not positive.
enum class Positive : uint8_t { kRequired, kNotRequired };
std::optional<int64_t> ParseExpireAt(CommandContext& ctx, size_t i, TimeForm form,
                                     Positive positive);

// ERR invalid expire time in '<command>' command
void ReplyInvalidExpireTime(CommandContext& ctx);

}  // namespace hotkv
