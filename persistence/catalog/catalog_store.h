// CatalogStore: small records by key, changed in batches that are there completely or not at all.
// LmdbStore keeps them in catalog.mdb; SimStore in memory, for the power-cut simulation (LMDB does
// its own I/O, so a simulator takes each commit as one atomic event).
//
// Thread rules: one caller at a time (Catalog has a mutex).
// Errors: kCorruption with path and key for a value whose checksum is wrong; storage errors with
// the path.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/base/result.h"

namespace hotkv {

using CatalogRecords = std::map<std::string, std::string>;
// Key to new value; nothing: the record is removed.
using CatalogBatch = std::map<std::string, std::optional<std::string>>;

class CatalogStore {
 public:
  virtual ~CatalogStore() = default;
  virtual Result<CatalogRecords> Load() = 0;
  // Durable when it returns OK. After a failure the batch is there or not.
  virtual Status Commit(const CatalogBatch& batch) = 0;
  virtual const std::string& path() const = 0;
};

}  // namespace hotkv
