#include "persistence/log/log_format.h"

#include <fmt/format.h>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"

namespace hotkv {

namespace {

constexpr std::string_view kSegmentMagic = "HKVLOGSG";
constexpr uint32_t kBlockMagic = 0x424b5648;  // "HVKB" in the file

constexpr uint32_t kFlagRecycled = 1;    // of a segment
constexpr uint32_t kFlagChainStart = 2;  // of a segment
constexpr uint16_t kFlagCleanStop = 1;   // of a block

// Offsets of a segment header's fields.
constexpr size_t kSegVersion = 8;
constexpr size_t kSegFlags = 12;
constexpr size_t kSegDirectory = 16;
constexpr size_t kSegStripes = 24;
constexpr size_t kSegCrc = 28;
constexpr size_t kSegSeed = 32;
constexpr size_t kSegNumber = 40;
constexpr size_t kSegStart = 48;
constexpr size_t kSegSize = 56;
constexpr size_t kSegEnd = 64;

// Offsets of a block header's fields. The checksum covers all of the header behind it.
constexpr size_t kBlkMagic = 0;
constexpr size_t kBlkChecksum = 4;
constexpr size_t kBlkVersion = 8;
constexpr size_t kBlkFlags = 10;
constexpr size_t kBlkGroups = 12;
constexpr size_t kBlkReserved = 14;
constexpr size_t kBlkPrevious = 16;
constexpr size_t kBlkReserved2 = 20;
constexpr size_t kBlkSegment = 24;
constexpr size_t kBlkStart = 32;
constexpr size_t kBlkEpoch = 40;
constexpr size_t kBlkWall = 48;
constexpr size_t kBlkDurable = 56;
constexpr size_t kBlkBytes = 64;
constexpr size_t kBlkReserved3 = 72;
static_assert(kBlkReserved3 + 8 == kBlockFixedBytes);

uint32_t SegmentCrc(std::string_view bytes) {
  uint32_t crc = Crc32c(bytes.substr(0, kSegCrc));
  return ExtendCrc32c(crc, bytes.substr(kSegCrc + 4, kSegEnd - kSegCrc - 4));
}

uint32_t HeaderChecksum(std::string_view header, uint32_t seed) {
  return ExtendCrc32c(seed, header.substr(kBlkVersion));
}

}  // namespace

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  std::string bytes(kSegmentHeaderBytes, '\0');
  char* p = bytes.data();
  kSegmentMagic.copy(p, kSegmentMagic.size());
  StoreLe<uint32_t>(p + kSegVersion, kLogFormatVersion);
  StoreLe(p + kSegFlags,
          (header.recycled ? kFlagRecycled : 0) | (header.chain_start ? kFlagChainStart : 0));
  StoreLe(p + kSegDirectory, header.identity.directory_id);
  StoreLe(p + kSegStripes, header.identity.stripe_count);
  StoreLe(p + kSegSeed, header.identity.hash_seed);
  StoreLe(p + kSegNumber, header.segment);
  StoreLe(p + kSegStart, header.start);
  StoreLe(p + kSegSize, header.size_bytes);
  StoreLe(p + kSegCrc, SegmentCrc(bytes));
  return bytes;
}

Result<SegmentHeader> DecodeSegmentHeader(std::string_view bytes) {
  if (bytes.size() < kSegEnd) return Status::Corruption("segment header is cut off");
  const char* p = bytes.data();
  if (bytes.substr(0, kSegmentMagic.size()) != kSegmentMagic) {
    return Status::Corruption("not a log segment (magic)");
  }
  const auto version = LoadLe<uint32_t>(p + kSegVersion);
  if (version > kLogFormatVersion) {
    return Status::Unsupported(
        fmt::format("log format {} is newer than this program's {}", version, kLogFormatVersion));
  }
  if (LoadLe<uint32_t>(p + kSegCrc) != SegmentCrc(bytes)) {
    return Status::Corruption("checksum of the segment header");
  }
  const auto flags = LoadLe<uint32_t>(p + kSegFlags);
  if (version == 0 || (flags & ~(kFlagRecycled | kFlagChainStart)) != 0) {
    return Status::Corruption("segment header has unknown fields");
  }
  SegmentHeader header;
  header.recycled = (flags & kFlagRecycled) != 0;
  header.chain_start = (flags & kFlagChainStart) != 0;
  header.identity.directory_id = LoadLe<uint64_t>(p + kSegDirectory);
  header.identity.stripe_count = LoadLe<uint32_t>(p + kSegStripes);
  header.identity.hash_seed = LoadLe<uint64_t>(p + kSegSeed);
  header.segment = LoadLe<uint64_t>(p + kSegNumber);
  header.start = LoadLe<uint64_t>(p + kSegStart);
  header.size_bytes = LoadLe<uint64_t>(p + kSegSize);
  return header;
}

