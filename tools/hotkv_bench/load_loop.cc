#include "tools/hotkv_bench/load_loop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "tools/common/process_stats.h"
#include "tools/hotkv_bench/reply_scanner.h"

namespace hotkv {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kReadBytes = 256 << 10;
constexpr int kEventsMax = 256;
constexpr int kWaitMs = 100;
constexpr int kConnectTimeoutMs = 5000;
constexpr int kSilenceMs = 30000;

enum class Phase : uint8_t { kConnect, kWarmup, kMeasure, kStop };

struct Shared {
  std::atomic<Phase> phase{Phase::kConnect};
  std::atomic<unsigned> ready{0};
  std::atomic<unsigned> finished{0};
  std::atomic<bool> failed{false};
  std::atomic<uint64_t> operations{0};  // for progress only
};

struct Connection {
  std::unique_ptr<RespClient> client;  // made the connection and its handshake; from then on only its descriptor
  ReplyScanner scanner;
  std::string out;
  size_t sent = 0;
  size_t missing_replies = 0;
  size_t batch_replies = 0;
  Clock::time_point batch_start;
  bool wants_write = false;
};

uint64_t ThreadCpuNs() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<uint64_t>(now.tv_nsec);
}

class Worker {
 public:
  Worker(const LoadOptions& options, unsigned index, unsigned connections, Shared* shared,
         std::unique_ptr<RequestSource> source)
      : options_(options),
        index_(index),
        connections_(connections),
        shared_(shared),
        source_(std::move(source)),
        buffer_(kReadBytes) {}
  ~Worker() {
    if (epoll_ >= 0) ::close(epoll_);
  }

  void Run() {
    Pin();
    status_ = Open();
    if (!status_.ok()) shared_->failed.store(true);
    shared_->ready.fetch_add(1);
    while (status_.ok() && shared_->phase.load() == Phase::kConnect) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (status_.ok()) status_ = Loop();
    if (!status_.ok()) shared_->failed.store(true);
    shared_->finished.fetch_add(1);
  }

  const Status& status() const { return status_; }
  void AddTo(LoadResult* result) const {
    result->operations += operations_;
    result->batch_latency_ns.Merge(latency_);
    result->generator_cpu_ns += cpu_ns_;
    for (const Connection& connection : open_) {
      result->errors += connection.scanner.errors();
      result->nulls += connection.scanner.nulls();
      if (result->first_error.empty()) result->first_error = connection.scanner.first_error();
    }
  }

