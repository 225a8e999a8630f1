#include "tools/hotkv_tool/offline_directory.h"

#include "engine/base/limits.h"
#include "engine/types/vector_set.h"
#include "persistence/catalog/catalog.h"
#include "persistence/catalog/lmdb_store.h"
#include "tools/hotkv_tool/catalog_from_files.h"
#include "tools/hotkv_tool/engine_target.h"

namespace hotkv {

OfflineDirectory::OfflineDirectory() : commands_(ToolCommandFamilies()) {}

Result<std::unique_ptr<OfflineDirectory>> OfflineDirectory::Open(const OfflineOptions& options) {
  RegisterObjectTypes();
  std::unique_ptr<OfflineDirectory> offline(new OfflineDirectory);
  DataDirectoryOptions directory_options;
  directory_options.path = options.path;
  HOTKV_ASSIGN_OR_RETURN(auto directory, DataDirectory::Open(std::move(directory_options)));
  const EngineParameters parameters = directory->parameters();
  EngineOptions engine_options;
  engine_options.keyspace.stripe_bits = parameters.stripe_bits;
  engine_options.keyspace.hash_seed = parameters.hash_seed;
  engine_options.keyspace.databases = options.databases;
  engine_options.workers = options.workers;
  engine_options.first_epoch = parameters.first_epoch;
  engine_options.first_object_id = parameters.first_object_id;
  offline->engine_ = std::make_unique<Engine>(engine_options, &offline->commands_);
  offline->directory_ = std::move(directory);
  HOTKV_RETURN_IF_ERROR(offline->directory_->Load(offline->engine_.get()));
  HOTKV_RETURN_IF_ERROR(offline->directory_->Start());
  return offline;
}

Status OfflineDirectory::Stop() { return directory_->Stop(false); }

Result<std::unique_ptr<StoredDirectory>> StoredDirectory::Open(const std::string& path, Locking locking) {
  RegisterObjectTypes();
  std::unique_ptr<StoredDirectory> stored(new StoredDirectory(path));
  const DirectoryPaths& paths = stored->paths_;
  Env* env = PosixEnv();
  HOTKV_ASSIGN_OR_RETURN(const bool has_catalog, env->Exists(paths.catalog));
  if (!has_catalog) return Status::NotFound("no data directory: it has no catalog").At(path, -1);
  HOTKV_RETURN_IF_ERROR(stored->TakeLock(locking));
  HOTKV_ASSIGN_OR_RETURN(auto store, LmdbStore::Open(paths.catalog, LmdbStore::Mode::kReadOnly));
  HOTKV_ASSIGN_OR_RETURN(auto catalog, Catalog::Open(std::move(store)));
  stored->state_ = catalog->Read();
  if (stored->state_.format == 0) {
    return Status::NotFound("the catalog is empty: no server has started on it yet").At(paths.catalog, -1);
  }
  return stored;
}

Status StoredDirectory::TakeLock(Locking locking) {
  // A directory that was only copied may have no lock file, and none is made.
  HOTKV_ASSIGN_OR_RETURN(const bool has_lock, PosixEnv()->Exists(paths_.lock));
  if (!has_lock) return Status::Ok();
  Result<std::unique_ptr<FileLock>> lock = PosixEnv()->Lock(paths_.lock);
  if (lock.ok()) {
    lock_ = std::move(lock).value();
    return Status::Ok();
  }
  if (lock.status().code() != Code::kLocked) return lock.status();
  if (locking == Locking::kRefuseLocked) {
    return Status::Locked("a server or another tool works on this directory").At(paths_.root, -1);
  }
  locked_by_other_ = true;
  return Status::Ok();
}

Result<std::unique_ptr<StoredDirectory>> StoredDirectory::OpenByFiles(const std::string& path,
                                                                      std::vector<std::string>* notes) {
  RegisterObjectTypes();
  std::unique_ptr<StoredDirectory> stored(new StoredDirectory(path));
  HOTKV_RETURN_IF_ERROR(stored->TakeLock(Locking::kRefuseLocked));
  HOTKV_ASSIGN_OR_RETURN(stored->state_, CatalogFromFiles(PosixEnv(), stored->paths_, notes));
  return stored;
}

Result<std::unique_ptr<Recovery>> StoredDirectory::Inspect() {
  return Recovery::Inspect(&overlay_, paths_, state_);
}

std::unique_ptr<Engine> StoredDirectory::MakeEngine(const Recovery& recovery) {
  EngineOptions options;
  options.keyspace.stripe_bits = state_.stripe_bits;
  options.keyspace.hash_seed = state_.hash_seed;
  options.keyspace.databases = kDatabasesMax;
  options.first_epoch = recovery.first_epoch();
  options.first_object_id = recovery.first_object_id();
  return std::make_unique<Engine>(options, &no_commands_);
}

}  // namespace hotkv
