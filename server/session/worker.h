// Worker: one thread with its event loop, its clients and its share of the engine's work. A command
// runs here, on the thread that received its bytes.
//
// A turn: wait for the network, then inside the stop gate execute what came (whole pipelines, in
// windows of commands whose keys are prefetched together), run messages, what was left of earlier
// turns, parked clients whose wait may be over, timers, and the engine's own steps. Replies of the
// turn go out together at the start of the next wait.
//
// A client's pipeline may take kTurnBudgetNs of a turn; the rest waits in its input buffer for the
// next one.
//
// Thread rules: everything but Post, Adopt, WakeForLog and the counters marked so belongs to the
// worker's own thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/base/mailbox.h"
#include "engine/base/resp.h"
#include "engine/store/keyspace.h"
#include "engine/tx/executor.h"
#include "server/config/settings.h"
#include "server/net/event_loop.h"
#include "server/net/listener.h"
#include "server/session/client.h"

namespace hotkv {

class Engine;
class Server;
struct WorkerState;
enum class WaitCause : uint8_t;

class Worker final : public LoopEvents {
 public:
  Worker(Server* server, unsigned id);
  ~Worker() override;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the thread; returns when its event loop works or cannot be made.
  Status Start(IoBackend backend);
  void RequestStop();
  void Join();

  unsigned id() const { return id_; }
  std::string_view io_name() const { return io_name_; }  // constant after Start

  // --- any thread ---
  void Adopt(Accepted accepted);
  void Post(Mailbox::Message message);
  // The log has moved: held replies may go, writes that waited may run.
  void WakeForLog();
  size_t client_count() const { return client_count_.load(std::memory_order_relaxed); }
  uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }

  // --- this thread ---
  // Closes at the end of the present step; unsent replies are lost.
  void CloseLater(Client& client);
  void AddParked(Client& client) { parked_.push_back(&client); }
  void Unpark(Client& client);
  // Ends a wait with its answer: the deadline's, or an error.
  void EndWait(Client& client, std::string_view error);
  void Publish(Client& client);
  // Sends what another part of the server (pub/sub) has put into the client's output.
  void QueueSend(Client& client) { loop_->QueueSend(client); }

  void OnData(Connection& connection, std::string_view bytes) override;
  void OnDisconnect(Connection& connection, int error) override;
  void OnSent(Connection& connection) override;

 private:
  // Settings that are looked at often, copied when they change.
  struct Limits {
    uint64_t version = 0;
    ParseLimits parse;
    size_t query_bytes_max = 0;
    OutputLimit output;
    int64_t idle_ms_max = 0;
    int64_t keepalive_s = 0;
  };
  enum class Stop : uint8_t { kNo, kBudget, kBlocked };

  void Run(IoBackend backend);
  void EnterGate();
  void Turn();
  bool MayEnd();
  void RefreshLimits();
  void RefreshTime();
  int64_t WaitTimeUs(bool more_work);

  // Executes the complete requests of `data`; returns how many bytes are done with.
  size_t Execute(Client& client, std::string_view data);
  void ExecuteBuffered(Client& client);
  void AfterExecution(Client& client);
  size_t RunBatch(Client& client, Stop* stop);
  void Prefetch(const Client& client, size_t first, size_t count);
  Stop RunOne(Client& client, const CommandSpec* spec, Args args);
  Stop RunUnusual(Client& client, const CommandSpec* spec, Args args);
  Stop DispatchByReplyMode(Client& client, const CommandSpec* spec, Args args);
  Stop Dispatch(Client& client, const CommandSpec* spec, Args args);
  void WaitLater(Client& client, WaitCause cause);
  // Returns the slow log's number where the command is in it.
  std::optional<uint64_t> Account(Client& client, const DispatchResult& result, Args args, uint64_t errors_before);
  std::optional<uint64_t> RecordSlow(Client& client, const DispatchResult& result, Args args, int64_t waited_ns);
  void RecordFinished();
  void ProtocolError(Client& client);

  void Hold(Client& client, uint64_t begin, uint64_t epoch);
  void ReleaseHolds();
  void EndHold(Client& client);
  void EndSlowWaits(uint64_t epoch);
  void FailHolds();
  void SetSendLimit(Client& client);
  void RetryWaiting();
  void AskParked();
  void RunBacklog();

  void Tick();
  uint64_t SpinAfter(uint64_t turn_cycles) const;
  void GiveBackMemory();
  void CheckClient(Client& client);
  bool OverOutputLimit(Client& client);
  void FlushCounters();
  void Admit(const Accepted& accepted);
  void DestroyClosing();
  void FinishAfterPeerClosed(Client& client);
  bool MayExecute(const Client& client) const;

  Server* const server_;
  Engine* const engine_;
  const unsigned id_;
  WorkerState& state_;
  Executor executor_;
  BlockPool pool_;
  std::unique_ptr<EventLoop> loop_;
  std::string io_name_;
  Mailbox mailbox_;
  std::thread thread_;

  std::mutex start_mutex_;
  std::condition_variable start_changed_;
  bool started_ = false;  // guarded by start_mutex_
  Status start_status_;   // guarded by start_mutex_

  std::atomic<bool> stop_{false};
  std::atomic<size_t> client_count_{0};
  std::atomic<uint64_t> turns_{0};
  std::atomic<bool> wants_log_{false};  // seq_cst with the log's durable epoch: no wake-up is lost

  Limits limits_;
  RequestBatch batch_;
  const CommandSpec* specs_[kCommandWindow] = {};
  KeyRef refs_[kCommandWindow] = {};
  const KeyRef* first_keys_[kCommandWindow] = {};  // into refs_, or null
  bool always_ = false;   // appendfsync always, as of this turn
  uint64_t durable_ = 0;  // newest durable epoch seen
  bool disk_denied_ = false;
  bool sync_wanted_ = false;       // replies of this turn wait for the log
  uint64_t slice_end_cycles_ = 0;  // of the client that runs now
  uint64_t budget_cycles_ = 0;
  const bool can_spin_;  // on one core it would keep the client from running
  const uint64_t spin_min_cycles_;
  const uint64_t spin_max_cycles_;
  int64_t next_tick_ms_ = 0;
  int64_t stop_deadline_ms_ = 0;  // 0: goes on
  size_t tick_position_ = 0;
  uint64_t frees_seen_ = 0;  // of LazyFree, when memory was last given back
  uint64_t received_bytes_ = 0;  // not in the server's statistics yet
  uint64_t sent_bytes_ = 0;

  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<Client*> closing_;
  std::vector<Client*> backlog_;  // have requests left of an earlier turn
  // Entries of the slow log whose replies wait for the log.
  struct SlowWait {
    uint64_t slowlog_id;
    uint64_t epoch;
    int64_t since_ns;
  };
  std::deque<SlowWait> slow_waits_;
  std::vector<Client*> holding_;  // have replies that wait for the log
  std::vector<Client*> waiting_;  // whose next command waits for the log or a pause
  std::vector<Client*> parked_;
};

}  // namespace hotkv
