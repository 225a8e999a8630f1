// NDJSON: lines against a general JSON library, round trips of random records, and faulty lines by name and place.
#include "tools/hotkv_tool/ndjson.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "tests/unit/tools/tool_support.h"

namespace hotkv {
namespace {

OwnedRecord Parse(std::string_view text) {
  NdjsonLine line;
  const Status status = ParseNdjsonLine(text, &line);
  INFO(text << ": " << status.ToString());
  REQUIRE(status.ok());
  return OwnedRecord::Of(line.record);
}

std::string ErrorOf(std::string_view text) {
  NdjsonLine line;
  const Status status = ParseNdjsonLine(text, &line);
  INFO(text);
  REQUIRE_FALSE(status.ok());
  return status.message();
}

std::string Write(const OwnedRecord& record) {
  std::string text;
  REQUIRE(AppendNdjsonLine(record.View(), &text).ok());
  return text;
}

TEST_CASE("ndjson: the forms of the page") {
  OwnedRecord r = Parse(R"({"db":3,"key":"k","type":"string","expire_at_ms":1764500000000,"value":"v"})");
  CHECK(r.kind == RecordKind::kString);
  CHECK(r.db == 3);
  CHECK(r.key == "k");
  CHECK(r.value == "v");
  CHECK(r.expire_at_ms == 1764500000000);

  r = Parse(R"({ "value" : {"base64":"AP8="}, "key": "\u00e4\n" })");
  CHECK(r.kind == RecordKind::kString);
  CHECK(r.db == 0);
  CHECK(r.key == "\xc3\xa4\n");
  CHECK(r.value == std::string("\0\xff", 2));
  CHECK(r.expire_at_ms == 0);

  r = Parse(R"({"key":"d","type":"vectorset","value":{"dim":3,"metric":"L2","type":"F32","m":8,"ef_construction":9,"ef":10,"rerank":11}})");
  CHECK(r.kind == RecordKind::kIndex);
  CHECK(r.index == IndexDefinition{3, "L2", "F32", 8, 9, 10, 11});

  r = Parse(R"({"key":"d","type":"vectorset","value":{"dim":3,"input_dim":8,"transient":true}})");
  CHECK(r.index.input_dim == 8);
  CHECK(r.index.transient);
  r = Parse(R"({"key":"d","type":"vectorset","value":{"dim":3,"transient":false}})");
  CHECK_FALSE(r.index.transient);
  CHECK(r.index.input_dim == 0);

  r = Parse(R"({"key":"d","type":"vectorset","value":{"dim":3,"fields":{"g":"TAG","year":"NUMERIC"}}})");
  CHECK(r.index.fields == std::vector<FieldSpec>{{"g", FieldKind::kTag}, {"year", FieldKind::kNumeric}});

  r = Parse(R"({"index":"d","id":"a","vector":[1,0,-0.5e1],"attr":{"z":1,"a":[true,null]}})");
  CHECK(r.kind == RecordKind::kVector);
  CHECK(r.key == "d");
  CHECK(r.id == "a");
  CHECK(r.vector == std::vector<float>{1, 0, -5});
  CHECK(r.attr == R"({"z":1,"a":[true,null]})");

  r = Parse(R"({"index":"d","id":"a","vector":{"base64":"AACAPwAAAEA="},"attr":"{ \"x\": 1 }"})");
  CHECK(r.vector == std::vector<float>{1, 2});
  CHECK(r.attr == R"({ "x": 1 })");
}

TEST_CASE("ndjson: what is wrong is named") {
  using Catch::Matchers::Contains;
  CHECK_THAT(ErrorOf("nonsense"), Contains("not JSON"));
  CHECK_THAT(ErrorOf(R"({"key":"k","value":"v")"), Contains("not JSON"));
  CHECK_THAT(ErrorOf("\"\xff\""), Contains("not JSON"));
  CHECK_THAT(ErrorOf("[]"), Contains("not a JSON object"));
  CHECK_THAT(ErrorOf(R"({"key":"k","value":"v","expires":1})"), Contains("unknown member \"expires\""));
  CHECK_THAT(ErrorOf(R"({"value":"v"})"), Contains("\"key\" is missing"));
  CHECK_THAT(ErrorOf(R"({"key":"k"})"), Contains("\"value\" is missing"));
  CHECK_THAT(ErrorOf(R"({"key":"k","value":5})"), Contains("\"value\" must be a string"));
  CHECK_THAT(ErrorOf(R"({"key":"k","value":{"base64":"x"}})"), Contains("not base64"));
  CHECK_THAT(ErrorOf(R"({"key":"k","value":{"base64":"eA==","more":1}})"), Contains("\"value\" must be"));
  CHECK_THAT(ErrorOf(R"({"key":"k","type":"stream","value":"v"})"), Contains("type \"stream\" is not known"));
  CHECK_THAT(ErrorOf(R"({"key":"k","value":"v","db":-1})"), Contains("\"db\" must be an integer"));
  CHECK_THAT(ErrorOf(R"({"key":"k","value":"v","db":1024})"), Contains("\"db\" must be an integer from 0 to 1023"));
  CHECK_THAT(ErrorOf(R"({"key":"k","value":"v","expire_at_ms":1.5})"), Contains("\"expire_at_ms\""));
  CHECK_THAT(ErrorOf(R"({"key":"k","value":"v","expire_at_ms":9223372036854775808})"), Contains("\"expire_at_ms\""));
  CHECK_THAT(ErrorOf(R"({"key":"k","type":"vectorset","value":{"metric":"L2"}})"), Contains("\"dim\" is missing"));
  CHECK_THAT(ErrorOf(R"({"key":"k","type":"vectorset","value":{"dim":32769}})"), Contains("\"dim\""));
  CHECK_THAT(ErrorOf(R"({"key":"k","type":"vectorset","value":{"dim":3,"input_dim":2}})"), Contains("\"dim\" or more"));
  CHECK_THAT(ErrorOf(R"({"key":"k","type":"vectorset","value":{"dim":3,"input_dim":32769}})"), Contains("\"input_dim\""));
  CHECK_THAT(ErrorOf(R"({"key":"k","type":"vectorset","value":{"dim":3,"transient":1}})"), Contains("true or false"));
  CHECK_THAT(ErrorOf(R"({"key":"k","type":"vectorset","value":{"dim":3,"fields":["g"]}})"), Contains("\"fields\""));
  CHECK_THAT(ErrorOf(R"({"key":"k","type":"vectorset","value":{"dim":3,"fields":{"g":"TEXT"}}})"), Contains("TAG or NUMERIC"));
  CHECK_THAT(ErrorOf(R"({"key":"k","type":"vectorset","value":{"dim":3,"fields":{"a.b":"TAG"}}})"), Contains("name"));
  CHECK_THAT(ErrorOf(R"({"index":"d","id":"a","vector":[1,"2"]})"), Contains("no number"));
  CHECK_THAT(ErrorOf(R"({"index":"d","id":"a","vector":[1,1e39]})"), Contains("beyond float32"));
  CHECK_THAT(ErrorOf(R"({"index":"d","id":"a","vector":[]})"), Contains("empty"));
  CHECK_THAT(ErrorOf(R"({"index":"d","id":"a","vector":{"base64":"AAA="}})"), Contains("whole float32"));
  CHECK_THAT(ErrorOf(R"({"index":"d","id":"a","vector":{"base64":"AADAfw=="}})"), Contains("beyond float32"));
  CHECK_THAT(ErrorOf(R"({"index":"d","id":"a","vector":[1],"attr":7})"), Contains("\"attr\""));
  CHECK_THAT(ErrorOf(R"({"index":"d","id":"a","vector":[1],"attr":)" + std::string(100000, '[')), Contains("nested"));
}

TEST_CASE("ndjson: attributes come back byte for byte, whatever they are") {
  const std::string attrs[] = {
      "{}", R"({"a":1})", R"({"b":1,"a":2})", R"({ "a": 1 })", R"({"a":1.0,"b":1e5,"c":100000.0})", R"({"a":1,"a":2})",
      R"({"base64":"eA=="})", R"({"base64":1})", R"("text")", "[1]", "not json", "\xff\xfe", R"({"a":"\u0041"})",
      "{\"\xc3\xa4\":\"\xf0\x9f\x98\x80\"}", R"({"big":123456789012345678901234567890})", R"({"x":-0.0})",
      "{\"deep\":" + std::string(80, '[') + std::string(80, ']') + "}"};
  for (const std::string& attr : attrs) {
    OwnedRecord record{RecordKind::kVector, 1, "index", "", 0, "id", attr, {1.5f, -2}, {}, {}};
    const std::string text = Write(record);
    CAPTURE(text);
    REQUIRE(nlohmann::json::accept(text));
    CHECK(Parse(text) == record);
  }
}

OwnedRecord RandomRecord(Random& random) {
  const auto bytes = [&random](size_t longest) {
    std::string text(random.Below(longest + 1), '\0');
    const bool plain = random.Below(2) == 0;
    for (char& c : text) c = static_cast<char>(plain ? 'a' + random.Below(26) : random.Next());
    return text;
  };
  OwnedRecord r;
  r.kind = static_cast<RecordKind>(1 + random.Below(3));
  r.db = static_cast<uint32_t>(random.Below(1024));
  r.key = bytes(20);
  if (r.kind != RecordKind::kVector && random.Below(2) == 0) r.expire_at_ms = static_cast<int64_t>(random.Next() >> 1);
  if (r.kind == RecordKind::kString) r.value = bytes(300);
  if (r.kind == RecordKind::kIndex) r.index = {1 + static_cast<uint32_t>(random.Below(32768)), "IP", "", 2, 0, 7, 0};
  if (r.kind == RecordKind::kIndex && random.Below(2) == 0) {
    r.index.transient = true;
    r.index.input_dim = r.index.dim + static_cast<uint32_t>(random.Below(32769 - r.index.dim));
  }
  if (r.kind != RecordKind::kVector) return r;
  r.id = bytes(10);
  r.attr = random.Below(2) == 0 ? bytes(30) : R"({"n":)" + std::to_string(random.Below(1000)) + "}";
  for (uint64_t n = 1 + random.Below(20); n > 0; --n) {
    const auto bits = static_cast<uint32_t>(random.Next() & 0xbfffffff);  // finite
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    r.vector.push_back(value);
  }
  return r;
}

TEST_CASE("ndjson: random records through a file") {
  TemporaryFolder folder;
  Random random(21);
  std::vector<OwnedRecord> records;
  for (int i = 0; i < 3000; ++i) records.push_back(RandomRecord(random));
  auto output = OutputStream::Create(folder / "all.ndjson");
  REQUIRE(output.ok());
  NdjsonWriter writer(std::move(*output));
  for (const OwnedRecord& record : records) REQUIRE(writer.Put(record.View()).ok());
  CHECK_FALSE(std::filesystem::exists(folder / "all.ndjson"));
  REQUIRE(writer.Finish().ok());
  auto input = InputStream::Open(folder / "all.ndjson");
  REQUIRE(input.ok());
  NdjsonReader reader(std::move(*input));
  const ReadOutcome outcome = ReadAll(&reader);
  REQUIRE(outcome.status.ok());
  REQUIRE(outcome.records.size() == records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    CAPTURE(i);
    REQUIRE(outcome.records[i] == records[i]);
  }
}

TEST_CASE("ndjson: an error names file, line and offset, and reading goes on behind it") {
  TemporaryFolder folder;
  const std::string good = R"({"key":"k","value":"v"})";
  const std::string path = folder.Write("f.ndjson", good + "\r\n\n  \n" + good + "\nwrong\n" + good);
  auto input = InputStream::Open(path);
  REQUIRE(input.ok());
  NdjsonReader reader(std::move(*input));
  ReadOutcome outcome = ReadAll(&reader);
  CHECK(outcome.records.size() == 2);
  CHECK(outcome.positions == std::vector<uint64_t>{1, 4});
  CHECK(reader.Where(4) == path + ":4");
  REQUIRE(outcome.status.code() == Code::kCorruption);
  CHECK(outcome.status.path() == path);
  CHECK(outcome.status.offset() == static_cast<int64_t>(2 * good.size() + 7));
  CHECK_THAT(outcome.status.message(), Catch::Matchers::Contains("line 5"));
  REQUIRE(reader.SkipBad());
  outcome = ReadAll(&reader);
  CHECK(outcome.status.ok());
  CHECK(outcome.positions == std::vector<uint64_t>{6});
}

TEST_CASE("ndjson: lines longer than the read buffer") {
  TemporaryFolder folder;
  std::string text;
  for (size_t i = 0; i < 5; ++i) {
    text += R"({"key":"k)" + std::to_string(i) + R"(","value":")" + std::string(i * 700'000, 'x') + "\"}\n";
  }
  auto input = InputStream::Open(folder.Write("f", text));
  REQUIRE(input.ok());
  NdjsonReader reader(std::move(*input));
  const ReadOutcome outcome = ReadAll(&reader);
  REQUIRE(outcome.status.ok());
  REQUIRE(outcome.records.size() == 5);
  for (size_t i = 0; i < 5; ++i) CHECK(outcome.records[i].value.size() == i * 700'000);
}

}  // namespace
}  // namespace hotkv
