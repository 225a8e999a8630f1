// INFO's sections about the process: server, clients, memory, persistence, replication, CPU.
#include <unistd.h>

#include <algorithm>
#include <string>

#include "engine/base/allocator.h"
#include "engine/tx/engine.h"
#include "server/commands/info_writer.h"
#include "server/commands/process_facts.h"
#include "server/commands/server_gauges.h"
#include "server/server.h"
#include "server/version.h"

namespace hotkv {

namespace {

constexpr int64_t kMillisPerSecond = 1000;
constexpr int64_t kMicrosPerMilli = 1000;
constexpr int64_t kSecondsPerDay = 24 * 3600;
constexpr int64_t kLruClockMask = 0xffffff;
constexpr double kPercent = 100;

double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string_view OkOrErr(bool ok) { return ok ? "ok" : "err"; }

}  // namespace

void WriteServerInfo(const InfoContext& ctx) {
  InfoWriter& out = ctx.out;
  Server& server = ctx.server;
  const int64_t up_s = (ctx.now_ms - server.started_ms()) / kMillisPerSecond;
  out.Section("Server");
  out.Line("redis_version", kRedisVersion);
  out.Line("redis_git_sha1", "00000000");
  out.Line("redis_git_dirty", 0);
  out.Line("redis_build_id", kHotkvVersion);
  out.Line("redis_mode", "standalone");
  out.Line("os", SystemName());
  out.Line("arch_bits", 8 * sizeof(void*));
  out.Line("monotonic_clock", "POSIX clock_gettime");
  out.Line("multiplexing_api", server.io_name());
  out.Line("atomicvar_api", "std-atomic");
  out.Line("gcc_version", fmt::format("{}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__));
  out.Line("process_id", getpid());
  out.Line("process_supervised", "no");
  out.Line("run_id", server.run_id());
  out.Line("tcp_port", server.tcp_port());
  out.Line("server_time_usec", ctx.now_ms * kMicrosPerMilli);
  out.Line("uptime_in_seconds", up_s);
  out.Line("uptime_in_days", up_s / kSecondsPerDay);
  out.Line("hz", 10);
  out.Line("configured_hz", 10);
  out.Line("lru_clock", ctx.now_ms / kMillisPerSecond & kLruClockMask);
  out.Line("executable", ExecutablePath());
  out.Line("config_file", server.config().file());
  out.Line("io_threads_active", server.worker_count() > 1);
  const auto settings = server.config().Current();
  std::string bind;
  for (const std::string& address : settings->Words(Setting::kBind))
    bind += "bind=" + address + ",";
  if (server.tcp_port() != 0) {
    out.Line("listener0", fmt::format("name=tcp,{}port={}", bind, server.tcp_port()));
  }
  if (const std::string& path = settings->Text(Setting::kUnixSocket); !path.empty()) {
    out.Line("listener1", "name=unix,bind=" + path);
  }
}

void WriteClientsInfo(const InfoContext& ctx) {
  uint64_t blocked = 0;
  uint64_t watching = 0;
  uint64_t watched = 0;
  uint64_t input_max = 0;
  uint64_t output_max = 0;
  constexpr auto kRelaxed = std::memory_order_relaxed;
  ctx.server.clients().ForEach([&](Client& client) {
    const ClientShared& shared = client.shared;
    blocked += shared.parked.load(kRelaxed) ? 1 : 0;
    watching += shared.watched_keys.load(kRelaxed) != 0 ? 1 : 0;
    watched += shared.watched_keys.load(kRelaxed);
    input_max = std::max(input_max, shared.query_bytes.load(kRelaxed));
    output_max = std::max(output_max, shared.output_bytes.load(kRelaxed));
  });
  InfoWriter& out = ctx.out;
  out.Section("Clients");
  out.Line("connected_clients", ctx.server.clients().size());
  out.Line("maxclients", ctx.server.config().Current()->Int(Setting::kMaxClients));
  out.Line("client_recent_max_input_buffer", input_max);
  out.Line("client_recent_max_output_buffer", output_max);
  out.Line("blocked_clients", blocked);
  out.Line("watching_clients", watching);
  out.Line("total_watched_keys", watched);
}

void WriteMemoryInfo(const InfoContext& ctx) {
  InfoWriter& out = ctx.out;
  Engine& engine = ctx.server.engine();
  const auto settings = ctx.server.config().Current();
  const MemoryUse use = ctx.server.gauges().Memory();
  const uint64_t peak = ctx.server.gauges().memory_peak();
  const uint64_t resident = ResidentBytes();
  out.Section("Memory");
  out.Bytes("used_memory", use.total());
  out.Bytes("used_memory_rss", resident);
  out.Bytes("used_memory_peak", peak);
  out.Decimal("used_memory_peak_perc", Ratio(use.total(), peak) * kPercent, "%");
  out.Line("used_memory_overhead", use.overhead());
  out.Line("used_memory_startup", use.stripes);
  out.Line("used_memory_dataset", use.dataset());
  out.Decimal("used_memory_dataset_perc", Ratio(use.dataset(), use.total()) * kPercent, "%");
  out.Bytes("total_system_memory", SystemMemoryBytes());
  out.Bytes("maxmemory", static_cast<uint64_t>(settings->Int(Setting::kMaxMemory)));
  out.Line("maxmemory_policy", settings->Text(Setting::kMaxMemoryPolicy));
  out.Decimal("mem_fragmentation_ratio", Ratio(resident, use.total()));
  out.Line("mem_fragmentation_bytes",
           static_cast<int64_t>(resident) - static_cast<int64_t>(use.total()));
  out.Line("mem_not_counted_for_evict", use.log);
  out.Line("mem_clients_normal", use.clients);
  out.Line("mem_aof_buffer", use.log);
  out.Line("mem_allocator", kAllocatorName);
  out.Line("lazyfree_pending_objects", engine.lazy_free().pending());
  out.Line("lazyfreed_objects", engine.lazy_free().freed());
}

void WritePersistenceInfo(const InfoContext& ctx) {
  InfoWriter& out = ctx.out;
  DurabilityControl* disk = ctx.server.durability_or_null();
  DurabilityStatus status;
  if (disk != nullptr) {
    status = disk->GetStatus();
  } else {
    status.last_save_ms = ctx.server.started_ms();
  }
  const bool rewriting = status.snapshot_running && status.snapshot_is_rewrite;
  const bool saving = status.snapshot_running && !status.snapshot_is_rewrite;
  const int64_t running_s = (ctx.now_ms - status.snapshot_started_ms) / kMillisPerSecond;
  const bool snapshot_ok = status.last_snapshot_error.empty();
  out.Section("Persistence");
  out.Line("loading", ctx.server.engine().loading.load(std::memory_order_relaxed));
  out.Decimal("current_fork_perc", status.snapshot_percent);
  const uint64_t keys = status.snapshot_running ? ctx.server.engine().CountTotals().keys : 0;
  const double processed = static_cast<double>(keys) * status.snapshot_percent / kPercent;
  out.Line("current_save_keys_processed", static_cast<uint64_t>(processed));
  out.Line("current_save_keys_total", keys);
  out.Line("rdb_changes_since_last_save", status.changes_since_save);
  out.Line("rdb_bgsave_in_progress", saving);
  out.Line("rdb_last_save_time", status.last_save_ms / kMillisPerSecond);
  out.Line("rdb_last_bgsave_status", OkOrErr(snapshot_ok));
  out.Line("rdb_last_bgsave_time_sec", status.last_snapshot_seconds);
  out.Line("rdb_current_bgsave_time_sec", saving ? running_s : int64_t{-1});
  out.Line("rdb_saves", status.snapshots);
  out.Line("rdb_last_load_keys_loaded", status.loaded_keys);
  out.Line("aof_enabled", status.log_on);
  out.Line("aof_rewrite_in_progress", rewriting);
  out.Line("aof_rewrite_scheduled", status.snapshot_scheduled);
  out.Line("aof_last_rewrite_time_sec", status.last_snapshot_seconds);
  out.Line("aof_current_rewrite_time_sec", rewriting ? running_s : int64_t{-1});
  out.Line("aof_last_bgrewrite_status", OkOrErr(snapshot_ok));
  out.Line("aof_last_write_status", OkOrErr(status.log_error.empty()));
  if (!status.log_on) return;
  out.Line("aof_current_size", status.log_written_bytes);
  out.Line("aof_base_size", status.log_base_bytes);
  out.Line("aof_pending_rewrite", status.snapshot_scheduled);
  out.Line("aof_buffer_length", status.log_buffered_bytes);
}

void WriteReplicationInfo(const InfoContext& ctx) {
  constexpr std::string_view kNoId = "0000000000000000000000000000000000000000";
  DurabilityControl* disk = ctx.server.durability_or_null();
  const std::string id = disk == nullptr ? std::string() : disk->GetStatus().replication_id;
  InfoWriter& out = ctx.out;
  out.Section("Replication");
  out.Line("role", "master");
  out.Line("connected_slaves", 0);
  out.Line("master_failover_state", "no-failover");
  out.Line("master_replid", id.empty() ? kNoId : std::string_view(id));
  out.Line("master_replid2", kNoId);
  out.Line("master_repl_offset", 0);
  out.Line("second_repl_offset", -1);
  out.Line("repl_backlog_active", 0);
  out.Line("repl_backlog_size", 0);
  out.Line("repl_backlog_first_byte_offset", 0);
  out.Line("repl_backlog_histlen", 0);
}

void WriteCpuInfo(const InfoContext& ctx) {
  const CpuSeconds cpu = CpuTime();
  InfoWriter& out = ctx.out;
  out.Section("CPU");
  out.Line("used_cpu_sys", fmt::format("{:.6f}", cpu.system));
  out.Line("used_cpu_user", fmt::format("{:.6f}", cpu.user));
  out.Line("used_cpu_sys_children", fmt::format("{:.6f}", cpu.system_children));
  out.Line("used_cpu_user_children", fmt::format("{:.6f}", cpu.user_children));
}

}  // namespace hotkv
