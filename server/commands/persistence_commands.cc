// SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE, SHUTDOWN, WAIT, WAITAOF.
//
// None of them blocks its worker: a snapshot is encoded by the workers themselves between turns,
// and a wait for the disk parks the client.
#include <limits>
#include <optional>
#include <string>

#include "engine/base/log.h"
#include "engine/commands/command_context.h"
#include "engine/tx/engine.h"
#include "server/commands/command_help.h"
#include "server/commands/families.h"
#include "server/commands/server_of.h"

namespace hotkv {

namespace {

namespace flag = command_flag;
namespace acl = acl_category;

constexpr int64_t kMillisPerSecond = 1000;
constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();
constexpr int64_t kInt64Min = std::numeric_limits<int64_t>::min();
constexpr std::string_view kShutdownFailed = "ERR Errors trying to SHUTDOWN. Check logs.";
constexpr std::string_view kNoDisk = "ERR this server keeps nothing on disk";

// --- snapshots ---

void Save(CommandContext& ctx) {
  DurabilityControl* disk = ServerOf(ctx).durability_or_null();
  if (disk == nullptr) return ctx.reply.Error(kNoDisk);
  if (disk->GetStatus().snapshot_running) {
    return ctx.reply.Error("ERR Background save already in progress");
  }
  const Result<uint64_t> snapshot = disk->BeginSnapshot(SnapshotReason::kSave);
  if (!snapshot.ok()) return ctx.reply.Error("ERR " + snapshot.status().message());
  const auto done = [disk, number = *snapshot](Client& client, bool) {
    const SnapshotState state = disk->StateOf(number);
    if (state == SnapshotState::kRunning) return false;
    state == SnapshotState::kDone
        ? client.reply.Ok()
        : client.reply.Error("ERR " + disk->GetStatus().last_snapshot_error);
    return true;
  };
  Client::Of(ctx.client).Park(done, 0, Client::ParkKind::kInternal);
}

void BgSave(CommandContext& ctx) {
  const bool schedule = ctx.argc() == 2 && ctx.Is(1, "SCHEDULE");
  if (ctx.argc() > 1 && !schedule) return ctx.SyntaxError();
  DurabilityControl* disk = ServerOf(ctx).durability_or_null();
  if (disk == nullptr) return ctx.reply.Error(kNoDisk);
  const DurabilityStatus status = disk->GetStatus();
  if (status.snapshot_running && !status.snapshot_is_rewrite) {
    return ctx.reply.Error("ERR Background save already in progress");
  }
  if (status.snapshot_running && !schedule && !ctx.client.in_exec) {
    return ctx.reply.Error(
        "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
        "in order to schedule a BGSAVE whenever possible.");
  }
  const Result<uint64_t> snapshot = disk->BeginSnapshot(SnapshotReason::kBackgroundSave);
  if (!snapshot.ok()) return ctx.reply.Error("ERR " + snapshot.status().message());
  ctx.reply.Simple(status.snapshot_running || ctx.client.in_exec ? "Background saving scheduled"
                                                                 : "Background saving started");
}

void BgRewriteAof(CommandContext& ctx) {
  DurabilityControl* disk = ServerOf(ctx).durability_or_null();
  if (disk == nullptr) return ctx.reply.Error(kNoDisk);
  const DurabilityStatus status = disk->GetStatus();
  if (status.snapshot_running && status.snapshot_is_rewrite) {
    return ctx.reply.Error("ERR Background append only file rewriting already in progress");
  }
  const Result<uint64_t> snapshot = disk->BeginSnapshot(SnapshotReason::kRewrite);
  if (!snapshot.ok()) {
    return ctx.reply.Error(
        "ERR Can't execute an AOF background rewriting. Please check the server logs for more "
        "information.");
  }
  ctx.reply.Simple(status.snapshot_running || ctx.client.in_exec
                       ? "Background append only file rewriting scheduled"
                       : "Background append only file rewriting started");
}

void LastSave(CommandContext& ctx) {
  Server& server = ServerOf(ctx);
  DurabilityControl* disk = server.durability_or_null();
  const int64_t ms = disk != nullptr ? disk->GetStatus().last_save_ms : server.started_ms();
  ctx.reply.Integer(ms / kMillisPerSecond);
}

// --- shutdown ---

struct ShutdownOptions {
  ShutdownSave save = ShutdownSave::kAsConfigured;
  bool force = false;
  bool abort = false;
};

// False: answered with an error.
bool ParseShutdown(CommandContext& ctx, ShutdownOptions* out) {
  bool save = false;
  bool no_save = false;
  bool now = false;
  for (size_t i = 1; i < ctx.argc(); ++i) {
    if (ctx.Is(i, "NOSAVE")) {
      no_save = true;
    } else if (ctx.Is(i, "SAVE")) {
      save = true;
    } else if (ctx.Is(i, "NOW")) {
      now = true;  // there is no replica to wait for
    } else if (ctx.Is(i, "FORCE")) {
      out->force = true;
    } else if (ctx.Is(i, "ABORT")) {
      out->abort = true;
    } else {
      ctx.SyntaxError();
      return false;
    }
  }
  if ((save && no_save) || (out->abort && (save || no_save || now || out->force))) {
    ctx.SyntaxError();
    return false;
  }
  if (save) out->save = ShutdownSave::kSave;
  if (no_save) out->save = ShutdownSave::kNoSave;
  return true;
}

// Without a log the data is only in snapshots: then the stop takes one where save points are set.
bool WantsSnapshot(Server& server, DurabilityControl* disk, ShutdownSave save) {
  if (disk == nullptr || save == ShutdownSave::kNoSave) return false;
  if (save == ShutdownSave::kSave) return true;
  return !disk->GetStatus().log_on && !server.config().Current()->SavePoints().empty();
}

void Shutdown(CommandContext& ctx) {
  ShutdownOptions options;
  if (!ParseShutdown(ctx, &options)) return;
  Server& server = ServerOf(ctx);
  if (options.abort) {
    server.pending_shutdown().Abort() ? ctx.reply.Ok()
                                      : ctx.reply.Error("ERR No shutdown in progress.");
    return;
  }
  DurabilityControl* disk = server.durability_or_null();
  const auto never = [](Client&, bool) { return false; };
  if (!WantsSnapshot(server, disk, options.save)) {
    server.RequestShutdown(ShutdownSave::kNoSave);
    return Client::Of(ctx.client)
        .Park(never, 0, Client::ParkKind::kInternal);  // the connection ends with the server
  }
  const Result<uint64_t> snapshot = disk->BeginSnapshot(SnapshotReason::kSave);
  if (!snapshot.ok() && !options.force) return ctx.reply.Error(kShutdownFailed);
  const bool begun = snapshot.ok();
  const uint64_t number = begun ? *snapshot : 0;
  using Step = PendingShutdown::Step;
  const uint64_t attempt = server.pending_shutdown().Begin([=, force = options.force] {
    const SnapshotState state = begun ? disk->StateOf(number) : SnapshotState::kFailed;
    if (state == SnapshotState::kRunning) return Step::kWait;
    if (state == SnapshotState::kDone || force) return Step::kStop;
    Log(LogLevel::kWarning,
        "Not shut down: the snapshot failed: " + disk->GetStatus().last_snapshot_error);
    return Step::kGiveUp;
  });
  const auto done = [&server, attempt](Client& client, bool) {
    server.AdvanceShutdown();
    if (server.pending_shutdown().Holds(attempt)) return false;
    client.reply.Error(kShutdownFailed);
    return true;
  };
  Client::Of(ctx.client).Park(done, 0, Client::ParkKind::kInternal);
}

// --- waiting for durability and replicas ---

// The timeout argument in milliseconds, 0: none.
std::optional<int64_t> ParseTimeout(CommandContext& ctx, size_t index) {
  const auto ms =
      ParseBounded(ctx, index, {kInt64Min, kInt64Max}, "timeout is not an integer or out of range");
  if (!ms) return std::nullopt;
  if (*ms < 0) {
    ctx.reply.Error("ERR timeout is negative");
    return std::nullopt;
  }
  if (*ms > kInt64Max - ctx.now_ms()) {
    ctx.reply.Error("ERR timeout is out of range");
    return std::nullopt;
  }
  return ms;
}

void Wait(CommandContext& ctx) {
  int64_t replicas = 0;
  if (!ctx.ParseInt(1, &replicas)) return;
  const std::optional<int64_t> timeout_ms = ParseTimeout(ctx, 2);
  if (!timeout_ms) return;
  // No replica is ever connected, so more than none will not come.
  if (replicas <= 0 || ctx.client.in_exec) return ctx.reply.Integer(0);
  const auto done = [](Client& client, bool expired) {
    if (expired) client.reply.Integer(0);
    return expired;
  };
  Client::Of(ctx.client)
      .Park(done, *timeout_ms == 0 ? 0 : ctx.now_ms() + *timeout_ms, Client::ParkKind::kBlocking);
}

void ReplyAcknowledged(ReplyWriter& reply, bool local) {
  reply.ArrayHeader(2);
  reply.Integer(local ? 1 : 0);
  reply.Integer(0);
}

void WaitAof(CommandContext& ctx) {
  int64_t local = 0;
  int64_t replicas = 0;
  if (!ctx.ParseInt(1, &local)) return;
  if (local < 0 || local > 1) {
    return ctx.reply.Error("ERR value is out of range, value must between 0 and 1");
  }
  if (!ctx.ParseInt(2, &replicas)) return;
  if (replicas < 0) return ctx.reply.Error("ERR value is out of range, must be positive");
  const std::optional<int64_t> timeout_ms = ParseTimeout(ctx, 3);
  if (!timeout_ms) return;
  DurabilityControl* disk = ServerOf(ctx).durability_or_null();
  const bool log_on = disk != nullptr && disk->GetStatus().log_on;
  if (local == 1 && !log_on) {
    return ctx.reply.Error(
        "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  }
  const EpochClock* epochs = &ctx.engine.epochs();
  const uint64_t epoch = ctx.client.last_write_epoch;
  const auto is_durable = [=] { return log_on && disk->LogCounts() && epochs->durable() >= epoch; };
  if ((replicas == 0 && (local == 0 || is_durable())) || ctx.client.in_exec) {
    return ReplyAcknowledged(ctx.reply, is_durable());
  }
  if (local == 1) disk->RequestSync();
  const auto done = [=](Client& client, bool expired) {
    const bool enough = replicas == 0 && is_durable();
    if (enough || expired) ReplyAcknowledged(client.reply, is_durable());
    return enough || expired;
  };
  Client::Of(ctx.client)
      .Park(done, *timeout_ms == 0 ? 0 : ctx.now_ms() + *timeout_ms, Client::ParkKind::kBlocking);
}

constexpr ArgumentSpec kBgSaveArguments[] = {
    {.name = "schedule",
     .type = ArgumentType::kPureToken,
     .token = "SCHEDULE",
     .optional = true,
     .since = "3.2.2"},
};
constexpr ArgumentSpec kShutdownSaves[] = {
    {.name = "nosave", .type = ArgumentType::kPureToken, .token = "NOSAVE"},
    {.name = "save", .type = ArgumentType::kPureToken, .token = "SAVE"},
};
constexpr ArgumentSpec kShutdownArguments[] = {
    {.name = "save-selector",
     .type = ArgumentType::kOneOf,
     .optional = true,
     .children = kShutdownSaves},
    {.name = "now",
     .type = ArgumentType::kPureToken,
     .token = "NOW",
     .optional = true,
     .since = "7.0.0"},
    {.name = "force",
     .type = ArgumentType::kPureToken,
     .token = "FORCE",
     .optional = true,
     .since = "7.0.0"},
    {.name = "abort",
     .type = ArgumentType::kPureToken,
     .token = "ABORT",
     .optional = true,
     .since = "7.0.0"},
};
constexpr ArgumentSpec kWaitArguments[] = {
    {.name = "numreplicas", .type = ArgumentType::kInteger},
    {.name = "timeout", .type = ArgumentType::kInteger},
};
constexpr ArgumentSpec kWaitAofArguments[] = {
    {.name = "numlocal", .type = ArgumentType::kInteger},
    {.name = "numreplicas", .type = ArgumentType::kInteger},
    {.name = "timeout", .type = ArgumentType::kInteger},
};

constexpr uint32_t kAdminAcl = acl::kSlow | acl::kAdmin | acl::kDangerous;
constexpr uint32_t kSaveFlags = flag::kAdmin | flag::kNoScript | flag::kNoAsyncLoading;
constexpr uint32_t kWaitAcl = acl::kSlow | acl::kBlocking | acl::kConnection;

constexpr CommandSpec kCommands[] = {
    {.name = "bgrewriteaof",
     .arity = 1,
     .flags = kSaveFlags,
     .acl = kAdminAcl,
     .handler = BgRewriteAof,
     .group = "server",
     .since = "1.0.0",
     .summary = "Takes a snapshot in the background and drops the log that it covers.",
     .complexity = "O(1)"},
    {.name = "bgsave",
     .arity = -1,
     .flags = kSaveFlags,
     .acl = kAdminAcl,
     .handler = BgSave,
     .group = "server",
     .since = "1.0.0",
     .summary = "Takes a snapshot in the background.",
     .complexity = "O(1)",
     .arguments = kBgSaveArguments},
    {.name = "lastsave",
     .arity = 1,
     .flags = flag::kLoading | flag::kStale | flag::kFast,
     .acl = acl::kFast | acl::kAdmin | acl::kDangerous,
     .handler = LastSave,
     .group = "server",
     .since = "1.0.0",
     .summary = "Returns when the newest snapshot was finished.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output"},
    {.name = "save",
     .arity = 1,
     .flags = kSaveFlags | flag::kNoMulti,
     .acl = kAdminAcl,
     .handler = Save,
     .group = "server",
     .since = "1.0.0",
     .summary = "Takes a snapshot and answers when it is finished.",
     .complexity = "O(N) where N is the number of keys"},
    {.name = "shutdown",
     .arity = -1,
     .flags = flag::kAdmin | flag::kNoScript | flag::kLoading | flag::kStale | flag::kNoMulti |
              flag::kAllowBusy,
     .acl = kAdminAcl,
     .handler = Shutdown,
     .group = "server",
     .since = "1.0.0",
     .summary = "Makes everything durable and stops the server.",
     .complexity = "O(N) with a snapshot, where N is the number of keys",
     .arguments = kShutdownArguments},
    {.name = "wait",
     .arity = 3,
     .flags = flag::kBlocking,
     .acl = kWaitAcl,
     .handler = Wait,
     .group = "generic",
     .since = "3.0.0",
     .summary = "Waits until replicas have the connection's writes.",
     .complexity = "O(1)",
     .tips = "request_policy:all_shards response_policy:agg_min",
     .arguments = kWaitArguments},
    {.name = "waitaof",
     .arity = 4,
     .flags = flag::kBlocking,
     .acl = kWaitAcl,
     .handler = WaitAof,
     .group = "generic",
     .since = "7.2.0",
     .summary = "Waits until the connection's writes are durable.",
     .complexity = "O(1)",
     .tips = "request_policy:all_shards response_policy:agg_min",
     .arguments = kWaitAofArguments},
};

}  // namespace

std::span<const CommandSpec> PersistenceCommands() { return kCommands; }

}  // namespace hotkv
