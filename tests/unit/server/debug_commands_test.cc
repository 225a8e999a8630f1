#include <atomic>
#include <thread>

#include "tests/unit/server/command_rig.h"

namespace hotkv {

namespace {
const std::vector<std::string> kDebugOn = {"--enable-debug-command", "local"};
}  // namespace

TEST_CASE("DEBUG: only where it is allowed") {
  CommandRig off;
  CHECK(off("DEBUG SLEEP 0") ==
        "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", "
        "you can run it from a "
        "local connection, otherwise you need to set this option in the configuration file, and "
        "then restart the "
        "server.");
  CommandRig on({.settings = kDebugOn});
  CHECK(on("DEBUG SLEEP 0") == "+OK");
  CHECK(on("DEBUG NOSUCH") ==
        "-ERR unknown subcommand or wrong number of arguments for 'NOSUCH'. Try DEBUG HELP.");
  CHECK(on("DEBUG SLEEP") ==
        "-ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.");
  CHECK(on("DEBUG ERROR FOO") == "-FOO");
}

TEST_CASE("DEBUG DIGEST: same content, same digest, whatever the order; any change changes it") {
  CommandRig a({.settings = kDebugOn, .workers = 2});
  CommandRig b({.settings = kDebugOn});
  const std::string zeros = "+0000000000000000000000000000000000000000";
  CHECK(a("DEBUG DIGEST") == zeros);
  a("SET x 1");
  a("SET y 2");
  a("SELECT 3");
  a("SET z 3");
  b("SELECT 3");
  b("SET z 3");
  b("SELECT 0");
  b("SET y 2");
  b("SET x 1");
  const std::string digest = a("DEBUG DIGEST");
  CHECK(digest.size() == 41);
  CHECK(digest == b("DEBUG DIGEST"));
  b("SET x 2");
  CHECK(digest != b("DEBUG DIGEST"));
  CHECK(b("MULTI") == "+OK");
  b("SET x 1");
  b("DEBUG DIGEST");
  CHECK(b("EXEC") == "[+OK " + digest + "]");
  CHECK(a("FLUSHALL") == "+OK");
  CHECK(a("DEBUG DIGEST") == zeros);
}

TEST_CASE("DEBUG DIGEST-VALUE: of the value, not of the key") {
  CommandRig rig({.settings = kDebugOn});
  rig("SET a 12");
  rig("SET b 1");
  rig("APPEND b 2");
  rig("SET c 13");
  const RespValue digests = rig.Tree("DEBUG DIGEST-VALUE a b c none");
  REQUIRE(digests.items.size() == 4);
  CHECK(digests.items[0].text == digests.items[1].text);
  CHECK(digests.items[0].text != digests.items[2].text);
  CHECK(digests.items[3].text == std::string(40, '0'));
}

TEST_CASE("DEBUG POPULATE makes keys, and leaves those that are there") {
  CommandRig rig({.settings = kDebugOn});
  rig("SET key:3 mine");
  CHECK(rig("DEBUG POPULATE 1000") == "+OK");
  CHECK(rig("DBSIZE") == ":1000");
  CHECK(rig("GET key:0") == "$value:0");
  CHECK(rig("GET key:999") == "$value:999");
  CHECK(rig("GET key:3") == "$mine");
  CHECK(rig("DEBUG POPULATE 2 p 100") == "+OK");
  CHECK(rig("STRLEN p:1") == ":100");
  CHECK(rig("GETRANGE p:1 0 6") == "$value:1");
  CHECK(rig("DEBUG POPULATE x") == "-ERR value is out of range, must be positive");
  CHECK(rig("DEBUG POPULATE -1") == "-ERR value is out of range, must be positive");
}

TEST_CASE("DEBUG OBJECT and SET-ACTIVE-EXPIRE") {
  CommandRig rig({.settings = kDebugOn});
  rig("SET k v");
  CHECK(Contains(rig("DEBUG OBJECT k"), " refcount:1 encoding:embstr serializedlength:1 "));
  CHECK(rig("DEBUG OBJECT none") == "-ERR no such key");
  CHECK(rig("DEBUG SET-ACTIVE-EXPIRE 0") == "+OK");
  CHECK_FALSE(rig.engine().active_expire.load());
  CHECK(rig("DEBUG SET-ACTIVE-EXPIRE 1") == "+OK");
  CHECK(rig.engine().active_expire.load());
}

TEST_CASE("DEBUG PROTOCOL: each type in both protocols") {
  const std::map<std::string, std::pair<std::string, std::string>> replies = {
      {"string", {"$Hello World", "$Hello World"}},
      {"integer", {":12345", ":12345"}},
      {"double", {"$3.141", ",3.141"}},
      {"bignum",
       {"$1234567999999999999999999999999999999", "1234567999999999999999999999999999999"}},
      {"null", {"nil", "nil"}},
      {"array", {"[:0 :1 :2]", "[:0 :1 :2]"}},
      {"set", {"[:0 :1 :2]", "<:0 :1 :2>"}},
      {"map", {"[:0 :0 :1 :1 :2 :0]", "{:0 #f :1 #t :2 #f}"}},
      {"attrib",
       {"$Some real reply following the attribute", "$Some real reply following the attribute"}},
      {"verbatim", {"$This is a verbatim\nstring", "=This is a verbatim\nstring"}},
      {"true", {":1", "#t"}},
      {"false", {":0", "#f"}},
  };
  CommandRig two({.settings = kDebugOn});
  CommandRig three({.settings = kDebugOn, .protocol = 3});
  for (const auto& [type, reply] : replies) {
    INFO(type);
    CHECK(two("DEBUG PROTOCOL " + type) == reply.first);
    CHECK(three("DEBUG PROTOCOL " + type) == reply.second);
  }
  CHECK(Contains(two("DEBUG PROTOCOL foo"), "-ERR Wrong protocol type name."));
}

TEST_CASE("DEBUG RELOAD: a snapshot, then loading, with all other workers stopped all the time") {
  FakeDisk disk;
  disk.finish_when_helped = SnapshotState::kDone;
  Engine* engine = nullptr;
  disk.on_reload = [&] {
    return engine->keyspace().Size(0) == 1 ? Status::Ok() : Status::Internal("not what was saved");
  };
  CommandRig rig({.settings = kDebugOn, .workers = 2, .disk = &disk});
  engine = &rig.engine();
  rig("SET k v");
  CHECK(rig("DEBUG RELOAD") == "+OK");
  CHECK(disk.reasons() == std::vector<SnapshotReason>{SnapshotReason::kSave});
  CHECK(disk.reloads == 1);
  CHECK(rig.As(1, "GET k") == "$v");
  CHECK(rig("DEBUG RELOAD NOSAVE") == "+OK");  // without a log there is nothing to wait for
  CHECK(disk.reasons().size() == 1);
  CHECK(disk.sync_requests == 0);
  CHECK(disk.reloads == 2);
  CHECK(rig("DEBUG RELOAD FOO") == "-ERR DEBUG RELOAD only supports the NOSAVE option.");
  CHECK(rig("DEBUG LOADAOF") == "-ERR appendonly is disabled");
  CHECK(rig("DEBUG CHANGE-REPL-ID") == "+OK");
  CHECK(rig("MULTI") == "+OK");
  rig("DEBUG RELOAD");
  CHECK(rig("EXEC") == "[-ERR loading again isn't allowed in a transaction]");
  CHECK(disk.reloads == 2);
}

TEST_CASE("DEBUG RELOAD: failures are answered, and nothing is loaded after a failed snapshot") {
  FakeDisk disk;
  disk.finish_when_helped = SnapshotState::kFailed;
  disk.Change([](DurabilityStatus& s) { s.last_snapshot_error = "no space"; });
  disk.on_reload = [] { return Status::Internal("bad section"); };
  CommandRig rig({.settings = kDebugOn, .workers = 2, .disk = &disk});
  CHECK(rig("DEBUG RELOAD") == "-ERR no space");
  CHECK(disk.reloads == 0);
  CHECK(rig("DEBUG RELOAD NOSAVE") ==
        "-ERR Error trying to load the RDB dump, check server logs: bad section");
  CHECK(rig.As(1, "PING") == "+PONG");
}

TEST_CASE("DEBUG RELOAD: while an object is held all workers go on, then it is done again") {
  FakeDisk disk;
  CommandRig rig({.settings = kDebugOn, .workers = 2, .disk = &disk});
  std::atomic<bool> held{true};
  disk.on_reload = [&] {
    return held ? Status(Code::kBusy, "an index is in use just now") : Status::Ok();
  };
  // Somebody who stopped with an object in his hands lets go of it once he can go on.
  std::thread other([&] {
    while (disk.reloads == 0) std::this_thread::yield();
    rig.As(1, "SET k v");
    held = false;
  });
  CHECK(rig("DEBUG RELOAD NOSAVE") == "+OK");
  other.join();
  CHECK(disk.reloads >= 2);
}

TEST_CASE("DEBUG LOADAOF waits until the log has everything") {
  FakeDisk disk;
  disk.Change([](DurabilityStatus& s) { s.log_on = true; });
  Engine* engine = nullptr;
  uint64_t durable_at_reload = 0;
  disk.on_sync = [&] { engine->epochs().SetDurable(engine->epochs().current()); };
  disk.on_reload = [&] {
    durable_at_reload = engine->epochs().durable();
    return Status::Ok();
  };
  CommandRig rig({.settings = kDebugOn, .workers = 2, .disk = &disk});
  engine = &rig.engine();
  rig("SET k v");
  CHECK(rig("DEBUG LOADAOF") == "+OK");
  CHECK(disk.sync_requests == 1);
  CHECK(durable_at_reload == engine->epochs().current());
  CHECK(rig("DEBUG RELOAD NOSAVE") == "+OK");
  CHECK(disk.sync_requests == 2);

  // A disk that does not come back: an answer, and nothing is loaded.
  disk.on_sync = [&] { engine->SetDiskDenied("it is gone"); };
  engine->epochs().SetDurable(0);
  CHECK(rig("DEBUG LOADAOF") == "-MISCONF Errors writing to the AOF file: it is gone");
  CHECK(disk.reloads == 2);
}

}  // namespace hotkv
