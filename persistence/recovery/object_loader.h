// ObjectLoader: brings objects back. An object is opened at a generation of its folder (or made
// anew, where its creation is in the log and it has none) and gets the effects after that
// generation's `from`.
//
// An object that a later effect drops is not opened: until the stripes are loaded a stand-in takes
// its place, so that the effects of the stripes that linked to it in between find something to link
// to; Finish checks that nobody does any more.
//
// Thread rules: Plan by one thread; then LoadGroup by any number, each group once; then, when the
// stripes are loaded, Finish by one thread. Errors: kCorruption when folder, catalog, snapshot and
// log do not fit together.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/tx/engine.h"
#include "engine/types/durable_object.h"
#include "persistence/catalog/catalog_state.h"
#include "persistence/recovery/effect_source.h"
#include "persistence/snapshot/snapshot_file.h"

namespace hotkv {

class ObjectLoader {
 public:
  // use_log: the log goes on from the snapshot, so generations published since count. All pointers
  // must outlive this.
  struct Options {
    Env* env = nullptr;
    std::string index_folder;
    const CatalogState* state = nullptr;
    const SnapshotReader* snapshot_or_null = nullptr;
    EffectSource* effects = nullptr;
    bool use_log = false;
  };
  ObjectLoader(const Options& options, Engine* engine) : options_(options), engine_(engine) {}

  // Reads the snapshot's object sections.
  Status Plan();
  Status LoadGroup(unsigned group);
  Status Finish();

 private:
  struct Planned {
    uint8_t type = 0;
    std::string definition;
    uint64_t generation = 0;  // 0: none yet, made by its creation in the log
    uint64_t from_lsn = 0;    // effects up to here are in the generation
  };
  struct GroupFacts {
    std::set<uint64_t> dropped;
    std::map<uint64_t, uint8_t> created_type;
  };
  Status PlanSection(const SectionEntry& section);
  Result<GroupFacts> ScanGroup(unsigned group);
  Status AddStandIns(unsigned group, const GroupFacts& facts);
  Status OpenPlanned(unsigned group, const GroupFacts& facts);
  Status Apply(const Effect& effect, const GroupFacts& facts);
  Status Create(const Effect& effect);
  Result<const ObjectType*> TypeOf(uint8_t type) const;
  std::string FolderOf(uint64_t id) const;

  const Options options_;
  Engine* const engine_;
  std::map<uint64_t, Planned> planned_;
  // Of each group, touched by its loading thread only.
  std::array<std::map<uint64_t, uint64_t>, kStripeGroups> applied_from_;
  std::array<std::vector<uint64_t>, kStripeGroups> stand_ins_;
  // Shared with the stand-ins, which a failed load leaves behind in the engine.
  const std::shared_ptr<std::atomic<int64_t>> stand_ins_alive_ =
      std::make_shared<std::atomic<int64_t>>(0);
};

// "index/<object id>"
std::string ObjectFolder(const std::string& index_folder, uint64_t object_id);

}  // namespace hotkv
