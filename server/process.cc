#include "server/process.h"

#include <execinfo.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/log.h"
#include "server/server.h"
#include "server/version.h"

namespace hotkv {

namespace {

constexpr rlim_t kReservedFiles = 64;  // log, snapshots, rings, listening sockets
constexpr rlim_t kRingLockedBytes = rlim_t{8} << 20;

sigset_t WaitedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  return set;
}

// The words of shutdown-on-sigterm and shutdown-on-sigint.
ShutdownSave SaveOf(const std::string& words) {
  if (words.find("nosave") != std::string::npos) return ShutdownSave::kNoSave;
  return words.find("save") != std::string::npos ? ShutdownSave::kSave
                                                 : ShutdownSave::kAsConfigured;
}

void Reopen() {
  const Status status = ReopenLogFile();
  Log(LogLevel::kNotice, status.ok() ? "Log file opened again on SIGHUP" : status.ToString());
}

// Only what is safe in a signal handler.
void Put(int fd, const char* text) {
  [[maybe_unused]] const ssize_t written = write(fd, text, std::strlen(text));
}

void PutHex(int fd, uintptr_t value) {
  char text[19] = "0x0000000000000000";
  for (size_t i = 17; i >= 2; --i) {
    text[i] = "0123456789abcdef"[value & 15];
    value >>= 4;
  }
  Put(fd, text);
}

const char* SignalName(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS (a mapped file could not be read, or memory is misaligned)";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGABRT";
  }
}

void ReportCrash(int signal, siginfo_t* info, void*) {
  const int fd = LogDescriptor();
  Put(fd, "\n=== HOTKV BUG REPORT START: version ");
  Put(fd, kHotkvVersion.data());
  Put(fd, " crashed by ");
  Put(fd, SignalName(signal));
  Put(fd, " at address ");
  PutHex(fd, reinterpret_cast<uintptr_t>(info->si_addr));
  Put(fd, "\n");
  WriteBacktrace(fd);
  Put(fd,
      "=== HOTKV BUG REPORT END. Data acknowledged as durable is safe: start the server again.\n");
  std::signal(signal, SIG_DFL);
  raise(signal);
}

std::string FirstWord(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return "";
  char word[32] = "";
  const int got = std::fscanf(file, "%31s", word);
  std::fclose(file);
  return got == 1 ? word : "";
}

int64_t RaiseOpenFiles(int64_t clients_wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return clients_wanted;
  const rlim_t wanted = static_cast<rlim_t>(clients_wanted) + kReservedFiles;
  if (limit.rlim_cur >= wanted) return clients_wanted;
  rlimit raised = limit;
  raised.rlim_cur = wanted;
  raised.rlim_max = std::max(limit.rlim_max, wanted);
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return clients_wanted;
  raised.rlim_cur = raised.rlim_max = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &raised) != 0) raised = limit;
  const int64_t possible =
      static_cast<int64_t>(raised.rlim_cur) - static_cast<int64_t>(kReservedFiles);
  Log(LogLevel::kWarning, "Open files are limited to " + std::to_string(raised.rlim_cur) +
                              ": maxclients is " + std::to_string(std::max<int64_t>(possible, 1)) +
                              " instead of " + std::to_string(clients_wanted) +
                              " (raise it with ulimit -n)");
  return std::max<int64_t>(possible, 1);
}

int started_fd = -1;  // of a daemon: its parent waits at the other end

// The parent of a daemon ends as soon as that runs, or as it ended.
[[noreturn]] void WaitForStart(pid_t child, int started) {
  char mark = 0;
  ssize_t got = 0;
  while ((got = read(started, &mark, 1)) < 0 && errno == EINTR) {
  }
  if (got == 1) _exit(0);
  int status = 0;
  const bool ended = waitpid(child, &status, 0) == child && WIFEXITED(status);
  _exit(ended && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1);
}

}  // namespace

