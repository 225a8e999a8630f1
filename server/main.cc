// main() of hotkv-server: reads the settings, puts engine, data directory and server together, and
// runs them.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/tx/engine.h"
#include "engine/types/upkeep.h"
#include "engine/types/vector_set.h"
#include "persistence/data_directory.h"
#include "server/commands/families.h"
#include "server/config/config.h"
#include "server/data_durability.h"
#include "server/process.h"
#include "server/server.h"
#include "server/version.h"

namespace hotkv {

namespace {

int Complain(const Status& status) {
  std::string where = status.path().empty() ? "" : " (" + status.path();
  if (!where.empty() && status.offset() >= 0) where += " @" + std::to_string(status.offset());
  if (!where.empty()) where += ")";
  std::fprintf(stderr, "%s%s\n", status.message().c_str(), where.c_str());
  return 1;
}

void ShowHelp() {
  std::printf(
      "Usage: hotkv-server [/path/to/redis.conf] [--name value ...] [-]\n"
      "       hotkv-server -                   read the configuration from standard input\n"
      "       hotkv-server -v | --version\n"
      "       hotkv-server -h | --help\n\n"
      "Every directive of the configuration file can be given as --name value. Those that HotKV "
      "reads:\n\n");
  const auto all = AllSettings();
  for (size_t i = 0; i < static_cast<size_t>(Setting::kCount); ++i) {
    if (all[i].Has(setting_flag::kHidden | setting_flag::kAccepted)) continue;
    const std::string shown =
        all[i].default_text.empty() ? "\"\"" : std::string(all[i].default_text);
    std::printf("  --%-36.*s %.*s [%s]\n", static_cast<int>(all[i].name.size()), all[i].name.data(),
                static_cast<int>(all[i].summary.size()), all[i].summary.data(), shown.c_str());
  }
}

unsigned WorkersOf(const Settings& settings) {
  const int64_t asked = settings.Int(Setting::kThreads);
  if (asked > 0) return static_cast<unsigned>(std::min<int64_t>(asked, kWorkersMax));
  return std::clamp(std::thread::hardware_concurrency(), 1u, kWorkersMax);
}

// The data directory exists afterwards, and the setting names it absolutely, whatever becomes of
// the working directory.
Status PrepareDirectory(StartOptions* options) {
  const std::string dir = options->settings.Text(Setting::kDir);
  if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, "Cannot make the data directory", dir);
  }
  char absolute[PATH_MAX];
  if (realpath(dir.c_str(), absolute) == nullptr)
    return Status::FromErrno(errno, "Cannot use the data directory", dir);
  struct stat info {};
  if (stat(absolute, &info) != 0 || !S_ISDIR(info.st_mode))
    return Status::FromErrno(ENOTDIR, "Cannot use the data directory", absolute);
  const std::string word = absolute;
  return options->settings.Set(static_cast<size_t>(Setting::kDir), {&word, 1});
}

CommandTable MakeCommandTable() {
  const std::span<const CommandSpec> families[] = {
      StringCommands(),     GenericCommands(),     TransactionCommands(), VectorCommands(),
      ConnectionCommands(), ClientCommands(),      CommandCommands(),     ServerCommands(),
      ConfigCommands(),     PersistenceCommands(), DebugCommands(),       MemoryCommands(),
      MonitoringCommands()};
  return CommandTable(families);
}

void LogStart(const StartOptions& options, unsigned workers) {
  Log(LogLevel::kNotice,
      fmt::format("HotKV {} (speaks Redis {}) starting, pid {}, {} workers, data in {}",
                  kHotkvVersion, kRedisVersion, getpid(), workers,
                  options.settings.Text(Setting::kDir)));
  if (options.accepted.empty()) return;
  std::string list;
  for (const std::string& name : options.accepted) list += (list.empty() ? "" : ", ") + name;
  Log(LogLevel::kNotice, "Settings that are accepted and have no effect here: " + list);
}

Status OpenLog(const Settings& settings) {
  SetLogLevel(static_cast<LogLevel>(settings.Choice(Setting::kLogLevel)));
  return OpenLogFile(settings.Text(Setting::kLogFile));
}

// Everything that lives as long as the server, in the order in which it must be made (and ended the
// other way round).
class Process {
 public:
  explicit Process(StartOptions options)
      : workers_(WorkersOf(options.settings)), config_(std::move(options)) {}

