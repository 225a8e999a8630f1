// Catalog: the data directory's one root of truth. A change of several things is one commit: there
// completely or not at all, and commits are durable in their order.
//
// Thread rules: any thread; Update holds the mutex while it commits, so Read never sees half a
// change. Errors: those of the store. After a failed Update the catalog in memory is as before it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "engine/base/result.h"
#include "persistence/catalog/catalog_state.h"
#include "persistence/catalog/catalog_store.h"

namespace hotkv {

class Catalog {
 public:
  // Reads everything; the state has format 0 when there is nothing yet.
  static Result<std::unique_ptr<Catalog>> Open(std::unique_ptr<CatalogStore> store);

  CatalogState Read() const;
  // Under the mutex, without a copy; `read` must not call the catalog.
  void With(const std::function<void(const CatalogState&)>& read) const;
  // Edits a copy and commits what differs. Nothing is written when nothing differs.
  Status Update(const std::function<void(CatalogState*)>& edit);

  CatalogStore& store() { return *store_; }

 private:
  explicit Catalog(std::unique_ptr<CatalogStore> store) : store_(std::move(store)) {}

  const std::unique_ptr<CatalogStore> store_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  CatalogState state_;
  CatalogRecords records_;  // state_ as stored
  std::set<std::string>
      uncertain_;  // keys of failed commits: what is stored under them is not known
};

}  // namespace hotkv
