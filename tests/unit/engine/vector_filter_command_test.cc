// VSIM filters, fields and what goes with them, through the commands: answers against a model, errors, replay.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "engine/types/vector_set.h"
#include "tests/support/engine_fixture.h"

namespace hotkv {
namespace {

// Elements e0 ... on a line through the plane, with attributes.
void Fill(EngineFixture* db, const std::string& index, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string json = "{\"n\":" + std::to_string(i) + ",\"g\":\"" + (i % 3 == 0 ? "third" : "rest") + "\"}";
    CHECK(db->Call({"VSIM.SET", index, "e" + std::to_string(i), "VALUES", "2", "1", std::to_string(i), "ATTR", json}) == ":1");
  }
}

TEST_CASE("VSIM.SEARCH with a filter") {
  EngineFixture db;
  CHECK(db("VSIM.CREATEINDEX i DIM 2 METRIC L2 FIELDS 2 n NUMERIC g TAG") == "+OK");
  Fill(&db, "i", 30);
  CHECK(db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "K", "3", "FILTER", ".n >= 10 and .g == 'third'"}) == "[$e12, $e15, $e18]");
  CHECK(db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "FILTER", ".n > 27"}) == "[$e28, $e29]");
  CHECK(db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "FILTER", ".n > 270"}) == "[]");
  CHECK(db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "FILTER", ".n in [4, 7]", "OFFSET", "1", "WITHATTR"}) ==
        "[$e7, ${\"n\":7,\"g\":\"rest\"}]");
  CHECK(db.Call({"VSIM.SEARCH", "i", "ELE", "e20", "K", "2", "RANGE", "3.5", "FILTER", "not (.n == 20)", "EXACT"}) == "[$e19, $e21]");
  CHECK(db.Call({"VSIM.MSEARCH", "i", "2", "VALUES", "2", "1", "0", "ELE", "e9", "K", "1", "FILTER", ".g != 'third'"}) ==
        "[[$e1], [$e8]]");
  // A value equal to a keyword is a value.
  CHECK(db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "FILTER", "FILTER"}) ==
        "-ERR filter: expected a value at position 1");
  CHECK(db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "FILTER"}) == "-ERR syntax error");
  CHECK(db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "FILTER", "1", "FILTER", "1"}) == "-ERR syntax error");
  CHECK(db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "FILTER", ".n == "}) ==
        "-ERR filter: expected a value at position 7");
  CHECK(db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "PLAN", "fast"}) == "-ERR PLAN must be SCAN, WALK or TWOHOP");
  for (const char* plan : {"scan", "WALK", "TwoHop"}) {
    CHECK(db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "K", "2", "FILTER", ".g == 'third'", "PLAN", plan}) ==
          "[$e0, $e3]");
  }
}

TEST_CASE("VSIM.SEARCH EXPLAIN") {
  EngineFixture db;
  CHECK(db("VSIM.CREATEINDEX i DIM 2 METRIC L2 FIELDS 1 n NUMERIC") == "+OK");
  Fill(&db, "i", 30);
  const std::string listed = db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "FILTER", ".n < 6", "EXPLAIN"});
  CHECK(listed ==
        "[$plan, $scan, $attempts, :1, $estimated_matches, :6, $matches, :6, $estimated_by, $fields, $fields_complete, :1, "
        "$tests, :60, $attributes_read, :0, $nodes_visited, :0, $distances, :6]");
  const std::string by_json = db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "FILTER", ".g == 'third'", "EXPLAIN"});
  CHECK(by_json.find("$matches, :10") != std::string::npos);
  CHECK(by_json.find("$estimated_by, $sample, $fields_complete, :0") != std::string::npos);
  const std::string all = db.Call({"VSIM.SEARCH", "i", "VALUES", "2", "1", "0", "EXPLAIN", "PLAN", "WALK"});
  CHECK(all.find("$plan, $walk") != std::string::npos);
  CHECK(all.find("$matches, :30") != std::string::npos);
}

