#include "server/commands/server_gauges.h"

#include <algorithm>

#include "engine/tx/engine.h"
#include "server/server.h"

namespace hotkv {

namespace {

constexpr uint64_t kMillisPerSecond = 1000;
constexpr double kKib = 1024;

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
  if (now_ms - memory_checked_ms_ >= kMemoryTickMs) {
    memory_checked_ms_ = now_ms;
    CheckMemoryLimit();
  }
}

void ServerGauges::CheckMemoryLimit() {
  const int64_t limit = server_.config().Current()->Int(Setting::kMaxMemory);
  const bool denied = limit > 0 && Memory().total() > static_cast<uint64_t>(limit);
  server_.engine().memory_denied.store(denied, std::memory_order_relaxed);
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
