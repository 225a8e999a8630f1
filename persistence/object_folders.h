// ObjectFolders: the folders of objects (index/<object id>/) and the generations in them, from
// planned to dropped.
//
// A folder is entered as planned, made, synced with its parent, and live before the object exists.
// A generation is planned before its object writes it, and live once the log is durable past the
// end of its copy (the caller says so). A folder goes when the object has left the keyspace for
// good - no kept snapshot refers to it, and the effect that dropped it is durable or older than
// every kept snapshot. So a recovery never misses a folder that it needs.
//
// Thread rules: MakeFolder, ForgetFolder, PlanGeneration and PublishGeneration from any thread; the rest from the directory's thread.
// Errors: of the files and the catalog. A failed step leaves planned or dropped entries, which the
// next Collect or start removes.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "engine/base/file.h"
#include "engine/tx/engine.h"
#include "engine/types/durable_object.h"
#include "persistence/catalog/catalog.h"

namespace hotkv {

// A generation that is written and synced but not live yet.
struct NewGeneration {
  ObjectRef<Object> object;
  uint64_t generation = 0;
  uint64_t from_lsn = 0;
  uint64_t to_epoch = 0;  // the log must be durable past it before the generation is live
};

class ObjectFolders : public ObjectHost {
 public:
  ObjectFolders(Env* env, std::string index_folder, Catalog* catalog, Engine* engine)
      : env_(env), index_folder_(std::move(index_folder)), catalog_(catalog), engine_(engine) {}

  Result<std::string> MakeFolder(uint64_t object_id, ValueType type) override;
  void ForgetFolder(uint64_t object_id) override;
  Result<uint64_t> PlanGeneration(uint64_t object_id) override;
  Status PublishGeneration(uint64_t object_id, uint64_t generation) override;
  Env* env() override { return env_; }

  // Folders in the catalog whose objects recovery did not bring back.
  void ForgetUnknown();

  Result<NewGeneration> Checkpoint(DurableObject* object);
  // The object is as its current generation has it. Asks the object, which knows of checkpoints but
  // not of what became of them: one that was abandoned does not count.
  bool IsAsIn(const DurableObject& object, uint64_t current);
  // An edit for Catalog::Update. log_epoch: see SnapshotRecord.
  static void MakeLive(const NewGeneration& generation, uint64_t log_epoch, CatalogState* state);
  // The generation that Checkpoint made is not wanted after all.
  Status Abandon(const NewGeneration& generation);

  // While pinned, an object's folder and generations stay.
  void Pin(uint64_t object_id);
  void Unpin(uint64_t object_id);

  // Removes folders and generations that nothing needs any more, and lets objects reuse slots.
  // durable_epoch: drops up to there are durable in the log; 0 where there is none.
  Status Collect(uint64_t durable_epoch);

 private:
  struct Garbage {
    std::set<uint64_t> folders;
    std::map<uint64_t, std::set<uint64_t>> generations;
    std::map<uint64_t, uint64_t> oldest_kept;  // where it is a later one than before
  };
  Garbage FindGarbage(const CatalogState& state, uint64_t durable_epoch);
  void ReleaseSlots(const Garbage& garbage);
  Status RemoveGenerations(const Garbage& garbage, const CatalogState& state);
  Status RemoveFolders(const Garbage& garbage);

  Env* const env_;
  const std::string index_folder_;
  Catalog* const catalog_;
  Engine* const engine_;

  std::mutex mutex_;
  std::map<uint64_t, uint64_t>
      forgotten_;  // guarded by mutex_: object id to the epoch in which it had gone
  std::map<uint64_t, uint64_t>
      begun_;  // guarded by mutex_: object id to the last generation that was begun
  std::multiset<uint64_t> pinned_;  // guarded by mutex_
  std::set<uint64_t> unfinished_;   // guarded by mutex_: their first generation is being written
  std::map<uint64_t, uint64_t>
      released_;  // guarded by mutex_: object id to the oldest kept generation told to it
};

}  // namespace hotkv
