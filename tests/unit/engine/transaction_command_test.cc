// MULTI, EXEC, DISCARD, WATCH, UNWATCH.
#include <catch2/catch.hpp>

#include "tests/support/engine_fixture.h"

namespace hotkv {
namespace {

const std::string kAborted = "-EXECABORT Transaction discarded because of previous errors.";

TEST_CASE("MULTI queues, EXEC runs all, DISCARD drops all") {
  EngineFixture db;
  CHECK(db("EXEC") == "-ERR EXEC without MULTI");
  CHECK(db("DISCARD") == "-ERR DISCARD without MULTI");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("MULTI") == "-ERR MULTI calls can not be nested");
  CHECK(db("SET a 1") == "+QUEUED");
  CHECK(db.As(1, "GET a") == "nil");
  CHECK(db("INCR a") == "+QUEUED");
  CHECK(db("GET a") == "+QUEUED");
  CHECK(db("EXEC") == "[+OK, :2, $2]");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("EXEC") == "[]");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("SET a 9") == "+QUEUED");
  CHECK(db("DISCARD") == "+OK");
  CHECK(db("GET a") == "$2");
  CHECK(db("EXEC") == "-ERR EXEC without MULTI");
}

TEST_CASE("a command that could not be queued stops the transaction (UR-17)") {
  EngineFixture db;
  CHECK(db("MULTI") == "+OK");
  CHECK(db("NOSUCHCMD") == "-ERR unknown command 'NOSUCHCMD', with args beginning with: ");
  CHECK(db("SET leaked 1") == "+QUEUED");
  CHECK(db("EXEC") == kAborted);
  CHECK(db("EXISTS leaked") == ":0");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("GET") == "-ERR wrong number of arguments for 'get' command");
  CHECK(db("SET leaked 1") == "+QUEUED");
  CHECK(db("EXEC") == kAborted);
  CHECK(db("EXISTS leaked") == ":0");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("OBJECT foo") == "-ERR unknown subcommand 'foo'. Try OBJECT HELP.");
  CHECK(db("EXEC") == kAborted);
  // A fault before does not stick.
  CHECK(db("MULTI") == "+OK");
  CHECK(db("SET ok 1") == "+QUEUED");
  CHECK(db("EXEC") == "[+OK]");
}

TEST_CASE("a command that fails when run does not stop the others (UR-17)") {
  EngineFixture db;
  CHECK(db("SET s v") == "+OK");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("INCR s") == "+QUEUED");
  CHECK(db("SET ok 1") == "+QUEUED");
  CHECK(db("EXEC") == "[-ERR value is not an integer or out of range, +OK]");
  CHECK(db("GET ok") == "$1");
}

TEST_CASE("commands on the whole keyspace in a transaction") {
  EngineFixture db;
  CHECK(db("MSET a 1 b 2") == "+OK");
  CHECK(db("MULTI") == "+OK");
  for (const char* line : {"DBSIZE", "KEYS *", "SCAN 0 MATCH c", "RANDOMKEY", "FLUSHALL", "DBSIZE",
                           "SET c 1", "SWAPDB 0 1", "RANDOMKEY", "MULTI x"}) {
    if (std::string_view(line) == "MULTI x") continue;
    CHECK(db(line) == "+QUEUED");
  }
  const std::string reply = db("EXEC");
  CHECK(reply.substr(0, 6) == "[:2, [");
  CHECK(reply.find("+OK, :0, +OK, +OK, nil]") != std::string::npos);
}

TEST_CASE("WATCH: EXEC does nothing when a watched key was changed") {
  for (const char* change :
       {"SET x new", "SET x foo", "DEL x", "APPEND x a", "EXPIRE x 100", "PERSIST x", "RENAME x y",
        "RENAME y x", "SETRANGE x 0 z", "MOVE x 3", "FLUSHDB", "FLUSHALL", "SWAPDB 0 3", "GETDEL x",
        "GETEX x EX 5", "COPY y x REPLACE", "MSET q 1 x 2", "EXPIRE x -1"}) {
    EngineFixture db;
    INFO(change);
    CHECK(db("SET x foo EX 1000") == "+OK");
    CHECK(db("SET y bar") == "+OK");
    CHECK(db("WATCH x") == "+OK");
    const std::string reply = db.As(1, change);
    CHECK(reply[0] != '-');
    CHECK(db("MULTI") == "+OK");
    CHECK(db("SET leaked 1") == "+QUEUED");
    CHECK(db("EXEC") == "nil");
    CHECK(db("EXISTS leaked") == ":0");
    // The watch is gone with the EXEC.
    CHECK(db("MULTI") == "+OK");
    CHECK(db("SET ok 1") == "+QUEUED");
    CHECK(db("EXEC") == "[+OK]");
  }
}

TEST_CASE("WATCH: EXEC runs when nothing of the watched keys changed") {
  for (const char* other : {"SET z new", "GET x", "SET x v NX", "DEL none", "EXPIRE x 5 NX",
                            "SETRANGE x 5 \"\"", "TOUCH x", "COPY x z", "DELEX x IFEQ no",
                            "SWAPDB 4 5", "TTL x", "MSETNX x 1 q 1", "INCR x"}) {
    EngineFixture db;
    INFO(other);
    CHECK(db("SET x foo EX 1000") == "+OK");
    CHECK(db("WATCH x missing") == "+OK");
    db.As(1, other);
    CHECK(db("MULTI") == "+OK");
    CHECK(db("SET ok 1") == "+QUEUED");
    CHECK(db("EXEC") == "[+OK]");
  }
}

