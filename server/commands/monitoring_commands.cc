// SLOWLOG and LATENCY.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
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

// --- SLOWLOG ---

void SlowlogGet(CommandContext& ctx) {
  constexpr size_t kDefaultCount = 10;
  size_t next = 2;
  size_t count = kDefaultCount;
  if (next < ctx.argc() && !ctx.Is(next, "WITHWAITS")) {
    const std::optional<int64_t> asked =
        ParseBounded(ctx, next++, {-1, std::numeric_limits<int64_t>::max()},
                     "count should be greater than or equal to -1");
    if (!asked) return;
    count = *asked < 0 ? std::numeric_limits<size_t>::max() : static_cast<size_t>(*asked);
  }
  const bool waits = next < ctx.argc() && ctx.Is(next, "WITHWAITS");
  if (next + (waits ? 1 : 0) != ctx.argc()) return ReplySubcommandError(ctx);

  const std::vector<SlowlogEntry> entries = ServerOf(ctx).recorder().slowlog().Newest(count);
  ctx.reply.ArrayHeader(entries.size());
  for (const SlowlogEntry& entry : entries) {
    ctx.reply.ArrayHeader(waits ? 7 : 6);
    ctx.reply.Integer(static_cast<int64_t>(entry.id));
    ctx.reply.Integer(entry.time_s);
    ctx.reply.Integer(entry.run_us);
    ctx.reply.ArrayHeader(entry.args.size());
    for (const std::string& arg : entry.args) ctx.reply.Bulk(arg);
    ctx.reply.Bulk(entry.client_addr);
    ctx.reply.Bulk(entry.client_name);
    if (waits) ctx.reply.Integer(entry.waited_us);
  }
}

void SlowlogLen(CommandContext& ctx) {
  ctx.reply.Integer(static_cast<int64_t>(ServerOf(ctx).recorder().slowlog().size()));
}

void SlowlogReset(CommandContext& ctx) {
  ServerOf(ctx).recorder().slowlog().Clear();
  ctx.reply.Ok();
}

void SlowlogHelp(CommandContext& ctx) {
  ReplyHelp(ctx, "SLOWLOG",
            {"GET [<count>] [WITHWAITS]",
             "    The newest entries (default: 10, -1: all). An entry is: id, time, microseconds",
             "    it ran, arguments, client's address, client's name; with WITHWAITS also the",
             "    microseconds that it, or its reply, waited.", "LEN",
             "    How many entries there are.", "RESET", "    Forget them."});
}

// --- LATENCY ---

LatencyMonitor& MonitorOf(CommandContext& ctx) { return ServerOf(ctx).recorder().monitor(); }

void LatencyLatest(CommandContext& ctx) {
  const std::vector<LatencyMonitor::Event> events = MonitorOf(ctx).Events();
  ctx.reply.ArrayHeader(events.size());
  for (const LatencyMonitor::Event& event : events) {
    ctx.reply.ArrayHeader(4);
    ctx.reply.Bulk(event.name);
    ctx.reply.Integer(event.samples.back().time_s);
    ctx.reply.Integer(event.samples.back().milliseconds);
    ctx.reply.Integer(event.milliseconds_max);
  }
}

void LatencyHistory(CommandContext& ctx) {
  const LatencyMonitor::Event event = MonitorOf(ctx).Find(ctx.arg(2));
  ctx.reply.ArrayHeader(event.samples.size());
  for (const LatencyMonitor::Sample& sample : event.samples) {
    ctx.reply.ArrayHeader(2);
    ctx.reply.Integer(sample.time_s);
    ctx.reply.Integer(sample.milliseconds);
  }
}

void LatencyGraphCommand(CommandContext& ctx) {
  const LatencyMonitor::Event event = MonitorOf(ctx).Find(ctx.arg(2));
  if (event.samples.empty()) {
    return ctx.reply.Error(fmt::format("ERR No samples available for event '{}'", ctx.arg(2)));
  }
  ctx.reply.Verbatim("txt", LatencyGraph(event, ctx.now_ms() / kMillisPerSecond));
}

void LatencyDoctor(CommandContext& ctx) {
  const LatencyMonitor& monitor = MonitorOf(ctx);
  ctx.reply.Verbatim("txt", LatencyReport(monitor.Events(), monitor.threshold_ms(),
                                          ctx.now_ms() / kMillisPerSecond));
}

