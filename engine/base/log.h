// The server's log: one line a message, to standard output or a file, in the format of Redis's so
// that existing parsers work:
//
//   4711:M 30 Nov 2026 12:00:00.123 * Ready to accept connections
//
// Levels are debug '.', verbose '-', notice '*' and warning '#'. A line goes out with one write, so
// lines of several threads never mix. Formatting is the caller's; ask LogEnabled first where that
// is dear.
//
// Thread rules: any thread, any function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace hotkv {

enum class LogLevel : uint8_t { kDebug, kVerbose, kNotice, kWarning, kNothing };

// Messages below the level are dropped; kNotice at start.
void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();
bool LogEnabled(LogLevel level);

// 'M' (the start value) or 'S' for a replica.
void SetLogRole(char role);

// Appends to the file from now on; an empty path is standard output. On failure the old place
// stays.
Status OpenLogFile(const std::string& path);
// Opens the same path again, after a log rotation has renamed the file.
Status ReopenLogFile();

void Log(LogLevel level, std::string_view message);

// Where lines go just now; for a crash report, which is written from a signal handler.
int LogDescriptor();

}  // namespace hotkv
