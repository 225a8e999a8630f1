// `hotkv-bench kv`: commands on keys and values, closed loop; and what both benchmarks share about the server.
//
// Thread rules: called by main() only.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/base/result.h"
#include "tools/hotkv_bench/command_mix.h"
#include "tools/hotkv_bench/load_loop.h"

namespace hotkv {

struct KvOptions {
  LoadOptions load;
  MixOptions mix;
  bool fill = true;  // write every key once beforehand if the mix reads or overwrites keys
  bool fill_only = false;
  bool json = false;
};

// Prints the outcome to standard output. Error replies count as a failure.
Status RunKvBench(KvOptions options);

struct ServerFacts {
  std::string name;
  std::string version;
  int pid = 0;  // 0: not on this machine, or not told
};
// From INFO; the pid only for a server that is reached over loopback or a Unix socket.
Result<ServerFacts> AskServer(const RespAddress& address);

nlohmann::json LatencyJson(const Histogram& ns);
nlohmann::json ServerJson(const ServerFacts& facts);

}  // namespace hotkv