  // Takes the sockets over. Nothing of the data directory has been touched when they could not be had.
  Status Start(std::vector<ListenSocket> sockets);
  void Run();

 private:
  Status OpenData();
  void LoadData();

  const unsigned workers_;
  const CommandTable commands_ = MakeCommandTable();
  Config config_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<DataDirectory> directory_;
  std::unique_ptr<DataDurability> durability_;
  std::unique_ptr<Upkeep> upkeep_;  // ends before the engine and the directory do
  std::unique_ptr<Server> server_;
  // The directory's threads begin before the server is there.
  std::atomic<Server*> running_{nullptr};
  std::string load_error_;  // written before load_failed_ is set
  std::atomic<bool> load_failed_{false};
  std::thread loader_;
};

// A server that is ending has closed its sockets already while it still holds the directory:
// whoever restarts it at that moment waits for it.
Result<std::unique_ptr<DataDirectory>> OpenDirectory(const DataDirectoryOptions& options) {
  constexpr int64_t kPatienceNs = 5'000'000'000;
  constexpr std::chrono::milliseconds kPause{20};
  const int64_t deadline_ns = Clock::MonotonicNs() + kPatienceNs;
  for (;;) {
    Result<std::unique_ptr<DataDirectory>> directory = DataDirectory::Open(options);
    const bool locked = !directory.ok() && directory.status().code() == Code::kLocked;
    if (!locked || Clock::MonotonicNs() > deadline_ns) return directory;
    std::this_thread::sleep_for(kPause);
  }
}

Status Process::OpenData() {
  const std::shared_ptr<const Settings> settings = config_.Current();
  DataDirectoryOptions options = DirectoryOptionsOf(*settings);
  options.wake_workers = [this] {
    if (Server* server = running_.load(std::memory_order_acquire)) server->WakeWorkers();
  };
  options.on_progress = [this] {
    if (Server* server = running_.load(std::memory_order_acquire)) server->OnDurable();
  };
  HOTKV_ASSIGN_OR_RETURN(directory_, OpenDirectory(options));
  const EngineParameters parameters = directory_->parameters();
  EngineOptions engine_options;
  engine_options.workers = workers_;
  engine_options.keyspace.stripe_bits = parameters.stripe_bits;
  engine_options.keyspace.hash_seed = parameters.hash_seed;
  engine_options.keyspace.databases = static_cast<unsigned>(settings->Int(Setting::kDatabases));
  engine_options.first_epoch = parameters.first_epoch;
  engine_options.first_object_id = parameters.first_object_id;
  engine_ = std::make_unique<Engine>(engine_options, &commands_);
  return Status::Ok();
}

Status Process::Start(std::vector<ListenSocket> sockets) {
  const Status opened = OpenData();
  if (!opened.ok()) {
    CloseSockets(&sockets);
    return opened;
  }
  durability_ = std::make_unique<DataDurability>(directory_.get());
  engine_->loading.store(true, std::memory_order_release);
  server_ = std::make_unique<Server>(&config_, engine_.get());
  durability_->Connect(config_);
  HOTKV_RETURN_IF_ERROR(server_->StartOn(std::move(sockets)));
  running_.store(server_.get(), std::memory_order_release);
  loader_ = std::thread([this] { LoadData(); });
  return Status::Ok();
}

// While this runs, clients are answered LOADING.
void Process::LoadData() {
  const int64_t begin_ns = Clock::MonotonicNs();
  Status status = directory_->Load(engine_.get());
  if (status.ok()) {
    const double seconds = static_cast<double>(Clock::MonotonicNs() - begin_ns) / 1e9;
    Log(LogLevel::kNotice, fmt::format("DB loaded from disk: {} keys in {:.3f} seconds",
                                       directory_->GetStatus().loaded_keys, seconds));
    status = directory_->Start();
  }
  if (!status.ok()) {
    load_error_ = status.ToString();
    load_failed_.store(true, std::memory_order_release);
    server_->RequestShutdown(ShutdownSave::kNoSave);
    return;
  }
  durability_->SetReady();
  server_->SetDurability(durability_.get());
  upkeep_ = std::make_unique<Upkeep>(engine_.get());
  upkeep_->Start();
  engine_->loading.store(false, std::memory_order_release);
  server_->WakeWorkers();  // for what the directory asked before
  Log(LogLevel::kNotice, fmt::format("Ready to accept connections on {} ({})",
                                     server_->listening_on(), server_->io_name()));
  NotifyServiceManager("READY=1\nSTATUS=Ready to accept connections");
}

