// What the operating system tells of this process and machine.
//
// Thread rules: any thread; each call asks anew.
#pragma once

#include <cstdint>
#include <string>

namespace hotkv {

uint64_t ResidentBytes();
uint64_t SystemMemoryBytes();
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
