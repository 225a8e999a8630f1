#include "engine/base/sim_env.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "engine/base/sim_disk.h"

namespace hotkv {

using sim::Disk;
using sim::Inode;
using InodeRef = std::shared_ptr<Inode>;  // an open file keeps its inode after an unlink

struct SimEnv::State {
  explicit State(uint64_t seed, Disk d) : disk(std::move(d)), random(seed) {}

  mutable std::mutex mutex;
  // All below is guarded by mutex.
  Disk disk;
  std::mt19937_64 random;
  struct Armed {
    SimFault fault;
    uint64_t seen = 0;
  };
  std::vector<Armed> faults;
  std::set<std::string> locks;
  std::function<void(const SimOperation&)> hook;
  uint64_t operations = 0;
  bool off = false;

  uint64_t NextChange() { return ++disk.last_change; }

  uint64_t FreeBytesNow() const {
    if (disk.capacity == UINT64_MAX) return UINT64_MAX;
    const uint64_t used = disk.UsedBytes();
    return used >= disk.capacity ? 0 : disk.capacity - used;
  }
};

namespace {

std::vector<std::string> SplitPath(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

InodeRef Child(const Disk& disk, const InodeRef& folder, const std::string& name) {
  const auto found = folder->entries.find(name);
  return found == folder->entries.end() ? nullptr : disk.inodes.at(found->second);
}

InodeRef Find(const Disk& disk, const std::string& path) {
  InodeRef inode = disk.inodes.at(Disk::kRoot);
  for (const std::string& part : SplitPath(path)) {
    if (inode == nullptr || !inode->is_dir()) return nullptr;
    inode = Child(disk, inode, part);
  }
  return inode;
}

// The folder that holds the path's last part, and that part; the folder is null where there is
// none.
struct Place {
  InodeRef folder;
  std::string name;
};

Place FindPlace(const Disk& disk, const std::string& path) {
  std::vector<std::string> parts = SplitPath(path);
  if (parts.empty()) return {};
  InodeRef folder = disk.inodes.at(Disk::kRoot);
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    folder = Child(disk, folder, parts[i]);
    if (folder == nullptr || !folder->is_dir()) return {};
  }
  return {folder, parts.back()};
}

bool IsOk(const Status& status) { return status.ok(); }
template <typename T>
bool IsOk(const Result<T>& result) {
  return result.ok();
}

}  // namespace

SimEnv::SimEnv(uint64_t seed) : state_(std::make_unique<State>(seed, Disk())) {}
SimEnv::SimEnv(uint64_t seed, Disk disk) : state_(std::make_unique<State>(seed, std::move(disk))) {}
SimEnv::~SimEnv() = default;

SimFault SimEnv::NextFault(SimOp op, const std::string& path) {
  SimFault result;
  if (state_->off) result.error = EIO;
  for (State::Armed& armed : state_->faults) {
    const SimFault& fault = armed.fault;
    if (fault.op != op || path.find(fault.path_part) == std::string::npos) continue;
    ++armed.seen;
    if (armed.seen < fault.nth || armed.seen - fault.nth >= fault.count) continue;
    if (fault.error != 0) result.error = fault.error;
    result.bytes_done = std::max(result.bytes_done, fault.bytes_done);
    result.delay_us += fault.delay_us;
  }
  return result;
}

void SimEnv::CaptureSome() {
  for (const auto& [id, inode] : state_->disk.inodes) {
    if (!inode->mapped()) continue;
    const uint64_t pick = state_->random() % 4;
    if (pick == 0) continue;
    const unsigned share = pick == 1 ? 256 : static_cast<unsigned>(state_->random() % 256);
    inode->Capture(state_->NextChange(), share, &state_->random);
  }
}

template <typename F>
auto SimEnv::Run(SimOp op, const std::string& path, F body) {
  SimFault fault;
  {
    std::lock_guard lock(state_->mutex);
    fault = NextFault(op, path);
  }
  if (fault.delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(fault.delay_us));
  std::unique_lock lock(state_->mutex);
  if (state_->off) fault.error = EIO;
  CaptureSome();
  auto result = body(fault);
  const SimOperation done{++state_->operations, op, path, IsOk(result)};
  const auto hook = state_->hook;
  lock.unlock();
  if (hook) hook(done);
  return result;
}

class SimMapping : public Mapping {
 public:
  SimMapping(SimEnv* env, InodeRef inode, std::string path, uint64_t offset)
      : env_(env), inode_(std::move(inode)), path_(std::move(path)), offset_(offset) {}
  ~SimMapping() override {
    if (data_ != nullptr) munmap(data_, size_);
  }
  SimMapping(const SimMapping&) = delete;
  SimMapping& operator=(const SimMapping&) = delete;

