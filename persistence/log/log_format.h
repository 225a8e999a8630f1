// Bytes of the epoch log: segment headers, block headers and their group directories
// (docs/formats/log.md).
//
// A segment is a file of fixed-size header and epoch blocks one after the other, each beginning at
// a multiple of 64 bytes. Decoders take hostile bytes: they never read past what they are given,
// bound every length, and say kCorruption for what was never written by us and kUnsupported for a
// newer format.
//
// Change together: docs/formats/log.md, log_format.cc, tests/golden.
// Thread rules: values only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/tx/effect.h"

namespace hotkv {

inline constexpr uint16_t kLogFormatVersion = 1;
inline constexpr size_t kSegmentHeaderBytes = 4096;  // the first block begins here
inline constexpr size_t kBlockAlignBytes = 64;
inline constexpr size_t kBlockFixedBytes = 80;
inline constexpr size_t kGroupEntryBytes = 16;
inline constexpr size_t kBlockHeaderBytesMax = kBlockFixedBytes + kStripeGroups * kGroupEntryBytes;
// Bounds a corrupt length, nothing else.
inline constexpr uint64_t kBlockBytesMax = uint64_t{1} << 40;

// What every file of a data directory carries, so that files of different directories are never
// mixed.
struct LogIdentity {
  uint64_t directory_id = 0;
  uint32_t stripe_count = 0;
  uint64_t hash_seed = 0;
  // Block checksums begin with it: a client's value can then never look like a block to a scan.
  uint32_t checksum_seed() const { return static_cast<uint32_t>(hash_seed ^ hash_seed >> 32); }
  bool operator==(const LogIdentity&) const = default;
};

struct SegmentHeader {
  LogIdentity identity;
  uint64_t segment = 0;
  uint64_t start = 0;
  uint64_t size_bytes = 0;  // of the file when made
  // What follows the last block may be remains of an older segment, not zeros.
  bool recycled = false;
  // Its first block follows no other: a new directory, or logging was off in between.
  bool chain_start = false;
  bool operator==(const SegmentHeader&) const = default;
};

// kSegmentHeaderBytes long.
std::string EncodeSegmentHeader(const SegmentHeader& header);
Result<SegmentHeader> DecodeSegmentHeader(std::string_view bytes);

enum class GroupEncoding : uint8_t { kPlain = 0, kZstd = 1 };

struct GroupEntry {
  uint8_t group = 0;
  GroupEncoding encoding = GroupEncoding::kPlain;
  uint32_t crc = 0;    // of the stored bytes
  uint64_t bytes = 0;  // stored
  // Within the block; not stored, groups follow the header one after the other.
  uint64_t offset = 0;
  bool operator==(const GroupEntry&) const = default;
};

struct BlockHeader {
  uint64_t segment = 0;
  uint64_t start = 0;
  uint64_t epoch = 0;
  uint64_t wall_ms = 0;        // never less than in the block before
  uint64_t durable_epoch = 0;  // the last epoch known durable when this was written: the watermark
  uint32_t previous_checksum = 0;
  bool clean_stop = false;   // the last block that its start wrote
  uint64_t block_bytes = 0;  // header, groups and padding: a multiple of kBlockAlignBytes
  uint32_t checksum =
      0;  // of the header and its directory, hence of all; the next block's previous_checksum
  std::vector<GroupEntry> groups;  // ascending by group

  uint64_t header_bytes() const { return kBlockFixedBytes + groups.size() * kGroupEntryBytes; }
  bool operator==(const BlockHeader&) const = default;
};

inline constexpr uint64_t BlockBytesFor(uint64_t header_and_groups) {
  return (header_and_groups + kBlockAlignBytes - 1) / kBlockAlignBytes * kBlockAlignBytes;
}

// Sets block_bytes, checksum and the groups' offsets in *header and returns the header's bytes.
std::string EncodeBlockHeader(BlockHeader* header, uint32_t checksum_seed);
// Of the first kBlockFixedBytes: the length of the whole header; 0 when no block begins here.
size_t PeekBlockHeaderBytes(std::string_view fixed);
// bytes: at least the whole header.
Result<BlockHeader> DecodeBlockHeader(std::string_view bytes, uint32_t checksum_seed);

// "00000042.hkl", and back; 0 for other names (segment numbers begin at 1).
std::string SegmentFileName(uint64_t number);
uint64_t ParseSegmentFileName(std::string_view name);

}  // namespace hotkv
