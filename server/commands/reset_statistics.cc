#include "server/commands/reset_statistics.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/number.h"
#include "engine/tx/engine.h"
#include "server/commands/command_recorder.h"
#include "server/config/config.h"
#include "server/server.h"

namespace hotkv {

namespace {

std::vector<double> Percentiles(const Settings& settings) {
  std::vector<double> percentiles;
  for (const std::string& word : settings.Words(Setting::kLatencyTrackingPercentiles)) {
    percentiles.push_back(*ParseDouble(word));  // checked when it was set
  }
  return percentiles;
}

void Apply(const Settings& settings, CommandRecorder& recorder) {
  recorder.SetSlowerThan(settings.Int(Setting::kSlowlogLogSlowerThan));
  recorder.slowlog().SetCapacity(static_cast<size_t>(settings.Int(Setting::kSlowlogMaxLen)));
  recorder.SetMonitorThreshold(settings.Int(Setting::kLatencyMonitorThreshold));
  recorder.SetTrackLatency(settings.Bool(Setting::kLatencyTracking));
  recorder.SetPercentiles(Percentiles(settings));
}

}  // namespace

void ResetStatistics(Server& server) {
  ServerStats& stats = server.stats();
  for (std::atomic<uint64_t>* counter :
       {&stats.connections_received, &stats.connections_rejected,
        &stats.query_buffer_limit_disconnections, &stats.output_buffer_limit_disconnections,
        &stats.net_input_bytes, &stats.net_output_bytes, &stats.acl_access_denied_auth}) {
    counter->store(0, std::memory_order_relaxed);
  }
  server.recorder().Reset(ReadCounters(server.engine()));
}

void ConnectRecorder(Config& config, CommandRecorder& recorder) {
  Apply(*config.Current(), recorder);
  config.OnChange(
      {Setting::kSlowlogLogSlowerThan, Setting::kSlowlogMaxLen, Setting::kLatencyMonitorThreshold,
       Setting::kLatencyTracking, Setting::kLatencyTrackingPercentiles},
      [&recorder](const Settings&, const Settings& after) {
        Apply(after, recorder);
        return Status::Ok();
      });
}

}  // namespace hotkv
