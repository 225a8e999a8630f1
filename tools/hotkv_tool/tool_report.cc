#include "tools/hotkv_tool/tool_report.h"

#include <cstdio>
#include <ctime>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/hotkv_tool/text_encoding.h"

namespace hotkv {

void Problems::Add(std::string text) {
  ++count_;
  if (first_.size() < kKept) first_.push_back(std::move(text));
}

int Report(const CommonOptions& options, const Problems& problems, std::string_view summary,
           nlohmann::ordered_json* result) {
  if (options.json) {
    (*result)["ok"] = problems.empty();
    (*result)["problem_count"] = problems.count();
    (*result)["problems"] = nlohmann::ordered_json::array();
    for (const std::string& text : problems.first()) (*result)["problems"].push_back(JsonBytes(text));
    fmt::print("{}\n", result->dump());
  } else {
    std::fflush(stdout);
    for (const std::string& text : problems.first()) fmt::print(stderr, "hotkv-tool: {}\n", text);
    if (problems.count() > problems.first().size()) {
      fmt::print(stderr, "hotkv-tool: and {} more\n", problems.count() - problems.first().size());
    }
    fmt::print("{}\n", summary);
  }
  std::fflush(stdout);
  return problems.empty() ? kExitFine : kExitProblems;
}

int ReportFailure(const CommonOptions& options, const Status& status) {
  if (options.json) {
    nlohmann::ordered_json result = {{"ok", false}, {"error", JsonBytes(status.ToString())}};
    fmt::print("{}\n", result.dump());
    std::fflush(stdout);
  } else {
    std::fflush(stdout);
    fmt::print(stderr, "hotkv-tool: {}\n", status.ToString());
  }
  return kExitCouldNotRun;
}

std::string Printable(std::string_view bytes) {
  constexpr size_t kShown = 64;
  std::string out;
  for (const char c : bytes.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      out.push_back(c);
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  if (bytes.size() > kShown) out += fmt::format("... ({} bytes)", bytes.size());
  return out;
}

nlohmann::ordered_json JsonBytes(std::string_view bytes) {
  if (IsUtf8(bytes)) return std::string(bytes);
  std::string base64;
  AppendBase64(bytes, &base64);
  return {{"base64", base64}};
}

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string TimeText(int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return std::to_string(unix_ms);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, unix_ms % 1000);
}

}  // namespace hotkv
