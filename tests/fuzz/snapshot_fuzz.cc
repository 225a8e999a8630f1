// Header, section headers, footer, object sections and effect runs of a snapshot. What decodes encodes back to what it
// was; checksums are also set right, or no mutation would get past them.
#include "engine/base/crc32c.h"
#include "engine/tx/effect.h"
#include "persistence/snapshot/snapshot_format.h"
#include "tests/fuzz/fuzz_target.h"

namespace hotkv {
namespace {

constexpr uint64_t kFooterAt = 1 << 20;

void CheckHeader(std::string_view bytes) {
  const Result<SnapshotHeader> header = DecodeSnapshotHeader(bytes);
  if (!header.ok()) return;
  const Result<SnapshotHeader> again = DecodeSnapshotHeader(EncodeSnapshotHeader(*header));
  HOTKV_CHECK(again.ok() && *again == *header);
}

void CheckSectionHeader(std::string_view bytes) {
  const Result<SectionHeader> header = DecodeSectionHeader(bytes);
  if (!header.ok()) return;
  const Result<SectionHeader> again = DecodeSectionHeader(EncodeSectionHeader(*header));
  HOTKV_CHECK(again.ok() && *again == *header);
}

void CheckFooter(std::string_view bytes) {
  const Result<SnapshotFooter> footer = DecodeSnapshotFooter(bytes, kFooterAt);
  if (!footer.ok()) return;
  const Result<SnapshotFooter> again = DecodeSnapshotFooter(EncodeSnapshotFooter(*footer, kFooterAt), kFooterAt);
  HOTKV_CHECK(again.ok() && *again == *footer);
}

void CheckObject(std::string_view bytes) {
  const Result<ObjectSection> object = DecodeObjectSection(bytes);
  if (!object.ok()) return;
  const std::string encoded = EncodeObjectSection(*object);
  const Result<ObjectSection> again = DecodeObjectSection(encoded);
  HOTKV_CHECK(again.ok() && again->type == object->type && again->definition == object->definition &&
              again->generation == object->generation);
}

void CheckRuns(std::string_view bytes) {
  const Result<std::vector<EffectRun>> runs = DecodeEffectRuns(bytes);
  if (!runs.ok()) return;
  size_t total = 0;
  for (const EffectRun& run : *runs) {
    HOTKV_CHECK(run.group < kStripeGroups);
    total += run.records.size();
  }
  HOTKV_CHECK(total <= bytes.size());
}

std::vector<std::string> Seeds() {
  SnapshotHeader header{1, 12, 2, 3, 4, 5};
  SectionHeader section{SectionKind::kObject, SectionEncoding::kZstd, 7, 8 << 22, 1, 100, 50, 0x99};
  SnapshotFooter footer;
  footer.from_epoch = 5;
  footer.last_epoch = 9;
  footer.sections.push_back({SectionKind::kStripe, 0, 128, 5 << 22, 10, 0x11});
  footer.sections.push_back({SectionKind::kObject, 300, 4096, 6 << 22, 1, 0x22});
  std::string runs;
  AppendEffectRunHead(6, 3, 5, &runs);
  runs += "abcde";
  std::vector<std::string> seeds;
  for (const std::string& bytes :
       {EncodeSnapshotHeader(header), EncodeSectionHeader(section), EncodeSnapshotFooter(footer, kFooterAt),
        EncodeObjectSection({6, "definition", 3}), runs}) {
    seeds.push_back(bytes);
  }
  return seeds;
}

}  // namespace
}  // namespace hotkv

HOTKV_FUZZ_TARGET(snapshot, hotkv::Seeds) {
  CheckHeader(input);
  CheckSectionHeader(input);
  CheckFooter(input);
  CheckObject(input);
  CheckRuns(input);
  static_cast<void>(FooterOffset(input.substr(0, kSnapshotTrailerBytes), input.size()).ok());
  std::string sealed(input);
  const std::string_view view = sealed;
  if (input.size() >= kSnapshotHeaderBytes) {
    StoreLe(sealed.data() + 8, Crc32c(view.substr(12, kSnapshotHeaderBytes - 12)));
    CheckHeader(sealed);
  }
  if (input.size() >= kSectionHeaderBytes) {
    StoreLe(sealed.data(), Crc32c(view.substr(4, kSectionHeaderBytes - 4)));
    CheckSectionHeader(sealed);
  }
  if (input.size() >= kSnapshotTrailerBytes) {
    const size_t trailer = input.size() - kSnapshotTrailerBytes;
    sealed = input;
    StoreLe(sealed.data() + trailer,
            ExtendCrc32c(Crc32c(std::string_view(sealed).substr(0, trailer)), std::string_view(sealed).substr(trailer + 4)));
    CheckFooter(sealed);
  }
}