TEST_CASE("VSIM.COUNT, DELWHERE and SCAN") {
  EngineFixture db;
  CHECK(db("VSIM.CREATEINDEX i DIM 2 METRIC L2 FIELDS 2 n NUMERIC g TAG") == "+OK");
  Fill(&db, "i", 300);
  CHECK(db("VSIM.COUNT i") == ":300");
  CHECK(db.Call({"VSIM.COUNT", "i", "FILTER", ".g == 'third'"}) == ":100");
  CHECK(db.Call({"VSIM.COUNT", "i", "FILTER", ".n < 9 or .g == 'none'"}) == ":9");
  CHECK(db.Call({"VSIM.COUNT", "i", "FILTER", ".other == 1"}) == ":0");
  CHECK(db.Call({"VSIM.DELWHERE", "i", "FILTER", ".g == 'third' and .n >= 30"}) == ":90");
  CHECK(db.Call({"VSIM.DELWHERE", "i", "FILTER", ".g == 'third' and .n >= 30"}) == ":0");
  CHECK(db("VSIM.COUNT i") == ":210");
  CHECK(db("VSIM.EXISTS i e27 e30 e31") == "[:1, :0, :1]");
  std::set<std::string> seen;
  std::string cursor = "0";
  int calls = 0;
  do {
    const std::string reply = db.Call({"VSIM.SCAN", "i", cursor, "COUNT", "25", "FILTER", ".g == 'rest'", "MATCH", "e*1"});
    REQUIRE(reply.starts_with("[$"));
    cursor = reply.substr(2, reply.find(',') - 2);
    for (size_t at = reply.find("$e"); at != std::string::npos; at = reply.find("$e", at + 1)) {
      const size_t end = reply.find_first_of(",]", at);
      CHECK(seen.insert(reply.substr(at + 1, end - at - 1)).second);
    }
    ++calls;
  } while (cursor != "0");
  CHECK(calls >= 8);  // of 210 elements
  std::set<std::string> expected;
  for (int i = 1; i < 300; i += 10) {
    if (i % 3 != 0) expected.insert("e" + std::to_string(i));
  }
  CHECK(seen == expected);
  const std::string all = db("VSIM.SCAN i 0 COUNT 210");
  CHECK(all.starts_with("[$0, ["));
  CHECK(std::count(all.begin(), all.end(), '$') == 211);
}

TEST_CASE("filters and fields: bad input changes nothing") {
  EngineFixture db;
  CHECK(db("VSIM.CREATEINDEX i DIM 2 FIELDS") == "-ERR syntax error");
  CHECK(db("VSIM.CREATEINDEX i DIM 2 FIELDS 1 n") == "-ERR a field is TAG or NUMERIC");
  CHECK(db("VSIM.CREATEINDEX i DIM 2 FIELDS 1 n TEXT") == "-ERR a field is TAG or NUMERIC");
  CHECK(db("VSIM.CREATEINDEX i DIM 2 FIELDS 33") == "-ERR number of fields must be an integer from 0 to 32");
  CHECK(db("VSIM.CREATEINDEX i DIM 2 FIELDS 2 n TAG n NUMERIC") == "-ERR field 'n' is named twice");
  CHECK(db("VSIM.CREATEINDEX i DIM 2 FIELDS 1 a.b TAG").starts_with("-ERR a field's name must be"));
  CHECK(db("EXISTS i") == ":0");
  CHECK(db("VSIM.CREATEINDEX i DIM 2 FIELDS 1 FIELDS TAG METRIC L2") == "+OK");
  CHECK(db("SET s x") == "+OK");
  for (const std::string command : {"VSIM.COUNT k", "VSIM.DELWHERE k FILTER 1", "VSIM.SCAN k 0"}) {
    std::string missing = command;
    CHECK(db(missing) == "-ERR no such index");
    CHECK(db(missing.replace(missing.find(" k"), 2, " s")).starts_with("-WRONGTYPE"));
  }
  CHECK(db("VSIM.COUNT i FILTER") == "-ERR syntax error");
  CHECK(db("VSIM.COUNT i WHERE 1") == "-ERR syntax error");
  CHECK(db("VSIM.COUNT i FILTER 1 2") == "-ERR syntax error");
  CHECK(db("VSIM.COUNT i FILTER (1") == "-ERR filter: a '(' that nothing closes at position 1");
  CHECK(db("VSIM.DELWHERE i WHERE 1") == "-ERR syntax error");
  CHECK(db("VSIM.DELWHERE i FILTER )") == "-ERR filter: expected a value at position 1");
  CHECK(db("VSIM.SCAN i x") == "-ERR invalid cursor");
  CHECK(db("VSIM.SCAN i -1") == "-ERR invalid cursor");
  CHECK(db("VSIM.SCAN i 99999999999") == "-ERR invalid cursor");
  CHECK(db("VSIM.SCAN i 0 COUNT 0").starts_with("-ERR COUNT must be"));
  CHECK(db("VSIM.SCAN i 0 MATCH a MATCH b") == "-ERR syntax error");
  CHECK(db("VSIM.SCAN i 5000") == "[$0, []]");
  CHECK(db("VSIM.ALTER i FIELDS 1 x") == "-ERR a field is TAG or NUMERIC");
}

