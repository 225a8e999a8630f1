// INFO's sections of counters: stats, commands, errors, latencies, keyspace, and what is HotKV's
// own.
#include <cmath>
#include <string>

#include "engine/base/number.h"
#include "engine/tx/engine.h"
#include "index/distance/targets.h"
#include "server/commands/info_writer.h"
#include "server/commands/server_gauges.h"
#include "server/server.h"
#include "server/session/worker.h"
#include "server/version.h"

namespace hotkv {

namespace {

constexpr uint64_t kNanosPerMicro = 1000;

uint64_t Read(const std::atomic<uint64_t>& counter) {
  return counter.load(std::memory_order_relaxed);
}

// What would break INFO's lines becomes '_'.
std::string SafeName(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c == '#' || c == ':' || c == '\n' || c == '\r') c = '_';
  }
  return out;
}

EngineCounters CountersOf(Server& server) {
  return server.recorder().Since(ReadCounters(server.engine()));
}

}  // namespace

void WriteStatsInfo(const InfoContext& ctx) {
  InfoWriter& out = ctx.out;
  Server& server = ctx.server;
  const EngineCounters counters = CountersOf(server);
  const ServerStats& stats = server.stats();
  const ServerGauges::Rates rates = server.gauges().rates();
  uint64_t turns = 0;
  for (unsigned i = 0; i < server.worker_count(); ++i) turns += server.worker(i).turns();
  out.Section("Stats");
  out.Line("total_connections_received", Read(stats.connections_received));
  out.Line("total_commands_processed", counters.commands);
  out.Line("instantaneous_ops_per_sec", rates.commands_per_second);
  out.Line("total_net_input_bytes", Read(stats.net_input_bytes));
  out.Line("total_net_output_bytes", Read(stats.net_output_bytes));
  out.Decimal("instantaneous_input_kbps", rates.input_kib_per_second);
  out.Decimal("instantaneous_output_kbps", rates.output_kib_per_second);
  out.Line("rejected_connections", Read(stats.connections_rejected));
  out.Line("expired_keys", counters.expired_keys);
  out.Line("evicted_keys", counters.evicted_keys);
  out.Line("keyspace_hits", counters.hits);
  out.Line("keyspace_misses", counters.misses);
  out.Line("latest_fork_usec", 0);
  out.Line("total_forks", 0);
  out.Line("total_error_replies", counters.error_replies);
  out.Line("client_query_buffer_limit_disconnections",
           Read(stats.query_buffer_limit_disconnections));
  out.Line("client_output_buffer_limit_disconnections",
           Read(stats.output_buffer_limit_disconnections));
  out.Line("eventloop_cycles", turns);
  out.Line("acl_access_denied_auth", Read(stats.acl_access_denied_auth));
}

void WriteCommandStatsInfo(const InfoContext& ctx) {
  const EngineCounters counters = CountersOf(ctx.server);
  ctx.out.Section("Commandstats");
  for (uint32_t id = 0; id < counters.per_command.size(); ++id) {
    const EngineCounters::Command& c = counters.per_command[id];
    if (c.calls == 0 && c.rejected == 0 && c.failed == 0) continue;
    const uint64_t micros = c.nanoseconds / kNanosPerMicro;
    const double mean = c.calls == 0 ? 0
                                     : static_cast<double>(c.nanoseconds) / kNanosPerMicro /
                                           static_cast<double>(c.calls);
    ctx.out.Line(
        "cmdstat_" + SafeName(ctx.server.engine().commands().at(id).name),
        fmt::format("calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}",
                    c.calls, micros, mean, c.rejected, c.failed));
  }
}

void WriteErrorStatsInfo(const InfoContext& ctx) {
  ctx.out.Section("Errorstats");
  for (const auto& [prefix, count] : ctx.server.recorder().Errors()) {
    ctx.out.Line("errorstat_" + SafeName(prefix), fmt::format("count={}", count));
  }
}

