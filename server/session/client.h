// Client: a connection with its session - protocol version, user, names, reply mode, transactions
// (ClientState).
//
// Thread rules: owned by its worker's thread. Others may look at `shared` (atomics) and, under its
// mutex, at the texts in it, while they hold the ClientRegistry's lock: that is what CLIENT LIST
// and CLIENT KILL use.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/base/reply.h"
#include "engine/base/resp.h"
#include "engine/tx/client_state.h"
#include "server/net/connection.h"

namespace hotkv {

class Server;
class Worker;
struct CommandSpec;
enum class WaitCause : uint8_t;

enum class ReplyMode : uint8_t { kOn, kOff, kSkipNext };

// What other threads may see of a client. Written by its worker once a batch, not once a command.
struct ClientShared {
  std::atomic<uint32_t> db{0};
  std::atomic<uint32_t> resp_version{2};
  std::atomic<int64_t> last_active_ms{0};
  std::atomic<const CommandSpec*> last_command{nullptr};
  std::atomic<uint64_t> commands{0};
  std::atomic<uint64_t> query_bytes{0};
  std::atomic<uint64_t> query_free_bytes{0};
  std::atomic<uint64_t> output_bytes{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> bytes_sent{0};
  std::atomic<int64_t> multi_queued{-1};  // -1: not in MULTI
  std::atomic<uint64_t> multi_bytes{0};
  std::atomic<uint32_t> watched_keys{0};
  std::atomic<uint32_t> subscriptions{0};
  std::atomic<uint32_t> pattern_subscriptions{0};
  std::atomic<uint32_t> shard_subscriptions{0};
  std::atomic<bool> parked{false};
  std::atomic<bool> monitor{false};
  std::atomic<bool> no_evict{false};
  std::atomic<bool> no_touch{false};

  std::mutex mutex;
  std::string name;              // guarded by mutex
  std::string lib_name;          // guarded by mutex
  std::string lib_version;       // guarded by mutex
  std::string user = "default";  // guarded by mutex
};

class Client final : public ClientState, public Connection {
 public:
  Client(Server* server, Worker* worker, int socket, BlockPool* pool)
      : Connection(socket, pool), server_(server), worker_(worker), reply(&out) {}

  static Client& Of(ClientState& state) { return static_cast<Client&>(state); }
  static Client& Of(Connection& connection) { return static_cast<Client&>(connection); }

  Server& server() const { return *server_; }
  Worker& worker() const { return *worker_; }

  // Constant after the connection was adopted.
  std::string peer_address;  // "127.0.0.1:51234" or "/path/to/socket:0"
  std::string local_address;
  bool is_unix = false;
  bool is_local = false;  // a Unix socket or a loopback address
  int64_t created_ms = 0;

 private:
  Server* const server_;
  Worker* worker_;

 public:
  ReplyWriter reply;
  RequestParser parser;
  ClientShared shared;
  ReplyMode reply_mode = ReplyMode::kOn;
  bool no_touch = false;           // CLIENT NO-TOUCH: its commands leave access clocks alone
  bool close_after_reply = false;  // QUIT, protocol errors
  bool closing = false;            // removed at the end of the worker's present step
  uint64_t commands = 0;
  int64_t last_active_ms = 0;
  const CommandSpec* last_command = nullptr;
  int64_t output_soft_since_ms = 0;  // when the soft limit was passed, 0: it is not

  // Parks the client with its later commands: no further command of it runs until `done` returns
  // true. `done` is asked at least every 10 ms and whenever the log's durable epoch moves; it
  // writes the reply. At the deadline (0: none) it is asked with expired = true and must then
  // answer. To be called from a handler, which then writes nothing itself, and not inside EXEC or a
  // script.
  enum class ParkKind : uint8_t { kBlocking, kInternal };  // CLIENT UNBLOCK ends only the first
  void Park(std::function<bool(Client&, bool expired)> done, int64_t deadline_ms,
            ParkKind kind = ParkKind::kBlocking);

  // --- the worker's own ---
  int socket_number = -1;      // as CLIENT LIST shows it; constant
  size_t worker_index = 0;     // in the worker's list
  bool in_backlog = false;     // has requests left of an earlier turn
  bool waits = false;          // its next command waits for the log or the end of a pause
  int64_t waits_since_ns = 0;  // monotonic; 0: that command has not waited
  WaitCause wait_cause{};      // of the last wait
  bool parked = false;
  bool peer_closed = false;  // closed once what it sent has been executed and answered
  ParkKind park_kind = ParkKind::kBlocking;
  std::function<bool(Client&, bool expired)> parked_on;
  int64_t parked_deadline_ms = 0;
  // Replies from `begin` on in the stream wait until `epoch` is durable.
  struct Hold {
    uint64_t begin;
    uint64_t epoch;
    int64_t since_ns;
  };
  std::deque<Hold> holds;
  uint64_t held_replies = 0;  // since the first hold began
  bool in_holding = false;
  uint64_t counted_received = 0;  // bytes that are in the worker's counters already
  uint64_t counted_sent = 0;
};

}  // namespace hotkv
