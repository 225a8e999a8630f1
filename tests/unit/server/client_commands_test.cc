#include "server/commands/client_pause.h"
#include "tests/unit/server/command_rig.h"

namespace hotkv {

namespace {

// Field of a line of CLIENT LIST or CLIENT INFO.
std::string Field(const std::string& line, const std::string& name) {
  const size_t at = (" " + line).find(" " + name + "=");
  if (at == std::string::npos) return "none";
  const size_t begin = at + name.size() + 1;
  return line.substr(begin, line.find_first_of(" \n", begin) - begin);
}

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("CLIENT: name, number, library") {
  CommandRig rig;
  CHECK(rig("CLIENT ID") == ":1");
  CHECK(rig.As(1, "CLIENT ID") == ":2");
  CHECK(rig("CLIENT GETNAME") == "nil");
  CHECK(rig("CLIENT SETNAME me") == "+OK");
  CHECK(rig("CLIENT GETNAME") == "$me");
  CHECK(rig.Call(0, {"CLIENT", "SETNAME", "a\nb"}) ==
        "-ERR Client names cannot contain spaces, newlines or special characters.");
  CHECK(rig("CLIENT GETNAME") == "$me");
  CHECK(rig("CLIENT SETNAME \"\"") == "+OK");
  CHECK(rig("CLIENT GETNAME") == "nil");
  CHECK(rig("CLIENT SETINFO LIB-NAME demo") == "+OK");
  CHECK(rig("CLIENT SETINFO lib-ver 1.0") == "+OK");
  const std::string info = rig.Tree("CLIENT INFO").text;
  CHECK(Field(info, "lib-name") == "demo");
  CHECK(Field(info, "lib-ver") == "1.0");
  CHECK(rig("CLIENT SETINFO FOO x") == "-ERR Unrecognized option 'FOO'");
  CHECK(rig.Call(0, {"CLIENT", "SETINFO", "lib-name", "a b"}) ==
        "-ERR lib-name cannot contain spaces, newlines or special characters.");
  CHECK(rig("CLIENT CAPA redirect") == "+OK");
}

TEST_CASE("CLIENT LIST: one line a connection, filters") {
  CommandRig rig({.workers = 2});
  rig("CLIENT SETNAME one");
  rig.As(1, "SELECT 5");
  rig.As(2, "PING");
  const std::string all = rig.Tree("CLIENT LIST").text;
  REQUIRE(Lines(all) == 3);
  CHECK(all.starts_with("id=1 "));
  CHECK(Field(all, "name") == "one");
  CHECK(Field(all, "cmd") == "client|list");
  const std::string second = rig.Tree("CLIENT LIST ID 2").text;
  REQUIRE(Lines(second) == 1);
  CHECK(Field(second, "db") == "5");
  CHECK(Field(second, "cmd") == "select");
  CHECK(Lines(rig.Tree("CLIENT LIST ID 3 1 99").text) == 2);
  CHECK(Lines(rig.Tree("CLIENT LIST TYPE normal").text) == 3);
  CHECK(rig.Tree("CLIENT LIST TYPE pubsub").text.empty());
  CHECK(rig("CLIENT LIST TYPE foo") == "-ERR Unknown client type 'foo'");
  CHECK(rig("CLIENT LIST ID x") == "-ERR Invalid client ID");
  CHECK(rig("CLIENT LIST ID") == "-ERR syntax error");
  CHECK(rig("CLIENT LIST FOO bar") == "-ERR syntax error");
}

TEST_CASE("CLIENT LIST: the fields that clients read, in Redis's order") {
  CommandRig rig;
  const std::string line = rig.Tree("CLIENT LIST").text;
  size_t last = 0;
  for (const char* name :
       {"id",    "addr",      "laddr",    "fd",        "name",       "age",         "idle",
        "flags", "db",        "sub",      "psub",      "ssub",       "multi",       "watch",
        "qbuf",  "qbuf-free", "argv-mem", "multi-mem", "rbs",        "rbp",         "obl",
        "oll",   "omem",      "tot-mem",  "events",    "cmd",        "user",        "redir",
        "resp",  "lib-name",  "lib-ver",  "io-thread", "tot-net-in", "tot-net-out", "tot-cmds"}) {
    INFO(name);
    const size_t at = (" " + line).find(std::string(" ") + name + "=");
    REQUIRE(at != std::string::npos);
    CHECK(at >= last);
    last = at;
  }
}

TEST_CASE("CLIENT KILL: each filter ends those that fit, and no others") {
  CommandRig rig({.workers = 2});
  rig("PING");
  const auto alive = [&](size_t i) { return rig.As(i, "PING") == "+PONG"; };
  for (size_t i = 1; i <= 6; ++i) REQUIRE(alive(i));
  CHECK(rig("CLIENT KILL ID 2") == ":1");
  CHECK_FALSE(alive(1));
  CHECK(alive(2));
  CHECK(rig("CLIENT KILL ID 2") == ":0");

  const std::string addr = Field(rig.Tree("CLIENT LIST ID 3").text, "addr");
  CHECK(rig("CLIENT KILL " + addr) == "+OK");
  CHECK_FALSE(alive(2));
  CHECK(rig("CLIENT KILL 1.2.3.4:5") == "-ERR No such client");
  const std::string addr4 = Field(rig.Tree("CLIENT LIST ID 4").text, "addr");
  CHECK(rig("CLIENT KILL ADDR " + addr4 + " ID 5") == ":0");
  CHECK(rig("CLIENT KILL ADDR " + addr4 + " ID 4") == ":1");
  CHECK_FALSE(alive(3));
  CHECK(rig("CLIENT KILL TYPE pubsub") == ":0");
  CHECK(rig("CLIENT KILL MAXAGE 100") == ":0");
  CHECK(rig("CLIENT KILL LADDR 1.2.3.4:5") == ":0");
  CHECK(rig("CLIENT KILL TYPE normal USER default") == ":3");  // not the caller
  CHECK_FALSE(alive(4));
  CHECK_FALSE(alive(6));
  CHECK(rig("PING") == "+PONG");
  CHECK(rig("CLIENT KILL ID 1 SKIPME no") == ":1");
  CHECK(rig("PING") == "closed");
}

TEST_CASE("CLIENT KILL: errors") {
  CommandRig rig;
  CHECK(rig("CLIENT KILL ID 0") == "-ERR client-id should be greater than 0");
  CHECK(rig("CLIENT KILL ID x") == "-ERR client-id should be greater than 0");
  CHECK(rig("CLIENT KILL MAXAGE 0") == "-ERR maxage should be greater than 0");
  CHECK(rig("CLIENT KILL MAXAGE x") == "-ERR maxage is not an integer or out of range");
  CHECK(rig("CLIENT KILL TYPE foo") == "-ERR Unknown client type 'foo'");
  CHECK(rig("CLIENT KILL USER nobody") == "-ERR No such user 'nobody'");
  CHECK(rig("CLIENT KILL SKIPME maybe") == "-ERR syntax error");
  CHECK(rig("CLIENT KILL ID 1 ADDR") == "-ERR syntax error");
  CHECK(rig("PING") == "+PONG");
}

TEST_CASE("CLIENT REPLY: off, skip, on") {
  CommandRig rig;
  RespClient& client = rig.client(0);
  client.Append({"CLIENT", "REPLY", "OFF"});
  client.Append({"SET", "k", "v"});
  client.Append({"NOSUCH"});
  client.Append({"CLIENT", "REPLY", "ON"});
  client.Append({"CLIENT", "REPLY", "SKIP"});
  client.Append({"PING"});
  client.Append({"GET", "k"});
  REQUIRE(client.Flush().ok());
  const Result<RespValue> on = client.Read();
  const Result<RespValue> get = client.Read();
  REQUIRE((on.ok() && get.ok()));
  CHECK(on->text == "OK");
  CHECK(get->text == "v");
  CHECK(rig("CLIENT REPLY FOO") == "-ERR syntax error");
}

TEST_CASE("CLIENT NO-EVICT and NO-TOUCH show in the flags") {
  CommandRig rig;
  CHECK(rig("CLIENT NO-EVICT ON") == "+OK");
  CHECK(rig("CLIENT NO-TOUCH ON") == "+OK");
  CHECK(Field(rig.Tree("CLIENT INFO").text, "flags") == "eT");
  CHECK(rig("CLIENT NO-EVICT OFF") == "+OK");
  CHECK(Field(rig.Tree("CLIENT INFO").text, "flags") == "T");
  CHECK(rig("CLIENT NO-TOUCH foo") == "-ERR syntax error");
}

TEST_CASE("CLIENT NO-TOUCH: the connection's commands leave access clocks alone, except TOUCH") {
  CommandRig rig;
  rig("SET k v");
  Keyspace& keyspace = rig.engine().keyspace();
  const KeyRef key = keyspace.MakeRef("k");
  Stripe& stripe = keyspace.stripe(key.stripe);
  const auto make_old = [&] {
    const SpinLockGuard guard(stripe.lock);
    Entry* entry = *keyspace.Find(stripe, 0, key);
    entry->set_access_clock(static_cast<uint8_t>(entry->access_clock() - 100));
  };
  make_old();
  CHECK(rig("CLIENT NO-TOUCH ON") == "+OK");
  CHECK(rig("GET k") == "$v");
  CHECK(rig.Tree("OBJECT IDLETIME k").integer > 700);
  CHECK(rig("TOUCH k") == ":1");
  CHECK(rig.Tree("OBJECT IDLETIME k").integer < 20);
  make_old();
  CHECK(rig.As(1, "GET k") == "$v");  // another connection does touch
  CHECK(rig.Tree("OBJECT IDLETIME k").integer < 20);
  make_old();
  CHECK(rig("CLIENT NO-TOUCH OFF") == "+OK");
  CHECK(rig("GET k") == "$v");
  CHECK(rig.Tree("OBJECT IDLETIME k").integer < 20);
}

TEST_CASE("CLIENT PAUSE WRITE: writes wait, reads do not, UNPAUSE lets them go") {
  CommandRig rig({.workers = 2});
  rig.As(1, "PING");
  rig("CONFIG SET slowlog-log-slower-than 0");
  CHECK(rig("CLIENT PAUSE 100000 WRITE") == "+OK");
  RespClient& writer = rig.client(1);
  writer.Append({"SET", "k", "v"});
  REQUIRE(writer.Flush().ok());
  CHECK(rig("GET k") == "nil");
  CHECK(rig("CLIENT PAUSE 1 WRITE") == "+OK");  // never shortens
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(rig("GET k") == "nil");
  CHECK(rig("CLIENT UNPAUSE") == "+OK");
  const Result<RespValue> reply = writer.Read();
  REQUIRE(reply.ok());
  CHECK(reply->text == "OK");
  CHECK(rig("GET k") == "$v");
  // The slow log tells waiting from running.
  rig("CONFIG SET slowlog-log-slower-than -1");
  for (const RespValue& entry : rig.Tree("SLOWLOG GET -1 WITHWAITS").items) {
    const bool waited = entry.items[3].items[0].text == "SET";
    CHECK((entry.items[6].integer >= 10'000) == waited);
    CHECK(entry.items[2].integer < entry.items[6].integer + 1'000'000);
  }
}

TEST_CASE("CLIENT PAUSE: everything waits until the time is over") {
  CommandRig rig;
  CHECK(rig("CLIENT PAUSE 60 ALL") == "+OK");
  const auto begin = std::chrono::steady_clock::now();
  CHECK(rig("PING") == "+PONG");
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(40));
  CHECK(rig("CLIENT PAUSE x") == "-ERR timeout is not an integer or out of range");
  CHECK(rig("CLIENT PAUSE -1") == "-ERR timeout is negative");
  CHECK(rig("CLIENT PAUSE 1 FOO") == "-ERR CLIENT PAUSE mode must be WRITE or ALL");
}

TEST_CASE("ClientPause: EXEC waits when its queue writes, MULTI's queueing does not") {
  static constexpr CommandSpec kSet{.name = "set", .flags = command_flag::kWrite};
  static constexpr CommandSpec kGet{.name = "get", .flags = command_flag::kReadOnly};
  static constexpr CommandSpec kExec{.name = "exec"};
  ClientPause pause;
  ClientState client;
  CHECK_FALSE(pause.Holds(kSet, client, 0));
  pause.Pause(ClientPause::Mode::kWrite, 100);
  CHECK(pause.Holds(kSet, client, 99));
  CHECK_FALSE(pause.Holds(kGet, client, 99));
  client.in_multi = true;
  CHECK_FALSE(pause.Holds(kSet, client, 99));
  client.queue.emplace_back().spec = &kGet;
  CHECK_FALSE(pause.Holds(kExec, client, 99));
  client.queue.emplace_back().spec = &kSet;
  CHECK(pause.Holds(kExec, client, 99));
  pause.Pause(ClientPause::Mode::kAll, 50);
  CHECK(pause.Holds(kGet, client, 99));
  CHECK_FALSE(pause.Holds(kSet, client, 100));
  CHECK_FALSE(pause.active());
}

TEST_CASE("CLIENT UNBLOCK ends a wait by its timeout's answer or by an error") {
  CommandRig rig({.workers = 2});
  rig("PING");
  rig.As(1, "PING");
  CHECK(rig("CLIENT UNBLOCK 2") == ":0");
  for (const bool with_error : {false, true}) {
    RespClient& waiter = rig.client(1);
    waiter.Append({"WAIT", "1", "0"});
    REQUIRE(waiter.Flush().ok());
    REQUIRE(Eventually([&] { return rig.Info("clients", "blocked_clients") == "1"; }));
    CHECK(Field(rig.Tree("CLIENT LIST ID 2").text, "flags") == "b");
    CHECK(rig(with_error ? "CLIENT UNBLOCK 2 ERROR" : "CLIENT UNBLOCK 2") == ":1");
    const Result<RespValue> reply = waiter.Read();
    REQUIRE(reply.ok());
    CHECK(fixture_internal::Render(*reply, " ") ==
          (with_error ? "-UNBLOCKED client unblocked via CLIENT UNBLOCK" : ":0"));
  }
  CHECK(rig("CLIENT UNBLOCK x") == "-ERR value is not an integer or out of range");
  CHECK(rig("CLIENT UNBLOCK 2 FOO") == "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
}

}  // namespace hotkv
