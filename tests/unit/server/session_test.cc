// The way from received bytes to replies: on a real server, over loopback, with both event loops.

#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "engine/base/clock.h"
#include "server/session/worker.h"
#include "tests/unit/server/command_rig.h"

namespace hotkv {
namespace {

constexpr int kReplyTimeoutMs = 10'000;
constexpr int kSilenceMs = 30;

// A connection of bytes.
class Wire {
 public:
  explicit Wire(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  }
  explicit Wire(CommandRig& rig) : Wire(rig.server().tcp_port()) {}
  ~Wire() { close(fd_); }
  Wire(const Wire&) = delete;

  void Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server has closed: the reading side will show it
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void HalfClose() const { shutdown(fd_, SHUT_WR); }
  int fd() const { return fd_; }

  // Exactly so many bytes, fewer if the server closes or nothing comes for long.
  std::string Read(size_t size) const {
    std::string all;
    while (all.size() < size && Some(&all, size - all.size(), kReplyTimeoutMs)) {
    }
    return all;
  }
  std::string ReadToEnd() const {
    std::string all;
    while (Some(&all, 65536, kReplyTimeoutMs)) {
    }
    return all + (ended_ ? "<closed>" : "<silence>");
  }
  // True when the server neither sends nor closes for a while.
  bool Silent() const {
    pollfd polled{fd_, POLLIN, 0};
    return poll(&polled, 1, kSilenceMs) == 0;
  }
  std::string Ask(std::string_view request, std::string_view expected) const {
    Send(request);
    return Read(expected.size());
  }

 private:
  bool Some(std::string* all, size_t size, int timeout_ms) const {
    pollfd polled{fd_, POLLIN, 0};
    if (poll(&polled, 1, timeout_ms) != 1) return false;
    char buffer[65536];
    const ssize_t got = recv(fd_, buffer, std::min(size, sizeof(buffer)), 0);
    ended_ = got <= 0;
    if (ended_) return false;
    all->append(buffer, static_cast<size_t>(got));
    return true;
  }
  int fd_;
  mutable bool ended_ = false;
};

std::string Encode(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words)
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return text;
}

std::vector<std::string> Backends() {
  std::vector<std::string> backends{"epoll"};
  if (ProbeUring().ok()) backends.emplace_back("uring");
  return backends;
}

CommandRigOptions With(const std::string& backend, std::vector<std::string> settings = {},
                       unsigned workers = 1) {
  CommandRigOptions options;
  options.settings = std::move(settings);
  options.settings.insert(options.settings.end(), {"--io", backend});
  options.workers = workers;
  return options;
}

#define BACKEND                                                 \
  const std::string backend = GENERATE(from_range(Backends())); \
  CAPTURE(backend)

TEST_CASE("pipelines are answered in order, however they are cut", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  std::string requests;
  std::string expected;
  for (int i = 0; i < 10; ++i) {
    const std::string key = "key" + std::to_string(i);
    requests += Encode({"SET", key, "value" + std::to_string(i)}) + Encode({"GET", key}) +
                "INCR n\r\n" + Encode({"GET", "none"});
    expected +=
        "+OK\r\n$6\r\nvalue" + std::to_string(i) + "\r\n:" + std::to_string(i + 1) + "\r\n$-1\r\n";
  }
  const Wire whole(rig);
  CHECK(whole.Ask(requests, expected) == expected);
  for (size_t piece : {1, 7, 50}) {
    CHECK(rig("DEL n") == ":1");
    const Wire cut(rig);
    for (size_t at = 0; at < requests.size(); at += piece) cut.Send(requests.substr(at, piece));
    CHECK(cut.Read(expected.size()) == expected);
  }
}

TEST_CASE("a pipeline of many thousand commands, larger than every buffer", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  std::string requests;
  std::string expected;
  for (int i = 1; i <= 60000; ++i) {
    requests += Encode({"INCR", "count"});
    expected += ":" + std::to_string(i) + "\r\n";
  }
  const Wire wire(rig);
  std::thread writer([&] { wire.Send(requests); });
  CHECK(wire.Read(expected.size()) == expected);
  writer.join();
}

TEST_CASE("values of every size go in and out unchanged", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  const Wire wire(rig);
  for (size_t size : {0, 1, 63, 1023, 1024, 16383, 16384, 16385, 65536, 1000000, 5000000}) {
    std::string value(size, ' ');
    for (size_t i = 0; i < size; ++i) value[i] = static_cast<char>(i * 131 + size);
    const std::string expected = "+OK\r\n$" + std::to_string(size) + "\r\n" + value + "\r\n";
    std::thread writer([&] { wire.Send(Encode({"SET", "k", value}) + Encode({"GET", "k"})); });
    const bool same = wire.Read(expected.size()) == expected;
    writer.join();
    CHECK(same);
  }
}

// Faults in frames are answered the same whether the frame comes in one piece or cut anywhere
// (UR-01, UR-02).
TEST_CASE("protocol errors end the connection with their text", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  const std::string head = "*2\r\n$3\r\nGET\r\n";
  const std::string length = "-ERR Protocol error: invalid bulk length\r\n<closed>";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {head + "$abc\r\n", length},
      {head + "x3\r\n", "-ERR Protocol error: expected '$', got 'x'\r\n<closed>"},
      {head + "$536870913\r\n", length},
      {"*2147483648\r\n", "-ERR Protocol error: invalid multibulk length\r\n<closed>"},
      {"*1\r\n$-1\r\n", length},
      {"*1\r\n$9223372036854775808\r\n", length},
      {"get 'abc\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n<closed>"},
      {Encode({"PING"}) + "*x\r\n",
       "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n<closed>"},
  };
  for (const auto& [bytes, reply] : cases) {
    CAPTURE(bytes);
    const Wire whole(rig);
    whole.Send(bytes);
    CHECK(whole.ReadToEnd() == reply);
    const Wire cut(rig);
    cut.Send(bytes.substr(0, bytes.size() / 2));
    CHECK((cut.Silent() || reply[0] == '+'));
    cut.Send(bytes.substr(bytes.size() / 2));
    CHECK(cut.ReadToEnd() == reply);
  }
  const Wire fine(rig);
  CHECK(fine.Ask("*-1\r\n*0\r\nPING\r\n", "+PONG\r\n") == "+PONG\r\n");
  CHECK(fine.Silent());
  CHECK(
      Eventually([&] { return rig.server().clients().size() == 1; }));  // the faulty ones are gone
}

