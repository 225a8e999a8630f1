// CRC32C (Castagnoli polynomial, reflected, as in iSCSI's RFC 3720): the checksum of every file
// format. No masking: the value stored is the value computed.
//
// SSE4.2 with three interleaved streams where the CPU has it (chosen once, at first use), else a
// table.
//
// Thread rules: any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace hotkv {

// The checksum of a followed by data, given the checksum of a; ExtendCrc32c(0, data) is that of
// data alone.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view data);
inline uint32_t Crc32c(std::string_view data) { return ExtendCrc32c(0, data); }

// The two implementations, for tests and benchmarks. The first may be called only where
// Crc32cHasSse42().
bool Crc32cHasSse42();
uint32_t ExtendCrc32cSse42(uint32_t crc, std::string_view data);
uint32_t ExtendCrc32cTable(uint32_t crc, std::string_view data);

}  // namespace hotkv
