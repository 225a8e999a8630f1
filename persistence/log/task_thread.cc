#include "persistence/log/task_thread.h"

#include <pthread.h>

namespace hotkv {

TaskThread::TaskThread(TaskMode mode, const char* name) {
  if (mode != TaskMode::kThread) return;
  thread_ = std::thread([this, name] {
    pthread_setname_np(pthread_self(), name);
    Loop();
  });
}

TaskThread::~TaskThread() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void TaskThread::Run(std::function<void()> task) {
  if (!thread_.joinable()) {
    task();
    return;
  }
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void TaskThread::Drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.empty() || stop_; });
}

void TaskThread::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (stop_) return;
    const std::function<void()> task = tasks_.front();
    lock.unlock();
    task();
    lock.lock();
    tasks_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace hotkv