TEST_CASE("a browser's request is dropped without an answer", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  const Wire wire(rig);
  wire.Send("POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET a b\r\n");
  CHECK(wire.ReadToEnd() == "<closed>");
  CHECK(rig("GET a") == "nil");
}

TEST_CASE("without the password only small requests and AUTH", "[session]") {
  BACKEND;
  CommandRig rig(With(backend, {"--requirepass", "secret"}));
  const std::string refused = "-NOAUTH Authentication required.\r\n";
  const Wire wire(rig);
  CHECK(wire.Ask(Encode({"GET", "a"}), refused) == refused);
  const std::string unknown = "-ERR unknown command 'NOSUCH', with args beginning with: \r\n";
  CHECK(wire.Ask(Encode({"NOSUCH"}), unknown) == unknown);
  const std::string pair =
      "-WRONGPASS invalid username-password pair or user is disabled.\r\n+OK\r\n+OK\r\n";
  // What follows AUTH in the same pipeline runs with its rights, and without the small-request
  // limits.
  const std::string large(20000, 'x');
  CHECK(
      wire.Ask(Encode({"AUTH", "wrong"}) + Encode({"AUTH", "secret"}) + Encode({"SET", "a", large}),
               pair) == pair);

  const Wire many(rig);
  many.Send("*11\r\n");
  CHECK(many.ReadToEnd() == "-ERR Protocol error: unauthenticated multibulk length\r\n<closed>");
  const Wire big(rig);
  big.Send("*2\r\n$4\r\nAUTH\r\n$16385\r\n");
  CHECK(big.ReadToEnd() == "-ERR Protocol error: unauthenticated bulk length\r\n<closed>");
}

TEST_CASE("a transaction with a faulty command does nothing", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  for (const char* faulty : {"NOSUCHCMD", "GET"}) {
    CHECK(rig("MULTI") == "+OK");
    CHECK(rig(faulty).starts_with("-ERR "));
    CHECK(rig("SET leaked 1") == "+QUEUED");
    CHECK(rig("EXEC") == "-EXECABORT Transaction discarded because of previous errors.");
    CHECK(rig("EXISTS leaked") == ":0");
  }
}

