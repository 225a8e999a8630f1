#include "engine/base/posix_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "engine/base/uring_file.h"

namespace hotkv {

namespace {

constexpr size_t kPageSize = 4096;

// Repeats a system call that a signal interrupted.
template <typename F>
auto Retry(F call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

class PosixMapping : public Mapping {
 public:
  PosixMapping(char* data, size_t size, std::string path) : path_(std::move(path)) {
    data_ = data;
    size_ = size;
  }
  ~PosixMapping() override {
    if (data_ != nullptr) munmap(data_, size_);
  }
  PosixMapping(const PosixMapping&) = delete;
  PosixMapping& operator=(const PosixMapping&) = delete;

  Status Sync(size_t offset, size_t length) override {
    if (offset > size_ || length > size_ - offset)
      return Status::OutOfRange("sync beyond the mapping");
    if (length == 0) return Status::Ok();
    const size_t begin = offset / kPageSize * kPageSize;
    const int rc = Retry([&] { return msync(data_ + begin, offset + length - begin, MS_SYNC); });
    return rc == 0 ? Status::Ok() : Status::FromErrno(errno, "msync", path_);
  }

 private:
  const std::string path_;
};

class PosixLock : public FileLock {
 public:
  explicit PosixLock(int fd) : fd_(fd) {}
  ~PosixLock() override { close(fd_); }
  PosixLock(const PosixLock&) = delete;
  PosixLock& operator=(const PosixLock&) = delete;

 private:
  const int fd_;
};

}  // namespace

PieceCursor::PieceCursor(std::span<const std::string_view> pieces) {
  iov_.reserve(pieces.size());
  for (std::string_view piece : pieces) {
    if (piece.empty()) continue;
    iov_.push_back({const_cast<char*>(piece.data()), piece.size()});
    bytes_left_ += piece.size();
  }
}

size_t PieceCursor::batch_count() const { return std::min<size_t>(iov_.size() - next_, IOV_MAX); }

uint64_t PieceCursor::batch_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < batch_count(); ++i) bytes += iov_[next_ + i].iov_len;
  return bytes;
}

void PieceCursor::Consume(uint64_t bytes) {
  HOTKV_CHECK(bytes <= bytes_left_);
  bytes_left_ -= bytes;
  while (bytes > 0) {
    iovec& front = iov_[next_];
    const size_t taken = static_cast<size_t>(std::min<uint64_t>(bytes, front.iov_len));
    front.iov_base = static_cast<char*>(front.iov_base) + taken;
    front.iov_len -= taken;
    bytes -= taken;
    if (front.iov_len == 0) ++next_;
  }
}

PosixFile::~PosixFile() { close(fd_); }

Status PosixFile::ErrorAt(int err, const char* what, uint64_t offset) const {
  return Status::FromErrno(err, what, path_).At(path_, static_cast<int64_t>(offset));
}

