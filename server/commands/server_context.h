// What the command handlers of this folder need from the server around them, as abstract classes: clients, settings,
// persistence, statistics. The server implements ServerContext, its session implements ServerClient; tests use fakes.
//
// Everything that a handler gets from here is a copy or constant after start: clients belong to other workers.
//
// Thread rules: ServerContext's functions may be called by any worker at any time, with stripe locks held: they never
// wait for another worker, for a disk or for a stripe. What takes long is begun here and asked for again by a
// DeferredReply. ServerClient's functions: only by the worker that runs the client's command.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/reply.h"
#include "engine/base/result.h"
#include "engine/tx/client_state.h"
#include "server/commands/command_recorder.h"

namespace hotkv {

class ServerContext;

// The Redis release that we follow; clients decide by it.
inline constexpr std::string_view kRedisVersion = "8.4.0";
inline constexpr std::string_view kDefaultUser = "default";

// One connection as CLIENT LIST and CLIENT KILL see it.
struct ClientInfo {
  enum class Type : uint8_t { kNormal, kMaster, kReplica, kPubSub };
  uint64_t id = 0;
  Type type = Type::kNormal;
  std::string addr;   // "127.0.0.1:50000", "[::1]:50000", "/path/of/socket:0"
  std::string laddr;
  int fd = -1;
  std::string name;
  int64_t created_ms = 0;
  int64_t last_interaction_ms = 0;
  std::string flags = "N";  // Redis's letters
  uint32_t db = 0;
  uint64_t subscriptions = 0;
  uint64_t pattern_subscriptions = 0;
  uint64_t shard_subscriptions = 0;
  int64_t multi_queued = -1;  // -1: not inside MULTI
  uint64_t watched = 0;
  uint64_t query_bytes = 0;  // received and not executed yet
  uint64_t query_free_bytes = 0;
  uint64_t argument_bytes = 0;
  uint64_t multi_bytes = 0;
  uint64_t output_bytes = 0;  // replies not sent yet
  uint64_t output_blocks = 0;
  uint64_t total_bytes = 0;  // of memory, all of the above included
  bool reads = true;         // events
  bool writes = false;
  std::string last_command = "NULL";  // "client|list"
  std::string user{kDefaultUser};
  int resp_version = 2;
  std::string lib_name;
  std::string lib_version;
  unsigned worker = 0;
  uint64_t net_input_bytes = 0;
  uint64_t net_output_bytes = 0;
  uint64_t commands = 0;
};

class ServerClient;

// An answer that comes later. The client is parked: none of its later commands run before.
class DeferredReply {
 public:
  virtual ~DeferredReply() = default;
  // Writes the whole reply and returns true once it is there; else it is asked again. Called by the client's worker
  // with no lock held: whenever the log's watermark has moved, and every few milliseconds.
  virtual bool TryAnswer(ServerClient& client, ReplyWriter& reply) = 0;
  // True: the client counts as blocked and CLIENT UNBLOCK ends the wait.
  virtual bool blocks_client() const = 0;
  // CLIENT UNBLOCK ... TIMEOUT: the reply of a wait that is over.
  virtual void AnswerTimeout(ReplyWriter& reply) = 0;
};

enum class ReplyMode : uint8_t { kOn, kOff, kSkipNext };

class ServerClient : public ClientState {
 public:
  virtual ServerContext& server() = 0;
  // As it is now, with what only the owner knows.
  virtual ClientInfo Describe() = 0;

  virtual std::string name() const = 0;  // empty: none
  virtual void SetName(std::string_view name) = 0;
  virtual void SetLibName(std::string_view name) = 0;
  virtual void SetLibVersion(std::string_view version) = 0;
  // Replies of this client from the next one on; the handler changes its own writer too.
  virtual void SetProtocol(int resp_version) = 0;
  // The client has given the right password; small-request limits end.
  virtual void SetAuthenticated(bool authenticated) = 0;
  virtual void SetReplyMode(ReplyMode mode) = 0;
  virtual void SetNoEvict(bool on) = 0;
  virtual void SetNoTouch(bool on) = 0;
  virtual void CloseAfterReply() = 0;
  // Connected over loopback or a Unix socket: what `local` in enable-debug-command asks for.
  virtual bool IsLocal() const = 0;
  // What RESET undoes and the engine does not know of: MONITOR, subscriptions, tracking, reply mode, flags.
  virtual void ResetConnection() = 0;
  // The running command answers later. Not inside EXEC or a script, where nothing may wait.
  virtual void Defer(std::unique_ptr<DeferredReply> deferred) = 0;
};

// Constant after start.
struct ServerIdentity {
  std::string hotkv_version;
  std::string build_id;
  std::string run_id;          // 40 hex digits, new at each start
  std::string replication_id;  // 40 hex digits, kept with the data
  std::string executable;
  std::string config_file;
  std::string io_backend;          // "uring" or "epoll"
  std::string multiplexing_api;    // what Redis calls it
  std::string kernels;             // distance kernels in use: "avx512-vnni", "avx2", ...
  int tcp_port = 0;
  std::vector<std::string> listeners;  // "name=tcp,bind=127.0.0.1,port=6379"
  int64_t start_time_ms = 0;
  unsigned workers = 1;
  uint64_t total_system_memory = 0;
};

// Sums over all workers at one moment.
struct ServerStatistics {
  uint64_t clients = 0;
  uint64_t blocked_clients = 0;
  uint64_t watching_clients = 0;
  uint64_t watched_keys = 0;
  uint64_t pubsub_clients = 0;
  uint64_t max_clients = 0;
  uint64_t input_buffer_max = 0;
  uint64_t output_buffer_max = 0;
  uint64_t client_bytes = 0;