void LatencyReset(CommandContext& ctx) {
  size_t count = 0;
  if (ctx.argc() == 2) count = MonitorOf(ctx).Reset("");
  for (size_t i = 2; i < ctx.argc(); ++i) count += MonitorOf(ctx).Reset(ctx.arg(i));
  ctx.reply.Integer(static_cast<int64_t>(count));
}

// Answers with the histograms of those commands that have been called.
void ReplyHistograms(CommandContext& ctx, const std::vector<const CommandSpec*>& specs) {
  const CommandLatencies& latencies = ServerOf(ctx).recorder().latencies();
  const ReplyWriter::Deferred map = ctx.reply.DeferMap();
  size_t commands = 0;
  for (const CommandSpec* spec : specs) {
    const LatencySnapshot snapshot = latencies.Read(spec->id);
    if (snapshot.count() == 0) continue;
    ++commands;
    const std::vector<LatencySnapshot::Bucket> buckets = snapshot.PowerOfTwoBuckets();
    ctx.reply.Bulk(spec->name);
    ctx.reply.MapHeader(2);
    ctx.reply.Bulk("calls");
    ctx.reply.Integer(static_cast<int64_t>(snapshot.count()));
    ctx.reply.Bulk("histogram_usec");
    ctx.reply.MapHeader(buckets.size());
    for (const LatencySnapshot::Bucket& bucket : buckets) {
      ctx.reply.Integer(static_cast<int64_t>(bucket.microseconds));
      ctx.reply.Integer(static_cast<int64_t>(bucket.cumulative_count));
    }
  }
  ctx.reply.Close(map, commands);
}

void LatencyHistogram(CommandContext& ctx) {
  const CommandTable& table = ctx.engine.commands();
  std::vector<const CommandSpec*> specs;
  if (ctx.argc() == 2) {
    for (uint32_t id = 0; id < table.count(); ++id) specs.push_back(&table.at(id));
  }
  for (size_t i = 2; i < ctx.argc(); ++i) {
    const std::string_view name = ctx.arg(i);
    const size_t bar = name.find('|');
    const CommandSpec* spec = table.Find(name.substr(0, bar));
    if (spec != nullptr && bar != std::string_view::npos) {
      spec = table.FindSub(*spec, name.substr(bar + 1));
    }
    if (spec == nullptr) continue;
    specs.push_back(spec);
    for (const CommandSpec& sub : spec->subcommands) specs.push_back(&sub);
  }
  ReplyHistograms(ctx, specs);
}

void LatencyHelp(CommandContext& ctx) {
  ReplyHelp(ctx, "LATENCY",
            {"DOCTOR", "    A report in words.", "GRAPH <event>",
             "    A chart of the event's samples.", "HISTOGRAM [<command> ...]",
             "    How long calls took, by command: cumulative counts by microseconds.",
             "HISTORY <event>", "    Time and milliseconds of the event's samples.", "LATEST",
             "    The newest sample of each event.", "RESET [<event> ...]",
             "    Forget the samples of these events, or of all."});
}

constexpr ArgumentSpec kGetArguments[] = {
    {.name = "count", .type = ArgumentType::kInteger, .optional = true},
    {.name = "withwaits", .type = ArgumentType::kPureToken, .token = "WITHWAITS", .optional = true},
};
constexpr ArgumentSpec kEventArgument[] = {{.name = "event"}};
constexpr ArgumentSpec kEventArguments[] = {
    {.name = "event", .optional = true, .multiple = true},
};
constexpr ArgumentSpec kCommandArguments[] = {
    {.name = "command", .optional = true, .multiple = true},
};

constexpr uint32_t kSlowlogFlags = flag::kAdmin | flag::kLoading | flag::kStale;
constexpr uint32_t kLatencyFlags = kSlowlogFlags | flag::kNoScript;
constexpr uint32_t kHelpFlags = flag::kLoading | flag::kStale;
constexpr uint32_t kAdminAcl = acl::kSlow | acl::kAdmin | acl::kDangerous;
constexpr std::string_view kAllNodes = "request_policy:all_nodes nondeterministic_output";

