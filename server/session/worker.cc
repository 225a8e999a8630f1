#include "server/session/worker.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine/base/allocator.h"
#include "engine/base/clock.h"
#include "engine/base/cycle_clock.h"
#include "engine/base/log.h"
#include "engine/tx/engine.h"
#include "server/server.h"

namespace hotkv {

namespace {

constexpr int64_t kTickMs = 100;
constexpr int64_t kIdleWaitUs = kTickMs * 1000;
constexpr int64_t kParkedWaitUs = 10'000;
constexpr int64_t kRetryWaitUs = 1'000;
constexpr int64_t kTurnEndBudgetNs = 200'000;
constexpr int64_t kDrainMs = 1'000;
constexpr uint64_t kFreesWorthwhile = 64;  // of tables and objects
constexpr int64_t kSpinMinNs = 10'000;
constexpr int64_t kSpinMaxNs = 50'000;
constexpr size_t kTicksPerRound = 10;  // each client is looked at once in so many ticks

uint64_t CyclesOf(int64_t ns) {
  return static_cast<uint64_t>(static_cast<double>(ns) / NanosecondsPerCycle());
}

}  // namespace

Worker::Worker(Server* server, unsigned id)
    : server_(server),
      engine_(&server->engine()),
      id_(id),
      state_(engine_->worker(id)),
      executor_(engine_, &state_),
      budget_cycles_(CyclesOf(kTurnBudgetNs)),
      can_spin_(sysconf(_SC_NPROCESSORS_ONLN) > 1),
      spin_min_cycles_(CyclesOf(kSpinMinNs)),
      spin_max_cycles_(CyclesOf(kSpinMaxNs)) {}

Worker::~Worker() { Join(); }

Status Worker::Start(IoBackend backend) {
  thread_ = std::thread([this, backend] { Run(backend); });
  std::unique_lock<std::mutex> lock(start_mutex_);
  start_changed_.wait(lock, [this] { return started_; });
  return start_status_;
}

void Worker::RequestStop() {
  stop_.store(true, std::memory_order_release);
  Post([] {});
}

void Worker::Join() {
  if (thread_.joinable()) thread_.join();
}

void Worker::Post(Mailbox::Message message) {
  if (mailbox_.Push(std::move(message)) && loop_ != nullptr) loop_->Wake();
}

void Worker::WakeForLog() {
  if (wants_log_.exchange(false, std::memory_order_seq_cst)) loop_->Wake();
}

void Worker::Run(IoBackend backend) {
  pthread_setname_np(pthread_self(), ("hotkv-work-" + std::to_string(id_)).c_str());
  Result<std::unique_ptr<EventLoop>> loop = EventLoop::Make(backend, this);
  {
    std::lock_guard<std::mutex> lock(start_mutex_);
    if (loop.ok()) {
      loop_ = std::move(loop).value();
      io_name_ = loop_->name();
    } else {
      start_status_ = std::move(loop).status();
    }
    started_ = true;
  }
  start_changed_.notify_all();
  if (loop_ == nullptr) return;
  RefreshTime();
  next_tick_ms_ = state_.now_ms;
  bool more_work = false;
  uint64_t spin_cycles = 0;
  while (!MayEnd()) {
    loop_->Wait(WaitTimeUs(more_work), spin_cycles);
    EnterGate();
    const uint64_t start = CycleNow();
    Turn();
    spin_cycles = SpinAfter(CycleNow() - start);
    more_work = engine_->TurnEnd(state_, kTurnEndBudgetNs);
    engine_->gate().Leave(id_);
    AddRelaxed(turns_, 1);
  }
  // Replies under way get one more chance.
  loop_->Wait(0);
  engine_->gate().Enter(id_);
  for (const auto& client : clients_) CloseLater(*client);
  DestroyClosing();
  engine_->gate().Leave(id_);
}

void Worker::EnterGate() {
  const uint64_t start = CycleNow();
  if (engine_->gate().Enter(id_)) state_.AddWait(WaitCause::kStop, CyclesToNs(CycleNow() - start));
}

// A client that waits for a search sends the next one soon after the answer. Being woken for it
// would cost as much as the search, so the worker stays awake for as long as the work took: it
// spends at most twice the time, and nothing after short commands.
uint64_t Worker::SpinAfter(uint64_t turn_cycles) const {
  return can_spin_ && turn_cycles >= spin_min_cycles_ ? std::min(turn_cycles, spin_max_cycles_) : 0;
}

// Asked to stop, and replies that wait for the log or the network have gone or had their time.
bool Worker::MayEnd() {
  if (!stop_.load(std::memory_order_acquire)) return false;
  if (stop_deadline_ms_ == 0) stop_deadline_ms_ = Clock::NowMs() + kDrainMs;
  if (Clock::NowMs() >= stop_deadline_ms_) return true;
  return holding_.empty() && std::all_of(clients_.begin(), clients_.end(),
                                         [](const auto& client) { return client->out.empty(); });
}

void Worker::Turn() {
  RefreshTime();
  RefreshLimits();
  const uint64_t durable = engine_->epochs().durable();
  const bool log_moved = durable != durable_;
  durable_ = durable;
  disk_denied_ = engine_->disk_denied.load(std::memory_order_relaxed);
  always_ = engine_->always_fsync.load(std::memory_order_relaxed);
  loop_->Deliver();
  mailbox_.RunAll();
  if (log_moved && !holding_.empty()) ReleaseHolds();
  if (disk_denied_ && !holding_.empty()) FailHolds();
  RetryWaiting();
  RunBacklog();
  if (!parked_.empty()) AskParked();
  if (std::exchange(sync_wanted_, false) && server_->durability_or_null() != nullptr) {
    server_->durability_or_null()->RequestSync();
  }
  if (state_.now_ms >= next_tick_ms_) Tick();
  DestroyClosing();
}

void Worker::RefreshTime() { state_.now_ms = Clock::NowMs(); }

void Worker::RefreshLimits() {
  const uint64_t version = server_->config().version();
  if (version == limits_.version) return;
  const std::shared_ptr<const Settings> settings = server_->config().Current();
  limits_.version = version;
  limits_.parse.bulk_bytes_max = settings->Int(Setting::kProtoMaxBulkLen);
  limits_.query_bytes_max = static_cast<size_t>(settings->Int(Setting::kQueryBufferLimit));
  limits_.output = settings->OutputLimitOf(ClientClass::kNormal);
  limits_.idle_ms_max = settings->Int(Setting::kTimeout) * 1000;
  limits_.keepalive_s = settings->Int(Setting::kTcpKeepalive);
  for (const auto& client : clients_) {
    const auto hard = static_cast<size_t>(limits_.output.hard_bytes);
    client->out.SetBytesMax(hard == 0 ? SIZE_MAX : hard);
  }
}

int64_t Worker::WaitTimeUs(bool more_work) {
  if (stop_deadline_ms_ != 0) return kRetryWaitUs;
  if (more_work || !backlog_.empty() || !mailbox_.empty()) return 0;
  if (!holding_.empty() || !waiting_.empty() || !parked_.empty()) {
    wants_log_.store(true, std::memory_order_seq_cst);
    if (engine_->epochs().durable() != durable_) return 0;
  }
  if (!waiting_.empty()) return kRetryWaitUs;
  return parked_.empty() ? kIdleWaitUs : kParkedWaitUs;
}

void Worker::Adopt(Accepted accepted) {
  client_count_.fetch_add(
      1, std::memory_order_relaxed);  // counts for the choice of the next worker at once
  Post([this, accepted = std::move(accepted)] { Admit(accepted); });
}

void Worker::Admit(const Accepted& accepted) {
  auto client = std::make_unique<Client>(server_, this, accepted.fd, &pool_);
  client->id = server_->clients().NewId();
  client->socket_number = accepted.fd;
  client->peer_address = accepted.peer;
  client->local_address = accepted.local;
  client->is_unix = accepted.is_unix;
  client->is_local = accepted.is_local;
  client->created_ms = client->last_active_ms = state_.now_ms;
  client->authenticated = !server_->AuthRequired();
  const auto hard = static_cast<size_t>(limits_.output.hard_bytes);
  if (hard != 0) client->out.SetBytesMax(hard);
  if (!accepted.is_unix) PrepareTcpSocket(accepted.fd, limits_.keepalive_s);
  const Status status = loop_->Add(*client);
  if (!status.ok()) {
    Log(LogLevel::kWarning, "Could not take on a connection: " + status.ToString());
    close(accepted.fd);
    client_count_.fetch_sub(1, std::memory_order_relaxed);
    server_->ConnectionEnded();
    return;
  }
  client->worker_index = clients_.size();
  Publish(*client);
  server_->clients().Add(client.get());
  clients_.push_back(std::move(client));
}

void Worker::CloseLater(Client& client) {
  if (std::exchange(client.closing, true)) return;
  closing_.push_back(&client);
}

void Worker::DestroyClosing() {
  for (size_t i = 0; i < closing_.size(); ++i) {
    Client& client = *closing_[i];
    server_->clients().Remove(&client);
    loop_->Remove(client);
    Txn::Unwatch(state_, client);
    for (std::vector<Client*>* list : {&backlog_, &holding_, &waiting_, &parked_})
      std::erase(*list, &client);
    received_bytes_ += client.bytes_received - client.counted_received;
    sent_bytes_ += client.bytes_sent - client.counted_sent;
    const size_t index = client.worker_index;
    std::swap(clients_[index], clients_.back());
    clients_[index]->worker_index = index;
    clients_.pop_back();
    client_count_.fetch_sub(1, std::memory_order_relaxed);
    server_->ConnectionEnded();
  }
  closing_.clear();
}

void Worker::OnDisconnect(Connection& connection, int error) {
  Client& client = Client::Of(connection);
  if (client.closing) return;
  // A peer that has only closed its sending side still gets the answers to what it sent.
  if (error == 0 && !client.parked && (client.in_backlog || client.waits)) {
    client.peer_closed = true;
    loop_->Pause(client);
    return;
  }
  if (error == 0) return FinishAfterPeerClosed(client);
  CloseLater(client);
}

void Worker::FinishAfterPeerClosed(Client& client) {
  if (client.out.empty()) return CloseLater(client);
  client.peer_closed = true;
  client.close_after_reply = true;  // with what is queued
  loop_->Pause(client);
  loop_->QueueSend(client);
}

void Worker::OnSent(Connection& connection) {
  Client& client = Client::Of(connection);
  if (client.close_after_reply && client.out.empty()) CloseLater(client);
}

bool Worker::OverOutputLimit(Client& client) {
  const OutputLimit& limit = limits_.output;
  const auto bytes = static_cast<int64_t>(client.out.bytes());
  bool over = client.out.overflowed() || (limit.hard_bytes != 0 && bytes > limit.hard_bytes);
  if (limit.soft_bytes == 0 || bytes <= limit.soft_bytes) {
    client.output_soft_since_ms = 0;
  } else if (client.output_soft_since_ms == 0) {
    client.output_soft_since_ms = state_.now_ms;
  } else {
    over = over || state_.now_ms - client.output_soft_since_ms >= limit.soft_seconds * 1000;
  }
  if (!over) return false;
  Publish(client);
  Log(LogLevel::kWarning,
      "Client " + DescribeClient(client, state_.now_ms) +
          " scheduled to be closed ASAP for overcoming of output buffer limits.");
  server_->stats().output_buffer_limit_disconnections.fetch_add(1, std::memory_order_relaxed);
  CloseLater(client);
  return true;
}

void Worker::Tick() {
  next_tick_ms_ = state_.now_ms + kTickMs;
  const size_t count = clients_.size();
  const size_t share = (count + kTicksPerRound - 1) / kTicksPerRound;
  for (size_t i = 0; i < share; ++i) {
    if (tick_position_ >= count) tick_position_ = 0;
    CheckClient(*clients_[tick_position_++]);
  }
  FlushCounters();
  GiveBackMemory();
  if (id_ == 0) server_->Tick(state_.now_ms);
}

// After a flush: what another thread freed of this thread's memory goes back to the system only
// when this thread looks at it, and an idle one never does.
void Worker::GiveBackMemory() {
  const LazyFree& frees = engine_->lazy_free();
  if (frees.pending() != 0 || frees.freed() - frees_seen_ < kFreesWorthwhile) return;
  frees_seen_ = frees.freed();
  ReturnFreeMemory();
}

void Worker::CheckClient(Client& client) {
  if (client.closing) return;
  received_bytes_ +=
      client.bytes_received - std::exchange(client.counted_received, client.bytes_received);
  sent_bytes_ += client.bytes_sent - std::exchange(client.counted_sent, client.bytes_sent);
  if (OverOutputLimit(client)) return;
  const bool idle =
      limits_.idle_ms_max > 0 && state_.now_ms - client.last_active_ms > limits_.idle_ms_max;
  if (idle && !client.parked) {
    Log(LogLevel::kVerbose, "Closing idle client");
    return CloseLater(client);
  }
  if (client.parked && client.loop.paused) {
    // Nothing is received from it, so its end would go unseen.
    pollfd state{client.fd, POLLRDHUP, 0};
    if (poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
      return CloseLater(client);
  }
  Publish(client);
}

void Worker::FlushCounters() {
  ServerStats& stats = server_->stats();
  if (received_bytes_ > 0)
    stats.net_input_bytes.fetch_add(std::exchange(received_bytes_, 0), std::memory_order_relaxed);
  if (sent_bytes_ > 0)
    stats.net_output_bytes.fetch_add(std::exchange(sent_bytes_, 0), std::memory_order_relaxed);
}

void Worker::Publish(Client& client) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  ClientShared& shared = client.shared;
  shared.db.store(client.db, kRelaxed);
  shared.resp_version.store(static_cast<uint32_t>(client.reply.resp_version), kRelaxed);
  shared.last_active_ms.store(client.last_active_ms, kRelaxed);
  shared.last_command.store(client.last_command, kRelaxed);
  shared.commands.store(client.commands, kRelaxed);
  shared.query_bytes.store(client.in.size(), kRelaxed);
  shared.query_free_bytes.store(client.in.capacity() - client.in.size(), kRelaxed);
  shared.output_bytes.store(client.out.bytes(), kRelaxed);
  shared.bytes_received.store(client.bytes_received, kRelaxed);
  shared.bytes_sent.store(client.bytes_sent, kRelaxed);
  shared.multi_queued.store(client.in_multi ? static_cast<int64_t>(client.queue.size()) : -1,
                            kRelaxed);
  shared.multi_bytes.store(client.queue_bytes, kRelaxed);
  shared.watched_keys.store(static_cast<uint32_t>(client.watched.size()), kRelaxed);
}

}  // namespace hotkv