TEST_CASE("QUIT answers what came before it and closes", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  const Wire wire(rig);
  wire.Send("SET a 1\r\nQUIT\r\nSET a 2\r\n");
  CHECK(wire.ReadToEnd() == "+OK\r\n+OK\r\n<closed>");
  CHECK(rig("GET a") == "$1");
}

TEST_CASE("a client that closes its sending side still gets its answers", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  const Wire wire(rig);
  std::string expected;
  std::string requests;
  for (int i = 1; i <= 3000; ++i) {
    requests += "INCR n\r\n";
    expected += ":" + std::to_string(i) + "\r\n";
  }
  std::thread writer([&] {
    wire.Send(requests);
    wire.HalfClose();
  });
  CHECK(wire.ReadToEnd() == expected + "<closed>");
  writer.join();
}

TEST_CASE("CLIENT REPLY switches replies off, for one command or for all", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  const Wire wire(rig);
  const std::string expected = "+OK\r\n$1\r\n3\r\n";
  CHECK(wire.Ask("CLIENT REPLY OFF\r\nSET a 1\r\nGET a\r\nNOSUCH\r\nCLIENT REPLY ON\r\nCLIENT "
                 "REPLY SKIP\r\nSET a 3\r\nGET a\r\n",
                 expected) == expected);
  const Wire quiet(rig);
  quiet.Send("CLIENT REPLY OFF\r\nSET b 1\r\nQUIT\r\n");
  CHECK(quiet.ReadToEnd() == "<closed>");
}

TEST_CASE("maxclients refuses what is too much and takes new ones when others have gone",
          "[session]") {
  BACKEND;
  CommandRig rig(With(backend, {"--maxclients", "3"}));
  auto first = std::make_unique<Wire>(rig);
  const Wire second(rig);
  const Wire third(rig);
  for (const Wire* wire : std::initializer_list<const Wire*>{first.get(), &second, &third})
    CHECK(wire->Ask("PING\r\n", "+PONG\r\n") == "+PONG\r\n");
  const Wire fourth(rig);
  CHECK(fourth.ReadToEnd() == "-ERR max number of clients reached\r\n<closed>");
  first.reset();
  CHECK(Eventually([&] {
    const Wire next(rig);
    return next.Ask("PING\r\n", "+PONG\r\n") == "+PONG\r\n";
  }));
}

TEST_CASE("a client over its query buffer limit is closed, and others go on", "[session]") {
  BACKEND;
  CommandRig rig(With(backend, {"--client-query-buffer-limit", "1mb"}));
  const Wire wire(rig);
  std::thread writer(
      [&] { wire.Send("*2\r\n$3\r\nGET\r\n$4000000\r\n" + std::string(3'000'000, 'x')); });
  CHECK(wire.ReadToEnd() == "<closed>");
  writer.join();
  CHECK(rig.server().stats().query_buffer_limit_disconnections.load() == 1);
  CHECK(rig("PING") == "+PONG");
}

TEST_CASE("a client over its output limit is closed, and its replies are freed", "[session]") {
  BACKEND;
  CommandRig rig(With(backend, {"--client-output-buffer-limit", "normal 2mb 0 0"}));
  CHECK(rig.Call(0, {"SET", "large", std::string(16000, 'x')}) == "+OK");
  const Wire wire(rig);
  std::string requests = "*3001\r\n$4\r\nMGET\r\n";
  for (int i = 0; i < 3000; ++i) requests += "$5\r\nlarge\r\n";  // 48 MB of replies
  wire.Send(requests);
  CHECK(Eventually(
      [&] { return rig.server().stats().output_buffer_limit_disconnections.load() == 1; }));
  CHECK(wire.ReadToEnd().ends_with("<closed>"));
  CHECK(rig("PING") == "+PONG");
}

TEST_CASE("announced lengths cost no memory", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  std::vector<std::unique_ptr<Wire>> wires;
  for (int i = 0; i < 200; ++i) {
    wires.push_back(std::make_unique<Wire>(rig));
    wires.back()->Send("*2\r\n$3\r\nGET\r\n$536870912\r\n");
  }
  uint64_t bytes = 0;
  CHECK(Eventually([&] {
    size_t waiting = 0;
    bytes = 0;
    rig.server().clients().ForEach([&](Client& client) {
      const uint64_t query = client.shared.query_bytes.load();
      waiting += query > 0 ? 1 : 0;
      bytes += query + client.shared.query_free_bytes.load();
    });
    return waiting == 200;
  }));
  CHECK(bytes < 200 * 8192);
}

