// What another process has used, read from /proc: CPU time of all its threads in nanoseconds (schedstat; the ticks of
// /proc/PID/stat are a thousand times coarser) and its resident memory.
//
// Thread rules: none, no state. Errors: kNotFound when there is no such process.
#pragma once

#include <cstdint>

#include "engine/base/result.h"

namespace hotkv {

// With its children (Redis saves and rewrites in one): those that live by schedstat, those that have ended and been
// waited for by the ticks that the kernel adds up. Time of threads that have ended is not in it: take the difference
// over a span in which the threads live on.
Result<uint64_t> ProcessCpuNs(int pid);

struct ResidentBytes {
  uint64_t total = 0;
  uint64_t anonymous = 0;  // without pages of mapped files, which the kernel can take back
};
Result<ResidentBytes> ProcessResidentBytes(int pid);

}  // namespace hotkv
