// A data directory without its server: OfflineDirectory runs one for writing, as the server would; StoredDirectory reads
// one without changing it. Both refuse a directory that a server or another tool works on.
//
// Thread rules: one thread. Errors: kLocked; else those of DataDirectory and Recovery.
#pragma once

#include <memory>
#include <string>

#include "engine/base/file.h"
#include "engine/commands/command_spec.h"
#include "engine/tx/engine.h"
#include "persistence/catalog/catalog_state.h"
#include "persistence/data_directory.h"
#include "persistence/recovery/recovery.h"
#include "tools/hotkv_tool/overlay_env.h"

namespace hotkv {

struct OfflineOptions {
  std::string path;
  unsigned workers = 1;
  unsigned databases = 16;
};

class OfflineDirectory {
 public:
  static Result<std::unique_ptr<OfflineDirectory>> Open(const OfflineOptions& options);

  Engine* engine() { return engine_.get(); }
  DataDirectory* directory() { return directory_.get(); }
  // Everything is durable when this returns OK.
  Status Stop();

 private:
  OfflineDirectory();
  CommandTable commands_;
  std::unique_ptr<Engine> engine_;  // before the directory: must outlive it
  std::unique_ptr<DataDirectory> directory_;
};

class StoredDirectory {
 public:
  enum class Locking : uint8_t {
    kRefuseLocked,
    kTolerate,  // also while a server works on it; for `info`
  };
  static Result<std::unique_ptr<StoredDirectory>> Open(const std::string& path, Locking locking);

  // For a directory without a catalog that can be read: what its files say. notes: what is missing.
  static Result<std::unique_ptr<StoredDirectory>> OpenByFiles(const std::string& path,
                                                              std::vector<std::string>* notes);

  const DirectoryPaths& paths() const { return paths_; }
  const CatalogState& state() const { return state_; }
  bool is_locked() const { return locked_by_other_; }
  Env* env() { return &overlay_; }

  // Chooses snapshot and log as the server would.
  Result<std::unique_ptr<Recovery>> Inspect();
  // An engine for the result, without commands.
  std::unique_ptr<Engine> MakeEngine(const Recovery& recovery);

 private:
  Status TakeLock(Locking locking);

  explicit StoredDirectory(const std::string& path) : paths_(path), overlay_(PosixEnv()), no_commands_({}) {}

  const DirectoryPaths paths_;
  OverlayEnv overlay_;
  CommandTable no_commands_;
  std::unique_ptr<FileLock> lock_;
  bool locked_by_other_ = false;
  CatalogState state_;
};

}  // namespace hotkv
