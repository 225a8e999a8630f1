#include "persistence/catalog/lmdb_store.h"

#include <lmdb.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"

namespace hotkv {

namespace {

// Address space, not bytes on disk: the file grows with what is in it.
constexpr size_t kMapBytes = size_t{1} << 30;
constexpr mdb_mode_t kFileMode = 0640;

MDB_val ToValue(const std::string& s) { return {s.size(), const_cast<char*>(s.data())}; }
std::string ToString(const MDB_val& v) { return {static_cast<const char*>(v.mv_data), v.mv_size}; }

// Aborts what is not committed.
class LmdbTxn {
 public:
  ~LmdbTxn() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  int Begin(MDB_env* env, unsigned flags) { return mdb_txn_begin(env, nullptr, flags, &txn_); }
  int Commit() {
    MDB_txn* txn = txn_;
    txn_ = nullptr;
    return mdb_txn_commit(txn);
  }
  MDB_txn* get() const { return txn_; }

 private:
  MDB_txn* txn_ = nullptr;
};

}  // namespace

std::string SealCatalogValue(const std::string& key, const std::string& value) {
  std::string out;
  AppendLe<uint32_t>(&out, ExtendCrc32c(Crc32c(key), value));
  out += value;
  return out;
}

Result<std::string> UnsealCatalogValue(const std::string& key, const std::string& stored) {
  if (stored.size() < sizeof(uint32_t))
    return Status::Corruption("record '" + key + "' is too short");
  std::string value = stored.substr(sizeof(uint32_t));
  if (LoadLe<uint32_t>(stored.data()) != ExtendCrc32c(Crc32c(key), value)) {
    return Status::Corruption("record '" + key + "' has a wrong checksum");
  }
  return value;
}

Result<std::unique_ptr<LmdbStore>> LmdbStore::Open(const std::string& path, Mode mode) {
  std::unique_ptr<LmdbStore> store(new LmdbStore(path, mode));
  if (mode != Mode::kCreateOrOpen) {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return Status::FromErrno(errno, "stat", path);
  }
  HOTKV_RETURN_IF_ERROR(store->OpenEnvironment());
  return store;
}

LmdbStore::~LmdbStore() { CloseEnvironment(); }

Status LmdbStore::Error(int code, const char* what) const {
  if (code > 0) return Status::FromErrno(code, what, path_);
  const std::string text = std::string(what) + ": " + mdb_strerror(code);
  switch (code) {
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_PANIC:
      return Status::Corruption(text).At(path_, -1);
    case MDB_VERSION_MISMATCH:
      return Status::Unsupported(text).At(path_, -1);
    default:
      return Status::Internal(text).At(path_, -1);
  }
}

Status LmdbStore::OpenEnvironment() {
  if (int rc = mdb_env_create(&env_); rc != 0) return Error(rc, "mdb_env_create");
  mdb_env_set_mapsize(env_, kMapBytes);
  unsigned flags = MDB_NOSUBDIR | MDB_NOTLS;
  if (mode_ == Mode::kReadOnly) flags |= MDB_RDONLY;
  if (int rc = mdb_env_open(env_, path_.c_str(), flags, kFileMode); rc != 0) {
    Status status = Error(rc, "open");
    CloseEnvironment();
    return status;
  }
  HOTKV_RETURN_IF_ERROR(CheckFileSize());
  LmdbTxn txn;
  const unsigned txn_flags = mode_ == Mode::kReadOnly ? MDB_RDONLY : 0;
  if (int rc = txn.Begin(env_, txn_flags); rc != 0) return Error(rc, "mdb_txn_begin");
  MDB_dbi dbi = 0;
  if (int rc = mdb_dbi_open(txn.get(), nullptr, 0, &dbi); rc != 0) return Error(rc, "mdb_dbi_open");
  dbi_ = dbi;
  if (int rc = txn.Commit(); rc != 0) return Error(rc, "mdb_txn_commit");
  return Status::Ok();
}

// LMDB reads through a mapping: a file that was cut short would end this process with SIGBUS.
Status LmdbStore::CheckFileSize() {
  struct stat info;
  if (stat(path_.c_str(), &info) != 0) return Status::FromErrno(errno, "stat", path_);
  MDB_envinfo env_info;
  MDB_stat env_stat;
  mdb_env_info(env_, &env_info);
  mdb_env_stat(env_, &env_stat);
  const uint64_t needed = (uint64_t{env_info.me_last_pgno} + 1) * env_stat.ms_psize;
  if (info.st_size > 0 && static_cast<uint64_t>(info.st_size) < needed) {
    return Status::Corruption("the file is shorter than its meta page says")
        .At(path_, info.st_size);
  }
  return Status::Ok();
}

void LmdbStore::CloseEnvironment() {
  if (env_ != nullptr) mdb_env_close(env_);
  env_ = nullptr;
}

Result<CatalogRecords> LmdbStore::Load() {
  LmdbTxn txn;
  if (int rc = txn.Begin(env_, MDB_RDONLY); rc != 0) return Error(rc, "mdb_txn_begin");
  MDB_cursor* cursor = nullptr;
  if (int rc = mdb_cursor_open(txn.get(), dbi_, &cursor); rc != 0)
    return Error(rc, "mdb_cursor_open");
  std::unique_ptr<MDB_cursor, void (*)(MDB_cursor*)> closer(cursor, &mdb_cursor_close);
  CatalogRecords records;
  MDB_val key{0, nullptr};
  MDB_val value{0, nullptr};
  int rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
  for (; rc == 0; rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    const std::string name = ToString(key);
    Result<std::string> plain = UnsealCatalogValue(name, ToString(value));
    if (!plain.ok()) return Status::Corruption(plain.status().message()).At(path_, -1);
    records.emplace(name, std::move(plain).value());
  }
  if (rc != MDB_NOTFOUND) return Error(rc, "read");
  return records;
}

Status LmdbStore::Commit(const CatalogBatch& batch) {
  if (must_reopen_) {
    CloseEnvironment();
    HOTKV_RETURN_IF_ERROR(OpenEnvironment());
    must_reopen_ = false;
  }
  Status status = CommitOnce(batch);
  must_reopen_ = !status.ok();
  return status;
}

Status LmdbStore::CommitOnce(const CatalogBatch& batch) {
  LmdbTxn txn;
  if (int rc = txn.Begin(env_, 0); rc != 0) return Error(rc, "mdb_txn_begin");
  for (const auto& [name, value] : batch) {
    MDB_val key = ToValue(name);
    if (!value.has_value()) {
      const int rc = mdb_del(txn.get(), dbi_, &key, nullptr);
      if (rc != 0 && rc != MDB_NOTFOUND) return Error(rc, "mdb_del");
      continue;
    }
    const std::string sealed = SealCatalogValue(name, *value);
    MDB_val data = ToValue(sealed);
    if (int rc = mdb_put(txn.get(), dbi_, &key, &data, 0); rc != 0) return Error(rc, "mdb_put");
  }
  if (int rc = txn.Commit(); rc != 0) return Error(rc, "commit");
  return Status::Ok();
}

}  // namespace hotkv
