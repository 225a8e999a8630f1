// The event loop over epoll, level-triggered: for machines and containers where io_uring is not
// permitted, and for ThreadSanitizer, which cannot see the kernel's side of a ring.

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "engine/base/cycle_clock.h"
#include "server/net/event_loop.h"

namespace hotkv {

namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr size_t kEventsMax = 256;
constexpr size_t kPiecesMax = 64;

class EpollLoop final : public EventLoop {
 public:
  EpollLoop(int epoll_fd, int wake_fd, LoopEvents* events)
      : epoll_fd_(epoll_fd), wake_fd_(wake_fd), events_(events), buffer_(kReadBytes) {}
  ~EpollLoop() override {
    close(epoll_fd_);
    close(wake_fd_);
  }

  std::string_view name() const override { return "epoll"; }

  Status Add(Connection& connection) override {
    connection.loop = {};
    connection.loop.watched = EPOLLIN | EPOLLRDHUP;
    epoll_event event{};
    event.events = connection.loop.watched;
    event.data.ptr = &connection;
    if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, connection.fd, &event) != 0) {
      return Status::FromErrno(errno, "epoll_ctl", "socket");
    }
    return Status::Ok();
  }

  void Remove(Connection& connection) override {
    Forget(connection);
    epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, connection.fd, nullptr);
    close(connection.fd);
    connection.fd = -1;
  }

  void Pause(Connection& connection) override {
    connection.loop.paused = true;
    Watch(connection);
  }

  void Resume(Connection& connection) override {
    connection.loop.paused = false;
    Watch(connection);
  }

  void QueueSend(Connection& connection) override {
    if (connection.loop.queued_flush || connection.loop.waits_writable) return;
    connection.loop.queued_flush = true;
    to_send_.push_back(&connection);
  }

  void Wait(int64_t timeout_us, uint64_t spin_cycles) override {
    SendQueued();
    int timeout_ms = -1;
    if (timeout_us >= 0) timeout_ms = static_cast<int>((timeout_us + 999) / 1000);
    // What SendQueued reported must be delivered before sleeping.
    if (!sent_.empty()) timeout_ms = 0;
    const uint64_t spin_end = spin_cycles > 0 && timeout_ms != 0 ? CycleNow() + spin_cycles : 0;
    int count = 0;
    while (count == 0 && spin_end != 0 && CycleNow() < spin_end) {
      count = epoll_wait(epoll_fd_, ready_.data(), kEventsMax, 0);
    }
    if (count == 0) count = epoll_wait(epoll_fd_, ready_.data(), kEventsMax, timeout_ms);
    ready_count_ = count > 0 ? static_cast<size_t>(count) : 0;
  }

  void Deliver() override {
    for (size_t i = 0; i < sent_.size(); ++i) {
      if (sent_[i] != nullptr) ReportSend(*std::exchange(sent_[i], nullptr));
    }
    sent_.clear();
    for (size_t i = 0; i < ready_count_; ++i) {
      const epoll_event event = ready_[i];
      if (event.data.ptr == nullptr) {
        ClearWake();
      } else if (event.data.ptr != &removed_) {
        DeliverOne(*static_cast<Connection*>(event.data.ptr), event.events, i);
      }
    }
    ready_count_ = 0;
  }

  void Wake() override {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof(one));
  }

 private:
  void ClearWake() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_fd_, &count, sizeof(count));
  }

  // Drops what is collected for a connection that is about to go.
  void Forget(Connection& connection) {
    for (size_t i = 0; i < ready_count_; ++i) {
      if (ready_[i].data.ptr == &connection) ready_[i].data.ptr = &removed_;
    }
    for (Connection*& sent : sent_) {
      if (sent == &connection) sent = nullptr;
    }
    if (connection.loop.queued_flush) std::erase(to_send_, &connection);
  }

  void Watch(Connection& connection) {
    uint32_t wanted = connection.loop.paused ? 0 : EPOLLIN | EPOLLRDHUP;
    if (connection.loop.waits_writable) wanted |= EPOLLOUT;
    if (wanted == connection.loop.watched) return;
    connection.loop.watched = wanted;
    epoll_event event{};
    event.events = wanted;
    event.data.ptr = &connection;
    epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, connection.fd, &event);
  }

  void SendQueued() {
    for (size_t i = 0; i < to_send_.size(); ++i) {
      Connection& connection = *to_send_[i];
      connection.loop.queued_flush = false;
      Send(connection);
      sent_.push_back(&connection);
    }
    to_send_.clear();
  }

  // Until the chain is empty, limited, or the socket full. The outcome stays in send_result.
  void Send(Connection& connection) {
    connection.loop.send_result = 0;
    for (;;) {
      std::array<iovec, kPiecesMax> pieces;
      const uint64_t consumed = connection.out.bytes_consumed();
      if (connection.send_limit <= consumed) return;
      const size_t count = connection.out.Gather(pieces, connection.send_limit - consumed);
      if (count == 0) return;
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = count;
      const ssize_t sent = sendmsg(connection.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        connection.out.Consume(static_cast<size_t>(sent));
        connection.bytes_sent += static_cast<uint64_t>(sent);
        continue;
      }
      if (errno == EINTR) continue;
      connection.loop.send_result = errno;
      return;
    }
  }

  void ReportSend(Connection& connection) {
    const int error = connection.loop.send_result;
    if (error == EAGAIN || error == EWOULDBLOCK) {
      connection.loop.waits_writable = true;
      Watch(connection);
    } else if (error != 0) {
      events_->OnDisconnect(connection, error);
    } else {
      events_->OnSent(connection);
    }
  }

  void DeliverOne(Connection& connection, uint32_t events, size_t index) {
    if ((events & EPOLLOUT) != 0) {
      connection.loop.waits_writable = false;
      Watch(connection);
      Send(connection);
      ReportSend(connection);
      if (ready_[index].data.ptr == &removed_) return;
    }
    if ((events & EPOLLIN) != 0 && !connection.loop.paused) return Receive(connection);
    // Paused: only a socket that is closed both ways or broken; unread bytes no longer matter then.
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) events_->OnDisconnect(connection, ECONNRESET);
  }

  void Receive(Connection& connection) {
    const ssize_t got = recv(connection.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got > 0) {
      connection.bytes_received += static_cast<uint64_t>(got);
      events_->OnData(connection, {buffer_.data(), static_cast<size_t>(got)});
    } else if (got == 0) {
      events_->OnDisconnect(connection, 0);
    } else if (errno != EAGAIN && errno != EINTR) {
      events_->OnDisconnect(connection, errno);
    }
  }

  const int epoll_fd_;
  const int wake_fd_;
  LoopEvents* const events_;
  std::vector<char> buffer_;
  std::array<epoll_event, kEventsMax> ready_{};
  size_t ready_count_ = 0;
  std::vector<Connection*> to_send_;
  std::vector<Connection*> sent_;
  char removed_ = 0;  // its address marks events of removed connections
};

}  // namespace

Result<std::unique_ptr<EventLoop>> MakeEpollLoop(LoopEvents* events) {
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) return Status::FromErrno(errno, "epoll_create1", "");
  const int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) {
    const int error = errno;
    close(epoll_fd);
    return Status::FromErrno(error, "eventfd", "");
  }
  auto loop = std::make_unique<EpollLoop>(epoll_fd, wake_fd, events);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) != 0) {
    return Status::FromErrno(errno, "epoll_ctl", "eventfd");
  }
  return std::unique_ptr<EventLoop>(std::move(loop));
}

}  // namespace hotkv
