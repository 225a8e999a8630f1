// Upkeep: the background thread that gives every object its turns of upkeep (DurableObject::Upkeep).
//
// Thread rules: Start and Stop by one thread; the engine outlives it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace hotkv {

class Engine;

class Upkeep {
 public:
  explicit Upkeep(Engine* engine) : engine_(engine) {}
  ~Upkeep() { Stop(); }
  void Start();
  void Stop();

 private:
  void Run();
  bool Round();  // true while some object has more to do

  Engine* const engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace hotkv
