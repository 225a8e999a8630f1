// A generation of an index on disk: graph.GEN (links, levels, checksums) and ids.GEN (names,
// attributes, the name hash). Both are usable as mapped. Format: docs/formats/index.md.
//
// Thread rules: values and free functions; a Generation is constant after opening, but what is
// mapped private may be changed through the arrays that adopt it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/file.h"
#include "engine/base/result.h"
#include "index/vector_index.h"

namespace hotkv {

inline constexpr uint32_t kGenerationVersion = 1;
inline constexpr uint64_t kGenerationPage = 4096;
// In the first page of ids.GEN, behind the header: the declared fields.
inline constexpr uint64_t kFieldsAt = 1024;

struct FileSection {
  uint64_t offset;  // a multiple of kGenerationPage
  uint64_t bytes;   // used ones; behind them zeros up to whole slabs
  uint32_t crc;     // CRC32C of the used bytes
  uint32_t reserved;
};
static_assert(sizeof(FileSection) == 24);

enum GraphSection : uint32_t {
  kSectionLinks,
  kSectionUpperAt,
  kSectionUpper,
  kSectionMeta,
  kSectionInDegree,
  kSectionSums,
  kSectionFreeBits,  // uint64_t words, a bit a slot
  kSectionDead,      // uint32_t slots that are dead and linked
  kSectionPending,   // uint32_t slots that are live and not linked
  kGraphSections,
};

struct GraphHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t index_uid;
  uint64_t generation;
  uint64_t seed;
  uint64_t entry;
  uint64_t live;
  uint32_t dim;
  uint32_t m;
  uint32_t ef_construction;
  uint32_t ef_default;
  uint32_t rerank;
  uint8_t metric;
  uint8_t type;
  uint16_t reserved;
  uint32_t slots;
  uint32_t upper_rows;
  std::array<FileSection, kGraphSections> sections;
  uint32_t reserved_end;
  uint32_t crc;  // of the bytes before
};
static_assert(sizeof(GraphHeader) == 88 + 24 * kGraphSections + 8);
static_assert(sizeof(GraphHeader) <= kGenerationPage);

enum IdsSection : uint32_t { kSectionRefs, kSectionWords, kSectionArena, kIdsSections };

struct IdsHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t index_uid;
  uint64_t generation;
  uint64_t names;
  uint64_t word_capacity;
  uint32_t slots;
  uint32_t expiring;  // so many IdsExpiry end the arena
  std::array<FileSection, kIdsSections> sections;
  uint32_t with_attr;  // live elements that have attributes
  uint32_t crc;
};
static_assert(sizeof(IdsHeader) == 56 + 24 * kIdsSections + 8);

struct IdsExpiry {
  int64_t at_ms;  // since the Unix epoch
  uint32_t slot;
  uint32_t reserved;
};
static_assert(sizeof(IdsExpiry) == 16);

std::string GraphFileName(uint64_t generation);
std::string IdsFileName(uint64_t generation);

uint64_t RoundToPage(uint64_t bytes);
uint32_t CrcOf(const char* data, uint64_t bytes);

// Follows at kFieldsAt; all zero: no fields.
struct FieldsHeader {
  uint32_t bytes;  // of EncodeFields, which follow
  uint32_t crc;    // of them
};
static_assert(sizeof(IdsHeader) <= kFieldsAt);

struct Generation {
  GraphHeader graph_header;
  IdsHeader ids_header;
  std::string graph_path;
  std::string ids_path;
  std::unique_ptr<Mapping> graph;  // private
  std::unique_ptr<Mapping> ids;

  // Maps both files and checks their headers, nothing else.
  static Result<std::unique_ptr<Generation>> Open(Env* env, const std::string& dir,
                                                  uint64_t generation);
  // Every section against its checksum.
  Status CheckSections() const;

  IndexOptions Options() const;
  Result<std::vector<FieldSpec>> Fields() const;
  char* At(GraphSection section) const {
    return graph->data() + graph_header.sections[section].offset;
  }
  char* At(IdsSection section) const { return ids->data() + ids_header.sections[section].offset; }
};

// Completes a header: magic, version, checksum.
void Seal(GraphHeader* header);
void Seal(IdsHeader* header);

}  // namespace hotkv
