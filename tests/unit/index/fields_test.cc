// Declared fields: columns against the evaluation of JSON, for random expressions over changing attributes; restart.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

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

}  // namespace
}  // namespace hotkv