void WriteLatencyStatsInfo(const InfoContext& ctx) {
  ctx.out.Section("Latencystats");
  CommandRecorder& recorder = ctx.server.recorder();
  if (!recorder.track_latency()) return;
  const std::vector<double> percentiles = recorder.percentiles();
  const CommandTable& commands = ctx.server.engine().commands();
  for (uint32_t id = 0; id < commands.count(); ++id) {
    const LatencySnapshot snapshot = recorder.latencies().Read(id);
    if (snapshot.count() == 0) continue;
    std::string values;
    for (const double percent : percentiles) {
      const double micros = static_cast<double>(snapshot.PercentileNs(percent)) / kNanosPerMicro;
      values +=
          fmt::format("{}p{}={:.3f}", values.empty() ? "" : ",", DoubleToText(percent), micros);
    }
    ctx.out.Line("latency_percentiles_usec_" + SafeName(commands.at(id).name), values);
  }
}

void WriteKeyspaceInfo(const InfoContext& ctx) {
  Engine& engine = ctx.server.engine();
  ctx.out.Section("Keyspace");
  for (uint32_t db = 0; db < engine.keyspace().databases(); ++db) {
    if (engine.keyspace().Size(db) == 0) continue;
    const Engine::Totals totals = engine.CountDb(db);
    const int64_t ttl_ms = engine.AverageTtlMs(db, ctx.now_ms);
    ctx.out.Line(fmt::format("db{}", db),
                 fmt::format("keys={},expires={},avg_ttl={},subexpiry=0", totals.keys,
                             totals.volatile_keys, ttl_ms));
  }
}

// How long commands have waited, by cause: not part of their run times.
void WriteWaits(const InfoContext& ctx) {
  constexpr std::string_view kNames[] = {"stripe", "stop", "log", "pause", "durability", "job"};
  static_assert(std::size(kNames) == static_cast<size_t>(WaitCause::kCount));
  const std::vector<uint64_t> waited_ns = CountersOf(ctx.server).waited_ns;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    ctx.out.Line(fmt::format("hotkv_wait_{}_usec", kNames[i]), waited_ns[i] / kNanosPerMicro);
  }
}

void WriteHotkvInfo(const InfoContext& ctx) {
  InfoWriter& out = ctx.out;
  Engine& engine = ctx.server.engine();
  EpochClock& epochs = engine.epochs();
  const uint64_t current = epochs.current();
  const uint64_t durable = epochs.durable();
  const bool disk_denied = engine.disk_denied.load(std::memory_order_relaxed);
  const bool memory_denied = engine.memory_denied.load(std::memory_order_relaxed);
  uint64_t indexes = 0;
  for (const ObjectRef<Object>& object : engine.objects().All()) {
    indexes += object->type() == ValueType::kVectorSet ? 1 : 0;
  }
  out.Section("Hotkv");
  out.Line("hotkv_version", kHotkvVersion);
  out.Line("hotkv_io", ctx.server.io_name());
  out.Line("hotkv_threads", ctx.server.worker_count());
  out.Line("hotkv_stripes", engine.keyspace().stripe_count());
  out.Line("hotkv_kernels", CurrentTarget().name);
  out.Line("hotkv_objects", engine.objects().size());
  out.Line("hotkv_vector_indexes", indexes);
  out.Line("hotkv_epoch_current", current);
  out.Line("hotkv_epoch_written", epochs.written());
  out.Line("hotkv_epoch_durable", durable);
  // Epochs that a power cut would take: 1 is the one that is open now.
  out.Line("hotkv_durable_lag_epochs", current > durable ? current - durable : 0);
  out.Line("hotkv_writes_wait", epochs.writes_wait());
  out.Line("hotkv_write_denial", disk_denied ? "disk" : memory_denied ? "memory" : "none");
  if (disk_denied) out.Line("hotkv_write_denial_reason", SafeName(engine.disk_denied_reason()));
  WriteWaits(ctx);
  if (DurabilityControl* disk = ctx.server.durability_or_null()) {
    const DurabilityStatus status = disk->GetStatus();
    out.Line("hotkv_appendfsync", status.fsync_policy);
    out.Line("hotkv_log_segments", status.log_segments);
    out.Line("hotkv_log_bytes", status.log_bytes);
    out.Line("hotkv_log_blocks", status.log_blocks);
    out.Line("hotkv_log_syncs", status.log_syncs);
    out.Line("hotkv_log_failures", status.log_failures);
    out.Decimal("hotkv_loaded_percent", status.loaded_percent);
    out.Line("hotkv_snapshots", status.snapshots);
  }
}

}  // namespace hotkv
