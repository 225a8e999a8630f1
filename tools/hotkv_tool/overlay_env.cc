#include "tools/hotkv_tool/overlay_env.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace hotkv {

namespace {

constexpr size_t kCopyBytes = size_t{1} << 20;

Result<std::string> MakeTemporaryFolder() {
  const char* root = std::getenv("TMPDIR");
  std::string name = JoinPath(root != nullptr && *root != '\0' ? root : "/tmp", "hotkv-tool-XXXXXX");
  if (::mkdtemp(name.data()) == nullptr) return Status::FromErrno(errno, "mkdtemp", name);
  return name;
}

}  // namespace

// A file opened for writing: the real one, read only, until the first write.
class OverlayFile : public File {
 public:
  OverlayFile(OverlayEnv* env, std::unique_ptr<File> real)
      : env_(env), path_(real->path()), file_(std::move(real)) {}

  Result<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override {
    return file_->ReadAt(offset, buffer);
  }
  Status WriteAt(uint64_t offset, std::string_view data) override {
    HOTKV_RETURN_IF_ERROR(MakeOwn());
    return file_->WriteAt(offset, data);
  }
  Status WriteGatherAt(uint64_t offset, std::span<const std::string_view> pieces) override {
    HOTKV_RETURN_IF_ERROR(MakeOwn());
    return file_->WriteGatherAt(offset, pieces);
  }
  Status Sync() override { return Status::Ok(); }
  Status Truncate(uint64_t size) override {
    HOTKV_RETURN_IF_ERROR(MakeOwn());
    return file_->Truncate(size);
  }
  Status Allocate(uint64_t offset, uint64_t length) override {
    HOTKV_RETURN_IF_ERROR(MakeOwn());
    return file_->Allocate(offset, length);
  }
  Result<uint64_t> Size() override { return file_->Size(); }
  Result<std::unique_ptr<Mapping>> Map(uint64_t offset, size_t length, MapMode mode) override {
    const bool shared = mode == MapMode::kShared && !own_;
    return file_->Map(offset, length, shared ? MapMode::kPrivate : mode);
  }
  const std::string& path() const override { return path_; }

 private:
  Status MakeOwn() {
    if (own_) return Status::Ok();
    HOTKV_ASSIGN_OR_RETURN(const std::string name, env_->CopyUp(path_, file_.get()));
    HOTKV_ASSIGN_OR_RETURN(file_, env_->base_->Open(name, OpenMode::kReadWrite));
    own_ = true;
    return Status::Ok();
  }

  OverlayEnv* const env_;
  const std::string path_;
  std::unique_ptr<File> file_;
  bool own_ = false;
};

OverlayEnv::~OverlayEnv() {
  // Left behind where it fails: it is a temporary folder.
  if (!folder_.empty()) static_cast<void>(RemoveTree(base_, folder_).ok());
}

std::string OverlayEnv::OwnFileOf(const std::string& path) {
  std::lock_guard lock(mutex_);
  const auto found = own_.find(path);
  return found == own_.end() ? std::string() : found->second;
}

bool OverlayEnv::IsRemoved(const std::string& path) {
  std::lock_guard lock(mutex_);
  return removed_.contains(path);
}

Result<std::string> OverlayEnv::MakeOwnFile(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (folder_.empty()) {
    HOTKV_ASSIGN_OR_RETURN(folder_, MakeTemporaryFolder());
  }
  const std::string name = JoinPath(folder_, std::to_string(own_.size()) + "-" + std::to_string(removed_.size()));
  own_[path] = name;
  return name;
}

Result<std::string> OverlayEnv::CopyUp(const std::string& path, File* from) {
  HOTKV_ASSIGN_OR_RETURN(const std::string name, MakeOwnFile(path));
  HOTKV_ASSIGN_OR_RETURN(auto to, base_->Open(name, OpenMode::kCreateNew));
  std::string buffer(kCopyBytes, '\0');
  uint64_t offset = 0;
  for (;;) {
    HOTKV_ASSIGN_OR_RETURN(const size_t got, from->ReadAt(offset, {buffer.data(), buffer.size()}));
    if (got == 0) return name;
    HOTKV_RETURN_IF_ERROR(to->WriteAt(offset, std::string_view(buffer).substr(0, got)));
    offset += got;
  }
}

Result<std::unique_ptr<File>> OverlayEnv::Open(const std::string& path, OpenMode mode, FileIo io) {
  const std::string own = OwnFileOf(path);
  if (!own.empty()) return base_->Open(own, mode, io);
  HOTKV_ASSIGN_OR_RETURN(const bool exists, Exists(path));
  if (exists && mode == OpenMode::kCreateNew) return Status::FromErrno(EEXIST, "open", path);
  if (exists) {
    HOTKV_ASSIGN_OR_RETURN(auto real, base_->Open(path, OpenMode::kRead, io));
    if (mode == OpenMode::kRead) return real;
    return std::unique_ptr<File>(std::make_unique<OverlayFile>(this, std::move(real)));
  }
  if (mode == OpenMode::kRead || mode == OpenMode::kReadWrite) {
    return Status::FromErrno(ENOENT, "open", path);
  }
  HOTKV_ASSIGN_OR_RETURN(const std::string name, MakeOwnFile(path));
  return base_->Open(name, OpenMode::kCreateNew, io);
}

Status OverlayEnv::Unlink(const std::string& path) {
  HOTKV_ASSIGN_OR_RETURN(const bool exists, Exists(path));
  if (!exists) return Status::FromErrno(ENOENT, "unlink", path);
  const std::string own = OwnFileOf(path);
  std::lock_guard lock(mutex_);
  own_.erase(path);
  removed_.insert(path);
  return own.empty() ? Status::Ok() : base_->Unlink(own);
}

Status OverlayEnv::Rename(const std::string& from, const std::string&) {
  return Status::Unsupported("rename in a directory that is only read").At(from, -1);
}

Result<std::unique_ptr<FileLock>> OverlayEnv::Lock(const std::string& path) {
  return Status::Unsupported("lock in a directory that is only read").At(path, -1);
}

Status OverlayEnv::MakeDir(const std::string& path) {
  std::lock_guard lock(mutex_);
  made_folders_.insert(path);
  return Status::Ok();
}

Status OverlayEnv::RemoveDir(const std::string& path) {
  std::lock_guard lock(mutex_);
  made_folders_.erase(path);
  removed_.insert(path);
  return Status::Ok();
}

Result<bool> OverlayEnv::Exists(const std::string& path) {
  {
    std::lock_guard lock(mutex_);
    if (own_.contains(path) || made_folders_.contains(path)) return true;
    if (removed_.contains(path)) return false;
  }
  return base_->Exists(path);
}

Result<std::vector<DirEntry>> OverlayEnv::List(const std::string& path) {
  HOTKV_ASSIGN_OR_RETURN(const bool real, base_->Exists(path));
  std::vector<DirEntry> entries;
  if (real && !IsRemoved(path)) {
    HOTKV_ASSIGN_OR_RETURN(entries, base_->List(path));
  }
  std::lock_guard lock(mutex_);
  std::erase_if(entries, [&](const DirEntry& entry) {
    const std::string child = JoinPath(path, entry.name);
    return removed_.contains(child) || own_.contains(child);
  });
  for (const auto& [child, name] : own_) {
    if (ParentFolder(child) != path) continue;
    HOTKV_ASSIGN_OR_RETURN(auto file, base_->Open(name, OpenMode::kRead));
    HOTKV_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    entries.push_back({child.substr(path.size() + 1), false, size});
  }
  return entries;
}

}  // namespace hotkv
