// ClientState: what the engine knows of a client between commands. The server's session extends it.
//
// Thread rules: owned by the worker that owns the connection, except WatchState, which is atomic.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/keyspace.h"

namespace hotkv {

struct CommandSpec;

// A command queued by MULTI; the bytes are copied, since the receive buffer goes on.
struct QueuedCommand {
  const CommandSpec* spec = nullptr;
  std::string bytes;
  std::vector<uint32_t> lengths;  // of the arguments, which lie in `bytes` one after the other
};

struct WatchedKey {
  uint32_t db = 0;
  std::string key;
  bool was_expired = false;  // past its time already when WATCH saw it: its removal changes nothing
};

// What a prepare step hands to its handler; freed at the end of the command.
class PreparedState {
 public:
  virtual ~PreparedState() = default;
};

class ClientState {
 public:
  virtual ~ClientState() = default;

  uint64_t id = 0;
  uint32_t db = 0;
  bool authenticated = true;
  bool in_multi = false;
  bool multi_broken = false;  // a command failed to queue: EXEC answers EXECABORT
  bool in_exec = false;
  bool exec_finished = false;  // EXEC or DISCARD ran: watches are dropped once the locks are
  std::vector<QueuedCommand> queue;
  size_t queue_bytes = 0;
  std::shared_ptr<WatchState> watch;  // null: nothing watched
  std::vector<WatchedKey> watched;
  uint64_t last_write_epoch = 0;  // of this client's last commit; WAITAOF waits for it
  // Of a command that is to be called again; dropped when it has been answered, or with the client.
  std::unique_ptr<PreparedState> pending;
};

}  // namespace hotkv
