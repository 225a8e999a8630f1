// Options of SET, GETEX and MSETEX: a condition on what is there, and what happens to the expiry.
// Also the digest by which IFDEQ, IFDNE and DIGEST know a value (XXH3-64 with seed 0, 16
// hexadecimal digits).
//
// Thread rules: values, and helpers on a CommandContext for its own thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/commands/command_context.h"
#include "engine/commands/expire_util.h"

namespace hotkv {

enum class SetCondition : uint8_t {
  kNone,
  kMissing,         // NX
  kPresent,         // XX
  kEqual,           // IFEQ
  kNotEqual,        // IFNE: also met where there is no key
  kDigestEqual,     // IFDEQ
  kDigestNotEqual,  // IFDNE: also met where there is no key
};

enum class ExpiryChange : uint8_t { kNone, kKeep, kPersist, kAt };

struct SetOptions {
  SetCondition condition = SetCondition::kNone;
  std::string_view operand;  // of IFEQ and its like
  bool get = false;
  ExpiryChange expiry = ExpiryChange::kNone;
  TimeForm time_form;   // kAt
  size_t time_arg = 0;  // kAt: index of the argument
};

namespace set_option {
inline constexpr uint32_t kPresence = 1u << 0;  // NX, XX
inline constexpr uint32_t kCompare = 1u << 1;   // IFEQ, IFNE, IFDEQ, IFDNE
inline constexpr uint32_t kGet = 1u << 2;
inline constexpr uint32_t kTime = 1u << 3;  // EX, PX, EXAT, PXAT
inline constexpr uint32_t kKeepTtl = 1u << 4;
inline constexpr uint32_t kPersist = 1u << 5;
inline constexpr uint32_t kOfSet = kPresence | kCompare | kGet | kTime | kKeepTtl;
inline constexpr uint32_t kOfGetEx = kTime | kPersist;
inline constexpr uint32_t kOfMsetEx = kPresence | kTime | kKeepTtl;
}  // namespace set_option

// Arguments from index `from` on. Answers a syntax error and returns nothing when they are not
// `allowed` options, or exclude each other. The same option twice is accepted, the last one counts,
// as in Redis.
std::optional<SetOptions> ParseSetOptions(CommandContext& ctx, size_t from, uint32_t allowed);

// IFEQ, IFNE, IFDEQ, IFDNE, or nothing.
std::optional<SetCondition> CompareConditionOf(std::string_view word);

// A keyword that sets a time, or nothing.
std::optional<TimeForm> TimeFormOfKeyword(std::string_view word);

// Whether the condition holds for what is at the key (null: nothing). kError: an error has been
// answered (the value is no string, the digest is malformed).
enum class Verdict : uint8_t { kMet, kNotMet, kError };
Verdict CheckCondition(CommandContext& ctx, const Entry* entry, SetCondition condition,
                       std::string_view operand);

inline constexpr size_t kDigestDigits = 16;
void WriteDigest(std::string_view value, char (&out)[kDigestDigits]);

}  // namespace hotkv
