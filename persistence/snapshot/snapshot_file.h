// Snapshot files: SnapshotWriter makes one, section by section; SnapshotReader maps one and gives
// its sections out, each checked when it is read. snapshot_format.h has the bytes.
//
// Thread rules: a writer belongs to one thread at a time; a reader is constant after Open, so that
// any number of threads may read sections. Errors: kCorruption with path and offset; kUnsupported
// for a newer format; storage errors. After an error a writer must be thrown away with its file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file.h"
#include "engine/base/result.h"
#include "engine/store/stripe_codec.h"
#include "persistence/snapshot/snapshot_format.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace hotkv {

class SnapshotWriter {
 public:
  static Result<std::unique_ptr<SnapshotWriter>> Create(Env* env, const std::string& path,
                                                        const SnapshotHeader& header);
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // Empty stripes are written too: their cut says which effects count.
  Status AddStripe(uint32_t stripe, uint64_t cut, const StripeImage& image);
  Status AddObject(uint64_t id, uint64_t cut, const ObjectSection& section);
  // The records of one epoch and group as pieces; gathered into sections of about
  // kEffectsSectionBytes.
  Status AddEffects(uint64_t epoch, unsigned group, const std::vector<std::string_view>& pieces);
  // Writes the footer and syncs the file; its folder is the caller's to sync. footer.sections and
  // footer.entries are filled in here.
  Status Finish(SnapshotFooter footer);

  uint64_t bytes() const { return offset_ + out_.size(); }
  uint64_t entries() const { return entries_; }

  static constexpr size_t kEffectsSectionBytes = size_t{1} << 20;

 private:
  struct Section {
    SectionKind kind = SectionKind::kStripe;
    uint64_t id = 0;
    uint64_t cut = 0;
    uint64_t entries = 0;
  };
  explicit SnapshotWriter(std::unique_ptr<File> file);
  Status Add(const Section& section, const std::vector<std::string_view>& pieces);
  Status AppendPlain(const std::vector<std::string_view>& pieces, SectionHeader* header);
  Status AppendCompressed(const std::vector<std::string_view>& pieces, SectionHeader* header);
  Status Append(std::string_view bytes);
  Status Flush();
  Status FlushEffects();

  const std::unique_ptr<File> file_;
  ZSTD_CCtx_s* const compressor_;
  std::string out_;      // not yet written; begins at offset_
  uint64_t offset_ = 0;  // in the file
  std::string scratch_;
  std::vector<SectionEntry> sections_;
  uint64_t entries_ = 0;
  std::string effects_;
  uint64_t effect_runs_ = 0;
  uint64_t effect_sections_ = 0;
};

class SnapshotReader {
 public:
  // Reads header and footer, not the sections.
  static Result<std::unique_ptr<SnapshotReader>> Open(Env* env, const std::string& path);

  const std::string& path() const { return path_; }
  const SnapshotHeader& header() const { return header_; }
  const SnapshotFooter& footer() const { return footer_; }
  uint64_t file_bytes() const { return mapping_->size(); }

  // A section's body, checked and decompressed: a view into the mapping, or of *scratch.
  Result<std::string_view> Read(const SectionEntry& section, std::string* scratch) const;
  // Reads and checks every section.
  Status VerifyAll() const;
  // An error of the section's content, with path and place.
  Status At(const SectionEntry& section, Status status) const;

 private:
  SnapshotReader(std::string path, std::unique_ptr<Mapping> mapping)
      : path_(std::move(path)), mapping_(std::move(mapping)) {}
  std::string_view bytes() const { return {mapping_->data(), mapping_->size()}; }
  Status ReadEnds();

  const std::string path_;
  const std::unique_ptr<Mapping> mapping_;
  SnapshotHeader header_;
  SnapshotFooter footer_;
};

}  // namespace hotkv
