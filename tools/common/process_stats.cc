#include "tools/common/process_stats.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace hotkv {
namespace {

struct CloseFile {
  void operator()(FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<FILE, CloseFile>;

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

uint64_t ThreadsCpuNs(const std::string& folder, DIR* dir) {
  uint64_t total = 0;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] == '.') continue;
    const std::string path = fmt::format("{}/{}/schedstat", folder, entry->d_name);
    OpenFile file(std::fopen(path.c_str(), "re"));
    unsigned long long on_cpu = 0;
    // A thread may end between the listing and the reading.
    if (file != nullptr && std::fscanf(file.get(), "%llu", &on_cpu) == 1) total += on_cpu;
  }
  return total;
}

// Of children that were waited for.
uint64_t EndedChildrenCpuNs(int pid) {
  OpenFile file(std::fopen(fmt::format("/proc/{}/stat", pid).c_str(), "re"));
  if (file == nullptr) return 0;
  char line[1024];
  if (std::fgets(line, sizeof(line), file.get()) == nullptr) return 0;
  const char* after_name = std::strrchr(line, ')');  // the name may hold spaces
  if (after_name == nullptr) return 0;
  unsigned long long user = 0;
  unsigned long long system = 0;
  constexpr const char* kFields =
      ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu";  // 3 ... 15, cutime,
                                                                          // cstime
  if (std::sscanf(after_name, kFields, &user, &system) != 2) return 0;
  return (user + system) * (1'000'000'000 / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace

Result<uint64_t> ProcessCpuNs(int pid) {
  const std::string folder = fmt::format("/proc/{}/task", pid);
  std::unique_ptr<DIR, CloseDir> dir(::opendir(folder.c_str()));
  if (dir == nullptr) return Status::FromErrno(errno, "opendir", folder);
  uint64_t total = ThreadsCpuNs(folder, dir.get()) + EndedChildrenCpuNs(pid);
  OpenFile children(std::fopen(fmt::format("{}/{}/children", folder, pid).c_str(), "re"));
  int child = 0;
  while (children != nullptr && std::fscanf(children.get(), "%d", &child) == 1) {
    const std::string tasks = fmt::format("/proc/{}/task", child);
    const std::unique_ptr<DIR, CloseDir> threads(::opendir(tasks.c_str()));
    if (threads != nullptr) total += ThreadsCpuNs(tasks, threads.get());
  }
  return total;
}

Result<ResidentBytes> ProcessResidentBytes(int pid) {
  const std::string path = fmt::format("/proc/{}/status", pid);
  OpenFile file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return Status::FromErrno(errno, "open", path);
  ResidentBytes resident;
  char line[256];
  while (std::fgets(line, sizeof(line), file.get()) != nullptr) {
    unsigned long long kib = 0;
    if (std::sscanf(line, "VmRSS: %llu kB", &kib) == 1) resident.total = uint64_t{kib} * 1024;
    if (std::sscanf(line, "RssAnon: %llu kB", &kib) == 1) resident.anonymous = uint64_t{kib} * 1024;
  }
  return resident;
}

}  // namespace hotkv
