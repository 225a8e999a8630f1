// The event loop over io_uring: one system call a turn.
//
// Receives are multishot into a ring of provided buffers, which go back as soon as their bytes have
// been delivered. Sends are queued as "all or what fits, no completion when all went out" and
// submitted together with the wait: a send without a completion is done when the submit has
// returned, one with a completion goes on when the socket is writable. The ring belongs to one
// thread (SINGLE_ISSUER, DEFER_TASKRUN), where the kernel has these.
//
// Completions name a slot and its generation, never a pointer: one that arrives after its
// connection has gone is dropped. A descriptor is closed only after the next submit, since queued
// entries may still name it.

#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <utility>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/cycle_clock.h"
#include "engine/base/spin_lock.h"
#include "server/net/event_loop.h"

namespace hotkv {

namespace {

constexpr unsigned kSubmissions = 1024;
constexpr unsigned kCompletions = 8192;
constexpr unsigned kBuffers = 256;  // a power of two
constexpr size_t kBufferBytes = size_t{16} << 10;
constexpr size_t kPiecesMax = 64;
constexpr int kBufferGroup = 0;

enum class Op : uint8_t { kNone, kReceive, kSend, kWritable, kWake, kTimer };

uint64_t Tag(Op op, uint32_t generation, uint32_t slot) {
  return static_cast<uint64_t>(op) << 56 | static_cast<uint64_t>(generation & 0xffffff) << 32 |
         slot;
}

class UringLoop final : public EventLoop {
 public:
  explicit UringLoop(LoopEvents* events) : events_(events) {}
  ~UringLoop() override;

  Status Init();
  std::string_view name() const override { return "io_uring"; }
  Status Add(Connection& connection) override;
  void Remove(Connection& connection) override;
  void Pause(Connection& connection) override;
  void Resume(Connection& connection) override;
  void QueueSend(Connection& connection) override;
  void Wait(int64_t timeout_us, uint64_t spin_cycles) override;
  void Deliver() override;
  void Wake() override;

 private:
  struct Slot {
    Connection* connection = nullptr;
    uint32_t generation = 0;
  };
  struct Message {
    msghdr header;
    std::array<iovec, kPiecesMax> pieces;
  };

  Status InitRing();
  Status InitBuffers();
  io_uring_sqe* NextEntry();
  void SubmitAll(unsigned wait_count);
  uint64_t TagOf(Op op, const Connection& connection) const;
  void ArmReceive(Connection& connection);
  void ArmWritable(Connection& connection);
  void ArmWake();
  void ArmTimer(int64_t timeout_us);
  void CancelReceive(const Connection& connection);
  bool SpinForEvents(uint64_t cycles) const;
  void SubmitSends();
  bool SubmitSend(Connection& connection, Message* message);
  void Collect();
  Connection* Find(uint64_t tag);
  void FinishSends();
  void DeliverOne(const io_uring_cqe& completion);
  void DeliverReceive(uint64_t tag, int result, uint32_t flags);
  void GiveBack(unsigned buffer);
  char* BufferAt(unsigned index) { return buffer_memory_ + index * kBufferBytes; }

