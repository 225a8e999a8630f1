// SalvageSource: what can still be read of a damaged directory. Every record that passes its checksum is kept, and what is
// lost is named; a directory without damage gives what DirectorySource gives.
//
//   snapshot: the newest whose header and footer can be read; a section that cannot be read loses its stripe's keys
//   log:      up to the first block header that is damaged; a group that cannot be read loses its effects of that epoch
//   catalog:  where it cannot be read, the files' headers
//   indexes:  the newest generation that can be opened, and the effects after it
//
// Where something is lost, what is left need not be one moment: a key may have an older value, an index elements of
// different moments.
//
// Thread rules: one thread. Errors: only what leaves nothing to salvage; losses go into Problems.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/types/durable_object.h"
#include "persistence/log/log_reader.h"
#include "persistence/snapshot/snapshot_file.h"
#include "tools/hotkv_tool/directory_source.h"

namespace hotkv {

class SalvageSource : public EngineSource {
 public:
  static Result<std::unique_ptr<SalvageSource>> Open(const std::string& path);

  Status ForEach(const ExportFilter& filter, Problems* problems, const Put& put) override;
  uint64_t done() const override { return stripes_done_; }
  uint64_t total() const override { return uint64_t{1} << directory_->state().stripe_bits; }

 private:
  explicit SalvageSource(std::unique_ptr<StoredDirectory> directory)
      : directory_(std::move(directory)), log_(directory_->env(), directory_->paths().log) {}

  static Result<std::unique_ptr<SalvageSource>> OpenWithoutCatalog(const std::string& path, const Status& why);

  struct Place {
    const SectionEntry* section = nullptr;
    uint64_t cut = 0;
  };
  struct Index {
    const ObjectType* type = nullptr;
    std::string definition;
    uint64_t generation = 0;
    uint64_t from_lsn = 0;  // effects up to here are in it
    ObjectRef<Object> object;
  };
  using Apply = std::function<void(const Effect&)>;

  void Lost(std::string what) { problems_->Add(std::move(what)); }
  void LostOnce(const std::string& what);
  void OpenSnapshot();
  void ReadEffectSections();
  void ScanRange();
  // Effects of the group in the order of their lsn; what cannot be read is lost.
  void ForEachEffect(unsigned group, const Apply& apply);
  void ApplyRecords(uint64_t epoch, std::string_view records, const std::string& where, const Apply& apply);
  void LoadIndexes();
  void PlanIndexes();
  void ApplyToIndex(const Effect& effect);
  bool OpenIndex(uint64_t id, Index* index);
  void LoadStripe(uint32_t stripe);
  void LoadGroup(unsigned group);

  const std::unique_ptr<StoredDirectory> directory_;
  LogReader log_;
  Problems* problems_ = nullptr;
  std::unique_ptr<SnapshotReader> snapshot_;
  std::vector<Place> stripes_;
  std::vector<std::string> effect_bytes_;  // of the snapshot's effect sections, that runs point into
  std::array<std::vector<EffectRun>, kStripeGroups> runs_;
  std::array<std::vector<LogGroupRef>, kStripeGroups> refs_;
  bool has_log_ = false;
  std::map<uint64_t, Index> indexes_;
  std::set<std::string> lost_once_;
  bool by_files_ = false;                 // there is no catalog that can be read
  std::vector<std::string> lost_before_;  // found out by Open
  std::unique_ptr<Engine> engine_;
  uint64_t stripes_done_ = 0;
};

}  // namespace hotkv
