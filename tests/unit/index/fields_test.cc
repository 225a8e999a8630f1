// Declared fields: columns against the evaluation of JSON, for random expressions over changing attributes; restart.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <thread>

#include "engine/base/random.h"
#include "index/fields/slot_filter.h"
#include "index/reader_pin.h"
#include "tests/unit/index/index_support.h"

namespace hotkv {
namespace {

constexpr uint32_t kSlots = 600;

std::string RandomScalar(Random* random) {
  const char* values[] = {"0", "1", "2.5", "-3", "7", "\"a\"", "\"\"", "\"7\"", "null", "\"ab\"", "true", "false",
                          "[]", "[1,\"a\"]", "[\"7\", 2.5]", "[\"b\"]", "{\"x\":1}", "[null]", "1e300", "\"b\\n\""};
  if (random->Below(3) != 0) return values[random->Below(std::size(values))];
  if (random->Below(2) == 0) return std::to_string(random->Below(1000));
  if (random->Below(8) == 0) return "\"" + std::string(1100, 'x') + "ab\"";
  return "\"v" + std::to_string(random->Below(1000)) + "\"";
}

std::string RandomAttributes(Random* random) {
  if (random->Below(30) == 0) return random->Below(2) == 0 ? "" : "{bad";
  std::string json = "{";
  for (char name = 'a'; name < 'f'; ++name) {
    if (random->Below(10) == 0) continue;
    if (json.size() > 1) json += ",";
    json += "\"" + std::string(1, name) + "\":" + RandomScalar(random);
  }
  return json + "}";
}

std::string RandomExpression(Random* random, int depth) {
  const auto pick = [random](auto& list) { return std::string(list[random->Below(std::size(list))]); };
  const char* literals[] = {"0", "1", "2.5", "-3", "'a'", "''", "'7'", "null", "'ab'", "500", "true", "'v7'"};
  const char* fields[] = {".a", ".b", ".c", ".d", ".e"};
  if (depth == 0) return random->Below(2) == 0 ? pick(literals) : pick(fields);
  switch (random->Below(8)) {
    case 0:
      return "not (" + RandomExpression(random, depth - 1) + ")";
    case 1:
    case 2: {
      const char* ops[] = {"and", "or"};
      return "(" + RandomExpression(random, depth - 1) + ") " + pick(ops) + " (" + RandomExpression(random, depth - 1) + ")";
    }
    case 3:
      return pick(fields) + " in [1, 'a', 2.5, '7', 'v1', 40, 41, 'v500']";
    case 4:
      return pick(literals) + " in " + pick(fields);
    case 5: {
      const char* ops[] = {"+", "-", "*", "/", "%"};
      return "(" + RandomExpression(random, depth - 1) + ") " + pick(ops) + " (" + RandomExpression(random, depth - 1) + ")";
    }
    default: {
      const char* ops[] = {"<", "<=", ">", ">=", "==", "!="};
      const bool swap = random->Below(3) == 0;
      const std::string op = pick(ops);
      return swap ? pick(literals) + " " + op + " " + pick(fields) : pick(fields) + " " + op + " " + pick(literals);
    }
  }
}

struct Tally {
  uint64_t yes = 0;
  uint64_t by_json = 0;
  uint64_t listed = 0;
  uint64_t matched = 0;
};

void CheckExpression(const std::string& text, const FieldTable& table, const std::vector<std::string>& attributes,
                     Tally* tally) {
  auto expression = FilterExpression::Parse(text);
  REQUIRE(expression.ok());
  ReaderPin pin;
  SlotFilter filter(*expression, table);
  std::set<uint32_t> listed;
  filter.ForEachListed([&](uint32_t slot) { listed.insert(slot); });
  tally->listed += filter.listed() ? 1 : 0;
  uint64_t matched = 0;
  for (uint32_t slot = 0; slot < attributes.size(); ++slot) {
    const bool expected = expression->Matches(attributes[slot]);
    const SlotFilter::Verdict verdict = filter.Test(slot);
    INFO(text << " on " << attributes[slot]);
    if (verdict != SlotFilter::Verdict::kInJson) REQUIRE((verdict == SlotFilter::Verdict::kYes) == expected);
    if (expected && filter.listed()) REQUIRE(listed.count(slot) == 1);
    tally->by_json += verdict == SlotFilter::Verdict::kInJson ? 1 : 0;
    tally->yes += verdict == SlotFilter::Verdict::kYes ? 1 : 0;
    matched += expected ? 1 : 0;
  }
  tally->matched += matched;
  if (filter.listed()) {
    INFO(text);
    REQUIRE(static_cast<double>(*filter.listed()) + 8 >= 0.7 * static_cast<double>(matched));
  }
}

TEST_CASE("fields: columns answer as the attributes do, and lists lack nothing") {
  Random random(99);
  FieldIndex fields;
  fields.Define({{"a", FieldKind::kTag}, {"b", FieldKind::kNumeric}, {"c", FieldKind::kTag}, {"d", FieldKind::kNumeric}},
                FieldIndex::Elements::kNone);
  std::vector<std::string> attributes(kSlots);
  Tally tally;
  for (int round = 0; round < 25; ++round) {
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      if (round != 0 && random.Below(3) != 0) continue;
      attributes[slot] = random.Below(10) == 0 ? "" : RandomAttributes(&random);
      attributes[slot].empty() ? fields.Clear(slot) : fields.Set(slot, attributes[slot]);
    }
    for (int i = 0; i < 60; ++i) {
      CheckExpression(RandomExpression(&random, 1 + static_cast<int>(random.Below(3))), *fields.table(), attributes, &tally);
    }
    IndexReclaim().Collect();
  }
  // Every way is taken.
  CHECK(tally.yes > 20000);
  CHECK(tally.by_json > 20000);
  CHECK(tally.listed > 300);
  CHECK(tally.matched > tally.yes);
}

TEST_CASE("fields: many values, the sorted run and thinned lists") {
  Random random(5);
  FieldIndex fields;
  fields.Define({{"t", FieldKind::kTag}, {"n", FieldKind::kNumeric}}, FieldIndex::Elements::kNone);
  constexpr uint32_t kMany = 6000;
  std::vector<std::string> attributes(kMany);
  Tally tally;
  for (int round = 0; round < 4; ++round) {
    for (uint32_t slot = 0; slot < kMany; ++slot) {
      const uint64_t value = round % 2 == 0 ? random.Below(3000) : random.Below(20);
      attributes[slot] = "{\"t\":\"v" + std::to_string(value) + "\",\"n\":" + std::to_string(random.Below(5000)) + "}";
      fields.Set(slot, attributes[slot]);
    }
    for (const char* text : {".t == 'v7'", ".t in ['v1','v2',3]", "'v11' in .t", ".n < 100", ".n >= 2000 and .n < 2100",
                             ".n == 7 or .n == 9", ".t == 'v3' and .n < 2500", ".t == 'v3' or .n < 50", "not .n > 40",
                             ".n in [1,2,3,'4']", "100 > .n", ".n > 1e400", ".n < -1e400", ".t != 'v3'", ".t == null",
                             ".n == null", ".n + 0 < 100", ".n > 5 - 2 and .t == 'v' and 1"}) {
      CheckExpression(text, *fields.table(), attributes, &tally);
    }
    std::string chain = ".t == 'v0'";
    std::string numbers = ".n == 0";
    for (int i = 1; i < 300; ++i) {
      chain += " or .t == 'v" + std::to_string(i * 3) + "'";
      numbers += " or .n == " + std::to_string(i * 7);
    }
    CheckExpression(chain, *fields.table(), attributes, &tally);
    CheckExpression("(" + chain + ") and (" + numbers + ")", *fields.table(), attributes, &tally);
    CheckExpression("(" + numbers + ") and (" + numbers + ")", *fields.table(), attributes, &tally);
    // Lists stay in proportion to what is there.
    const TagColumn& tags = *fields.table()->Find("t")->tag;
    size_t entries = 0;
    for (uint32_t id = kFirstValueId; id < tags.values().end(); ++id) entries += tags.values().At(id).postings.size();
    CHECK(entries < kMany * 6);
    CHECK(tags.count() == kMany);
  }
  CHECK(tally.by_json == 0);
  CHECK(tally.listed >= 4 * 12);
}

TEST_CASE("fields: a column whose values have gone is made anew") {
  FieldIndex fields;
  fields.Define({{"t", FieldKind::kTag}}, FieldIndex::Elements::kNone);
  for (uint32_t i = 0; i < 10000; ++i) fields.Set(i % 50, "{\"t\":\"once" + std::to_string(i) + "\"}");
  CHECK(fields.table()->Find("t")->tag->values().end() > 9000);
  fields.BeginBuilding();
  REQUIRE(fields.building());
  for (uint32_t slot = 0; slot < 50; ++slot) fields.SetInBuilding(slot, "{\"t\":\"once" + std::to_string(9950 + slot) + "\"}");
  fields.Set(3, "{\"t\":\"late\"}");  // comes while it is built
  fields.FinishBuilding();
  CHECK_FALSE(fields.building());
  const TagColumn& tags = *fields.table()->Find("t")->tag;
  CHECK(tags.values().end() < 100);
  CHECK(tags.count() == 50);
  CHECK(tags.values().Find({JsonKind::kString, 0, "late"}) == tags.IdOf(3));
}

TEST_CASE("fields: definitions") {
  const std::vector<FieldSpec> specs = {{"year", FieldKind::kNumeric}, {"a-b_C9", FieldKind::kTag}};
  const std::string bytes = EncodeFields(specs);
  auto decoded = DecodeFields(bytes);
  REQUIRE(decoded.ok());
  CHECK(*decoded == specs);
  CHECK(DecodeFields("").ok());
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    auto part = DecodeFields(bytes.substr(0, cut));
    if (part.ok()) CHECK(part->size() < specs.size());
  }
  CHECK_FALSE(DecodeFields(bytes + bytes).ok());  // twice the same names
  CHECK_FALSE(DecodeFields(std::string("\3\1a", 3)).ok());
  CHECK_FALSE(CheckFields({{"", FieldKind::kTag}}).ok());
  CHECK_FALSE(CheckFields({{"a.b", FieldKind::kTag}}).ok());
  CHECK_FALSE(CheckFields({{"a b", FieldKind::kTag}}).ok());
  CHECK_FALSE(CheckFields({{std::string(65, 'a'), FieldKind::kTag}}).ok());
  CHECK(CheckFields({{std::string(64, 'a'), FieldKind::kTag}}).ok());
  std::vector<FieldSpec> many;
  for (int i = 0; i < 33; ++i) many.push_back({"f" + std::to_string(i), FieldKind::kTag});
  CHECK_FALSE(CheckFields(many).ok());
}

