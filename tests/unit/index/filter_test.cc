// Filter expressions: Redis's meaning as a table, parse errors, and random expressions against an evaluator that builds a
// DOM with another JSON parser.
#include <catch2/catch.hpp>

#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "index/filter/filter_expression.h"

namespace hotkv {
namespace {

using Json = nlohmann::json;

bool Matches(std::string_view filter, std::string_view json) {
  auto parsed = FilterExpression::Parse(filter);
  INFO(filter << " on " << json);
  if (!parsed.ok()) FAIL(parsed.status().message());
  return parsed->Matches(json);
}

std::string ErrorOf(std::string_view filter) {
  auto parsed = FilterExpression::Parse(filter);
  return parsed.ok() ? "" : parsed.status().message();
}

constexpr std::string_view kAlice =
    R"({"age": 25, "name": "Alice", "active": true, "scores": [85, 90, 95], "city": "New York", "note": null,
        "half": 0.5, "neg": -3, "ten": "10", "empty": "", "none": [], "tags": ["a", "b\"c", "d"], "mixed": [1, "x"],
        "nested": {"age": 1}, "flags": [true], "deep": [[1]], "esc": "l1\nl2\u00e9", "zero": 0, "no": false})";

struct Case {
  const char* filter;
  bool expected;
};

TEST_CASE("filter: what matches, by Redis's rules") {
  const Case cases[] = {
      {".age == 25", true}, {".age != 25", false}, {".age > 25", false}, {".age >= 25", true},
      {".age < 30 and .age > 20", true}, {".age<30&&.age>20", true}, {".age < 20 or .age < 30", true},
      {".age < 20 || .age > 30", false}, {"not .age == 25", false}, {"!(.age == 25)", false},
      {"not (.age > 30)", true}, {"!!.active", true}, {"!!.neg == 1", true}, {"not not .zero", false},
      // not binds tightest: (not 25) == 0
      {"not .age == 0", true}, {"!.zero == 1", true},
      {".name == \"Alice\"", true}, {".name == 'Alice'", true}, {".name != 'Bob'", true},
      {".age in [25, 35]", true}, {".age in [1]", false}, {".age in []", false},
      {".name in [\"Alice\", 'David']", true}, {"\"lic\" in .name", true}, {"'' in .name", true},
      {".name in ''", false}, {".name in 'xAlicex'", true}, {"'xyz' in .name", false},
      {"90 in .scores", true}, {"91 in .scores", false}, {"'a' in .tags", true}, {"'b\"c' in .tags", true},
      {"'z' in .tags", false}, {"1 in .mixed", true}, {"'x' in .mixed", true}, {"1 in .none", false},
      {"1 in .age", false}, {"1 in 1", false}, {"'1' in 1", false},
      {".age + 10 > 30", true}, {".age * 2 == 50", true}, {".age / 5 == 5", true}, {".age % 2 == 1", true},
      {".age ** 2 == 625", true}, {"2 ** 3 ** 2 == 64", true}, {"10 - 3 - 2 == 5", true}, {"1 + 2 * 3 == 7", true},
      {"(1 + 2) * 3 == 9", true}, {"-2 ** 2 == 4", true}, {".neg == -3", true}, {".age -5 == 20", true},
      {".age-5", false},  // a field of that name
      {".age / 0 > 1e308", true}, {"0 / 0 == 0 / 0", false}, {".half == 5e-1", true}, {".half == 0.5", true},
      {".active", true}, {".active == 1", true}, {".active == true", true}, {".no == false", true}, {".no", false},
      {".scores", true}, {".none", true}, {".empty", false}, {".name", true}, {".zero", false},
      {".note == null", true}, {".note", false}, {".age == null", false}, {".age != null", true},
      {".note == 0", false}, {".note < 1", true}, {"null == null", true},
      // mixed kinds compare as numbers, and what is none is 0
      {".ten == 10", true}, {".ten > 9", true}, {".name == 0", true}, {".name > -1", true}, {".scores == 0", true},
      {"'b' > 'a'", false}, {"'b' >= 'a'", true}, {"'0x10' == 16", true}, {"'1 ' == 1", false}, {"'' == 0", true},
      // a field that is missing, or of no use, makes the whole false
      {".missing", false}, {".missing == 1", false}, {".missing != 1", false}, {"not .missing", false},
      {".missing or .age == 25", false}, {".age == 25 or .missing", false}, {".nested", false},
      {"!.nested", false}, {".flags", false}, {".deep or 1", false}, {".esc == 'l1\\nl2é'", true},
      {"1", true}, {"0", false}, {"'a'", true}, {"[1]", true}, {"true and not false", true},
      {"  .age\t==\n25  ", true}, {".age in[25]", true}, {"(((.age)))==((25))", true},
  };
  for (const Case& c : cases) {
    INFO(c.filter);
    CHECK(Matches(c.filter, kAlice) == c.expected);
  }
}

