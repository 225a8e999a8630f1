// CatalogLog: the log's view of the catalog.
//
// Thread rules: any thread.
#pragma once

#include "persistence/catalog/catalog.h"
#include "persistence/log/log_catalog.h"

namespace hotkv {

class CatalogLog : public LogCatalog {
 public:
  explicit CatalogLog(Catalog* catalog) : catalog_(catalog) {}
  Result<std::vector<LogSegmentEntry>> Segments() override;
  Status Commit(const LogCatalogChange& change) override;

 private:
  Catalog* const catalog_;
};

}  // namespace hotkv
