// Handlers of the commands on keys of any type and on whole databases; generic_commands_table.cc
// says what each command is. Private to this family.
//
// Thread rules: as CommandContext.
#pragma once

#include <optional>
#include <string_view>

#include "engine/commands/command_context.h"

namespace hotkv {

// generic_commands.cc
void PrepareCopy(CommandContext& ctx);
void CopyCommand(CommandContext& ctx);
void DelCommand(CommandContext& ctx);
void ExistsCommand(CommandContext& ctx);
void MoveCommand(CommandContext& ctx);
void RenameCommand(CommandContext& ctx);
void RenameNxCommand(CommandContext& ctx);
void TouchCommand(CommandContext& ctx);
void TypeCommand(CommandContext& ctx);

// generic_commands_expire.cc
void ExpireCommand(CommandContext& ctx);
void ExpireAtCommand(CommandContext& ctx);
void PExpireCommand(CommandContext& ctx);
void PExpireAtCommand(CommandContext& ctx);
void TtlCommand(CommandContext& ctx);
void PTtlCommand(CommandContext& ctx);
void ExpireTimeCommand(CommandContext& ctx);
void PExpireTimeCommand(CommandContext& ctx);
void PersistCommand(CommandContext& ctx);

// generic_commands_object.cc
void ObjectEncodingCommand(CommandContext& ctx);
void ObjectFreqCommand(CommandContext& ctx);
void ObjectHelpCommand(CommandContext& ctx);
void ObjectIdleTimeCommand(CommandContext& ctx);
void ObjectRefCountCommand(CommandContext& ctx);

// generic_commands_scan.cc
void KeysCommand(CommandContext& ctx);
void RandomKeyCommand(CommandContext& ctx);
void ScanCommand(CommandContext& ctx);

// generic_commands_db.cc
void DbSizeCommand(CommandContext& ctx);
void FlushAllCommand(CommandContext& ctx);
void FlushDbCommand(CommandContext& ctx);
void SwapDbCommand(CommandContext& ctx);

// The i-th key's live entry for a command that does not use the value: counts a hit or a miss,
// leaves the access clock.
Entry* LookAtKey(CommandContext& ctx, size_t i);

// OBJECT ENCODING's reply; DEBUG OBJECT shows it too.
std::string_view EncodingName(const Entry& entry);

// "string", "list", ...: TYPE's reply and SCAN's TYPE.
std::string_view TypeName(ValueType type);

// Argument i as a database. Answers an error and returns nothing when it is no integer or there is
// no such database.
std::optional<uint32_t> ParseDb(CommandContext& ctx, size_t i);

}  // namespace hotkv
