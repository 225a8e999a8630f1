#include "persistence/log/log_format.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"

namespace hotkv {
namespace {

constexpr uint32_t kSeed = 0xfeedbeef;

BlockHeader SampleBlock() {
  BlockHeader header;
  header.segment = 42;
  header.start = 7;
  header.epoch = 1000;
  header.wall_ms = 1790000000123;
  header.durable_epoch = 990;
  header.previous_checksum = 0xabcdef01;
  header.groups = {{0, GroupEncoding::kPlain, 11, 100, 0},
                   {5, GroupEncoding::kZstd, 22, 1, 0},
                   {63, GroupEncoding::kPlain, 33, 70000, 0}};
  return header;
}

TEST_CASE("log format: segment header", "[log]") {
  SegmentHeader header;
  header.identity = {1, 4096, 3};
  header.segment = 42;
  header.start = 9;
  header.size_bytes = 4 << 20;
  header.recycled = GENERATE(false, true);
  header.chain_start = GENERATE(false, true);
  const std::string bytes = EncodeSegmentHeader(header);
  REQUIRE(bytes.size() == kSegmentHeaderBytes);
  auto decoded = DecodeSegmentHeader(bytes);
  REQUIRE(decoded.ok());
  CHECK(*decoded == header);
  for (size_t bit = 0; bit < 64 * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    CHECK_FALSE(DecodeSegmentHeader(flipped).ok());
  }
  for (size_t length = 0; length < 64; ++length) {
    CHECK_FALSE(DecodeSegmentHeader(std::string_view(bytes).substr(0, length)).ok());
  }
}

TEST_CASE("log format: block header", "[log]") {
  BlockHeader header = SampleBlock();
  const std::string bytes = EncodeBlockHeader(&header, kSeed);
  CHECK(bytes.size() == kBlockFixedBytes + 3 * kGroupEntryBytes);
  CHECK(header.block_bytes % kBlockAlignBytes == 0);
  CHECK(header.block_bytes >= bytes.size() + 70101);
  CHECK(header.block_bytes < bytes.size() + 70101 + kBlockAlignBytes);
  CHECK(header.groups[1].offset == bytes.size() + 100);
  CHECK(header.groups[2].offset == bytes.size() + 101);
  auto decoded = DecodeBlockHeader(bytes + std::string(500, 'x'), kSeed);
  REQUIRE(decoded.ok());
  CHECK(*decoded == header);
  CHECK_FALSE(DecodeBlockHeader(bytes, kSeed + 1).ok());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    CHECK_FALSE(DecodeBlockHeader(flipped, kSeed).ok());
  }
  for (size_t length = 0; length < bytes.size(); ++length) {
    CHECK_FALSE(DecodeBlockHeader(std::string_view(bytes).substr(0, length), kSeed).ok());
  }
}

TEST_CASE("log format: an empty block", "[log]") {
  BlockHeader header = SampleBlock();
  header.groups.clear();
  header.clean_stop = true;
  const std::string bytes = EncodeBlockHeader(&header, kSeed);
  auto decoded = DecodeBlockHeader(bytes, kSeed);
  REQUIRE(decoded.ok());
  CHECK(*decoded == header);
  CHECK(header.block_bytes == 128);
}

// Recomputes the checksum, so that the checks behind it are reached.
std::string Resum(std::string bytes) {
  StoreLe(bytes.data() + 4, ExtendCrc32c(kSeed, std::string_view(bytes).substr(8)));
  return bytes;
}

TEST_CASE("log format: fields out of range behind a valid checksum", "[log]") {
  BlockHeader header = SampleBlock();
  const std::string bytes = EncodeBlockHeader(&header, kSeed);
  const auto with = [&](size_t offset, auto value) {
    std::string changed = bytes;
    StoreLe(changed.data() + offset, value);
    return DecodeBlockHeader(Resum(changed), kSeed).status().code();
  };
  REQUIRE(DecodeBlockHeader(Resum(bytes), kSeed).ok());
  CHECK(with(8, uint16_t{2}) == Code::kUnsupported);
  CHECK(with(8, uint16_t{0}) == Code::kCorruption);
  CHECK(with(10, uint16_t{2}) == Code::kCorruption);
  CHECK(with(20, uint32_t{1}) == Code::kCorruption);
  CHECK(with(56, uint64_t{1000}) == Code::kCorruption);  // watermark not before the epoch
  CHECK(with(64, header.block_bytes + 64) == Code::kCorruption);
  CHECK(with(64, uint64_t{1} << 60) == Code::kCorruption);
  CHECK(with(80 + 4, uint8_t{64}) == Code::kCorruption);  // group number
  CHECK(with(96 + 4, uint8_t{0}) == Code::kCorruption);   // not ascending
  CHECK(with(80 + 5, uint8_t{2}) == Code::kCorruption);   // encoding
  CHECK(with(80 + 8, uint64_t{0}) == Code::kCorruption);  // empty group
  CHECK(with(80 + 8, UINT64_MAX - 50) == Code::kCorruption);
}

TEST_CASE("log format: random bytes are refused", "[log]") {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 400, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (bytes.size() >= 4) StoreLe(bytes.data(), uint32_t{0x424b5648});
    if (bytes.size() >= 14) StoreLe(bytes.data() + 12, static_cast<uint16_t>(random() % 70));
    CHECK_FALSE(DecodeBlockHeader(bytes, kSeed).ok());
    CHECK_FALSE(DecodeSegmentHeader(bytes).ok());
  }
}

TEST_CASE("log format: file names", "[log]") {
  CHECK(SegmentFileName(42) == "00000042.hkl");
  CHECK(SegmentFileName(123456789012) == "123456789012.hkl");
  for (uint64_t n : {uint64_t{1}, uint64_t{42}, uint64_t{99999999}, uint64_t{100000000}}) {
    CHECK(ParseSegmentFileName(SegmentFileName(n)) == n);
  }
  for (const char* name : {"", "x.hkl", "00000000.hkl", "42.hkl", "000000042.hkl", "00000042.hks",
                           "0000004a.hkl", "00000042.hkl.tmp", "99999999999999999999999.hkl"}) {
    CHECK(ParseSegmentFileName(name) == 0);
  }
}

}  // namespace
}  // namespace hotkv