void Process::Run() {
  const std::shared_ptr<const Settings> settings = config_.Current();
  server_->SetMaxClients(CheckMachine(*settings, server_->io_name()));
  std::string pid_file = settings->Text(Setting::kPidFile);
  if (pid_file.empty() && settings->Bool(Setting::kDaemonize)) pid_file = "/var/run/hotkv.pid";
  if (!pid_file.empty()) {
    const Status status = WritePidFile(pid_file);
    if (!status.ok()) Log(LogLevel::kWarning, status.message());
  }
  MainLoop(server_.get());
  if (!pid_file.empty()) unlink(pid_file.c_str());
  if (engine_->loading.load(std::memory_order_acquire)) {
    // Ended, or failed, before everything was loaded. Nothing has been written: there is nothing to
    // end cleanly, and the loading threads need not be waited for.
    const bool failed = load_failed_.load(std::memory_order_acquire);
    if (failed) loader_.join();  // it is at its end
    // The reason is the last line: what somebody sees who asks why the server is not there.
    if (failed) Log(LogLevel::kWarning, load_error_);
    fflush(nullptr);
    _exit(failed ? 1 : 0);
  }
  loader_.join();
#ifndef HOTKV_TEST_HOOKS
  // Everything is on disk, and the kernel takes memory back faster than a walk over all entries.
  // Test builds go the long way, for what watches over leaks.
  fflush(nullptr);
  _exit(0);
#endif
}

// What may be refused for the sake of others comes first: the data directory is not made in vain.
Result<std::vector<ListenSocket>> Prepare(StartOptions* options) {
  const Settings& settings = options->settings;
  if (BackendOf(settings) == IoBackend::kUring) HOTKV_RETURN_IF_ERROR(ProbeUring());
  HOTKV_ASSIGN_OR_RETURN(std::vector<ListenSocket> sockets, BindSockets(settings));
  const Status status = PrepareDirectory(options);
  if (status.ok()) return sockets;
  CloseSockets(&sockets);
  return status;
}

int Run(StartOptions options) {
  const bool daemon = options.settings.Bool(Setting::kDaemonize);
  Status status = OpenLog(options.settings);
  if (status.ok() && daemon) status = Daemonize();
  if (!status.ok()) return Complain(status);
  if (options.settings.Bool(Setting::kCrashLogEnabled)) InstallCrashReport();
  if (options.settings.Text(Setting::kSupervised) == "no") unsetenv("NOTIFY_SOCKET");
  BlockSignals();
  const bool log_is_elsewhere = !options.settings.Text(Setting::kLogFile).empty();
  const auto refuse = [&](const Status& why) {
    Log(LogLevel::kWarning, why.ToString());
    if (log_is_elsewhere) std::fprintf(stderr, "hotkv-server: %s\n", why.ToString().c_str());
    return 1;
  };
  Result<std::vector<ListenSocket>> sockets = Prepare(&options);
  if (!sockets.ok()) return refuse(sockets.status());
  LogStart(options, WorkersOf(options.settings));
  RegisterObjectTypes();
  Process process(std::move(options));
  status = process.Start(std::move(sockets).value());
  if (!status.ok()) return refuse(status);
  if (daemon) LeaveTerminal();
  process.Run();
  return 0;
}

}  // namespace

}  // namespace hotkv

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  hotkv::Result<hotkv::StartOptions> options = hotkv::ParseCommandLine(args);
  if (!options.ok()) return hotkv::Complain(options.status());
  switch (options->action) {
    case hotkv::StartOptions::Action::kShowVersion:
      std::printf("HotKV server v=%s redis=%s\n", hotkv::kHotkvVersion.data(),
                  hotkv::kRedisVersion.data());
      return 0;
    case hotkv::StartOptions::Action::kShowHelp:
      hotkv::ShowHelp();
      return 0;
    case hotkv::StartOptions::Action::kRun:
      break;
  }
  return hotkv::Run(std::move(options).value());
}
