// DEBUG. One command without subcommand specs, as in Redis, and only where enable-debug-command
// allows it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "engine/base/log.h"
#include "engine/base/number.h"
#include "engine/commands/command_context.h"
#include "engine/commands/generic_commands.h"
#include "engine/tx/engine.h"
#include "server/commands/command_help.h"
#include "server/commands/families.h"
#include "server/commands/server_of.h"

namespace hotkv {

namespace {

namespace flag = command_flag;
namespace acl = acl_category;

constexpr size_t kDigestDigits = 40;
constexpr std::chrono::milliseconds kPollInterval{1};
constexpr std::chrono::seconds kReloadPatience{10};

std::string DigestText(uint64_t digest) { return fmt::format("{:0{}x}", digest, kDigestDigits); }

void TakeWholeKeyspace(CommandContext& ctx) {
  if (!ctx.txn.holds_all()) ctx.txn.StopWorld();
}

// Calls fn with the live entry of a key that the command does not declare, or null.
template <typename Fn>
void WithEntry(CommandContext& ctx, std::string_view key, Fn&& fn) {
  const KeyRef ref = ctx.engine.keyspace().MakeRef(key);
  Stripe& stripe = ctx.engine.keyspace().stripe(ref.stripe);
  ctx.txn.LockStripe(stripe);
  fn(ctx.txn.Peek(ctx.db(), ref));
  ctx.txn.UnlockStripe(stripe);
}

// Stops this worker, with whoever it serves; others go on. That is what it is for.
void Sleep(CommandContext& ctx) {
  constexpr double kSecondsMax = 1e6;
  const double seconds = std::strtod(std::string(ctx.arg(2)).c_str(), nullptr);
  if (seconds > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, kSecondsMax)));
  }
  ctx.reply.Ok();
}

void Digest(CommandContext& ctx) {
  TakeWholeKeyspace(ctx);
  ctx.reply.Simple(DigestText(ctx.engine.Digest()));
}

void DigestValue(CommandContext& ctx) {
  ctx.reply.ArrayHeader(ctx.argc() - 2);
  for (size_t i = 2; i < ctx.argc(); ++i) {
    uint64_t digest = 0;
    WithEntry(ctx, ctx.arg(i), [&](const Entry* entry) {
      if (entry == nullptr) return;
      char scratch[24];
      digest = entry->type() == ValueType::kString ? HashBytes(entry->StringValue(scratch), 1)
                                                   : entry->object()->Digest();
    });
    ctx.reply.Simple(DigestText(digest));
  }
}

void SetActiveExpire(CommandContext& ctx) {
  ctx.engine.active_expire.store(std::atoi(std::string(ctx.arg(2)).c_str()) != 0,
                                 std::memory_order_relaxed);
  ctx.reply.Ok();
}

// --- loading again ---

// Takes a snapshot; false: answered with an error.
bool SnapshotNow(CommandContext& ctx, DurabilityControl& disk) {
  const Result<uint64_t> snapshot = disk.BeginSnapshot(SnapshotReason::kSave);
  if (!snapshot.ok()) {
    ctx.reply.Error("ERR " + snapshot.status().message());
    return false;
  }
  SnapshotState state = SnapshotState::kRunning;
  while ((state = disk.StateOf(*snapshot)) == SnapshotState::kRunning) {
    disk.HelpSnapshot(ctx.worker);
    std::this_thread::sleep_for(kPollInterval);
  }
  if (state == SnapshotState::kFailed)
    ctx.reply.Error("ERR " + disk.GetStatus().last_snapshot_error);
  return state == SnapshotState::kDone;
}

