// InfoWriter collects INFO's text; InfoContext is what a section is written from. Private to INFO.
//
// Thread rules: one thread.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace hotkv {

class Server;

class InfoWriter {
 public:
  void Section(std::string_view title) {
    if (!text_.empty()) text_ += "\r\n";
    fmt::format_to(std::back_inserter(text_), "# {}\r\n", title);
  }
  void Line(std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(text_), "{}:{}\r\n", name, value);
  }
  void Line(std::string_view name, const char* value) { Line(name, std::string_view(value)); }
  void Line(std::string_view name, bool value) { Line(name, value ? "1" : "0"); }
  template <typename Integer>
  requires std::is_integral_v<Integer>
  void Line(std::string_view name, Integer value) {
    fmt::format_to(std::back_inserter(text_), "{}:{}\r\n", name, value);
  }
  // With two digits behind the point.
  void Decimal(std::string_view name, double value, std::string_view unit = "") {
    fmt::format_to(std::back_inserter(text_), "{}:{:.2f}{}\r\n", name, value, unit);
  }
  // Bytes, and the same for people as name_human.
  void Bytes(std::string_view name, uint64_t bytes);

  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

struct InfoContext {
  Server& server;
  int64_t now_ms;
  InfoWriter& out;
};

// info_sections.cc
void WriteServerInfo(const InfoContext& ctx);
void WriteClientsInfo(const InfoContext& ctx);
void WriteMemoryInfo(const InfoContext& ctx);
void WritePersistenceInfo(const InfoContext& ctx);
void WriteReplicationInfo(const InfoContext& ctx);
void WriteCpuInfo(const InfoContext& ctx);
// info_statistics.cc
void WriteStatsInfo(const InfoContext& ctx);
void WriteCommandStatsInfo(const InfoContext& ctx);
void WriteErrorStatsInfo(const InfoContext& ctx);
void WriteLatencyStatsInfo(const InfoContext& ctx);
void WriteKeyspaceInfo(const InfoContext& ctx);
void WriteHotkvInfo(const InfoContext& ctx);

}  // namespace hotkv