// Every slot whose number is in the range is in a list, and its number is the model's.
void CheckColumn(const NumericColumn& column, const std::vector<double>& model, double low, double high) {
  ReaderPin pin;
  const NumberRange range = {low, high};
  std::vector<bool> listed(model.size());
  for (const auto& list : column.Find({&range, 1}).lists) {
    for (const uint32_t slot : list) listed[slot] = true;
  }
  uint32_t lacking = 0;
  uint32_t wrong = 0;
  for (uint32_t slot = 0; slot < model.size(); ++slot) {
    double number = -1;
    const bool has = column.StateOf(slot, &number) == NumericColumn::State::kNumber;
    wrong += has != (model[slot] >= 0) || (has && number != model[slot]) ? 1 : 0;
    lacking += model[slot] >= low && model[slot] <= high && !listed[slot] ? 1 : 0;
  }
  CHECK(lacking == 0);
  CHECK(wrong == 0);
}

// Negative: the slot has none.
void SetNumber(NumericColumn* column, std::vector<double>* model, uint32_t slot, double number) {
  column->Set(slot, number < 0 ? JsonValue() : JsonValue{JsonKind::kNumber, number, {}});
  (*model)[slot] = number;
}

TEST_CASE("a numeric column lacks no slot whatever changes while its run is made anew", "[index][fields]") {
  constexpr uint32_t kCount = 50000;
  Random random(21);
  NumericColumn column;
  std::vector<double> model(kCount, -1);
  const auto change = [&](uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) {
      const auto slot = static_cast<uint32_t>(random.Below(kCount));
      // Few numbers, so that slots return to one that they had.
      const double number = random.Below(8) == 0 ? -1 : static_cast<double>(random.Below(10));
      SetNumber(&column, &model, slot, number);
    }
  };
  uint32_t merges = 0;
  for (int round = 0; round < 12; ++round) {
    change(20000);
    if (!column.merge_due()) continue;
    NumericColumn::MergePtr merge = column.BeginMerge();
    CHECK_FALSE(column.merge_due());
    change(5000);
    column.DoMerge(merge.get());
    change(5000);
    CheckColumn(column, model, 2, 4);
    column.FinishMerge(std::move(merge));
    ++merges;
    CheckColumn(column, model, 2, 4);
    CheckColumn(column, model, 0, 9);
  }
  CHECK(merges > 3);
  // Beside changes and reads on other threads.
  for (int round = 0; round < 4; ++round) {
    change(20000);
    NumericColumn::MergePtr merge = column.BeginMerge();
    std::thread merging([&] { column.DoMerge(merge.get()); });
    std::thread reading([&] {
      const NumberRange range = {3, 3};
      for (int i = 0; i < 50; ++i) {
        ReaderPin pin;
        for (const auto& list : column.Find({&range, 1}).lists) {
          for (const uint32_t slot : list) HOTKV_CHECK(slot < kCount);
        }
      }
    });
    change(30000);
    merging.join();
    column.FinishMerge(std::move(merge));
    reading.join();
    CheckColumn(column, model, 3, 3);
    CheckColumn(column, model, 0, 9);
  }
}

