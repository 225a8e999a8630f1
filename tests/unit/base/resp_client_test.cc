#include "engine/base/resp_client.h"

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <string>
#include <thread>

#include "engine/base/random.h"

namespace hotkv {
namespace {

// An encoder of its own, so that the parser is compared with something that it does not share code with.
std::string Encode(const RespValue& value) {
  const auto with_length = [](char kind, const std::string& text) {
    return kind + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  };
  std::string out;
  switch (value.type) {
    case RespType::kNull: return "_\r\n";
    case RespType::kSimple: return "+" + value.text + "\r\n";
    case RespType::kError: return "-" + value.text + "\r\n";
    case RespType::kInteger: return ":" + std::to_string(value.integer) + "\r\n";
    case RespType::kBulk: return with_length('$', value.text);
    case RespType::kVerbatim: return with_length('=', "txt:" + value.text);
    case RespType::kBoolean: return value.integer != 0 ? "#t\r\n" : "#f\r\n";
    case RespType::kBigNumber: return "(" + value.text + "\r\n";
    case RespType::kDouble: return "," + value.text + "\r\n";
    case RespType::kArray: out = "*"; break;
    case RespType::kSet: out = "~"; break;
    case RespType::kPush: out = ">"; break;
    case RespType::kMap: out = "%"; break;
  }
  const size_t items = value.items.size();
  out += std::to_string(value.type == RespType::kMap ? items / 2 : items) + "\r\n";
  for (const RespValue& item : value.items) out += Encode(item);
  return out;
}

bool Same(const RespValue& a, const RespValue& b) {
  if (a.type != b.type || a.integer != b.integer || a.text != b.text || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!Same(a.items[i], b.items[i])) return false;
  }
  return true;
}

std::string RandomText(Random* random, bool binary) {
  std::string text(random->Below(20), '\0');
  for (char& c : text) c = binary ? static_cast<char>(random->Below(256)) : static_cast<char>('a' + random->Below(26));
  return text;
}

RespValue RandomValue(Random* random, int depth) {
  constexpr auto kKinds = static_cast<uint64_t>(RespType::kVerbatim) + 1;
  RespValue value;
  do {
    value.type = static_cast<RespType>(random->Below(kKinds));
  } while (depth == 0 && value.is_aggregate());
  if (value.is_aggregate()) {
    size_t count = random->Below(5);
    if (value.type == RespType::kMap) count *= 2;
    for (size_t i = 0; i < count; ++i) value.items.push_back(RandomValue(random, depth - 1));
    return value;
  }
  switch (value.type) {
    case RespType::kInteger: value.integer = static_cast<int64_t>(random->Next()); break;
    case RespType::kBoolean: value.integer = static_cast<int64_t>(random->Below(2)); break;
    case RespType::kDouble: value.text = std::to_string(random->Uniform()); break;
    case RespType::kBigNumber: value.text = "123456789012345678901234567890"; break;
    case RespType::kNull: break;
    default: value.text = RandomText(random, value.type == RespType::kBulk || value.type == RespType::kVerbatim);
  }
  return value;
}

TEST_CASE("resp client: replies come out as they went in, however the bytes are cut") {
  Random random(21);
  for (int round = 0; round < 300; ++round) {
    std::vector<RespValue> sent;
    std::string bytes;
    for (size_t i = random.Below(6) + 1; i > 0; --i) {
      sent.push_back(RandomValue(&random, 4));
      bytes += Encode(sent.back());
    }
    RespReplyParser parser;
    std::vector<RespValue> got;
    for (size_t at = 0; at < bytes.size();) {
      const size_t part = random.Below(std::min<size_t>(bytes.size() - at, 9)) + 1;
      parser.Feed(std::string_view(bytes).substr(at, part));
      at += part;
      for (;;) {
        auto next = parser.Next();
        REQUIRE(next.ok());
        if (!next->has_value()) break;
        got.push_back(**next);
      }
    }
    REQUIRE(got.size() == sent.size());
    for (size_t i = 0; i < sent.size(); ++i) {
      CAPTURE(sent[i].ToString(), got[i].ToString());
      REQUIRE(Same(sent[i], got[i]));
    }
  }
}

RespValue ParseWhole(std::string_view bytes) {
  RespReplyParser parser;
  parser.Feed(bytes);
  auto next = parser.Next();
  REQUIRE(next.ok());
  REQUIRE(next->has_value());
  return **next;
}

TEST_CASE("resp client: nulls, attributes and special doubles") {
  CHECK(ParseWhole("$-1\r\n").is_null());
  CHECK(ParseWhole("*-1\r\n").is_null());
  CHECK(ParseWhole("_\r\n").is_null());
  CHECK(ParseWhole("|1\r\n+ttl\r\n:5\r\n+OK\r\n").text == "OK");
  const RespValue inside = ParseWhole("*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:7\r\n:8\r\n");
  REQUIRE(inside.items.size() == 2);
  CHECK(inside.items[0].integer == 7);
  CHECK(ParseWhole("|0\r\n:3\r\n").integer == 3);
  CHECK(std::isinf(ParseWhole(",inf\r\n").number));
  CHECK(ParseWhole(",-inf\r\n").number < 0);
  CHECK(std::isnan(ParseWhole(",nan\r\n").number));
  CHECK(ParseWhole(",1.5\r\n").number == 1.5);
  CHECK(ParseWhole("=8\r\ntxt:abcd\r\n").text == "abcd");
  CHECK(ParseWhole("!5\r\nERR x\r\n").is_error());
}

TEST_CASE("resp client: what is not RESP is refused, within bounds") {
  RespLimits limits;
  limits.bulk_bytes = 100;
  limits.line_bytes = 50;
  limits.items = 10;
  limits.depth = 4;
  for (const std::string bytes :
       {"hello\r\n", "$abc\r\n", "$-2\r\n", "$101\r\n", "*11\r\n", "*-3\r\n", "%6\r\n", ":1x\r\n", "#x\r\n",
        ",1.5.2\r\n", "$3\r\nabcde", "=3\r\nabc\r\n", "+a\rb\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        "$99999999999999999999\r\n", "\r\n"}) {
    RespReplyParser parser(limits);
    parser.Feed(bytes);
    auto next = parser.Next();
    CAPTURE(bytes);
    REQUIRE_FALSE(next.ok());
    CHECK(next.status().code() == Code::kCorruption);
    parser.Feed("+OK\r\n");
    CHECK_FALSE(parser.Next().ok());
  }
  RespReplyParser parser(limits);
  parser.Feed("+" + std::string(60, 'a'));
  CHECK_FALSE(parser.Next().ok());
}

TEST_CASE("resp client: random bytes never crash the parser") {
  Random random(99);
  const std::string alphabet = "+-:$*%~>|_#,(=!0123456789\r\nabc";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random.Below(40), '\0');
    for (char& c : bytes) c = alphabet[random.Below(alphabet.size())];
    RespReplyParser parser;
    parser.Feed(bytes);
    for (int i = 0; i < 40; ++i) {
      auto next = parser.Next();
      if (!next.ok() || !next->has_value()) break;
    }
  }
}

