// CommandContext: what a handler sees while its command runs. It reads args, works on the keyspace through txn, and
// writes exactly one reply.
//
// Handlers are two parts: parse (args to values, errors answered at once) and operation (works on txn).
// Thread rules: lives on the executing worker's stack.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/base/reply.h"
#include "engine/commands/command_spec.h"
#include "engine/tx/client_state.h"
#include "engine/tx/txn.h"

namespace hotkv {

class Engine;
struct WorkerState;

class CommandContext {
 public:
  Engine& engine;
  WorkerState& worker;
  ClientState& client;
  const CommandSpec& spec;
  Args args;
  ReplyWriter& reply;
  Txn& txn;
  std::span<const KeyRef> keys;  // the command's keys in the order of its arguments
  std::unique_ptr<PreparedState> prepared;
  bool finished = false;  // prepare has answered; the handler is not called
  // prepare has left work to another thread (its state is client.pending): the command is called again
  // later, and nothing of it has been done. Not in EXEC.
  bool retry = false;

  size_t argc() const { return args.size(); }
  std::string_view arg(size_t i) const { return args[i]; }
  const KeyRef& key(size_t i = 0) const { return keys[i]; }  // i-th key, not i-th argument
  int64_t now_ms() const { return txn.now_ms(); }
  uint32_t db() const { return client.db; }

  // Entry of the command's i-th key in the client's database; null when missing or expired.
  Entry* Find(size_t i = 0) { return txn.Find(client.db, keys[i]); }
  // As Find, but answers WRONGTYPE and sets *wrong when the entry is no string.
  Entry* FindString(size_t i, bool* wrong);

  // Case-insensitive comparison of an argument with an upper-case keyword.
  bool Is(size_t i, std::string_view upper) const;
  // Answers "ERR value is not an integer or out of range" and returns false when the argument is none.
  bool ParseInt(size_t i, int64_t* value);
  void SyntaxError();  // ERR syntax error
  void WrongType();    // WRONGTYPE Operation against a key holding the wrong kind of value
};

// True when `text`, in any case, is `upper`.
bool EqualsIgnoreCase(std::string_view text, std::string_view upper);

}  // namespace hotkv