std::string EncodeBlockHeader(BlockHeader* header, uint32_t checksum_seed) {
  HOTKV_CHECK(header->groups.size() <= kStripeGroups);
  uint64_t at = header->header_bytes();
  std::string bytes(static_cast<size_t>(at), '\0');
  char* p = bytes.data();
  char* entry = p + kBlockFixedBytes;
  for (GroupEntry& group : header->groups) {
    group.offset = at;
    at += group.bytes;
    StoreLe(entry, group.crc);
    StoreLe(entry + 4, group.group);
    StoreLe(entry + 5, static_cast<uint8_t>(group.encoding));
    StoreLe(entry + 8, group.bytes);
    entry += kGroupEntryBytes;
  }
  header->block_bytes = BlockBytesFor(at);
  StoreLe(p + kBlkMagic, kBlockMagic);
  StoreLe(p + kBlkVersion, kLogFormatVersion);
  StoreLe<uint16_t>(p + kBlkFlags, header->clean_stop ? kFlagCleanStop : uint16_t{0});
  StoreLe(p + kBlkGroups, static_cast<uint16_t>(header->groups.size()));
  StoreLe(p + kBlkPrevious, header->previous_checksum);
  StoreLe(p + kBlkSegment, header->segment);
  StoreLe(p + kBlkStart, header->start);
  StoreLe(p + kBlkEpoch, header->epoch);
  StoreLe(p + kBlkWall, header->wall_ms);
  StoreLe(p + kBlkDurable, header->durable_epoch);
  StoreLe(p + kBlkBytes, header->block_bytes);
  header->checksum = HeaderChecksum(bytes, checksum_seed);
  StoreLe(p + kBlkChecksum, header->checksum);
  return bytes;
}

size_t PeekBlockHeaderBytes(std::string_view fixed) {
  if (fixed.size() < kBlockFixedBytes) return 0;
  if (LoadLe<uint32_t>(fixed.data() + kBlkMagic) != kBlockMagic) return 0;
  const auto groups = LoadLe<uint16_t>(fixed.data() + kBlkGroups);
  return groups <= kStripeGroups ? kBlockFixedBytes + groups * kGroupEntryBytes : 0;
}

namespace {

// The directory: strictly ascending groups whose bytes fill the block but for the padding.
Status DecodeGroups(std::string_view bytes, BlockHeader* header) {
  uint64_t at = bytes.size();
  int last_group = -1;
  for (size_t entry = kBlockFixedBytes; entry < bytes.size(); entry += kGroupEntryBytes) {
    const char* p = bytes.data() + entry;
    GroupEntry group;
    group.crc = LoadLe<uint32_t>(p);
    group.group = LoadLe<uint8_t>(p + 4);
    const auto encoding = LoadLe<uint8_t>(p + 5);
    group.bytes = LoadLe<uint64_t>(p + 8);
    group.offset = at;
    if (group.group >= kStripeGroups || group.group <= last_group || LoadLe<uint16_t>(p + 6) != 0 ||
        encoding > static_cast<uint8_t>(GroupEncoding::kZstd) || group.bytes == 0 ||
        group.bytes > kBlockBytesMax) {
      return Status::Corruption("block directory");
    }
    group.encoding = static_cast<GroupEncoding>(encoding);
    last_group = group.group;
    at += group.bytes;
    header->groups.push_back(group);
  }
  return BlockBytesFor(at) == header->block_bytes ? Status::Ok()
                                                  : Status::Corruption("block length");
}

}  // namespace

Result<BlockHeader> DecodeBlockHeader(std::string_view bytes, uint32_t checksum_seed) {
  const size_t length = PeekBlockHeaderBytes(bytes);
  if (length == 0) return Status::Corruption("no block (magic)");
  if (bytes.size() < length) return Status::Corruption("block header is cut off");
  bytes = bytes.substr(0, length);
  const char* p = bytes.data();
  BlockHeader header;
  header.checksum = LoadLe<uint32_t>(p + kBlkChecksum);
  if (header.checksum != HeaderChecksum(bytes, checksum_seed))
    return Status::Corruption("block header checksum");
  const auto version = LoadLe<uint16_t>(p + kBlkVersion);
  if (version > kLogFormatVersion) {
    return Status::Unsupported(fmt::format("log block of the newer format {}", version));
  }
  const auto flags = LoadLe<uint16_t>(p + kBlkFlags);
  if (version == 0 || (flags & ~kFlagCleanStop) != 0 || LoadLe<uint16_t>(p + kBlkReserved) != 0 ||
      LoadLe<uint32_t>(p + kBlkReserved2) != 0 || LoadLe<uint64_t>(p + kBlkReserved3) != 0) {
    return Status::Corruption("block header has unknown fields");
  }
  header.clean_stop = (flags & kFlagCleanStop) != 0;
  header.previous_checksum = LoadLe<uint32_t>(p + kBlkPrevious);
  header.segment = LoadLe<uint64_t>(p + kBlkSegment);
  header.start = LoadLe<uint64_t>(p + kBlkStart);
  header.epoch = LoadLe<uint64_t>(p + kBlkEpoch);
  header.wall_ms = LoadLe<uint64_t>(p + kBlkWall);
  header.durable_epoch = LoadLe<uint64_t>(p + kBlkDurable);
  header.block_bytes = LoadLe<uint64_t>(p + kBlkBytes);
  // A watermark is of an earlier epoch by its meaning.
  if (header.durable_epoch >= header.epoch || header.block_bytes > kBlockBytesMax) {
    return Status::Corruption("block header is out of range");
  }
  HOTKV_RETURN_IF_ERROR(DecodeGroups(bytes, &header));
  return header;
}

std::string SegmentFileName(uint64_t number) { return fmt::format("{:08}.hkl", number); }

uint64_t ParseSegmentFileName(std::string_view name) {
  if (name.size() < 12 || !name.ends_with(".hkl")) return 0;
  name.remove_suffix(4);
  if (name.size() > 19) return 0;
  uint64_t number = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number != 0 && SegmentFileName(number) == std::string(name) + ".hkl" ? number : 0;
}

}  // namespace hotkv
