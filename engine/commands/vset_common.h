// What the VSIM.* and the V* commands share: finding the vector set behind a key, making a new one, parts of replies.
//
// Lookups run in the prepare step, without a stripe lock, on a reference to the set; FetchVectorSet takes that lock for a
// moment only. In EXEC all locks are held anyway.
// Thread rules: the executing worker's thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/commands/command_context.h"
#include "engine/types/vector_set.h"

namespace hotkv {

class VectorArgs;

using VectorSetRef = ObjectRef<VectorSet>;

// The set that the entry links to; empty when it is of another type.
VectorSetRef VectorSetOf(const Entry* entry);

struct FetchedVectorSet {
  VectorSetRef set;
  bool wrong_type = false;  // the key holds something else
};
FetchedVectorSet FetchVectorSet(CommandContext& ctx);

// The index of a VSIM.* command's key; without one, or with another type there, the error is answered and the result is
// null. IndexOf: under the lock. FetchIndex: in the prepare step, which is then finished. IndexForLookup: the same for a
// command that the prepare step answers in any case.
inline constexpr std::string_view kNoIndex = "ERR no such index";
VectorSetRef IndexOf(CommandContext& ctx);
VectorSetRef FetchIndex(CommandContext& ctx);
VectorSetRef IndexForLookup(CommandContext& ctx);

// A lookup counts with its stripe's epoch at its end: what it has seen must be durable before it is told.
void TouchKeysStripe(CommandContext& ctx);

// A set with a folder of its own, where there is persistence; not linked yet. Without a lock of a stripe, or in EXEC.
Result<VectorSet*> MakeVectorSet(Engine& engine, const VectorSetDefinition& definition);
// Gives up one that was not linked, after everything that refers to its index.
void DropUnlinked(Engine& engine, VectorSetRef* set);
// Links a new one to the command's key, which does not exist.
void LinkVectorSet(CommandContext& ctx, VectorSetRef set);

// Drops the key when nothing is left of a set that was not declared.
void DeleteIfEmptied(CommandContext& ctx, const VectorSet& set);

// Reads EX s, PX ms, EXAT t or PXAT t, if one comes next; false when none does. Errors are args'.
bool ParseLife(const CommandContext& ctx, VectorArgs* args, int64_t* expire_at_ms);

// Notes and records a change that has been made.
void RecordChange(CommandContext& ctx, VectorSet& set, std::string_view change);

// Answers an error in the prepare step.
void FinishWithError(CommandContext& ctx, std::string_view error);
// The same under the locks.
void AnswerError(CommandContext& ctx, std::string_view error);
// "ERR ..."; of a disk "MISCONF ..." with the file's name, and whoever answers that makes the server read-only.
std::string ErrorText(const Status& status);

// The nearest number to the float's shortest text, not to the float: 0.3, not 0.30000001192092896.
double AsShortest(float value);
std::string_view BlobOf(const std::vector<float>& vector);
void ReplyVector(ReplyWriter& reply, const std::vector<float>& vector, bool raw);

// What EXPLAIN answers for a search; `matches`: elements that match its filter.
void ReplySearchReport(ReplyWriter& reply, const SearchReport& report, uint64_t matches);

// The handler of a command that its prepare step always answers.
void AnsweredByPrepare(CommandContext& ctx);

// The specs of families in files of their own, appended to VectorCommands.
void AppendVectorSetCommands(std::vector<CommandSpec>* specs);    // V*
void AppendFilterCommands(std::vector<CommandSpec>* specs);       // VSIM.COUNT, DELWHERE, SCAN
void AppendRebuildCommand(std::vector<CommandSpec>* specs);     // VSIM.REBUILD
void AppendElementCommands(std::vector<CommandSpec>* specs);      // VSIM.SETATTR, GETATTR, EXPIRE, TTL, ALTER

}  // namespace hotkv
