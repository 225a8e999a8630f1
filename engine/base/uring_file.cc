#include "engine/base/uring_file.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "engine/base/posix_file.h"

namespace hotkv {

namespace {

constexpr unsigned kRingEntries = 8;

class UringFile : public PosixFile {
 public:
  UringFile(int fd, std::string path, const io_uring& ring)
      : PosixFile(fd, std::move(path)), ring_(ring) {}
  ~UringFile() override { io_uring_queue_exit(&ring_); }

  Status WriteAt(uint64_t offset, std::string_view data) override {
    return WriteGatherAt(offset, {&data, 1});
  }

  Status WriteGatherAt(uint64_t offset, std::span<const std::string_view> pieces) override {
    std::lock_guard lock(mutex_);
    PieceCursor cursor(pieces);
    while (!cursor.done()) {
      HOTKV_RETURN_IF_ERROR(WriteBatch(&cursor, &offset, WithSync::kNo).status());
    }
    return Status::Ok();
  }

  Status Sync() override {
    std::lock_guard lock(mutex_);
    return SyncLocked();
  }

  Status WriteGatherAndSyncAt(uint64_t offset, std::span<const std::string_view> pieces) override {
    std::lock_guard lock(mutex_);
    PieceCursor cursor(pieces);
    bool synced = false;
    while (!cursor.done()) {
      const bool last = cursor.batch_bytes() == cursor.bytes_left();
      const auto with_sync = last ? WithSync::kYes : WithSync::kNo;
      HOTKV_ASSIGN_OR_RETURN(synced, WriteBatch(&cursor, &offset, with_sync));
    }
    return synced ? Status::Ok() : SyncLocked();
  }

 private:
  enum class WithSync : uint8_t { kNo, kYes };
  static constexpr uint64_t kWriteTag = 1;
  static constexpr uint64_t kSyncTag = 2;
  struct Outcome {
    int write = 0;
    int sync = 0;
  };

  io_uring_sqe* NextEntry() {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    HOTKV_CHECK(sqe != nullptr);  // at most two are ever in flight
    return sqe;
  }

  // Submits what is queued and waits for `count` completions.
  Outcome Submit(unsigned count) {
    Outcome outcome;
    int rc;
    do {
      rc = io_uring_submit_and_wait(&ring_, count);
    } while (rc == -EINTR);
    HOTKV_CHECK(rc >= 0);
    for (unsigned seen = 0; seen < count; ++seen) {
      io_uring_cqe* cqe = nullptr;
      do {
        rc = io_uring_wait_cqe(&ring_, &cqe);
      } while (rc == -EINTR);
      HOTKV_CHECK(rc == 0);
      (cqe->user_data == kWriteTag ? outcome.write : outcome.sync) = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
    }
    return outcome;
  }

  // Writes what one call takes; the value is true when all of the batch was written and a sync
  // after it succeeded.
  Result<bool> WriteBatch(PieceCursor* cursor, uint64_t* offset, WithSync with_sync) {
    const uint64_t wanted = cursor->batch_bytes();
    io_uring_sqe* write = NextEntry();
    io_uring_prep_writev(write, fd_, cursor->batch(), static_cast<unsigned>(cursor->batch_count()),
                         *offset);
    write->user_data = kWriteTag;
    const bool sync_too = with_sync == WithSync::kYes;
    if (sync_too) {
      write->flags |= IOSQE_IO_LINK;
      io_uring_sqe* sync = NextEntry();
      io_uring_prep_fsync(sync, fd_, IORING_FSYNC_DATASYNC);
      sync->user_data = kSyncTag;
    }
    const Outcome outcome = Submit(sync_too ? 2 : 1);
    if (outcome.write == -EINTR || outcome.write == -EAGAIN) return false;
    if (outcome.write < 0) return ErrorAt(-outcome.write, "write", *offset);
    if (outcome.write == 0 && wanted > 0) return ErrorAt(ENOSPC, "write", *offset);
    // A sync that ran after a short write and failed has lost its error for the next one: it
    // counts.
    if (sync_too && outcome.sync < 0 && outcome.sync != -ECANCELED) {
      return Status::FromErrno(-outcome.sync, "fdatasync", path_);
    }
    const auto written = static_cast<uint64_t>(outcome.write);
    *offset += written;
    cursor->Consume(written);
    return sync_too && written == wanted && outcome.sync == 0;
  }

  Status SyncLocked() {
    io_uring_sqe* sync = NextEntry();
    io_uring_prep_fsync(sync, fd_, IORING_FSYNC_DATASYNC);
    sync->user_data = kSyncTag;
    const Outcome outcome = Submit(1);
    return outcome.sync == 0 ? Status::Ok() : Status::FromErrno(-outcome.sync, "fdatasync", path_);
  }

  std::mutex mutex_;
  io_uring ring_;  // guarded by mutex_
};

[[maybe_unused]] bool ProbeRing() {
  io_uring ring;
  if (io_uring_queue_init(kRingEntries, &ring, 0) != 0) return false;
  io_uring_probe* probe = io_uring_get_probe_ring(&ring);
  const bool works = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_WRITEV) != 0 &&
                     io_uring_opcode_supported(probe, IORING_OP_FSYNC) != 0;
  if (probe != nullptr) io_uring_free_probe(probe);
  io_uring_queue_exit(&ring);
  return works;
}

}  // namespace

bool UringFilesWork() {
#ifdef __SANITIZE_THREAD__
  return false;  // ThreadSanitizer cannot see the kernel's side of a ring
#else
  static const bool works = ProbeRing();
  return works;
#endif
}

std::unique_ptr<File> MakeUringFile(int fd, const std::string& path) {
  io_uring ring;
  if (io_uring_queue_init(kRingEntries, &ring, 0) != 0) return nullptr;
  return std::make_unique<UringFile>(fd, path, ring);
}

}  // namespace hotkv
