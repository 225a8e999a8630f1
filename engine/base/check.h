// HOTKV_CHECK: invariants that hold unless we have a bug. Always compiled in; a failure prints the expression, the
// place and a backtrace, then aborts. HOTKV_DCHECK: the same for checks that cost over 1% in a hot loop; on in
// every test build.
#pragma once

namespace hotkv {

[[noreturn]] void CheckFailed(const char* expression, const char* file, int line);

// Writes a backtrace of the calling thread to the file descriptor; safe in a signal handler.
void WriteBacktrace(int fd);

}  // namespace hotkv

#define HOTKV_CHECK(expr)                                           \
  do {                                                              \
    if (!(expr)) [[unlikely]]                                       \
      ::hotkv::CheckFailed(#expr, __FILE__, __LINE__);              \
  } while (false)

#ifdef HOTKV_DCHECKS
#define HOTKV_DCHECK(expr) HOTKV_CHECK(expr)
#else
#define HOTKV_DCHECK(expr)        \
  do {                            \
    if (false && (expr)) {        \
    }                             \
  } while (false)
#endif