Result<size_t> PosixFile::ReadAt(uint64_t offset, std::span<char> buffer) {
  size_t done = 0;
  while (done < buffer.size()) {
    iovec iov{buffer.data() + done, buffer.size() - done};
    const ssize_t n =
        Retry([&] { return preadv2(fd_, &iov, 1, static_cast<off_t>(offset + done), 0); });
    if (n < 0) return ErrorAt(errno, "read", offset + done);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

Status PosixFile::WriteAt(uint64_t offset, std::string_view data) {
  return WriteGatherAt(offset, {&data, 1});
}

Status PosixFile::WriteGatherAt(uint64_t offset, std::span<const std::string_view> pieces) {
  PieceCursor cursor(pieces);
  while (!cursor.done()) {
    const ssize_t n = Retry([&] {
      return pwritev2(fd_, cursor.batch(), static_cast<int>(cursor.batch_count()),
                      static_cast<off_t>(offset), 0);
    });
    if (n < 0) return ErrorAt(errno, "write", offset);
    if (n == 0) return ErrorAt(ENOSPC, "write", offset);
    offset += static_cast<uint64_t>(n);
    cursor.Consume(static_cast<uint64_t>(n));
  }
  return Status::Ok();
}

Status PosixFile::Sync() {
  // Not repeated on EINTR: a failed sync has told its error and would not tell it again.
  return fdatasync(fd_) == 0 ? Status::Ok() : Status::FromErrno(errno, "fdatasync", path_);
}

Status PosixFile::Truncate(uint64_t size) {
  const int rc = Retry([&] { return ftruncate(fd_, static_cast<off_t>(size)); });
  return rc == 0 ? Status::Ok() : ErrorAt(errno, "truncate", size);
}

Status PosixFile::Allocate(uint64_t offset, uint64_t length) {
  if (length == 0) return Status::Ok();
  int err;  // posix_fallocate returns its error
  do {
    err = posix_fallocate(fd_, static_cast<off_t>(offset), static_cast<off_t>(length));
  } while (err == EINTR);
  return err == 0 ? Status::Ok() : ErrorAt(err, "allocate", offset);
}

Result<uint64_t> PosixFile::Size() {
  struct stat info;
  if (fstat(fd_, &info) != 0) return Status::FromErrno(errno, "stat", path_);
  return static_cast<uint64_t>(info.st_size);
}

Result<std::unique_ptr<Mapping>> PosixFile::Map(uint64_t offset, size_t length, MapMode mode) {
  if (offset % kPageSize != 0)
    return Status::InvalidArgument("mapping offset is not a multiple of the page size");
  HOTKV_ASSIGN_OR_RETURN(const uint64_t size, Size());
  if (offset > size || length > size - offset) {
    return Status::OutOfRange("mapping beyond the end of the file")
        .At(path_, static_cast<int64_t>(offset));
  }
  if (length == 0) length = static_cast<size_t>(size - offset);
  if (length == 0) return std::unique_ptr<Mapping>(new PosixMapping(nullptr, 0, path_));
  const int protection = mode == MapMode::kReadOnly ? PROT_READ : PROT_READ | PROT_WRITE;
  const int flags = mode == MapMode::kPrivate ? MAP_PRIVATE : MAP_SHARED;
  void* p = mmap(nullptr, length, protection, flags, fd_, static_cast<off_t>(offset));
  if (p == MAP_FAILED) return ErrorAt(errno, "mmap", offset);
  std::unique_ptr<Mapping> mapping(new PosixMapping(static_cast<char*>(p), length, path_));
  if (mode == MapMode::kPrivate) {
    HOTKV_RETURN_IF_ERROR(OwnHoles(static_cast<char*>(p), offset, length));
  }
  return mapping;
}

// On tmpfs, the first write to a hole in a private mapping takes a page of the file system, and
// there is none when it is full: SIGBUS. So holes become memory of the process there.
Status PosixFile::OwnHoles(char* base, uint64_t offset, size_t length) {
  struct statfs info;
  if (fstatfs(fd_, &info) != 0) return Status::FromErrno(errno, "statfs", path_);
  if (info.f_type != TMPFS_MAGIC) return Status::Ok();
  const uint64_t end = offset + length;
  for (uint64_t at = offset; at < end;) {
    const off_t found = lseek(fd_, static_cast<off_t>(at), SEEK_DATA);
    if (found < 0 && errno != ENXIO) return ErrorAt(errno, "seek", at);
    const uint64_t data = found < 0 ? end : std::min(end, static_cast<uint64_t>(found));
    const uint64_t first = (at + kPageSize - 1) / kPageSize * kPageSize;
    const uint64_t last = data == end ? end : data / kPageSize * kPageSize;
    if (first < last) {
      void* p = mmap(base + (first - offset), last - first, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
      if (p == MAP_FAILED) return ErrorAt(errno, "mmap", first);
    }
    if (data == end) break;
    const off_t hole = lseek(fd_, static_cast<off_t>(data), SEEK_HOLE);
    if (hole < 0) return ErrorAt(errno, "seek", data);
    at = static_cast<uint64_t>(hole);
  }
  return Status::Ok();
}

namespace {

class PosixEnvironment : public Env {
 public:
  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode, FileIo io) override {
    int flags = O_CLOEXEC;
    switch (mode) {
      case OpenMode::kRead:
        flags |= O_RDONLY;
        break;
      case OpenMode::kReadWrite:
        flags |= O_RDWR;
        break;
      case OpenMode::kCreateNew:
        flags |= O_RDWR | O_CREAT | O_EXCL;
        break;
      case OpenMode::kCreateOrOpen:
        flags |= O_RDWR | O_CREAT;
        break;
    }
    const int fd = Retry([&] { return open(path.c_str(), flags, 0644); });
    if (fd < 0) return Status::FromErrno(errno, "open", path);
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
      close(fd);
      return Status::FromErrno(EISDIR, "open", path);
    }
    if (io == FileIo::kUring && mode != OpenMode::kRead && UringFilesWork()) {
      auto file = MakeUringFile(fd, path);
      if (file != nullptr) return std::unique_ptr<File>(std::move(file));
    }
    return std::unique_ptr<File>(new PosixFile(fd, path));
  }

  Status Unlink(const std::string& path) override {
    return unlink(path.c_str()) == 0 ? Status::Ok() : Status::FromErrno(errno, "unlink", path);
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return Status::Ok();
    return Status::FromErrno(errno, "rename", from);
  }

  Status MakeDir(const std::string& path) override {
    if (mkdir(path.c_str(), 0755) == 0) return Status::Ok();
    const int err = errno;
    struct stat info;
    if (err == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
      return Status::Ok();
    return Status::FromErrno(err, "mkdir", path);
  }

  Status RemoveDir(const std::string& path) override {
    return rmdir(path.c_str()) == 0 ? Status::Ok() : Status::FromErrno(errno, "rmdir", path);
  }

  Status SyncDir(const std::string& path) override {
    const int fd = Retry([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return Status::FromErrno(errno, "open", path);
    const int rc = fsync(fd);
    const int err = errno;
    close(fd);
    return rc == 0 ? Status::Ok() : Status::FromErrno(err, "fsync", path);
  }

  Result<std::vector<DirEntry>> List(const std::string& path) override {
    DIR* dir = opendir(path.c_str());
    if (dir == nullptr) return Status::FromErrno(errno, "opendir", path);
    std::vector<DirEntry> entries;
    errno = 0;
    while (const dirent* found = readdir(dir)) {
      const std::string name = found->d_name;
      struct stat info;
      if (name == "." || name == "..") continue;
      // A file may go between the two calls; it is then not listed.
      if (fstatat(dirfd(dir), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
        entries.push_back({name, S_ISDIR(info.st_mode), static_cast<uint64_t>(info.st_size)});
      }
      errno = 0;
    }
    const int err = errno;
    closedir(dir);
    if (err != 0) return Status::FromErrno(err, "readdir", path);
    return entries;
  }

  Result<bool> Exists(const std::string& path) override {
    struct stat info;
    if (stat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return Status::FromErrno(errno, "stat", path);
  }

  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    int fd = Retry([&] { return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644); });
    // flock asks for no right to write: what is on a read-only medium can be locked, and read, all the same.
    if (fd < 0 && errno == EROFS) {
      fd = Retry([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
      if (fd < 0) errno = EROFS;  // it is not there, and cannot be made
    }
    if (fd < 0) return Status::FromErrno(errno, "open", path);
    if (Retry([&] { return flock(fd, LOCK_EX | LOCK_NB); }) != 0) {
      const int err = errno;
      close(fd);
      if (err == EWOULDBLOCK) return Status::Locked("held by another process").At(path, -1);
      return Status::FromErrno(err, "flock", path);
    }
    return std::unique_ptr<FileLock>(new PosixLock(fd));
  }

  Result<uint64_t> FreeBytes(const std::string& path) override {
    struct statvfs info;
    if (statvfs(path.c_str(), &info) != 0) return Status::FromErrno(errno, "statvfs", path);
    return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  }
};

}  // namespace

Env* PosixEnv() {
  static auto* env = new PosixEnvironment;
  return env;
}

}  // namespace hotkv
