// Handlers of the string commands; string_commands_table.cc says what each command is. Private to
// this family.
//
// Thread rules: as CommandContext.
#pragma once

#include "engine/commands/command_context.h"

namespace hotkv {

// string_commands.cc: reading and setting.
void GetCommand(CommandContext& ctx);
void GetDelCommand(CommandContext& ctx);
void GetExCommand(CommandContext& ctx);
void GetSetCommand(CommandContext& ctx);
void MGetCommand(CommandContext& ctx);
void SetCommand(CommandContext& ctx);
void SetNxCommand(CommandContext& ctx);
void SetExCommand(CommandContext& ctx);
void PSetExCommand(CommandContext& ctx);
void MSetCommand(CommandContext& ctx);
void MSetNxCommand(CommandContext& ctx);
void MSetExCommand(CommandContext& ctx);
void DelExCommand(CommandContext& ctx);
void DelIfEqCommand(CommandContext& ctx);
void DigestCommand(CommandContext& ctx);

// A large value is copied into its block before the stripe is locked. Value: argument 2, or 3.
void PrepareValueAt2(CommandContext& ctx);
void PrepareValueAt3(CommandContext& ctx);
bool MSetExKeys(Args args, std::vector<uint32_t>* indexes);

// string_commands_edit.cc: parts of a value, and numbers.
void AppendCommand(CommandContext& ctx);
void StrLenCommand(CommandContext& ctx);
void GetRangeCommand(CommandContext& ctx);
void SetRangeCommand(CommandContext& ctx);
void LcsCommand(CommandContext& ctx);
void IncrCommand(CommandContext& ctx);
void DecrCommand(CommandContext& ctx);
void IncrByCommand(CommandContext& ctx);
void DecrByCommand(CommandContext& ctx);
void IncrByFloatCommand(CommandContext& ctx);

// string_commands_increx.cc
void IncrExCommand(CommandContext& ctx);

// The entry for a command that changes it: counts no hit. Answers WRONGTYPE and sets *wrong when it
// is no string.
Entry* PeekString(CommandContext& ctx, bool* wrong);
// A string entry as a bulk; large values are referenced, not copied. Null where there is no entry.
void ReplyString(CommandContext& ctx, const Entry* entry);

}  // namespace hotkv