constexpr CommandSpec kSlowlogCommands[] = {
    {.name = "slowlog|get",
     .arity = -2,
     .flags = kSlowlogFlags,
     .acl = kAdminAcl,
     .handler = SlowlogGet,
     .group = "server",
     .since = "2.2.12",
     .summary = "Returns the newest entries of the slow log.",
     .complexity = "O(N) where N is the number of entries",
     .tips = kAllNodes,
     .arguments = kGetArguments},
    {.name = "slowlog|help",
     .arity = 2,
     .flags = kHelpFlags,
     .acl = acl::kSlow,
     .handler = SlowlogHelp,
     .group = "server",
     .since = "6.2.0",
     .summary = "Explains the subcommands.",
     .complexity = "O(1)"},
    {.name = "slowlog|len",
     .arity = 2,
     .flags = kSlowlogFlags,
     .acl = kAdminAcl,
     .handler = SlowlogLen,
     .group = "server",
     .since = "2.2.12",
     .summary = "Returns how many entries the slow log has.",
     .complexity = "O(1)",
     .tips = "request_policy:all_nodes response_policy:agg_sum nondeterministic_output"},
    {.name = "slowlog|reset",
     .arity = 2,
     .flags = kSlowlogFlags,
     .acl = kAdminAcl,
     .handler = SlowlogReset,
     .group = "server",
     .since = "2.2.12",
     .summary = "Empties the slow log.",
     .complexity = "O(N) where N is the number of entries",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
};

constexpr CommandSpec kLatencyCommands[] = {
    {.name = "latency|doctor",
     .arity = 2,
     .flags = kLatencyFlags,
     .acl = kAdminAcl,
     .handler = LatencyDoctor,
     .group = "server",
     .since = "2.8.13",
     .summary = "Reports on latency in words.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output request_policy:all_nodes response_policy:special"},
    {.name = "latency|graph",
     .arity = 3,
     .flags = kLatencyFlags,
     .acl = kAdminAcl,
     .handler = LatencyGraphCommand,
     .group = "server",
     .since = "2.8.13",
     .summary = "Draws an event's samples.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output request_policy:all_nodes response_policy:special",
     .arguments = kEventArgument},
    {.name = "latency|help",
     .arity = 2,
     .flags = kHelpFlags,
     .acl = acl::kSlow,
     .handler = LatencyHelp,
     .group = "server",
     .since = "2.8.13",
     .summary = "Explains the subcommands.",
     .complexity = "O(1)"},
    {.name = "latency|histogram",
     .arity = -2,
     .flags = kLatencyFlags,
     .acl = kAdminAcl,
     .handler = LatencyHistogram,
     .group = "server",
     .since = "7.0.0",
     .summary = "Returns how long calls of commands took.",
     .complexity = "O(N) where N is the number of commands",
     .tips = "nondeterministic_output request_policy:all_nodes response_policy:special",
     .arguments = kCommandArguments},
    {.name = "latency|history",
     .arity = 3,
     .flags = kLatencyFlags,
     .acl = kAdminAcl,
     .handler = LatencyHistory,
     .group = "server",
     .since = "2.8.13",
     .summary = "Returns an event's samples.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output request_policy:all_nodes response_policy:special",
     .arguments = kEventArgument},
    {.name = "latency|latest",
     .arity = 2,
     .flags = kLatencyFlags,
     .acl = kAdminAcl,
     .handler = LatencyLatest,
     .group = "server",
     .since = "2.8.13",
     .summary = "Returns the newest sample of each event.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output request_policy:all_nodes response_policy:special"},
    {.name = "latency|reset",
     .arity = -2,
     .flags = kLatencyFlags,
     .acl = kAdminAcl,
     .handler = LatencyReset,
     .group = "server",
     .since = "2.8.13",
     .summary = "Forgets samples.",
     .complexity = "O(1)",
     .tips = "request_policy:all_nodes response_policy:agg_sum",
     .arguments = kEventArguments},
};

constexpr CommandSpec kCommands[] = {
    {.name = "latency",
     .arity = -2,
     .acl = acl::kSlow,
     .subcommands = kLatencyCommands,
     .group = "server",
     .since = "2.8.13",
     .summary = "Commands about latency.",
     .complexity = "Depends on subcommand."},
    {.name = "slowlog",
     .arity = -2,
     .acl = acl::kSlow,
     .subcommands = kSlowlogCommands,
     .group = "server",
     .since = "2.2.12",
     .summary = "Commands about the slow log.",
     .complexity = "Depends on subcommand."},
};

}  // namespace

std::span<const CommandSpec> MonitoringCommands() { return kCommands; }

}  // namespace hotkv
