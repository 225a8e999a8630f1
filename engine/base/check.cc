#include "engine/base/check.h"

#include <execinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace hotkv {

void WriteBacktrace(int fd) {
  void* frames[64];
  const int count = backtrace(frames, 64);
  backtrace_symbols_fd(frames, count, fd);
}

void CheckFailed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "HotKV check failed: %s at %s:%d\n", expression, file, line);
  std::fflush(stderr);
  WriteBacktrace(STDERR_FILENO);
  std::abort();
}

}  // namespace hotkv
