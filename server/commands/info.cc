#include "server/commands/info.h"

#include <array>

#include "engine/commands/command_context.h"
#include "server/commands/info_writer.h"

namespace hotkv {

namespace {

// Nothing is loaded at run time.
void WriteModulesInfo(const InfoContext& ctx) { ctx.out.Section("Modules"); }

void WriteClusterInfo(const InfoContext& ctx) {
  ctx.out.Section("Cluster");
  ctx.out.Line("cluster_enabled", false);
}

struct Section {
  std::string_view name;  // upper case
  std::string_view alias;
  bool by_default;
  void (*write)(const InfoContext&);
};

constexpr Section kSections[] = {
    {"SERVER", "", true, WriteServerInfo},
    {"CLIENTS", "", true, WriteClientsInfo},
    {"MEMORY", "", true, WriteMemoryInfo},
    {"PERSISTENCE", "", true, WritePersistenceInfo},
    {"STATS", "", true, WriteStatsInfo},
    {"REPLICATION", "", true, WriteReplicationInfo},
    {"CPU", "", true, WriteCpuInfo},
    {"MODULES", "MODULE_LIST", true, WriteModulesInfo},
    {"COMMANDSTATS", "", false, WriteCommandStatsInfo},
    {"ERRORSTATS", "", true, WriteErrorStatsInfo},
    {"LATENCYSTATS", "", false, WriteLatencyStatsInfo},
    {"CLUSTER", "", true, WriteClusterInfo},
    {"KEYSPACE", "", true, WriteKeyspaceInfo},
    {"HOTKV", "", true, WriteHotkvInfo},
};

bool Named(const Section& section, Args names) {
  for (const std::string_view name : names) {
    if (EqualsIgnoreCase(name, "ALL") || EqualsIgnoreCase(name, "EVERYTHING")) return true;
    if (EqualsIgnoreCase(name, "DEFAULT") && section.by_default) return true;
    if (EqualsIgnoreCase(name, section.name)) return true;
    if (!section.alias.empty() && EqualsIgnoreCase(name, section.alias)) return true;
  }
  return names.empty() && section.by_default;
}

}  // namespace

std::string HumanBytes(uint64_t bytes) {
  constexpr uint64_t kStep = 1024;
  if (bytes < kStep) return fmt::format("{}B", bytes);
  auto value = static_cast<double>(bytes) / kStep;
  for (const char unit : {'K', 'M', 'G', 'T'}) {
    if (value < kStep) return fmt::format("{:.2f}{}", value, unit);
    value /= kStep;
  }
  return fmt::format("{:.2f}P", value);
}

void InfoWriter::Bytes(std::string_view name, uint64_t bytes) {
  Line(name, bytes);
  Line(fmt::format("{}_human", name), HumanBytes(bytes));
}

std::string BuildInfo(Server& server, Args names, int64_t now_ms) {
  InfoWriter out;
  const InfoContext ctx{server, now_ms, out};
  for (const Section& section : kSections) {
    if (Named(section, names)) section.write(ctx);
  }
  return out.Take();
}

}  // namespace hotkv