  Status MapPages(size_t length, MapMode mode) {
    size_ = length;
    if (length == 0) return Status::Ok();
    const int fd = inode_->MappableDescriptor();
    const int protection = mode == MapMode::kReadOnly ? PROT_READ : PROT_READ | PROT_WRITE;
    const int flags = mode == MapMode::kPrivate ? MAP_PRIVATE : MAP_SHARED;
    void* p = mmap(nullptr, length, protection, flags, fd, static_cast<off_t>(offset_));
    if (p == MAP_FAILED) return Status::FromErrno(errno, "mmap", path_);
    data_ = static_cast<char*>(p);
    return Status::Ok();
  }

  Status Sync(size_t offset, size_t length) override {
    if (offset > size_ || length > size_ - offset)
      return Status::OutOfRange("sync beyond the mapping");
    return env_->Run(SimOp::kSync, path_, [&](const SimFault& fault) -> Status {
      SimEnv::State& state = *env_->state_;
      const uint64_t change = state.NextChange();
      if (fault.error != 0) {
        inode_->FailSync(change, &state.random);
        return Status::FromErrno(fault.error, "msync", path_);
      }
      inode_->SyncRange(change, offset_ + offset, length);
      return Status::Ok();
    });
  }

 private:
  SimEnv* const env_;
  const InodeRef inode_;
  const std::string path_;
  const uint64_t offset_;
};

class SimFile : public File {
 public:
  SimFile(SimEnv* env, InodeRef inode, std::string path, OpenMode mode)
      : env_(env), inode_(std::move(inode)), path_(std::move(path)), mode_(mode) {}

  Result<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override {
    return env_->Run(SimOp::kRead, path_, [&](const SimFault& fault) -> Result<size_t> {
      if (fault.error != 0) return Error(fault.error, "read", offset);
      return inode_->Read(offset, buffer);
    });
  }

  Status WriteAt(uint64_t offset, std::string_view data) override {
    return WriteGatherAt(offset, {&data, 1});
  }

  Status WriteGatherAt(uint64_t offset, std::span<const std::string_view> pieces) override {
    return env_->Run(SimOp::kWrite, path_, [&](const SimFault& fault) -> Status {
      if (mode_ == OpenMode::kRead) return Error(EBADF, "write", offset);
      SimEnv::State& state = *env_->state_;
      const uint64_t change = state.NextChange();
      uint64_t allowed = fault.error == 0 ? UINT64_MAX : fault.bytes_done;
      uint64_t at = offset;
      for (std::string_view piece : pieces) {
        const std::string_view part =
            piece.substr(0, static_cast<size_t>(std::min<uint64_t>(piece.size(), allowed)));
        const uint64_t written = WritePart(change, at, part);
        at += written;
        if (written < part.size()) return Error(ENOSPC, "write", at);
        if (part.size() < piece.size()) return Error(fault.error, "write", at);
        allowed -= allowed == UINT64_MAX ? 0 : written;
      }
      return fault.error == 0 ? Status::Ok() : Error(fault.error, "write", at);
    });
  }

  Status Sync() override {
    return env_->Run(SimOp::kSync, path_, [&](const SimFault& fault) -> Status {
      SimEnv::State& state = *env_->state_;
      const uint64_t change = state.NextChange();
      if (fault.error != 0) {
        if (!state.off) inode_->FailSync(change, &state.random);
        return Status::FromErrno(fault.error, "fdatasync", path_);
      }
      inode_->Sync(change);
      return Status::Ok();
    });
  }

