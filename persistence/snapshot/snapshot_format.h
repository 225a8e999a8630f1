// Bytes of a snapshot file: header, section headers, footer (docs/formats/snapshot.md).
//
// The footer has each section's place, cut and the checksum of its header; a section's header has
// the checksum of its body; the trailer has the footer's. So the trailer's checksum covers all, and
// a section can be checked when it is read.
//
// Decoders take hostile bytes: they never read past what they are given and bound every length.
// Change together: docs/formats/snapshot.md, snapshot_format.cc, tests/golden.
// Thread rules: values only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/coding.h"
#include "engine/base/result.h"

namespace hotkv {

inline constexpr uint32_t kSnapshotFormat = 1;
inline constexpr size_t kSnapshotHeaderBytes = 128;
inline constexpr size_t kSectionHeaderBytes = 64;
inline constexpr size_t kSnapshotTrailerBytes = 96;

struct SnapshotHeader {
  uint64_t directory_id = 0;
  uint32_t stripe_bits = 0;
  uint64_t hash_seed = 0;
  uint64_t number = 0;
  uint64_t start_number = 0;
  int64_t created_us = 0;
  bool operator==(const SnapshotHeader&) const = default;
};

// kSnapshotHeaderBytes long.
std::string EncodeSnapshotHeader(const SnapshotHeader& header);
Result<SnapshotHeader> DecodeSnapshotHeader(std::string_view bytes);

// Stored: never renumber.
enum class SectionKind : uint8_t {
  kStripe = 1,   // id: stripe number; body: engine/store/stripe_codec.h
  kObject = 2,   // id: object id; body: ObjectSection
  kEffects = 3,  // id: running number; body: EffectRun after EffectRun
};
enum class SectionEncoding : uint8_t { kPlain = 0, kZstd = 1 };

struct SectionHeader {
  SectionKind kind = SectionKind::kStripe;
  SectionEncoding encoding = SectionEncoding::kPlain;
  uint64_t id = 0;
  uint64_t cut = 0;  // an lsn: effects after it are not in the section
  uint64_t entries = 0;
  uint64_t raw_bytes = 0;
  uint64_t stored_bytes = 0;
  uint32_t body_crc = 0;  // of the stored bytes
  bool operator==(const SectionHeader&) const = default;
};

// kSectionHeaderBytes long; its own checksum is in its first bytes.
std::string EncodeSectionHeader(const SectionHeader& header);
Result<SectionHeader> DecodeSectionHeader(std::string_view bytes);
inline uint32_t SectionHeaderCrc(std::string_view encoded) {
  return LoadLe<uint32_t>(encoded.data());
}

// What the footer says of a section.
struct SectionEntry {
  SectionKind kind = SectionKind::kStripe;
  uint64_t id = 0;
  uint64_t offset = 0;  // of its header
  uint64_t cut = 0;
  uint64_t entries = 0;
  uint32_t header_crc = 0;
  bool operator==(const SectionEntry&) const = default;
};

struct SnapshotFooter {
  uint64_t from_epoch = 0;  // effects from this epoch on are needed with the sections
  uint64_t last_epoch = 0;  // of the last section
  bool has_effects = false;
  uint64_t next_object_id = 1;
  uint64_t entries = 0;                // keys
  std::vector<SectionEntry> sections;  // stripes ascending, then objects ascending, then effects
  bool operator==(const SnapshotFooter&) const = default;
};

// Sections and trailer, to stand at `offset`, which is the end of the last section.
std::string EncodeSnapshotFooter(const SnapshotFooter& footer, uint64_t offset);
// Of the file's last kSnapshotTrailerBytes: where the footer begins.
Result<uint64_t> FooterOffset(std::string_view trailer, uint64_t file_bytes);
// bytes: from there to the end of the file.
Result<SnapshotFooter> DecodeSnapshotFooter(std::string_view bytes, uint64_t offset);

struct ObjectSection {
  uint8_t type = 0;
  std::string_view definition;
  uint64_t generation = 0;
};
std::string EncodeObjectSection(const ObjectSection& section);
Result<ObjectSection> DecodeObjectSection(std::string_view body);

// Records of one epoch and stripe group, in the form that the log gives them.
struct EffectRun {
  uint64_t epoch = 0;
  uint8_t group = 0;
  std::string_view records;
};
// The run's head, which its records follow.
void AppendEffectRunHead(uint64_t epoch, uint8_t group, uint64_t bytes, std::string* out);
Result<std::vector<EffectRun>> DecodeEffectRuns(std::string_view body);

}  // namespace hotkv