TEST_CASE("VSIM.ALTER FIELDS, and fields in INFO") {
  EngineFixture db;
  CHECK(db("VSIM.CREATEINDEX i DIM 2 METRIC L2") == "+OK");
  Fill(&db, "i", 50);
  CHECK(db("VSIM.INFO i").find("$fields, [], $fields_ready, :1") != std::string::npos);
  CHECK(db("VSIM.ALTER i FIELDS 2 n NUMERIC g TAG") == "+OK");
  CHECK(db("VSIM.INFO i").find("$fields, [$n, $NUMERIC, $g, $TAG], $fields_ready, :0") != std::string::npos);
  CHECK(db.Call({"VSIM.COUNT", "i", "FILTER", ".n < 20 and .g == 'third'"}) == ":7");
  CHECK(db("VSIM.ALTER i FIELDS 0") == "+OK");
  CHECK(db("VSIM.INFO i").find("$fields, [], $fields_ready, :1") != std::string::npos);
  CHECK(db.Call({"VSIM.COUNT", "i", "FILTER", ".n < 20 and .g == 'third'"}) == ":7");
}

TEST_CASE("definitions carry fields, and changes of them replay") {
  VectorSetDefinition definition;
  definition.index.dim = 2;
  definition.fields = {{"n", FieldKind::kNumeric}, {"g", FieldKind::kTag}};
  auto made = VectorSet::Create({}, definition);
  REQUIRE(made.ok());
  ObjectRef<VectorSet> set = ObjectRef<VectorSet>::Adopt(*made);
  std::string bytes;
  set->EncodeDefinition(&bytes);
  auto decoded = VectorSet::DecodeDefinition(bytes);
  REQUIRE(decoded.ok());
  CHECK(decoded->fields == definition.fields);
  CHECK_FALSE(VectorSet::DecodeDefinition(bytes.substr(0, bytes.size() - 1)).ok());
  CHECK(set->ApplyChange(VectorSet::FieldsChange({{"x", FieldKind::kTag}})).ok());
  CHECK(set->index().fields() == std::vector<FieldSpec>{{"x", FieldKind::kTag}});
  CHECK(set->ApplyChange(VectorSet::FieldsChange({})).ok());
  CHECK(set->index().fields().empty());
  CHECK_FALSE(set->ApplyChange(VectorSet::FieldsChange({{"x", FieldKind::kTag}}).substr(0, 2)).ok());
}

}  // namespace
}  // namespace hotkv
