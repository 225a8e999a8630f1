// Executor: runs one command - checks, keys, locks, handler, commit - and MULTI/EXEC. The server's session calls
// Dispatch for every parsed command, in pipeline order.
//
// Thread rules: the worker's own thread, inside the stop gate and with the reclaim slot pinned only during prefetch.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/reply.h"
#include "engine/commands/command_spec.h"
#include "engine/tx/client_state.h"

namespace hotkv {

class Engine;
struct WorkerState;

struct DispatchResult {
  enum class Kind : uint8_t {
    kDone,
    kRetry,  // nothing was done (the log is behind, or another thread has work to do first): call again later, and no
             // later command of this client before
  };
  Kind kind = Kind::kDone;
  bool waits_for_job = false;  // kRetry: not for the log
  uint64_t hold_epoch = 0;  // under appendfsync always the reply waits until this epoch is durable
  const CommandSpec* spec = nullptr;  // what ran (the subcommand); null for an unknown command
  uint64_t run_ns = 0;      // without blocked_ns
  uint64_t blocked_ns = 0;  // waiting for stripes' locks and for other workers to stop
};

class Executor {
 public:
  Executor(Engine* engine, WorkerState* worker) : engine_(engine), worker_(worker) {}

  // Looks the command up (container and subcommand) without running it: for the prefetch passes. Null when unknown.
  const CommandSpec* Lookup(Args args) const;
  // First key of a call for the prefetch passes; false when there is none.
  static bool FirstKey(const CommandSpec& spec, Args args, std::string_view* key);

  // spec: as Lookup gave it (null: unknown). Answers errors for unknown commands, arity, loading, MISCONF, OOM; queues
  // inside MULTI. Authentication is the session's.
  DispatchResult Dispatch(ClientState& client, const CommandSpec* spec, Args args, ReplyWriter& reply);

  // Adds the worker's finished runs to its counters; Dispatch does when there is no room for one more.
  void CountFinished();

  // The handlers of MULTI, EXEC, DISCARD (transactions family) work through these.
  static void Exec(class CommandContext& ctx);

  // Key indexes of a call; false on a malformed one.
  static bool KeysOf(const CommandSpec& spec, Args args, std::vector<uint32_t>* indexes);

 private:
  bool HasMemory();
  bool Refuse(ClientState& client, const CommandSpec& spec, Args args, ReplyWriter& reply);
  void Reject(ClientState& client, const CommandSpec* spec, std::string_view text, ReplyWriter& reply);
  void RejectExec(ClientState& client, std::string_view text, ReplyWriter& reply);
  void RejectUnknown(ClientState& client, Args args, ReplyWriter& reply);
  void Queue(ClientState& client, const CommandSpec& spec, Args args, ReplyWriter& reply);
  DispatchResult Run(ClientState& client, const CommandSpec& spec, Args args, ReplyWriter& reply);
  bool MustWait(const CommandSpec& spec, const ClientState& client) const;

  Engine* const engine_;
  WorkerState* const worker_;
};

}  // namespace hotkv
