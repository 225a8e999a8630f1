#include "engine/base/log.h"

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <mutex>

#include <fmt/format.h>

namespace hotkv {

namespace {

struct Output {
  std::mutex mutex;
  int fd = STDOUT_FILENO;  // guarded by mutex, as path
  std::string path;
};

// Never destroyed: threads may log until the process ends.
Output& GetOutput() {
  static auto* output = new Output;
  return *output;
}

// Relaxed: a level or role that changes takes effect soon, and orders nothing.
std::atomic<LogLevel> level_now{LogLevel::kNotice};
std::atomic<char> role_now{'M'};
std::atomic<int> descriptor_now{STDOUT_FILENO};

std::string TimeText() {
  timeval now;
  gettimeofday(&now, nullptr);
  std::tm local;
  localtime_r(&now.tv_sec, &local);
  char text[48];
  const size_t length = std::strftime(text, sizeof(text), "%d %b %Y %H:%M:%S", &local);
  return fmt::format("{}.{:03}", std::string_view(text, length), now.tv_usec / 1000);
}

void WriteAll(int fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t n = write(fd, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody is left to tell
    line.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

void SetLogLevel(LogLevel level) { level_now.store(level, std::memory_order_relaxed); }
LogLevel GetLogLevel() { return level_now.load(std::memory_order_relaxed); }
bool LogEnabled(LogLevel level) { return level >= GetLogLevel(); }
void SetLogRole(char role) { role_now.store(role, std::memory_order_relaxed); }

Status OpenLogFile(const std::string& path) {
  int fd = STDOUT_FILENO;
  if (!path.empty()) {
    fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return Status::FromErrno(errno, "open log file", path);
  }
  Output& output = GetOutput();
  std::lock_guard lock(output.mutex);
  if (output.fd != STDOUT_FILENO) close(output.fd);
  output.fd = fd;
  output.path = path;
  descriptor_now.store(fd, std::memory_order_relaxed);
  return Status::Ok();
}

int LogDescriptor() { return descriptor_now.load(std::memory_order_relaxed); }

Status ReopenLogFile() {
  std::string path;
  {
    Output& output = GetOutput();
    std::lock_guard lock(output.mutex);
    path = output.path;
  }
  return OpenLogFile(path);
}

void Log(LogLevel level, std::string_view message) {
  if (!LogEnabled(level) || level >= LogLevel::kNothing) return;
  const char mark = ".-*#"[static_cast<size_t>(level)];
  const std::string line =
      fmt::format("{}:{} {} {} {}\n", getpid(), role_now.load(std::memory_order_relaxed),
                  TimeText(), mark, message);
  Output& output = GetOutput();
  std::lock_guard lock(output.mutex);
  WriteAll(output.fd, line);
}

}  // namespace hotkv
