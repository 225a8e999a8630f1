// LmdbStore: the catalog's records in one LMDB environment (catalog.mdb, opened with MDB_NOSUBDIR).
// Its two meta pages give the atomic, ordered switch; its pages have no checksum, so each value
// carries its own (docs/formats/catalog.md).
//
// Thread rules: one caller at a time. A process opens a path once at a time (LMDB's rule).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "persistence/catalog/catalog_store.h"

struct MDB_env;

namespace hotkv {

class LmdbStore : public CatalogStore {
 public:
  enum class Mode : uint8_t {
    kReadOnly,      // must exist; for tools that look at a directory
    kReadWrite,     // must exist
    kCreateOrOpen,  // the file's name is not durable until its folder is synced
  };
  static Result<std::unique_ptr<LmdbStore>> Open(const std::string& path, Mode mode);
  ~LmdbStore() override;
  LmdbStore(const LmdbStore&) = delete;
  LmdbStore& operator=(const LmdbStore&) = delete;

  Result<CatalogRecords> Load() override;
  Status Commit(const CatalogBatch& batch) override;
  const std::string& path() const override { return path_; }

 private:
  LmdbStore(std::string path, Mode mode) : path_(std::move(path)), mode_(mode) {}
  Status OpenEnvironment();
  void CloseEnvironment();
  Status CheckFileSize();
  Status CommitOnce(const CatalogBatch& batch);
  Status Error(int code, const char* what) const;

  const std::string path_;
  const Mode mode_;
  MDB_env* env_ = nullptr;
  unsigned dbi_ = 0;
  bool must_reopen_ = false;  // LMDB refuses everything after a failed write of a meta page
};

// A value as stored: CRC32C over key and value, then the value. Shared with tools that look at the
// file.
std::string SealCatalogValue(const std::string& key, const std::string& value);
Result<std::string> UnsealCatalogValue(const std::string& key, const std::string& stored);

}  // namespace hotkv