  LoopEvents* const events_;
  io_uring ring_{};
  bool ring_made_ = false;
  io_uring_buf_ring* buffer_ring_ = nullptr;
  char* buffer_memory_ = nullptr;
  int wake_fd_ = -1;
  uint64_t wake_value_ = 0;
  __kernel_timespec timer_{};
  int64_t timer_deadline_ns_ = INT64_MAX;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  std::vector<int> to_close_;
  std::vector<Connection*> to_send_;
  std::vector<Connection*> sending_;   // submitted in this turn
  std::vector<Connection*> finished_;  // whose outcome is to be delivered
  std::deque<Message> messages_;       // stable addresses; reused each turn
  std::vector<io_uring_cqe> completions_;
};

UringLoop::~UringLoop() {
  if (ring_made_) io_uring_queue_exit(&ring_);
  for (int fd : to_close_) close(fd);
  if (wake_fd_ >= 0) close(wake_fd_);
  if (buffer_ring_ != nullptr) munmap(buffer_ring_, kBuffers * sizeof(io_uring_buf));
  if (buffer_memory_ != nullptr) munmap(buffer_memory_, kBuffers * kBufferBytes);
}

Status UringLoop::Init() {
  HOTKV_RETURN_IF_ERROR(InitRing());
  HOTKV_RETURN_IF_ERROR(InitBuffers());
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  if (wake_fd_ < 0) return Status::FromErrno(errno, "eventfd", "");
  ArmWake();
  return Status::Ok();
}

// The best of what the kernel offers: deferred task work (6.1), cooperative (5.19).
Status UringLoop::InitRing() {
  constexpr unsigned kBase = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL;
  constexpr std::array<unsigned, 2> kFlags = {
      kBase | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
      kBase | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG};
  int result = -EINVAL;
  for (unsigned flags : kFlags) {
    io_uring_params params{};
    params.flags = flags;
    params.cq_entries = kCompletions;
    result = io_uring_queue_init_params(kSubmissions, &ring_, &params);
    if (result == 0) break;
  }
  if (result != 0) return Status::FromErrno(-result, "io_uring_setup", "");
  ring_made_ = true;
  if ((ring_.features & IORING_FEAT_CQE_SKIP) == 0 || (ring_.features & IORING_FEAT_NODROP) == 0) {
    return Status::Unsupported(
        "io_uring of this kernel lacks completions that are skipped on success");
  }
  io_uring_register_ring_fd(&ring_);  // saves a descriptor look-up a call; works without as well
  return Status::Ok();
}

Status UringLoop::InitBuffers() {
  // liburing 2.3 has no helper for this: page-aligned memory, registered by hand.
  constexpr int kMapFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* ring =
      mmap(nullptr, kBuffers * sizeof(io_uring_buf), PROT_READ | PROT_WRITE, kMapFlags, -1, 0);
  if (ring == MAP_FAILED) return Status::FromErrno(errno, "mmap", "buffer ring");
  buffer_ring_ = static_cast<io_uring_buf_ring*>(ring);
  void* memory = mmap(nullptr, kBuffers * kBufferBytes, PROT_READ | PROT_WRITE, kMapFlags, -1, 0);
  if (memory == MAP_FAILED) return Status::FromErrno(errno, "mmap", "receive buffers");
  buffer_memory_ = static_cast<char*>(memory);
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<uint64_t>(ring);
  registration.ring_entries = kBuffers;
  registration.bgid = kBufferGroup;
  const int result = io_uring_register_buf_ring(&ring_, &registration, 0);
  if (result != 0) return Status::FromErrno(-result, "io_uring_register(provided buffers)", "");
  io_uring_buf_ring_init(buffer_ring_);
  for (unsigned i = 0; i < kBuffers; ++i) {
    io_uring_buf_ring_add(buffer_ring_, BufferAt(i), kBufferBytes, static_cast<uint16_t>(i),
                          static_cast<int>(kBuffers) - 1, static_cast<int>(i));
  }
  io_uring_buf_ring_advance(buffer_ring_, kBuffers);
  return Status::Ok();
}

void UringLoop::GiveBack(unsigned buffer) {
  io_uring_buf_ring_add(buffer_ring_, BufferAt(buffer), kBufferBytes, static_cast<uint16_t>(buffer),
                        static_cast<int>(kBuffers) - 1, 0);
  io_uring_buf_ring_advance(buffer_ring_, 1);
}

io_uring_sqe* UringLoop::NextEntry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  while (entry == nullptr) {
    io_uring_submit(&ring_);
    entry = io_uring_get_sqe(&ring_);
  }
  return entry;
}

uint64_t UringLoop::TagOf(Op op, const Connection& connection) const {
  return Tag(op, slots_[connection.loop.slot].generation, connection.loop.slot);
}

Connection* UringLoop::Find(uint64_t tag) {
  const Slot& slot = slots_[static_cast<uint32_t>(tag)];
  return (slot.generation & 0xffffff) == ((tag >> 32) & 0xffffff) ? slot.connection : nullptr;
}

Status UringLoop::Add(Connection& connection) {
  connection.loop = {};
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  connection.loop.slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[connection.loop.slot].connection = &connection;
  ArmReceive(connection);
  return Status::Ok();
}

void UringLoop::ArmReceive(Connection& connection) {
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_recv_multishot(entry, connection.fd, nullptr, 0, 0);
  entry->flags |= IOSQE_BUFFER_SELECT;
  entry->buf_group = kBufferGroup;
  entry->user_data = TagOf(Op::kReceive, connection);
  connection.loop.receiving = true;
}

void UringLoop::CancelReceive(const Connection& connection) {
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_cancel64(entry, TagOf(Op::kReceive, connection), 0);
  entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
  entry->user_data = Tag(Op::kNone, 0, 0);
}

void UringLoop::ArmWritable(Connection& connection) {
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_poll_add(entry, connection.fd, POLLOUT);
  entry->user_data = TagOf(Op::kWritable, connection);
  connection.loop.waits_writable = true;
}

void UringLoop::ArmWake() {
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_read(entry, wake_fd_, &wake_value_, sizeof(wake_value_), 0);
  entry->user_data = Tag(Op::kWake, 0, 0);
}

// A timer stays armed over many turns: a time limit on each wait would arm and cancel one in every
// turn.
void UringLoop::ArmTimer(int64_t timeout_us) {
  const int64_t deadline_ns = Clock::MonotonicNs() + timeout_us * 1000;
  if (timer_deadline_ns_ <= deadline_ns) return;
  timer_deadline_ns_ = deadline_ns;
  timer_.tv_sec = timeout_us / 1'000'000;
  timer_.tv_nsec = timeout_us % 1'000'000 * 1000;
  io_uring_sqe* entry = NextEntry();
  io_uring_prep_timeout(entry, &timer_, 0, 0);
  entry->user_data = Tag(Op::kTimer, 0, 0);
}

void UringLoop::Remove(Connection& connection) {
  const uint32_t index = connection.loop.slot;
  if (connection.loop.receiving) CancelReceive(connection);
  if (connection.loop.queued_flush) std::erase(to_send_, &connection);
  for (Connection*& finished : finished_) {
    if (finished == &connection) finished = nullptr;
  }
  slots_[index].connection = nullptr;
  ++slots_[index].generation;
  free_slots_.push_back(index);
  // The peer learns of it now; the number is free for reuse only after the next submit.
  shutdown(connection.fd, SHUT_RDWR);
  to_close_.push_back(connection.fd);
  connection.fd = -1;
}

void UringLoop::Pause(Connection& connection) {
  if (std::exchange(connection.loop.paused, true)) return;
  if (connection.loop.receiving) CancelReceive(connection);
}

void UringLoop::Resume(Connection& connection) {
  if (!std::exchange(connection.loop.paused, false)) return;
  // A cancelled receive that has not reported yet is armed again when it does.
  if (!connection.loop.receiving) ArmReceive(connection);
}

void UringLoop::QueueSend(Connection& connection) {
  if (connection.loop.queued_flush || connection.loop.waits_writable) return;
  connection.loop.queued_flush = true;
  to_send_.push_back(&connection);
}

bool UringLoop::SubmitSend(Connection& connection, Message* message) {
  const uint64_t consumed = connection.out.bytes_consumed();
  if (connection.send_limit <= consumed) return false;
  const size_t count = connection.out.Gather(message->pieces, connection.send_limit - consumed);
  if (count == 0) return false;
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += message->pieces[i].iov_len;
  connection.loop.submitted = bytes;
  constexpr int kFlags = MSG_WAITALL | MSG_DONTWAIT | MSG_NOSIGNAL;
  io_uring_sqe* entry = NextEntry();
  if (count == 1) {
    io_uring_prep_send(entry, connection.fd, message->pieces[0].iov_base, bytes, kFlags);
  } else {
    message->header = {};
    message->header.msg_iov = message->pieces.data();
    message->header.msg_iovlen = count;
    io_uring_prep_sendmsg(entry, connection.fd, &message->header, kFlags);
  }
  entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
  entry->user_data = TagOf(Op::kSend, connection);
  return true;
}

void UringLoop::SubmitSends() {
  while (messages_.size() < to_send_.size()) messages_.emplace_back();
  for (size_t i = 0; i < to_send_.size(); ++i) {
    Connection& connection = *to_send_[i];
    connection.loop.queued_flush = false;
    connection.loop.submitted = 0;
    connection.loop.send_result = 0;
    if (SubmitSend(connection, &messages_[i])) {
      sending_.push_back(&connection);
    } else {
      finished_.push_back(&connection);
    }
  }
  to_send_.clear();
}

void UringLoop::SubmitAll(unsigned wait_count) {
  int result = 0;
  if (wait_count > 0) {
    result = io_uring_submit_and_wait(&ring_, wait_count);
  } else {
    result = io_uring_submit_and_get_events(&ring_);
  }
  // Everything queued must have been taken before the sends' outcome is read.
  while (io_uring_sq_ready(&ring_) > 0) {
    if (result == -EBUSY || result == -EAGAIN) Collect();
    result = io_uring_submit_and_get_events(&ring_);
  }
  for (int fd : to_close_) close(fd);
  to_close_.clear();
}

void UringLoop::Collect() {
  unsigned head = 0;
  unsigned count = 0;
  io_uring_cqe* completion = nullptr;
  io_uring_for_each_cqe(&ring_, head, completion) {
    completions_.push_back(*completion);
    ++count;
  }
  io_uring_cq_advance(&ring_, count);
}

// Without a system call: the kernel says in the ring whether it has something to report.
bool UringLoop::SpinForEvents(uint64_t cycles) const {
  const uint64_t end = CycleNow() + cycles;
  do {
    const unsigned flags = __atomic_load_n(ring_.sq.kflags, __ATOMIC_ACQUIRE);
    if ((flags & IORING_SQ_TASKRUN) != 0 || io_uring_cq_ready(&ring_) > 0) return true;
    CpuRelax();
  } while (CycleNow() < end);
  return false;
}

void UringLoop::Wait(int64_t timeout_us, uint64_t spin_cycles) {
  SubmitSends();
  if (timeout_us > 0) ArmTimer(timeout_us);
  // Limited or empty sends are reported without sleeping first.
  bool sleep = timeout_us != 0 && finished_.empty() && completions_.empty();
  if (sleep && spin_cycles > 0) {
    SubmitAll(0);
    sleep = !SpinForEvents(spin_cycles);
  }
  SubmitAll(sleep ? 1 : 0);
  Collect();
  FinishSends();
}

// A send that has a completion was short or failed; all others went out as a whole.
void UringLoop::FinishSends() {
  for (const io_uring_cqe& completion : completions_) {
    if (static_cast<Op>(completion.user_data >> 56) != Op::kSend) continue;
    Connection* connection = Find(completion.user_data);
    if (connection == nullptr) continue;
    const int result = completion.res;
    connection->loop.submitted = result > 0 ? static_cast<size_t>(result) : 0;
    connection->loop.send_result = result >= 0 || result == -EINTR ? EAGAIN : -result;
  }
  for (Connection* connection : sending_) {
    connection->out.Consume(connection->loop.submitted);
    connection->bytes_sent += connection->loop.submitted;
    finished_.push_back(connection);
  }
  sending_.clear();
}

void UringLoop::Deliver() {
  for (size_t i = 0; i < finished_.size(); ++i) {
    Connection* connection = std::exchange(finished_[i], nullptr);
    if (connection == nullptr) continue;
    const int error = connection->loop.send_result;
    if (error == EAGAIN || error == EWOULDBLOCK) {
      ArmWritable(*connection);
    } else if (error != 0) {
      events_->OnDisconnect(*connection, error);
    } else if (connection->out.bytes_consumed() < connection->send_limit &&
               !connection->out.empty()) {
      QueueSend(*connection);  // more pieces than one send takes
    } else {
      events_->OnSent(*connection);
    }
  }
  finished_.clear();
  for (size_t i = 0; i < completions_.size(); ++i) DeliverOne(completions_[i]);
  completions_.clear();
}

void UringLoop::DeliverOne(const io_uring_cqe& completion) {
  switch (static_cast<Op>(completion.user_data >> 56)) {
    case Op::kReceive:
      return DeliverReceive(completion.user_data, completion.res, completion.flags);
    case Op::kWritable:
      if (Connection* connection = Find(completion.user_data)) {
        connection->loop.waits_writable = false;
        QueueSend(*connection);
      }
      return;
    case Op::kWake:
      return ArmWake();
    case Op::kTimer:
      timer_deadline_ns_ = INT64_MAX;
      return;
    case Op::kSend:
    case Op::kNone:
      return;
  }
}

void UringLoop::DeliverReceive(uint64_t tag, int result, uint32_t flags) {
  Connection* connection = Find(tag);
  if (connection != nullptr && (flags & IORING_CQE_F_MORE) == 0) connection->loop.receiving = false;
  if ((flags & IORING_CQE_F_BUFFER) != 0) {
    const unsigned buffer = flags >> IORING_CQE_BUFFER_SHIFT;
    if (connection != nullptr && result > 0) {
      connection->bytes_received += static_cast<uint64_t>(result);
      events_->OnData(*connection, {BufferAt(buffer), static_cast<size_t>(result)});
      connection = Find(tag);  // it may have been removed
    }
    GiveBack(buffer);
  }
  if (connection == nullptr) return;
  const bool again = result > 0 || result == -ENOBUFS || result == -ECANCELED || result == -EINTR;
  if (!again) return events_->OnDisconnect(*connection, -result);
  if (!connection->loop.receiving && !connection->loop.paused) ArmReceive(*connection);
}

void UringLoop::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof(one));
}

}  // namespace

Result<std::unique_ptr<EventLoop>> MakeUringLoop(LoopEvents* events) {
  auto loop = std::make_unique<UringLoop>(events);
  HOTKV_RETURN_IF_ERROR(loop->Init());
  return std::unique_ptr<EventLoop>(std::move(loop));
}

}  // namespace hotkv
