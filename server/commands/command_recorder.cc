#include "server/commands/command_recorder.h"

#include <limits>
#include <utility>

#include "engine/base/clock.h"
#include "engine/commands/command_context.h"
#include "engine/tx/engine.h"
#include "server/config/settings.h"

namespace hotkv {

namespace {

constexpr int64_t kNanosPerMicro = 1000;
constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int64_t kMillisPerSecond = 1000;

constexpr std::string_view kRedacted = "(redacted)";

// The arguments without what must not be seen: passwords.
std::vector<std::string_view> WithoutSecrets(const CommandSpec* spec, Args args) {
  std::vector<std::string_view> out(args.begin(), args.end());
  if (spec == nullptr) return out;
  if (spec->name == "auth") {
    std::fill(out.begin() + 1, out.end(), kRedacted);
  } else if (spec->name == "hello") {
    for (size_t i = 2; i + 2 < out.size(); ++i) {
      if (EqualsIgnoreCase(out[i], "AUTH")) out[i + 1] = out[i + 2] = kRedacted;
    }
  } else if (spec->name == "config|set") {
    for (size_t i = 2; i + 1 < out.size(); i += 2) {
      const int setting = FindSetting(out[i]);
      const bool secret =
          setting >= 0 && AllSettings()[static_cast<size_t>(setting)].Has(setting_flag::kSensitive);
      if (secret) out[i + 1] = kRedacted;
    }
  }
  return out;
}

uint64_t Minus(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

}  // namespace

EngineCounters ReadCounters(Engine& engine) {
  EngineCounters out;
  out.commands = engine.SumOverWorkers(&WorkerState::commands);
  out.hits = engine.SumOverWorkers(&WorkerState::hits);
  out.misses = engine.SumOverWorkers(&WorkerState::misses);
  out.expired_keys = engine.SumOverWorkers(&WorkerState::expired_keys);
  out.evicted_keys = engine.SumOverWorkers(&WorkerState::evicted_keys);
  for (size_t cause = 0; cause < static_cast<size_t>(WaitCause::kCount); ++cause) {
    out.waited_ns.push_back(engine.WaitedNs(static_cast<WaitCause>(cause)));
  }
  out.error_replies = engine.SumOverWorkers(&WorkerState::error_replies);
  out.per_command.resize(engine.commands().count());
  for (unsigned w = 0; w < engine.workers(); ++w) {
    const WorkerState& worker = engine.worker(w);
    for (size_t i = 0; i < out.per_command.size(); ++i) {
      const CommandCounters& from = worker.per_command[i];
      EngineCounters::Command& to = out.per_command[i];
      to.calls += from.calls.load(std::memory_order_relaxed);
      to.nanoseconds += from.nanoseconds.load(std::memory_order_relaxed);
      to.rejected += from.rejected.load(std::memory_order_relaxed);
      to.failed += from.failed.load(std::memory_order_relaxed);
    }
  }
  return out;
}

CommandRecorder::CommandRecorder(Engine& engine)
    : workers_(engine.workers()),
      latencies_(workers_, engine.commands().count()),
      errors_(std::make_unique<WorkerErrors[]>(workers_)) {}

std::optional<uint64_t> CommandRecorder::RecordSlow(const SlowCommand& command) {
  std::optional<uint64_t> id;
  const int64_t now_s = Clock::NowMs() / kMillisPerSecond;
  const int64_t run_us = command.run_ns / kNanosPerMicro;
  const int64_t slower_than = slower_than_us_.load(std::memory_order_relaxed);
  const bool hidden = command.spec != nullptr && command.spec->Has(command_flag::kSkipSlowlog);
  if (slower_than >= 0 && run_us >= slower_than && !hidden) {
    SlowlogEntry entry;
    entry.time_s = now_s;
    entry.run_us = run_us;
    entry.waited_us = command.waited_ns / kNanosPerMicro;
    entry.client_addr = command.client_addr;
    entry.client_name = command.client_name;
    id = slowlog_.Add(std::move(entry), WithoutSecrets(command.spec, command.args));
  }
  const bool fast = command.spec != nullptr && command.spec->Has(command_flag::kFast);
  monitor_.Add(fast ? "fast-command" : "command", command.run_ns / kNanosPerMilli, now_s);
  return id;
}

void CommandRecorder::RecordError(unsigned worker, std::string_view prefix) {
  WorkerErrors& mine = errors_[worker];
  const std::lock_guard<std::mutex> lock(mine.mutex);
  const auto it = mine.counts.find(prefix);
  if (it != mine.counts.end()) {
    ++it->second;
  } else if (mine.counts.size() < kErrorPrefixesMax) {
    mine.counts.emplace(prefix, 1);
  }
}

void CommandRecorder::SetSlowerThan(int64_t microseconds) {
  slower_than_us_.store(microseconds, std::memory_order_relaxed);
  UpdateAttention();
}

void CommandRecorder::SetMonitorThreshold(int64_t milliseconds) {
  monitor_.SetThreshold(milliseconds);
  UpdateAttention();
}

void CommandRecorder::UpdateAttention() {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  const int64_t slow_us = slower_than_us_.load(std::memory_order_relaxed);
  const int64_t spike_ms = monitor_.threshold_ms();
  const int64_t slow_ns =
      slow_us < 0 || slow_us > kNever / kNanosPerMicro ? kNever : slow_us * kNanosPerMicro;
  const int64_t spike_ns =
      spike_ms <= 0 || spike_ms > kNever / kNanosPerMilli ? kNever : spike_ms * kNanosPerMilli;
  attention_ns_.store(std::min(slow_ns, spike_ns), std::memory_order_relaxed);
}

void CommandRecorder::SetPercentiles(std::vector<double> percentiles) {
  const std::lock_guard<std::mutex> lock(mutex_);
  percentiles_ = std::move(percentiles);
}

std::vector<double> CommandRecorder::percentiles() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return percentiles_;
}

std::map<std::string, uint64_t, std::less<>> CommandRecorder::Errors() const {
  std::map<std::string, uint64_t, std::less<>> out;
  for (unsigned w = 0; w < workers_; ++w) {
    const std::lock_guard<std::mutex> lock(errors_[w].mutex);
    for (const auto& [prefix, count] : errors_[w].counts) out[prefix] += count;
  }
  return out;
}

void CommandRecorder::Reset(const EngineCounters& now) {
  latencies_.Reset();
  for (unsigned w = 0; w < workers_; ++w) {
    const std::lock_guard<std::mutex> lock(errors_[w].mutex);
    errors_[w].counts.clear();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  baseline_ = now;
}

EngineCounters CommandRecorder::Since(const EngineCounters& now) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  EngineCounters out = now;
  out.commands = Minus(now.commands, baseline_.commands);
  out.hits = Minus(now.hits, baseline_.hits);
  out.misses = Minus(now.misses, baseline_.misses);
  out.expired_keys = Minus(now.expired_keys, baseline_.expired_keys);
  out.evicted_keys = Minus(now.evicted_keys, baseline_.evicted_keys);
  out.error_replies = Minus(now.error_replies, baseline_.error_replies);
  for (size_t i = 0; i < std::min(out.waited_ns.size(), baseline_.waited_ns.size()); ++i) {
    out.waited_ns[i] = Minus(out.waited_ns[i], baseline_.waited_ns[i]);
  }
  const size_t known = std::min(out.per_command.size(), baseline_.per_command.size());
  for (size_t i = 0; i < known; ++i) {
    const EngineCounters::Command& before = baseline_.per_command[i];
    EngineCounters::Command& c = out.per_command[i];
    c.calls = Minus(c.calls, before.calls);
    c.nanoseconds = Minus(c.nanoseconds, before.nanoseconds);
    c.rejected = Minus(c.rejected, before.rejected);
    c.failed = Minus(c.failed, before.failed);
  }
  return out;
}

}  // namespace hotkv
