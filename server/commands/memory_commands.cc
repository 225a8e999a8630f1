// MEMORY.
#include <fmt/format.h>

#include <iterator>
#include <string>

#include "engine/base/allocator.h"
#include "engine/commands/command_context.h"
#include "engine/tx/engine.h"
#include "server/commands/command_help.h"
#include "server/commands/families.h"
#include "server/commands/info.h"
#include "server/commands/process_facts.h"
#include "server/commands/server_gauges.h"
#include "server/commands/server_of.h"

namespace hotkv {

namespace {

namespace flag = command_flag;
namespace acl = acl_category;

constexpr double kPercent = 100;

double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void Usage(CommandContext& ctx) {
  for (size_t i = 3; i < ctx.argc(); i += 2) {
    if (!ctx.Is(i, "SAMPLES") || i + 1 == ctx.argc()) return ctx.SyntaxError();
    int64_t samples = 0;  // the whole value is counted however many are asked for
    if (!ctx.ParseInt(i + 1, &samples)) return;
    if (samples < 0) return ctx.SyntaxError();
  }
  const Entry* entry = ctx.txn.Peek(ctx.db(), ctx.key());
  if (entry == nullptr) return ctx.reply.Null();
  // A place in a table is this entry's share of its chunk.
  constexpr int64_t kPlaceBytes = (sizeof(Chunk) + Chunk::kSlots - 1) / Chunk::kSlots;
  int64_t bytes = Keyspace::BytesOf(entry) + kPlaceBytes;
  if (entry->type() != ValueType::kString) {
    bytes += static_cast<int64_t>(entry->object()->MemoryBytes());
  }
  ctx.reply.Integer(bytes);
}

void ReplyCount(ReplyWriter& reply, std::string_view name, uint64_t value) {
  reply.Bulk(name);
  reply.Integer(static_cast<int64_t>(value));
}

void ReplyRatio(ReplyWriter& reply, std::string_view name, double value) {
  reply.Bulk(name);
  reply.Double(value);
}

void Stats(CommandContext& ctx) {
  Server& server = ServerOf(ctx);
  const MemoryUse use = server.gauges().Memory();
  const uint64_t peak = server.gauges().memory_peak();
  const uint64_t resident = ResidentBytes();
  Engine& engine = ctx.engine;
  ReplyWriter& reply = ctx.reply;
  const ReplyWriter::Deferred map = reply.DeferMap();
  size_t pairs = 19;
  ReplyCount(reply, "peak.allocated", peak);
  ReplyCount(reply, "total.allocated", use.total());
  ReplyCount(reply, "startup.allocated", use.stripes);
  ReplyCount(reply, "replication.backlog", 0);
  ReplyCount(reply, "clients.slaves", 0);
  ReplyCount(reply, "clients.normal", use.clients);
  ReplyCount(reply, "cluster.links", 0);
  ReplyCount(reply, "aof.buffer", use.log);
  ReplyCount(reply, "lua.caches", 0);
  ReplyCount(reply, "functions.caches", 0);
  for (uint32_t db = 0; db < engine.keyspace().databases(); ++db) {
    if (engine.keyspace().Size(db) == 0) continue;
    reply.Bulk(fmt::format("db.{}", db));
    reply.MapHeader(2);
    ReplyCount(reply, "overhead.hashtable.main",
               static_cast<uint64_t>(engine.CountDb(db).table_bytes));
    ReplyCount(reply, "overhead.hashtable.expires", 0);  // expiry times lie in the entries
    ++pairs;
  }
  ReplyCount(reply, "overhead.total", use.overhead());
  ReplyCount(reply, "keys.count", use.keys);
  ReplyCount(reply, "keys.bytes-per-key",
             use.keys == 0 ? 0 : (use.total() - use.stripes) / use.keys);
  ReplyCount(reply, "dataset.bytes", use.dataset());
  ReplyRatio(reply, "dataset.percentage", Ratio(use.dataset(), use.total()) * kPercent);
  ReplyRatio(reply, "peak.percentage", Ratio(use.total(), peak) * kPercent);
  ReplyCount(reply, "allocator.resident", resident);
  ReplyRatio(reply, "fragmentation", Ratio(resident, use.total()));
  reply.Bulk("fragmentation.bytes");
  reply.Integer(static_cast<int64_t>(resident) - static_cast<int64_t>(use.total()));
  reply.Close(map, pairs);
}

void Doctor(CommandContext& ctx) {
  constexpr uint64_t kSmall = 5 * 1024 * 1024;
  constexpr double kWasted = 1.5;
  constexpr double kMuch = 0.5;
  Server& server = ServerOf(ctx);
  const MemoryUse use = server.gauges().Memory();
  const uint64_t resident = ResidentBytes();
  const auto limit = static_cast<uint64_t>(server.config().Current()->Int(Setting::kMaxMemory));
  std::string text;
  const auto say = [&](std::string_view line) { text += fmt::format("* {}\n", line); };
  if (use.total() < kSmall) {
    text = "There is too little data to say anything about its memory.\n";
  } else {
    if (Ratio(resident, use.total()) > kWasted) {
      say(
          fmt::format("{} are resident for {} in use: memory that was freed is still held. MEMORY "
                      "PURGE gives it back.",
                      HumanBytes(resident), HumanBytes(use.total())));
    }
    if (Ratio(use.clients, use.total()) > kMuch) {
      say(fmt::format("Buffers of clients take {}: see omem and qbuf in CLIENT LIST.",
                      HumanBytes(use.clients)));
    }
    if (Ratio(use.log, use.total()) > kMuch) {
      say(fmt::format("{} of effects wait for the disk, which is slower than the writes.",
                      HumanBytes(use.log)));
    }
    if (limit > 0 && use.total() > limit) {
      say(fmt::format("{} are in use, over maxmemory ({}).", HumanBytes(use.total()),
                      HumanBytes(limit)));
    }
    if (text.empty()) text = "Nothing is wrong with memory.\n";
  }
  ctx.reply.Verbatim("txt", text);
}

void MallocStats(CommandContext& ctx) {
  ctx.reply.Verbatim("txt", AllocatorStatistics());
}

void Purge(CommandContext& ctx) {
  ReturnFreeMemory();
  ctx.reply.Ok();
}

void Help(CommandContext& ctx) {
  ReplyHelp(
      ctx, "MEMORY",
      {"DOCTOR", "    A report on memory in words.", "MALLOC-STATS",
       "    The allocator's own statistics.", "PURGE", "    Give free memory back to the system.",
       "STATS", "    How much memory is used for what.", "USAGE <key> [SAMPLES <count>]",
       "    Bytes that a key and its value take, all elements counted."});
}

constexpr KeySpec kUsageKeys[] = {
    {.flags = key_flag::kReadOnly, .begin = 2},
};
constexpr ArgumentSpec kUsageArguments[] = {
    {.name = "key", .type = ArgumentType::kKey, .key_spec = 0},
    {.name = "count", .type = ArgumentType::kInteger, .token = "SAMPLES", .optional = true},
};

constexpr CommandSpec kSubcommands[] = {
    {.name = "memory|doctor",
     .arity = 2,
     .acl = acl::kSlow,
     .handler = Doctor,
     .group = "server",
     .since = "4.0.0",
     .summary = "Reports on memory in words.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special"},
    {.name = "memory|help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .acl = acl::kSlow,
     .handler = Help,
     .group = "server",
     .since = "4.0.0",
     .summary = "Explains the subcommands.",
     .complexity = "O(1)"},
    {.name = "memory|malloc-stats",
     .arity = 2,
     .acl = acl::kSlow,
     .handler = MallocStats,
     .group = "server",
     .since = "4.0.0",
     .summary = "Returns the allocator's statistics.",
     .complexity = "Depends on the allocator.",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special"},
    {.name = "memory|purge",
     .arity = 2,
     .acl = acl::kSlow,
     .handler = Purge,
     .group = "server",
     .since = "4.0.0",
     .summary = "Gives free memory back to the system.",
     .complexity = "Depends on the allocator.",
     .tips = "request_policy:all_shards response_policy:all_succeeded"},
    {.name = "memory|stats",
     .arity = 2,
     .acl = acl::kSlow,
     .handler = Stats,
     .group = "server",
     .since = "4.0.0",
     .summary = "Tells how much memory is used for what.",
     .complexity = "O(1)",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special"},
    {.name = "memory|usage",
     .arity = -3,
     .flags = flag::kReadOnly,
     .acl = acl::kRead | acl::kSlow,
     .keys = {2, 2, 1},
     .handler = Usage,
     .group = "server",
     .since = "4.0.0",
     .summary = "Returns the bytes that a key and its value take.",
     .complexity = "O(1)",
     .key_specs = kUsageKeys,
     .arguments = kUsageArguments},
};

constexpr CommandSpec kCommands[] = {
    {.name = "memory",
     .arity = -2,
     .acl = acl::kSlow,
     .subcommands = kSubcommands,
     .group = "server",
     .since = "4.0.0",
     .summary = "Commands about memory.",
     .complexity = "Depends on subcommand."},
};

}  // namespace

std::span<const CommandSpec> MemoryCommands() { return kCommands; }

}  // namespace hotkv
