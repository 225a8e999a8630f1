#include "tools/common/process_stats.h"

#include <dirent.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
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

}  // namespace

Result<uint64_t> ProcessCpuNs(int pid) {
  const std::string folder = fmt::format("/proc/{}/task", pid);
  std::unique_ptr<DIR, CloseDir> dir(::opendir(folder.c_str()));
  if (dir == nullptr) return Status::FromErrno(errno, "opendir", folder);
  uint64_t total = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (entry->d_name[0] == '.') continue;
    const std::string path = fmt::format("{}/{}/schedstat", folder, entry->d_name);
    OpenFile file(std::fopen(path.c_str(), "re"));
    unsigned long long on_cpu = 0;
    // A thread may end between the listing and the reading.
    if (file != nullptr && std::fscanf(file.get(), "%llu", &on_cpu) == 1) total += on_cpu;
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
