// HelperThreads: a few threads that help with work which is cut into pieces. Whoever has the work does pieces itself and
// waits for nobody: helpers take what they get to. So work is never slower for having been offered, and a helper that is
// not given a CPU holds nobody up.
//
// Thread rules: Offer by any thread. Threads start at the first Offer; the destructor waits for what they are doing, and
// drops the rest.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace hotkv {

class SharedWork {
 public:
  virtual ~SharedWork() = default;
  // Does pieces that nobody has taken, until none is left. By several threads at once.
  virtual void DoPieces() = 0;
};

class HelperThreads {
 public:
  explicit HelperThreads(unsigned threads) : threads_max_(threads) {}
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  // As many as there are CPUs for this process beside the caller's, within limits.
  static unsigned Fitting();

  unsigned threads() const { return threads_max_; }
  // Up to `helpers` of the threads will do pieces of it. Shared: it outlives the caller's interest while a helper is in it.
  void Offer(const std::shared_ptr<SharedWork>& work, unsigned helpers);

 private:
  void Run();

  const unsigned threads_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;                              // guarded by mutex_
  std::deque<std::shared_ptr<SharedWork>> queue_;  // guarded by mutex_
  std::vector<std::thread> threads_;               // guarded by mutex_ until stop_
};

}  // namespace hotkv