  Status Truncate(uint64_t size) override {
    return env_->Run(SimOp::kTruncate, path_, [&](const SimFault& fault) -> Status {
      if (fault.error != 0) return Error(fault.error, "truncate", size);
      inode_->Resize(env_->state_->NextChange(), size);
      return Status::Ok();
    });
  }

  Status Allocate(uint64_t offset, uint64_t length) override {
    return env_->Run(SimOp::kAllocate, path_, [&](const SimFault& fault) -> Status {
      if (fault.error != 0) return Error(fault.error, "allocate", offset);
      if (inode_->NewBytes(offset, length) > env_->state_->FreeBytesNow()) {
        return Error(ENOSPC, "allocate", offset);
      }
      inode_->Allocate(env_->state_->NextChange(), offset, length);
      return Status::Ok();
    });
  }

  Result<uint64_t> Size() override {
    std::lock_guard lock(env_->state_->mutex);
    return inode_->size();
  }

  Result<std::unique_ptr<Mapping>> Map(uint64_t offset, size_t length, MapMode mode) override {
    return env_->Run(
        SimOp::kMap, path_, [&](const SimFault& fault) -> Result<std::unique_ptr<Mapping>> {
          if (fault.error != 0) return Error(fault.error, "mmap", offset);
          if (offset % sim::kPageBytes != 0) {
            return Status::InvalidArgument("mapping offset is not a multiple of the page size");
          }
          const uint64_t size = inode_->size();
          if (offset > size || length > size - offset) {
            return Status::OutOfRange("mapping beyond the end of the file")
                .At(path_, static_cast<int64_t>(offset));
          }
          if (length == 0) length = static_cast<size_t>(size - offset);
          auto mapping = std::make_unique<SimMapping>(env_, inode_, path_, offset);
          HOTKV_RETURN_IF_ERROR(mapping->MapPages(length, mode));
          return std::unique_ptr<Mapping>(std::move(mapping));
        });
  }

  const std::string& path() const override { return path_; }

 private:
  Status Error(int error, const char* what, uint64_t offset) const {
    return Status::FromErrno(error, what, path_).At(path_, static_cast<int64_t>(offset));
  }

  // Writes what the disk has room for, to the page; returns how many bytes.
  uint64_t WritePart(uint64_t change, uint64_t offset, std::string_view part) {
    const SimEnv::State& state = *env_->state_;
    uint64_t length = part.size();
    const uint64_t room = state.FreeBytesNow();
    while (length > 0 && inode_->NewBytes(offset, length) > room) {
      const uint64_t page_begin = (offset + length - 1) / sim::kPageBytes * sim::kPageBytes;
      length = page_begin > offset ? page_begin - offset : 0;
    }
    inode_->Write(change, offset, part.substr(0, static_cast<size_t>(length)));
    return length;
  }

  SimEnv* const env_;
  const InodeRef inode_;
  const std::string path_;
  const OpenMode mode_;
};

class SimLock : public FileLock {
 public:
  SimLock(SimEnv* env, std::string path) : env_(env), path_(std::move(path)) {}
  ~SimLock() override {
    std::lock_guard lock(env_->state_->mutex);
    env_->state_->locks.erase(path_);
  }
  SimLock(const SimLock&) = delete;
  SimLock& operator=(const SimLock&) = delete;

