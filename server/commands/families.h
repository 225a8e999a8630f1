// The command families of the server: commands that need the connection, the server or the disk.
// main() joins them with the engine's families in one CommandTable.
//
// Their handlers reach the server through the client: every ClientState that runs them is a Client.
//
// Thread rules: constant data.
#pragma once

#include <span>

#include "engine/commands/command_spec.h"

namespace hotkv {

std::span<const CommandSpec> ConnectionCommands();  // AUTH, ECHO, HELLO, PING, QUIT, RESET, SELECT
std::span<const CommandSpec> ClientCommands();      // CLIENT
std::span<const CommandSpec> CommandCommands();     // COMMAND
std::span<const CommandSpec> ServerCommands();      // INFO, TIME, ROLE, LOLWUT, MODULE, ACL
std::span<const CommandSpec> ConfigCommands();      // CONFIG
std::span<const CommandSpec>
PersistenceCommands();  // SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE, SHUTDOWN, WAITAOF, WAIT
std::span<const CommandSpec> DebugCommands();       // DEBUG
std::span<const CommandSpec> MemoryCommands();      // MEMORY
std::span<const CommandSpec> MonitoringCommands();  // SLOWLOG, LATENCY

}  // namespace hotkv