 private:
  void Pin() const {
    if (options_.pin_cores.empty()) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(options_.pin_cores[index_ % options_.pin_cores.size()]), &set);
    ::sched_setaffinity(0, sizeof(set), &set);
  }

  Status Open() {
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) return Status::FromErrno(errno, "epoll_create1", "");
    open_.resize(connections_);
    for (size_t i = 0; i < open_.size(); ++i) {
      RespClientOptions client_options;
      client_options.connect_timeout_ms = kConnectTimeoutMs;
      HOTKV_ASSIGN_OR_RETURN(open_[i].client, RespClient::Connect(options_.address, client_options));
      HOTKV_RETURN_IF_ERROR(Watch(i, EPOLL_CTL_ADD, EPOLLIN));
    }
    return {};
  }

  Status Watch(size_t i, int operation, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = i;
    if (::epoll_ctl(epoll_, operation, open_[i].client->fd(), &event) == 0) return {};
    return Status::FromErrno(errno, "epoll_ctl", "");
  }

  Status StartBatch(size_t i) {
    Connection& connection = open_[i];
    connection.out.clear();
    connection.sent = 0;
    connection.batch_replies = source_->AppendBatch(&connection.out);
    connection.missing_replies = connection.batch_replies;
    if (connection.batch_replies == 0) {
      ++idle_;
      return {};
    }
    connection.batch_start = Clock::now();
    return Send(i);
  }

  Status Send(size_t i) {
    Connection& connection = open_[i];
    while (connection.sent < connection.out.size()) {
      const ssize_t wrote = ::send(connection.client->fd(), connection.out.data() + connection.sent,
                                   connection.out.size() - connection.sent, MSG_NOSIGNAL);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0 && errno == EAGAIN) break;
      if (wrote < 0) return Status::FromErrno(errno, "send", options_.address.ToString());
      connection.sent += static_cast<size_t>(wrote);
    }
    const bool wants_write = connection.sent < connection.out.size();
    if (wants_write == connection.wants_write) return {};
    connection.wants_write = wants_write;
    return Watch(i, EPOLL_CTL_MOD, wants_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }

  Status Receive(size_t i) {
    Connection& connection = open_[i];
    const ssize_t got = ::recv(connection.client->fd(), buffer_.data(), buffer_.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got < 0) return Status::FromErrno(errno, "recv", options_.address.ToString());
    if (got == 0) return Status::FromErrno(ECONNRESET, "closed by", options_.address.ToString());
    const size_t replies = connection.scanner.Scan({buffer_.data(), static_cast<size_t>(got)});
    if (connection.scanner.broken() || replies > connection.missing_replies) {
      return Status::Corruption("the server's bytes are not the replies that were asked for");
    }
    connection.missing_replies -= replies;
    if (connection.missing_replies > 0) return {};
    const auto elapsed = Clock::now() - connection.batch_start;
    if (measuring_) {
      operations_ += connection.batch_replies;
      const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count();
      latency_.Add(static_cast<uint64_t>(ns), connection.batch_replies);
    }
    if (options_.on_progress) shared_->operations.fetch_add(connection.batch_replies);
    return StartBatch(i);
  }

  void NotePhase() {
    const bool measuring = shared_->phase.load(std::memory_order_relaxed) == Phase::kMeasure;
    if (measuring == measuring_) return;
    measuring_ = measuring;
    cpu_ns_ = ThreadCpuNs() - cpu_ns_;  // the start is kept until the end is known
  }

  Status Loop() {
    NotePhase();
    for (size_t i = 0; i < open_.size(); ++i) HOTKV_RETURN_IF_ERROR(StartBatch(i));
    std::vector<epoll_event> events(kEventsMax);
    auto last_event = Clock::now();
    while (shared_->phase.load(std::memory_order_relaxed) != Phase::kStop && idle_ < open_.size()) {
      const int wait_ms = options_.busy_poll ? 0 : kWaitMs;
      const int ready = ::epoll_wait(epoll_, events.data(), kEventsMax, wait_ms);
      if (ready < 0 && errno != EINTR) return Status::FromErrno(errno, "epoll_wait", "");
      NotePhase();
      if (ready > 0) {
        last_event = Clock::now();
      } else if (Clock::now() - last_event > std::chrono::milliseconds(kSilenceMs)) {
        return Status::Busy("no answer from the server for 30 seconds");
      }
      for (int e = 0; e < ready; ++e) {
        const epoll_event& event = events[static_cast<size_t>(e)];
        if ((event.events & EPOLLOUT) != 0) HOTKV_RETURN_IF_ERROR(Send(event.data.u64));
        if ((event.events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) {
          HOTKV_RETURN_IF_ERROR(Receive(event.data.u64));
        }
      }
    }
    if (measuring_) cpu_ns_ = ThreadCpuNs() - cpu_ns_;
    measuring_ = false;
    return {};
  }

  const LoadOptions& options_;
  unsigned index_;
  unsigned connections_;
  Shared* shared_;
  std::unique_ptr<RequestSource> source_;
  std::vector<char> buffer_;
  std::vector<Connection> open_;
  int epoll_ = -1;
  size_t idle_ = 0;
  bool measuring_ = false;
  uint64_t operations_ = 0;
  uint64_t cpu_ns_ = 0;
  Histogram latency_;
  Status status_;
};

// Sleeps in short steps; false when all workers have ended before.
bool SleepWhileWorking(const LoadOptions& options, const Shared& shared, unsigned workers,
                       double seconds) {
  const auto start = Clock::now();
  for (;;) {
    if (options.on_progress) options.on_progress(shared.operations.load());
    if (shared.failed.load() || shared.finished.load() >= workers) return false;
    const auto passed = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds > 0 && passed >= seconds) return true;
    const double rest = seconds > 0 ? seconds - passed : 0.02;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(rest, 0.02)));
  }
}

uint64_t ServerCpu(const LoadOptions& options) {
  if (options.server_pid <= 0) return 0;
  auto cpu = ProcessCpuNs(options.server_pid);
  return cpu.ok() ? *cpu : 0;
}

void Conduct(const LoadOptions& options, unsigned workers, Shared* shared, LoadResult* result) {
  while (shared->ready.load() < workers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  bool working = !shared->failed.load();
  const bool timed = options.seconds > 0;
  if (working && timed && options.warmup_s > 0) {
    shared->phase.store(Phase::kWarmup);
    working = SleepWhileWorking(options, *shared, workers, options.warmup_s);
  }
  const uint64_t cpu_before = ServerCpu(options);
  const auto start = Clock::now();
  shared->phase.store(Phase::kMeasure);
  if (working) SleepWhileWorking(options, *shared, workers, timed ? options.seconds : 0);
  result->server_cpu_ns = ServerCpu(options) - cpu_before;
  result->seconds = std::chrono::duration<double>(Clock::now() - start).count();
  shared->phase.store(Phase::kStop);
}

}  // namespace

Result<LoadResult> RunLoad(const LoadOptions& options, const SourceFactory& make_source) {
  const unsigned count = std::max(1U, std::min(options.threads, options.clients));
  Shared shared;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned connections = options.clients / count + (i < options.clients % count ? 1 : 0);
    workers.push_back(std::make_unique<Worker>(options, i, connections, &shared, make_source(i)));
  }
  for (auto& worker : workers) threads.emplace_back([&worker] { worker->Run(); });
  LoadResult result;
  Conduct(options, count, &shared, &result);
  for (auto& thread : threads) thread.join();
  for (const auto& worker : workers) {
    if (!worker->status().ok()) return worker->status();
    worker->AddTo(&result);
  }
  return result;
}

}  // namespace hotkv
