#include "server/net/event_loop.h"

#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace hotkv {
namespace {

// Notes what happens; a test may add what is to be done then.
class Recorder final : public LoopEvents {
 public:
  void OnData(Connection& connection, std::string_view bytes) override {
    received[&connection].append(bytes);
    if (on_data) on_data(connection, bytes);
  }
  void OnDisconnect(Connection& connection, int error) override {
    disconnected[&connection] = error;
    if (on_disconnect) on_disconnect(connection);
  }
  void OnSent(Connection& connection) override { ++sent[&connection]; }

  std::map<Connection*, std::string> received;
  std::map<Connection*, int> disconnected;
  std::map<Connection*, int> sent;
  std::function<void(Connection&, std::string_view)> on_data;
  std::function<void(Connection&)> on_disconnect;
};

struct Pair {
  explicit Pair(BlockPool* pool) {
    int fds[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    near = std::make_unique<Connection>(fds[0], pool);
    far = fds[1];
  }
  ~Pair() {
    if (far >= 0) close(far);
  }
  void Write(std::string_view bytes) const {
    REQUIRE(write(far, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  std::string Read() const {
    std::string all;
    char buffer[65536];
    for (ssize_t got = 0; (got = recv(far, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0;)
      all.append(buffer, static_cast<size_t>(got));
    return all;
  }
  void CloseFar() {
    close(far);
    far = -1;
  }
  std::unique_ptr<Connection> near;
  int far = -1;
};

constexpr int64_t kWaitUs = 20'000;
constexpr uint64_t kSpinCycles = 100'000;

void Turn(EventLoop& loop) {
  // Every other wait looks for events before it sleeps, as after a long turn.
  static unsigned waits = 0;
  loop.Wait(kWaitUs, ++waits % 2 == 0 ? kSpinCycles : 0);
  loop.Deliver();
}

// Turns until the condition holds; false if it never does.
bool TurnUntil(EventLoop& loop, const std::function<bool()>& condition) {
  for (int i = 0; i < 500 && !condition(); ++i) Turn(loop);
  return condition();
}

std::vector<IoBackend> Backends() {
  std::vector<IoBackend> backends{IoBackend::kEpoll};
  if (ProbeUring().ok()) backends.push_back(IoBackend::kUring);
  return backends;
}

#define FOR_EACH_BACKEND                                                       \
  const IoBackend backend = GENERATE(from_range(Backends()));                  \
  Recorder events;                                                             \
  BlockPool pool;                                                              \
  Result<std::unique_ptr<EventLoop>> made = EventLoop::Make(backend, &events); \
  REQUIRE(made.ok());                                                          \
  EventLoop& loop = **made;                                                    \
  CAPTURE(loop.name())

TEST_CASE("bytes come in and go out", "[loop]") {
  FOR_EACH_BACKEND;
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < 20; ++i) {
    pairs.push_back(std::make_unique<Pair>(&pool));
    REQUIRE(loop.Add(*pairs.back()->near).ok());
  }
  events.on_data = [&](Connection& connection, std::string_view bytes) {
    connection.out.Append(bytes);
    loop.QueueSend(connection);
  };
  for (int round = 0; round < 50; ++round) {
    for (size_t i = 0; i < pairs.size(); ++i)
      pairs[i]->Write("message " + std::to_string(i) + "." + std::to_string(round) + ";");
    Turn(loop);
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    std::string expected;
    for (int round = 0; round < 50; ++round)
      expected += "message " + std::to_string(i) + "." + std::to_string(round) + ";";
    std::string got;
    CHECK(TurnUntil(loop, [&] {
      got += pairs[i]->Read();
      return got == expected;
    }));
    CHECK(events.received[pairs[i]->near.get()] == expected);
    CHECK(pairs[i]->near->bytes_received == expected.size());
    CHECK(pairs[i]->near->bytes_sent == expected.size());
    CHECK(pairs[i]->near->out.empty());
    loop.Remove(*pairs[i]->near);
  }
  Turn(loop);
}

TEST_CASE("a stream larger than all receive buffers", "[loop]") {
  FOR_EACH_BACKEND;
  Pair pair(&pool);
  REQUIRE(loop.Add(*pair.near).ok());
  std::string expected;
  for (int i = 0; i < 1'500'000; ++i) expected += static_cast<char>('a' + i % 23);
  for (int i = 0; i < 4; ++i) expected += expected.substr(0, 1'500'000);
  std::thread writer([&] {
    for (size_t at = 0; at < expected.size();) {
      const ssize_t written = write(pair.far, expected.data() + at, expected.size() - at);
      if (written <= 0) return;
      at += static_cast<size_t>(written);
    }
  });
  CHECK(
      TurnUntil(loop, [&] { return events.received[pair.near.get()].size() >= expected.size(); }));
  writer.join();
  CHECK(events.received[pair.near.get()] == expected);
  loop.Remove(*pair.near);
}

TEST_CASE("a slow reader gets everything in order, and others do not wait for it", "[loop]") {
  FOR_EACH_BACKEND;
  Pair slow(&pool);
  Pair quick(&pool);
  REQUIRE(loop.Add(*slow.near).ok());
  REQUIRE(loop.Add(*quick.near).ok());
  std::string expected;
  for (int i = 0; i < 400'000; ++i) expected += std::to_string(i) + ",";
  slow.near->out.Append(expected);
  loop.QueueSend(*slow.near);
  Turn(loop);
  Turn(loop);
  CHECK_FALSE(slow.near->out.empty());  // the socket holds less than that
  quick.near->out.Append("hello");
  loop.QueueSend(*quick.near);
  std::string from_quick;
  CHECK(TurnUntil(loop, [&] {
    from_quick += quick.Read();
    return from_quick == "hello";
  }));
  std::string got;
  CHECK(TurnUntil(loop, [&] {
    got += slow.Read();
    return got.size() >= expected.size();
  }));
  CHECK(got == expected);
  CHECK(TurnUntil(loop, [&] { return events.sent[slow.near.get()] > 0; }));
  loop.Remove(*slow.near);
  loop.Remove(*quick.near);
}

TEST_CASE("bytes behind the send limit stay", "[loop]") {
  FOR_EACH_BACKEND;
  Pair pair(&pool);
  REQUIRE(loop.Add(*pair.near).ok());
  pair.near->out.Append("now");
  pair.near->send_limit = pair.near->out.bytes_appended();
  pair.near->out.Append("later");
  loop.QueueSend(*pair.near);
  Turn(loop);
  Turn(loop);
  CHECK(pair.Read() == "now");
  pair.near->send_limit = UINT64_MAX;
  loop.QueueSend(*pair.near);
  std::string got;
  CHECK(TurnUntil(loop, [&] {
    got += pair.Read();
    return got == "later";
  }));
  loop.Remove(*pair.near);
}

TEST_CASE("paused connections deliver nothing until they are resumed", "[loop]") {
  FOR_EACH_BACKEND;
  Pair pair(&pool);
  REQUIRE(loop.Add(*pair.near).ok());
  pair.Write("one");
  CHECK(TurnUntil(loop, [&] { return events.received[pair.near.get()] == "one"; }));
  loop.Pause(*pair.near);
  for (int i = 0; i < 3; ++i) Turn(loop);  // until the kernel knows
  pair.Write("two");
  for (int i = 0; i < 3; ++i) Turn(loop);
  CHECK(events.received[pair.near.get()] == "one");
  loop.Resume(*pair.near);
  CHECK(TurnUntil(loop, [&] { return events.received[pair.near.get()] == "onetwo"; }));
  // Paused and resumed within a turn.
  loop.Pause(*pair.near);
  loop.Resume(*pair.near);
  pair.Write("three");
  CHECK(TurnUntil(loop, [&] { return events.received[pair.near.get()] == "onetwothree"; }));
  loop.Remove(*pair.near);
}

TEST_CASE("disconnects are reported, also while sending", "[loop]") {
  FOR_EACH_BACKEND;
  Pair quiet(&pool);
  Pair busy(&pool);
  REQUIRE(loop.Add(*quiet.near).ok());
  REQUIRE(loop.Add(*busy.near).ok());
  events.on_disconnect = [&](Connection& connection) { loop.Remove(connection); };
  quiet.CloseFar();
  CHECK(TurnUntil(loop, [&] { return events.disconnected.contains(quiet.near.get()); }));
  CHECK(events.disconnected[quiet.near.get()] == 0);
  busy.near->out.Append(std::string(5'000'000, 'x'));
  loop.QueueSend(*busy.near);
  Turn(loop);
  busy.CloseFar();
  CHECK(TurnUntil(loop, [&] { return events.disconnected.contains(busy.near.get()); }));
  Turn(loop);
}

TEST_CASE("a removed connection is never heard of again", "[loop]") {
  FOR_EACH_BACKEND;
  // The first one's data removes the second, whose data may be in the same turn.
  Pair first(&pool);
  Pair second(&pool);
  REQUIRE(loop.Add(*first.near).ok());
  REQUIRE(loop.Add(*second.near).ok());
  bool removed = false;
  events.on_data = [&](Connection& connection, std::string_view) {
    CHECK_FALSE(removed);
    Connection* other = &connection == first.near.get() ? second.near.get() : first.near.get();
    other->out.Append("unsent");
    loop.QueueSend(*other);
    loop.Remove(*other);
    (other == first.near.get() ? first : second).near.reset();
    removed = true;
  };
  first.Write("a");
  second.Write("b");
  CHECK(TurnUntil(loop, [&] { return removed; }));
  events.on_data = nullptr;
  for (int i = 0; i < 3; ++i) Turn(loop);
  Pair& left = first.near != nullptr ? first : second;
  Pair& gone = first.near != nullptr ? second : first;
  char byte = 0;
  CHECK(recv(gone.far, &byte, 1, 0) <= 0);  // closed
  loop.Remove(*left.near);
  Turn(loop);
}

TEST_CASE("a descriptor's number is not reused under a queued operation", "[loop]") {
  FOR_EACH_BACKEND;
  for (int round = 0; round < 50; ++round) {
    Pair pair(&pool);
    REQUIRE(loop.Add(*pair.near).ok());
    loop.Remove(*pair.near);
    Pair next(&pool);  // would get the number of the first, were it closed already
    REQUIRE(loop.Add(*next.near).ok());
    next.Write("mine");
    REQUIRE(TurnUntil(loop, [&] { return events.received[next.near.get()] == "mine"; }));
    loop.Remove(*next.near);
    Turn(loop);
    events.received.clear();
  }
}

TEST_CASE("Wake ends a wait from another thread", "[loop]") {
  FOR_EACH_BACKEND;
  std::atomic<int> woken{0};
  std::thread waker([&] {
    while (woken.load() < 100) {
      loop.Wake();
      std::this_thread::yield();
    }
  });
  while (woken.load() < 100) {
    loop.Wait(-1);
    loop.Deliver();
    woken.fetch_add(1);
  }
  waker.join();
}

TEST_CASE("a wait ends at its time limit", "[loop]") {
  FOR_EACH_BACKEND;
  for (int i = 0; i < 5; ++i) Turn(loop);
  loop.Wait(1000);
  loop.Deliver();
  SUCCEED();
}

TEST_CASE("references leave without a copy and are released when sent", "[loop]") {
  FOR_EACH_BACKEND;
  Pair pair(&pool);
  REQUIRE(loop.Add(*pair.near).ok());
  static int released = 0;
  released = 0;
  const std::string large(300'000, 'L');
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    pair.near->out.Append("<");
    pair.near->out.AppendReference(large, nullptr, [](void*) { ++released; });
    pair.near->out.Append(">");
    expected += "<" + large + ">";
  }
  loop.QueueSend(*pair.near);
  std::string got;
  CHECK(TurnUntil(loop, [&] {
    got += pair.Read();
    return got.size() >= expected.size();
  }));
  CHECK(got == expected);
  CHECK(TurnUntil(loop, [&] { return pair.near->out.empty(); }));
  CHECK(released == 20);
  loop.Remove(*pair.near);
}

}  // namespace
}  // namespace hotkv