TEST_CASE("WATCH knows databases, UNWATCH, DISCARD") {
  EngineFixture db;
  db.client(1).db = 1;
  CHECK(db("WATCH x") == "+OK");
  CHECK(db.As(1, "SET x 1") == "+OK");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("WATCH y") == "-ERR WATCH inside MULTI is not allowed");
  CHECK(db("UNWATCH") == "+QUEUED");
  CHECK(db("EXEC") == "[+OK]");
  db.client(1).db = 0;
  CHECK(db("WATCH x") == "+OK");
  CHECK(db.As(1, "SET x 1") == "+OK");
  CHECK(db("UNWATCH") == "+OK");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("EXEC") == "[]");
  CHECK(db("WATCH x") == "+OK");
  CHECK(db.As(1, "SET x 2") == "+OK");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("DISCARD") == "+OK");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("EXEC") == "[]");
  // The client's own change counts too.
  CHECK(db("WATCH x") == "+OK");
  CHECK(db("SET x 3") == "+OK");
  CHECK(db("MULTI") == "+OK");
  CHECK(db("EXEC") == "nil");
  // In RESP3 too the answer is a null.
  CHECK(db.raw() == "*-1\r\n");
}

TEST_CASE("a watched key that expires breaks the watch, whoever purges it (UR-11)") {
  for (const char* purge : {"", "GET x", "DBSIZE", "KEYS *", "expire", "SCAN 0"}) {
    EngineFixture db;
    db.engine().active_expire = false;
    INFO(purge);
    CHECK(db("SET x foo PX 120") == "+OK");
    CHECK(db("WATCH x") == "+OK");
    db.Advance(150);
    if (std::string_view(purge) == "expire") {
      db.engine().active_expire = true;
      db.ExpireNow();
    } else if (*purge != '\0') {
      CHECK(db.As(1, purge)[0] != '-');
    }
    CHECK(db("MULTI") == "+OK");
    CHECK(db("INCR y") == "+QUEUED");
    CHECK(db("EXEC") == "nil");
    CHECK(db("EXISTS y") == ":0");
  }
}

TEST_CASE("a key that had expired before WATCH does not break it (UR-11)") {
  for (const char* purge : {"", "GET x", "expire"}) {
    EngineFixture db;
    db.engine().active_expire = false;
    INFO(purge);
    CHECK(db("SET x foo PX 120") == "+OK");
    db.Advance(150);
    CHECK(db("WATCH x") == "+OK");
    if (std::string_view(purge) == "expire") {
      db.engine().active_expire = true;
      db.ExpireNow();
    } else if (*purge != '\0') {
      CHECK(db.As(1, purge) == "nil");
    }
    CHECK(db("MULTI") == "+OK");
    CHECK(db("INCR y") == "+QUEUED");
    CHECK(db("EXEC") == "[:1]");
  }
}

TEST_CASE("a missing key that was set and expired since WATCH breaks it (UR-11)") {
  EngineFixture db;
  db.engine().active_expire = false;
  CHECK(db("WATCH x") == "+OK");
  CHECK(db.As(1, "SET x v PX 1") == "+OK");
  db.Advance(10);
  CHECK(db("MULTI") == "+OK");
  CHECK(db("INCR y") == "+QUEUED");
  CHECK(db("EXEC") == "nil");
}

// Lets the worker's clock go on in the middle of a transaction, as a long one does.
void Tick(CommandContext& ctx) {
  ctx.worker.now_ms += 10'000;
  ctx.reply.Ok();
}
constexpr CommandSpec kTestCommands[] = {{.name = "tick", .arity = 1, .handler = Tick}};

TEST_CASE("time stands still within a transaction (UR-10)") {
  EngineFixtureOptions options;
  options.more_families = {kTestCommands};
  EngineFixture db(options);
  CHECK(db("SET k v PX 100") == "+OK");
  CHECK(db("MULTI") == "+OK");
  for (const char* line :
       {"EXISTS k", "PTTL k", "TICK", "EXISTS k", "PTTL k", "SET n v EX 10", "PTTL n"}) {
    CHECK(db(line) == "+QUEUED");
  }
  CHECK(db("EXEC") == "[:1, :100, +OK, :1, :100, +OK, :10000]");
  CHECK(db("GET k") == "nil");
  Engine again(db.engine().options(), &db.commands());
  EngineFixture::Replay(db.TakeLog(), &again);
  CHECK(again.Digest() == db.engine().Digest());
}

TEST_CASE("a transaction is one commit in the log") {
  EngineFixture db;
  CHECK(db("MULTI") == "+OK");
  for (const char* line : {"SET a 1", "SET b 2", "INCR a", "RENAME b c"})
    CHECK(db(line) == "+QUEUED");
  CHECK(db("EXEC") == "[+OK, +OK, :2, +OK]");
  const EffectLog log = db.TakeLog();
  REQUIRE(log.effects.size() == 5);
  for (const Effect& effect : log.effects) CHECK(effect.lsn == log.effects[0].lsn);
}

}  // namespace
}  // namespace hotkv