TEST_CASE("filter: attributes that are no JSON object never match") {
  const char* bad[] = {
      "", " ", "null", "[]", "1", "\"a\"", "{", "{}x", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{'a':1}",
      "{\"a\":01}", "{\"a\":1.}", "{\"a\":.5}", "{\"a\":+1}", "{\"a\":1e}", "{\"a\":tru}", "{\"a\":\"x}",
      "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":\"\n\"}", "{\"a\":[1,]}", "{\"a\":[1}", "{\"a\":{\"b\":1]}",
      "{\"a\":1 \"b\":2}", "{\"a\":nan}", "{\"a\":1}{", "{\"a\":[}]}", "{\"a\":{,}}", "{\"a\":[1 2]}", "{,}",
      "{\"a\":1,\"b\":[[]", "invalid json"};
  for (const char* json : bad) {
    INFO(json);
    CHECK_FALSE(Matches("1", json));
    CHECK_FALSE(Matches(".a == .a or 1", json));
    const bool object = Json::accept(json) && Json::parse(json).is_object();
    CHECK_FALSE(object);
  }
  CHECK(Matches("1", "{}"));
  CHECK(Matches(".a == 1", "{\"a\":1,\"a\":2}"));
  CHECK(Matches(".ab == 1", "{\"\\u0061b\":1}"));
  CHECK(Matches(".a == 1", " {\"b\" : { \"a\" : [ { } , [ ] , [ [ { } ] ] ] } , \"a\" : 1 } "));
  CHECK(Matches(".a > 1e308", "{\"a\":1e999}"));
  std::string deep = "{\"b\":" + std::string(120, '[') + std::string(120, ']') + ",\"a\":1}";
  CHECK(Matches(".a", deep));
  deep = "{\"b\":" + std::string(200, '[') + std::string(200, ']') + ",\"a\":1}";
  CHECK_FALSE(Matches(".a", deep));
}

TEST_CASE("filter: errors say what and where") {
  const struct {
    const char* filter;
    const char* error;
  } cases[] = {
      {"", "filter: expected a value at position 1"},
      {".a ==", "filter: expected a value at position 6"},
      {".a == 1 )", "filter: a ')' that nothing opens at position 9"},
      {"(.a == 1", "filter: a '(' that nothing closes at position 1"},
      {".a .b", "filter: expected an operator at position 4"},
      {".a.b", "filter: expected an operator at position 3"},
      {".a = 1", "filter: expected an operator at position 4"},
      {".a & 1", "filter: expected an operator at position 4"},
      {".a == 'x", "filter: a string that does not end at position 7"},
      {".a in [1, 2", "filter: a '[' that nothing closes at position 7"},
      {".a in [1 2]", "filter: expected ',' or ']' at position 10"},
      {".a in [.b]", "filter: expected a number or a string at position 8"},
      {". == 1", "filter: expected a field's name after '.' at position 1"},
      {".a == 1.2.3", "filter: not a number at position 7"},
      {".a == 1e", "filter: not a number at position 7"},
      {".a == bad", "filter: expected a value at position 7"},
      {"and .a", "filter: expected a value at position 1"},
      {".a and or .b", "filter: expected a value at position 8"},
      {"- .a", "filter: expected a value at position 1"},
      {"(1 2)", "filter: expected an operator or ')' at position 4"},
      {"not", "filter: expected a value at position 4"},
  };
  for (const auto& c : cases) {
    INFO(c.filter);
    CHECK(ErrorOf(c.filter) == c.error);
  }
  CHECK(ErrorOf(std::string(1000, '(')).starts_with("filter: nested too deeply"));
  CHECK(ErrorOf(std::string(1000, '!') + "1").starts_with("filter: nested too deeply"));
  CHECK(ErrorOf(std::string(100, '(') + "1" + std::string(100, ')')).empty());
  std::string chain = "1";
  for (int i = 0; i < 1000; ++i) chain += " or .a == 1";
  CHECK(ErrorOf(chain).empty());
  CHECK(Matches(chain, "{\"a\":2}"));
  for (int i = 0; i < 100; ++i) chain += " or .a == 1";
  CHECK(ErrorOf(chain).starts_with("filter: too many operators"));
  CHECK(ErrorOf(std::string(kFilterTextMax + 1, ' ')).starts_with("filter: longer than"));
  std::string fields = "1";
  for (int i = 0; i < 65; ++i) fields += " and .f" + std::to_string(i);
  CHECK(ErrorOf(fields).starts_with("filter: too many fields"));
}

// ---- random expressions ----

// A value as the naive evaluator has it; nothing: the expression is false as a whole.
using Value = std::optional<Json>;

double NumberOf(const Json& v) {
  if (v.is_boolean()) return v.get<bool>() ? 1 : 0;
  if (v.is_number()) return v.get<double>();
  if (!v.is_string() || v.get<std::string>().empty()) return 0;
  const std::string text = v;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return *end == '\0' ? number : 0;
}

bool TruthOf(const Json& v) {
  if (v.is_null()) return false;
  if (v.is_string()) return !v.get<std::string>().empty();
  if (v.is_array()) return true;
  return NumberOf(v) != 0;
}

