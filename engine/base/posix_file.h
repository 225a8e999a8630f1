// The File over a file descriptor that PosixEnv hands out, and the base of the ring-backed one
// (uring_file.h). Private to engine/base: everybody else uses file.h.
//
// Writes go out in batches of at most IOV_MAX pieces, interrupted calls are repeated and short
// writes continued.
//
// Thread rules: as File; the descriptor is constant after construction.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/base/file.h"

namespace hotkv {

// What is left of a gathered write, as iovecs; consumed from the front.
class PieceCursor {
 public:
  explicit PieceCursor(std::span<const std::string_view> pieces);

  bool done() const { return next_ == iov_.size(); }
  uint64_t bytes_left() const { return bytes_left_; }
  // The next batch for one system call.
  const iovec* batch() const { return iov_.data() + next_; }
  size_t batch_count() const;
  uint64_t batch_bytes() const;
  void Consume(uint64_t bytes);

 private:
  std::vector<iovec> iov_;
  size_t next_ = 0;
  uint64_t bytes_left_ = 0;
};

class PosixFile : public File {
 public:
  PosixFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixFile() override;
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Result<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override;
  Status WriteAt(uint64_t offset, std::string_view data) override;
  Status WriteGatherAt(uint64_t offset, std::span<const std::string_view> pieces) override;
  Status Sync() override;
  Status Truncate(uint64_t size) override;
  Status Allocate(uint64_t offset, uint64_t length) override;
  Result<uint64_t> Size() override;
  Result<std::unique_ptr<Mapping>> Map(uint64_t offset, size_t length, MapMode mode) override;
  const std::string& path() const override { return path_; }

 protected:
  Status ErrorAt(int err, const char* what, uint64_t offset) const;
  Status OwnHoles(char* base, uint64_t offset, size_t length);

  const int fd_;
  const std::string path_;
};

}  // namespace hotkv
