#include "tools/hotkv_bench/kv_bench.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "tools/common/progress.h"

namespace hotkv {
namespace {

double Us(uint64_t ns) { return static_cast<double>(ns) / 1e3; }

std::string InfoField(std::string_view info, std::string_view name) {
  const std::string wanted = fmt::format("\n{}:", name);
  const size_t at = info.find(wanted);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = info.substr(at + wanted.size());
  return std::string(rest.substr(0, rest.find_first_of("\r\n")));
}

bool IsLocal(const RespAddress& address) {
  return !address.socket_path.empty() || address.host == "localhost" || address.host == "::1" ||
         address.host.starts_with("127.");
}

Result<LoadResult> Fill(const KvOptions& options, const CommandMix& mix) {
  LoadOptions load = options.load;
  load.seconds = 0;
  load.clients = std::max(load.threads, std::min(load.clients, 8U));
  ProgressBar bar("filling", options.mix.keys);
  load.on_progress = [&bar](uint64_t done) { bar.Update(done); };
  const unsigned threads = std::max(1U, std::min(load.threads, load.clients));
  return RunLoad(load, [&](unsigned thread) { return mix.MakeFillSource(thread, threads); });
}

nlohmann::json ResultJson(const KvOptions& options, const ServerFacts& facts, const LoadResult& result) {
  const auto operations = static_cast<double>(std::max<uint64_t>(result.operations, 1));
  nlohmann::json json = {
      {"bench", "kv"},
      {"server", ServerJson(facts)},
      {"clients", options.load.clients},
      {"threads", options.load.threads},
      {"pipeline", options.mix.pipeline},
      {"keys", options.mix.keys},
      {"key_bytes", options.mix.key_bytes},
      {"value_bytes", options.mix.value_bytes},
      {"distribution", options.mix.distribution},
      {"mix", options.mix.command.empty() ? options.mix.mix : options.mix.command},
      {"seconds", result.seconds},
      {"operations", result.operations},
      {"operations_per_second", result.PerSecond()},
      {"latency_us", LatencyJson(result.batch_latency_ns)},
      {"generator_cpu_us_per_operation", Us(result.generator_cpu_ns) / operations},
      {"errors", result.errors},
      {"nulls", result.nulls},
  };
  if (result.server_cpu_ns > 0) {
    json["server_cpu_us_per_operation"] = result.ServerCpuUsPerOperation();
    json["server_cpu_share"] = static_cast<double>(result.server_cpu_ns) / 1e9 / result.seconds;
  }
  return json;
}

void PrintResult(const KvOptions& options, const ServerFacts& facts, const LoadResult& result) {
  const Histogram& latency = result.batch_latency_ns;
  fmt::print("{} {}, {} clients, pipeline {}, {} keys {}, {} bytes, {}\n", facts.name, facts.version,
             options.load.clients, options.mix.pipeline, options.mix.keys, options.mix.distribution,
             options.mix.value_bytes,
             options.mix.command.empty() ? options.mix.mix : options.mix.command);
  fmt::print("{:.0f} operations/s over {:.1f} s\n", result.PerSecond(), result.seconds);
  fmt::print("latency of a batch in us: mean {:.0f}  p50 {:.0f}  p90 {:.0f}  p99 {:.0f}  p99.9 {:.0f}  max {:.0f}\n",
             latency.mean() / 1e3, Us(latency.Percentile(50)), Us(latency.Percentile(90)),
             Us(latency.Percentile(99)), Us(latency.Percentile(99.9)), Us(latency.max()));
  if (result.server_cpu_ns > 0) {
    fmt::print("server CPU {:.3f} us an operation, {:.0f} % of a core\n", result.ServerCpuUsPerOperation(),
               static_cast<double>(result.server_cpu_ns) / 1e7 / result.seconds);
  }
  if (result.nulls > 0) fmt::print("{} null replies\n", result.nulls);
}

}  // namespace

nlohmann::json LatencyJson(const Histogram& ns) {
  return {{"mean", ns.mean() / 1e3},          {"p50", Us(ns.Percentile(50))},
          {"p90", Us(ns.Percentile(90))},     {"p99", Us(ns.Percentile(99))},
          {"p99_9", Us(ns.Percentile(99.9))}, {"max", Us(ns.max())}};
}

nlohmann::json ServerJson(const ServerFacts& facts) {
  return {{"name", facts.name}, {"version", facts.version}, {"pid", facts.pid}};
}

Result<ServerFacts> AskServer(const RespAddress& address) {
  HOTKV_ASSIGN_OR_RETURN(auto client, RespClient::Connect(address));
  HOTKV_ASSIGN_OR_RETURN(const RespValue info, client->Call({"INFO"}));
  ServerFacts facts;
  facts.name = "hotkv";
  facts.version = InfoField(info.text, "hotkv_version");
  if (facts.version.empty()) {
    facts.version = InfoField(info.text, "valkey_version");
    facts.name = facts.version.empty() ? "redis" : "valkey";
  }
  if (facts.version.empty()) facts.version = InfoField(info.text, "redis_version");
  const std::string pid = InfoField(info.text, "process_id");
  if (IsLocal(address)) std::from_chars(pid.data(), pid.data() + pid.size(), facts.pid);
  return facts;
}

Status RunKvBench(KvOptions options) {
  HOTKV_ASSIGN_OR_RETURN(const auto mix, CommandMix::Make(options.mix));
  HOTKV_ASSIGN_OR_RETURN(const ServerFacts facts, AskServer(options.load.address));
  if (options.load.server_pid == 0) options.load.server_pid = facts.pid;
  LoadResult result;
  if ((options.fill && mix->reads_keys()) || options.fill_only) {
    HOTKV_ASSIGN_OR_RETURN(result, Fill(options, *mix));
  }
  if (!options.fill_only) {
    if (result.errors > 0) return Status::Internal("error reply while filling: " + result.first_error);
    HOTKV_ASSIGN_OR_RETURN(result,
                           RunLoad(options.load, [&](unsigned thread) { return mix->MakeSource(thread); }));
  }
  if (options.json) {
    fmt::print("{}\n", ResultJson(options, facts, result).dump());
  } else {
    PrintResult(options, facts, result);
  }
  if (result.errors > 0) {
    return Status::Internal(fmt::format("{} error replies, the first: {}", result.errors, result.first_error));
  }
  return {};
}

}  // namespace hotkv
