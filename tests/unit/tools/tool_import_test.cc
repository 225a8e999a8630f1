// The importer over an engine in memory: what arrives, what is refused, and that nothing is applied before a file has been
// checked as a whole.
#include <catch2/catch.hpp>

#include <set>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/types/vector_set.h"
#include "tests/support/source_dir.h"
#include "tests/unit/tools/tool_support.h"
#include "tools/hotkv_tool/engine_target.h"
#include "tools/hotkv_tool/importer.h"
#include "tools/hotkv_tool/input_format.h"

namespace hotkv {
namespace {

class MemoryEngine {
 public:
  explicit MemoryEngine(unsigned workers = 1) : commands_(ToolCommandFamilies()) {
    RegisterObjectTypes();
    EngineOptions options;
    options.keyspace.stripe_bits = 4;
    options.workers = workers;
    engine_ = std::make_unique<Engine>(options, &commands_);
    target_ = std::make_unique<EngineTarget>(engine_.get());
  }
  Engine& engine() { return *engine_; }
  EngineTarget& target() { return *target_; }
  RespValue Ask(std::initializer_list<std::string_view> args, uint32_t db = 0) {
    const std::vector<std::string_view> list(args);
    auto reply = target_->Ask(list, db);
    REQUIRE(reply.ok());
    return std::move(*reply);
  }

