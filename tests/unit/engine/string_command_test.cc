// String commands: replies, error texts and edge cases. What redis-server 7.0 has too was compared
// with it; the rest follows the documentation of Redis 8.4 (SET's conditions, DELEX, DIGEST,
// MSETEX), 8.8 (INCREX) and Valkey 9 (DELIFEQ).
#include <catch2/catch.hpp>

#include "tests/support/engine_fixture.h"

namespace hotkv {
namespace {

const std::string kWrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const std::string kSyntax = "-ERR syntax error";
const std::string kNoInteger = "-ERR value is not an integer or out of range";
const std::string kNoFloat = "-ERR value is not a valid float";
const std::string kOverflow = "-ERR increment or decrement would overflow";

std::string BadTime(std::string_view command) {
  return "-ERR invalid expire time in '" + std::string(command) + "' command";
}

// A value that is no string, so that commands meet a wrong type.
class Blob : public Object {
 public:
  explicit Blob(uint64_t id) : Object(id, ValueType::kVectorSet) {}
  uint64_t Digest() const override { return 1; }
  size_t MemoryBytes() const override { return 1; }
};

void MakeBlob(CommandContext& ctx) {
  ctx.txn.LinkNewObject(ctx.db(), ctx.key(), new Blob(ctx.engine.objects().NewId()), "");
  ctx.reply.Ok();
}

constexpr CommandSpec kTestCommands[] = {{.name = "blob",
                                          .arity = 2,
                                          .flags = command_flag::kWrite,
                                          .keys = {1, 1, 1},
                                          .handler = MakeBlob}};

EngineFixtureOptions WithBlobs() {
  EngineFixtureOptions options;
  options.more_families = {kTestCommands};
  return options;
}

TEST_CASE("SET and GET") {
  EngineFixture db;
  CHECK(db("GET k") == "nil");
  CHECK(db("SET k v") == "+OK");
  CHECK(db("GET k") == "$v");
  CHECK(db("SET k \"\"") == "+OK");
  CHECK(db("GET k") == "$");
  CHECK(db("SET k v NX") == "nil");
  CHECK(db("SET n v NX") == "+OK");
  CHECK(db("SET m v XX") == "nil");
  CHECK(db("SET k w XX") == "+OK");
  CHECK(db("SET k x GET") == "$w");
  CHECK(db("SET new x GET") == "nil");
  CHECK(db("GET new") == "$x");
  CHECK(db("SET k y NX GET") == "$x");
  CHECK(db("GET k") == "$x");
  CHECK(db("SET gone y XX GET") == "nil");
  CHECK(db("EXISTS gone") == ":0");
}

TEST_CASE("SET refuses options that exclude each other, accepts one twice") {
  EngineFixture db;
  for (const char* options :
       {"NX XX", "EX 5 PX 5", "EX 5 EXAT 9999999999", "KEEPTTL EX 5", "EX 5 KEEPTTL", "NX IFEQ v",
        "IFEQ v XX", "IFEQ a IFNE b", "FOO", "EX", "IFEQ", "PERSIST", "PXAT"}) {
    INFO(options);
    CHECK(db("SET k v " + std::string(options)) == kSyntax);
  }
  CHECK(db("EXISTS k") == ":0");
  CHECK(db("SET k v EX 5 EX 100") == "+OK");
  CHECK(db("TTL k") == ":100");
  CHECK(db("SET k v XX XX") == "+OK");
  CHECK(db("SET k w get GeT") == "$v");
}

TEST_CASE("SET and the expiry") {
  EngineFixture db;
  CHECK(db("SET k v EX 100") == "+OK");
  CHECK(db("PTTL k") == ":100000");
  CHECK(db("SET k v KEEPTTL") == "+OK");
  CHECK(db("PTTL k") == ":100000");
  CHECK(db("SET k v") == "+OK");
  CHECK(db("PTTL k") == ":-1");
  CHECK(db("SET k v PX 1500") == "+OK");
  CHECK(db("PTTL k") == ":1500");
  CHECK(db("SET k v EXAT 1700000100") == "+OK");
  CHECK(db("TTL k") == ":100");
  CHECK(db("SET k v PXAT 1700000000700") == "+OK");
  CHECK(db("PTTL k") == ":700");
  db.Advance(699);
  CHECK(db("GET k") == "$v");
  db.Advance(1);
  CHECK(db("GET k") == "nil");
  CHECK(db("SET k v KEEPTTL") == "+OK");
  CHECK(db("PTTL k") == ":-1");
}

TEST_CASE("a time to live that overflows is refused and changes nothing (UR-08)") {
  EngineFixture db;
  CHECK(db("SET k old") == "+OK");
  CHECK(db("SET k v PX 9223372036854775807") == BadTime("set"));
  CHECK(db("SET k v EX 9223372036854775807") == BadTime("set"));
  CHECK(db("EXPIRE k 9223372036854775") == BadTime("expire"));
  CHECK(db("PEXPIRE k 9223372036854775807") == BadTime("pexpire"));
  CHECK(db("EXPIREAT k 9223372036854775807") == BadTime("expireat"));
  CHECK(db("EXPIRE k -9223372036854775807") == BadTime("expire"));
  CHECK(db("GETEX k EX 9223372036854775807") == BadTime("getex"));
  CHECK(db("SETEX k 9223372036854775807 v") == BadTime("setex"));
  CHECK(db("PSETEX k 9223372036854775807 v") == BadTime("psetex"));
  CHECK(db("MSETEX 1 k v PX 9223372036854775807") == BadTime("msetex"));
  CHECK(db("INCREX n EX 9223372036854775807") == BadTime("increx"));
  CHECK(db("GET k") == "$old");
  CHECK(db("TTL k") == ":-1");
  CHECK(db.TakeLog().effects.size() == 1);
  // The largest that fits is kept as it is.
  CHECK(db("PEXPIREAT k 9223372036854775807") == ":1");
  CHECK(db("PEXPIRETIME k") == ":9223372036854775807");
  CHECK(db("EXPIRETIME k") == ":9223372036854776");
}

TEST_CASE("an expiry in the past leaves no key (UR-09)") {
  EngineFixture db;
  db.engine().active_expire = false;
  CHECK(db("SET rc v") == "+OK");
  CHECK(db("SET rc w EXAT 1") == "+OK");
  CHECK(db("EXISTS rc") == ":0");
  CHECK(db("DBSIZE") == ":0");
  CHECK(db("SET never w PXAT 1") == "+OK");
  CHECK(db("DBSIZE") == ":0");
  Engine again(db.engine().options(), &db.commands());
  EngineFixture::Replay(db.TakeLog(), &again);
  CHECK(again.keyspace().Size(0) == 0);
  CHECK(db("SET k old") == "+OK");
  CHECK(db("SETEX k -1 v") == BadTime("setex"));
  CHECK(db("SETEX k 0 v") == BadTime("setex"));
  CHECK(db("SET k v EX 0") == BadTime("set"));
  CHECK(db("SET k v PXAT -1") == BadTime("set"));
  CHECK(db("GET k") == "$old");
  CHECK(db("EXPIRE k -1") == ":1");
  CHECK(db("EXISTS k") == ":0");
  CHECK(db("SET k old GET EXAT 1") == "nil");
  CHECK(db("SET k v") == "+OK");
  CHECK(db("GETEX k PXAT 1") == "$v");
  CHECK(db("EXISTS k") == ":0");
  CHECK(db("MSETEX 2 k v l v EXAT 1") == ":1");
  CHECK(db("EXISTS k l") == ":0");
  CHECK(db("INCREX n EXAT 1") == "[:1, :1]");
  CHECK(db("EXISTS n") == ":0");
}

TEST_CASE("SET IFEQ, IFNE, IFDEQ, IFDNE") {
  EngineFixture db(WithBlobs());
  CHECK(db("SET k v IFEQ x") == "nil");
  CHECK(db("EXISTS k") == ":0");
  CHECK(db("SET k hello IFNE x") == "+OK");
  CHECK(db("SET k w IFNE hello") == "nil");
  CHECK(db("SET k w ifeq hello") == "+OK");
  CHECK(db("GET k") == "$w");
  CHECK(db("SET k 12 IFEQ w GET") == "$w");
  CHECK(db("SET k 13 IFEQ w GET") == "$12");
  CHECK(db("INCR k") == ":13");
  CHECK(db("SET k v IFEQ 13 EX 10") == "+OK");
  CHECK(db("TTL k") == ":10");
  const std::string digest = db("DIGEST k").substr(1);
  CHECK(db("SET k a IFDEQ 0000000000000000") == "nil");
  CHECK(db("SET k a IFDEQ " + digest) == "+OK");
  CHECK(db("SET k b IFDNE " + db("DIGEST k").substr(1)) == "nil");
  CHECK(db("SET k b IFDNE " + digest) == "+OK");
  CHECK(db("GET k") == "$b");
  // The digest is looked at only where there is a value to compare.
  const std::string bad = "-ERR must be exactly 16 hexadecimal characters";
  for (const char* text : {"123", "\"\"", "0000000000000000f", "000000000000000g"}) {
    CHECK(db("SET k c IFDEQ " + std::string(text)) == bad);
    CHECK(db("SET k c GET IFDNE " + std::string(text)) == bad);
    CHECK(db("SET none c IFDEQ " + std::string(text)) == "nil");
  }
  CHECK(db("GET k") == "$b");
  CHECK(db("BLOB x") == "+OK");
  for (const char* condition : {"IFEQ", "IFNE", "IFDEQ", "IFDNE"}) {
    CHECK(db("SET x v " + std::string(condition) + " v") == kWrongType);
  }
}

TEST_CASE("DIGEST is XXH3-64 in 16 hexadecimal digits") {
  EngineFixture db(WithBlobs());
  CHECK(db("DIGEST none") == "nil");
  CHECK(db.Call({"SET", "k", "Hello world"}) == "+OK");
  CHECK(db("DIGEST k") == "$b6acb9d84a38ff74");  // the documentation's example
  CHECK(db("SET k 5") == "+OK");
  const std::string of_text = db("DIGEST k");
  CHECK(db("SET k 4") == "+OK");
  CHECK(db("INCR k") == ":5");
  CHECK(db("DIGEST k") == of_text);
  CHECK(db("BLOB x") == "+OK");
  CHECK(db("DIGEST x") == kWrongType);
}

TEST_CASE("DELEX and DELIFEQ") {
  EngineFixture db(WithBlobs());
  CHECK(db("DELEX none") == ":0");
  CHECK(db("DELEX none IFEQ v") == ":0");
  CHECK(db("DELEX none IFNE v") == ":0");
  CHECK(db("DELEX none IFDNE 12") == ":0");
  CHECK(db("DELEX k IFEQ") == "-ERR wrong number of arguments for 'delex' command");
  CHECK(db("DELEX k IFEQ v w") == "-ERR wrong number of arguments for 'delex' command");
  CHECK(db("MSET a v b v c v d v e v") == "+OK");
  CHECK(db("DELEX a") == ":1");
  CHECK(db("DELEX b IFEQ x") == ":0");
  CHECK(db("DELEX b IFEQ v") == ":1");
  CHECK(db("DELEX c IFNE v") == ":0");
  CHECK(db("DELEX c IFNE x") == ":1");
  CHECK(db("DELEX d FOO v") == "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
  CHECK(db("DELEX d IFDEQ 12") == "-ERR must be exactly 16 hexadecimal characters");
  std::string digest = db("DIGEST d").substr(1);
  for (char& c : digest) c = static_cast<char>(std::toupper(c));
  CHECK(db("DELEX d IFDNE " + digest) == ":0");
  CHECK(db("DELEX d IFDEQ " + digest) == ":1");
  CHECK(db("EXISTS a b c d") == ":0");
  CHECK(db("DELIFEQ e x") == ":0");
  CHECK(db("DELIFEQ e v") == ":1");
  CHECK(db("DELIFEQ e v") == ":0");
  CHECK(db("BLOB x") == "+OK");
  CHECK(db("DELIFEQ x v") == kWrongType);
  CHECK(db("DELEX x IFEQ v") == "-ERR Key should be of string type if conditions are specified");
  CHECK(db("DELEX x") == ":1");
}

TEST_CASE("GETDEL, GETSET, GETEX") {
  EngineFixture db(WithBlobs());
  CHECK(db("GETDEL k") == "nil");
  CHECK(db("GETSET k v") == "nil");
  CHECK(db("EXPIRE k 100") == ":1");
  CHECK(db("GETSET k w") == "$v");
  CHECK(db("TTL k") == ":-1");
  CHECK(db("GETEX k EX 100") == "$w");
  CHECK(db("TTL k") == ":100");
  CHECK(db("GETEX k") == "$w");
  CHECK(db("TTL k") == ":100");
  CHECK(db("GETEX k PERSIST") == "$w");
  CHECK(db("TTL k") == ":-1");
  CHECK(db("GETEX k PERSIST EX 5") == kSyntax);
  CHECK(db("GETEX k KEEPTTL") == kSyntax);
  CHECK(db("GETEX k EX 0") == BadTime("getex"));
  CHECK(db("GETEX k EX x") == kNoInteger);
  CHECK(db("GETEX none EX 0") == "nil");  // the time is read only where there is a value
  CHECK(db("GETEX none EX x") == "nil");
  CHECK(db("GETEX none EX") == kSyntax);
  CHECK(db("GETDEL k") == "$w");
  CHECK(db("EXISTS k") == ":0");
  CHECK(db("BLOB x") == "+OK");
  for (const char* line : {"GET x", "GETDEL x", "GETEX x", "GETSET x v", "SET x v GET", "STRLEN x",
                           "GETRANGE x 0 1", "SETRANGE x 0 v", "APPEND x v", "INCR x", "DECRBY x 1",
                           "INCRBYFLOAT x 1", "INCREX x", "INCREX x BYFLOAT 1"}) {
    INFO(line);
    CHECK(db(line) == kWrongType);
  }
  CHECK(db("MGET x none") == "[nil, nil]");
  CHECK(db("SET x v") == "+OK");  // SET without GET takes any type's place
  CHECK(db("GET x") == "$v");
}

TEST_CASE("MSET, MSETNX, MGET") {
  EngineFixture db;
  CHECK(db("MSET a 1 b 2 a 3") == "+OK");
  CHECK(db("MGET a b none") == "[$3, $2, nil]");
  CHECK(db("MSETNX a 1 c 1") == ":0");
  CHECK(db("EXISTS c") == ":0");
  CHECK(db("MSETNX c 1 c 2") == ":1");
  CHECK(db("GET c") == "$2");
  CHECK(db("MSET a 1 b") == "-ERR wrong number of arguments for 'mset' command");
  CHECK(db("MSETNX a 1 b") == "-ERR wrong number of arguments for 'msetnx' command");
  CHECK(db("EXPIRE a 100") == ":1");
  CHECK(db("MSET a 1") == "+OK");
  CHECK(db("TTL a") == ":-1");
}

TEST_CASE("MSETEX") {
  EngineFixture db;
  CHECK(db("MSETEX 2 a 1 b 2 EX 100") == ":1");
  CHECK(db("TTL a") == ":100");
  CHECK(db("MSETEX 1 a 3 KEEPTTL") == ":1");
  CHECK(db("TTL a") == ":100");
  CHECK(db("MSETEX 1 a 4") == ":1");
  CHECK(db("TTL a") == ":-1");
  CHECK(db("MSETEX 2 a 5 c 5 NX PX 1000") == ":0");
  CHECK(db("MSETEX 2 a 5 c 5 XX PX 1000") == ":0");
  CHECK(db("MGET a c") == "[$4, nil]");
  CHECK(db("MSETEX 2 c 5 d 5 px 1000 nx") == ":1");
  CHECK(db("PTTL d") == ":1000");
  CHECK(db("MSETEX 2 c 6 d 6 XX") == ":1");
  CHECK(db("PTTL d") == ":-1");
  CHECK(db("MSETEX key v EX 10") == "-ERR invalid numkeys value");
  CHECK(db("MSETEX 0 key v") == "-ERR invalid numkeys value");
  CHECK(db("MSETEX 2147483648 k v EX 10") == "-ERR invalid numkeys value");
  CHECK(db("MSETEX 2147483647 k v EX 10") == "-ERR wrong number of key-value pairs");
  CHECK(db("MSETEX 2 k v l") == "-ERR wrong number of key-value pairs");
  CHECK(db("MSETEX 1 k v FOO") == kSyntax);
  CHECK(db("MSETEX 1 k v NX XX") == kSyntax);
  CHECK(db("MSETEX 1 k v EX 10 PX 10") == kSyntax);
  CHECK(db("MSETEX 1 k v KEEPTTL EX 10") == kSyntax);
  CHECK(db("MSETEX 1 k v GET") == kSyntax);
  CHECK(db("EXISTS k") == ":0");
}

TEST_CASE("APPEND, STRLEN, SETRANGE, GETRANGE") {
  EngineFixture db;
  CHECK(db("APPEND k abc") == ":3");
  CHECK(db("APPEND k def") == ":6");
  CHECK(db("GET k") == "$abcdef");
  CHECK(db("STRLEN k") == ":6");
  CHECK(db("STRLEN none") == ":0");
  CHECK(db("SETRANGE k 3 XY") == ":6");
  CHECK(db("GET k") == "$abcXYf");
  CHECK(db("SETRANGE k 8 z") == ":9");
  CHECK(db("GET k") == std::string("$abcXYf\0\0z", 10));
  CHECK(db("SETRANGE none 5 \"\"") == ":0");
  CHECK(db("EXISTS none") == ":0");
  CHECK(db("SETRANGE k 100 \"\"") == ":9");
  CHECK(db("SETRANGE k -1 x") == "-ERR offset is out of range");
  CHECK(db("SETRANGE k x x") == kNoInteger);
  CHECK(db("SETRANGE new 2 x") == ":3");
  CHECK(db("GET new") == std::string("$\0\0x", 4));
  CHECK(db("INCRBY n 12") == ":12");
  CHECK(db("APPEND n 3") == ":3");
  CHECK(db("INCR n") == ":124");
  CHECK(db("SETRANGE n 0 9") == ":3");
  CHECK(db("GET n") == "$924");
  CHECK(db("EXPIRE n 100") == ":1");
  CHECK(db("APPEND n 5") == ":4");
  CHECK(db("SETRANGE n 0 1") == ":4");
  CHECK(db("TTL n") == ":100");
}

TEST_CASE("GETRANGE's ends") {
  EngineFixture db;
  CHECK(db.Call({"SET", "k", "Hello World"}) == "+OK");
  struct Row {
    const char* start;
    const char* end;
    const char* part;
  };
  for (const Row& row : {Row{"0", "3", "Hell"},
                         {"0", "-1", "Hello World"},
                         {"-4", "-1", "orld"},
                         {"5", "3", ""},
                         {"5", "5000", " World"},
                         {"-5000", "10000", "Hello World"},
                         {"0", "-100", "H"},
                         {"1", "-100", ""},
                         {"-1", "-100", ""},
                         {"-100", "-99", "H"},
                         {"-100", "-101", ""},
                         {"0", "9223372036854775807", "Hello World"},
                         {"-9223372036854775808", "0", "H"},
                         {"9223372036854775807", "9223372036854775807", ""}}) {
    INFO(row.start << " " << row.end);
    CHECK(db.Call({"GETRANGE", "k", row.start, row.end}) == "$" + std::string(row.part));
    CHECK(db.Call({"SUBSTR", "k", row.start, row.end}) == "$" + std::string(row.part));
  }
  CHECK(db("GETRANGE none 0 -1") == "$");
  CHECK(db("GETRANGE none 0 x") == kNoInteger);
}

TEST_CASE("values of every size around the encodings' bounds") {
  EngineFixture db;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{44}, size_t{45}, size_t{254}, size_t{255}, size_t{256},
        size_t{16383}, size_t{16384}, size_t{16385}, size_t{70000}}) {
    std::string value(size, '\0');
    for (size_t i = 0; i < size; ++i) value[i] = static_cast<char>(i * 31 + size);
    INFO(size);
    REQUIRE(db.Call({"SET", "k", value}) == "+OK");
    CHECK(db("GET k") == "$" + value);
    CHECK(db("STRLEN k") == ":" + std::to_string(size));
    CHECK(db("GETRANGE k 1 -2") == "$" + (size < 2 ? "" : value.substr(1, size - 2)));
    CHECK(db("COPY k copy REPLACE") == ":1");
    CHECK(db("APPEND k tail") == ":" + std::to_string(size + 4));
    CHECK(db("GET k") == "$" + value + "tail");
    CHECK(db("GET copy") ==
          "$" + value);  // not changed with the original, which may have shared its bytes
    CHECK(db("SETRANGE copy 0 ##") == ":" + std::to_string(std::max<size_t>(size, 2)));
    CHECK(db("GETRANGE k 0 -1") == "$" + value + "tail");
    CHECK(db.Call({"SETEX", "k", "100", value}) == "+OK");
    CHECK(db.Call({"GETSET", "k", "x"}) == "$" + value);
    CHECK(db.Call({"SETNX", "k" + std::to_string(size), value}) == ":1");
    CHECK(db.Call({"GETDEL", "k" + std::to_string(size)}) == "$" + value);
  }
}

TEST_CASE("strings do not grow past proto-max-bulk-len") {
  EngineFixture db;
  db.engine().string_bytes_max = 1000;
  const std::string error = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
  CHECK(db.Call({"SET", "k", std::string(999, 'x')}) == "+OK");
  CHECK(db("APPEND k y") == ":1000");
  CHECK(db("APPEND k y") == error);
  CHECK(db("SETRANGE k 999 y") == ":1000");
  CHECK(db("SETRANGE k 1000 y") == error);
  CHECK(db("SETRANGE none 9223372036854775807 y") == error);
  CHECK(db("EXISTS none") == ":0");
  CHECK(db("LCS k k") ==
        "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
}

TEST_CASE("INCR and its like at the edges (UR-06)") {
  EngineFixture db;
  CHECK(db("SET a 0") == "+OK");
  CHECK(db("DECRBY a -9223372036854775808") == "-ERR decrement would overflow");
  CHECK(db("GET a") == "$0");
  CHECK(db("SET z 9223372036854775807") == "+OK");
  CHECK(db("INCR z") == kOverflow);
  CHECK(db("GET z") == "$9223372036854775807");
  CHECK(db("DECRBY z 9223372036854775807") == ":0");
  CHECK(db("INCRBY z -9223372036854775808") == ":-9223372036854775808");
  CHECK(db("DECR z") == kOverflow);
  CHECK(db("INCRBY z 9223372036854775808") == kNoInteger);
  for (const std::string text :
       {"007", " 7", "-0", "+1", "", "1.5", "7 ", "0x7", "9223372036854775808"}) {
    INFO(text);
    REQUIRE(db.Call({"SET", "k", text}) == "+OK");
    CHECK(db("INCR k") == kNoInteger);
    CHECK(db("GET k") == "$" + text);
    CHECK(db.Call({"INCRBY", "none", text}) == kNoInteger);
  }
  CHECK(db("DECR new") == ":-1");
  CHECK(db("PEXPIRE new 5000") == ":1");
  CHECK(db("INCR new") == ":0");
  CHECK(db("PTTL new") == ":5000");
}

TEST_CASE("INCRBYFLOAT gives decimal texts and refuses what is not finite (UR-05)") {
  EngineFixture db;
  CHECK(db("SET a 1000") == "+OK");
  CHECK(db("INCRBYFLOAT a 1.8") == "$1001.8");
  CHECK(db("SET b 5.0e3") == "+OK");
  CHECK(db("INCRBYFLOAT b 2.0e2") == "$5200");
  CHECK(db("INCR b") == ":5201");
  CHECK(db.Call({"SET", "c", " 12"}) == "+OK");
  CHECK(db("INCRBYFLOAT c 1") == kNoFloat);
  CHECK(db("SET d 1") == "+OK");
  CHECK(db("INCRBYFLOAT d +inf") == "-ERR increment would produce NaN or Infinity");
  CHECK(db("INCRBYFLOAT d nan") == kNoFloat);
  CHECK(db("INCRBYFLOAT d x") == kNoFloat);
  CHECK(db("GET d") == "$1");
  CHECK(db("INCRBYFLOAT new 0.1") == "$0.1");
  CHECK(db("INCRBYFLOAT new 0.2") == "$0.3");
  CHECK(db("INCRBYFLOAT new -0.3") == "$0");
  CHECK(db("EXPIRE new 100") == ":1");
  CHECK(db("INCRBYFLOAT new 3e5") == "$300000");
  CHECK(db("TTL new") == ":100");
  // After replay the same texts.
  Engine again(db.engine().options(), &db.commands());
  EngineFixture::Replay(db.TakeLog(), &again);
  CHECK(again.Digest() == db.engine().Digest());
}

TEST_CASE("LCS") {
  EngineFixture db(WithBlobs());
  CHECK(db("MSET a ohmytext b mynewtext") == "+OK");
  CHECK(db("LCS a b") == "$mytext");
  CHECK(db("LCS a b LEN") == ":6");
  CHECK(db("LCS a b IDX") == "[$matches, [[[:4, :7], [:5, :8]], [[:2, :3], [:0, :1]]], $len, :6]");
  CHECK(db("LCS a b IDX WITHMATCHLEN MINMATCHLEN 4") ==
        "[$matches, [[[:4, :7], [:5, :8], :4]], $len, :6]");
  CHECK(db("LCS a b IDX MINMATCHLEN -5") ==
        "[$matches, [[[:4, :7], [:5, :8]], [[:2, :3], [:0, :1]]], $len, :6]");
  CHECK(db("LCS a b MINMATCHLEN 4 WITHMATCHLEN") == "$mytext");
  CHECK(db("LCS a none") == "$");
  CHECK(db("LCS none none IDX") == "[$matches, [], $len, :0]");
  CHECK(db("LCS a b LEN IDX") ==
        "-ERR If you want both the length and indexes, please just use IDX.");
  CHECK(db("LCS a b FOO") == kSyntax);
  CHECK(db("LCS a b MINMATCHLEN") == kSyntax);
  CHECK(db("LCS a b MINMATCHLEN x") == kNoInteger);
  CHECK(db("BLOB x") == "+OK");
  CHECK(db("LCS a x FOO") == "-ERR The specified keys must contain string values");
}

TEST_CASE("RESP3 forms of string replies") {
  EngineFixtureOptions options;
  options.resp_version = 3;
  EngineFixture db(options);
  CHECK(db("GET none") == "nil");
  CHECK(db.raw() == "_\r\n");
  CHECK(db("MSET a ab b ab f 1.5") == "+OK");
  CHECK(db("LCS a b IDX") == "{$matches, [[[:0, :1], [:0, :1]]], $len, :2}");
  CHECK(db("INCRBYFLOAT f 1") == "$2.5");  // a bulk in both protocols
  CHECK(db("INCREX f BYFLOAT 0.25") == "[,2.75, ,0.25]");
  CHECK(db("INCREX n") == "[:1, :1]");
}

TEST_CASE("INCREX with integers") {
  EngineFixture db;
  CHECK(db("INCREX k") == "[:1, :1]");
  CHECK(db("INCREX k BYINT 5") == "[:6, :5]");
  CHECK(db("INCREX k byint -10") == "[:-4, :-10]");
  CHECK(db("SET k 10") == "+OK");
  CHECK(db("INCREX k BYINT 10 UBOUND 15") == "[:10, :0]");
  CHECK(db("INCREX k BYINT 10 UBOUND 15 SATURATE") == "[:15, :5]");
  CHECK(db("INCREX k BYINT -100 LBOUND 0 SATURATE") == "[:0, :-15]");
  CHECK(db("INCREX k BYINT 5 UBOUND 5") == "[:5, :5]");
  CHECK(db("SET k 50") == "+OK");
  CHECK(db("INCREX k BYINT -25 UBOUND 30") == "[:25, :-25]");
  CHECK(db("SET k 50") == "+OK");
  CHECK(db("INCREX k BYINT 5 UBOUND 30 SATURATE") == "[:30, :-20]");
  CHECK(db("INCREX none BYINT 5 LBOUND 10") == "[:0, :0]");
  CHECK(db("EXISTS none") == ":0");
  CHECK(db("SET k 9223372036854775800") == "+OK");
  CHECK(db("INCREX k BYINT 9223372036854775800") == "[:9223372036854775800, :0]");
  CHECK(db("INCREX k BYINT 9223372036854775800 SATURATE") == "[:9223372036854775807, :7]");
  CHECK(db("INCREX k UBOUND -9223372036854775808 SATURATE") ==
        "-ERR applied increment would overflow");
  CHECK(db("GET k") == "$9223372036854775807");
  CHECK(db("SET k 1.5") == "+OK");
  CHECK(db("INCREX k") == kNoInteger);
  CHECK(db("INCREX k BYINT x") == "-ERR Increment is not an integer or out of range");
  CHECK(db("INCREX k UBOUND 1.5") == "-ERR UBOUND is not an integer or out of range");
  CHECK(db("INCREX k LBOUND inf") == "-ERR LBOUND is not an integer or out of range");
  CHECK(db("INCREX k LBOUND 2 UBOUND 1") == "-ERR LBOUND can't be greater than UBOUND");
}

TEST_CASE("INCREX with floats") {
  EngineFixture db;
  CHECK(db("INCREX k BYFLOAT 1.1") == "[$1.1, $1.1]");
  CHECK(db("INCREX k BYFLOAT 2.2") == "[$3.3, $2.2]");
  CHECK(db("INCREX k BYFLOAT 10 UBOUND 5.5") == "[$3.3, $0]");
  CHECK(db("INCREX k BYFLOAT 10 UBOUND 5.5 SATURATE") == "[$5.5, $2.2]");
  CHECK(db("INCREX k BYFLOAT -100 LBOUND -5.5 SATURATE") == "[$-5.5, $-11]");
  CHECK(db("INCREX k BYFLOAT 1 LBOUND -inf UBOUND inf") == "[$-4.5, $1]");
  CHECK(db("INCREX k BYFLOAT 1 LBOUND inf UBOUND inf") == "[$-4.5, $0]");
  CHECK(db("INCREX k BYFLOAT 1 LBOUND inf UBOUND inf SATURATE") ==
        "-ERR applied increment would be Infinity");
  CHECK(db("INCREX k BYFLOAT inf") == "-ERR BYFLOAT increment cannot be Infinity");
  CHECK(db("INCREX k BYFLOAT x") == "-ERR Increment is not a valid float");
  CHECK(db("INCREX k BYFLOAT 1 LBOUND x") == "-ERR LBOUND is not a valid float");
  CHECK(db("INCREX k BYFLOAT 1 LBOUND 2.5 UBOUND 1") == "-ERR LBOUND can't be greater than UBOUND");
  CHECK(db("GET k") == "$-4.5");
  CHECK(db("SET k inf") == "+OK");
  CHECK(db("INCREX k BYFLOAT 1") == "-ERR value cannot be Infinity");
  CHECK(db("SET k x") == "+OK");
  CHECK(db("INCREX k BYFLOAT 1") == kNoFloat);
}

TEST_CASE("INCREX and the expiry") {
  EngineFixture db;
  CHECK(db("INCREX k EX 100 ENX") == "[:1, :1]");
  CHECK(db("TTL k") == ":100");
  CHECK(db("INCREX k EX 500 ENX") == "[:2, :1]");
  CHECK(db("TTL k") == ":100");
  CHECK(db("INCREX k") == "[:3, :1]");
  CHECK(db("TTL k") == ":100");
  CHECK(db("INCREX k PX 2000") == "[:4, :1]");
  CHECK(db("PTTL k") == ":2000");
  CHECK(db("INCREX k UBOUND 4 EX 9") == "[:4, :0]");  // refused: the expiry stays too
  CHECK(db("PTTL k") == ":2000");
  CHECK(db("INCREX k UBOUND 4 SATURATE EX 9") == "[:4, :0]");
  CHECK(db("PTTL k") == ":9000");
  CHECK(db("INCREX k EXAT 1 ENX") == "[:5, :1]");
  CHECK(db("GET k") == "$5");
  CHECK(db("INCREX k PERSIST") == "[:6, :1]");
  CHECK(db("TTL k") == ":-1");
  CHECK(db("INCREX k BYFLOAT 0.5 PXAT 1700000001000") == "[$6.5, $0.5]");
  CHECK(db("PTTL k") == ":1000");
  for (const char* options :
       {"EX 1 PX 1", "EX 1 EX 2", "PERSIST EX 1", "PERSIST ENX", "ENX PERSIST", "BYINT 1 BYINT 2",
        "BYINT 1 BYFLOAT 1", "LBOUND 1 LBOUND 1", "SATURATE SATURATE", "FOO", "BYINT", "EX"}) {
    INFO(options);
    CHECK(db("INCREX k " + std::string(options)) == kSyntax);
  }
  CHECK(db("INCREX k ENX") == "-ERR ENX flag requires an expiration");
  CHECK(db("INCREX k EX 0") == BadTime("increx"));
  CHECK(db("INCREX k EXAT 1 BYFLOAT 1") == "[$7.5, $1]");
  CHECK(db("EXISTS k") == ":0");
}

}  // namespace
}  // namespace hotkv
