#include "server/server.h"

#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/tx/engine.h"
#include "server/commands/reset_statistics.h"
#include "server/session/worker.h"

namespace hotkv {

namespace {

constexpr size_t kRunIdBytes = 20;
constexpr int64_t kClockApartUs = 1'000'000;
constexpr int64_t kClockApartMs = 10'000;
constexpr useconds_t kSnapshotPollUs = 10'000;
constexpr int64_t kForeverMs = INT64_MAX;

constexpr std::string_view kTooManyClients = "-ERR max number of clients reached\r\n";
constexpr std::string_view kProtected =
    "-DENIED HotKV is running in protected mode: no password is set for the default user, so only "
    "clients on the same "
    "machine are let in. To connect from elsewhere, set a password (requirepass in the "
    "configuration, or CONFIG SET "
    "requirepass from this machine), or switch the protection off with protected-mode no if the "
    "network is trusted.\r\n";

std::string NewRunId() {
  unsigned char bytes[kRunIdBytes];
  HOTKV_CHECK(getrandom(bytes, sizeof(bytes), 0) == static_cast<ssize_t>(sizeof(bytes)));
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string id;
  for (const unsigned char byte : bytes) {
    id += kHex[byte >> 4];
    id += kHex[byte & 15];
  }
  return id;
}

// Time does not depend on how much of it is right.
bool SamePassword(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char other = wanted.empty() ? '\0' : wanted[i % wanted.size()];
    difference |= static_cast<unsigned>(static_cast<unsigned char>(given[i] ^ other));
  }
  return difference == 0;
}

void Refuse(int fd, std::string_view text) {
  [[maybe_unused]] const ssize_t sent =
      send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  close(fd);
}

}  // namespace

IoBackend BackendOf(const Settings& settings) {
  const std::string& io = settings.Text(Setting::kIo);
  if (io == "uring") return IoBackend::kUring;
  return io == "epoll" ? IoBackend::kEpoll : IoBackend::kAuto;
}

Server::Server(Config* config, Engine* engine)
    : config_(config), engine_(engine), run_id_(NewRunId()), started_ms_(Clock::NowMs()) {
  shutdown_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  HOTKV_CHECK(shutdown_fd_ >= 0);
  ApplySettings(*config_->Current());
  gauges_.ApplyMemoryLimit(*config_->Current());
  ConnectRecorder(*config_, recorder_);
  ListenForChanges();
}

Server::~Server() {
  acceptor_.reset();
  for (const auto& worker : workers_) worker->RequestStop();
  for (const auto& worker : workers_) worker->Join();
  close(shutdown_fd_);
}

void Server::ApplySettings(const Settings& settings) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  auth_required_.store(!settings.Text(Setting::kRequirePass).empty(), kRelaxed);
  engine_->string_bytes_max.store(static_cast<uint64_t>(settings.Int(Setting::kProtoMaxBulkLen)),
                                  kRelaxed);
  SetLogLevel(static_cast<LogLevel>(settings.Choice(Setting::kLogLevel)));
}

void Server::ListenForChanges() {
  config_->OnChange({Setting::kRequirePass, Setting::kProtoMaxBulkLen, Setting::kLogLevel},
                    [this](const Settings&, const Settings& after) {
                      ApplySettings(after);
                      return Status::Ok();
                    });
  config_->OnChange({Setting::kMaxMemory, Setting::kMaxMemoryPolicy, Setting::kMaxMemorySamples,
                     Setting::kLfuLogFactor},
                    [this](const Settings&, const Settings& after) {
                      gauges_.ApplyMemoryLimit(after);
                      return Status::Ok();
                    });
  config_->OnChange(
      {Setting::kBind, Setting::kPort},
      [this](const Settings& before, const Settings& after) { return Rebind(before, after); });
}

Status Server::StartOn(std::vector<ListenSocket> sockets) {
  const IoBackend backend = BackendOf(*config_->Current());
  for (const ListenSocket& socket : sockets) {
    if (!socket.is_unix && tcp_port_ == 0) tcp_port_ = PortOf(socket);
  }
  for (unsigned i = 0; i < engine_->workers(); ++i) {
    workers_.push_back(std::make_unique<Worker>(this, i));
    const Status status = workers_.back()->Start(backend);
    if (!status.ok()) {
      CloseSockets(&sockets);
      return status;
    }
  }
  acceptor_ = std::make_unique<Acceptor>(
      std::move(sockets), [this](Accepted accepted) { OnAccepted(std::move(accepted)); });
  return acceptor_->Start();
}

