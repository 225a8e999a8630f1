// Recovery: from the files of a data directory back to a keyspace. Two steps, because the engine is
// built in between: Inspect reads the catalog's choice of files and the log's headers, changes
// nothing, and says with what parameters the engine has to be built; Load fills the engine.
//
// State = each stripe's section at its cut + its effects after the cut, each object's generation +
// its effects after `from`, up to the last block that counts (docs/persistence.md, "Recovery").
//
// Thread rules: one thread; Load uses threads of its own; the progress getters from any thread.
// Errors: each names file and offset where there is one. kCorruption: the files contradict what was
// promised; kUnsupported: a newer format. Nothing has been changed then (but for folders of objects
// that the log makes anew).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/base/result.h"
#include "persistence/catalog/catalog.h"
#include "persistence/log/log_reader.h"
#include "persistence/recovery/effect_source.h"
#include "persistence/recovery/object_loader.h"
#include "persistence/snapshot/snapshot_file.h"

namespace hotkv {

class Engine;

struct DirectoryPaths {
  explicit DirectoryPaths(const std::string& root_in)
      : root(root_in),
        lock(JoinPath(root_in, "LOCK")),
        catalog(JoinPath(root_in, "catalog.mdb")),
        log(JoinPath(root_in, "log")),
        snapshots(JoinPath(root_in, "snapshots")),
        index(JoinPath(root_in, "index")) {}
  std::string root;
  std::string lock;
  std::string catalog;
  std::string log;
  std::string snapshots;
  std::string index;
};

class Recovery {
 public:
  static Result<std::unique_ptr<Recovery>> Inspect(Env* env, const DirectoryPaths& paths,
                                                   const CatalogState& state);

  // Parameters of the engine.
  uint64_t first_epoch() const { return first_epoch_; }
  uint64_t first_object_id() const;

  Status Load(Engine* engine, unsigned threads);

  // The same in parts, for tools that never hold all keys at once: objects; stripes, group by
  // group; the end.
  Status LoadObjects(Engine* engine, unsigned threads);
  Status LoadStripesOfGroup(Engine* engine, unsigned group);
  Status FinishObjects();

  // What was found.
  uint64_t snapshot_number() const { return snapshot_number_; }  // 0: none
  uint64_t last_epoch() const { return last_epoch_; }            // the state is the one at its end
  // All epochs up to here survive a power cut; blocks beyond it were found in the page cache
  // perhaps.
  uint64_t durable_epoch() const { return durable_epoch_; }
  // The log range that goes on from the loaded state; nothing: none does.
  const std::optional<LogRange>& range() const { return range_; }
  const std::optional<LogScanResult>& log() const { return log_; }
  uint64_t blocks() const { return effects_.blocks(); }

  // Progress of Load.
  uint64_t stripes_loaded() const { return stripes_loaded_.load(std::memory_order_relaxed); }
  uint64_t keys_loaded() const { return keys_loaded_.load(std::memory_order_relaxed); }
  double loaded_percent() const {
    if (loaded_.load(std::memory_order_relaxed)) return 100;
    return snapshot_ ? 100.0 * static_cast<double>(stripes_loaded()) /
                           static_cast<double>(stripe_sections_.size())
                     : 0;
  }
  uint64_t keys_total() const { return snapshot_ ? snapshot_->footer().entries : 0; }

  // The segments of a range, ascending.
  static std::vector<LogSegmentEntry> SegmentsOf(const CatalogState& state, const LogRange& range);

 private:
  Recovery(Env* env, const DirectoryPaths& paths, const CatalogState& state)
      : env_(env), paths_(paths), state_(state), effects_(env, paths.log) {}
  Status OpenSnapshot();
  void ChooseRange();
  Status Scan();
  uint64_t FirstNeededEpoch() const;
  uint64_t KnownDurable() const;
  // Runs fn(group) for all groups on `threads` threads; the first error ends it.
  Status ForAllGroups(unsigned threads, const std::function<Status(unsigned)>& fn);
  Status LoadStripe(Engine* engine, uint32_t stripe, std::string* scratch);

  Env* const env_;
  const DirectoryPaths paths_;
  const CatalogState state_;
  EffectSource effects_;
  std::unique_ptr<SnapshotReader> snapshot_;
  uint64_t snapshot_number_ = 0;
  std::vector<const SectionEntry*> stripe_sections_;  // by stripe; null: none
  std::optional<LogRange> range_;
  std::optional<LogScanResult> log_;
  uint64_t first_epoch_ = 1;
  uint64_t last_epoch_ = 0;
  uint64_t durable_epoch_ = 0;
  std::unique_ptr<ObjectLoader> objects_;
  std::atomic<uint64_t> stripes_loaded_{0};
  std::atomic<uint64_t> keys_loaded_{0};
  std::atomic<bool> loaded_{false};
};

}  // namespace hotkv
