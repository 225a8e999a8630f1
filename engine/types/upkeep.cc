#include "engine/types/upkeep.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

#include "engine/tx/engine.h"
#include "engine/types/durable_object.h"

namespace hotkv {

namespace {
constexpr auto kIdlePause = std::chrono::milliseconds(50);
constexpr int kNice = 19;
}  // namespace

Upkeep::Upkeep(Engine* engine) : engine_(engine) { engine_->SetBackgroundJobs(this); }

Upkeep::~Upkeep() {
  engine_->SetBackgroundJobs(nullptr);
  Stop();
}

void Upkeep::Add(std::unique_ptr<BackgroundJob> job) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    added_.push_back(std::move(job));
  }
  changed_.notify_all();
}

bool Upkeep::StepJobs() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto& job : added_) jobs_.push_back(std::move(job));
    added_.clear();
  }
  bool more = false;
  std::erase_if(jobs_, [&more](const std::unique_ptr<BackgroundJob>& job) {
    const BackgroundJob::Progress result = job->Step();
    more |= result == BackgroundJob::Progress::kMore;
    return result == BackgroundJob::Progress::kDone;
  });
  return more;
}

void Upkeep::Start() {
  stop_ = false;
  thread_ = std::thread([this] { Run(); });
}

void Upkeep::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  jobs_.clear();
  std::lock_guard<std::mutex> lock(mutex_);
  added_.clear();
}

bool Upkeep::Round() {
  std::lock_guard<std::mutex> round(round_mutex_);
  bool more = StepJobs();
  for (const ObjectRef<Object>& object : engine_->objects().All()) {
    auto* durable = dynamic_cast<DurableObject*>(object.get());
    if (durable != nullptr) more |= durable->Upkeep();
  }
  return more;
}

void Upkeep::Run() {
  // Clients come first: this thread takes what the workers leave.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const bool more = Round();
    lock.lock();
    if (!more) changed_.wait_for(lock, kIdlePause, [this] { return stop_ || !added_.empty(); });
  }
}

}  // namespace hotkv