TEST_CASE("an index leaves a large column's order to upkeep, and finds everything meanwhile", "[index][fields]") {
  IndexOptions options;
  options.dim = 2;
  options.m = 2;
  options.ef_construction = 1;
  auto index = VectorIndex::Create(options, nullptr, "").value();
  REQUIRE(index->SetFields({{"n", FieldKind::kNumeric}}).ok());
  constexpr int kCount = 70000;
  const std::vector<float> vector = {1, 2};
  for (int i = 0; i < kCount; ++i) {
    REQUIRE(index->ApplySet(static_cast<uint32_t>(i), std::to_string(i), vector, "{\"n\":" + std::to_string(i % 1000) + "}").ok());
  }
  const auto where = FilterExpression::Parse(".n >= 10 and .n < 20").value();
  CHECK(index->CountMatching(where) == kCount / 100);
  for (int i = 0; i < 3000; ++i) index->SetAttr(std::to_string(i), "{\"n\":15}");
  const uint64_t moved = 3000 - 3 * 10 + kCount / 100;
  CHECK(index->CountMatching(where) == moved);
  CHECK(index->BuildFields(256));  // a run
  CHECK_FALSE(index->BuildFields(256));
  CHECK(index->CountMatching(where) == moved);
}

}  // namespace
}  // namespace hotkv
