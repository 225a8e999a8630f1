#include "engine/base/crc32c.h"

#include <array>
#include <cstddef>

namespace hotkv {

namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // reflected

// Eight tables: kTables[k][b] is the effect of byte b, k bytes before the end of an 8-byte step.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t b = 0; b < 256; ++b) {
      const uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

using ExtendFunction = uint32_t (*)(uint32_t, std::string_view);

}  // namespace

uint32_t ExtendCrc32cTable(uint32_t crc, std::string_view data) {
  crc = ~crc;
  const auto* p = reinterpret_cast<const unsigned char*>(data.data());
  size_t left = data.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint32_t next = 0;
    for (size_t i = 0; i < 8; ++i) {
      const uint32_t byte = i < 4 ? (p[i] ^ ((crc >> (8 * i)) & 0xff)) : p[i];
      next ^= kTables[7 - i][byte];
    }
    crc = next;
  }
  for (; left > 0; ++p, --left) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xff];
  return ~crc;
}

bool Crc32cHasSse42() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
#else
  return false;
#endif
}

uint32_t ExtendCrc32c(uint32_t crc, std::string_view data) {
  static const ExtendFunction extend = Crc32cHasSse42() ? ExtendCrc32cSse42 : ExtendCrc32cTable;
  return extend(crc, data);
}

}  // namespace hotkv
