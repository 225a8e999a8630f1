// CommandSpec: one command as data. It feeds dispatch, arity checks, COMMAND, ACL categories, statistics, the docs page
// and the fuzzer's dictionary.
//
// A family lists its commands in one constexpr array in its file; command_list.cc joins the families. Subcommands are
// specs of their own inside their container ("config|get").
//
// Thread rules: constant data.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "engine/commands/command_docs.h"

namespace hotkv {

class CommandContext;

using Args = std::span<const std::string_view>;  // args[0] is the command's name (args[1] the subcommand's)

namespace command_flag {
inline constexpr uint32_t kWrite = 1u << 0;
inline constexpr uint32_t kReadOnly = 1u << 1;
inline constexpr uint32_t kDenyOom = 1u << 2;
inline constexpr uint32_t kAdmin = 1u << 3;
inline constexpr uint32_t kPubSub = 1u << 4;
inline constexpr uint32_t kNoScript = 1u << 5;
inline constexpr uint32_t kBlocking = 1u << 6;
inline constexpr uint32_t kLoading = 1u << 7;  // allowed while the data is being loaded
inline constexpr uint32_t kStale = 1u << 8;
inline constexpr uint32_t kSkipMonitor = 1u << 9;
inline constexpr uint32_t kSkipSlowlog = 1u << 10;
inline constexpr uint32_t kFast = 1u << 11;
inline constexpr uint32_t kNoAuth = 1u << 12;
inline constexpr uint32_t kMayReplicate = 1u << 13;
inline constexpr uint32_t kNoAsyncLoading = 1u << 14;
inline constexpr uint32_t kNoMulti = 1u << 15;
inline constexpr uint32_t kMovableKeys = 1u << 16;
inline constexpr uint32_t kAllowBusy = 1u << 17;
// HotKV's own, not shown by COMMAND:
inline constexpr uint32_t kWholeKeyspace = 1u << 24;  // runs with every other worker stopped
inline constexpr uint32_t kImmediateInMulti = 1u << 25;  // EXEC, DISCARD, WATCH, ...: never queued
}  // namespace command_flag

namespace acl_category {
inline constexpr uint32_t kKeyspace = 1u << 0;
inline constexpr uint32_t kRead = 1u << 1;
inline constexpr uint32_t kWrite = 1u << 2;
inline constexpr uint32_t kString = 1u << 3;
inline constexpr uint32_t kFast = 1u << 4;
inline constexpr uint32_t kSlow = 1u << 5;
inline constexpr uint32_t kAdmin = 1u << 6;
inline constexpr uint32_t kDangerous = 1u << 7;
inline constexpr uint32_t kConnection = 1u << 8;
inline constexpr uint32_t kTransaction = 1u << 9;
inline constexpr uint32_t kBlocking = 1u << 10;
inline constexpr uint32_t kVector = 1u << 11;
inline constexpr uint32_t kPubSub = 1u << 12;
inline constexpr uint32_t kScripting = 1u << 13;
}  // namespace acl_category

struct KeyRange {
  int first = 0;  // index of the first key in args; 0: no keys
  int last = 0;   // negative: counted from the end
  int step = 0;
};

using Handler = void (*)(CommandContext&);
// Appends the indexes of args that are keys; false on a malformed call (the handler then answers the error). For
// commands whose keys are not a plain range.
using GetKeys = bool (*)(Args args, std::vector<uint32_t>* indexes);

struct CommandSpec {
  std::string_view name = {};  // lower case
  int arity = 0;          // as in Redis: with the name; negative: at least
  uint32_t flags = 0;
  uint32_t acl = 0;
  KeyRange keys = {};
  Handler handler = nullptr;
  // Runs before any lock is taken (decoding large input, the first half of a vector insert). It may answer an error and
  // set ctx.finished. In EXEC it runs right before the handler, under the locks.
  Handler prepare = nullptr;
  GetKeys get_keys = nullptr;
  std::span<const CommandSpec> subcommands = {};
  std::string_view group = "";
  std::string_view since = "";
  std::string_view summary = "";
  std::string_view complexity = "";
  // For COMMAND INFO and COMMAND DOCS.
  std::span<const KeySpec> key_specs = {};
  std::string_view tips = "";  // separated by blanks: "request_policy:multi_shard response_policy:agg_sum"
  std::string_view deprecated_since = "";
  std::string_view replaced_by = "";  // with deprecated_since, in Markdown
  std::span<const ArgumentSpec> arguments = {};
  uint32_t id = 0;  // given by the CommandTable

  bool Has(uint32_t flag) const { return (flags & flag) != 0; }
  bool ArityFits(size_t count) const {
    return arity >= 0 ? count == static_cast<size_t>(arity) : count >= static_cast<size_t>(-arity);
  }
};

// Families, joined by the CommandTable. Each defined in its family's file.
std::span<const CommandSpec> StringCommands();
std::span<const CommandSpec> GenericCommands();
std::span<const CommandSpec> TransactionCommands();
std::span<const CommandSpec> VectorCommands();

// All commands of a process, with a number each (for statistics). Built once at start from the engine's families and
// the server's; constant afterwards.
class CommandTable {
 public:
  explicit CommandTable(std::span<const std::span<const CommandSpec>> families);

  // Name in any case; null when there is no such command. The container for a command with subcommands.
  const CommandSpec* Find(std::string_view name) const;
  // The subcommand of a container, or null.
  const CommandSpec* FindSub(const CommandSpec& container, std::string_view name) const;
  // Specs handed out are the table's own copies, whose `id` is below count().
  uint32_t count() const { return static_cast<uint32_t>(all_.size()); }
  const CommandSpec& at(uint32_t id) const { return *all_[id]; }  // containers and subcommands alike
  std::span<const CommandSpec* const> top_level() const { return top_; }

 private:
  static constexpr size_t kPlaces = 4096;  // about 300 commands: a probe seldom meets another name
  std::deque<CommandSpec> specs_;                   // stable addresses
  std::deque<std::vector<CommandSpec>> subcommands_;
  std::vector<const CommandSpec*> all_;
  std::vector<const CommandSpec*> top_;
  // Open addressing by a hash of the case-folded name.
  struct Place {
    const CommandSpec* spec = nullptr;
    uint64_t head = 0;  // of the name: its first and last eight bytes
    uint64_t tail = 0;
    size_t size = 0;
    bool exact = false;  // these settle it
  };
  std::vector<Place> places_;
};

}  // namespace hotkv