  uint64_t connections_received = 0;
  uint64_t connections_rejected = 0;
  uint64_t net_input_bytes = 0;
  uint64_t net_output_bytes = 0;
  uint64_t reads = 0;   // calls that brought bytes
  uint64_t writes = 0;
  uint64_t query_limit_disconnections = 0;
  uint64_t output_limit_disconnections = 0;
  uint64_t turns = 0;             // of all workers
  uint64_t auth_failures = 0;
  double commands_per_second = 0;  // of the last seconds
  double input_kbps = 0;
  double output_kbps = 0;

  uint64_t evicted_keys = 0;
  uint64_t evicted_clients = 0;
  uint64_t max_memory = 0;
  std::string max_memory_policy = "noeviction";
  uint64_t used_memory = 0;       // what maxmemory is compared with
  uint64_t used_memory_peak = 0;
  uint64_t used_memory_startup = 0;
};

struct PersistenceStatus {
  bool loading = false;
  double loading_percent = 100;       // of stripes and objects resident
  int64_t loading_start_ms = 0;
  bool log_on = false;                // appendonly
  std::string fsync_policy;           // "always", "everysec", "no"
  std::string log_error;              // empty: fine
  uint64_t log_bytes = 0;             // in the segments' files
  uint64_t log_base_bytes = 0;        // at the last snapshot
  uint64_t log_buffered_bytes = 0;    // not written yet
  uint64_t log_segments = 0;
  uint64_t log_syncs = 0;
  uint64_t log_slow_syncs = 0;
  bool snapshot_running = false;
  bool snapshot_is_rewrite = false;   // asked for by BGREWRITEAOF
  bool snapshot_scheduled = false;
  int64_t snapshot_started_ms = 0;
  double snapshot_percent = 0;
  uint64_t snapshots = 0;             // completed since start
  bool last_snapshot_ok = true;
  std::string last_snapshot_error;
  int64_t last_save_ms = 0;           // when the newest snapshot became live, or start
  int64_t last_snapshot_seconds = -1;
  uint64_t changes_since_save = 0;
};

enum class SnapshotKind : uint8_t { kSave, kBackgroundSave, kRewrite };
enum class SnapshotState : uint8_t { kRunning, kDone, kFailed };

struct ShutdownOptions {
  enum class Save : uint8_t { kDefault, kSave, kNoSave };
  Save save = Save::kDefault;
  bool now = false;
  bool force = false;
};
enum class ShutdownState : uint8_t { kNone, kRunning, kFailed };

class ServerContext {
 public:
  virtual ~ServerContext() = default;

  virtual const ServerIdentity& identity() const = 0;
  virtual CommandRecorder& recorder() = 0;

  // --- clients ---
  virtual std::vector<ClientInfo> ListClients() = 0;  // in order of id
  virtual bool KillClient(uint64_t id) = 0;           // false: gone already
  enum class PauseMode : uint8_t { kWrite, kAll };
  virtual void PauseClients(PauseMode mode, int64_t until_ms) = 0;
  virtual void UnpauseClients() = 0;
  // False when the client is not there or not blocked.
  enum class UnblockReason : uint8_t { kTimeout, kError };
  virtual bool UnblockClient(uint64_t id, UnblockReason reason) = 0;

  // --- access ---
  virtual bool PasswordRequired() = 0;
  // Compares in constant time and counts failures.
  virtual bool CheckPassword(std::string_view user, std::string_view password) = 0;

  // --- settings ---
  using Setting = std::pair<std::string, std::string>;
  // Settings whose name matches the pattern, in any case.
  virtual std::vector<Setting> GetConfig(std::string_view pattern) = 0;
  // All or none. The message is the whole reply after "ERR ".
  virtual Status SetConfig(std::span<const std::pair<std::string_view, std::string_view>> settings) = 0;
  virtual Status RewriteConfig() = 0;
  virtual void ResetStatistics() = 0;
  enum class DebugCommands : uint8_t { kNo, kYes, kLocal };
  virtual DebugCommands debug_commands() = 0;

  // --- persistence ---
  virtual PersistenceStatus GetPersistenceStatus() = 0;
  // A number to ask for with GetSnapshot; kBusy while another one runs (kRewrite and schedule then queue it).
  virtual Result<uint64_t> BeginSnapshot(SnapshotKind kind) = 0;
  virtual void ScheduleSnapshot(SnapshotKind kind) = 0;  // once the running one is over
  virtual SnapshotState GetSnapshot(uint64_t number) = 0;
  // The log writer syncs what there is now, not at the next second.
  virtual void RequestLogSync() = 0;
  // DEBUG RELOAD and LOADAOF: empties the keyspace and loads it from the newest snapshot and the log, in place, with
  // every other worker stopped. The caller holds the whole keyspace.
  virtual Status ReloadKeyspace() = 0;
  virtual Status ChangeReplicationId() = 0;

  // --- end ---
  virtual void BeginShutdown(const ShutdownOptions& options) = 0;
  virtual ShutdownState GetShutdown() = 0;
  virtual bool AbortShutdown() = 0;  // false: none is running

  virtual ServerStatistics GetStatistics() = 0;
};

}  // namespace hotkv
