#include "server/commands/server_gauges.h"

#include <algorithm>

#include "engine/base/log.h"
#include "engine/tx/engine.h"
#include "server/commands/process_facts.h"
#include "server/server.h"

namespace hotkv {

namespace {

constexpr uint64_t kMillisPerSecond = 1000;
constexpr double kKib = 1024;
constexpr uint64_t kPercent = 100;

uint64_t PerSecond(uint64_t now, uint64_t before, int64_t elapsed_ms) {
  return now <= before ? 0 : (now - before) * kMillisPerSecond / static_cast<uint64_t>(elapsed_ms);
}

uint64_t NotNegative(int64_t value) { return static_cast<uint64_t>(std::max<int64_t>(value, 0)); }

}  // namespace

MemoryUse MeasureMemory(Server& server) {
  Engine& engine = server.engine();
  MemoryUse use;
  const Engine::Totals totals = engine.CountTotals();
  use.keys = totals.keys;
  use.entries = NotNegative(totals.entry_bytes);
  use.tables = NotNegative(totals.table_bytes);
  use.stripes = uint64_t{engine.keyspace().stripe_count()} * sizeof(Stripe);
  for (const ObjectRef<Object>& object : engine.objects().All())
    use.objects += object->MemoryBytes();
  server.clients().ForEach([&](Client& client) {
    use.clients += sizeof(Client) + client.shared.query_bytes.load(std::memory_order_relaxed) +
                   client.shared.query_free_bytes.load(std::memory_order_relaxed) +
                   client.shared.output_bytes.load(std::memory_order_relaxed) +
                   client.shared.multi_bytes.load(std::memory_order_relaxed);
  });
  if (DurabilityControl* disk = server.durability_or_null()) {
    use.log = disk->GetStatus().log_buffered_bytes;
  }
  return use;
}

ServerGauges::Counters ServerGauges::ReadNow() const {
  const ServerStats& stats = server_.stats();
  return {server_.engine().SumOverWorkers(&WorkerState::commands),
          stats.net_input_bytes.load(std::memory_order_relaxed),
          stats.net_output_bytes.load(std::memory_order_relaxed)};
}

void ServerGauges::Tick(int64_t now_ms) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t elapsed_ms = now_ms - last_ms_;
    if (elapsed_ms >= kTickMs) {
      const Counters now = ReadNow();
      if (last_ms_ != 0) {
        samples_[next_sample_] = {PerSecond(now.commands, last_.commands, elapsed_ms),
                                  PerSecond(now.input_bytes, last_.input_bytes, elapsed_ms),
                                  PerSecond(now.output_bytes, last_.output_bytes, elapsed_ms)};
        next_sample_ = (next_sample_ + 1) % kSamples;
      }
      last_ = now;
      last_ms_ = now_ms;
    }
  }
  CheckMemoryLimit();
}

void ServerGauges::SetGroupRoot(std::string root) {
  const std::lock_guard<std::mutex> lock(mutex_);
  group_root_ = std::move(root);
}

void ServerGauges::ApplyMemoryLimit(const Settings& settings) {
  const std::string_view policy = settings.Text(Setting::kMaxMemoryPolicy);
  Eviction::Settings eviction;
  if (policy.ends_with("-lru")) eviction.rank = EvictionRank::kLeastRecent;
  if (policy.ends_with("-lfu")) eviction.rank = EvictionRank::kLeastFrequent;
  if (policy.ends_with("-random")) eviction.rank = EvictionRank::kRandom;
  if (policy.ends_with("-ttl")) eviction.rank = EvictionRank::kNearestExpiry;
  eviction.volatile_only = policy.starts_with("volatile-");
  eviction.samples = static_cast<unsigned>(settings.Int(Setting::kMaxMemorySamples));
  eviction.lfu_log_factor = static_cast<unsigned>(settings.Int(Setting::kLfuLogFactor));
  Engine& engine = server_.engine();
  engine.lfu_policy.store(eviction.rank == EvictionRank::kLeastFrequent, std::memory_order_relaxed);
  engine.eviction().Configure(eviction);
  limit_.store(settings.Int(Setting::kMaxMemory), std::memory_order_relaxed);
  evicts_.store(eviction.rank != EvictionRank::kNone, std::memory_order_relaxed);
  group_ticks_.store(0, std::memory_order_relaxed);
  CheckMemoryLimit();
}

void ServerGauges::CheckMemoryLimit() {
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  Eviction& eviction = server_.engine().eviction();
  if (limit <= 0) {
    eviction.SetExcess(0);
    if (group_ticks_.fetch_add(1, std::memory_order_relaxed) % kGroupTicks == 0) CheckGroupLimit();
    return;
  }
  // As in Redis, the log's buffers do not count: evicting fills them.
  const MemoryUse use = Memory();
  const auto excess = static_cast<int64_t>(use.total() - use.log) - limit;
  const bool evicts = evicts_.load(std::memory_order_relaxed);
  eviction.SetExcess(evicts ? excess : 0);
  Deny(!evicts && excess > 0, "maxmemory");
}

void ServerGauges::CheckGroupLimit() {
  std::string root;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    root = group_root_;
  }
  const GroupMemory group = ReadGroupMemory(root);
  Deny(group.limit != 0 && group.used > group.limit / kPercent * kGroupPercent,
       "the control group's memory limit");
}

void ServerGauges::Deny(bool denied, std::string_view why) {
  if (server_.engine().memory_denied.exchange(denied, std::memory_order_relaxed) == denied) return;
  Log(LogLevel::kWarning,
      denied ? "Commands that need memory are refused because of " + std::string(why)
             : "Commands that need memory are accepted again");
}

ServerGauges::Rates ServerGauges::rates() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Rates rates;
  for (const Counters& sample : samples_) {
    rates.commands_per_second += sample.commands;
    rates.input_kib_per_second += static_cast<double>(sample.input_bytes);
    rates.output_kib_per_second += static_cast<double>(sample.output_bytes);
  }
  rates.commands_per_second /= kSamples;
  rates.input_kib_per_second /= kSamples * kKib;
  rates.output_kib_per_second /= kSamples * kKib;
  return rates;
}

MemoryUse ServerGauges::Memory() {
  const MemoryUse use = MeasureMemory(server_);
  uint64_t peak = memory_peak_.load(std::memory_order_relaxed);
  while (use.total() > peak && !memory_peak_.compare_exchange_weak(peak, use.total())) {
  }
  return use;
}

}  // namespace hotkv
