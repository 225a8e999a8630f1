#include "engine/base/crc32c.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

namespace hotkv {
namespace {

// Bit by bit, from the definition.
uint32_t Reference(std::string_view data) {
  uint32_t crc = 0xffffffff;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

std::string Random(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string data(size, '\0');
  for (char& c : data) c = static_cast<char>(random());
  return data;
}

TEST_CASE("crc32c: published vectors", "[crc32c]") {
  std::string ascending;
  std::string descending;
  for (int i = 0; i < 32; ++i) {
    ascending += static_cast<char>(i);
    descending += static_cast<char>(31 - i);
  }
  struct {
    std::string data;
    uint32_t crc;
  } const vectors[] = {{"", 0},
                       {"a", 0xC1D04330},
                       {"123456789", 0xE3069283},
                       {std::string(32, '\0'), 0x8A9136AA},
                       {std::string(32, '\xff'), 0x62A8AB43},
                       {ascending, 0x46DD794E},
                       {descending, 0x113FDB5C}};
  for (const auto& v : vectors) {
    CHECK(Crc32c(v.data) == v.crc);
    CHECK(ExtendCrc32cTable(0, v.data) == v.crc);
    if (Crc32cHasSse42()) CHECK(ExtendCrc32cSse42(0, v.data) == v.crc);
  }
}

TEST_CASE("crc32c: both implementations at all lengths and alignments", "[crc32c]") {
  const std::string data = Random(40000, 1);
  std::vector<size_t> lengths;
  for (size_t n = 0; n < 800; ++n) lengths.push_back(n);
  for (size_t n : {4095, 4096, 12287, 12288, 12289, 12700, 24576, 39990}) lengths.push_back(n);
  for (const size_t n : lengths) {
    const std::string_view part = std::string_view(data).substr(n % 9, n);
    const uint32_t expected = Reference(part);
    REQUIRE(ExtendCrc32cTable(0, part) == expected);
    REQUIRE(Crc32c(part) == expected);
    if (Crc32cHasSse42()) REQUIRE(ExtendCrc32cSse42(0, part) == expected);
  }
}

TEST_CASE("crc32c: extending equals the whole", "[crc32c]") {
  const std::string data = Random(30000, 2);
  const uint32_t whole = Reference(data);
  for (size_t cut : {0, 1, 7, 8, 383, 384, 385, 12288, 15000, 29999, 30000}) {
    const std::string_view view(data);
    CHECK(ExtendCrc32c(Crc32c(view.substr(0, cut)), view.substr(cut)) == whole);
    CHECK(ExtendCrc32cTable(ExtendCrc32cTable(0, view.substr(0, cut)), view.substr(cut)) == whole);
  }
}

}  // namespace
}  // namespace hotkv