 private:
  SimEnv* const env_;
  const std::string path_;
};

Result<std::unique_ptr<File>> SimEnv::Open(const std::string& path, OpenMode mode, FileIo) {
  bool exists = false;
  {
    std::lock_guard lock(state_->mutex);
    exists = Find(state_->disk, path) != nullptr;
  }
  const bool may_create = mode == OpenMode::kCreateNew || mode == OpenMode::kCreateOrOpen;
  const SimOp op = !exists && may_create ? SimOp::kCreate : SimOp::kOpen;
  return Run(op, path, [&](const SimFault& fault) -> Result<std::unique_ptr<File>> {
    if (fault.error != 0) return Status::FromErrno(fault.error, "open", path);
    Disk& disk = state_->disk;
    InodeRef inode = Find(disk, path);
    if (inode != nullptr && mode == OpenMode::kCreateNew)
      return Status::FromErrno(EEXIST, "open", path);
    if (inode != nullptr && inode->is_dir()) return Status::FromErrno(EISDIR, "open", path);
    if (inode == nullptr) {
      const Place place = FindPlace(disk, path);
      if (!may_create || place.folder == nullptr) return Status::FromErrno(ENOENT, "open", path);
      inode = disk.NewInode(false);
      disk.Apply({state_->NextChange(), {{place.folder->id(), place.name, inode->id()}}});
    }
    return std::unique_ptr<File>(new SimFile(this, inode, path, mode));
  });
}

Status SimEnv::Unlink(const std::string& path) {
  return Run(SimOp::kUnlink, path, [&](const SimFault& fault) -> Status {
    if (fault.error != 0) return Status::FromErrno(fault.error, "unlink", path);
    Disk& disk = state_->disk;
    const InodeRef inode = Find(disk, path);
    if (inode == nullptr) return Status::FromErrno(ENOENT, "unlink", path);
    if (inode->is_dir()) return Status::FromErrno(EISDIR, "unlink", path);
    const Place place = FindPlace(disk, path);
    disk.Apply({state_->NextChange(), {{place.folder->id(), place.name, 0}}});
    return Status::Ok();
  });
}

Status SimEnv::Rename(const std::string& from, const std::string& to) {
  return Run(SimOp::kRename, from, [&](const SimFault& fault) -> Status {
    if (fault.error != 0) return Status::FromErrno(fault.error, "rename", from);
    Disk& disk = state_->disk;
    const InodeRef inode = Find(disk, from);
    const Place source = FindPlace(disk, from);
    const Place target = FindPlace(disk, to);
    if (inode == nullptr || target.folder == nullptr)
      return Status::FromErrno(ENOENT, "rename", from);
    const InodeRef replaced = Find(disk, to);
    if (replaced == inode) return Status::Ok();
    if (replaced != nullptr && replaced->is_dir() != inode->is_dir()) {
      return Status::FromErrno(inode->is_dir() ? ENOTDIR : EISDIR, "rename", from);
    }
    if (replaced != nullptr && !replaced->entries.empty()) {
      return Status::FromErrno(ENOTEMPTY, "rename", from);
    }
    disk.Apply(
        {state_->NextChange(),
         {{source.folder->id(), source.name, 0}, {target.folder->id(), target.name, inode->id()}}});
    return Status::Ok();
  });
}

Status SimEnv::MakeDir(const std::string& path) {
  return Run(SimOp::kMakeDir, path, [&](const SimFault& fault) -> Status {
    if (fault.error != 0) return Status::FromErrno(fault.error, "mkdir", path);
    Disk& disk = state_->disk;
    if (const InodeRef inode = Find(disk, path); inode != nullptr) {
      return inode->is_dir() ? Status::Ok() : Status::FromErrno(EEXIST, "mkdir", path);
    }
    const Place place = FindPlace(disk, path);
    if (place.folder == nullptr) return Status::FromErrno(ENOENT, "mkdir", path);
    const InodeRef inode = disk.NewInode(true);
    disk.Apply({state_->NextChange(), {{place.folder->id(), place.name, inode->id()}}});
    return Status::Ok();
  });
}

Status SimEnv::RemoveDir(const std::string& path) {
  return Run(SimOp::kRemoveDir, path, [&](const SimFault& fault) -> Status {
    if (fault.error != 0) return Status::FromErrno(fault.error, "rmdir", path);
    Disk& disk = state_->disk;
    const InodeRef inode = Find(disk, path);
    if (inode == nullptr) return Status::FromErrno(ENOENT, "rmdir", path);
    if (!inode->is_dir()) return Status::FromErrno(ENOTDIR, "rmdir", path);
    if (!inode->entries.empty()) return Status::FromErrno(ENOTEMPTY, "rmdir", path);
    const Place place = FindPlace(disk, path);
    if (place.folder == nullptr) return Status::FromErrno(EBUSY, "rmdir", path);
    disk.Apply({state_->NextChange(), {{place.folder->id(), place.name, 0}}});
    return Status::Ok();
  });
}

Status SimEnv::SyncDir(const std::string& path) {
  return Run(SimOp::kSyncDir, path, [&](const SimFault& fault) -> Status {
    if (fault.error != 0) return Status::FromErrno(fault.error, "fsync", path);
    const InodeRef inode = Find(state_->disk, path);
    if (inode == nullptr || !inode->is_dir()) {
      return Status::FromErrno(inode == nullptr ? ENOENT : ENOTDIR, "fsync", path);
    }
    state_->disk.SyncFolder(inode->id());
    state_->disk.DropUnreachable();
    return Status::Ok();
  });
}

Result<std::vector<DirEntry>> SimEnv::List(const std::string& path) {
  return Run(SimOp::kList, path, [&](const SimFault& fault) -> Result<std::vector<DirEntry>> {
    if (fault.error != 0) return Status::FromErrno(fault.error, "opendir", path);
    const Disk& disk = state_->disk;
    const InodeRef inode = Find(disk, path);
    if (inode == nullptr || !inode->is_dir()) {
      return Status::FromErrno(inode == nullptr ? ENOENT : ENOTDIR, "opendir", path);
    }
    std::vector<DirEntry> entries;
    for (const auto& [name, id] : inode->entries) {
      const Inode& child = *disk.inodes.at(id);
      entries.push_back({name, child.is_dir(), child.is_dir() ? 0 : child.size()});
    }
    return entries;
  });
}

Result<bool> SimEnv::Exists(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  return Find(state_->disk, path) != nullptr;
}

Result<std::unique_ptr<FileLock>> SimEnv::Lock(const std::string& path) {
  HOTKV_ASSIGN_OR_RETURN(const auto file, Open(path, OpenMode::kCreateOrOpen, FileIo::kPosix));
  std::lock_guard lock(state_->mutex);
  if (!state_->locks.insert(path).second)
    return Status::Locked("held by another process").At(path, -1);
  return std::unique_ptr<FileLock>(new SimLock(this, path));
}

Result<uint64_t> SimEnv::FreeBytes(const std::string&) {
  std::lock_guard lock(state_->mutex);
  return state_->FreeBytesNow();
}

void SimEnv::Inject(SimFault fault) {
  std::lock_guard lock(state_->mutex);
  state_->faults.push_back({std::move(fault), 0});
}

void SimEnv::ClearFaults() {
  std::lock_guard lock(state_->mutex);
  state_->faults.clear();
}

void SimEnv::SetCapacity(uint64_t bytes) {
  std::lock_guard lock(state_->mutex);
  state_->disk.DropUnreachable();
  state_->disk.capacity = bytes;
}

uint64_t SimEnv::UsedBytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->disk.UsedBytes();
}

