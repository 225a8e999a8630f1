#include "engine/base/sync_point.h"

#ifdef HOTKV_TEST_HOOKS

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "engine/base/check.h"

namespace hotkv {

namespace sync_points {

class Registry {
 public:
  static Registry& Get() {
    static auto* registry = new Registry;
    return *registry;
  }

  void Add(Point* point) {
    std::lock_guard lock(mutex_);
    points_.push_back(point);
    if (blocks_.contains(point->name_)) point->armed_.store(true, std::memory_order_release);
  }

  void Begin(const std::string& name, size_t threads_max) {
    std::lock_guard lock(mutex_);
    HOTKV_CHECK(!blocks_.contains(name));
    blocks_[name] = {threads_max, 0, ++last_block_};
    SetArmed(name, true);
  }

  void End(const std::string& name) {
    std::lock_guard lock(mutex_);
    blocks_.erase(name);
    SetArmed(name, false);
    changed_.notify_all();
  }

  void Wait(const std::string& name) {
    std::unique_lock lock(mutex_);
    const auto found = blocks_.find(name);
    if (found == blocks_.end() || found->second.reached >= found->second.threads_max) return;
    ++found->second.reached;
    const uint64_t id = found->second.id;
    changed_.notify_all();
    changed_.wait(lock, [&] {
      const auto now = blocks_.find(name);
      return now == blocks_.end() || now->second.id != id;
    });
  }

  bool AwaitReached(const std::string& name, size_t threads) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] {
      const auto found = blocks_.find(name);
      return found != blocks_.end() && found->second.reached >= threads;
    });
  }

 private:
  struct Block {
    size_t threads_max = 0;
    size_t reached = 0;
    uint64_t id = 0;
  };

  void SetArmed(const std::string& name, bool armed) {
    for (Point* point : points_) {
      if (point->name_ == name) point->armed_.store(armed, std::memory_order_release);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Point*> points_;  // guarded by mutex_, as all below
  std::map<std::string, Block> blocks_;
  uint64_t last_block_ = 0;
};

Point::Point(const char* name) : name_(name) { Registry::Get().Add(this); }

void Point::Wait() { Registry::Get().Wait(name_); }

}  // namespace sync_points

SyncBlock::SyncBlock(std::string name, size_t threads_max) : name_(std::move(name)) {
  sync_points::Registry::Get().Begin(name_, threads_max);
}

SyncBlock::~SyncBlock() { Release(); }

bool SyncBlock::AwaitReached(size_t threads) {
  return sync_points::Registry::Get().AwaitReached(name_, threads);
}

void SyncBlock::Release() { sync_points::Registry::Get().End(name_); }

}  // namespace hotkv

#endif
