// What the subcommands share: options that mean the same everywhere, problems found, results for people or scripts, exit
// codes.
//
// Exit codes: 0 fine, 1 problems found (each named on standard error or in the JSON), 2 could not run.
// Thread rules: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"

namespace hotkv {

inline constexpr int kExitFine = 0;
inline constexpr int kExitProblems = 1;
inline constexpr int kExitCouldNotRun = 2;

struct CommonOptions {
  std::string dir;
  std::string url;
  bool json = false;
};

// Problems in the order in which they were found; only the first ones keep their text.
class Problems {
 public:
  void Add(std::string text);
  void Add(const Status& status) { Add(status.ToString()); }
  uint64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  const std::vector<std::string>& first() const { return first_; }

 private:
  static constexpr size_t kKept = 50;
  uint64_t count_ = 0;
  std::vector<std::string> first_;
};

// Prints the problems ("hotkv-tool: ..." on standard error) and the summary, or with json one object on standard output:
// *result with "ok", "problems" and "problem_count" added. Returns the exit code.
int Report(const CommonOptions& options, const Problems& problems, std::string_view summary,
           nlohmann::ordered_json* result);
// For a run that could not be done at all.
int ReportFailure(const CommonOptions& options, const Status& status);

// Bytes for people: escaped, at most about 64 of them.
std::string Printable(std::string_view bytes);
// For JSON, which has UTF-8 only: other bytes become {"base64": ...}.
nlohmann::ordered_json JsonBytes(std::string_view bytes);
// "1.5 MiB"
std::string BytesText(uint64_t bytes);
// "2026-11-30T12:00:00.000Z"
std::string TimeText(int64_t unix_ms);

}  // namespace hotkv
