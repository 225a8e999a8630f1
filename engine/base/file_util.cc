#include "engine/base/file.h"

namespace hotkv {

Result<std::string> ReadWholeFile(Env* env, const std::string& path) {
  HOTKV_ASSIGN_OR_RETURN(auto file, env->Open(path, OpenMode::kRead));
  HOTKV_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::string content(static_cast<size_t>(size), '\0');
  HOTKV_ASSIGN_OR_RETURN(const size_t read, file->ReadAt(0, {content.data(), content.size()}));
  content.resize(read);
  return content;
}

Status WriteFileAtomically(Env* env, const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp";
  {
    HOTKV_ASSIGN_OR_RETURN(auto file, env->Open(temporary, OpenMode::kCreateOrOpen));
    HOTKV_RETURN_IF_ERROR(file->Truncate(0));
    HOTKV_RETURN_IF_ERROR(file->WriteAt(0, content));
    HOTKV_RETURN_IF_ERROR(file->Sync());
  }
  HOTKV_RETURN_IF_ERROR(env->Rename(temporary, path));
  return env->SyncDir(ParentFolder(path));
}

Status RemoveTree(Env* env, const std::string& path) {
  HOTKV_ASSIGN_OR_RETURN(const bool exists, env->Exists(path));
  if (!exists) return Status::Ok();
  HOTKV_RETURN_IF_ERROR(RemoveContents(env, path));
  return env->RemoveDir(path);
}

Status RemoveContents(Env* env, const std::string& path) {
  HOTKV_ASSIGN_OR_RETURN(const auto entries, env->List(path));
  for (const DirEntry& entry : entries) {
    const std::string child = JoinPath(path, entry.name);
    HOTKV_RETURN_IF_ERROR(entry.is_dir ? RemoveTree(env, child) : env->Unlink(child));
  }
  return Status::Ok();
}

std::string JoinPath(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  path += name;
  return path;
}

std::string ParentFolder(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

}  // namespace hotkv
