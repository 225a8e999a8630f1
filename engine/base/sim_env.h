// SimEnv: an Env in memory for tests. It fails, shortens and delays chosen operations, fills the
// disk, and makes images of itself as a power cut (PowerCut) or the death of the process
// (KillProcess) would leave it. sim_disk.h says what counts as legal after a cut. All choices
// follow from the seeds.
//
// A shared mapping's dirty pages may reach the disk at any moment: at each operation of the Env
// some of them are taken over, so that a later cut may show them as they were then. A failed sync
// drops what was dirty: a later one succeeds without it.
//
// An image is an Env of its own; the one that it was taken from runs on, so one run gives many
// images. Files and mappings must not outlive their Env.
//
// Thread rules: any thread. The operation hook runs on the operating thread, without the lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file.h"

namespace hotkv {

namespace sim {
class Disk;
class Inode;
}  // namespace sim

enum class SimOp : uint8_t {
  kOpen,    // of an existing file
  kCreate,  // Open that makes the file
  kRead,
  kWrite,
  kSync,  // of a file, or of a mapping's range
  kTruncate,
  kAllocate,
  kMap,
  kUnlink,
  kRename,
  kMakeDir,
  kRemoveDir,
  kSyncDir,
  kList,
};

// What befalls matching operations. An operation that fails has no effect, but for: a write that
// leaves its first `bytes_done` bytes, and a sync (see above).
struct SimFault {
  SimOp op = SimOp::kWrite;
  std::string path_part{};  // matches where this is part of the path; empty: everywhere
  uint64_t nth = 1;         // the first operation concerned, counted from Inject
  uint64_t count = 1;       // how many from there on; UINT64_MAX: all
  int error = 0;            // an errno; 0: the operation takes place
  uint64_t bytes_done = 0;
  uint64_t delay_us = 0;  // before the operation
};

struct SimOperation {
  uint64_t number = 0;  // 1, 2, ...; those that change nothing are counted too
  SimOp op = SimOp::kRead;
  std::string path;
  bool ok = true;
};

class SimEnv : public Env {
 public:
  explicit SimEnv(uint64_t seed = 1);
  ~SimEnv() override;

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode, FileIo io) override;
  Status Unlink(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status MakeDir(const std::string& path) override;
  Status RemoveDir(const std::string& path) override;
  Status SyncDir(const std::string& path) override;
  Result<std::vector<DirEntry>> List(const std::string& path) override;
  Result<bool> Exists(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override;
  Result<uint64_t> FreeBytes(const std::string& path) override;

  // --- faults ---
  void Inject(SimFault fault);
  void ClearFaults();
  // Bytes that all files together may take, in whole pages; UINT64_MAX: no limit.
  void SetCapacity(uint64_t bytes);
  uint64_t UsedBytes() const;
  // From now on every operation fails: the threads of a process whose power is cut come to an end.
  void PowerOff();
  // Changes bytes on the disk and in the cache, as a bad drive would.
  void Corrupt(const std::string& path, uint64_t offset, std::string_view bytes);

  // --- images ---
  std::unique_ptr<SimEnv> PowerCut(uint64_t seed);
  // Everything is as it was seen, and what was not synced still is not.
  std::unique_ptr<SimEnv> KillProcess();

  // Called after each operation, e.g. to take images there.
  void SetHook(std::function<void(const SimOperation&)> hook);
  uint64_t operations() const;

 private:
  friend class SimFile;
  friend class SimMapping;
  friend class SimLock;
  struct State;

  SimEnv(uint64_t seed, sim::Disk disk);
  // Runs `body` under the lock between the faults before and the hook after.
  template <typename F>
  auto Run(SimOp op, const std::string& path, F body);
  // What the fault list has for this operation; counts it.
  SimFault NextFault(SimOp op, const std::string& path);
  void CaptureSome();

  std::unique_ptr<State> state_;
};

}  // namespace hotkv
