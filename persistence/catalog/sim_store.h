// SimStore: the catalog of the power-cut simulation. Each commit is one atomic event: it counts for
// every cut after Commit has returned, for none before it was called, and for a cut in between it
// may count or not.
//
// Thread rules: any thread; the hook runs on the committing thread without a lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "persistence/catalog/catalog_store.h"

namespace hotkv {

class SimStore : public CatalogStore {
 public:
  SimStore() = default;

  Result<CatalogRecords> Load() override;
  Status Commit(const CatalogBatch& batch) override;
  const std::string& path() const override { return path_; }

  // The catalog as a cut at this moment leaves it; the seed decides about a commit under way.
  std::unique_ptr<SimStore> Image(uint64_t seed) const;
  // Called when a commit has begun and again when it is done but not yet acknowledged.
  void SetHook(std::function<void()> hook);
  // The next `count` commits fail without effect.
  void FailNext(uint64_t count);
  // From now on every commit fails.
  void PowerOff();
  uint64_t commits() const;

 private:
  void CallHook();

  const std::string path_ = "catalog.mdb";
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  CatalogRecords records_;
  const CatalogBatch* under_way_ = nullptr;
  uint64_t commits_ = 0;
  uint64_t failures_left_ = 0;
  bool off_ = false;
  std::function<void()> hook_;
};

}  // namespace hotkv
