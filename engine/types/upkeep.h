// Upkeep: the background thread that gives every object its turns of upkeep (DurableObject::Upkeep), and jobs their steps.
//
// Thread rules: Start and Stop by one thread; the engine outlives it. Add from any thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/types/background_job.h"

namespace hotkv {

class Engine;

class Upkeep : public BackgroundJobs {
 public:
  explicit Upkeep(Engine* engine);
  ~Upkeep() override;
  void Start();
  void Stop();  // jobs that are not done are given up
  void Add(std::unique_ptr<BackgroundJob> job) override;
  bool TryPause() override { return round_mutex_.try_lock(); }
  void Resume() override { round_mutex_.unlock(); }
  bool Round();  // one turn of everything; true while there is more to do. By Run, or a test without Start

 private:
  void Run();
  bool StepJobs();

  Engine* const engine_;
  std::mutex round_mutex_;  // held for each round
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;                                  // guarded by mutex_
  std::vector<std::unique_ptr<BackgroundJob>> added_;  // guarded by mutex_
  std::vector<std::unique_ptr<BackgroundJob>> jobs_;   // by the thread of Round
  std::thread thread_;
};

}  // namespace hotkv
