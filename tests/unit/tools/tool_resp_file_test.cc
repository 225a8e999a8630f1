// Files of commands: against commands written by hand, with every cut, and what must be refused.
#include <catch2/catch.hpp>

#include "engine/base/resp_client.h"
#include "tests/unit/tools/tool_support.h"
#include "tools/hotkv_tool/input_format.h"
#include "tools/hotkv_tool/resp_reader.h"
#include "tools/hotkv_tool/resp_writer.h"

namespace hotkv {
namespace {

using Commands = std::vector<std::vector<std::string>>;

std::string Wire(const Commands& commands) {
  std::string out;
  for (const auto& command : commands) {
    const std::vector<std::string_view> args(command.begin(), command.end());
    AppendRespCommand(args, &out);
  }
  return out;
}

Commands ArgsOf(const ReadOutcome& outcome) {
  Commands commands;
  for (const OwnedRecord& record : outcome.records) {
    CHECK(record.kind == RecordKind::kCommand);
    commands.push_back(record.args);
  }
  return commands;
}

ReadOutcome Read(const TemporaryFolder& folder, std::string_view bytes) {
  auto input = InputStream::Open(folder.Write("f.resp", bytes));
  REQUIRE(input.ok());
  RespReader reader(std::move(*input));
  return ReadAll(&reader);
}

TEST_CASE("resp file: multibulk and inline commands, annotations passed over, offsets of each") {
  TemporaryFolder folder;
  const std::string first = Wire({{"SELECT", "0"}});
  const std::string second = Wire({{"SET", std::string("a\r\n\0", 4), ""}});
  const ReadOutcome outcome = Read(folder, first + "#TS:1764500000\r\n" + second + "\r\nSET b \"two words\"\n");
  REQUIRE(outcome.status.ok());
  CHECK(ArgsOf(outcome) ==
        Commands{{"SELECT", "0"}, {"SET", std::string("a\r\n\0", 4), ""}, {"SET", "b", "two words"}});
  CHECK(outcome.positions[0] == 0);
  CHECK(outcome.positions[1] == first.size() + 16);
}

TEST_CASE("resp file: more commands than one batch, and arguments larger than the read buffer") {
  TemporaryFolder folder;
  Commands commands;
  for (int i = 0; i < 5000; ++i) commands.push_back({"SET", "k" + std::to_string(i), std::string(i % 100, 'v')});
  commands.push_back({"SET", "large", std::string(5'000'000, 'L')});
  commands.push_back({"SET", "last", "v"});
  const std::string bytes = Wire(commands);
  const ReadOutcome outcome = Read(folder, bytes);
  REQUIRE(outcome.status.ok());
  CHECK(ArgsOf(outcome) == commands);
  for (size_t i = 0; i < commands.size(); ++i) {
    const std::string one = Wire({commands[i]});
    REQUIRE(bytes.compare(outcome.positions[i], one.size(), one) == 0);
  }
}

TEST_CASE("resp file: cut at every byte") {
  TemporaryFolder folder;
  const Commands commands = {{"SET", "foo", "hello"}, {"MULTI"}, {"SET", "bar", "1"}, {"SET", "baz", "2"}, {"EXEC"}};
  const std::string bytes = Wire(commands);
  std::vector<size_t> ends;
  for (size_t i = 1; i <= commands.size(); ++i) ends.push_back(Wire({commands.begin(), commands.begin() + static_cast<ptrdiff_t>(i)}).size());
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    CAPTURE(cut);
    const ReadOutcome outcome = Read(folder, bytes.substr(0, cut));
    size_t whole = 0;
    while (whole < ends.size() && ends[whole] <= cut) ++whole;
    CHECK(outcome.records.size() == whole);
    const bool at_end = cut == 0 || (whole > 0 && ends[whole - 1] == cut);
    const bool in_multi = whole >= 2 && whole < 5;
    CHECK(outcome.status.ok() == (at_end && !in_multi));
    if (!at_end) CHECK(outcome.status.offset() == static_cast<int64_t>(whole == 0 ? 0 : ends[whole - 1]));
    if (at_end && in_multi) CHECK(outcome.status.offset() == static_cast<int64_t>(ends[0]));
  }
}

TEST_CASE("resp file: what is not a command names its offset") {
  TemporaryFolder folder;
  const std::string first = Wire({{"SET", "a", "b"}});
  const ReadOutcome bad = Read(folder, first + "*2\r\n$3\r\nGET\r\n$abc\r\n");
  CHECK(bad.records.size() == 1);
  CHECK(bad.status.code() == Code::kCorruption);
  CHECK(bad.status.offset() == static_cast<int64_t>(first.size()));
  CHECK_THAT(bad.status.message(), Catch::Matchers::Contains("invalid bulk length"));

  const ReadOutcome rdb = Read(folder, "REDIS0011\xfa\x09redis-ver\x05" "7.0.1");
  CHECK(rdb.status.code() == Code::kUnsupported);
  CHECK_THAT(rdb.status.message(), Catch::Matchers::Contains("RDB"));

  for (const char* name : {"SUBSCRIBE", "monitor", "HELLO", "Shutdown"}) {
    const ReadOutcome refused = Read(folder, first + Wire({{name, "x"}}));
    CHECK(refused.records.size() == 1);
    CHECK(refused.status.code() == Code::kInvalidArgument);
    CHECK(refused.status.offset() == static_cast<int64_t>(first.size()));
  }
}

TEST_CASE("resp file: what the writer makes of records") {
  TemporaryFolder folder;
  auto output = OutputStream::Create(folder / "out.resp");
  REQUIRE(output.ok());
  RespWriter writer(std::move(*output));
  const float components[] = {1.0f, -2.5f};
  Record r;
  r.kind = RecordKind::kString;
  r.key = "k";
  r.value = "v";
  REQUIRE(writer.Put(r).ok());
  r.expire_at_ms = 1764500000000;
  r.db = 5;
  REQUIRE(writer.Put(r).ok());
  Record index;
  index.kind = RecordKind::kIndex;
  index.db = 5;
  index.key = "docs";
  index.expire_at_ms = 1764500000001;
  index.index = {2, "L2", "F32", 16, 200, 100, 0};
  REQUIRE(writer.Put(index).ok());
  Record vector;
  vector.kind = RecordKind::kVector;
  vector.db = 5;
  vector.key = "docs";
  vector.id = "a";
  vector.vector = components;
  REQUIRE(writer.Put(vector).ok());
  vector.attr = "{}";
  REQUIRE(writer.Put(vector).ok());
  REQUIRE(writer.Finish().ok());
  const std::string blob(reinterpret_cast<const char*>(components), sizeof(components));
  CHECK(ReadFileBytes(folder / "out.resp") ==
        Wire({{"SELECT", "0"},
              {"SET", "k", "v"},
              {"SELECT", "5"},
              {"SET", "k", "v", "PXAT", "1764500000000"},
              {"VSIM.CREATEINDEX", "docs", "DIM", "2", "METRIC", "L2", "TYPE", "F32", "M", "16", "EF_CONSTRUCTION",
               "200", "EF", "100"},
              {"VSIM.SET", "docs", "a", "FP32", blob},
              {"VSIM.SET", "docs", "a", "FP32", blob, "ATTR", "{}"},
              {"PEXPIREAT", "docs", "1764500000001"}}));
}

TEST_CASE("output files: nothing is left of an unfinished one, and an old one stays") {
  TemporaryFolder folder;
  const std::string path = folder.Write("out.resp", "old");
  {
    auto output = OutputStream::Create(path);
    REQUIRE(output.ok());
    RespWriter writer(std::move(*output));
    Record r;
    r.kind = RecordKind::kString;
    const std::string large(3'000'000, 'x');
    r.value = large;
    REQUIRE(writer.Put(r).ok());
  }
  CHECK(ReadFileBytes(path) == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()), {}) == 1);
}

TEST_CASE("formats are told from the first bytes") {
  std::string fbin = {2, 0, 0, 0, 3, 0, 0, 0};
  fbin.resize(8 + 2 * 3 * 4);
  CHECK(GuessFormat(fbin, fbin.size(), "x") == DataFormat::kFbin);
  CHECK(GuessFormat(fbin, fbin.size() + 1, "x") == DataFormat::kUnknown);
  CHECK(GuessFormat("*3\r\n$3\r\nSET\r\n", 20, "x.ndjson") == DataFormat::kResp);
  CHECK(GuessFormat("#TS:1\r\n", 20, "x") == DataFormat::kResp);
  CHECK(GuessFormat("\n {\"key\"", 20, "x") == DataFormat::kNdjson);
  CHECK(GuessFormat("SET a b\r\n", 20, "x") == DataFormat::kUnknown);
  CHECK(GuessFormat("SET a b\r\n", 20, "x.resp") == DataFormat::kResp);
  CHECK(GuessFormat("", 0, "x.jsonl") == DataFormat::kNdjson);
}

}  // namespace
}  // namespace hotkv
