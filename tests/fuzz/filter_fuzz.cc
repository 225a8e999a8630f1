// Filter expressions and the attributes that they are applied to: any bytes parse or fail with a position, and evaluating
// never crashes; what matches is JSON by another parser's judgement too.
#include <nlohmann/json.hpp>

#include "index/filter/filter_expression.h"
#include "tests/fuzz/fuzz_target.h"

namespace hotkv {
namespace {

std::vector<std::string> Seeds() {
  const auto pair = [](std::string_view filter, std::string_view json) {
    std::string out;
    AppendPiece(filter, &out);
    out += json;
    return out;
  };
  return {pair(".year >= 1980 and .genre in [\"a\", 'b']", R"({"year":1984,"genre":"a"})"),
          pair("not (.a + 2 * .b ** 2 % 3 == -1.5e3) || 'x' in .tags", R"({"a":-0.5e3,"b":[],"tags":["x","\u00e9\n"]})"),
          pair("!.ok && .n != null", R"({"ok":false,"n":null,"o":{"p":[1,{"q":[]}]}})"),
          pair(".a/.b - 1 <= (3)", R"({"a" : "12" , "b":true})")};
}

// Bytes that are no UTF-8 pass here and not there; nesting is bounded here only; a number beyond double is an error there
// and infinite here.
bool IsObject(std::string_view json) {
  try {
    return nlohmann::json::parse(json).is_object();
  } catch (const nlohmann::json::out_of_range&) {
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

bool IsAscii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

}  // namespace
}  // namespace hotkv

HOTKV_FUZZ_TARGET(filter, hotkv::Seeds) {
  FuzzInput parts(input);
  const std::string_view text = parts.Piece();
  const std::string_view json = parts.Rest();
  auto parsed = FilterExpression::Parse(text);
  if (!parsed.ok()) {
    HOTKV_CHECK(parsed.status().message().starts_with("filter: "));
    return;
  }
  const bool matches = parsed->Matches(json);
  // The expression with its opposite covers every element that has the fields.
  auto opposite = FilterExpression::Parse("not (" + std::string(text) + ")");
  if (opposite.ok()) HOTKV_CHECK(!(matches && opposite->Matches(json)));
  // A lone surrogate is an error there and a replacement character here.
  if (matches && IsAscii(json) && json.find("\\u") == std::string_view::npos) HOTKV_CHECK(IsObject(json));
}