// Waits until the log has everything; false: answered with an error.
bool SyncLogNow(CommandContext& ctx, DurabilityControl& disk) {
  const EpochClock& epochs = ctx.engine.epochs();
  const uint64_t epoch = epochs.current();
  disk.RequestSync();
  while (epochs.durable() < epoch) {
    if (ctx.engine.disk_denied.load(std::memory_order_relaxed)) {
      ctx.reply.Error("MISCONF Errors writing to the AOF file: " + ctx.engine.disk_denied_reason());
      return false;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return true;
}

// Brings the keyspace to disk with `save` (false: answered with an error) and loads it again, with
// everybody stopped from the one to the other, as in Redis: nothing may change between them. Where
// somebody stopped while he held an object, he is let go on, and all of it is done again.
template <typename Save>
void LoadAgain(CommandContext& ctx, Save&& save) {
  DurabilityControl* disk = ServerOf(ctx).durability_or_null();
  if (disk == nullptr) return ctx.reply.Error("ERR this server keeps nothing on disk");
  if (ctx.client.in_exec) {
    return ctx.reply.Error("ERR loading again isn't allowed in a transaction");
  }
  const auto deadline = std::chrono::steady_clock::now() + kReloadPatience;
  for (;;) {
    TakeWholeKeyspace(ctx);
    if (!save(*disk)) return;
    const Status status = disk->Reload();
    if (status.ok()) return ctx.reply.Ok();
    if (status.code() != Code::kBusy || std::chrono::steady_clock::now() > deadline) {
      return ctx.reply.Error("ERR Error trying to load the RDB dump, check server logs: " +
                             status.message());
    }
    ctx.txn.CommitAndUnlock();
    std::this_thread::sleep_for(kPollInterval);
  }
}

void Reload(CommandContext& ctx) {
  const bool save = ctx.argc() == 2;
  for (size_t i = 2; i < ctx.argc(); ++i) {
    if (!ctx.Is(i, "NOSAVE")) {
      return ctx.reply.Error("ERR DEBUG RELOAD only supports the NOSAVE option.");
    }
  }
  LoadAgain(ctx, [&](DurabilityControl& disk) {
    if (save) return SnapshotNow(ctx, disk);
    return !disk.GetStatus().log_on || SyncLogNow(ctx, disk);
  });
}

void LoadAof(CommandContext& ctx) {
  LoadAgain(ctx, [&](DurabilityControl& disk) {
    if (disk.GetStatus().log_on) return SyncLogNow(ctx, disk);
    ctx.reply.Error("ERR appendonly is disabled");
    return false;
  });
}

void ChangeReplicationId(CommandContext& ctx) {
  DurabilityControl* disk = ServerOf(ctx).durability_or_null();
  if (disk == nullptr) return ctx.reply.Error("ERR this server keeps nothing on disk");
  const Status status = disk->ChangeReplicationId();
  status.ok() ? ctx.reply.Ok() : ctx.reply.Error("ERR " + status.message());
}

// --- data ---

struct Population {
  int64_t count = 0;
  std::string prefix = "key";
  int64_t value_bytes = 0;  // 0: as long as the text
};

void PopulateOne(CommandContext& ctx, const Population& population, int64_t i) {
  const std::string key = fmt::format("{}:{}", population.prefix, i);
  std::string value = fmt::format("value:{}", i);
  if (population.value_bytes > 0) value.resize(static_cast<size_t>(population.value_bytes), '\0');
  const KeyRef ref = ctx.engine.keyspace().MakeRef(key);
  Stripe& stripe = ctx.engine.keyspace().stripe(ref.stripe);
  ctx.txn.LockStripe(stripe);
  if (ctx.txn.Peek(ctx.db(), ref) == nullptr) ctx.txn.SetString(ctx.db(), ref, value, 0);
  ctx.txn.UnlockStripe(stripe);
}

void Populate(CommandContext& ctx) {
  constexpr int64_t kValueBytesMax = 512 * 1024 * 1024;
  Population population;
  const auto count =
      ParseBounded(ctx, 2, {0, INT64_MAX}, "value is out of range, must be positive");
  if (!count) return;
  population.count = *count;
  if (ctx.argc() >= 4) population.prefix = ctx.arg(3);
  if (ctx.argc() == 5) {
    const auto bytes =
        ParseBounded(ctx, 4, {0, kValueBytesMax}, "value is out of range, must be positive");
    if (!bytes) return;
    population.value_bytes = *bytes;
  }
  for (int64_t i = 0; i < population.count; ++i) {
    // One command with very many writes: it keeps to the log's pace by itself.
    while (!ctx.txn.holds_all() && ctx.engine.epochs().writes_wait()) {
      if (ctx.engine.disk_denied.load(std::memory_order_relaxed)) {
        return ctx.reply.Error("MISCONF Errors writing to the AOF file: " +
                               ctx.engine.disk_denied_reason());
      }
      std::this_thread::sleep_for(kPollInterval);
    }
    PopulateOne(ctx, population, i);
  }
  ctx.reply.Ok();
}

void ObjectInfo(CommandContext& ctx) {
  std::string text;
  WithEntry(ctx, ctx.arg(2), [&](const Entry* entry) {
    if (entry == nullptr) return;
    const bool is_string = entry->type() == ValueType::kString;
    const size_t bytes = is_string ? entry->StringLength() : entry->object()->MemoryBytes();
    text = fmt::format("Value at:{} refcount:1 encoding:{} serializedlength:{} lru:{} bytes:{}",
                       static_cast<const void*>(entry), EncodingName(*entry), bytes,
                       entry->access_clock(), Keyspace::BytesOf(entry));
  });
  text.empty() ? ctx.reply.Error("ERR no such key") : ctx.reply.Simple(text);
}

// --- replies for tests of clients ---

void ReplyThree(CommandContext& ctx) {
  for (int i = 0; i < 3; ++i) ctx.reply.Integer(i);
}

void ReplyPairs(CommandContext& ctx) {
  for (int i = 0; i < 3; ++i) {
    ctx.reply.Integer(i);
    ctx.reply.Bool(i == 1);
  }
}

void ReplyAttribute(CommandContext& ctx) {
  if (ctx.reply.resp3()) {
    ctx.reply.AttributeHeader(1);
    ctx.reply.Bulk("key-popularity");
    ctx.reply.ArrayHeader(2);
    ctx.reply.Bulk("key:123");
    ctx.reply.Integer(90);
  }
  ctx.reply.Bulk("Some real reply following the attribute");
}

void ReplyPush(CommandContext& ctx) {
  if (!ctx.reply.resp3()) return ctx.reply.Error("ERR RESP2 is not supported by this command");
  ctx.reply.PushHeader(2);
  ctx.reply.Bulk("server-cpu-usage");
  ctx.reply.Integer(42);
}

void Protocol(CommandContext& ctx) {
  ReplyWriter& reply = ctx.reply;
  constexpr double kSomeDouble = 3.141;
  if (ctx.Is(2, "STRING")) return reply.Bulk("Hello World");
  if (ctx.Is(2, "INTEGER")) return reply.Integer(12345);
  if (ctx.Is(2, "DOUBLE")) return reply.Double(kSomeDouble);
  if (ctx.Is(2, "BIGNUM")) return reply.BigNumber("1234567999999999999999999999999999999");
  if (ctx.Is(2, "NULL")) return reply.Null();
  if (ctx.Is(2, "ARRAY")) return reply.ArrayHeader(3), ReplyThree(ctx);
  if (ctx.Is(2, "SET")) return reply.SetHeader(3), ReplyThree(ctx);
  if (ctx.Is(2, "MAP")) return reply.MapHeader(3), ReplyPairs(ctx);
  if (ctx.Is(2, "ATTRIB")) return ReplyAttribute(ctx);
  if (ctx.Is(2, "PUSH")) return ReplyPush(ctx);
  if (ctx.Is(2, "VERBATIM")) return reply.Verbatim("txt", "This is a verbatim\nstring");
  if (ctx.Is(2, "TRUE")) return reply.Bool(true);
  if (ctx.Is(2, "FALSE")) return reply.Bool(false);
  reply.Error(
      "ERR Wrong protocol type name. Please use one of the following: "
      "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
}

void ErrorReply(CommandContext& ctx) {
  std::string text(ctx.arg(2));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  ctx.reply.Error(text);
}

void LogMessage(CommandContext& ctx) {
  Log(LogLevel::kWarning, fmt::format("DEBUG LOG: {}", ctx.arg(2)));
  ctx.reply.Ok();
}

void Help(CommandContext& ctx) {
  ReplyHelp(
      ctx, "DEBUG",
      {"CHANGE-REPL-ID",
       "    Take a new replication id.",
       "DIGEST",
       "    A hash of everything stored, whatever its order.",
       "DIGEST-VALUE <key> [<key> ...]",
       "    A hash of each key's value.",
       "ERROR <string>",
       "    Answer with this error.",
       "LOADAOF",
       "    Empty the keyspace and load it from snapshot and log.",
       "LOG <message>",
       "    Write a line into the server's log.",
       "OBJECT <key>",
       "    How the key's value is kept.",
       "POPULATE <count> [<prefix>] [<size>]",
       "    Make string keys <prefix>:<number> (default prefix: key), if they are not there.",
       "PROTOCOL (string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false)",
       "    Answer with a reply of this type.",
       "RELOAD [NOSAVE]",
       "    Take a snapshot, empty the keyspace and load it again.",
       "SET-ACTIVE-EXPIRE (0|1)",
       "    Delete keys past their time only when they are touched, or in the background too.",
       "SLEEP <seconds>",
       "    Stop the thread that serves this connection."});
}

struct Subcommand {
  std::string_view name;
  size_t args_min;  // with DEBUG and the name
  size_t args_max;
  Handler handler;
};

constexpr size_t kAnyNumber = SIZE_MAX;
constexpr Subcommand kSubcommands[] = {
    {"CHANGE-REPL-ID", 2, 2, ChangeReplicationId},
    {"DIGEST", 2, 2, Digest},
    {"DIGEST-VALUE", 2, kAnyNumber, DigestValue},
    {"ERROR", 3, 3, ErrorReply},
    {"HELP", 2, 2, Help},
    {"LOADAOF", 2, 2, LoadAof},
    {"LOG", 3, 3, LogMessage},
    {"OBJECT", 3, 3, ObjectInfo},
    {"POPULATE", 3, 5, Populate},
    {"PROTOCOL", 3, 3, Protocol},
    {"RELOAD", 2, kAnyNumber, Reload},
    {"SET-ACTIVE-EXPIRE", 3, 3, SetActiveExpire},
    {"SLEEP", 3, 3, Sleep},
};

bool Allowed(CommandContext& ctx) {
  constexpr int64_t kYes = 1;
  constexpr int64_t kLocal = 2;
  const int64_t choice = ServerOf(ctx).config().Current()->Choice(Setting::kEnableDebugCommand);
  return choice == kYes || (choice == kLocal && Client::Of(ctx.client).is_local);
}

void Debug(CommandContext& ctx) {
  if (!Allowed(ctx)) {
    return ctx.reply.Error(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", "
        "you can run it from a local connection, otherwise you need to set this option in the "
        "configuration file, and then restart the server.");
  }
  for (const Subcommand& sub : kSubcommands) {
    if (ctx.Is(1, sub.name) && ctx.argc() >= sub.args_min && ctx.argc() <= sub.args_max) {
      return sub.handler(ctx);
    }
  }
  ReplySubcommandError(ctx);
}

constexpr CommandSpec kCommands[] = {
    {.name = "debug",
     .arity = -2,
     .flags = flag::kAdmin | flag::kNoScript | flag::kLoading | flag::kStale,
     .acl = acl::kSlow | acl::kAdmin | acl::kDangerous,
     .handler = Debug,
     .group = "server",
     .since = "1.0.0",
     .summary = "Commands for tests and for finding faults.",
     .complexity = "Depends on subcommand."},
};

}  // namespace

std::span<const CommandSpec> DebugCommands() { return kCommands; }

}  // namespace hotkv
