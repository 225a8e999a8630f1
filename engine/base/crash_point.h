// Crash points: HOTKV_CRASH_POINT("log.rotate.before_sync") names a moment at which a crash would
// be interesting. In test builds (HOTKV_TEST_HOOKS) a test lists the names that a workload has met
// and makes the process die at each, or has a function called there (which may take a power cut's
// image of a simulated disk). Nothing in release builds.
//
// A real server in a test build dies at a point named in its environment: HOTKV_CRASH_AT=name or
// name:n for the n-th time that it is met.
//
// Thread rules: any thread may pass a point; tests arm and disarm from any thread.
#pragma once

#ifdef HOTKV_TEST_HOOKS

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hotkv::crash_points {

// Exit code of a process that died at a point.
inline constexpr int kExitCode = 77;

class Point {
 public:
  explicit Point(const char* name);
  void Pass() {
    passes_.fetch_add(1, std::memory_order_relaxed);
    if (armed_.load(std::memory_order_acquire)) Fire();
  }
  const std::string& name() const { return name_; }
  uint64_t passes() const { return passes_.load(std::memory_order_relaxed); }

 private:
  friend class Registry;
  void Fire();

  const std::string name_;
  std::atomic<uint64_t> passes_{0};  // relaxed: a statistic
  std::atomic<bool> armed_{false};   // release when armed, acquire in Pass
};

// Names of the points passed at least once by this process, sorted.
std::vector<std::string> Names();

// The process ends at once (_exit, nothing flushed) the n-th time that the point is passed from now
// on.
void DieAt(const std::string& name, uint64_t nth = 1);
// Calls the function each time that the point is passed, on the passing thread, until Clear().
void CallAt(const std::string& name, std::function<void()> call);
void Clear();

}  // namespace hotkv::crash_points

#define HOTKV_CRASH_POINT(name)                             \
  do {                                                      \
    static ::hotkv::crash_points::Point hotkv_point_(name); \
    hotkv_point_.Pass();                                    \
  } while (false)

#else

#define HOTKV_CRASH_POINT(name) \
  do {                          \
  } while (false)

#endif