TEST_CASE("resp client: addresses") {
  const auto parse = [](std::string_view url) {
    auto address = RespAddress::Parse(url);
    CAPTURE(url);
    REQUIRE(address.ok());
    return *address;
  };
  CHECK(parse("redis://127.0.0.1:7000").port == 7000);
  CHECK(parse("localhost").host == "localhost");
  CHECK(parse("localhost").port == 6379);
  CHECK(parse("example.org:1234").port == 1234);
  CHECK(parse(":1234").port == 1234);
  CHECK(parse("redis://h/5").database == 5);
  CHECK(parse("redis://[::1]:7001/2").host == "::1");
  CHECK(parse("redis://[::1]:7001/2").port == 7001);
  const RespAddress login = parse("redis://ann:p%40ss:w@host:1/3");
  CHECK(login.user == "ann");
  CHECK(login.password == "p@ss:w");
  CHECK(login.host == "host");
  CHECK(login.ToString() == "redis://host:1/3");
  CHECK(parse("redis://:secret@h").password == "secret");
  CHECK(parse("redis://:secret@h").user.empty());
  CHECK(parse("unix:///run/h.sock").socket_path == "/run/h.sock");
  CHECK(parse("unix:///run/h.sock?db=4").database == 4);
  CHECK(parse("/run/h.sock").socket_path == "/run/h.sock");
  for (const char* bad : {"http://x", "redis://h:0", "redis://h:99999", "redis://h:a", "redis://h/x", "redis://[::1",
                          "unix://", "redis://h/-1"}) {
    CAPTURE(bad);
    CHECK_FALSE(RespAddress::Parse(bad).ok());
  }
}

