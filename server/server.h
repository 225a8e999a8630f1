// Server: everything of a running process in one place - settings, engine, workers, clients,
// statistics. Handlers of the server's own commands reach it through Client::server().
//
// Thread rules: members are constant after Start or say how they are guarded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "server/commands/client_pause.h"
#include "server/commands/command_recorder.h"
#include "server/commands/pending_shutdown.h"
#include "server/commands/server_gauges.h"
#include "server/config/config.h"
#include "server/durability.h"
#include "server/net/event_loop.h"
#include "server/net/listener.h"
#include "server/session/client_registry.h"

namespace hotkv {

class Engine;
class Worker;

// Counters that are not one worker's; relaxed.
struct ServerStats {
  std::atomic<uint64_t> connections_received{0};
  std::atomic<uint64_t> connections_rejected{0};
  std::atomic<uint64_t> query_buffer_limit_disconnections{0};
  std::atomic<uint64_t> output_buffer_limit_disconnections{0};
  std::atomic<uint64_t> net_input_bytes{0};
  std::atomic<uint64_t> net_output_bytes{0};
  std::atomic<uint64_t> acl_access_denied_auth{0};
  std::atomic<uint64_t> peak_clients{0};
};

enum class ShutdownSave : uint8_t { kAsConfigured, kSave, kNoSave };

// What the setting `io` asks for.
IoBackend BackendOf(const Settings& settings);

class Server {
 public:
  Server(Config* config, Engine* engine);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Null while the data is being loaded, and in servers that keep nothing on disk.
  void SetDurability(DurabilityControl* durability) {
    durability_.store(durability, std::memory_order_release);
  }
  DurabilityControl* durability_or_null() const {
    return durability_.load(std::memory_order_acquire);
  }

  // Starts the workers, and listens on these sockets (of BindSockets; closed when it fails).
  Status StartOn(std::vector<ListenSocket> sockets);
  // Any thread. The thread that called StartOn sees it by shutdown_fd (an eventfd) and calls Stop.
  void RequestShutdown(ShutdownSave save);
  // Stops the server once the snapshot that a SHUTDOWN waits for has ended. Any thread.
  void AdvanceShutdown();
  bool shutting_down() const { return shutting_down_.load(std::memory_order_acquire); }
  int shutdown_fd() const { return shutdown_fd_; }
  // Takes a last snapshot where one is due, lets replies go out, ends workers and log. False when
  // the snapshot failed and the server goes on (the next request is obeyed whatever happens).
  bool Stop();

  Config& config() { return *config_; }
  Engine& engine() { return *engine_; }
  ClientRegistry& clients() { return clients_; }
  ServerStats& stats() { return stats_; }
  CommandRecorder& recorder() { return recorder_; }  // slow log, latencies, errors
  ClientPause& pause() { return pause_; }
  PendingShutdown& pending_shutdown() { return pending_shutdown_; }
  ServerGauges& gauges() { return gauges_; }
  const std::string& run_id() const { return run_id_; }
  int64_t started_ms() const { return started_ms_; }
  unsigned worker_count() const { return static_cast<unsigned>(workers_.size()); }
  Worker& worker(unsigned i) { return *workers_[i]; }
  uint16_t tcp_port() const {
    return tcp_port_;
  }                             // the one really bound, where port 0 was asked for in a test
  std::string io_name() const;  // "io_uring" or "epoll"
  std::string listening_on() const;
  // As maxclients, but never more than the machine's limits allow.
  void SetMaxClients(int64_t possible) {
    clients_possible_.store(possible, std::memory_order_relaxed);
  }
  int64_t MaxClients() const;

  // A password is needed before other commands (requirepass, or a default user with one).
  bool AuthRequired() const { return auth_required_.load(std::memory_order_relaxed); }
  // AUTH; false: WRONGPASS.
  bool Authenticate(std::string_view user, std::string_view password) const;

  // Closes a client wherever it lives; takes effect a moment later. False when there is none.
  bool KillClient(uint64_t id);
  // CLIENT UNBLOCK: ends the wait of a parked client, by its deadline's answer or by an error.
  // False when there is no such client or it does not wait in a blocking command.
  bool UnblockClient(uint64_t id, bool with_error);
  // Runs on the worker that owns the client, if it still lives then. Any thread.
  void RunOnClient(uint64_t id, std::function<void(Client&)> call);
  // Called by the log writer when the durable epoch has moved or writes may go on.
  void OnDurable();
  // There is work that workers do between turns (a snapshot's stripes). Any thread.
  void WakeWorkers();

  // Ten times a second, by the first worker.
  void Tick(int64_t now_ms);
  void ConnectionEnded() { connections_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  void ApplySettings(const Settings& settings);
  void ListenForChanges();
  Status Rebind(const Settings& before, const Settings& after);
  void OnAccepted(Accepted accepted);
  bool TakeLastSnapshot();
  void FollowClock(int64_t now_ms);

  Config* const config_;
  Engine* const engine_;
  std::atomic<DurabilityControl*> durability_{nullptr};
  ClientRegistry clients_;
  ServerStats stats_;
  CommandRecorder recorder_{*engine_};
  ClientPause pause_;
  PendingShutdown pending_shutdown_;
  ServerGauges gauges_{*this};
  std::string run_id_;
  int64_t started_ms_ = 0;
  uint16_t tcp_port_ = 0;
  std::atomic<bool> auth_required_{false};
  std::atomic<bool> shutting_down_{false};
  std::atomic<ShutdownSave> shutdown_save_{ShutdownSave::kAsConfigured};
  bool shutdown_failed_once_ = false;  // of the thread that calls Stop
  int shutdown_fd_ = -1;
  std::atomic<int64_t> clients_possible_{INT64_MAX};
  std::atomic<size_t> connections_{0};  // accepted and not ended
  int64_t clock_apart_since_ms_ = 0;    // of the first worker
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace hotkv
