#include "server/commands/reset_statistics.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/log.h"
#include "engine/base/number.h"
#include "engine/tx/engine.h"
#include "server/commands/command_recorder.h"
#include "server/config/config.h"
#include "server/server.h"

namespace hotkv {

namespace {

Result<std::vector<double>> Percentiles(const Settings& settings) {
  std::vector<double> percentiles;
  for (const std::string& word : settings.Words(Setting::kLatencyTrackingPercentiles)) {
    const std::optional<double> value = ParseDouble(word);
    if (!value)
      return Status::InvalidArgument("Invalid latency-tracking-info-percentiles parameters");
    if (*value < 0 || *value > 100) {
      return Status::InvalidArgument(
          "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
    }
    percentiles.push_back(*value);
  }
  return percentiles;
}

Status Apply(const Settings& settings, CommandRecorder& recorder) {
  HOTKV_ASSIGN_OR_RETURN(std::vector<double> percentiles, Percentiles(settings));
  recorder.SetSlowerThan(settings.Int(Setting::kSlowlogLogSlowerThan));
  recorder.slowlog().SetCapacity(static_cast<size_t>(settings.Int(Setting::kSlowlogMaxLen)));
  recorder.SetMonitorThreshold(settings.Int(Setting::kLatencyMonitorThreshold));
  recorder.SetTrackLatency(settings.Bool(Setting::kLatencyTracking));
  recorder.SetPercentiles(std::move(percentiles));
  return Status::Ok();
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
  const Status status = Apply(*config.Current(), recorder);
  if (!status.ok()) Log(LogLevel::kWarning, status.message());
  config.OnChange(
      {Setting::kSlowlogLogSlowerThan, Setting::kSlowlogMaxLen, Setting::kLatencyMonitorThreshold,
       Setting::kLatencyTracking, Setting::kLatencyTrackingPercentiles},
      [&recorder](const Settings&, const Settings& after) { return Apply(after, recorder); });
}

}  // namespace hotkv