 private:
  CommandTable commands_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EngineTarget> target_;
};

struct ImportOutcome {
  bool fine = false;
  uint64_t records = 0, applied = 0, refused = 0, skipped = 0, expired = 0;
  std::vector<std::string> problems;
};

ImportOutcome Import(MemoryEngine& db, const std::string& path, ImportOptions options = {}) {
  Problems problems;
  Importer importer(&db.target(), options, &problems);
  ImportOutcome outcome;
  for (const bool check : {true, false}) {
    if (check && options.skip_bad) continue;
    FbinOptions fbin;
    fbin.index = "docs";
    auto reader = OpenInput(path, DataFormat::kUnknown, fbin);
    REQUIRE(reader.ok());
    ProgressBar progress("", 0);
    auto done = check ? importer.Check(reader->get(), &progress) : importer.Run(reader->get(), &progress);
    INFO(done.status().ToString());
    REQUIRE(done.ok());
    outcome.fine = *done;
    if (!outcome.fine) break;
  }
  REQUIRE(db.target().Finish().ok());
  outcome.records = importer.records();
  outcome.applied = importer.applied();
  outcome.refused = importer.refused();
  outcome.skipped = importer.skipped();
  outcome.expired = importer.expired();
  outcome.problems = problems.first();
  return outcome;
}

TEST_CASE("import: keys and vectors arrive, expired ones do not") {
  MemoryEngine db;
  TemporaryFolder folder;
  const int64_t future = Clock::NowMs() + 1'000'000;
  const std::string path = folder.Write("f.ndjson",
                                        R"({"key":"k","value":"v"}
{"key":"k","value":"later"}
{"db":7,"key":"t","expire_at_ms":)" + std::to_string(future) + R"(,"value":""}
{"key":"past","expire_at_ms":1,"value":"gone"}
{"key":"docs","type":"vectorset","expire_at_ms":)" + std::to_string(future) + R"(,"value":{"dim":2,"metric":"L2"}}
{"index":"docs","id":"a","vector":[1,2],"attr":{"x":1}}
{"index":"auto","id":"b","vector":[3,4,5]}
{"key":"old","type":"vectorset","expire_at_ms":1,"value":{"dim":2}}
{"index":"old","id":"a","vector":[1,2]}
)");
  ImportOptions options;
  options.new_index.metric = "IP";
  options.new_index.m = 5;
  const ImportOutcome outcome = Import(db, path, options);
  INFO((outcome.problems.empty() ? "" : outcome.problems[0]));
  CHECK(outcome.fine);
  CHECK(outcome.records == 9);
  CHECK(outcome.applied == 7);
  CHECK(outcome.expired == 2);
  CHECK(db.Ask({"GET", "k"}).text == "later");
  CHECK(db.Ask({"GET", "t"}, 7).text.empty());
  CHECK(db.Ask({"PEXPIRETIME", "t"}, 7).integer == future);
  CHECK(db.Ask({"EXISTS", "past", "old"}).integer == 0);
  CHECK(db.Ask({"PEXPIRETIME", "docs"}).integer == future);
  CHECK(db.Ask({"VSIM.GET", "docs", "a", "WITHATTR"}).items[1].text == R"({"x":1})");
  const RespValue info = db.Ask({"VSIM.INFO", "auto"});
  CHECK(info.Field("dim")->integer == 3);
  CHECK(info.Field("metric")->text == "IP");
  CHECK(info.Field("m")->integer == 5);
}

TEST_CASE("import: a fault anywhere in a file keeps all of it out") {
  using Catch::Matchers::Contains;
  TemporaryFolder folder;
  const std::string good = R"({"key":"k","value":"v"})" "\n";
  const std::pair<std::string, std::string> cases[] = {
      {good + "nonsense\n", "f @24: line 2: not JSON"},
      {good + R"({"index":"i","id":"a","vector":[1,2]})" "\n" R"({"index":"i","id":"b","vector":[1]})",
       "f:3: 1 components, but index \"i\" has 2"},
      {good + R"({"key":"i","type":"vectorset","value":{"dim":3}})" "\n" R"({"index":"i","id":"b","vector":[1]})",
       "f:3: 1 components, but index \"i\" has 3"},
      {good + R"({"index":"have","id":"b","vector":[1]})", "f:2: 1 components, but index \"have\" has 2"},
      {good + R"({"key":"have","type":"vectorset","value":{"dim":2,"metric":"IP"}})", "exists already as L2 F32"},
      {good + R"({"index":"string","id":"b","vector":[1]})", "f:2: index \"string\": WRONGTYPE"},
      {"*1\r\n$8\r\nFLUSHALL\r\n*2\r\n$7\r\nPUBLISH\r\n$1\r\nx\r\n", "f @18: unknown command 'PUBLISH'"},
      {"*1\r\n$8\r\nFLUSHALL\r\n*1\r\n$3\r\nGET\r\n", "f @18: wrong number of arguments for 'get'"},
      {"*1\r\n$8\r\nFLUSHALL\r\n*1\r\n$5\r\nMULTI\r\n", "f @18: a MULTI without its EXEC"},
  };
  for (const auto& [bytes, problem] : cases) {
    CAPTURE(problem);
    MemoryEngine db;
    db.Ask({"SET", "string", "x"});
    db.Ask({"VSIM.CREATEINDEX", "have", "DIM", "2", "METRIC", "L2"});
    const uint64_t before = db.engine().Digest();
    const ImportOutcome outcome = Import(db, folder.Write("f", bytes));
    CHECK_FALSE(outcome.fine);
    CHECK(outcome.applied == 0);
    REQUIRE(outcome.problems.size() == 1);
    CHECK_THAT(outcome.problems[0], Contains(problem));
    CHECK(db.engine().Digest() == before);
  }
}

TEST_CASE("import: a refusal while it runs stops it and is named with its place") {
  TemporaryFolder folder;
  MemoryEngine db;
  db.Ask({"VSIM.CREATEINDEX", "i", "DIM", "2"});
  const std::string path = folder.Write("f.resp", "SET a 1\r\nAPPEND i x\r\nSET b 1\r\n");
  ImportOutcome outcome = Import(db, path);
  CHECK_FALSE(outcome.fine);
  CHECK(outcome.applied == 1);
  CHECK(outcome.refused == 1);
  REQUIRE(outcome.problems.size() == 1);
  CHECK_THAT(outcome.problems[0], Catch::Matchers::Contains(path + " @9: WRONGTYPE"));
  CHECK(db.Ask({"EXISTS", "a", "b"}).integer == 1);
  ImportOptions options;
  options.skip_bad = true;
  outcome = Import(db, path, options);
  CHECK(outcome.fine);
  CHECK(outcome.applied == 2);
  CHECK(outcome.refused == 1);
  CHECK(db.Ask({"EXISTS", "a", "b"}).integer == 2);
}

TEST_CASE("import: skip-bad leaves out lines that cannot be read and goes on") {
  TemporaryFolder folder;
  MemoryEngine db;
  ImportOptions options;
  options.skip_bad = true;
  const ImportOutcome outcome = Import(
      db, folder.Write("f.ndjson", "{\"key\":\"a\",\"value\":\"1\"}\nnonsense\n{\"key\":\"b\",\"value\":\"2\"}\n"), options);
  CHECK(outcome.applied == 2);
  CHECK(outcome.skipped == 1);
  CHECK(outcome.problems.size() == 1);
  CHECK(db.Ask({"GET", "b"}).text == "2");
}

TEST_CASE("import: transactions and databases of a file of commands") {
  TemporaryFolder folder;
  MemoryEngine db;
  ImportOptions options;
  options.db = 2;
  const ImportOutcome outcome =
      Import(db, folder.Write("f.resp", "SET a 1\r\nSELECT 5\r\nMULTI\r\nSET b 2\r\nSELECT 6\r\nSET c 3\r\nEXEC\r\nSET d 4\r\n"),
             options);
  CHECK(outcome.fine);
  CHECK(outcome.applied == 8);
  CHECK(db.Ask({"GET", "a"}, 2).text == "1");
  CHECK(db.Ask({"GET", "b"}, 5).text == "2");
  CHECK(db.Ask({"GET", "c"}, 6).text == "3");
  CHECK(db.Ask({"GET", "d"}, 6).text == "4");
}

TEST_CASE("import: on several lanes the same as on one, the last version of an element wins") {
  TemporaryFolder folder;
  Random random(31);
  std::string text = R"({"key":"docs","type":"vectorset","value":{"dim":4,"metric":"L2"}})" "\n";
  std::set<uint64_t> ids;
  for (int i = 0; i < 3000; ++i) {
    const uint64_t id = random.Below(700);
    ids.insert(id);
    text += R"({"index":"docs","id":"e)" + std::to_string(id) + R"(","vector":[)" + std::to_string(i);
    for (int c = 0; c < 3; ++c) text += "," + std::to_string(random.Uniform());
    text += R"(],"attr":{"i":)" + std::to_string(i) + "}}\n";
    if (i % 1000 == 0) text += R"({"key":"marker","value":")" + std::to_string(i) + "\"}\n";
  }
  const std::string path = folder.Write("f.ndjson", text);
  MemoryEngine one(1);
  MemoryEngine many(4);
  const ImportOutcome first = Import(one, path);
  const ImportOutcome second = Import(many, path);
  CHECK(first.applied == 3004);
  CHECK(second.applied == 3004);
  CHECK(one.Ask({"VSIM.INFO", "docs"}).Field("count")->integer == static_cast<int64_t>(ids.size()));
  CHECK(one.engine().Digest() == many.engine().Digest());
}

TEST_CASE("import: .fbin into an index of its own") {
  MemoryEngine db(2);
  const ImportOutcome outcome = Import(db, SourcePath("tests/data/wordnet-cbag-384-small.base.fbin"));
  CHECK(outcome.fine);
  CHECK(outcome.applied == 2000);
  const RespValue found = db.Ask({"VSIM.SEARCH", "docs", "ELE", "1234", "K", "1"});
  REQUIRE(found.items.size() == 1);
  CHECK(found.items[0].text == "1234");
}

}  // namespace
}  // namespace hotkv
