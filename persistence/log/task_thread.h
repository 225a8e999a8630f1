// Runs tasks one after the other, on a thread of its own, or at once where the caller wants
// everything on one thread (deterministic tests). Private to persistence/log.
//
// Thread rules: any thread may call.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace hotkv {

enum class TaskMode : uint8_t { kThread, kInline };

class TaskThread {
 public:
  // name: of the thread, at most 15 characters, a literal.
  TaskThread(TaskMode mode, const char* name);
  ~TaskThread();  // tasks that have not begun are dropped
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  void Run(std::function<void()> task);
  // Waits until all tasks given so far are done.
  void Drain();

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_; the first one is being run
  bool stop_ = false;                        // guarded by mutex_
  std::thread thread_;                       // none in kInline
};

}  // namespace hotkv
