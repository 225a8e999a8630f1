#include "tools/hotkv_tool/catalog_from_files.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "engine/base/number.h"
#include "persistence/log/log_format.h"
#include "persistence/recovery/object_loader.h"
#include "persistence/snapshot/snapshot_file.h"

namespace hotkv {

namespace {

constexpr std::string_view kGenerationPrefix = "graph.";

class Builder {
 public:
  Builder(Env* env, const DirectoryPaths& paths, std::vector<std::string>* notes)
      : env_(env), paths_(paths), notes_(notes) {}

  Result<CatalogState> Build() {
    state_.format = kDirectoryFormat;
    AddSnapshots();
    AddSegments();
    if (!identified_) {
      return Status::Corruption("neither a snapshot nor a log segment can be read").At(paths_.root, -1);
    }
    AddRanges();
    AddObjects();
    return std::move(state_);
  }

 private:
  std::vector<DirEntry> List(const std::string& folder) const {
    Result<std::vector<DirEntry>> entries = env_->List(folder);
    return entries.ok() ? std::move(entries).value() : std::vector<DirEntry>();
  }

  // The first file that can be read says which directory this is.
  bool Belongs(const LogIdentity& identity, const std::string& path) {
    const auto bits = static_cast<uint32_t>(std::countr_zero(identity.stripe_count));
    if (!identified_) {
      identified_ = true;
      state_.directory_id = identity.directory_id;
      state_.stripe_bits = bits;
      state_.hash_seed = identity.hash_seed;
    }
    const bool same = identity.directory_id == state_.directory_id && bits == state_.stripe_bits &&
                      identity.hash_seed == state_.hash_seed;
    if (!same) notes_->push_back(path + " is of another data directory: left out");
    return same;
  }

  void AddSnapshots() {
    for (const DirEntry& entry : List(paths_.snapshots)) {
      const Result<uint64_t> number = ParseFileNumber(entry.name, ".hks");
      if (!number.ok()) continue;
      const std::string path = JoinPath(paths_.snapshots, entry.name);
      const Result<std::unique_ptr<SnapshotReader>> reader = SnapshotReader::Open(env_, path);
      if (!reader.ok()) {
        notes_->push_back(reader.status().ToString() + ": left out");
        continue;
      }
      const SnapshotHeader& header = (*reader)->header();
      if (!Belongs({header.directory_id, 1u << header.stripe_bits, header.hash_seed}, path)) continue;
      const SnapshotFooter& footer = (*reader)->footer();
      SnapshotRecord& record = state_.snapshots[*number];
      record.state = FileState::kLive;
      record.from_epoch = footer.from_epoch;
      record.last_epoch = footer.last_epoch;
      record.has_effects = footer.has_effects;
      record.entries = footer.entries;
    }
  }

  void AddSegments() {
    for (const DirEntry& entry : List(paths_.log)) {
      const uint64_t number = ParseSegmentFileName(entry.name);
      if (number == 0) continue;
      const std::string path = JoinPath(paths_.log, entry.name);
      const Result<SegmentHeader> header = ReadHeader(path);
      if (!header.ok()) {
        notes_->push_back(header.status().ToString() + ": left out");
        continue;
      }
      if (!std::has_single_bit(header->identity.stripe_count) || header->segment != number ||
          !Belongs(header->identity, path)) {
        continue;
      }
      LogSegmentEntry& segment = state_.segments[number];
      segment.number = number;
      segment.start = header->start;
      segment.state = SegmentState::kLive;
      segment.size_bytes = header->size_bytes;
      if (header->chain_start) chain_starts_.push_back(number);
    }
  }

  Result<SegmentHeader> ReadHeader(const std::string& path) const {
    HOTKV_ASSIGN_OR_RETURN(auto file, env_->Open(path, OpenMode::kRead));
    std::string bytes(kSegmentHeaderBytes, '\0');
    HOTKV_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, {bytes.data(), bytes.size()}));
    Result<SegmentHeader> header = DecodeSegmentHeader(std::string_view(bytes).substr(0, got));
    if (!header.ok()) return Status(header.status()).At(path, 0);
    return header;
  }

  // Each chain of segments is a range; the first may have lost its beginning to snapshots.
  void AddRanges() {
    if (state_.segments.empty()) return;
    std::sort(chain_starts_.begin(), chain_starts_.end());
    const uint64_t first = state_.segments.begin()->first;
    if (chain_starts_.empty() || chain_starts_.front() != first) chain_starts_.insert(chain_starts_.begin(), first);
    for (size_t i = 0; i < chain_starts_.size(); ++i) state_.ranges[i] = {i, 0, chain_starts_[i]};
  }

  void AddObjects() {
    for (const DirEntry& folder : List(paths_.index)) {
      const auto id = ParseUint64(folder.name);
      if (!folder.is_dir || !id) continue;
      ObjectRecord& object = state_.objects[*id];
      object.state = FileState::kLive;
      for (const DirEntry& entry : List(ObjectFolder(paths_.index, *id))) {
        if (!entry.name.starts_with(kGenerationPrefix)) continue;
        const auto generation = ParseUint64(std::string_view(entry.name).substr(kGenerationPrefix.size()));
        // From 0: every effect that the log still has is applied again, which gives the same in the end.
        if (generation) object.generations[*generation].state = FileState::kLive;
      }
    }
  }

  Env* const env_;
  const DirectoryPaths& paths_;
  std::vector<std::string>* const notes_;
  CatalogState state_;
  std::vector<uint64_t> chain_starts_;
  bool identified_ = false;
};

}  // namespace

Result<CatalogState> CatalogFromFiles(Env* env, const DirectoryPaths& paths, std::vector<std::string>* notes) {
  return Builder(env, paths, notes).Build();
}

}  // namespace hotkv
