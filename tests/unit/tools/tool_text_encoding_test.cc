// Text forms of bytes: against independent statements of the same rules.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "tools/hotkv_tool/text_encoding.h"

namespace hotkv {
namespace {

std::string Base64(std::string_view bytes) {
  std::string out;
  AppendBase64(bytes, &out);
  return out;
}

std::string RandomBytes(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random.Next());
  return bytes;
}

TEST_CASE("base64: the test vectors of RFC 4648") {
  const std::pair<std::string, std::string> vectors[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : vectors) {
    CHECK(Base64(plain) == encoded);
    CHECK(DecodeBase64(encoded) == plain);
  }
}

TEST_CASE("base64: other texts are refused") {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "=Zg=", "Zg==Zg==", "Zm 9", "Zm9v\n", "____"}) {
    CAPTURE(text);
    CHECK_FALSE(DecodeBase64(text).has_value());
  }
}

TEST_CASE("base64: bytes read back as they were") {
  Random random(11);
  for (size_t size = 0; size < 300; ++size) {
    const std::string bytes = RandomBytes(random, size);
    REQUIRE(DecodeBase64(Base64(bytes)) == bytes);
  }
}

TEST_CASE("UTF-8: agrees with the JSON library on random and on nearly valid bytes") {
  // The library throws on strings that are not UTF-8.
  const auto library_says = [](const std::string& bytes) {
    try {
      static_cast<void>(nlohmann::json(bytes).dump());
      return true;
    } catch (const nlohmann::json::exception&) {
      return false;
    }
  };
  const std::string parts[] = {"a",      "\x7f",         "\xc2\x80",         "\xdf\xbf",         "\xe0\xa0\x80", "\xed\x9f\xbf",
                               "\xed\xa0\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xc0\x80",
                               "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xc2", "\xe1\x80", "\x80", "\xff"};
  Random random(12);
  int valid = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (uint64_t n = random.Next() % 4; n > 0; --n) bytes += parts[random.Next() % std::size(parts)];
    if (round % 4 == 0) bytes += RandomBytes(random, random.Next() % 3);
    CAPTURE(Base64(bytes));
    REQUIRE(IsUtf8(bytes) == library_says(bytes));
    valid += IsUtf8(bytes) ? 1 : 0;
  }
  CHECK(valid > 1000);
  CHECK(valid < 19000);
}

TEST_CASE("JSON strings: the library reads back what was written") {
  std::string all;
  for (int c = 0; c < 128; ++c) all.push_back(static_cast<char>(c));
  all += "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
  std::string text;
  AppendJsonString(all, &text);
  CHECK(nlohmann::json::parse(text).get<std::string>() == all);
}

TEST_CASE("JSON nesting is that of brackets outside strings") {
  CHECK(JsonNesting("") == 0);
  CHECK(JsonNesting("{}") == 1);
  CHECK(JsonNesting("[[{}],[]]") == 3);
  CHECK(JsonNesting(R"({"[[[[":"]]\"[[["})") == 1);
  CHECK(JsonNesting(R"("\\[" [)") == 1);
  CHECK(JsonNesting(std::string(1000, '[')) == 1000);
  CHECK(JsonNesting("]]][") == 1);
}

TEST_CASE("floats: the text gives the same float, by way of float and of double") {
  Random random(13);
  const auto check = [](float value) {
    std::string text;
    AppendFloat(value, &text);
    CAPTURE(text);
    REQUIRE(std::strtof(text.c_str(), nullptr) == value);
    REQUIRE(static_cast<float>(std::strtod(text.c_str(), nullptr)) == value);
    REQUIRE(nlohmann::json::accept(text));
  };
  for (const float value : {0.0f, -0.0f, 1.0f, 0.1f, -1.5e-45f, std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::min(), std::numeric_limits<float>::denorm_min()}) {
    check(value);
  }
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<uint32_t>(random.Next());
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) check(value);
  }
}

}  // namespace
}  // namespace hotkv
