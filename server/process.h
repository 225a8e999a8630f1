// What makes the server a good process: signals, service manager, pid file, daemon, crash report,
// checks at start.
//
// Thread rules: the main thread, before others are started, except where said.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "server/config/settings.h"

namespace hotkv {

class Server;

// Blocks the signals that MainLoop waits for, in this thread and those started after. SIGPIPE is
// ignored.
void BlockSignals();
// Waits for SIGTERM, SIGINT, SIGHUP and the server's own wish to stop; returns when the server has
// stopped.
void MainLoop(Server* server);

// On SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT: a report with a backtrace into the log, then
// death by that signal.
void InstallCrashReport();

// The caller's process goes on as the child, in a session of its own. The parent waits until
// LeaveTerminal, and ends with 0; or with the child's exit status when that ends before.
Status Daemonize();
// The daemon runs: standard input and output are given up.
void LeaveTerminal();
Status WritePidFile(const std::string& path);

// READY=1 and the like, to systemd's socket; nothing where there is none. `state` may have several
// lines.
void NotifyServiceManager(std::string_view state);

// The name of the kind of file system that statfs tells by this number, where durability or speed is
// in doubt on it: network, user space, layers, memory. Empty for all others.
std::string_view DoubtfulFileSystem(uint64_t magic);

// Raises the limit of open files for maxclients as far as allowed, and logs one line for each thing
// of the machine that stands in the way: open files, locked memory for the rings, overcommit, the
// kind of file system below `dir`. Returns how many clients can be served.
int64_t CheckMachine(const Settings& settings, std::string_view io_name);

}  // namespace hotkv
