// Segment and block headers of the log. What decodes encodes to the same bytes. The checksum is also set right, or no
// mutation would get past it.
#include "engine/base/crc32c.h"
#include "persistence/log/log_format.h"
#include "tests/fuzz/fuzz_target.h"

namespace hotkv {
namespace {

constexpr uint32_t kSeed = 77;

void CheckBlock(std::string_view bytes) {
  const size_t length = PeekBlockHeaderBytes(bytes.substr(0, kBlockFixedBytes));
  Result<BlockHeader> decoded = DecodeBlockHeader(bytes, kSeed);
  if (!decoded.ok()) return;
  HOTKV_CHECK(length == decoded->header_bytes());
  HOTKV_CHECK(decoded->groups.size() <= kStripeGroups);
  BlockHeader again = *decoded;
  HOTKV_CHECK(EncodeBlockHeader(&again, kSeed) == bytes.substr(0, length));
  HOTKV_CHECK(again == *decoded);
}

void CheckSegment(std::string_view bytes) {
  const Result<SegmentHeader> decoded = DecodeSegmentHeader(bytes);
  if (!decoded.ok()) return;
  const Result<SegmentHeader> again = DecodeSegmentHeader(EncodeSegmentHeader(*decoded));
  HOTKV_CHECK(again.ok() && *again == *decoded);
}

std::vector<std::string> Seeds() {
  BlockHeader empty;
  empty.segment = 3;
  empty.start = 2;
  empty.epoch = 9;
  empty.durable_epoch = 7;
  empty.clean_stop = true;
  BlockHeader full = empty;
  full.groups.push_back({2, GroupEncoding::kPlain, 0x1234, 100, 0});
  full.groups.push_back({63, GroupEncoding::kZstd, 0x5678, 1, 0});
  SegmentHeader segment;
  segment.identity = {5, 4096, 6};
  segment.segment = 3;
  segment.chain_start = true;
  return {EncodeBlockHeader(&empty, kSeed), EncodeBlockHeader(&full, kSeed), EncodeSegmentHeader(segment).substr(0, 64)};
}

}  // namespace
}  // namespace hotkv

HOTKV_FUZZ_TARGET(log_block, hotkv::Seeds) {
  CheckBlock(input);
  CheckSegment(input);
  std::string sealed(input);
  const size_t length = PeekBlockHeaderBytes(input.substr(0, kBlockFixedBytes));
  if (length != 0 && length <= input.size()) {
    StoreLe(sealed.data() + 4, ExtendCrc32c(kSeed, std::string_view(sealed).substr(8, length - 8)));
    CheckBlock(sealed);
  }
  if (input.size() >= 64) {
    const std::string_view view = sealed;
    StoreLe(sealed.data() + 28, ExtendCrc32c(Crc32c(view.substr(0, 28)), view.substr(32, 32)));
    CheckSegment(sealed);
  }
}
