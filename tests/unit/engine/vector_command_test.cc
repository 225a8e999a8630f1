// VSIM.* against an exact scan, with every kind of bad input, inside transactions, and replayed from its effects.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "engine/types/vector_set.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/vectors.h"

namespace hotkv {
namespace {

std::string Blob64(const std::vector<double>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(double)};
}

double CosineDistance(const std::vector<float>& a, const std::vector<float>& b) { return 1 - Cosine(a, b); }

bool StartsWith(const std::string& text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

TEST_CASE("an index is a key like any other") {
  EngineFixture db;
  CHECK(db("VSIM.CREATEINDEX i DIM 3") == "+OK");
  CHECK(db("TYPE i") == "+vectorset");
  CHECK(db("EXISTS i") == ":1");
  CHECK(db("VSIM.SET i a VALUES 3 1 0 0") == ":1");
  CHECK(db("RENAME i j") == "+OK");
  CHECK(db("VSIM.EXISTS j a b") == "[:1, :0]");
  CHECK(db("VSIM.EXISTS i a") == "-ERR no such index");
  CHECK(db("MOVE j 1") == ":1");
  CHECK(db("VSIM.LIST") == "[]");
  CHECK(db("SELECT 1") != "");
  db.client(0).db = 1;
  CHECK(db("VSIM.LIST") == "[$j]");
  CHECK(db("PEXPIRE j 100") == ":1");
  db.Advance(101);
  CHECK(db("VSIM.EXISTS j a") == "-ERR no such index");
  CHECK(db("DBSIZE") == ":0");
  CHECK(db.engine().objects().size() == 0);
}

TEST_CASE("SET, replace, NX, XX, attributes, DEL, DROPINDEX") {
  EngineFixture db;
  CHECK(db("VSIM.CREATEINDEX i DIM 2 METRIC L2") == "+OK");
  CHECK(db("VSIM.CREATEINDEX i DIM 2") == "-ERR index already exists");
  CHECK(db("VSIM.SET i a VALUES 2 1 2") == ":1");
  CHECK(db("VSIM.SET i a VALUES 2 3 4 ATTR {\"x\":1}") == ":0");
  CHECK(db("VSIM.SET i a VALUES 2 9 9 NX") == "nil");
  CHECK(db("VSIM.SET i b VALUES 2 9 9 XX") == "nil");
  CHECK(db("VSIM.EXISTS i a b") == "[:1, :0]");
  CHECK(db("VSIM.GET i a WITHATTR") == "[[$3, $4], ${\"x\":1}]");
  CHECK(db("VSIM.GET i nobody") == "nil");
  CHECK(db("VSIM.SET i b VALUES 2 9 9 NX") == ":1");
  CHECK(db("VSIM.DEL i a a c") == ":1");
  CHECK(db("VSIM.SEARCH i VALUES 2 3 4 WITHSCORES") == "[$b, $7.81025]");
  CHECK(db("VSIM.DROPINDEX i") == ":1");
  CHECK(db("VSIM.DROPINDEX i") == ":0");
  CHECK(db("SET s v") == "+OK");
  for (const char* command : {"VSIM.SET s a VALUES 2 1 2", "VSIM.DEL s a", "VSIM.GET s a", "VSIM.DROPINDEX s",
                              "VSIM.INFO s", "VSIM.SEARCH s VALUES 2 1 2"}) {
    CHECK(StartsWith(db(command), "-WRONGTYPE"));
  }
  CHECK(db("VSIM.CREATEINDEX s DIM 2") == "-ERR index already exists");
}

TEST_CASE("searches agree with an exact scan") {
  EngineFixture db;
  std::mt19937 random(5);
  constexpr size_t kDim = 24;
  db("VSIM.CREATEINDEX i DIM 24");
  std::map<std::string, std::vector<float>> model;
  for (int i = 0; i < 500; ++i) {
    const std::string id = "e" + std::to_string(i);
    model[id] = RandomVector(&random, kDim);
    REQUIRE(db.Call({"VSIM.SET", "i", id, "FP32", Blob(model[id])}) == ":1");
  }
  for (int q = 0; q < 20; ++q) {
    const std::vector<float> query = RandomVector(&random, kDim);
    std::vector<std::pair<double, std::string>> exact;
    for (const auto& [id, vector] : model) exact.emplace_back(CosineDistance(query, vector), id);
    std::sort(exact.begin(), exact.end());
    auto expect = [&](size_t from, size_t count) {
      std::string text = "[";
      for (size_t i = from; i < from + count; ++i) text += (i > from ? ", $" : "$") + exact[i].second;
      return text + "]";
    };
    CHECK(db.Call({"VSIM.SEARCH", "i", "FP32", Blob(query)}) == expect(0, 10));
    CHECK(db.Call({"VSIM.SEARCH", "i", "FP32", Blob(query), "K", "3", "OFFSET", "4", "EXACT"}) == expect(4, 3));
    const size_t within = static_cast<size_t>(
        std::count_if(exact.begin(), exact.end(), [](const auto& row) { return row.first <= 0.8; }));
    CHECK(db.Call({"VSIM.SEARCH", "i", "FP32", Blob(query), "K", "500", "RANGE", "0.8", "EXACT"}) ==
          expect(0, within));
    const std::string both = db.Call({"VSIM.MSEARCH", "i", "2", "FP32", Blob(query), "ELE", exact[7].second, "K", "1"});
    CHECK(both == "[" + expect(0, 1) + ", [$" + exact[7].second + "]]");
  }
  // More than there is: everything, once.
  CHECK(db.Call({"VSIM.SEARCH", "i", "ELE", "e0", "K", "100000"}).find("e499") != std::string::npos);
}

TEST_CASE("MSEARCH answers as so many searches do, in their order, however many there are") {
  EngineFixture db;
  std::mt19937 random(77);
  CHECK(db("VSIM.CREATEINDEX i DIM 6 EF_CONSTRUCTION 40 FIELDS 1 n NUMERIC") == "+OK");
  const auto blob = [&random] {
    std::normal_distribution<float> normal;
    std::string bytes;
    for (int i = 0; i < 6; ++i) {
      const float x = normal(random);
      bytes.append(reinterpret_cast<const char*>(&x), sizeof(x));
    }
    return bytes;
  };
  for (int i = 0; i < 3000; ++i) {
    const std::string vector = blob();
    db.Call({"VSIM.SET", "i", "e" + std::to_string(i), "FP32", vector, "ATTR", "{\"n\":" + std::to_string(i % 10) + "}"});
  }
  const std::vector<std::vector<std::string>> tails = {
      {"K", "5"}, {"K", "3", "FILTER", ".n < 4", "WITHATTR", "WITHSCORES"}, {"K", "4", "PLAN", "WALK", "FILTER", ".n == 1"}};
  for (const size_t count : {1u, 2u, 3u, 4u, 5u, 40u}) {
    for (const std::vector<std::string>& tail : tails) {
      std::vector<std::string> many = {"VSIM.MSEARCH", "i", std::to_string(count)};
      std::string expected;
      for (size_t q = 0; q < count; ++q) {
        std::vector<std::string> one = {"VSIM.SEARCH", "i", "FP32", blob()};
        if (q % 3 == 1) one = {"VSIM.SEARCH", "i", "ELE", "e" + std::to_string(q)};
        many.insert(many.end(), one.begin() + 2, one.end());
        one.insert(one.end(), tail.begin(), tail.end());
        const std::vector<std::string_view> args(one.begin(), one.end());
        expected += (q == 0 ? "" : ", ") + db.Dispatch(0, 0, args);
      }
      many.insert(many.end(), tail.begin(), tail.end());
      const std::vector<std::string_view> args(many.begin(), many.end());
      for (int round = 0; round < 5; ++round) CHECK(db.Dispatch(0, 0, args) == "[" + expected + "]");
      many.push_back("EXPLAIN");
      const std::vector<std::string_view> explained(many.begin(), many.end());
      const std::string maps = db.Dispatch(0, 0, explained);
      size_t plans = 0;
      for (size_t at = maps.find("$plan"); at != std::string::npos; at = maps.find("$plan", at + 1)) ++plans;
      CHECK(plans == count);
    }
  }
  // The index goes while helpers may still be in it.
  std::vector<std::string> many = {"VSIM.MSEARCH", "i", "40"};
  for (int q = 0; q < 40; ++q) many.insert(many.end(), {"ELE", "e" + std::to_string(q)});
  many.insert(many.end(), {"K", "1"});
  const std::vector<std::string_view> args(many.begin(), many.end());
  CHECK(db.Dispatch(0, 0, args).starts_with("[[$e0], [$e1], [$e2]"));
  CHECK(db("DEL i") == ":1");
  CHECK(db.Dispatch(0, 0, args) == "-ERR no such index");
}

TEST_CASE("every type of an index answers as an exact scan does on a small set") {
  for (const char* type : {"F32", "F16", "Q8", "Q4", "BIN"}) {
    EngineFixture db;
    std::mt19937 random(3);
    REQUIRE(db.Call({"VSIM.CREATEINDEX", "i", "DIM", "48", "TYPE", type}) == "+OK");
    CHECK(db("VSIM.INFO i").find(std::string("$") + type) != std::string::npos);
    std::vector<std::vector<float>> vectors;
    for (int i = 0; i < 200; ++i) {
      vectors.push_back(RandomVector(&random, 48));
      db.Call({"VSIM.SET", "i", std::to_string(i), "FP32", Blob(vectors.back())});
    }
    for (int q = 0; q < 20; ++q) {
      const std::vector<float> query = RandomVector(&random, 48);
      size_t best = 0;
      for (size_t i = 1; i < vectors.size(); ++i) {
        if (CosineDistance(query, vectors[i]) < CosineDistance(query, vectors[best])) best = i;
      }
      CHECK(db.Call({"VSIM.SEARCH", "i", "FP32", Blob(query), "K", "1", "EXACT"}) ==
            "[$" + std::to_string(best) + "]");
    }
  }
}

TEST_CASE("rows: flat in RESP2, nested in RESP3, blobs with RAW") {
  EngineFixture two;
  EngineFixture three({.resp_version = 3});
  for (EngineFixture* db : {&two, &three}) {
    (*db)("VSIM.CREATEINDEX i DIM 2 METRIC IP");
    (*db)("VSIM.SET i a VALUES 2 1 0.3 ATTR {}");
    (*db)("VSIM.SET i b VALUES 2 0 1");
  }
  CHECK(two("VSIM.SEARCH i VALUES 2 1 0 WITHSCORES WITHATTR WITHVECTORS") ==
        "[$a, $-1, ${}, [$1, $0.3], $b, $0, nil, [$0, $1]]");
  CHECK(three("VSIM.SEARCH i VALUES 2 1 0 WITHSCORES WITHATTR WITHVECTORS") ==
        "[[$a, ,-1, ${}, [,1, ,0.3]], [$b, ,0, nil, [,0, ,1]]]");
  CHECK(three("VSIM.SEARCH i VALUES 2 1 0") == "[$a, $b]");
  const std::string raw = two("VSIM.GET i a RAW");
  CHECK(raw == "$" + Blob({1.0f, 0.3f}));
}

TEST_CASE("bad vectors are refused with both sizes, and nothing changes") {
  EngineFixture db;
  db("VSIM.CREATEINDEX i DIM 4");
  CHECK(db.Call({"VSIM.SET", "i", "good", "FP32", Blob({1, 0, 0, 0})}) == ":1");
  const std::string f64 = Blob64({1, 0, 0, 0});
  for (const std::string& blob : {f64, std::string(15, 'x'), std::string(3, 'x'), std::string()}) {
    for (const std::string& reply :
         {db.Call({"VSIM.SET", "i", "bad", "FP32", blob}), db.Call({"VSIM.SEARCH", "i", "FP32", blob}),
          db.Call({"VSIM.MSET", "i", "2", "ok", "FP32", Blob({0, 1, 0, 0}), "bad", "FP32", blob})}) {
      CHECK(StartsWith(reply, "-ERR"));
      CHECK(reply.find("got " + std::to_string(blob.size()) + " bytes") != std::string::npos);
      CHECK(reply.find("want 16") != std::string::npos);
      CHECK((reply.find("FLOAT64") != std::string::npos) == (blob.size() == 32));
    }
  }
  const float nan = std::nanf("");
  const float inf = INFINITY;
  for (const std::vector<float>& v : {std::vector<float>{nan, 0, 0, 1}, {0, 0, 0, -nan}, {inf, 0, 0, 1}, {0, 0, 0, 0}}) {
    CHECK(StartsWith(db.Call({"VSIM.SET", "i", "bad", "FP32", Blob(v)}), "-ERR"));
    CHECK(StartsWith(db.Call({"VSIM.SEARCH", "i", "FP32", Blob(v)}), "-ERR"));
  }
  for (const char* line :
       {"VSIM.SET i bad VALUES 3 1 2 3", "VSIM.SET i bad VALUES 5 1 2 3 4 5", "VSIM.SET i bad VALUES 4 1 2 3",
        "VSIM.SET i bad VALUES 4 1 2 nan 4", "VSIM.SET i bad VALUES 4 1 2 inf 4", "VSIM.SET i bad VALUES 4 1 2 x 4",
        "VSIM.SET i bad VALUES -1 1", "VSIM.SET i bad VALUES 4 1 2 3 4 5", "VSIM.SET i bad ELE good",
        "VSIM.SET i bad VALUES 4 1 2 3 4 ATTR", "VSIM.SET i bad VALUES 4 1 2 3 4 ATTR {} ATTR {}",
        "VSIM.SET i bad VALUES 4 1 2 3 4 NX XX", "VSIM.MSET i 2 bad VALUES 4 1 2 3 4",
        "VSIM.MSET i 0 bad VALUES 4 1 2 3 4", "VSIM.MSET i 1 bad VALUES 4 1 2 3 4 extra word"}) {
    CHECK(StartsWith(db(line), "-ERR"));
  }
  for (const char* line :
       {"VSIM.SEARCH i ELE good K 0", "VSIM.SEARCH i ELE good K -1", "VSIM.SEARCH i ELE good K x",
        "VSIM.SEARCH i ELE good EF 0", "VSIM.SEARCH i ELE good RANGE nan", "VSIM.SEARCH i ELE good RANGE",
        "VSIM.SEARCH i ELE good OFFSET -1", "VSIM.SEARCH i ELE good K 1 K 2", "VSIM.SEARCH i ELE good NONSENSE",
        "VSIM.SEARCH i ELE nobody", "VSIM.SEARCH nowhere VALUES 4 1 2 3 4", "VSIM.GET i good RAW RAW"}) {
    CHECK(StartsWith(db(line), "-ERR"));
  }
  for (const char* line :
       {"VSIM.CREATEINDEX n DIM 0", "VSIM.CREATEINDEX n DIM 32769", "VSIM.CREATEINDEX n DIM x", "VSIM.CREATEINDEX n M 16",
        "VSIM.CREATEINDEX n DIM 4 METRIC HAMMING", "VSIM.CREATEINDEX n DIM 4 TYPE NONE", "VSIM.CREATEINDEX n DIM 4 M 1",
        "VSIM.CREATEINDEX n DIM 4 M 16 M 16", "VSIM.CREATEINDEX n DIM 4 METRIC"}) {
    CHECK(StartsWith(db(line), "-ERR"));
  }
  CHECK(db("EXISTS n") == ":0");
  CHECK(db("VSIM.EXISTS i good bad ok") == "[:1, :0, :0]");
  CHECK(db("VSIM.SEARCH i VALUES 4 1 0 0 0 WITHSCORES") == "[$good, $0]");
}

TEST_CASE("inside MULTI an insert and a search see each other, and a broken WATCH keeps both away") {
  EngineFixture db;
  db("VSIM.CREATEINDEX i DIM 2");
  db("MULTI");
  db("VSIM.SET i a VALUES 2 1 0");
  db("VSIM.SEARCH i VALUES 2 1 0");
  db("VSIM.CREATEINDEX k DIM 2");
  db("VSIM.SET k z VALUES 2 1 0");
  db("VSIM.DROPINDEX k");
  CHECK(db("EXEC") == "[:1, [$a], +OK, :1, :1]");
  db("WATCH i");
  db.As(1, "VSIM.SET i b VALUES 2 0 1");
  db("MULTI");
  db("VSIM.DEL i a");
  CHECK(db("EXEC") == "nil");
  CHECK(db("VSIM.EXISTS i a b") == "[:1, :1]");
}

TEST_CASE("effects of an index, replayed, give the same index") {
  EngineFixture db;
  std::mt19937 random(11);
  db("VSIM.CREATEINDEX i DIM 8 METRIC L2");
  db.TakeLog();
  for (int i = 0; i < 600; ++i) {
    const std::string id = "e" + std::to_string(random() % 80);
    if (random() % 4 == 0) {
      db.Call({"VSIM.DEL", "i", id});
    } else {
      db.Call({"VSIM.SET", "i", id, "FP32", Blob(RandomVector(&random, 8)), "ATTR", std::to_string(i)});
    }
  }
  VectorSetDefinition definition;
  definition.index.dim = 8;
  definition.index.metric = Metric::kL2;
  auto replica = VectorSet::Create({1, nullptr, ""}, definition);
  REQUIRE(replica.ok());
  const EffectLog log = db.TakeLog();
  // Twice from the start: a generation may have seen any part of what is replayed.
  for (int pass = 0; pass < 2; ++pass) {
    for (const Effect& effect : log.effects) {
      if (effect.kind == EffectKind::kObjectChange) REQUIRE((*replica)->ApplyChange(effect.bytes).ok());
    }
  }
  (*replica)->Recovered();
  const KeyRef key = db.engine().keyspace().MakeRef("i");
  Entry** slot = db.engine().keyspace().Find(db.engine().keyspace().stripe(key.stripe), 0, key);
  REQUIRE(slot != nullptr);
  CHECK((*replica)->Digest() == (*slot)->object()->Digest());
  CHECK((*replica)->index().CheckInvariants().ok());
  (*replica)->Unref();
}

TEST_CASE("damaged definitions and changes are errors, never a crash") {
  VectorSetDefinition definition;
  definition.index.dim = 3;
  auto set = VectorSet::Create({1, nullptr, ""}, definition);
  REQUIRE(set.ok());
  std::string good_definition;
  (*set)->EncodeDefinition(&good_definition);
  CHECK(VectorSet::DecodeDefinition(good_definition).ok());
  for (size_t cut = 0; cut < good_definition.size(); ++cut) {
    CHECK_FALSE(VectorSet::DecodeDefinition(good_definition.substr(0, cut)).ok());
  }
  const std::vector<float> v{1, 2, 3};
  const std::string change = VectorSet::SetChange(0, "name", "attr", v);
  for (size_t cut = 0; cut < change.size(); ++cut) {
    CHECK_FALSE((*set)->ApplyChange(change.substr(0, cut)).ok());
  }
  CHECK_FALSE((*set)->ApplyChange(std::string("\x09\x00\x00", 3)).ok());
  CHECK((*set)->ApplyChange(change).ok());
  (*set)->Unref();
}

}  // namespace
}  // namespace hotkv
