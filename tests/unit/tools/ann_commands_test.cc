#include "tools/hotkv_bench/ann_commands.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "tests/support/source_dir.h"

namespace hotkv {
namespace {

std::string Small(std::string_view ending) {
  return SourcePath("tests/data/wordnet-cbag-384-small").append(ending);
}

std::vector<std::string> ParseCommand(const std::string& wire, size_t commands = 1) {
  RespReplyParser parser;
  parser.Feed(wire);
  std::vector<std::string> words;
  for (size_t i = 0; i < commands; ++i) {
    auto next = parser.Next();
    REQUIRE(next.ok());
    REQUIRE(next->has_value());
    for (const RespValue& item : (*next)->items) words.push_back(item.text);
  }
  auto rest = parser.Next();
  REQUIRE(rest.ok());
  REQUIRE_FALSE(rest->has_value());
  return words;
}

TEST_CASE("ann bench: the files of the small set are read and hold exact neighbours") {
  auto base = ReadFbin(Small(".base.fbin"));
  auto queries = ReadFbin(Small(".query.fbin"));
  auto truth = ReadIbin(Small(".gt.ibin"));
  auto cosines = ReadFbin(Small(".gtcos.fbin"));
  REQUIRE((base.ok() && queries.ok() && truth.ok() && cosines.ok()));
  REQUIRE(base->rows == 2000);
  REQUIRE(base->columns == 384);
  REQUIRE(queries->rows == 100);
  REQUIRE(truth->columns == 100);
  // An exact scan of one query agrees with the file: that reading is not shifted or transposed.
  const auto query = queries->Row(17);
  int32_t best = -1;
  double best_cosine = -2;
  for (size_t row = 0; row < base->rows; ++row) {
    double dot = 0;
    for (size_t i = 0; i < base->columns; ++i) dot += static_cast<double>(query[i]) * static_cast<double>(base->Row(row)[i]);
    if (dot > best_cosine) {
      best_cosine = dot;
      best = static_cast<int32_t>(row);
    }
  }
  CHECK(truth->Row(17)[0] == best);
  CHECK(cosines->Row(17)[0] == Approx(best_cosine).margin(1e-5));
  CHECK_FALSE(ReadFbin(Small(".keys.txt")).ok());
  CHECK_FALSE(ReadFbin(Small(".nothing")).ok());
}

TEST_CASE("ann bench: commands of both dialects") {
  Matrix<float> base{3, 2, {1, 2, 3, 4, 5, 6}};
  AnnIndex index;
  index.name = "i";
  index.dim = 2;
  index.type = "Q4";
  CHECK(ParseCommand(AnnCreateCommand(index)) ==
        std::vector<std::string>{"VSIM.CREATEINDEX", "i", "DIM", "2", "METRIC", "COSINE", "M", "16", "EF_CONSTRUCTION",
                                 "200", "TYPE", "Q4"});
  std::string wire;
  REQUIRE(AppendAnnLoad(index, base, 1, 3, &wire) == 1);
  const auto words = ParseCommand(wire);
  REQUIRE(words.size() == 9);
  CHECK(words[2] == "2");
  CHECK(words[3] == "1");
  CHECK(words[4] == "FP32");
  float pair[2];
  std::memcpy(pair, words[8].data(), sizeof(pair));
  CHECK((pair[0] == 5 && pair[1] == 6));
  wire.clear();
  AppendAnnSearch(index, base.Row(0), 10, 80, &wire);
  const auto search = ParseCommand(wire);
  CHECK(search[0] == "VSIM.SEARCH");
  CHECK((search[4] == "K" && search[5] == "10" && search[6] == "EF" && search[7] == "80"));

  index.dialect = AnnDialect::kVset;
  index.type = "NOQUANT";
  CHECK(AnnCreateCommand(index).empty());
  wire.clear();
  REQUIRE(AppendAnnLoad(index, base, 0, 2, &wire) == 2);
  const auto adds = ParseCommand(wire, 2);
  REQUIRE(adds.size() == 20);
  CHECK((adds[0] == "VADD" && adds[4] == "0" && adds[5] == "NOQUANT" && adds[6] == "EF" && adds[8] == "M"));
}

TEST_CASE("ann bench: recall") {
  AnnTruth truth;
  truth.ids = {1, 5, {10, 11, 12, 13, 14}};
  CHECK(AnnRecall(truth, 0, 3, std::vector<int32_t>{12, 10, 11}) == Approx(1.0));
  CHECK(AnnRecall(truth, 0, 3, std::vector<int32_t>{12, 10, 13}) == Approx(2.0 / 3));
  CHECK(AnnRecall(truth, 0, 3, std::vector<int32_t>{10, 10, 10}) == Approx(1.0 / 3));
  CHECK(AnnRecall(truth, 0, 3, std::vector<int32_t>{}) == Approx(0.0));
  CHECK(AnnRecall(truth, 0, 3, std::vector<int32_t>{1, 2, 3, 10, 11, 12}) == Approx(0.0));
  truth.cosines = {1, 5, {0.9F, 0.8F, 0.7F, 0.7F, 0.6F}};
  CHECK(AnnRecall(truth, 0, 3, std::vector<int32_t>{10, 11, 13}) == Approx(1.0));  // a tie is as good
  CHECK(AnnRecall(truth, 0, 3, std::vector<int32_t>{10, 11, 14}) == Approx(2.0 / 3));
}

TEST_CASE("ann bench: replies become row numbers") {
  RespValue reply;
  reply.type = RespType::kArray;
  RespValue id;
  id.type = RespType::kBulk;
  id.text = "42";
  reply.items.push_back(id);
  CHECK(*AnnIdsOfReply(reply) == std::vector<int32_t>{42});
  reply.items[0].text = "x42";
  CHECK_FALSE(AnnIdsOfReply(reply).ok());
  reply.type = RespType::kError;
  CHECK_FALSE(AnnIdsOfReply(reply).ok());
}

TEST_CASE("ann bench: interpolation at a recall") {
  const std::vector<RecallPoint> points = {{0.99, 100}, {0.9, 1000}, {0.95, 400}};
  CHECK(InterpolateAtRecall(points, 0.95) == Approx(400));
  CHECK(InterpolateAtRecall(points, 0.925) == Approx(std::sqrt(1000.0 * 400.0)));
  CHECK(InterpolateAtRecall(points, 0.999) < 0);
  CHECK(InterpolateAtRecall(points, 0.5) < 0);
}

}  // namespace
}  // namespace hotkv
