// What the operating system tells of this process and machine.
//
// Thread rules: any thread; each call asks anew.
#pragma once

#include <cstdint>
#include <string>

namespace hotkv {

uint64_t ResidentBytes();
uint64_t SystemMemoryBytes();
// The control group that this process is in, or the tightest of those above it. limit 0: none.
struct GroupMemory {
  uint64_t limit = 0;
  uint64_t used = 0;  // without what the kernel can take back: pages of files
};
// Versions 1 and 2. root: "" but in tests, which put files of their own below it.
GroupMemory ReadGroupMemory(const std::string& root);
std::string SystemName();      // "Linux 6.1.0 x86_64"
std::string ExecutablePath();  // empty where unknown

struct CpuSeconds {
  double system = 0;
  double user = 0;
  double system_children = 0;
  double user_children = 0;
};
CpuSeconds CpuTime();

}  // namespace hotkv
