// BackgroundJob: long work beside the commands (rebuilding an index), done in steps by the upkeep thread.
//
// Thread rules: Step and the destructor by the upkeep thread, or by whoever stops it.
#pragma once

#include <cstdint>
#include <memory>

namespace hotkv {

class BackgroundJob {
 public:
  enum class Progress : uint8_t { kMore, kWaiting, kDone };
  virtual ~BackgroundJob() = default;
  virtual Progress Step() = 0;
};

class BackgroundJobs {
 public:
  virtual ~BackgroundJobs() = default;
  virtual void Add(std::unique_ptr<BackgroundJob> job) = 0;  // any thread
  // From now until Resume, by the same thread, nothing is done to any object. False: something is being done just now.
  virtual bool TryPause() { return true; }
  virtual void Resume() {}
};

}  // namespace hotkv
