#include "persistence/snapshot/snapshot_format.h"

#include <fmt/format.h>

#include "engine/base/crc32c.h"
#include "engine/base/limits.h"
#include "engine/tx/effect.h"

namespace hotkv {

namespace {

constexpr std::string_view kHeaderMagic = "HKVSNAPS";
constexpr std::string_view kTrailerMagic = "HKVSNEND";
constexpr uint32_t kSectionMagic = 0x53534b48;  // "HKSS" in the file

// Offsets in the header; the checksum covers what lies behind it.
constexpr size_t kHdrCrc = 8;
constexpr size_t kHdrVersion = 12;
constexpr size_t kHdrDirectory = 16;
constexpr size_t kHdrSeed = 24;
constexpr size_t kHdrNumber = 32;
constexpr size_t kHdrStart = 40;
constexpr size_t kHdrCreated = 48;
constexpr size_t kHdrStripeBits = 56;

// Offsets in a section header; the checksum covers what lies behind it.
constexpr size_t kSecCrc = 0;
constexpr size_t kSecMagic = 4;
constexpr size_t kSecId = 8;
constexpr size_t kSecCut = 16;
constexpr size_t kSecEntries = 24;
constexpr size_t kSecRaw = 32;
constexpr size_t kSecStored = 40;
constexpr size_t kSecBodyCrc = 48;
constexpr size_t kSecKind = 52;
constexpr size_t kSecEncoding = 53;

// Offsets in the trailer; the checksum covers the footer's sections and what lies behind it.
constexpr size_t kTrlCrc = 0;
constexpr size_t kTrlVersion = 4;
constexpr size_t kTrlFooterOffset = 8;
constexpr size_t kTrlSections = 16;
constexpr size_t kTrlFromEpoch = 24;
constexpr size_t kTrlLastEpoch = 32;
constexpr size_t kTrlNextObject = 40;
constexpr size_t kTrlEntries = 48;
constexpr size_t kTrlFlags = 56;
constexpr size_t kTrlMagic = kSnapshotTrailerBytes - 8;
constexpr uint32_t kFlagHasEffects = 1;

constexpr size_t kSectionEntryBytesMin = 9;

bool KnownKind(uint8_t kind) { return kind >= 1 && kind <= 3; }

Status NewerFormat(uint32_t version) {
  return Status::Unsupported(
      fmt::format("snapshot format {} is newer than this program's {}", version, kSnapshotFormat));
}

}  // namespace

std::string EncodeSnapshotHeader(const SnapshotHeader& header) {
  std::string bytes(kSnapshotHeaderBytes, '\0');
  char* p = bytes.data();
  kHeaderMagic.copy(p, kHeaderMagic.size());
  StoreLe<uint32_t>(p + kHdrVersion, kSnapshotFormat);
  StoreLe(p + kHdrDirectory, header.directory_id);
  StoreLe(p + kHdrSeed, header.hash_seed);
  StoreLe(p + kHdrNumber, header.number);
  StoreLe(p + kHdrStart, header.start_number);
  StoreLe(p + kHdrCreated, header.created_us);
  StoreLe(p + kHdrStripeBits, header.stripe_bits);
  StoreLe(p + kHdrCrc, Crc32c(std::string_view(bytes).substr(kHdrVersion)));
  return bytes;
}

Result<SnapshotHeader> DecodeSnapshotHeader(std::string_view bytes) {
  if (bytes.size() < kSnapshotHeaderBytes) return Status::Corruption("snapshot header is cut off");
  bytes = bytes.substr(0, kSnapshotHeaderBytes);
  const char* p = bytes.data();
  if (bytes.substr(0, kHeaderMagic.size()) != kHeaderMagic) {
    return Status::Corruption("not a snapshot (magic)");
  }
  if (LoadLe<uint32_t>(p + kHdrCrc) != Crc32c(bytes.substr(kHdrVersion))) {
    return Status::Corruption("checksum of the snapshot header");
  }
  const auto version = LoadLe<uint32_t>(p + kHdrVersion);
  if (version > kSnapshotFormat) return NewerFormat(version);
  SnapshotHeader header;
  header.directory_id = LoadLe<uint64_t>(p + kHdrDirectory);
  header.hash_seed = LoadLe<uint64_t>(p + kHdrSeed);
  header.number = LoadLe<uint64_t>(p + kHdrNumber);
  header.start_number = LoadLe<uint64_t>(p + kHdrStart);
  header.created_us = LoadLe<int64_t>(p + kHdrCreated);
  header.stripe_bits = LoadLe<uint32_t>(p + kHdrStripeBits);
  if (version == 0 || header.stripe_bits > kStripeBitsMax) {
    return Status::Corruption("snapshot header is out of range");
  }
  return header;
}

std::string EncodeSectionHeader(const SectionHeader& header) {
  std::string bytes(kSectionHeaderBytes, '\0');
  char* p = bytes.data();
  StoreLe(p + kSecMagic, kSectionMagic);
  StoreLe(p + kSecId, header.id);
  StoreLe(p + kSecCut, header.cut);
  StoreLe(p + kSecEntries, header.entries);
  StoreLe(p + kSecRaw, header.raw_bytes);
  StoreLe(p + kSecStored, header.stored_bytes);
  StoreLe(p + kSecBodyCrc, header.body_crc);
  StoreLe(p + kSecKind, static_cast<uint8_t>(header.kind));
  StoreLe(p + kSecEncoding, static_cast<uint8_t>(header.encoding));
  StoreLe(p + kSecCrc, Crc32c(std::string_view(bytes).substr(kSecMagic)));
  return bytes;
}

Result<SectionHeader> DecodeSectionHeader(std::string_view bytes) {
  if (bytes.size() < kSectionHeaderBytes) return Status::Corruption("section header is cut off");
  bytes = bytes.substr(0, kSectionHeaderBytes);
  const char* p = bytes.data();
  if (LoadLe<uint32_t>(p + kSecCrc) != Crc32c(bytes.substr(kSecMagic)) ||
      LoadLe<uint32_t>(p + kSecMagic) != kSectionMagic) {
    return Status::Corruption("checksum of a section header");
  }
  SectionHeader header;
  header.id = LoadLe<uint64_t>(p + kSecId);
  header.cut = LoadLe<uint64_t>(p + kSecCut);
  header.entries = LoadLe<uint64_t>(p + kSecEntries);
  header.raw_bytes = LoadLe<uint64_t>(p + kSecRaw);
  header.stored_bytes = LoadLe<uint64_t>(p + kSecStored);
  header.body_crc = LoadLe<uint32_t>(p + kSecBodyCrc);
  const auto kind = LoadLe<uint8_t>(p + kSecKind);
  const auto encoding = LoadLe<uint8_t>(p + kSecEncoding);
  if (!KnownKind(kind) || encoding > static_cast<uint8_t>(SectionEncoding::kZstd)) {
    return Status::Corruption("section header has unknown fields");
  }
  header.kind = static_cast<SectionKind>(kind);
  header.encoding = static_cast<SectionEncoding>(encoding);
  return header;
}

std::string EncodeSnapshotFooter(const SnapshotFooter& footer, uint64_t offset) {
  std::string bytes;
  for (const SectionEntry& s : footer.sections) {
    bytes.push_back(static_cast<char>(s.kind));
    AppendVarint(&bytes, s.id);
    AppendVarint(&bytes, s.offset);
    AppendVarint(&bytes, s.cut);
    AppendVarint(&bytes, s.entries);
    AppendLe(&bytes, s.header_crc);
  }
  std::string trailer(kSnapshotTrailerBytes, '\0');
  char* p = trailer.data();
  StoreLe<uint32_t>(p + kTrlVersion, kSnapshotFormat);
  StoreLe(p + kTrlFooterOffset, offset);
  StoreLe<uint64_t>(p + kTrlSections, footer.sections.size());
  StoreLe(p + kTrlFromEpoch, footer.from_epoch);
  StoreLe(p + kTrlLastEpoch, footer.last_epoch);
  StoreLe(p + kTrlNextObject, footer.next_object_id);
  StoreLe(p + kTrlEntries, footer.entries);
  StoreLe<uint32_t>(p + kTrlFlags, footer.has_effects ? kFlagHasEffects : 0);
  kTrailerMagic.copy(p + kTrlMagic, kTrailerMagic.size());
  StoreLe(p + kTrlCrc, ExtendCrc32c(Crc32c(bytes), std::string_view(trailer).substr(kTrlVersion)));
  return bytes + trailer;
}

Result<uint64_t> FooterOffset(std::string_view trailer, uint64_t file_bytes) {
  if (trailer.size() != kSnapshotTrailerBytes || file_bytes < kSnapshotTrailerBytes ||
      trailer.substr(kTrlMagic) != kTrailerMagic) {
    return Status::Corruption("the file has no footer: it is incomplete or cut off");
  }
  const auto offset = LoadLe<uint64_t>(trailer.data() + kTrlFooterOffset);
  if (offset < kSnapshotHeaderBytes || offset > file_bytes - kSnapshotTrailerBytes) {
    return Status::Corruption("place of the footer");
  }
  return offset;
}

Result<SnapshotFooter> DecodeSnapshotFooter(std::string_view bytes, uint64_t offset) {
  if (bytes.size() < kSnapshotTrailerBytes) return Status::Corruption("footer is cut off");
  const std::string_view sections = bytes.substr(0, bytes.size() - kSnapshotTrailerBytes);
  const std::string_view trailer = bytes.substr(sections.size());
  const char* p = trailer.data();
  if (LoadLe<uint32_t>(p + kTrlCrc) !=
      ExtendCrc32c(Crc32c(sections), trailer.substr(kTrlVersion))) {
    return Status::Corruption("checksum of the footer");
  }
  const auto version = LoadLe<uint32_t>(p + kTrlVersion);
  if (version > kSnapshotFormat) return NewerFormat(version);
  SnapshotFooter footer;
  const auto count = LoadLe<uint64_t>(p + kTrlSections);
  footer.from_epoch = LoadLe<uint64_t>(p + kTrlFromEpoch);
  footer.last_epoch = LoadLe<uint64_t>(p + kTrlLastEpoch);
  footer.next_object_id = LoadLe<uint64_t>(p + kTrlNextObject);
  footer.entries = LoadLe<uint64_t>(p + kTrlEntries);
  footer.has_effects = (LoadLe<uint32_t>(p + kTrlFlags) & kFlagHasEffects) != 0;
  if (count > sections.size() / kSectionEntryBytesMin) return Status::Corruption("section count");
  ByteReader reader(sections);
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    SectionEntry s;
    const auto kind = reader.Le<uint8_t>();
    s.kind = static_cast<SectionKind>(kind);
    s.id = reader.Varint();
    s.offset = reader.Varint();
    s.cut = reader.Varint();
    s.entries = reader.Varint();
    s.header_crc = reader.Le<uint32_t>();
    if (!KnownKind(kind) || offset < kSectionHeaderBytes ||
        s.offset > offset - kSectionHeaderBytes) {
      return Status::Corruption("place of a section");
    }
    footer.sections.push_back(s);
  }
  if (!reader.ok() || !reader.empty()) return Status::Corruption("footer cannot be read");
  return footer;
}

