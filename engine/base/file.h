// File, Mapping and Env: the only way to the file system for everything above engine/base. PosixEnv() is the real
// one. The fault-injecting twin (sim_env.h) fails, shortens and delays operations, fills the disk, and simulates
// power cuts: it drops any subset of writes and of a mapping's dirty pages since the last sync, torn at sector size.
//
// Thread rules: an Env may be used by any thread. A File may be used by several threads as long as their byte
// ranges do not overlap. All paths are used as given (relative to the working directory or absolute).
//
// Errors: a Status with the path and errno; kNoSpace for a full disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace hotkv {

enum class MapMode : uint8_t {
  kReadOnly,  // shared, not writable
  kShared,    // writes reach the file, at any moment, asked for or not
  kPrivate,   // writes stay in this process
};

// A mapped range of a file; unmapped when destroyed. Stays valid after its File is closed.
class Mapping {
 public:
  virtual ~Mapping() = default;
  char* data() const { return data_; }
  size_t size() const { return size_; }
  // Writes back dirty bytes of [offset, offset + length) and waits (msync + device flush). Shared mappings only.
  virtual Status Sync(size_t offset, size_t length) = 0;

 protected:
  char* data_ = nullptr;
  size_t size_ = 0;
};

class File {
 public:
  virtual ~File() = default;
  // Reads up to buffer.size() bytes; fewer only at the end of the file.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<char> buffer) = 0;
  // Writes all bytes or fails (a failure may leave any part of them written).
  virtual Status WriteAt(uint64_t offset, std::string_view data) = 0;
  // The pieces one after the other from offset on, in as few system calls as possible.
  virtual Status WriteGatherAt(uint64_t offset, std::span<const std::string_view> pieces) = 0;
  // fdatasync: file content and size are durable when this returns OK. After a failure the file's unsynced bytes are
  // unknown: callers must not sync the same file again and take success for the earlier bytes.
  virtual Status Sync() = 0;
  // WriteGatherAt and then Sync, as one submission where the implementation can: the sync counts only once every byte
  // of this write has been seen to be written.
  virtual Status WriteGatherAndSyncAt(uint64_t offset, std::span<const std::string_view> pieces) {
    HOTKV_RETURN_IF_ERROR(WriteGatherAt(offset, pieces));
    return Sync();
  }
  virtual Status Truncate(uint64_t size) = 0;
  // Reserves blocks so that a later write or a mapping of the range cannot meet a full disk; grows the file.
  virtual Status Allocate(uint64_t offset, uint64_t length) = 0;
  virtual Result<uint64_t> Size() = 0;
  // length 0: to the end of the file. offset must be a multiple of the page size.
  virtual Result<std::unique_ptr<Mapping>> Map(uint64_t offset, size_t length, MapMode mode) = 0;
  virtual const std::string& path() const = 0;
};

enum class OpenMode : uint8_t {
  kRead,          // must exist
  kReadWrite,     // must exist
  kCreateNew,     // read and write; must not exist
  kCreateOrOpen,  // read and write
};

enum class FileIo : uint8_t {
  kPosix,  // preadv2/pwritev2
  kUring,  // writes and syncs through an io_uring of the file's own; falls back to kPosix where refused
};

struct DirEntry {
  std::string name;
  bool is_dir = false;
  uint64_t size = 0;
};

// Held advisory lock on a file (flock); released when destroyed.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class Env {
 public:
  virtual ~Env() = default;
  virtual Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode,
                                             FileIo io = FileIo::kPosix) = 0;
  virtual Status Unlink(const std::string& path) = 0;
  // Replaces an existing target. Durable only after SyncDir of the folder.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status MakeDir(const std::string& path) = 0;  // OK if it exists as a folder
  virtual Status RemoveDir(const std::string& path) = 0;
  // fsync of a folder: names made, renamed or removed in it are durable.
  virtual Status SyncDir(const std::string& path) = 0;
  virtual Result<std::vector<DirEntry>> List(const std::string& path) = 0;  // without . and ..
  virtual Result<bool> Exists(const std::string& path) = 0;
  // kLocked when another process (or this one) holds it. Creates the file, unless it is there on a read-only medium.
  virtual Result<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
  // Free bytes on the file system of path.
  virtual Result<uint64_t> FreeBytes(const std::string& path) = 0;
};

// False where io_uring_setup or one of the operations used is refused; FileIo::kUring is then kPosix.
bool UringFilesWork();

// The operating system's files. A process-wide object that is never destroyed.
Env* PosixEnv();

// Convenience over an Env.
Result<std::string> ReadWholeFile(Env* env, const std::string& path);
// Writes to path + ".tmp", syncs, renames, syncs the folder: path is the old or the new content, never a mix.
Status WriteFileAtomically(Env* env, const std::string& path, std::string_view content);
// Removes a folder with everything in it; OK when it does not exist.
Status RemoveTree(Env* env, const std::string& path);
// Everything in a folder, which stays.
Status RemoveContents(Env* env, const std::string& path);
std::string JoinPath(std::string_view folder, std::string_view name);
// The folder that holds the path's last part; "." for a bare name.
std::string ParentFolder(std::string_view path);

}  // namespace hotkv
