// A real server on a loopback port with all of the server's commands, and clients of it; and a disk
// that does what the test says.
//
//   CommandRig rig;
//   CHECK(rig("SET k v") == "+OK");
//   CHECK(rig.As(1, "GET k") == "$v");
//
// Replies as text: see support/engine_fixture.h.
#pragma once

#include <catch2/catch.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/base/resp_client.h"
#include "engine/tx/engine.h"
#include "server/commands/families.h"
#include "server/config/config.h"
#include "server/net/listener.h"
#include "server/server.h"
#include "tests/support/engine_fixture.h"

namespace hotkv {

class FakeDisk final : public DurabilityControl {
 public:
  DurabilityStatus GetStatus() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }
  Result<uint64_t> BeginSnapshot(SnapshotReason reason) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    reasons_.push_back(reason);
    return reasons_.size();
  }
  SnapshotState StateOf(uint64_t snapshot) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = states_.find(snapshot);
    return found == states_.end() ? SnapshotState::kRunning : found->second;
  }
  void HelpSnapshot(WorkerState&) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++helped;
    if (finish_when_helped) states_[reasons_.size()] = *finish_when_helped;
  }
  void RequestSync() override {
    ++sync_requests;
    if (on_sync) on_sync();
  }
  bool LogCounts() override { return log_counts; }
  Status Reload() override {
    ++reloads;
    return on_reload ? on_reload() : Status::Ok();
  }
  Status ChangeReplicationId() override { return Status::Ok(); }
  void Tick(int64_t) override {}
  Status Shutdown(bool) override { return Status::Ok(); }

  // --- the test's side ---
  void Change(const std::function<void(DurabilityStatus&)>& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change(status_);
  }
  void Finish(uint64_t snapshot, SnapshotState state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    states_[snapshot] = state;
  }
  std::vector<SnapshotReason> reasons() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reasons_;
  }
  std::atomic<bool> log_counts{true};
  std::atomic<int> sync_requests{0};
  std::atomic<int> reloads{0};
  std::atomic<int> helped{0};
  // Set while nothing runs:
  std::function<Status()> on_reload;
  std::function<void()> on_sync;
  std::optional<SnapshotState> finish_when_helped;

 private:
  std::mutex mutex_;
  DurabilityStatus status_;
  std::vector<SnapshotReason> reasons_;
  std::map<uint64_t, SnapshotState> states_;
};

struct CommandRigOptions {
  std::vector<std::string> settings = {};  // {"--slowlog-max-len", "2"}
  unsigned workers = 1;
  FakeDisk* disk = nullptr;
  int protocol = 2;
};

class CommandRig {
 public:
  explicit CommandRig(CommandRigOptions options = {})
      : options_(std::move(options)), table_(Families()) {
    Result<StartOptions> parsed = ParseCommandLine(options_.settings);
    REQUIRE(parsed.ok());
    config_ = std::make_unique<Config>(std::move(parsed).value());
    EngineOptions engine_options;
    engine_options.keyspace.stripe_bits = 4;
    engine_options.workers = options_.workers;
    engine_ = std::make_unique<Engine>(engine_options, &table_);
    server_ = std::make_unique<Server>(config_.get(), engine_.get());
    if (options_.disk != nullptr) server_->SetDurability(options_.disk);
    Result<ListenSocket> socket = BindLoopback();
    REQUIRE(socket.ok());
    REQUIRE(server_->StartOn({*socket}).ok());
  }

  Server& server() { return *server_; }
  Engine& engine() { return *engine_; }
  const CommandTable& table() const { return table_; }

  RespClient& client(size_t i) {
    while (clients_.size() <= i) clients_.push_back(Connect());
    return *clients_[i];
  }
  std::unique_ptr<RespClient> Connect() {
    RespAddress address;
    address.port = server_->tcp_port();
    RespClientOptions client_options;
    client_options.protocol = options_.protocol;
    Result<std::unique_ptr<RespClient>> made = RespClient::Connect(address, client_options);
    REQUIRE(made.ok());
    return std::move(made).value();
  }

  // Words are separated by blanks; "" is an empty word.
  std::string operator()(std::string_view line) { return As(0, line); }
  std::string As(size_t i, std::string_view line) {
    const std::vector<std::string> words = SplitWords(line);
    return Call(i, {words.begin(), words.end()});
  }
  std::string Call(size_t i, std::vector<std::string_view> words) {
    const Result<RespValue> reply = client(i).Call(words);
    return reply.ok() ? fixture_internal::Render(*reply, " ") : "closed";
  }
  // The reply as a tree.
  RespValue Tree(std::string_view line) {
    const std::vector<std::string> words = SplitWords(line);
    const std::vector<std::string_view> views(words.begin(), words.end());
    Result<RespValue> reply = client(0).Call(views);
    REQUIRE(reply.ok());
    return std::move(reply).value();
  }
  // The value of a line of INFO; empty when it is not there.
  std::string Info(const std::string& section, const std::string& field) {
    const std::string text = "\n" + Tree("INFO " + section).text;
    const size_t at = text.find("\n" + field + ":");
    if (at == std::string::npos) return "";
    const size_t begin = at + field.size() + 2;
    return text.substr(begin, text.find('\r', begin) - begin);
  }

 private:
  static std::vector<std::span<const CommandSpec>> Families() {
    return {StringCommands(),      GenericCommands(), TransactionCommands(), ConnectionCommands(),
            ClientCommands(),      CommandCommands(), ServerCommands(),      ConfigCommands(),
            PersistenceCommands(), DebugCommands(),   MemoryCommands(),      MonitoringCommands()};
  }

  const CommandRigOptions options_;
  CommandTable table_;
  std::unique_ptr<Config> config_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<RespClient>> clients_;
};

// Waits, up to a time that only a hung server needs, until the condition holds.
inline bool Eventually(const std::function<bool()>& condition) {
  constexpr int kTries = 2000;
  for (int i = 0; i < kTries; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

inline bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace hotkv
