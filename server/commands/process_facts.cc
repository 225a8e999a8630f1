#include "server/commands/process_facts.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <string_view>

namespace hotkv {

namespace {

double Seconds(const timeval& time) {
  constexpr double kMicrosPerSecond = 1e6;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / kMicrosPerSecond;
}

std::map<std::string, uint64_t> ReadPairs(const std::string& path) {
  std::map<std::string, uint64_t> pairs;
  std::ifstream file(path);
  std::string name;
  for (uint64_t value = 0; file >> name >> value;) pairs[name] = value;
  return pairs;
}

// 0: no such file, or no number in it ("max").
uint64_t ReadNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : 0;
}

// Names of the files that say the same in the two versions of control groups.
struct GroupFiles {
  std::string mount;
  std::string_view limit;
  std::string_view used;
  std::string_view stat_prefix;
};

// The path of the process's group below its mount; false where there is none of this kind.
bool FindGroup(const std::string& root, GroupFiles* files, std::string* group) {
  std::ifstream list(root + "/proc/self/cgroup");
  for (std::string line; std::getline(list, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    *group = line.substr(second + 1);
    if (controllers.find(",memory,") != std::string::npos) {
      *files = {root + "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                "total_"};
      return true;
    }
    if (controllers == ",,") {
      *files = {root + "/sys/fs/cgroup", "/memory.max", "/memory.current", ""};
      // Version 2 may have no memory controller while version 1 has it, on a later line.
      if (std::ifstream(files->mount + "/cgroup.controllers").good()) return true;
    }
  }
  return false;
}

uint64_t PageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

uint64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long long size = 0;
  unsigned long long resident = 0;
  const int fields = std::fscanf(file, "%llu %llu", &size, &resident);
  std::fclose(file);
  return fields == 2 ? resident * PageBytes() : 0;
}

uint64_t SystemMemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? static_cast<uint64_t>(pages) * PageBytes() : 0;
}

GroupMemory ReadGroupMemory(const std::string& root) {
  constexpr uint64_t kNoLimit = uint64_t{1} << 60;  // version 1 writes "none" as a huge number
  GroupFiles files;
  std::string group;
  if (!FindGroup(root, &files, &group)) return {};
  GroupMemory tightest;
  for (;;) {
    // In a container the path may be the host's, while only the container's own part is mounted.
    const std::string folder = files.mount + (group == "/" ? "" : group);
    const uint64_t limit = ReadNumber(folder + std::string(files.limit));
    const bool tighter = tightest.limit == 0 || limit < tightest.limit;
    if (limit != 0 && limit < kNoLimit && tighter) {
      auto stat = ReadPairs(folder + "/memory.stat");
      const std::string prefix(files.stat_prefix);
      const uint64_t of_files = stat[prefix + "inactive_file"] + stat[prefix + "active_file"];
      const uint64_t all = ReadNumber(folder + std::string(files.used));
      tightest = {limit, all > of_files ? all - of_files : 0};
    }
    if (group.empty() || group == "/") return tightest;
    group.resize(group.rfind('/'));
    if (group.empty()) group = "/";
  }
}

std::string SystemName() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

std::string ExecutablePath() {
  std::array<char, 4096> path{};
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<size_t>(size)) : std::string();
}

CpuSeconds CpuTime() {
  rusage own{};
  rusage children{};
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &children);
  return {Seconds(own.ru_stime), Seconds(own.ru_utime), Seconds(children.ru_stime),
          Seconds(children.ru_utime)};
}

}  // namespace hotkv