std::string EncodeObjectSection(const ObjectSection& section) {
  std::string body;
  body.push_back(static_cast<char>(section.type));
  AppendLengthPrefixed(&body, section.definition);
  AppendVarint(&body, section.generation);
  return body;
}

Result<ObjectSection> DecodeObjectSection(std::string_view body) {
  ByteReader reader(body);
  ObjectSection section;
  section.type = reader.Le<uint8_t>();
  section.definition = reader.LengthPrefixed();
  section.generation = reader.Varint();
  if (!reader.ok() || !reader.empty()) return Status::Corruption("object section cannot be read");
  return section;
}

void AppendEffectRunHead(uint64_t epoch, uint8_t group, uint64_t bytes, std::string* out) {
  AppendVarint(out, epoch);
  out->push_back(static_cast<char>(group));
  AppendVarint(out, bytes);
}

Result<std::vector<EffectRun>> DecodeEffectRuns(std::string_view body) {
  std::vector<EffectRun> runs;
  ByteReader reader(body);
  while (!reader.empty()) {
    EffectRun run;
    run.epoch = reader.Varint();
    run.group = reader.Le<uint8_t>();
    run.records = reader.LengthPrefixed();
    if (!reader.ok() || run.group >= kStripeGroups) {
      return Status::Corruption("effects section cannot be read");
    }
    runs.push_back(run);
  }
  return runs;
}

}  // namespace hotkv