// Echoes each PING as a reply of the asked-for size; reads everything before it answers only if `greedy` is off.
class FakeServer {
 public:
  explicit FakeServer(std::string answer, size_t answers) : answer_(std::move(answer)), answers_(answers) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0);
    socklen_t length = sizeof(name);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &length) == 0);
    port_ = ntohs(name.sin_port);
    REQUIRE(::listen(listener_, 1) == 0);
    thread_ = std::thread([this] { Serve(); });
  }
  ~FakeServer() {
    thread_.join();
    ::close(listener_);
  }
  RespAddress address() const {
    RespAddress address;
    address.port = port_;
    return address;
  }

 private:
  void Serve() const {
    const int fd = ::accept(listener_, nullptr, nullptr);
    for (size_t i = 0; i < answers_; ++i) {
      size_t sent = 0;
      while (sent < answer_.size()) {
        const ssize_t wrote = ::send(fd, answer_.data() + sent, answer_.size() - sent, MSG_NOSIGNAL);
        if (wrote <= 0) break;
        sent += static_cast<size_t>(wrote);
      }
    }
    char sink[65536];
    while (::recv(fd, sink, sizeof(sink), 0) > 0) {
    }
    ::close(fd);
  }

  std::string answer_;
  size_t answers_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST_CASE("resp client: a long pipeline against a server that answers before it reads does not lock up") {
  const std::string big(1 << 20, 'x');
  FakeServer server("$" + std::to_string(big.size()) + "\r\n" + big + "\r\n", 16);
  auto client = RespClient::Connect(server.address());
  REQUIRE(client.ok());
  for (int i = 0; i < 16; ++i) (*client)->Append({"SET", "k", big});
  REQUIRE((*client)->Flush().ok());
  for (int i = 0; i < 16; ++i) {
    auto reply = (*client)->Read();
    REQUIRE(reply.ok());
    REQUIRE(reply->text == big);
  }
}

TEST_CASE("resp client: pushes are kept apart from replies") {
  FakeServer server(">2\r\n+invalidate\r\n+k\r\n+OK\r\n", 2);
  auto client = RespClient::Connect(server.address());
  REQUIRE(client.ok());
  REQUIRE((*client)->Call({"PING"})->text == "OK");
  REQUIRE((*client)->Call({"PING"})->text == "OK");
  REQUIRE((*client)->TakePushes().size() == 2);
  REQUIRE((*client)->TakePushes().empty());
}

TEST_CASE("resp client: a silent server, a closed one, and none at all are errors") {
  RespClientOptions options;
  options.reply_timeout_ms = 50;
  {
    FakeServer server("", 1);
    auto client = RespClient::Connect(server.address(), options);
    REQUIRE(client.ok());
    auto reply = (*client)->Call({"PING"});
    REQUIRE_FALSE(reply.ok());
    CHECK(reply.status().code() == Code::kBusy);
  }
  RespAddress nobody;
  nobody.socket_path = "/nonexistent/socket";
  CHECK_FALSE(RespClient::Connect(nobody).ok());
}

TEST_CASE("resp client: an error reply is a value to Call and a Status to CallOk") {
  FakeServer server("-WRONGTYPE bad\r\n", 2);
  auto client = RespClient::Connect(server.address());
  REQUIRE(client.ok());
  auto reply = (*client)->Call({"GET", "x"});
  REQUIRE(reply.ok());
  CHECK(reply->is_error());
  auto strict = (*client)->CallOk({"GET", "x"});
  REQUIRE_FALSE(strict.ok());
  CHECK(strict.status().message() == "WRONGTYPE bad");
}

}  // namespace
}  // namespace hotkv
