#include "engine/base/helper_threads.h"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace hotkv {

namespace {
constexpr unsigned kHelpersMax = 7;
}  // namespace

unsigned HelperThreads::Fitting() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return 0;
  const auto count = static_cast<unsigned>(CPU_COUNT(&cpus));
  return std::min(kHelpersMax, std::max(count, 1u) - 1);
}

HelperThreads::~HelperThreads() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    queue_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HelperThreads::Offer(const std::shared_ptr<SharedWork>& work, unsigned helpers) {
  helpers = std::min(helpers, threads_max_);
  if (helpers == 0) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    while (threads_.size() < helpers) threads_.emplace_back([this] { Run(); });
    queue_.insert(queue_.end(), helpers, work);
  }
  for (unsigned i = 0; i < helpers; ++i) changed_.notify_one();
}

void HelperThreads::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    std::shared_ptr<SharedWork> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work->DoPieces();
    work.reset();
    lock.lock();
  }
}

}  // namespace hotkv
