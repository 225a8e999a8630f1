#include "server/net/event_loop.h"

#include <sys/socket.h>
#include <unistd.h>

namespace hotkv {

namespace {

// One round trip over a socket pair: receives, sends, and counts what came.
class RoundTrip final : public LoopEvents {
 public:
  void OnData(Connection& connection, std::string_view bytes) override {
    received.append(bytes);
    connection.out.Append(bytes);
  }
  void OnDisconnect(Connection&, int error) override { broken = error != 0 ? error : EPIPE; }
  void OnSent(Connection&) override {}

  std::string received;
  int broken = 0;
};

constexpr std::string_view kProbe = "probe";
constexpr int kProbeTurnsMax = 20;
constexpr int64_t kProbeWaitUs = 50'000;

Status RunRoundTrip(EventLoop* loop, RoundTrip* events, int near_fd, int far_fd) {
  BlockPool pool;
  Connection connection(near_fd, &pool);
  HOTKV_RETURN_IF_ERROR(loop->Add(connection));
  std::string back;
  int sent = 0;
  for (int turn = 0; turn < kProbeTurnsMax && back.size() < 2 * kProbe.size(); ++turn) {
    // Twice, so that a receive which works only once does not pass.
    if (sent == 0 || (sent == 1 && back.size() == kProbe.size() && events->received == kProbe)) {
      if (write(far_fd, kProbe.data(), kProbe.size()) < 0) break;
      ++sent;
    }
    loop->Wait(kProbeWaitUs);
    loop->Deliver();
    if (events->broken != 0) break;
    if (!connection.out.empty()) {
      loop->QueueSend(connection);
      loop->Wait(0);
      loop->Deliver();
    }
    char buffer[64];
    const ssize_t got = recv(far_fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got > 0) back.append(buffer, static_cast<size_t>(got));
  }
  loop->Remove(connection);
  loop->Wait(0);
  loop->Deliver();
  if (back.size() == 2 * kProbe.size()) return Status::Ok();
  if (events->broken != 0)
    return Status::FromErrno(events->broken, "round trip through the ring", "");
  return Status::Unsupported("a round trip through the ring did not come back");
}

}  // namespace

Status ProbeUring() {
#ifdef __SANITIZE_THREAD__
  return Status::Unsupported("ThreadSanitizer cannot see the kernel's side of a ring");
#endif
  RoundTrip events;
  Result<std::unique_ptr<EventLoop>> loop = MakeUringLoop(&events);
  if (!loop.ok()) return std::move(loop).status();
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return Status::FromErrno(errno, "socketpair", "");
  }
  Status status = RunRoundTrip(loop->get(), &events, pair[0], pair[1]);
  close(pair[1]);
  return status;
}

Result<std::unique_ptr<EventLoop>> EventLoop::Make(IoBackend backend, LoopEvents* events) {
  if (backend == IoBackend::kEpoll) return MakeEpollLoop(events);
  const Status status = ProbeUring();
  if (status.ok()) return MakeUringLoop(events);
  if (backend == IoBackend::kUring) return status;
  return MakeEpollLoop(events);
}

}  // namespace hotkv
