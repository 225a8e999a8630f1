// Sync points: HOTKV_SYNC_POINT("commit.locked") names a place at which a test can hold threads, to
// force an interleaving that random tests meet too rarely. Nothing in release builds.
//
//   SyncBlock block("commit.locked");   // from now on threads that come there wait
//   block.AwaitReached(1);              // one is there
//   ... let the other side run ...
//   block.Release();                    // also on destruction
//
// Thread rules: any thread may pass a point; a SyncBlock belongs to the test's thread. One block a
// name at a time.
#pragma once

#ifdef HOTKV_TEST_HOOKS

#include <atomic>
#include <cstddef>
#include <string>

namespace hotkv {

namespace sync_points {

class Point {
 public:
  explicit Point(const char* name);
  void Pass() {
    if (armed_.load(std::memory_order_acquire)) Wait();
  }

 private:
  friend class Registry;
  void Wait();

  const std::string name_;
  std::atomic<bool> armed_{false};  // release when a block begins, acquire in Pass
};

}  // namespace sync_points

class SyncBlock {
 public:
  // Holds up to threads_max threads; later ones pass.
  explicit SyncBlock(std::string name, size_t threads_max = static_cast<size_t>(-1));
  ~SyncBlock();
  SyncBlock(const SyncBlock&) = delete;
  SyncBlock& operator=(const SyncBlock&) = delete;

  // Waits until `threads` threads have been stopped here. False after ten seconds without it.
  bool AwaitReached(size_t threads = 1);
  // Lets all go, and later ones pass.
  void Release();

 private:
  const std::string name_;
};

}  // namespace hotkv

#define HOTKV_SYNC_POINT(name)                             \
  do {                                                     \
    static ::hotkv::sync_points::Point hotkv_point_(name); \
    hotkv_point_.Pass();                                   \
  } while (false)

#else

#define HOTKV_SYNC_POINT(name) \
  do {                         \
  } while (false)

#endif