TEST_CASE("an idle client is closed after its time", "[session]") {
  BACKEND;
  CommandRig rig(With(backend, {"--timeout", "1"}));
  const Wire wire(rig);
  CHECK(wire.Ask("PING\r\n", "+PONG\r\n") == "+PONG\r\n");
  CHECK(wire.ReadToEnd() == "<closed>");
}

TEST_CASE("connections are spread over the workers, and each runs its own commands", "[session]") {
  BACKEND;
  CommandRig rig(With(backend, {}, 3));
  std::vector<std::unique_ptr<Wire>> wires;
  for (int i = 0; i < 9; ++i) {
    wires.push_back(std::make_unique<Wire>(rig));
    CHECK(wires.back()->Ask("INCR n\r\n", ":1\r\n") == ":" + std::to_string(i + 1) + "\r\n");
  }
  for (unsigned i = 0; i < 3; ++i) CHECK(rig.server().worker(i).client_count() == 3);
}

TEST_CASE("many clients of several workers on the same keys: no increment is lost", "[session]") {
  BACKEND;
  CommandRig rig(With(backend, {}, 3));
  constexpr int kClients = 6;
  constexpr int kRounds = 200;
  constexpr int kPipeline = 20;
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([port = rig.server().tcp_port()] {
      const Wire wire(port);
      std::string requests;
      for (int i = 0; i < kPipeline; ++i) requests += "INCR shared\r\nINCR other\r\n";
      for (int round = 0; round < kRounds; ++round) {
        wire.Send(requests);
        std::string replies;
        while (std::count(replies.begin(), replies.end(), '\n') < 2 * kPipeline) {
          const std::string more = wire.Read(1);
          if (more.empty()) return;
          replies += more;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string total = "$" + std::to_string(kClients * kRounds * kPipeline);
  CHECK(rig("GET shared") == total);
  CHECK(rig("GET other") == total);
}

TEST_CASE("a client is killed wherever it lives", "[session]") {
  BACKEND;
  CommandRig rig(With(backend, {}, 2));
  const Wire first(rig);
  const Wire second(rig);
  for (const Wire* wire : std::initializer_list<const Wire*>{&first, &second}) {
    wire->Send("CLIENT ID\r\n");
    const std::string id = wire->Read(4).substr(1, 1);
    CHECK(rig("CLIENT KILL ID " + id) == ":1");
    CHECK(wire->ReadToEnd() == "<closed>");
  }
}

// Under appendfsync always a reply leaves only when its epoch is durable; the fake disk decides
// when.
TEST_CASE("held replies go when the log is durable, in order", "[session]") {
  BACKEND;
  FakeDisk disk;
  CommandRigOptions options = With(backend);
  options.disk = &disk;
  CommandRig rig(options);
  EpochClock& epochs = rig.engine().epochs();
  rig.engine().always_fsync.store(true);
  const Wire wire(rig);
  wire.Send("SET a 1\r\nGET a\r\nPING\r\n");
  CHECK(wire.Silent());
  CHECK(Eventually([&] { return disk.sync_requests.load() > 0; }));
  const Wire other(rig);
  CHECK(other.Ask("PING\r\n", "+PONG\r\n") == "+PONG\r\n");
  other.Send("GET a\r\n");  // would tell a value that a crash may take back
  CHECK(other.Silent());
  const uint64_t closed = epochs.Close();
  epochs.Release(closed);
  epochs.SetDurable(closed);
  rig.server().OnDurable();
  const std::string expected = "+OK\r\n$1\r\n1\r\n+PONG\r\n";
  CHECK(wire.Read(expected.size()) == expected);
  CHECK(other.Read(7) == "$1\r\n1\r\n");
}

TEST_CASE("held replies become errors when the disk fails", "[session]") {
  BACKEND;
  FakeDisk disk;
  CommandRigOptions options = With(backend);
  options.disk = &disk;
  CommandRig rig(options);
  rig.engine().always_fsync.store(true);
  const Wire wire(rig);
  wire.Send("SET a 1\r\nGET a\r\n");
  // Refused from here on would be a write that has not run yet: on a slow machine it needs its time.
  REQUIRE(Eventually([&] { return rig.engine().keyspace().Size(0) == 1; }));
  CHECK(wire.Silent());
  rig.engine().SetDiskDenied("no space");
  rig.server().OnDurable();
  const std::string error =
      "-MISCONF The log could not be made durable, the outcome of this command is unknown: no "
      "space\r\n";
  CHECK(wire.Read(2 * error.size()) == error + error);
  CHECK(wire.Ask("GET a\r\n", "$1\r\n1\r\n") == "$1\r\n1\r\n");  // reads are answered at once now
}

TEST_CASE("writes wait while the log is behind, reads do not, and order is kept", "[session]") {
  BACKEND;
  FakeDisk disk;
  CommandRigOptions options = With(backend);
  options.disk = &disk;
  CommandRig rig(options);
  rig.engine().epochs().SetWritesWait(true);
  const Wire writer(rig);
  writer.Send("GET a\r\nSET a 1\r\nGET a\r\n");
  CHECK(writer.Read(5) == "$-1\r\n");
  CHECK(writer.Silent());
  const Wire reader(rig);
  CHECK(reader.Ask("GET a\r\n", "$-1\r\n") == "$-1\r\n");
  rig.engine().epochs().SetWritesWait(false);
  CHECK(writer.Read(12) == "+OK\r\n$1\r\n1\r\n");
}

// The value of one of INFO's sums, which no client shows while replies are held.
uint64_t WaitedUs(CommandRig& rig, WaitCause cause) { return rig.engine().WaitedNs(cause) / 1000; }

// A slow log's entry as `SLOWLOG GET 1 WITHWAITS` tells it.
const SlowlogEntry Newest(CommandRig& rig, std::string_view command) {
  for (const SlowlogEntry& entry : rig.server().recorder().slowlog().Newest(100)) {
    if (entry.args[0] == command) return entry;
  }
  FAIL("not in the slow log: " << command);
  return {};
}

constexpr int64_t kHeldMs = 50;
void Hold() { std::this_thread::sleep_for(std::chrono::milliseconds(kHeldMs)); }

// Whatever held it, and however long this machine made it wait: the wait is no part of its run time, and is told apart.
TEST_CASE("what a command waits for is told apart from its run time, by cause", "[session]") {
  BACKEND;
  FakeDisk disk;
  CommandRigOptions options = With(backend, {"--slowlog-log-slower-than", "0"}, 2);
  options.disk = &disk;
  CommandRig rig(options);
  Engine& engine = rig.engine();
  WaitCause cause = WaitCause::kCount;
  const Wire wire(rig);
  CHECK(wire.Ask("PING\r\n", "+PONG\r\n") == "+PONG\r\n");
  engine.active_expire = false;  // would meet the held stripe before the command does
  const int64_t begin_ns = Clock::MonotonicNs();
  const std::string request = "SET key value\r\n";
  std::string command = "SET";
  SECTION("a stripe") {
    cause = WaitCause::kStripe;
    SpinLock& lock = engine.keyspace().stripe(engine.keyspace().MakeRef("key").stripe).lock;
    lock.Lock();
    wire.Send(request);
    Hold();
    lock.Unlock();
  }
  SECTION("the world to stop") {
    cause = WaitCause::kStop;
    engine.gate().Stop(StopGate::kOutsider);
    wire.Send(request);
    Hold();
    engine.gate().Resume();
    command.clear();  // it had not begun
  }
  SECTION("the log") {
    cause = WaitCause::kLog;
    engine.epochs().SetWritesWait(true);
    wire.Send(request);
    Hold();
    engine.epochs().SetWritesWait(false);
  }
  SECTION("a pause") {
    cause = WaitCause::kPause;
    rig.server().pause().Pause(ClientPause::Mode::kWrite, INT64_MAX);
    wire.Send(request);
    Hold();
    rig.server().pause().Unpause();
  }
  SECTION("durability") {
    cause = WaitCause::kDurability;
    engine.always_fsync = true;
    wire.Send(request);
    REQUIRE(Eventually([&] { return disk.sync_requests.load() > 0; }));
    Hold();
    const uint64_t closed = engine.epochs().Close();
    engine.epochs().Release(closed);
    engine.epochs().SetDurable(closed);
    rig.server().OnDurable();
  }
  CHECK(wire.Read(5) == "+OK\r\n");
  const int64_t elapsed_us = (Clock::MonotonicNs() - begin_ns) / 1000;
  engine.always_fsync = false;
  for (int i = 0; i < static_cast<int>(WaitCause::kCount); ++i) {
    const auto other = static_cast<WaitCause>(i);
    CAPTURE(i);
    if (other == cause) CHECK(WaitedUs(rig, other) >= 1000 * kHeldMs / 2);
    if (other != cause && other != WaitCause::kStop) CHECK(WaitedUs(rig, other) < 1000 * kHeldMs / 2);
  }
  if (!command.empty()) {
    const SlowlogEntry entry = Newest(rig, command);
    CHECK(entry.waited_us >= 1000 * kHeldMs / 2);
    CHECK(entry.waited_us + entry.run_us <= elapsed_us);  // no time is in both
  }
  CHECK(rig.Info("hotkv", "hotkv_wait_stripe_usec") == std::to_string(WaitedUs(rig, WaitCause::kStripe)));
  CHECK(rig.Info("hotkv", "hotkv_wait_log_usec") == std::to_string(WaitedUs(rig, WaitCause::kLog)));
  CHECK(rig.Info("hotkv", "hotkv_wait_pause_usec") == std::to_string(WaitedUs(rig, WaitCause::kPause)));
  CHECK(rig.Info("hotkv", "hotkv_wait_durability_usec") ==
        std::to_string(WaitedUs(rig, WaitCause::kDurability)));
  CHECK_FALSE(rig.Info("hotkv", "hotkv_wait_stop_usec").empty());
}

// Who has stopped the world reads the watchers of all stripes without a lock.
TEST_CASE("a client that watches and goes away leaves the watchers alone while the world is stopped",
          "[session]") {
  BACKEND;
  CommandRig rig(With(backend, {}, 2));
  Engine& engine = rig.engine();
  const auto watchers = [&] {
    size_t count = 0;
    for (uint32_t i = 0; i < engine.keyspace().stripe_count(); ++i) {
      const StripeExtra* extra = engine.keyspace().stripe(i).extra.load();
      if (extra != nullptr) count += extra->watchers.size();
    }
    return count;
  };
  auto gone = std::make_unique<Wire>(rig);
  CHECK(gone->Ask("WATCH a b c\r\n", "+OK\r\n") == "+OK\r\n");
  const Wire unwatches(rig);
  CHECK(unwatches.Ask("WATCH d\r\n", "+OK\r\n") == "+OK\r\n");
  const Wire resets(rig);
  CHECK(resets.Ask("WATCH e\r\n", "+OK\r\n") == "+OK\r\n");
  engine.gate().Stop(StopGate::kOutsider);
  CHECK(watchers() == 5);
  gone.reset();
  unwatches.Send("UNWATCH\r\n");
  resets.Send("RESET\r\n");
  Hold();
  CHECK(watchers() == 5);
  engine.gate().Resume();
  CHECK(unwatches.Read(5) == "+OK\r\n");
  CHECK(resets.Read(8) == "+RESET\r\n");
  CHECK(Eventually([&] {
    engine.gate().Stop(StopGate::kOutsider);
    const bool none = watchers() == 0;
    engine.gate().Resume();
    return none;
  }));
}

TEST_CASE("a paused client's later commands wait their turn", "[session]") {
  BACKEND;
  CommandRig rig(With(backend));
  CHECK(rig("CLIENT PAUSE 60000 ALL") == "+OK");
  const Wire wire(rig);
  wire.Send("SET a 1\r\nGET a\r\n");
  CHECK(wire.Silent());
  rig.server().pause().Unpause();
  CHECK(wire.Read(12) == "+OK\r\n$1\r\n1\r\n");
}

TEST_CASE("stopping answers what was sent and ends", "[session]") {
  BACKEND;
  CommandRig rig(With(backend, {}, 2));
  const Wire wire(rig);
  CHECK(wire.Ask("SET a 1\r\n", "+OK\r\n") == "+OK\r\n");
  rig.server().RequestShutdown(ShutdownSave::kNoSave);
  CHECK(rig.server().shutting_down());
  CHECK(rig.server().Stop());
  CHECK(wire.ReadToEnd() == "<closed>");
}

}  // namespace
}  // namespace hotkv