void SimEnv::PowerOff() {
  std::lock_guard lock(state_->mutex);
  state_->off = true;
}

void SimEnv::Corrupt(const std::string& path, uint64_t offset, std::string_view bytes) {
  std::lock_guard lock(state_->mutex);
  const InodeRef inode = Find(state_->disk, path);
  HOTKV_CHECK(inode != nullptr && !inode->is_dir());
  inode->Corrupt(offset, bytes);
}

std::unique_ptr<SimEnv> SimEnv::PowerCut(uint64_t seed) {
  std::lock_guard lock(state_->mutex);
  for (const auto& [id, inode] : state_->disk.inodes) {
    if (inode->mapped()) inode->Capture(state_->NextChange(), 256, nullptr);
  }
  return std::unique_ptr<SimEnv>(new SimEnv(seed, state_->disk.PowerCut(seed)));
}

std::unique_ptr<SimEnv> SimEnv::KillProcess() {
  std::lock_guard lock(state_->mutex);
  for (const auto& [id, inode] : state_->disk.inodes) {
    if (inode->mapped()) inode->Capture(state_->NextChange(), 256, nullptr);
  }
  return std::unique_ptr<SimEnv>(new SimEnv(state_->random(), state_->disk.KillProcess()));
}

void SimEnv::SetHook(std::function<void(const SimOperation&)> hook) {
  std::lock_guard lock(state_->mutex);
  state_->hook = std::move(hook);
}

uint64_t SimEnv::operations() const {
  std::lock_guard lock(state_->mutex);
  return state_->operations;
}

}  // namespace hotkv
