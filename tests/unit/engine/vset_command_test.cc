// Redis's vector sets (V*), elements that end by themselves, attributes, ALTER and COPY: against values computed another
// way, with every kind of bad input, and replayed from effects.
#include <catch2/catch.hpp>

#include <cerrno>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "engine/base/sim_env.h"
#include "engine/commands/vset_common.h"
#include "engine/types/projection.h"
#include "engine/types/upkeep.h"
#include "engine/types/vector_set.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/vectors.h"

namespace hotkv {
namespace {

VectorSet& SetAt(EngineFixture& db, const std::string& name, uint32_t number = 0) {
  const KeyRef key = db.engine().keyspace().MakeRef(name);
  Entry** slot = db.engine().keyspace().Find(db.engine().keyspace().stripe(key.stripe), number, key);
  REQUIRE(slot != nullptr);
  return static_cast<VectorSet&>(*(*slot)->object());
}

// The set made by the definition and the logged changes of object `id`, each applied twice.
uint64_t ReplayedDigest(const EffectLog& log, const VectorSet& set) {
  std::string definition;
  for (const Effect& effect : log.effects) {
    if (effect.kind == EffectKind::kObjectCreate && effect.object_id == set.id()) definition = effect.bytes;
  }
  const auto decoded = VectorSet::DecodeDefinition(definition);
  REQUIRE(decoded.ok());
  auto replica = VectorSet::Create({1, nullptr, ""}, *decoded);
  REQUIRE(replica.ok());
  for (int pass = 0; pass < 2; ++pass) {
    for (const Effect& effect : log.effects) {
      if (effect.kind != EffectKind::kObjectChange || effect.object_id != set.id()) continue;
      REQUIRE((*replica)->ApplyChange(effect.bytes).ok());
    }
  }
  CHECK((*replica)->index().CheckInvariants().ok());
  const uint64_t digest = (*replica)->Digest();
  (*replica)->Unref();
  return digest;
}

TEST_CASE("an index file's failure is MISCONF with its name, all else an error as before") {
  CHECK(ErrorText(Status::FromErrno(ENOSPC, "allocate", "index/1/codes.02")) ==
        "MISCONF Errors writing to an index file: index/1/codes.02: allocate: No space left on device");
  CHECK(ErrorText(Status::FromErrno(EIO, "pwrite", "index/1/vectors.02.f32")) ==
        "MISCONF Errors writing to an index file: index/1/vectors.02.f32: pwrite: Input/output error");
  CHECK(ErrorText(Status::InvalidArgument("wrong")) == "ERR wrong");
}

TEST_CASE("VADD makes the set, VREM of the last element deletes it") {
  EngineFixture db;
  CHECK(db("VADD v VALUES 3 1 0 0 a") == ":1");
  CHECK(db("TYPE v") == "+vectorset");
  CHECK(db("VADD v VALUES 3 0 1 0 a") == ":0");
  CHECK(db("VADD v VALUES 3 0 0 1 b CAS EF 50 Q8 M 16") == ":1");
  CHECK(db("VCARD v") == ":2");
  CHECK(db("VDIM v") == ":3");
  CHECK(db("VISMEMBER v a") == ":1");
  CHECK(db("VISMEMBER v c") == ":0");
  CHECK(db("VEMB v a") == "[$0, $1, $0]");
  CHECK(db("VREM v c") == ":0");
  CHECK(db("VREM v a") == ":1");
  CHECK(db("EXISTS v") == ":1");
  CHECK(db("VREM v b") == ":1");
  CHECK(db("EXISTS v") == ":0");
  CHECK(db.engine().objects().size() == 0);
  // A declared index stays.
  CHECK(db("VSIM.CREATEINDEX d DIM 2") == "+OK");
  CHECK(db("VADD d VALUES 2 1 0 a") == ":1");
  CHECK(db("VREM d a") == ":1");
  CHECK(db("EXISTS d") == ":1");
  CHECK(db("VCARD d") == ":0");
  // One made by VADD goes by VSIM.DEL too.
  CHECK(db("VADD w VALUES 2 1 0 a") == ":1");
  CHECK(db("VSIM.DEL w a") == ":1");
  CHECK(db("EXISTS w") == ":0");
}

TEST_CASE("V* without a key, and on a key of another type") {
  EngineFixture db;
  CHECK(db("VSIM no VALUES 3 1 2 3") == "[]");
  CHECK(db("VSIM no NONSENSE x") == "[]");
  CHECK(db("VCARD no") == ":0");
  CHECK(db("VDIM no") == "-ERR key does not exist");
  CHECK(db("VREM no a") == ":0");
  CHECK(db("VEMB no a") == "nil");
  CHECK(db("VLINKS no a") == "nil");
  CHECK(db("VINFO no") == "nil");
  CHECK(db("VSETATTR no a {}") == ":0");
  CHECK(db("VGETATTR no a") == "nil");
  CHECK(db("VRANDMEMBER no") == "nil");
  CHECK(db("VRANDMEMBER no 3") == "[]");
  CHECK(db("VISMEMBER no a") == ":0");
  CHECK(db("VRANGE no - +") == "[]");
  CHECK(db("SET s x") == "+OK");
  for (const char* line :
       {"VADD s VALUES 1 1 a", "VSIM s VALUES 1 1", "VCARD s", "VDIM s", "VREM s a", "VEMB s a", "VLINKS s a", "VINFO s",
        "VSETATTR s a {}", "VGETATTR s a", "VRANDMEMBER s", "VISMEMBER s a", "VRANGE s - +"}) {
    INFO(line);
    CHECK(db(line).rfind("-WRONGTYPE", 0) == 0);
  }
}

TEST_CASE("wrong arguments of V* are Redis's errors and change nothing") {
  EngineFixture db;
  REQUIRE(db("VADD v VALUES 3 1 2 3 a") == ":1");
  const uint64_t digest = SetAt(db, "v").Digest();
  const std::map<std::string, std::string> table = {
      {"VADD v VALUES 3 1 2 a", "-ERR invalid vector specification"},
      {"VADD v VALUES 3 1 x 3 a", "-ERR invalid vector specification"},
      {"VADD v VALUES 3 nan 1 0 a", "-ERR invalid vector specification"},
      {"VADD v VALUES 3 inf 1 0 a", "-ERR invalid vector specification"},
      {"VADD v VALUES 0 1 a", "-ERR invalid vector specification"},
      {"VADD v FP32 abc a", "-ERR invalid vector specification"},
      {"VADD v WORDS 1 1 a", "-ERR invalid vector specification"},
      {"VADD v REDUCE 0 VALUES 3 1 2 3 a", "-ERR invalid vector specification"},
      {"VADD v REDUCE 4 VALUES 3 1 2 3 a", "-ERR invalid vector specification"},
      {"VADD v VALUES 3 1 2 3", "-ERR wrong number of arguments for 'vadd' command"},
      {"VADD v VALUES 2 1 2 a", "-ERR Vector dimension mismatch - got 2 but set has 3"},
      {"VADD v VALUES 3 1 2 3 a NOQUANT", "-ERR asked quantization mismatch with existing vector set"},
      {"VADD v VALUES 3 1 2 3 a M 8", "-ERR asked M value mismatch with existing vector set"},
      {"VADD v VALUES 3 1 2 3 a M 3", "-ERR invalid M"},
      {"VADD v VALUES 3 1 2 3 a M x", "-ERR invalid M"},
      {"VADD v VALUES 3 1 2 3 a EF 0", "-ERR invalid EF"},
      {"VADD v VALUES 3 1 2 3 a EF 1000001", "-ERR invalid EF"},
      {"VADD v VALUES 3 1 2 3 a EF", "-ERR invalid option after element"},
      {"VADD v VALUES 3 1 2 3 a b", "-ERR invalid option after element"},
      {"VADD v REDUCE 3 VALUES 3 1 2 3 b", "-ERR cannot add projection to existing set without projection"},
      {"VADD new FP32 abc a", "-ERR invalid vector specification"},
      {"VSIM v ELE nobody", "-ERR element not found in set"},
      {"VSIM v VALUES 2 1 2", "-ERR Vector dimension mismatch - got 2 but set has 3"},
      {"VSIM v VALUES 3 1 2", "-ERR invalid vector specification"},
      {"VSIM v WORDS 3", "-ERR invalid vector specification"},
      {"VSIM v ELE a COUNT 0", "-ERR invalid COUNT"},
      {"VSIM v ELE a COUNT x", "-ERR invalid COUNT"},
      {"VSIM v ELE a EPSILON 0", "-ERR invalid EPSILON"},
      {"VSIM v ELE a EPSILON nan", "-ERR invalid EPSILON"},
      {"VSIM v ELE a EF 0", "-ERR invalid EF"},
      {"VSIM v ELE a FILTER-EF -1", "-ERR invalid FILTER-EF"},
      {"VSIM v ELE a NONSENSE", "-ERR syntax error in VSIM command"},
      {"VSIM v ELE a COUNT", "-ERR syntax error in VSIM command"},
      {"VEMB v a NONSENSE", "-ERR invalid option"},
      {"VLINKS v a NONSENSE", "-ERR wrong number of arguments for 'vlinks' command"},
      {"VRANDMEMBER v x", "-ERR COUNT value is not an integer"},
      {"VRANDMEMBER v 1 2", "-ERR wrong number of arguments for 'vrandmember' command"},
      {"VRANGE v a +", "-ERR invalid start range format"},
      {"VRANGE v - b", "-ERR invalid end range format"},
      {"VRANGE v [ +", "-ERR invalid start range format"},
      {"VRANGE v + -", "-ERR '-' can only be used as first argument, '+' only as second"},
      {"VRANGE v - + x", "-ERR invalid COUNT value"},
      {"VREM v", "-ERR wrong number of arguments for 'vrem' command"},
      {"VSIM v ELE", "-ERR wrong number of arguments for 'vsim' command"},
  };
  for (const auto& [line, reply] : table) {
    INFO(line);
    CHECK(db(line) == reply);
  }
  CHECK(db("VSIM v ELE a FILTER (").rfind("-ERR syntax error in FILTER expression", 0) == 0);
  CHECK(db("EXISTS new") == ":0");
  CHECK(SetAt(db, "v").Digest() == digest);
}

TEST_CASE("VSIM gives (1 + cos) / 2, in the order of an exact scan, within EPSILON") {
  EngineFixture db;
  std::mt19937 random(7);
  std::map<std::string, std::vector<float>> model;
  for (int i = 0; i < 300; ++i) {
    const std::string id = "e" + std::to_string(i);
    model[id] = RandomVector(&random, 20);
    REQUIRE(db.Call({"VADD", "v", "FP32", Blob(model[id]), id}) == ":1");
  }
  for (int q = 0; q < 10; ++q) {
    const std::vector<float> query = RandomVector(&random, 20);
    std::vector<std::pair<double, std::string>> exact;
    for (const auto& [id, vector] : model) exact.emplace_back(-(1 + Cosine(query, vector)) / 2, id);
    std::sort(exact.begin(), exact.end());
    const auto reply = SplitArray(db.Call({"VSIM", "v", "FP32", Blob(query), "WITHSCORES", "COUNT", "7"}));
    REQUIRE(reply.size() == 14);
    for (size_t i = 0; i < 7; ++i) {
      CHECK(reply[2 * i] == "$" + exact[i].second);
      CHECK(std::stod(reply[2 * i + 1].substr(1)) == Approx(-exact[i].first).margin(1e-6));
    }
    const double epsilon = 1 + exact[4].first + 1e-4;  // five are nearer
    CHECK(SplitArray(db.Call({"VSIM", "v", "FP32", Blob(query), "TRUTH", "EPSILON", std::to_string(epsilon)})).size() == 5);
  }
  CHECK(db("VSIM v ELE e7 COUNT 1 WITHSCORES NOTHREAD") == "[$e7, $1]");
  CHECK(SplitArray(db("VSIM v ELE e7 COUNT 1000")).size() == 300);
}

TEST_CASE("attributes: VADD keeps them without SETATTR, VSIM shows and filters them") {
  EngineFixture db;
  CHECK(db("VADD v VALUES 2 1 0 a SETATTR {\"y\":1}") == ":1");
  CHECK(db("VADD v VALUES 2 0 1 b SETATTR {\"y\":2}") == ":1");
  CHECK(db("VADD v VALUES 2 1 1 c") == ":1");
  const std::string info = db("VINFO v");
  CHECK(info.rfind("[+quant-type, +int8, +hnsw-m, :16, +vector-dim, :2, +projection-input-dim, :0, +size, :3, +max-level", 0) == 0);
  CHECK(info.find("+attributes-count, :2, +vset-uid, :1, +hnsw-max-node-uid, :3]") != std::string::npos);
  CHECK(db("VADD v VALUES 2 1 0 a") == ":0");
  CHECK(db("VGETATTR v a") == "${\"y\":1}");
  CHECK(db("VSIM v VALUES 2 1 0 FILTER .y>=2 WITHATTRIBS") == "[$b, ${\"y\":2}]");
  CHECK(db("VSIM v VALUES 2 1 0 FILTER .y<2 FILTER-EF 0") == "[$a]");
  CHECK(db("VSIM v ELE c COUNT 1 WITHATTRIBS WITHSCORES") == "[$c, $1, nil]");
  CHECK(db("VADD v VALUES 2 1 0 a SETATTR ") == "-ERR invalid option after element");
  CHECK(db.Call({"VADD", "v", "VALUES", "2", "1", "0", "a", "SETATTR", ""}) == ":0");
  CHECK(db("VGETATTR v a") == "nil");
  CHECK(db("VSETATTR v a {\"z\":5}") == ":1");
  CHECK(db("VSIM.GETATTR v a") == "${\"z\":5}");
  CHECK(db("VSIM.SETATTR v nobody {}") == ":0");
  CHECK(db.Call({"VSETATTR", "v", "b", ""}) == ":1");
  CHECK(db("VGETATTR v b") == "nil");
  CHECK(db("VINFO v").find("+attributes-count, :1,") != std::string::npos);
  CHECK(SetAt(db, "v").index().CheckInvariants().ok());
  CHECK(ReplayedDigest(db.TakeLog(), SetAt(db, "v")) == SetAt(db, "v").Digest());
}

TEST_CASE("RESP3: maps where Redis has maps") {
  EngineFixture db({.resp_version = 3});
  CHECK(db("VADD v VALUES 2 1 0 a SETATTR {}") == "#t");
  CHECK(db("VADD v VALUES 2 1 0 a") == "#f");
  CHECK(db("VADD v VALUES 2 -1 0 b") == "#t");
  CHECK(db("VISMEMBER v a") == "#t");
  CHECK(db("VSIM v ELE a") == "[$a, $b]");
  CHECK(db("VSIM v ELE a WITHSCORES") == "{$a, ,1, $b, ,0}");
  CHECK(db("VSIM v ELE a WITHATTRIBS") == "{$a, ${}, $b, nil}");
  CHECK(db("VSIM v ELE a WITHATTRIBS WITHSCORES") == "{$a, [,1, ${}], $b, [,0, nil]}");
  CHECK(db("VSIM no ELE a WITHSCORES") == "[]");
  CHECK(db("VLINKS v a WITHSCORES") == "[{$b, ,0}]");
  CHECK(db("VLINKS v a") == "[[$b]]");
  CHECK(db("VEMB v a") == "[,1, ,0]");
  CHECK(db("VREM v a") == "#t");
}

TEST_CASE("VEMB RAW has Redis's forms") {
  EngineFixture db;
  CHECK(db("VADD q VALUES 2 3 -4 a") == ":1");
  CHECK(db("VADD f VALUES 2 3 4 a NOQUANT") == ":1");
  const std::string q = db("VEMB q a RAW");
  CHECK(q.rfind("[+int8, $", 0) == 0);
  const std::vector<std::string> parts = SplitArray(q);
  REQUIRE(parts.size() == 4);
  REQUIRE(parts[1].size() == 3);
  CHECK(static_cast<int>(static_cast<signed char>(parts[1][1])) == 95);  // 3 / 4 of 127
  CHECK(static_cast<int>(static_cast<signed char>(parts[1][2])) == -127);
  CHECK(parts[2] == "$5");
  CHECK(std::stod(parts[3].substr(1)) == Approx(0.8));
  CHECK(db("VEMB f a RAW") == "[+f32, $" + Blob({0.6f, 0.8f}) + ", $5]");
  CHECK(db("VEMB f a") == "[$3, $4]");
}

TEST_CASE("BIN: one bit a component, scores of the full vectors") {
  EngineFixture db;
  std::mt19937 random(2);
  std::vector<std::vector<float>> vectors;
  for (int i = 0; i < 150; ++i) {
    vectors.push_back(RandomVector(&random, 70));
    REQUIRE(db.Call({"VADD", "v", "FP32", Blob(vectors.back()), std::to_string(i), "BIN"}) == ":1");
  }
  CHECK(db("VINFO v").rfind("[+quant-type, +bin,", 0) == 0);
  CHECK(db.Call({"VADD", "v", "FP32", Blob(vectors[0]), "x"}) ==
        "-ERR asked quantization mismatch with existing vector set");
  const std::vector<std::string> raw = SplitArray(db("VEMB v 3 RAW"));
  REQUIRE(raw.size() == 3);
  CHECK(raw[0] == "+bin");
  REQUIRE(raw[1].size() == 1 + 16);  // two words of 64 bits
  for (size_t i = 0; i < 70; ++i) {
    CHECK((static_cast<unsigned char>(raw[1][1 + i / 8]) >> i % 8 & 1) == (vectors[3][i] > 0 ? 1 : 0));
  }
  const std::vector<float> query = RandomVector(&random, 70);
  size_t best = 0;
  for (size_t i = 1; i < vectors.size(); ++i) {
    if (Cosine(query, vectors[i]) > Cosine(query, vectors[best])) best = i;
  }
  const auto reply = SplitArray(db.Call({"VSIM", "v", "FP32", Blob(query), "COUNT", "1", "WITHSCORES"}));
  CHECK(reply[0] == "$" + std::to_string(best));
  CHECK(std::stod(reply[1].substr(1)) == Approx((1 + Cosine(query, vectors[best])) / 2).margin(1e-6));
}

TEST_CASE("a zero vector is as far from everything as a right angle") {
  EngineFixture db;
  CHECK(db("VADD v VALUES 2 1 1 a") == ":1");
  CHECK(db("VADD v VALUES 2 0 0 z") == ":1");
  CHECK(db("VADD v VALUES 2 -1 -1 b") == ":1");
  CHECK(db("VSIM v VALUES 2 2 2 WITHSCORES") == "[$a, $1, $z, $0.5, $b, $0]");
  CHECK(db("VSIM v VALUES 2 0 0 COUNT 1 WITHSCORES") == "[$a, $0.5]");
  CHECK(db("VEMB v z") == "[$0, $0]");
}

TEST_CASE("REDUCE projects, keeps angles about, and says what fits") {
  EngineFixture db;
  std::mt19937 random(9);
  std::vector<std::vector<float>> vectors;
  for (int i = 0; i < 60; ++i) {
    vectors.push_back(RandomVector(&random, 300));
    REQUIRE(db.Call({"VADD", "v", "REDUCE", "128", "FP32", Blob(vectors.back()), std::to_string(i)}) == ":1");
  }
  CHECK(db("VDIM v") == ":128");
  CHECK(db("VINFO v").find("+projection-input-dim, :300") != std::string::npos);
  const std::string wide = Blob(RandomVector(&random, 299));
  CHECK(db.Call({"VADD", "v", "REDUCE", "128", "FP32", wide, "x"}) ==
        "-ERR Input dimension mismatch for projection - got 299 but projection expects 300");
  CHECK(db.Call({"VSIM", "v", "FP32", wide}) ==
        "-ERR Input dimension mismatch for projection - got 299 but projection expects 300");
  CHECK(db.Call({"VADD", "v", "FP32", Blob(vectors[0]), "x"}) ==
        "-ERR Vector dimension mismatch - got 300 but set has 128");
  for (size_t i = 0; i < vectors.size(); ++i) {
    CHECK(db.Call({"VSIM", "v", "FP32", Blob(vectors[i]), "COUNT", "1"}) == "[$" + std::to_string(i) + "]");
  }
  // The same after a restart: the signs follow from the definition.
  const VectorSetDefinition& made = SetAt(db, "v").definition();
  const Projection again(300, 128, made.index.seed);
  CHECK(again.Apply(vectors[3]) == SetAt(db, "v").projection_or_null()->Apply(vectors[3]));
  CHECK(ReplayedDigest(db.TakeLog(), SetAt(db, "v")) == SetAt(db, "v").Digest());
  double worst = 0;
  for (size_t i = 1; i < vectors.size(); ++i) {
    const double before = Cosine(vectors[0], vectors[i]);
    worst = std::max(worst, std::abs(before - Cosine(again.Apply(vectors[0]), again.Apply(vectors[i]))));
  }
  CHECK(worst < 5 / std::sqrt(128.0));
}

std::string DefinitionBytes(EngineFixture& db, const std::string& name) {
  std::string bytes;
  SetAt(db, name).EncodeDefinition(&bytes);
  return bytes;
}

TEST_CASE("CREATEINDEX makes any set that VADD makes, from what INFO tells of it") {
  EngineFixture db;
  CHECK(db("VADD plain VALUES 4 1 2 3 4 a NOQUANT EF 77 M 9") == ":1");
  CHECK(db("VADD reduced REDUCE 2 VALUES 4 1 2 3 4 a") == ":1");
  CHECK(db("VADD square REDUCE 4 VALUES 4 1 2 3 4 a BIN") == ":1");
  CHECK(db("VSIM.INFO plain").find("$dim, :4, $input_dim, :0, $transient, :1, ") != std::string::npos);
  CHECK(db("VSIM.INFO reduced").find("$dim, :2, $input_dim, :4, $transient, :1, ") != std::string::npos);
  CHECK(db("VSIM.INFO square").find("$dim, :4, $input_dim, :4, $transient, :1, ") != std::string::npos);
  CHECK(db("VSIM.CREATEINDEX plain2 DIM 4 TYPE F32 EF_CONSTRUCTION 77 M 9 TRANSIENT") == "+OK");
  CHECK(db("VSIM.CREATEINDEX reduced2 DIM 2 TYPE Q8 INPUT_DIM 4 TRANSIENT") == "+OK");
  CHECK(db("VSIM.CREATEINDEX square2 DIM 4 TRANSIENT INPUT_DIM 4 TYPE BIN") == "+OK");
  for (const std::string name : {"plain", "reduced", "square"}) {
    CAPTURE(name);
    CHECK(DefinitionBytes(db, name + "2") == DefinitionBytes(db, name));
  }
  // The same projection, so the same vector; then it goes with its last element.
  CHECK(db("VADD reduced2 REDUCE 2 VALUES 4 1 2 3 4 a") == ":1");
  CHECK(db("VEMB reduced2 a") == db("VEMB reduced a"));
  CHECK(db("VSIM.SET reduced2 zero VALUES 2 0 0") == ":1");
  CHECK(db("VREM reduced2 zero") == ":1");
  CHECK(db("VREM reduced2 a") == ":1");
  CHECK(db("EXISTS reduced2") == ":0");
  // A declared one may project as well; it stays.
  CHECK(db("VSIM.CREATEINDEX declared DIM 2 INPUT_DIM 4") == "+OK");
  CHECK(db("VSIM.INFO declared").find("$dim, :2, $input_dim, :4, $transient, :0, ") != std::string::npos);
  CHECK(db("VADD declared REDUCE 2 VALUES 4 1 2 3 4 a") == ":1");
  CHECK(db("VREM declared a") == ":1");
  CHECK(db("EXISTS declared") == ":1");
  CHECK(db("VSIM.CREATEINDEX x DIM 2 INPUT_DIM 1") == "-ERR INPUT_DIM must be an integer from 2 to 32768");
  CHECK(db("VSIM.CREATEINDEX x DIM 2 INPUT_DIM 2 INPUT_DIM 2") == "-ERR syntax error");
  CHECK(db("VSIM.CREATEINDEX x DIM 2 TRANSIENT TRANSIENT") == "-ERR syntax error");
  CHECK(db("EXISTS x") == ":0");
}

TEST_CASE("VRANDMEMBER and VRANGE against a set of names") {
  EngineFixture db;
  std::set<std::string> names;
  for (int i = 0; i < 200; ++i) {
    const std::string name = "n" + std::to_string(i * 7 % 200);
    names.insert(name);
    REQUIRE(db.Call({"VADD", "v", "VALUES", "2", std::to_string(i), "1", name}) == ":1");
  }
  for (const char* count : {"1", "5", "150", "200", "1000"}) {
    const auto reply = SplitArray(db.Call({"VRANDMEMBER", "v", count}));
    std::set<std::string> seen;
    for (const std::string& item : reply) seen.insert(item.substr(1));
    CHECK(seen.size() == std::min<size_t>(200, std::stoul(count)));
    CHECK(seen.size() == reply.size());
    CHECK(std::includes(names.begin(), names.end(), seen.begin(), seen.end()));
  }
  CHECK(SplitArray(db("VRANDMEMBER v -500")).size() == 500);
  CHECK(db("VRANDMEMBER v 0") == "[]");
  CHECK(names.count(db("VRANDMEMBER v").substr(1)) == 1);
  const auto expect = [&](auto first, auto last, size_t count) {
    std::string text = "[";
    for (; first != last && count != 0; ++first, --count) text += (text.size() > 1 ? ", $" : "$") + *first;
    return text + "]";
  };
  const auto all = std::string::npos;
  CHECK(db("VRANGE v - +") == expect(names.begin(), names.end(), all));
  CHECK(db("VRANGE v - + 7") == expect(names.begin(), names.end(), 7));
  CHECK(db("VRANGE v - + 0") == "[]");
  CHECK(db("VRANGE v [n150 (n17") == expect(names.lower_bound("n150"), names.lower_bound("n17"), all));
  CHECK(db("VRANGE v (n150 [n17 3") == expect(names.upper_bound("n150"), names.upper_bound("n17"), 3));
  CHECK(db("VRANGE v [x +") == "[]");
}

TEST_CASE("an element past its end is gone at that instant, and removed with an effect") {
  EngineFixture db;
  REQUIRE(db("VSIM.CREATEINDEX i DIM 2") == "+OK");
  CHECK(db("VSIM.SET i a VALUES 2 1 0 EX 10") == ":1");
  CHECK(db("VSIM.SET i b VALUES 2 1 0.1 PX 500") == ":1");
  CHECK(db("VSIM.SET i c VALUES 2 1 0.2") == ":1");
  CHECK(db.Call({"VSIM.MSET", "i", "EX", "20", "ATTRS", "1", "d", "VALUES", "2", "1", "0.3", "{}"}) == ":1");
  CHECK(db("VSIM.TTL i a") == ":10");
  CHECK(db("VSIM.TTL i c") == ":-1");
  CHECK(db("VSIM.TTL i x") == ":-2");
  CHECK(db("VSIM.SEARCH i VALUES 2 1 0") == "[$a, $b, $c, $d]");
  db.Advance(499);
  CHECK(db("VSIM.EXISTS i b") == "[:1]");
  db.Advance(1);
  CHECK(db("VSIM.EXISTS i a b") == "[:1, :0]");
  CHECK(db("VSIM.GET i b") == "nil");
  CHECK(db("VSIM.TTL i b") == ":-2");
  CHECK(db("VSIM.SEARCH i VALUES 2 1 0") == "[$a, $c, $d]");
  CHECK(db("VCARD i") == ":3");
  CHECK(db("VRANGE i - +") == "[$a, $c, $d]");
  CHECK(SplitArray(db("VRANDMEMBER i 9")).size() == 3);
  CHECK(db("VSIM i VALUES 2 1 0") == "[$a, $c, $d]");
  CHECK(db("VLINKS i a").find("$b") == std::string::npos);
  CHECK(db("VSIM.EXPIRE i b EX 5") == ":0");
  CHECK(db("VSIM.DEL i b") == ":0");
  CHECK(db("VSIM.SET i b VALUES 2 1 0.1 XX") == "nil");
  CHECK(db("VSIM.SET i b VALUES 2 1 0.1 NX PX 100") == ":1");
  db.Advance(100);
  db.TakeLog();
  db.ExpireNow();
  const EffectLog log = db.TakeLog();
  REQUIRE(log.effects.size() == 1);
  CHECK(log.effects[0].kind == EffectKind::kObjectChange);
  CHECK(SetAt(db, "i").index().Info().expiring == 2);
  CHECK(SetAt(db, "i").index().Info().dead == 3);  // replaced, kept away by XX, ended
  CHECK(db("VSIM.EXPIRE i a PERSIST") == ":1");
  CHECK(db("VSIM.EXPIRE i a PERSIST") == ":0");
  CHECK(db("VSIM.EXPIRE i c EX 30") == ":1");
  CHECK(db("VSIM.SET i c VALUES 2 1 0.2") == ":0");  // as SET, without an end again
  CHECK(db("VSIM.TTL i c") == ":-1");
  db.Advance(60'000);
  db.ExpireNow();
  CHECK(db("VSIM.SEARCH i VALUES 2 1 0") == "[$a, $c]");
  CHECK(SetAt(db, "i").index().CheckInvariants().ok());
  for (const char* line :
       {"VSIM.SET i x VALUES 2 1 0 EX 0", "VSIM.SET i x VALUES 2 1 0 EX -1", "VSIM.SET i x VALUES 2 1 0 EX x",
        "VSIM.SET i x VALUES 2 1 0 EX", "VSIM.SET i x VALUES 2 1 0 EX 1 PX 1", "VSIM.EXPIRE i a",
        "VSIM.EXPIRE i a EX", "VSIM.EXPIRE i a EX 1 PERSIST", "VSIM.EXPIRE i a EX 99999999999999999",
        "VSIM.EXPIRE no a EX 1", "VSIM.TTL no a", "VSIM.SETATTR no a {}", "VSIM.GETATTR no a", "VSIM.ALTER no EF 5"}) {
    INFO(line);
    CHECK(db(line).rfind("-ERR", 0) == 0);
  }
}

TEST_CASE("many elements that end, with and without removal, against a model") {
  EngineFixture db;
  std::mt19937 random(21);
  REQUIRE(db("VSIM.CREATEINDEX i DIM 8") == "+OK");
  std::map<std::string, std::pair<std::vector<float>, int64_t>> model;  // 0: no end
  const auto alive = [&](int64_t end) { return end == 0 || end > db.now_ms(); };
  for (int step = 0; step < 1500; ++step) {
    const std::string id = "e" + std::to_string(random() % 120);
    const auto old = model.find(id);
    const bool there = old != model.end() && alive(old->second.second);
    const auto dice = random() % 10;
    const int64_t end = random() % 2 == 0 ? 0 : db.now_ms() + 1 + static_cast<int64_t>(random() % 400);
    const std::string end_text = std::to_string(end);
    if (dice < 5) {
      const std::vector<float> vector = RandomVector(&random, 8);
      const std::string reply = end == 0 ? db.Call({"VSIM.SET", "i", id, "FP32", Blob(vector)})
                                         : db.Call({"VSIM.SET", "i", id, "FP32", Blob(vector), "PXAT", end_text});
      CHECK(reply == (there ? ":0" : ":1"));
      model[id] = {vector, end};
    } else if (dice < 7) {
      CHECK(db.Call({"VSIM.DEL", "i", id}) == (there ? ":1" : ":0"));
      model.erase(id);
    } else if (dice < 8 && end != 0) {
      CHECK(db.Call({"VSIM.EXPIRE", "i", id, "PXAT", end_text}) == (there ? ":1" : ":0"));
      if (there) old->second.second = end;
    } else {
      db.Advance(static_cast<int64_t>(random() % 40));
      if (random() % 3 == 0) db.ExpireNow();
    }
    if (step % 50 != 0) continue;
    const std::vector<float> query = RandomVector(&random, 8);
    std::vector<std::pair<double, std::string>> exact;
    for (const auto& [name, value] : model) {
      if (alive(value.second)) exact.emplace_back(1 - Cosine(query, value.first), name);
    }
    std::sort(exact.begin(), exact.end());
    std::string expected = "[";
    for (size_t i = 0; i < std::min<size_t>(exact.size(), 10); ++i) expected += (i ? ", $" : "$") + exact[i].second;
    CHECK(db.Call({"VSIM.SEARCH", "i", "FP32", Blob(query)}) == expected + "]");
    CHECK(db("VCARD i") == ":" + std::to_string(exact.size()));
  }
  CHECK(SetAt(db, "i").index().CheckInvariants().ok());
  CHECK(ReplayedDigest(db.TakeLog(), SetAt(db, "i")) == SetAt(db, "i").Digest());
}

TEST_CASE("a set made by VADD goes with its last element's end") {
  EngineFixture db;
  CHECK(db("VADD v VALUES 2 1 0 a") == ":1");
  CHECK(db("VSIM.EXPIRE v a PX 100") == ":1");
  CHECK(db("RENAME v w") == "+OK");
  db.Advance(99);
  db.ExpireNow();
  CHECK(db("VCARD w") == ":1");
  db.Advance(1);
  CHECK(db("VCARD w") == ":0");
  db.ExpireNow();
  CHECK(db("EXISTS w") == ":0");
  CHECK(db.engine().objects().size() == 0);
}

TEST_CASE("ALTER changes what searches use by default, and is logged") {
  EngineFixture db;
  REQUIRE(db("VSIM.CREATEINDEX i DIM 2") == "+OK");
  CHECK(db("VSIM.ALTER i EF 33 RERANK 44") == "+OK");
  CHECK(db("VSIM.INFO i").find("$ef, :33, $rerank, :44") != std::string::npos);
  CHECK(db("VSIM.ALTER i RERANK 0") == "+OK");
  CHECK(db("VSIM.INFO i").find("$ef, :33, $rerank, :0") != std::string::npos);
  CHECK(db("VSIM.ALTER i EF 0").rfind("-ERR", 0) == 0);
  CHECK(db("VSIM.ALTER i EF 1 RERANK") == "-ERR syntax error");
  CHECK(db("VSIM.ALTER i EF 1 EF 2") == "-ERR syntax error");
  CHECK(ReplayedDigest(db.TakeLog(), SetAt(db, "i")) == SetAt(db, "i").Digest());
}

TEST_CASE("COPY of a vector set is a set of its own") {
  EngineFixture db;
  std::mt19937 random(4);
  for (int i = 0; i < 100; ++i) {
    db.Call({"VADD", "v", "FP32", Blob(RandomVector(&random, 16)), std::to_string(i), "SETATTR", "{\"n\":1}"});
  }
  for (int i = 0; i < 100; i += 3) db.Call({"VREM", "v", std::to_string(i)});
  db("VSIM.EXPIRE v 1 EX 100");
  db("EXPIRE v 1000");
  CHECK(db("COPY v w") == ":1");
  CHECK(SetAt(db, "w").Digest() == SetAt(db, "v").Digest());
  CHECK(SetAt(db, "w").index().CheckInvariants().ok());
  CHECK(db("TTL w") == ":1000");
  CHECK(db("VSIM.TTL w 1") == ":100");
  const uint64_t digest = SetAt(db, "v").Digest();
  CHECK(db("VREM w 1") == ":1");
  CHECK(db("VADD w VALUES 16 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 new") == ":1");
  CHECK(SetAt(db, "v").Digest() == digest);
  CHECK(db("COPY v w") == ":0");
  CHECK(db("COPY v w REPLACE") == ":1");
  CHECK(SetAt(db, "w").Digest() == digest);
  CHECK(db("COPY v v DB 3") == ":1");
  CHECK(SetAt(db, "v", 3).Digest() == digest);
  CHECK(db("COPY v v") == "-ERR source and destination objects are the same");
  db("SET s x");
  CHECK(db("COPY v s REPLACE") == ":1");
  CHECK(SetAt(db, "s").Digest() == digest);
  CHECK(db("COPY v x NONSENSE") == "-ERR syntax error");
  CHECK(db.engine().objects().size() == 4);
  db("MULTI");
  db("COPY v y");
  db("VCARD y");
  CHECK(db("EXEC") == "[:1, :66]");
}

TEST_CASE("COPY of a large vector set is made in the background: its client waits, others do not") {
  EngineFixture db;
  std::mt19937 random(12);
  REQUIRE(db("VSIM.CREATEINDEX v DIM 8") == "+OK");
  const auto set = [&](const std::string& id) {
    const std::string blob = Blob(RandomVector(&random, 8));
    const std::string_view words[] = {"VSIM.SET", "v", id, "FP32", blob};
    return db.Dispatch(1, 0, words);
  };
  for (int i = 0; i < 400; ++i) CHECK(set(std::to_string(i)) == ":1");
  {
    Upkeep upkeep(&db.engine());
    const auto copy = [&](std::string_view line) { return db.TryAs(0, line); };
    CHECK(copy("COPY v w") == std::nullopt);
    CHECK(copy("COPY v w") == std::nullopt);
    // Others are served, and what they change is in the copy, whenever it was made.
    CHECK(set("early") == ":1");
    CHECK(db.As(1, "VSIM.DEL v 5") == ":1");
    CHECK(db.As(1, "EXISTS w") == ":0");
    upkeep.Round();
    CHECK(set("late") == ":1");
    CHECK(db.As(1, "VSIM.DEL v 6 early") == ":2");
    CHECK(copy("COPY v w") == ":1");
    CHECK(SetAt(db, "w").Digest() == SetAt(db, "v").Digest());
    CHECK(SetAt(db, "w").index().CheckInvariants().ok());
    CHECK(db("COPY v w") == ":0");
    // The key is another one by the time: copied again.
    CHECK(copy("COPY v w REPLACE") == std::nullopt);
    upkeep.Round();
    CHECK(db.As(1, "RENAME v x") == "+OK");
    CHECK(db.As(1, "VADD v VALUES 8 1 2 3 4 5 6 7 8 only") == ":1");
    CHECK(copy("COPY v w REPLACE") == ":1");
    CHECK(SetAt(db, "w").index().Count() == 1);
    CHECK(db.As(1, "RENAME x v") == "+OK");
    // Gone by the time; the destination taken by the time.
    CHECK(copy("COPY v y") == std::nullopt);
    CHECK(db.As(1, "RENAME v x") == "+OK");
    CHECK(copy("COPY v y") == ":0");
    CHECK(db.As(1, "RENAME x v") == "+OK");
    CHECK(copy("COPY v y") == std::nullopt);
    CHECK(db.As(1, "SET y taken") == "+OK");
    upkeep.Round();
    CHECK(copy("COPY v y") == ":0");
    // Clients that go before and after it is made leave nothing.
    CHECK(copy("COPY v z") == std::nullopt);
    db.client(0).pending.reset();
    upkeep.Round();
    CHECK(copy("COPY v z") == std::nullopt);
    upkeep.Round();
    db.client(0).pending.reset();
    CHECK(db.engine().objects().size() == 2);
    CHECK(copy("COPY v z") == std::nullopt);
  }
  // The thread has ended meanwhile.
  CHECK(db("COPY v z") == "-ERR the copy was given up");
  CHECK(db("COPY v z") == ":1");
  CHECK(SetAt(db, "z").Digest() == SetAt(db, "v").Digest());
}

// Folders of objects on a simulated disk.
class SimHost : public ObjectHost {
 public:
  Result<std::string> MakeFolder(uint64_t object_id, ValueType) override {
    const std::string folder = "index" + std::to_string(object_id);
    HOTKV_RETURN_IF_ERROR(disk.MakeDir(folder));
    return folder;
  }
  void ForgetFolder(uint64_t object_id) override { forgotten.insert(object_id); }
  Result<uint64_t> PlanGeneration(uint64_t) override { return generation_++; }
  Status PublishGeneration(uint64_t, uint64_t) override { return Status::Ok(); }
  Env* env() override { return &disk; }

  SimEnv disk;
  std::set<uint64_t> forgotten;

 private:
  uint64_t generation_ = 1;
};

TEST_CASE("a full disk below COPY makes the server read-only, wherever it is met") {
  SimHost host;
  EngineFixture db;
  db.engine().SetObjectHost(&host);
  std::mt19937 random(14);
  int elements = 0;
  const auto add = [&](int count) {
    for (const int end = elements + count; elements < end; ++elements) {
      const std::string id = std::to_string(elements);
      const std::string blob = Blob(RandomVector(&random, 8));
      const std::string_view words[] = {"VSIM.SET", "v", id, "FP32", blob};
      REQUIRE(db.Dispatch(1, 0, words) == ":1");  // client 0 may be waiting for a copy
    }
  };
  REQUIRE(db("VSIM.CREATEINDEX v DIM 8") == "+OK");
  add(100);
  const uint64_t source = SetAt(db, "v").id();
  const auto is_refused = [&](const std::optional<std::string>& reply) {
    REQUIRE(reply);
    INFO(*reply);
    const std::string text = "-MISCONF Errors writing to an index file: ";
    REQUIRE(reply->rfind(text, 0) == 0);
    CHECK(db.engine().disk_denied.load());
    CHECK(text + db.engine().disk_denied_reason() == *reply);
    CHECK(reply->find("No space left on device") != std::string::npos);
    CHECK(db("SET k x").rfind("-MISCONF", 0) == 0);
    CHECK(db("EXISTS w") == ":0");
    // What there is of the copy goes: nothing but the source is left.
    CHECK(!host.forgotten.contains(source));
    CHECK(host.forgotten.size() == db.engine().objects().next_id() - 2);
    host.disk.SetCapacity(UINT64_MAX);
    db.engine().SetDiskDenied("");
    CHECK(db("SET k x") == "+OK");
  };
  const auto fill_disk = [&] { host.disk.SetCapacity(host.disk.UsedBytes()); };

  // While the files are copied: by the client's own thread, inside EXEC, in the background.
  fill_disk();
  is_refused(db("COPY v w"));
  CHECK(db("MULTI") == "+OK");
  CHECK(db("COPY v w") == "+QUEUED");
  fill_disk();
  const std::string exec = db("EXEC");
  is_refused(exec.substr(1, exec.size() - 2));
  Upkeep upkeep(&db.engine());
  CHECK(db.TryAs(0, "COPY v w") == std::nullopt);
  fill_disk();
  upkeep.Round();
  is_refused(db.TryAs(0, "COPY v w"));
  // Under the lock: what has changed since is more than the copy's files have room for.
  CHECK(db.TryAs(0, "COPY v w") == std::nullopt);
  upkeep.Round();
  add(20'000);
  fill_disk();
  is_refused(db.TryAs(0, "COPY v w"));
  // With room again.
  CHECK(db.TryAs(0, "COPY v w") == std::nullopt);
  upkeep.Round();
  CHECK(db.TryAs(0, "COPY v w") == ":1");
  CHECK(SetAt(db, "w").Digest() == SetAt(db, "v").Digest());
}

void RunToEnd(EngineFixture& db, Upkeep* upkeep) {
  for (int round = 0; round < 20000; ++round) {
    upkeep->Round();
    db.ExpireNow();
    if (db("VSIM.INFO i").find("rebuild_percent, :-1") != std::string::npos) return;
  }
  FAIL("the rebuild does not end");
}

TEST_CASE("a rebuild changes type and links, keeps content, ends, fields and name, beside writes") {
  EngineFixture db;
  Upkeep upkeep(&db.engine());
  std::mt19937 random(31);
  REQUIRE(db("VSIM.CREATEINDEX i DIM 16 METRIC L2") == "+OK");
  std::map<std::string, std::vector<float>> model;
  const auto set = [&](const std::string& id) {
    model[id] = RandomVector(&random, 16);
    db.Call({"VSIM.SET", "i", id, "FP32", Blob(model[id]), "ATTR", "{\"a\":" + id.substr(1) + "}"});
  };
  for (int i = 0; i < 1500; ++i) set("e" + std::to_string(i));
  set("f8");
  set("f9");
  db("VSIM.EXPIRE i f8 EX 500");
  db("VSIM.ALTER i EF 55");
  db("EXPIRE i 5000");
  const uint64_t before = SetAt(db, "i").id();
  CHECK(db("VSIM.REBUILD i M 8 TYPE Q8 EF_CONSTRUCTION 60") == "+OK");
  CHECK(db("VSIM.REBUILD i") == "-ERR the index is being rebuilt already");
  for (int round = 0; round < 200; ++round) {
    upkeep.Round();
    const std::string id = "e" + std::to_string(random() % 1600);
    if (random() % 3 == 0) {
      db.Call({"VSIM.DEL", "i", id});
      model.erase(id);
    } else {
      set(id);
    }
    if (round == 100) db("VSIM.SETATTR i f9 {\"changed\":1}");
  }
  db("RENAME i j");
  db("RENAME j i");
  RunToEnd(db, &upkeep);
  VectorSet& rebuilt = SetAt(db, "i");
  CHECK(rebuilt.id() != before);
  CHECK(rebuilt.index().CheckInvariants().ok());
  const IndexOptions options = rebuilt.index().options();
  CHECK(options.type == ElementType::kQ8);
  CHECK(options.m == 8);
  CHECK(options.ef_construction == 60);
  CHECK(options.ef_default == 55);
  CHECK(db("TTL i") == ":5000");
  CHECK(db("VSIM.TTL i f8") == ":500");
  CHECK(db("VSIM.GETATTR i f9") == "${\"changed\":1}");
  CHECK(rebuilt.index().Count() == model.size());
  for (const auto& [id, vector] : model) {
    const auto stored = rebuilt.index().GetVector(id);
    REQUIRE(stored.ok());
    CHECK(*stored == vector);
  }
  CHECK(db.engine().objects().size() == 1);
  CHECK(ReplayedDigest(db.TakeLog(), rebuilt) != 0);
  for (const char* line : {"VSIM.REBUILD i M 1", "VSIM.REBUILD i M", "VSIM.REBUILD i TYPE X", "VSIM.REBUILD i M 8 M 8",
                           "VSIM.REBUILD i EF 5", "VSIM.REBUILD no"}) {
    INFO(line);
    CHECK(db(line).rfind("-ERR", 0) == 0);
  }
  CHECK(db("VSIM.INFO i").find("rebuild_percent, :-1") != std::string::npos);
}

// What a scan returned, each name once.
class Scan {
 public:
  explicit Scan(EngineFixture* db) : db_(*db) {}
  bool done() const { return started_ && cursor_ == "0"; }
  void Step() {
    started_ = true;
    const std::string reply = db_.Call({"VSIM.SCAN", "i", cursor_, "COUNT", "40"});
    REQUIRE(reply.starts_with("[$"));
    const size_t names = reply.find(", [");
    cursor_ = reply.substr(2, names - 2);
    for (size_t at = reply.find('$', names); at != std::string::npos; at = reply.find('$', at + 1)) {
      const size_t end = reply.find_first_of(",]", at);
      CHECK(seen_.insert(reply.substr(at + 1, end - at - 1)).second);
    }
  }
  const std::set<std::string>& seen() const { return seen_; }

 private:
  EngineFixture& db_;
  std::string cursor_ = "0";
  bool started_ = false;
  std::set<std::string> seen_;
};

TEST_CASE("a VSIM.SCAN returns what is there throughout, over new vectors, deletions and rebuilds") {
  EngineFixture db;
  Upkeep upkeep(&db.engine());
  std::mt19937 random(7);
  REQUIRE(db("VSIM.CREATEINDEX i DIM 4") == "+OK");
  const auto set = [&](const std::string& id) {
    db.Call({"VSIM.SET", "i", id, "FP32", Blob(RandomVector(&random, 4))});
  };
  std::set<std::string> there;
  for (int i = 0; i < 1000; ++i) there.insert("e" + std::to_string(i));
  for (const std::string& id : there) set(id);
  for (int i = 0; i < 300; ++i) set("f" + std::to_string(i));
  Scan scan(&db);
  int rebuilds = 0;
  int steps = 0;
  for (; !scan.done(); ++steps) {
    scan.Step();
    // Those that go leave their slots to those that are set anew, and to new ones.
    for (int i = 0; i < 20; ++i) db.Call({"VSIM.DEL", "i", "f" + std::to_string(random() % 300)});
    for (int i = 0; i < 30; ++i) set("e" + std::to_string(random() % 1000));
    for (int i = 0; i < 20; ++i) set("g" + std::to_string(random() % 3000));
    while (SetAt(db, "i").index().RepairStep(4096, RepairWhen::kNow)) {
    }
    if (steps % 10 != 5) continue;
    CHECK(db(steps % 20 == 5 ? "VSIM.REBUILD i M 8" : "VSIM.REBUILD i TYPE Q8") == "+OK");
    RunToEnd(db, &upkeep);
    ++rebuilds;
  }
  CHECK(rebuilds >= 2);
  CHECK(steps > 25);
  CHECK(std::includes(scan.seen().begin(), scan.seen().end(), there.begin(), there.end()));
  // At rest it is the whole set, whatever COUNT is; in an index of one element, and of none, too.
  for (const char* count : {"1", "7", "100000"}) {
    std::string cursor = "0";
    size_t names = 0;
    do {
      const std::string reply = db.Call({"VSIM.SCAN", "i", cursor, "COUNT", count});
      cursor = reply.substr(2, reply.find(',') - 2);
      names += static_cast<size_t>(std::count(reply.begin(), reply.end(), '$')) - 1;
    } while (cursor != "0");
    CHECK(":" + std::to_string(names) == db("VSIM.COUNT i"));
  }
  db("VSIM.CREATEINDEX one DIM 4");
  CHECK(db("VSIM.SCAN one 0") == "[$0, []]");
  db("VSIM.SET one a VALUES 4 1 2 3 4");
  CHECK(db("VSIM.SCAN one 0") == "[$0, [$a]]");
}

TEST_CASE("a rebuild whose key is deleted, or that is given up, leaves nothing") {
  EngineFixture db;
  {
    Upkeep upkeep(&db.engine());
    for (const char* name : {"a", "b", "c"}) db.Call({"VADD", "i", "VALUES", "2", "1", "1", name});
    CHECK(db("VSIM.REBUILD i") == "+OK");
    for (int round = 0; round < 3; ++round) upkeep.Round();
    CHECK(db("DEL i") == ":1");
    for (int round = 0; round < 10; ++round) {
      upkeep.Round();
      db.ExpireNow();
    }
    CHECK(db("EXISTS i") == ":0");
    CHECK(db.engine().objects().size() == 0);
    for (const char* name : {"a", "b", "c"}) db.Call({"VADD", "i", "VALUES", "2", "1", "1", name});
    CHECK(db("VSIM.REBUILD i") == "+OK");
    upkeep.Round();
  }
  CHECK(db("VCARD i") == ":3");
  CHECK(db("VSIM.REBUILD i") == "-ERR no background thread is running");
  CHECK(db("VSIM.INFO i").find("rebuild_percent, :-1") != std::string::npos);
}

}  // namespace
}  // namespace hotkv