bool EqualOf(const Json& a, const Json& b) {
  if (a.is_string() && b.is_string()) return a == b;
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  return NumberOf(a) == NumberOf(b);
}

// Makes an expression's text and, on one object, its value, side by side.
class Maker {
 public:
  Maker(Random* random, const Json& object) : random_(*random), object_(object) {}

  // Everything in parentheses but what `bare` says; precedence is tested by the table above.
  std::pair<std::string, Value> Make(int depth) {
    if (depth == 0 || Roll(5) == 0) return Leaf();
    if (Roll(6) == 0) {
      auto [text, value] = Make(depth - 1);
      if (value) value = Json(TruthOf(*value) ? 0.0 : 1.0);
      return {(Roll(2) == 0 ? "not (" : "!(") + text + ")", value};
    }
    const char* ops[] = {"+", "-", "*", "/", "%", "**", "<", "<=", ">", ">=", "==", "!=", "in", "and", "or", "&&", "||"};
    const std::string op = ops[Roll(std::size(ops))];
    auto [left, a] = Make(depth - 1);
    auto [right, b] = op == "in" ? Container() : Make(depth - 1);
    const std::string text = "(" + left + ") " + op + " (" + right + ")";
    if (!a || !b) return {text, std::nullopt};
    return {text, Apply(op, *a, *b)};
  }

 private:
  uint32_t Roll(size_t sides) { return static_cast<uint32_t>(random_.Below(sides)); }

  static Value Apply(const std::string& op, const Json& a, const Json& b) {
    const double x = NumberOf(a);
    const double y = NumberOf(b);
    const auto truth = [](bool is) { return Json(is ? 1.0 : 0.0); };
    if (op == "+") return Json(x + y);
    if (op == "-") return Json(x - y);
    if (op == "*") return Json(x * y);
    if (op == "/") return Json(x / y);
    if (op == "%") return Json(std::fmod(x, y));
    if (op == "**") return Json(std::pow(x, y));
    if (op == "<") return truth(x < y);
    if (op == "<=") return truth(x <= y);
    if (op == ">") return truth(x > y);
    if (op == ">=") return truth(x >= y);
    if (op == "==") return truth(EqualOf(a, b));
    if (op == "!=") return truth(!EqualOf(a, b));
    if (op == "and" || op == "&&") return truth(TruthOf(a) && TruthOf(b));
    if (op == "or" || op == "||") return truth(TruthOf(a) || TruthOf(b));
    if (b.is_array()) {
      for (const Json& item : b) {
        if (EqualOf(a, item)) return truth(true);
      }
      return truth(false);
    }
    if (!a.is_string() || !b.is_string()) return truth(false);
    return truth(b.get<std::string>().find(a.get<std::string>()) != std::string::npos);
  }

  std::pair<std::string, Value> Container() {
    if (Roll(2) == 0) return Leaf();
    return {"[1, 'a', 2.5, \"7\"]", Json::array({1, "a", 2.5, "7"})};
  }

  std::pair<std::string, Value> Leaf() {
    const char* literals[] = {"0", "1", "2.5", "-3", "'a'", "''", "\"7\"", "null", "'ab'", "true", "false"};
    const Json values[] = {0, 1, 2.5, -3, "a", "", "7", nullptr, "ab", 1, 0};
    if (Roll(3) == 0) {
      const uint32_t at = Roll(std::size(values));
      return {literals[at], values[at]};
    }
    const std::string name(1, static_cast<char>('a' + Roll(8)));
    if (!object_.contains(name) || object_[name].is_object()) return {"." + name, std::nullopt};
    return {"." + name, object_[name]};
  }

  Random& random_;
  const Json& object_;
};

Json RandomObject(Random* random) {
  const Json values[] = {0, 1, 2.5, -3, "a", "", "7", nullptr, "ab", true, false, {{"x", 1}}, Json::array(),
                         Json::array({1, "a"}), Json::array({"7", "\n\"\\\u00e9"}), 1e300, "\t'\u20ac"};
  Json object = Json::object();
  for (char name = 'a'; name < 'i'; ++name) {
    if (random->Below(12) != 0) object[std::string(1, name)] = values[random->Below(std::size(values))];
  }
  return object;
}

TEST_CASE("filter: random expressions agree with a naive evaluator") {
  Random random(4711);
  int matched = 0;
  int whole = 0;
  for (int round = 0; round < 20000; ++round) {
    const Json object = RandomObject(&random);
    Maker maker(&random, object);
    const auto [text, value] = maker.Make(1 + static_cast<int>(random.Below(4)));
    const bool expected = value && TruthOf(*value);
    const std::string json = object.dump(random.Below(2) == 0 ? -1 : 2, ' ', random.Below(2) == 0);
    INFO(text << " on " << json);
    REQUIRE(Matches(text, json) == expected);
    matched += expected ? 1 : 0;
    whole += value ? 1 : 0;
  }
  CHECK(matched > 3000);
  CHECK(whole - matched > 3000);
}

}  // namespace
}  // namespace hotkv
