// Engine: the keyspace with everything that commands need around it - epochs, stop word, reclamation, objects, lazy
// frees, statistics - and the state that persistence and server set from outside. Knows no socket and no file.
//
// Thread rules: members are constant after construction or say how they are guarded. WorkerState belongs to one worker.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/base/helper_threads.h"
#include "engine/base/random.h"
#include "engine/base/reclaim.h"
#include "engine/base/result.h"
#include "engine/commands/command_spec.h"
#include "engine/store/keyspace.h"
#include "engine/tx/epoch.h"
#include "engine/tx/eviction.h"
#include "engine/tx/stop_gate.h"
#include "engine/tx/txn.h"

namespace hotkv {

struct EngineOptions {
  KeyspaceOptions keyspace;
  unsigned workers = 1;
  uint64_t first_epoch = 1;
  uint64_t first_object_id = 1;
};

// Counters of one worker; others read them relaxed for INFO.
struct CommandCounters {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> nanoseconds{0};
  std::atomic<uint64_t> rejected{0};
  std::atomic<uint64_t> failed{0};
};

// What a command can wait for; the time is not part of its run time.
enum class WaitCause : uint8_t {
  kStripe,      // another command's lock
  kStop,        // a command that has the whole keyspace for itself, or to become that
  kLog,         // the log is behind
  kPause,       // CLIENT PAUSE
  kDurability,  // its reply, for the log to be durable (appendfsync always)
  kJob,         // work on another thread that it needs (COPY of a vector set)
  kCount,
};

inline void AddRelaxed(std::atomic<uint64_t>& counter, uint64_t n) {
  // One writer: no read-modify-write instruction needed.
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

struct alignas(64) WorkerState {
  WorkerState(Engine* engine_in, unsigned id_in, uint32_t commands);
  const unsigned id;
  Engine* const engine;
  unsigned reclaim_slot = 0;
  uint64_t last_lsn = 0;
  int64_t now_ms = 0;  // read once a turn
  Txn txn;
  std::vector<KeyRef> key_scratch;
  const KeyRef* first_key = nullptr;  // of the command that Dispatch gets next; null: not known
  std::vector<uint32_t> index_scratch;
  // Turn-end work of this worker.
  uint32_t expire_stripe = 0;
  int64_t expire_next_ms = 0;
  bool expire_again = false;  // an object had more parts past their time than one step removes

  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
  std::atomic<uint64_t> expired_keys{0};
  std::atomic<uint64_t> evicted_keys{0};
  std::atomic<uint64_t> changes{0};  // effects since start
  std::atomic<uint64_t> commands{0};
  std::atomic<uint64_t> error_replies{0};
  std::atomic<uint64_t> waited_ns[static_cast<size_t>(WaitCause::kCount)] = {};
  void AddWait(WaitCause cause, uint64_t ns) { AddRelaxed(waited_ns[static_cast<size_t>(cause)], ns); }
  uint64_t blocked_ns = 0;  // of the command that runs: waiting for stripes and for the others to stop
  Random random;
  // Commands that have run and are not in per_command yet: counted together, since each counter's
  // cache miss would hold up the next command's lock.
  struct FinishedRun {
    const CommandSpec* spec;
    uint64_t run_ns;
    bool failed;
  };
  FinishedRun finished[kCommandWindow];
  size_t finished_count = 0;
  uint64_t cycle_mark = 0;  // CPU cycle counter at the end of the last command: one read a command
  std::unique_ptr<CommandCounters[]> per_command;
};

// A piece of work that needs stripe locks and is cut into short steps, run by workers between turns (encoding a stripe
// for a snapshot). Step returns false when there is nothing left for any worker to start.
class TurnTask {
 public:
  virtual ~TurnTask() = default;
  virtual bool Step(WorkerState& worker) = 0;
};

class BackgroundJobs;  // engine/types/background_job.h

// Where objects' files live. Implemented by persistence; without one, objects are in memory only.
class ObjectHost {
 public:
  virtual ~ObjectHost() = default;
  // Called before the object exists and with no lock held. The folder is planned, made, and recorded.
  virtual Result<std::string> MakeFolder(uint64_t object_id, ValueType type) = 0;
  // The object is gone from the keyspace; its folder goes when no kept snapshot refers to it.
  virtual void ForgetFolder(uint64_t object_id) = 0;
  // A first generation, written by the caller before any key links to the object: planned, then, with all of it synced,
  // live. What is recorded after that comes on top of it.
  virtual Result<uint64_t> PlanGeneration(uint64_t object_id) = 0;
  virtual Status PublishGeneration(uint64_t object_id, uint64_t generation) = 0;
  virtual class Env* env() = 0;
};

// Objects by id. Thread-safe.
class ObjectTable {
 public:
  uint64_t NewId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t next_id() const { return next_id_.load(std::memory_order_relaxed); }
  void SetNextId(uint64_t id) { next_id_.store(id, std::memory_order_relaxed); }
  void Add(Object* object);  // takes a reference of its own
  ObjectRef<Object> Find(uint64_t id) const;
  bool Remove(uint64_t id);  // drops that reference (lazily, by the caller's LazyFree)
  ObjectRef<Object> Take(uint64_t id);
  std::vector<ObjectRef<Object>> All() const;
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Object*> objects_;  // guarded by mutex_
  std::atomic<uint64_t> next_id_{1};
};

// Frees large things off the workers' threads.
class LazyFree {
 public:
  LazyFree();
  ~LazyFree();
  void Push(std::function<void()> free);
  void Drain();  // waits until all that was pushed is freed
  uint64_t pending() const { return pending_.load(std::memory_order_relaxed); }
  uint64_t freed() const { return freed_.load(std::memory_order_relaxed); }

 private:
  void Run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;  // guarded by mutex_
  bool stop_ = false;                        // guarded by mutex_
  std::atomic<uint64_t> pending_{0};
  std::atomic<uint64_t> freed_{0};
  std::thread thread_;
};

// Why writes are refused just now.
enum class WriteDenial : uint8_t { kNone, kDiskError, kOutOfMemory };

class Engine {
 public:
  Engine(const EngineOptions& options, const CommandTable* commands);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const EngineOptions& options() const { return options_; }
  const CommandTable& commands() const { return *commands_; }
  ReclaimDomain& reclaim() { return reclaim_; }
  Keyspace& keyspace() { return keyspace_; }
  EpochClock& epochs() { return epochs_; }
  StopGate& gate() { return gate_; }
  ObjectTable& objects() { return objects_; }
  LazyFree& lazy_free() { return lazy_free_; }
  HelperThreads& helpers() { return helpers_; }
  Eviction& eviction() { return eviction_; }
  const Eviction& eviction() const { return eviction_; }
  WorkerState& worker(unsigned i) { return *workers_[i]; }
  unsigned workers() const { return options_.workers; }
  void SetObjectHost(ObjectHost* host) { object_host_ = host; }
  ObjectHost* object_host_or_null() const { return object_host_; }
  // Null without an upkeep thread. Set while no command runs.
  void SetBackgroundJobs(BackgroundJobs* jobs) { background_jobs_ = jobs; }
  BackgroundJobs* background_jobs_or_null() const { return background_jobs_; }

  // Effects go to the workers' log buffers (appendonly yes, or a snapshot runs without a log); read inside an epoch.
  std::atomic<bool> log_effects{false};
  std::atomic<bool> always_fsync{false};  // appendfsync always, with a log: replies wait
  // Cleared with release once loading threads have ended; what they made is read only after an acquire of it.
  std::atomic<bool> loading{false};
  // Disk failure: set with its reason by persistence. Reads are answered, expired keys hidden, not deleted.
  std::atomic<bool> disk_denied{false};
  std::atomic<bool> memory_denied{false};  // over maxmemory without eviction, or near the cgroup's limit
  void SetDiskDenied(std::string reason);  // empty: fine again
  std::string disk_denied_reason() const;
  // An object's file could not be made or grown: nothing is written for a second, then the next write tries again.
  void NoteObjectFailure(std::string reason);
  std::string object_failure() const;  // the reason while that lasts, or empty
  std::atomic<bool> active_expire{true};
  std::atomic<bool> debug_commands{false};  // enable-debug-command, as evaluated for local connections
  std::atomic<uint64_t> string_bytes_max{kStringBytesMax};  // proto-max-bulk-len
  std::atomic<bool> lfu_policy{false};  // maxmemory-policy is one of the LFU kind

  // Turn-end work of a worker, with a time budget: active expiry, eviction, turn tasks, reclamation. True when more work waits.
  bool TurnEnd(WorkerState& worker, int64_t budget_ns);
  void AddTurnTask(TurnTask* task);
  void RemoveTurnTask(TurnTask* task);  // waits until no worker is in it; not from a worker's turn
  bool HasTurnTasks() const { return turn_tasks_count_.load(std::memory_order_acquire) != 0; }

  // Statistics over all workers and stripes. Takes each stripe's lock for a moment.
  struct Totals {
    uint64_t keys = 0;
    uint64_t volatile_keys = 0;
    int64_t entry_bytes = 0;
    int64_t table_bytes = 0;
  };
  Totals CountTotals();
  // Keys and volatile keys of one database.
  Totals CountDb(uint32_t db);
  // Mean time to live of a database's volatile keys in ms, estimated from a few of them; 0: there is none.
  int64_t AverageTtlMs(uint32_t db, int64_t now_ms);
  uint64_t WaitedNs(WaitCause cause) const;  // over all workers
  uint64_t SumOverWorkers(std::atomic<uint64_t> WorkerState::*counter) const;

  // Order-free digest of the whole keyspace or one database (DEBUG DIGEST). Requires the stop word or no workers.
  uint64_t Digest();

  // --- recovery: no worker runs yet, or all are stopped ---
  // Applies a logged effect; the effects of one stripe or object must come in lsn order. Threads may replay different
  // stripes side by side.
  Status Replay(const Effect& effect);

 private:
  bool ExpireStep(WorkerState& worker, int64_t deadline_ns);
  size_t ExpireStripe(WorkerState& worker, Stripe& stripe);

  const EngineOptions options_;
  const CommandTable* const commands_;
  ReclaimDomain reclaim_;
  LazyFree lazy_free_;
  ObjectTable objects_;
  Keyspace keyspace_;
  EpochClock epochs_;
  StopGate gate_;
  Eviction eviction_{this};
  std::vector<std::unique_ptr<WorkerState>> workers_;
  ObjectHost* object_host_ = nullptr;
  BackgroundJobs* background_jobs_ = nullptr;
  mutable std::mutex reason_mutex_;
  std::string disk_denied_reason_;  // guarded by reason_mutex_
  std::string object_failure_;      // guarded by reason_mutex_, as the next
  int64_t object_failed_ns_ = 0;
  std::mutex tasks_mutex_;
  std::vector<TurnTask*> tasks_;  // guarded by tasks_mutex_
  std::atomic<uint32_t> turn_tasks_count_{0};
  HelperThreads helpers_{HelperThreads::Fitting()};  // last: ends first, its work refers to objects
};

}  // namespace hotkv