std::string Server::io_name() const {
  return workers_.empty() ? "" : std::string(workers_[0]->io_name());
}

int64_t Server::MaxClients() const {
  return std::min(config_->Current()->Int(Setting::kMaxClients),
                  clients_possible_.load(std::memory_order_relaxed));
}

std::string Server::listening_on() const {
  std::string list;
  for (const std::string& name : acceptor_->names()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

Status Server::Rebind(const Settings& before, const Settings& after) {
  if (acceptor_ == nullptr) return Status::Ok();
  // The old sockets go first: the new ones may have the same addresses.
  acceptor_->Replace({});
  Result<std::vector<ListenSocket>> sockets = BindSockets(after);
  Status status;
  if (!sockets.ok()) {
    status =
        Status::InvalidArgument("Unable to listen on this port: " + sockets.status().message());
    sockets = BindSockets(before);
    if (!sockets.ok()) return status;
  }
  tcp_port_ = 0;
  for (const ListenSocket& socket : *sockets) {
    if (!socket.is_unix && tcp_port_ == 0) tcp_port_ = PortOf(socket);
  }
  acceptor_->Replace(std::move(sockets).value());
  return status;
}

void Server::OnAccepted(Accepted accepted) {
  const std::shared_ptr<const Settings> settings = config_->Current();
  const size_t now_open = connections_.load(std::memory_order_relaxed);
  if (now_open >= static_cast<size_t>(MaxClients())) {
    stats_.connections_rejected.fetch_add(1, std::memory_order_relaxed);
    return Refuse(accepted.fd, kTooManyClients);
  }
  if (!accepted.is_local && settings->Bool(Setting::kProtectedMode) && !AuthRequired()) {
    stats_.connections_rejected.fetch_add(1, std::memory_order_relaxed);
    return Refuse(accepted.fd, kProtected);
  }
  connections_.fetch_add(1, std::memory_order_relaxed);
  stats_.connections_received.fetch_add(1, std::memory_order_relaxed);
  if (now_open + 1 > stats_.peak_clients.load(std::memory_order_relaxed)) {
    stats_.peak_clients.store(now_open + 1, std::memory_order_relaxed);
  }
  Worker* least_loaded = workers_[0].get();
  for (const auto& worker : workers_) {
    if (worker->client_count() < least_loaded->client_count()) least_loaded = worker.get();
  }
  least_loaded->Adopt(std::move(accepted));
}

bool Server::Authenticate(std::string_view user, std::string_view password) const {
  const std::shared_ptr<const Settings> settings = config_->Current();
  const std::string& wanted = settings->Text(Setting::kRequirePass);
  const bool right = wanted.empty() || SamePassword(password, wanted);
  return user == "default" && right;
}

bool Server::KillClient(uint64_t id) {
  const bool there = clients_.With(id, [](Client&) {});
  if (there) RunOnClient(id, [](Client& client) { client.worker().CloseLater(client); });
  return there;
}

bool Server::UnblockClient(uint64_t id, bool with_error) {
  bool waits = false;
  clients_.With(
      id, [&](Client& client) { waits = client.shared.parked.load(std::memory_order_relaxed); });
  if (!waits) return false;
  RunOnClient(id, [with_error](Client& client) {
    if (client.park_kind != Client::ParkKind::kBlocking) return;
    client.worker().EndWait(client,
                            with_error ? "UNBLOCKED client unblocked via CLIENT UNBLOCK" : "");
  });
  return true;
}

void Server::RunOnClient(uint64_t id, std::function<void(Client&)> call) {
  Worker* owner = nullptr;
  clients_.With(id, [&](Client& client) { owner = &client.worker(); });
  if (owner == nullptr) return;
  owner->Post([this, id, call = std::move(call)] {
    // Only its owner, which runs this, ends a client: it stays after the lock is gone.
    Client* found = nullptr;
    clients_.With(id, [&](Client& client) { found = &client; });
    if (found != nullptr && !found->closing) call(*found);
  });
}

void Server::OnDurable() {
  for (const auto& worker : workers_) worker->WakeForLog();
}

void Server::WakeWorkers() {
  for (const auto& worker : workers_) worker->Post([] {});
}

void Server::Tick(int64_t now_ms) {
  // Loading is looked at first: it ends only after the durability has been set.
  const bool loading = engine_->loading.load(std::memory_order_acquire);
  if (DurabilityControl* durability = durability_or_null()) {
    durability->Tick(now_ms);
  } else if (!loading) {
    // Nobody writes the epochs: they end here, since a worker's count of commits in one is bounded.
    EpochClock& epochs = engine_->epochs();
    const uint64_t closed = epochs.Close();
    epochs.Release(closed);
    epochs.SetWritten(closed);
    epochs.SetDurable(closed);
  }
  AdvanceShutdown();
  gauges_.Tick(now_ms);
  FollowClock(now_ms);
}

void Server::FollowClock(int64_t now_ms) {
  const int64_t drift_us = Clock::DriftUs();
  if (std::abs(drift_us) < kClockApartUs) {
    clock_apart_since_ms_ = 0;
    return;
  }
  if (clock_apart_since_ms_ == 0) clock_apart_since_ms_ = now_ms;
  if (now_ms - clock_apart_since_ms_ < kClockApartMs) return;
  clock_apart_since_ms_ = 0;
  if (!config_->Current()->Bool(Setting::kClockFollow)) return;
  Clock::Shift(drift_us);
  Log(LogLevel::kWarning, "The system's clock was stepped by " + std::to_string(drift_us / 1000) +
                              " ms; expiry follows it from now on (clock-follow)");
}

void Server::AdvanceShutdown() {
  if (pending_shutdown_.Advance()) RequestShutdown(ShutdownSave::kNoSave);
}

void Server::RequestShutdown(ShutdownSave save) {
  shutdown_save_.store(save, std::memory_order_relaxed);
  shutting_down_.store(true, std::memory_order_release);
  eventfd_write(shutdown_fd_, 1);
}

bool Server::TakeLastSnapshot() {
  const ShutdownSave save = shutdown_save_.load(std::memory_order_relaxed);
  DurabilityControl* durability = durability_or_null();
  if (durability == nullptr || save == ShutdownSave::kNoSave) return true;
  const bool due = save == ShutdownSave::kSave ||
                   (!durability->GetStatus().log_on && !config_->Current()->SavePoints().empty());
  if (!due) return true;
  const Result<uint64_t> snapshot = durability->BeginSnapshot(SnapshotReason::kSave);
  if (!snapshot.ok()) return false;
  SnapshotState state = SnapshotState::kRunning;
  while ((state = durability->StateOf(*snapshot)) == SnapshotState::kRunning)
    usleep(kSnapshotPollUs);
  return state == SnapshotState::kDone;
}

bool Server::Stop() {
  eventfd_t count = 0;
  eventfd_read(shutdown_fd_, &count);
  Log(LogLevel::kNotice, "Shutting down...");
  // From here on no write begins, so that the snapshot and the log end with what clients were told.
  pause_.Pause(ClientPause::Mode::kWrite, kForeverMs);
  if (!TakeLastSnapshot()) {
    Log(LogLevel::kWarning, "Error trying to save the data: see above.");
    if (!std::exchange(shutdown_failed_once_, true)) {
      Log(LogLevel::kWarning, "The server goes on; ask again to stop it without a snapshot.");
      pause_.Unpause();
      shutting_down_.store(false, std::memory_order_release);
      return false;
    }
  }
  acceptor_.reset();
  for (const auto& worker : workers_) worker->RequestStop();
  for (const auto& worker : workers_) worker->Join();
  if (DurabilityControl* durability = durability_or_null()) {
    const Status status = durability->Shutdown(false);
    if (!status.ok()) Log(LogLevel::kWarning, "While ending the log: " + status.ToString());
  }
  Log(LogLevel::kNotice, "HotKV is now ready to exit, bye bye...");
  return true;
}

}  // namespace hotkv
