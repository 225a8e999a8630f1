// The closed-loop load generator: each connection has one batch of requests outstanding and sends the next when all its
// replies have come. Several connections a thread over epoll; CPU time of the server is taken at the ends of the
// measured span.
//
// Thread rules: RunLoad starts its own threads and joins them; a RequestSource is used by one of them only.
// Errors: a lost connection or a reply that is not RESP ends the run with a Status. Error replies are counted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/histogram.h"
#include "engine/base/resp_client.h"
#include "engine/base/result.h"

namespace hotkv {

class RequestSource {
 public:
  virtual ~RequestSource() = default;
  // Appends the next batch in wire form; returns the number of replies it will get, 0 when there is no more to send.
  virtual size_t AppendBatch(std::string* out) = 0;
};

struct LoadOptions {
  RespAddress address;
  unsigned clients = 50;
  unsigned threads = 1;
  std::vector<int> pin_cores;  // thread i runs on pin_cores[i % size]; empty: anywhere
  // The generator asks for replies again and again instead of sleeping until one comes: its own
  // wake-up is then no part of a latency. Needs a core for each of its threads.
  bool busy_poll = false;
  double warmup_s = 1;
  double seconds = 5;  // 0: until the sources have no more, all of it measured
  int server_pid = 0;  // 0: no figures of the server
  std::function<void(uint64_t operations)> on_progress;  // called some times a second
};

struct LoadResult {
  uint64_t operations = 0;
  double seconds = 0;
  Histogram batch_latency_ns;
  uint64_t errors = 0;
  uint64_t nulls = 0;
  std::string first_error;
  uint64_t server_cpu_ns = 0;
  uint64_t generator_cpu_ns = 0;

  double PerSecond() const { return seconds > 0 ? static_cast<double>(operations) / seconds : 0; }
  double ServerCpuUsPerOperation() const {
    return operations > 0 ? static_cast<double>(server_cpu_ns) / 1e3 / static_cast<double>(operations)
                          : 0;
  }
};

using SourceFactory = std::function<std::unique_ptr<RequestSource>(unsigned thread)>;

Result<LoadResult> RunLoad(const LoadOptions& options, const SourceFactory& make_source);

}  // namespace hotkv
