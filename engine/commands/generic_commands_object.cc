// OBJECT: how a value is kept, and when it was used.
//
// Encodings have Redis's names, since clients look at them, but say less here: a string is "int"
// when its bytes are an integer's text, "embstr" up to 44 bytes and "raw" above, whatever commands
// made it.
#include "engine/base/number.h"
#include "engine/commands/generic_commands.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {

constexpr size_t kEmbeddedBytesMax = 44;
constexpr int64_t kMillisPerSecond = 1000;

// How long ago the entry was used at least; exact to a unit of the access clock.
int64_t IdleSeconds(const Entry& entry, int64_t now_ms) {
  const auto now_units = static_cast<uint8_t>(now_ms >> Txn::kAccessClockShift);
  const auto units = static_cast<uint8_t>(now_units - entry.access_clock());
  if (units == 0) return 0;
  constexpr int64_t kUnitMs = int64_t{1} << Txn::kAccessClockShift;
  return ((units - 1) * kUnitMs + now_ms % kUnitMs) / kMillisPerSecond;
}

Entry* FindOrReplyNull(CommandContext& ctx) {
  Entry* entry = LookAtKey(ctx, 0);
  if (entry == nullptr) ctx.reply.Null();
  return entry;
}

}  // namespace

std::string_view EncodingName(const Entry& entry) {
  if (entry.type() != ValueType::kString) return "raw";  // as Redis says of its module types
  if (entry.is_int()) return "int";
  char scratch[24];
  const std::string_view value = entry.StringValue(scratch);
  if (value.size() <= kInt64TextMax && ParseInt64(value)) return "int";
  return value.size() <= kEmbeddedBytesMax ? "embstr" : "raw";
}

void ObjectEncodingCommand(CommandContext& ctx) {
  if (const Entry* entry = FindOrReplyNull(ctx)) ctx.reply.Bulk(EncodingName(*entry));
}

void ObjectFreqCommand(CommandContext& ctx) {
  const Entry* entry = FindOrReplyNull(ctx);
  if (entry == nullptr) return;
  if (!ctx.engine.lfu_policy.load(std::memory_order_relaxed)) {
    ctx.reply.Error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note "
        "that when switching between policies at runtime LRU and LFU data will take some time to "
        "adjust.");
    return;
  }
  ctx.reply.Integer(entry->access_clock());
}

void ObjectIdleTimeCommand(CommandContext& ctx) {
  const Entry* entry = FindOrReplyNull(ctx);
  if (entry == nullptr) return;
  if (ctx.engine.lfu_policy.load(std::memory_order_relaxed)) {
    ctx.reply.Error(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
        "switching between policies at runtime LRU and LFU data will take some time to adjust.");
    return;
  }
  ctx.reply.Integer(IdleSeconds(*entry, ctx.now_ms()));
}

void ObjectRefCountCommand(CommandContext& ctx) {
  if (FindOrReplyNull(ctx) != nullptr) ctx.reply.Integer(1);
}

void ObjectHelpCommand(CommandContext& ctx) {
  constexpr std::string_view kLines[] = {
      "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
      "ENCODING <key>",
      "    How the key's value is kept: int, embstr or raw for a string.",
      "FREQ <key>",
      "    How often the value is used, on a logarithmic scale (LFU policies only).",
      "IDLETIME <key>",
      "    Seconds since the value was last used, exact to about 8 seconds.",
      "REFCOUNT <key>",
      "    Always 1: values are not shared between keys.",
      "HELP",
      "    Print this help.",
  };
  ctx.reply.ArrayHeader(std::size(kLines));
  for (const std::string_view line : kLines) ctx.reply.Simple(line);
}

}  // namespace hotkv
