// Commands on keys and databases: replies, error texts and edge cases, as redis-server 7.0 gives
// them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "engine/base/number.h"
#include "tests/support/engine_fixture.h"

namespace hotkv {
namespace {

const std::string kSyntax = "-ERR syntax error";
const std::string kNoInteger = "-ERR value is not an integer or out of range";
const std::string kBadDb = "-ERR DB index is out of range";
const std::string kNoKey = "-ERR no such key";
const std::string kSame = "-ERR source and destination objects are the same";

// The words of a flat array reply, sorted.
std::vector<std::string> Elements(const std::string& reply) {
  std::vector<std::string> words = SplitArray(reply);
  std::sort(words.begin(), words.end());
  return words;
}
using Words = std::vector<std::string>;

struct ScanPage {
  std::string cursor;
  Words keys;
};
ScanPage Scan(EngineFixture& db, const std::string& rest) {
  const std::string reply = db("SCAN " + rest);
  INFO(reply);
  REQUIRE(reply.substr(0, 2) == "[$");
  const size_t comma = reply.find(", ");
  ScanPage page{reply.substr(2, comma - 2), {}};
  const std::string keys = reply.substr(comma + 2, reply.size() - comma - 3);
  for (const std::string& key : SplitArray(keys)) page.keys.push_back(key.substr(1));
  return page;
}
Words ScanAll(EngineFixture& db, const std::string& options) {
  Words keys;
  std::string cursor = "0";
  do {
    ScanPage page = Scan(db, cursor + options);
    keys.insert(keys.end(), page.keys.begin(), page.keys.end());
    cursor = page.cursor;
  } while (cursor != "0");
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST_CASE("DEL, UNLINK, EXISTS, TOUCH, TYPE") {
  EngineFixture db;
  CHECK(db("MSET a 1 b 2 c 3") == "+OK");
  CHECK(db("EXISTS a b none a") == ":3");
  CHECK(db("TOUCH a b none a") == ":3");
  CHECK(db("DEL a none a") == ":1");
  CHECK(db("UNLINK b c b") == ":2");
  CHECK(db("EXISTS a b c") == ":0");
  CHECK(db("TYPE a") == "+none");
  CHECK(db("SET a 1") == "+OK");
  CHECK(db("TYPE a") == "+string");
  CHECK(db("DEL") == "-ERR wrong number of arguments for 'del' command");
}

TEST_CASE("keyspace hits and misses are those of reads") {
  EngineFixture db;
  const WorkerState& worker = db.engine().worker(0);
  CHECK(db("SET a 1") == "+OK");
  CHECK(db("INCR a") == ":2");
  CHECK(db("DEL none") == ":0");
  CHECK(worker.hits == 0);
  CHECK(worker.misses == 0);
  for (const char* line : {"GET a", "EXISTS a", "TTL a", "TYPE a", "STRLEN a"}) db(line);
  CHECK(worker.hits == 5);
  CHECK(db("MGET a none b") == "[$2, nil, nil]");
  CHECK(worker.hits == 6);
  CHECK(worker.misses == 2);
}

TEST_CASE("EXPIRE's family") {
  EngineFixture db;
  CHECK(db("EXPIRE none 10") == ":0");
  CHECK(db("SET k v") == "+OK");
  CHECK(db("TTL none") == ":-2");
  CHECK(db("TTL k") == ":-1");
  CHECK(db("PTTL k") == ":-1");
  CHECK(db("EXPIRETIME k") == ":-1");
  CHECK(db("PEXPIRETIME none") == ":-2");
  CHECK(db("EXPIRE k 10") == ":1");
  CHECK(db("PTTL k") == ":10000");
  CHECK(db("EXPIRETIME k") == ":1700000010");
  CHECK(db("PEXPIRETIME k") == ":1700000010000");
  db.Advance(400);
  CHECK(db("TTL k") == ":10");
  CHECK(db("PTTL k") == ":9600");
  db.Advance(101);
  CHECK(db("TTL k") == ":9");
  CHECK(db("PEXPIRE k 1") == ":1");
  CHECK(db("TTL k") == ":0");
  db.Advance(1);
  CHECK(db("TTL k") == ":-2");
  CHECK(db("SET k v") == "+OK");
  CHECK(db("EXPIREAT k 1700000100") == ":1");
  CHECK(db("EXPIRETIME k") == ":1700000100");
  CHECK(db("PEXPIREAT k 1700000200500") == ":1");
  CHECK(db("EXPIRETIME k") == ":1700000201");  // to the nearest
  CHECK(db("PERSIST k") == ":1");
  CHECK(db("PERSIST k") == ":0");
  CHECK(db("PERSIST none") == ":0");
  CHECK(db("EXPIRE k x") == kNoInteger);
  CHECK(db("EXPIRE k 0") == ":1");
  CHECK(db("EXISTS k") == ":0");
  CHECK(db("SET k v") == "+OK");
  CHECK(db("PEXPIREAT k -5") == ":1");
  CHECK(db("EXISTS k") == ":0");
  CHECK(db("EXPIRE none -1") == ":0");
}

TEST_CASE("EXPIRE's conditions") {
  EngineFixture db;
  CHECK(db("SET k v") == "+OK");
  CHECK(db("EXPIRE k 100 XX") == ":0");
  CHECK(db("EXPIRE k 100 GT") == ":0");  // no expiry is later than any
  CHECK(db("EXPIRE k 100 LT") == ":1");
  CHECK(db("EXPIRE k 50 NX") == ":0");
  CHECK(db("EXPIRE k 100 GT") == ":0");
  CHECK(db("EXPIRE k 100 LT") == ":0");
  CHECK(db("EXPIRE k 200 gt xx") == ":1");
  CHECK(db("TTL k") == ":200");
  CHECK(db("EXPIRE k 50 LT") == ":1");
  CHECK(db("EXPIRE k -1 GT") == ":0");
  CHECK(db("TTL k") == ":50");
  CHECK(db("PERSIST k") == ":1");
  CHECK(db("EXPIRE k 50 NX") == ":1");
  const std::string nx = "-ERR NX and XX, GT or LT options at the same time are not compatible";
  CHECK(db("EXPIRE k 50 NX XX") == nx);
  CHECK(db("EXPIRE k x NX GT") == nx);  // options are read before the number
  CHECK(db("EXPIRE k 50 GT LT") == "-ERR GT and LT options at the same time are not compatible");
  CHECK(db("EXPIRE k 50 FOO") == "-ERR Unsupported option FOO");
  CHECK(db("EXPIRE k -1 LT") == ":1");
  CHECK(db("EXISTS k") == ":0");
}

TEST_CASE("RENAME and RENAMENX") {
  EngineFixture db;
  CHECK(db("RENAME a b") == kNoKey);
  CHECK(db("RENAME a a") == kNoKey);
  CHECK(db("RENAMENX a a") == kNoKey);
  CHECK(db("SET a 1 EX 100") == "+OK");
  CHECK(db("SET b 2") == "+OK");
  CHECK(db("RENAMENX a b") == ":0");
  CHECK(db("RENAMENX a a") == ":0");
  CHECK(db("RENAME a a") == "+OK");
  CHECK(db("RENAME a b") == "+OK");
  CHECK(db("MGET a b") == "[nil, $1]");
  CHECK(db("TTL b") == ":100");
  CHECK(db("RENAMENX b c") == ":1");
  CHECK(db("TTL c") == ":100");
  db.Advance(100'000);
  CHECK(db("SET d 4") == "+OK");
  CHECK(db("RENAMENX d c") == ":1");  // c is past its time
  CHECK(db("TTL c") == ":-1");
}

TEST_CASE("COPY") {
  EngineFixture db;
  CHECK(db("COPY a b") == ":0");
  CHECK(db("SET a 1 PX 5000") == "+OK");
  CHECK(db("COPY a b") == ":1");
  CHECK(db("PTTL b") == ":5000");
  CHECK(db("INCR a") == ":2");
  CHECK(db("GET b") == "$1");
  CHECK(db("COPY a b") == ":0");
  CHECK(db("COPY a b REPLACE") == ":1");
  CHECK(db("GET b") == "$2");
  CHECK(db("COPY a a") == kSame);
  CHECK(db("COPY a a DB 0") == kSame);
  CHECK(db("COPY a a db 3") == ":1");
  CHECK(db("COPY a b DB 16") == kBadDb);
  CHECK(db("COPY a b DB -1") == kBadDb);
  CHECK(db("COPY a b DB x") == kNoInteger);
  CHECK(db("COPY a b DB") == kSyntax);
  CHECK(db("COPY a b FOO") == kSyntax);
  CHECK(db("MOVE a 3") == ":0");
}

TEST_CASE("MOVE, SWAPDB, FLUSHDB, FLUSHALL, DBSIZE") {
  EngineFixture db;
  ClientState& other = db.client(1);
  other.db = 1;
  CHECK(db("MOVE a 0") == kSame);
  CHECK(db("MOVE a x") == kNoInteger);
  CHECK(db("MOVE a 16") == kBadDb);
  CHECK(db("MOVE a 1") == ":0");
  CHECK(db("SET a 1 EX 100") == "+OK");
  CHECK(db("MOVE a 1") == ":1");
  CHECK(db("GET a") == "nil");
  CHECK(db.As(1, "GET a") == "$1");
  CHECK(db.As(1, "TTL a") == ":100");
  CHECK(db("SET a 2") == "+OK");
  CHECK(db("MOVE a 1") == ":0");
  CHECK(db("MSET b 1 c 1") == "+OK");
  CHECK(db("DBSIZE") == ":3");
  CHECK(db.As(1, "DBSIZE") == ":1");
  CHECK(db("SWAPDB 0 1") == "+OK");
  CHECK(db("DBSIZE") == ":1");
  CHECK(db("GET a") == "$1");
  CHECK(db.As(1, "GET a") == "$2");
  CHECK(db("SWAPDB 1 1") == "+OK");
  CHECK(db("SWAPDB x 1") == "-ERR invalid first DB index");
  CHECK(db("SWAPDB 99 x") == "-ERR invalid second DB index");
  CHECK(db("SWAPDB 4294967297 0") == "-ERR invalid first DB index");
  CHECK(db("SWAPDB 0 16") == kBadDb);
  CHECK(db("SWAPDB -1 0") == kBadDb);
  CHECK(db("FLUSHDB FOO") == kSyntax);
  CHECK(db("FLUSHALL SYNC ASYNC") == kSyntax);
  CHECK(db.As(1, "FLUSHDB ASYNC") == "+OK");
  CHECK(db.As(1, "DBSIZE") == ":0");
  CHECK(db("DBSIZE") == ":1");
  CHECK(db.As(1, "SET z 1") == "+OK");
  CHECK(db("FLUSHALL sync") == "+OK");
  CHECK(db("DBSIZE") == ":0");
  CHECK(db.As(1, "DBSIZE") == ":0");
}

TEST_CASE("KEYS and RANDOMKEY see one database and no expired key") {
  EngineFixture db;
  CHECK(db("KEYS *") == "[]");
  CHECK(db("RANDOMKEY") == "nil");
  CHECK(db("MSET one 1 two 2 three 3 four 4") == "+OK");
  db.client(1).db = 2;
  CHECK(db.As(1, "SET five 5") == "+OK");
  CHECK(Elements(db("KEYS *")) == Words{"$four", "$one", "$three", "$two"});
  CHECK(Elements(db("KEYS *o*")) == Words{"$four", "$one", "$two"});
  CHECK(Elements(db("KEYS t??")) == Words{"$two"});
  CHECK(db("KEYS x*") == "[]");
  CHECK(db.As(1, "RANDOMKEY") == "$five");
  std::map<std::string, int> seen;
  for (int i = 0; i < 2000; ++i) ++seen[db("RANDOMKEY")];
  CHECK(seen.size() == 4);
  for (const auto& [key, count] : seen) CHECK(count > 300);  // 500 expected, sigma 19
  CHECK(db("PEXPIRE one 5") == ":1");
  db.Advance(5);
  CHECK(Elements(db("KEYS *")) == Words{"$four", "$three", "$two"});
  for (int i = 0; i < 200; ++i) CHECK(db("RANDOMKEY") != "$one");
  CHECK(db.As(1, "PEXPIRE five 5") == ":1");
  db.Advance(5);
  CHECK(db.As(1, "RANDOMKEY") == "nil");
}

TEST_CASE("SCAN's options and cursors") {
  for (const unsigned stripe_bits : {0u, 4u, 12u}) {
    EngineFixtureOptions options;
    options.stripe_bits = stripe_bits;
    EngineFixture db(options);
    CHECK(db("SCAN 0") == "[$0, []]");
    Words all;
    for (int i = 0; i < 500; ++i) {
      all.push_back("key:" + std::to_string(i));
      REQUIRE(db.Call({"SET", all.back(), "v"}) == "+OK");
    }
    std::sort(all.begin(), all.end());
    INFO(stripe_bits);
    CHECK(ScanAll(db, "") == all);
    CHECK(ScanAll(db, " COUNT 1") == all);
    CHECK(ScanAll(db, " count 100000") == all);
    CHECK(ScanAll(db, " COUNT 7 TYPE STRING") == all);
    CHECK(ScanAll(db, " TYPE list").empty());
    CHECK(ScanAll(db, " TYPE nosuchtype").empty());
    CHECK(ScanAll(db, " MATCH key:4?2") == Words{"key:402", "key:412", "key:422", "key:432",
                                                 "key:442", "key:452", "key:462", "key:472",
                                                 "key:482", "key:492"});
    const ScanPage page = Scan(db, "0 COUNT 10");
    CHECK(page.keys.size() >= 10);
    CHECK(page.keys.size() < 40);
    REQUIRE(ParseUint64(page.cursor).has_value());
    CHECK(*ParseUint64(page.cursor) < (uint64_t{1} << 53));
  }
}

TEST_CASE("SCAN's errors") {
  EngineFixture db;
  CHECK(db("SET k v") == "+OK");
  for (const char* cursor : {"x", "0x", "18446744073709551616", "1.5", "--1"}) {
    CHECK(db.Call({"SCAN", cursor}) == "-ERR invalid cursor");
  }
  CHECK(db.Call({"SCAN", " 0"}) == "-ERR invalid cursor");
  CHECK(db.Call({"SCAN", ""}) == "[$0, [$k]]");
  CHECK(db("SCAN 18446744073709551615") == "[$0, []]");
  CHECK(db("SCAN -1") == "[$0, []]");
  CHECK(db("SCAN 0 COUNT 0") == kSyntax);
  CHECK(db("SCAN 0 COUNT -5") == kSyntax);
  CHECK(db("SCAN 0 COUNT x") == kNoInteger);
  CHECK(db("SCAN 0 COUNT") == kSyntax);
  CHECK(db("SCAN 0 FOO bar") == kSyntax);
}

TEST_CASE("OBJECT") {
  EngineFixture db;
  CHECK(db("OBJECT ENCODING none") == "nil");
  const auto encoding_of = [&](std::string_view value) {
    REQUIRE(db.Call({"SET", "k", value}) == "+OK");
    return db("OBJECT ENCODING k");
  };
  CHECK(encoding_of("12") == "$int");
  CHECK(encoding_of("-9223372036854775808") == "$int");
  CHECK(encoding_of("9223372036854775808") == "$embstr");
  CHECK(encoding_of("012") == "$embstr");
  CHECK(encoding_of("1.5") == "$embstr");
  CHECK(encoding_of("") == "$embstr");
  CHECK(encoding_of(std::string(44, 'x')) == "$embstr");
  CHECK(encoding_of(std::string(45, 'x')) == "$raw");
  CHECK(encoding_of(std::string(20000, 'x')) == "$raw");
  CHECK(db("INCR n") == ":1");
  CHECK(db("OBJECT ENCODING n") == "$int");
  CHECK(db("OBJECT REFCOUNT n") == ":1");
  CHECK(db("OBJECT REFCOUNT none") == "nil");
  CHECK(db("OBJECT FREQ none") == "nil");
  CHECK(db("OBJECT FREQ n").substr(0, 50) == "-ERR An LFU maxmemory policy is not selected, acce");
  CHECK(db("OBJECT foo k") == "-ERR unknown subcommand 'foo'. Try OBJECT HELP.");
  CHECK(db("OBJECT") == "-ERR wrong number of arguments for 'object' command");
  CHECK(db("OBJECT ENCODING") == "-ERR wrong number of arguments for 'object|encoding' command");
  CHECK(db("OBJECT HELP").substr(0, 12) == "[+OBJECT <su");
}

TEST_CASE("OBJECT IDLETIME never says more than the time since the last use") {
  EngineFixture db;
  for (int64_t offset = 0; offset < 20'000; offset += 1'733) {
    db.SetNow(EngineFixture::kStartMs + 1'000'000 + offset);
    CHECK(db("SET k v") == "+OK");
    CHECK(db("OBJECT IDLETIME k") == ":0");
    int64_t before = 0;
    for (int64_t idle = 1000; idle < 1'900'000; idle += 61'000) {
      db.SetNow(EngineFixture::kStartMs + 1'000'000 + offset + idle);
      CHECK(db("TYPE k") == "+string");  // does not count as use
      const int64_t told = *ParseInt64(db("OBJECT IDLETIME k").substr(1));
      CHECK(told <= idle / 1000);
      CHECK(told >= idle / 1000 - 9);
      CHECK(told >= before);
      before = told;
    }
    CHECK(db("TOUCH k") == ":1");
    CHECK(db("OBJECT IDLETIME k") == ":0");
  }
}

TEST_CASE("what comes later is an unknown command") {
  EngineFixture db;
  for (const char* name : {"SORT", "DUMP", "RESTORE", "MIGRATE", "WAIT"}) {
    CHECK(db(std::string(name) + " k") ==
          "-ERR unknown command '" + std::string(name) + "', with args beginning with: 'k' ");
  }
}

void CheckSpec(const CommandSpec& spec) {
  INFO(spec.name);
  CHECK(std::none_of(spec.name.begin(), spec.name.end(),
                     [](char c) { return c >= 'A' && c <= 'Z'; }));
  CHECK_FALSE(spec.summary.empty());
  CHECK_FALSE(spec.since.empty());
  CHECK_FALSE(spec.group.empty());
  CHECK_FALSE(spec.complexity.empty());
  CHECK((spec.handler != nullptr) == spec.subcommands.empty());
  const bool fast = (spec.acl & acl_category::kFast) != 0;
  CHECK(fast != ((spec.acl & acl_category::kSlow) != 0));
  CHECK(fast == spec.Has(command_flag::kFast));
  CHECK(((spec.acl & acl_category::kWrite) != 0) == spec.Has(command_flag::kWrite));
  CHECK(((spec.acl & acl_category::kRead) != 0) == spec.Has(command_flag::kReadOnly));
  CHECK((spec.keys.first != 0 || spec.get_keys != nullptr) == !spec.key_specs.empty());
  CHECK((spec.deprecated_since.empty()) == spec.replaced_by.empty());
  for (const ArgumentSpec& argument : spec.arguments) {
    if (argument.type != ArgumentType::kKey) continue;
    REQUIRE(argument.key_spec >= 0);
    CHECK(static_cast<size_t>(argument.key_spec) < spec.key_specs.size());
  }
  for (const CommandSpec& sub : spec.subcommands) CheckSpec(sub);
}

TEST_CASE("every spec is complete and agrees with itself") {
  for (const auto family : {StringCommands(), GenericCommands(), TransactionCommands()}) {
    for (const CommandSpec& spec : family) CheckSpec(spec);
  }
}

// The keys that a command's key specs find in a call.
Words KeysBySpecs(const CommandSpec& spec, const std::vector<std::string>& args) {
  Words keys;
  const auto argc = static_cast<int>(args.size());
  for (const KeySpec& key : spec.key_specs) {
    int first = key.begin;
    int last = 0;
    if (key.find == KeySpec::Find::kKeynum) {
      const auto count =
          static_cast<int>(*ParseInt64(args[static_cast<size_t>(key.begin + key.keynum)]));
      first = key.begin + key.first;
      last = first + (count - 1) * key.step;
    } else {
      last = key.last >= 0 ? key.begin + key.last : argc + key.last;
    }
    for (int i = first; i <= last; i += key.step) keys.push_back(args[static_cast<size_t>(i)]);
  }
  return keys;
}

TEST_CASE("key specs and key positions agree") {
  EngineFixture db;
  for (const char* line :
       {"GET k", "SET k v EX 5", "MGET a b c", "MSET a 1 b 2", "MSETEX 2 a 1 b 2 EX 5",
        "LCS a b LEN", "COPY a b DB 2", "RENAME a b", "DEL a b c", "OBJECT ENCODING k", "WATCH a b",
        "SCAN 0", "DBSIZE", "GETRANGE k 0 1", "MSETNX a 1 b 2", "INCREX k BYINT 5", "TOUCH a b",
        "MOVE k 1"}) {
    const std::vector<std::string> words = SplitWords(line);
    const std::vector<std::string_view> args(words.begin(), words.end());
    Executor executor(&db.engine(), &db.engine().worker(0));
    const CommandSpec* spec = executor.Lookup(args);
    REQUIRE(spec != nullptr);
    std::vector<uint32_t> indexes;
    REQUIRE(Executor::KeysOf(*spec, args, &indexes));
    Words keys;
    for (const uint32_t i : indexes) keys.push_back(words[i]);
    INFO(line);
    CHECK(keys == KeysBySpecs(*spec, words));
  }
}

}  // namespace
}  // namespace hotkv
