#include "engine/base/crash_point.h"

#ifdef HOTKV_TEST_HOOKS

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

namespace hotkv::crash_points {

// One a process, never destroyed: points are static and may be passed until the very end.
class Registry {
 public:
  static Registry& Get() {
    static auto* registry = new Registry;
    return *registry;
  }

  void Add(Point* point) {
    std::lock_guard lock(mutex_);
    points_.push_back(point);
    if (actions_.contains(point->name_)) point->armed_.store(true, std::memory_order_release);
  }

  void Arm(const std::string& name, uint64_t die_after, std::function<void()> call) {
    std::lock_guard lock(mutex_);
    actions_[name] = {die_after, std::move(call)};
    for (Point* point : points_) {
      if (point->name_ == name) point->armed_.store(true, std::memory_order_release);
    }
  }

  void Clear() {
    std::lock_guard lock(mutex_);
    actions_.clear();
    for (Point* point : points_) point->armed_.store(false, std::memory_order_release);
  }

  void Fire(const std::string& name) {
    std::function<void()> call;
    {
      std::lock_guard lock(mutex_);
      const auto found = actions_.find(name);
      if (found == actions_.end()) return;
      Action& action = found->second;
      if (action.die_after > 0 && --action.die_after == 0) _exit(kExitCode);
      call = action.call;
    }
    if (call) call();
  }

  std::vector<std::string> Names() {
    std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const Point* point : points_) {
      if (point->passes() > 0) names.push_back(point->name_);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

 private:
  struct Action {
    uint64_t die_after = 0;  // 0: never
    std::function<void()> call;
  };

  Registry() {
    const char* wanted = std::getenv("HOTKV_CRASH_AT");
    if (wanted == nullptr) return;
    std::string name = wanted;
    uint64_t nth = 1;
    if (const size_t colon = name.rfind(':'); colon != std::string::npos) {
      nth = std::max<uint64_t>(1, std::strtoull(name.c_str() + colon + 1, nullptr, 10));
      name.resize(colon);
    }
    actions_[name] = {nth, nullptr};
  }

  std::mutex mutex_;
  std::vector<Point*> points_;             // guarded by mutex_
  std::map<std::string, Action> actions_;  // guarded by mutex_
};

Point::Point(const char* name) : name_(name) { Registry::Get().Add(this); }

void Point::Fire() { Registry::Get().Fire(name_); }

std::vector<std::string> Names() { return Registry::Get().Names(); }

void DieAt(const std::string& name, uint64_t nth) { Registry::Get().Arm(name, nth, nullptr); }

void CallAt(const std::string& name, std::function<void()> call) {
  Registry::Get().Arm(name, 0, std::move(call));
}

void Clear() { Registry::Get().Clear(); }

}  // namespace hotkv::crash_points

#endif