void BlockSignals() {
  const sigset_t set = WaitedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void MainLoop(Server* server) {
  const sigset_t set = WaitedSignals();
  const int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  HOTKV_CHECK(signals >= 0);
  for (;;) {
    pollfd polled[2] = {{signals, POLLIN, 0}, {server->shutdown_fd(), POLLIN, 0}};
    if (poll(polled, 2, -1) < 0) continue;
    signalfd_siginfo info{};
    while (read(signals, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      const auto signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGHUP) {
        Reopen();
        continue;
      }
      Log(LogLevel::kWarning, signal == SIGINT ? "Received SIGINT scheduling shutdown..."
                                               : "Received SIGTERM scheduling shutdown...");
      const Setting id =
          signal == SIGINT ? Setting::kShutdownOnSigint : Setting::kShutdownOnSigterm;
      server->RequestShutdown(SaveOf(server->config().Current()->Text(id)));
    }
    if (!server->shutting_down()) continue;
    NotifyServiceManager("STOPPING=1");
    if (server->Stop()) break;
    NotifyServiceManager("READY=1");
  }
  close(signals);
}

void InstallCrashReport() {
  // The first backtrace of a process loads a library, which takes memory: a handler must not, since
  // the crash may have left the allocator locked.
  void* frame[1];
  backtrace(frame, 1);
  struct sigaction action {};
  action.sa_sigaction = ReportCrash;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_NODEFER | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(signal, &action, nullptr);
}

Status Daemonize() {
  int started[2];
  if (pipe2(started, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe", "");
  const pid_t child = fork();
  if (child < 0) return Status::FromErrno(errno, "fork", "");
  if (child > 0) {
    close(started[1]);
    WaitForStart(child, started[0]);
  }
  close(started[0]);
  started_fd = started[1];
  setsid();
  return Status::Ok();
}

void LeaveTerminal() {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
    close(null);
  }
  Put(started_fd, "+");
  close(started_fd);
}

Status WritePidFile(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return Status::FromErrno(errno, "Failed to write PID file", path);
  std::fprintf(file, "%d\n", static_cast<int>(getpid()));
  return std::fclose(file) == 0 ? Status::Ok()
                                : Status::FromErrno(errno, "Failed to write PID file", path);
}

void NotifyServiceManager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = std::strlen(path);
  if (length >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // the abstract namespace
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
         size);
  close(fd);
}

std::string_view DoubtfulFileSystem(uint64_t magic) {
  constexpr std::pair<uint32_t, std::string_view> kDoubtful[] = {
      {NFS_SUPER_MAGIC, "NFS"},        {CIFS_SUPER_MAGIC, "CIFS"}, {SMB2_SUPER_MAGIC, "SMB"},
      {SMB_SUPER_MAGIC, "SMB"},        {FUSE_SUPER_MAGIC, "FUSE"}, {V9FS_MAGIC, "9P"},
      {OVERLAYFS_SUPER_MAGIC, "overlay"}, {TMPFS_MAGIC, "tmpfs"},  {RAMFS_MAGIC, "ramfs"}};
  for (const auto& [known, name] : kDoubtful) {
    if (static_cast<uint32_t>(magic) == known) return name;
  }
  return "";
}

int64_t CheckMachine(const Settings& settings, std::string_view io_name) {
  const int64_t clients = RaiseOpenFiles(settings.Int(Setting::kMaxClients));
  if (FirstWord("/proc/sys/vm/overcommit_memory") == "2") {
    Log(LogLevel::kWarning,
        "vm.overcommit_memory is 2: large mappings may be refused although memory is free");
  }
  rlimit locked{};
  if (io_name == "epoll" && settings.Text(Setting::kIo) != "epoll" &&
      getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur < kRingLockedBytes) {
    Log(LogLevel::kWarning, "Locked memory is limited to " + std::to_string(locked.rlim_cur) +
                                " bytes, too little for io_uring on older kernels: epoll is used "
                                "(raise it with ulimit -l)");
  }
  struct statfs info {};
  const bool known = statfs(settings.Text(Setting::kDir).c_str(), &info) == 0;
  const std::string_view doubt =
      known ? DoubtfulFileSystem(static_cast<uint64_t>(info.f_type)) : std::string_view();
  if (!doubt.empty()) {
    Log(LogLevel::kWarning,
        "The data directory " + settings.Text(Setting::kDir) + " lies on " + std::string(doubt) +
            ": what is made durable there may not survive a crash of the machine");
  }
  return clients;
}

}  // namespace hotkv
