// .fbin files with ids and attributes: against files made here, and tables that do not fit.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/support/source_dir.h"
#include "tests/unit/tools/tool_support.h"
#include "tools/common/vector_file.h"
#include "tools/hotkv_tool/fbin_reader.h"

namespace hotkv {
namespace {

std::string Fbin(uint32_t rows, uint32_t dim, const std::vector<float>& values) {
  std::string bytes;
  bytes.append(reinterpret_cast<const char*>(&rows), 4);
  bytes.append(reinterpret_cast<const char*>(&dim), 4);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

ReadOutcome Read(const std::string& path, FbinOptions options) {
  auto input = InputStream::Open(path);
  REQUIRE(input.ok());
  options.index = "docs";
  auto reader = FbinReader::Open(std::move(*input), options);
  if (reader.ok()) return ReadAll(reader->get());
  ReadOutcome outcome;
  outcome.status = reader.status();
  return outcome;
}

TEST_CASE("fbin: vectors, ids and attributes of each row") {
  TemporaryFolder folder;
  const std::string path = folder.Write("v.fbin", Fbin(3, 2, {1, 2, 3, 4, 5, 6}));
  ReadOutcome outcome = Read(path, {});
  REQUIRE(outcome.status.ok());
  REQUIRE(outcome.records.size() == 3);
  CHECK(outcome.records[2] == OwnedRecord{RecordKind::kVector, 0, "docs", "", 0, "2", "", {5, 6}, {}, {}});

  FbinOptions options;
  options.db = 4;
  options.keys_path = folder.Write("keys.txt", "first\r\n\nlast");
  options.attrs_path = folder.Write("attrs.tsv", "row\tkind\tyear\tmixed\n0\tn\"x\t1990\t7\n1\t\t\tseven\n2\tv\t-1.5e3\t\n");
  outcome = Read(path, options);
  INFO(outcome.status.ToString());
  REQUIRE(outcome.status.ok());
  REQUIRE(outcome.records.size() == 3);
  CHECK(outcome.records[0].db == 4);
  CHECK(outcome.records[0].id == "first");
  CHECK(outcome.records[1].id.empty());
  CHECK(outcome.records[2].id == "last");
  CHECK(outcome.records[0].attr == R"({"kind":"n\"x","year":1990,"mixed":"7"})");
  CHECK(outcome.records[1].attr == R"({"mixed":"seven"})");
  CHECK(outcome.records[2].attr == R"({"kind":"v","year":-1.5e3})");
}

TEST_CASE("fbin: what does not fit is named") {
  using Catch::Matchers::Contains;
  TemporaryFolder folder;
  const auto error = [&](const std::string& bytes, const FbinOptions& options) {
    const ReadOutcome outcome = Read(folder.Write("v.fbin", bytes), options);
    REQUIRE_FALSE(outcome.status.ok());
    return outcome.status.ToString();
  };
  const std::string good = Fbin(2, 2, {1, 2, 3, 4});
  CHECK_THAT(error("1234567", {}), Contains("no .fbin header"));
  CHECK_THAT(error(good.substr(0, good.size() - 1), {}), Contains("are 24 bytes, but the file has 23"));
  CHECK_THAT(error(good + "x", {}), Contains("are 24 bytes, but the file has 25"));
  CHECK_THAT(error(Fbin(1, 0, {}), {}), Contains("dimension 0"));
  CHECK_THAT(error(Fbin(1, 40000, {}), {}), Contains("dimension 40000"));
  CHECK_THAT(error(Fbin(2, 2, {1, 2, NAN, 4}), {}), Contains("v.fbin @16: row 1 holds NaN"));
  FbinOptions options;
  options.keys_path = folder.Write("keys.txt", "one\n");
  CHECK_THAT(error(good, options), Contains("keys.txt @0: line 1: the last one: no id for row 1"));
  options.keys_path = folder.Write("keys.txt", "one\ntwo\nthree\n");
  CHECK_THAT(error(good, options), Contains("line 3: more ids than the 2 vectors"));
  options.keys_path.clear();
  options.attrs_path = folder.Write("a.tsv", "row\tx\n0\ta\n");
  CHECK_THAT(error(good, options), Contains("1 rows of attributes for 2 vectors"));
  options.attrs_path = folder.Write("a.tsv", "row\tx\n0\ta\n2\tb\n");
  CHECK_THAT(error(good, options), Contains("line 3: \"row\" is 2, expected 1"));
  options.attrs_path = folder.Write("a.tsv", "x\ty\n0\ta\n2\n");
  CHECK_THAT(error(good, options), Contains("line 3: 1 fields, the header has 2"));
  options.attrs_path = folder.Write("a.tsv", "x\n\xff\nb\n");
  CHECK_THAT(error(good, options), Contains("line 2: not UTF-8"));
  options.attrs_path = folder.Write("a.tsv", "");
  CHECK_THAT(error(good, options), Contains("no header line"));
}

TEST_CASE("fbin: the small data set, against the other reader and a plain split of its tables") {
  const std::string stem = SourcePath("tests/data/wordnet-cbag-384-small");
  FbinOptions options;
  options.keys_path = stem + ".keys.txt";
  options.attrs_path = stem + ".attrs.tsv";
  const ReadOutcome outcome = Read(stem + ".base.fbin", options);
  REQUIRE(outcome.status.ok());
  const auto matrix = ReadFbin(stem + ".base.fbin");
  REQUIRE(matrix.ok());
  REQUIRE(outcome.records.size() == matrix->rows);
  std::ifstream keys(options.keys_path);
  std::ifstream attrs(options.attrs_path);
  std::string line;
  std::getline(attrs, line);
  REQUIRE(line == "row\tpos\tlexfile\tgloss_len\tn_lemmas\tsynset");
  for (size_t i = 0; i < matrix->rows; ++i) {
    const OwnedRecord& record = outcome.records[i];
    const auto row = matrix->Row(i);
    REQUIRE(record.vector == std::vector<float>(row.begin(), row.end()));
    std::getline(keys, line);
    REQUIRE(record.id == line);
    std::string field[6];
    for (int f = 0; f < 6; ++f) std::getline(attrs, field[f], f == 5 ? '\n' : '\t');
    const nlohmann::json json = nlohmann::json::parse(record.attr);
    REQUIRE(json.size() == 5);
    REQUIRE(json["pos"] == field[1]);
    REQUIRE(json["lexfile"] == field[2]);
    REQUIRE(json["gloss_len"] == std::stoi(field[3]));
    REQUIRE(json["n_lemmas"] == std::stoi(field[4]));
    REQUIRE(json["synset"] == field[5]);
  }
}

}  // namespace
}  // namespace hotkv
