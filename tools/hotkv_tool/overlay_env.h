// OverlayEnv: a file system that reads the real one and keeps every change to itself, so that a data directory can be
// loaded as the server would load it without changing a byte of it: to be exported or verified, also from a read-only
// medium. A file that is changed through a mapping is mapped privately; one that is written to is copied into a temporary
// folder first; new files are made there.
//
// Thread rules: as Env. Errors: as the real file system's; kUnsupported for Rename and Lock.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/base/file.h"

namespace hotkv {

class OverlayEnv : public Env {
 public:
  explicit OverlayEnv(Env* base) : base_(base) {}
  ~OverlayEnv() override;  // removes the temporary folder
  OverlayEnv(const OverlayEnv&) = delete;
  OverlayEnv& operator=(const OverlayEnv&) = delete;

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode, FileIo io) override;
  Status Unlink(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status MakeDir(const std::string& path) override;
  Status RemoveDir(const std::string& path) override;
  Status SyncDir(const std::string&) override { return Status::Ok(); }
  Result<std::vector<DirEntry>> List(const std::string& path) override;
  Result<bool> Exists(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override;
  Result<uint64_t> FreeBytes(const std::string& path) override { return base_->FreeBytes(path); }

 private:
  friend class OverlayFile;
  // Where the path's own file lies in the temporary folder; empty: it has none.
  std::string OwnFileOf(const std::string& path);
  // A name in the temporary folder for the path's own file.
  Result<std::string> MakeOwnFile(const std::string& path);
  // Copies the real file; its new name.
  Result<std::string> CopyUp(const std::string& path, File* from);
  bool IsRemoved(const std::string& path);

  Env* const base_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::string folder_;                       // empty: not made yet
  std::map<std::string, std::string> own_;   // path to name in the temporary folder
  std::set<std::string> removed_;            // real paths that are hidden
  std::set<std::string> made_folders_;
};

}  // namespace hotkv
