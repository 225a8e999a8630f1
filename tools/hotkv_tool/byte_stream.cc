#include "tools/hotkv_tool/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/file.h"

namespace hotkv {

namespace {

constexpr mode_t kFileMode = 0640;

}  // namespace

Result<std::unique_ptr<InputStream>> InputStream::Open(const std::string& path) {
  const bool standard = path == "-";
  const int fd = standard ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Status::FromErrno(errno, "open", path);
  std::unique_ptr<InputStream> stream(new InputStream(fd, standard ? "standard input" : path));
  struct stat info;
  if (::fstat(fd, &info) != 0) return Status::FromErrno(errno, "stat", path);
  if (S_ISDIR(info.st_mode)) return Status::FromErrno(EISDIR, "open", path);
  stream->is_file_ = S_ISREG(info.st_mode) && !standard;
  if (stream->is_file_) stream->size_ = static_cast<uint64_t>(info.st_size);
  return stream;
}

InputStream::~InputStream() { ::close(fd_); }

Result<std::string_view> InputStream::Peek(size_t size) {
  const size_t before = peeked_.size();
  peeked_.resize(size);
  size_t filled = before;
  while (filled < size) {
    const ssize_t got = ::read(fd_, peeked_.data() + filled, size - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::FromErrno(errno, "read", name_);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  peeked_.resize(filled);
  return std::string_view(peeked_);
}

Result<size_t> InputStream::Read(char* buffer, size_t size) {
  if (peeked_used_ < peeked_.size()) {
    const size_t part = std::min(size, peeked_.size() - peeked_used_);
    std::memcpy(buffer, peeked_.data() + peeked_used_, part);
    peeked_used_ += part;
    return part;
  }
  for (;;) {
    const ssize_t got = ::read(fd_, buffer, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::FromErrno(errno, "read", name_);
    return static_cast<size_t>(got);
  }
}

Status InputStream::Rewind() {
  if (::lseek(fd_, 0, SEEK_SET) != 0) return Status::FromErrno(errno, "seek", name_);
  peeked_.clear();
  peeked_used_ = 0;
  return Status::Ok();
}

OutputStream::OutputStream(int fd, std::string path, std::string temporary)
    : fd_(fd), name_(std::move(path)), temporary_(std::move(temporary)) {}

Result<std::unique_ptr<OutputStream>> OutputStream::Create(const std::string& path) {
  if (path == "-") {
    const int fd = ::dup(STDOUT_FILENO);
    if (fd < 0) return Status::FromErrno(errno, "open", "standard output");
    return std::unique_ptr<OutputStream>(new OutputStream(fd, "standard output", ""));
  }
  const std::string temporary = path + ".tmp-" + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (fd < 0) return Status::FromErrno(errno, "create", temporary);
  return std::unique_ptr<OutputStream>(new OutputStream(fd, path, temporary));
}

OutputStream::~OutputStream() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status OutputStream::Flush() {
  std::string_view left = buffer_;
  while (!left.empty()) {
    const ssize_t wrote = ::write(fd_, left.data(), left.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Status::FromErrno(errno, "write", name_);
    left.remove_prefix(static_cast<size_t>(wrote));
  }
  written_ += buffer_.size();
  buffer_.clear();
  return Status::Ok();
}

Status OutputStream::Finish() {
  HOTKV_RETURN_IF_ERROR(Flush());
  if (temporary_.empty()) return Status::Ok();
  if (::fsync(fd_) != 0) return Status::FromErrno(errno, "sync", temporary_);
  if (::rename(temporary_.c_str(), name_.c_str()) != 0) {
    return Status::FromErrno(errno, "rename", temporary_);
  }
  ::close(fd_);
  fd_ = -1;
  return PosixEnv()->SyncDir(ParentFolder(name_));
}

}  // namespace hotkv
