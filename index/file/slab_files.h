// SlabFiles: the files behind a SlabArray whose rows must outlive the process (vectors.NN.f32,
// codes.NN). Each slab is a file of its own, allocated in full before it is mapped, so that writing
// to it cannot meet a full disk. Format: docs/formats/index.md.
//
// Thread rules: MakeSlab and OpenSlabs under the array's mutex or before it is shared; MarkDirty by
// any thread; Sync by one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/base/result.h"
#include "index/slab.h"

namespace hotkv {

inline constexpr size_t kFilePage = 4096;

class SlabFiles {
 public:
  struct Spec {
    Env* env = nullptr;
    std::string dir;
    std::string prefix;  // "vectors"
    std::string suffix;  // ".f32"
    uint64_t index_uid = 0;
    uint32_t dim = 0;
    SlabGeometry geometry;
  };
  explicit SlabFiles(Spec spec) : spec_(std::move(spec)) {}

  // A new slab's file, or an existing one's memory: the one left by a crash or written before the
  // opened generation.
  Result<char*> MakeSlab(uint32_t slab, size_t bytes);
  // Slabs below this number must be there, else a new one is made where none is found.
  void ExpectSlabs(uint32_t slabs) { expected_ = slabs; }
  void MarkDirty(uint32_t slot);
  // Makes everything written so far durable. After a failure it fails for good: the kernel may have
  // dropped what it could not write.
  Status Sync();
  std::string NameOf(uint32_t slab) const;
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Slab {
    std::unique_ptr<File> file;  // until it has been synced
    std::unique_ptr<Mapping> mapping;
    std::atomic<bool> dirty{false};  // set before a row is written, cleared before it is synced
    bool name_synced = false;        // by Sync's thread only
  };
  Status CheckHeader(File* file, uint32_t slab) const;
  Slab* At(uint32_t slab);

  const Spec spec_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Slab>> slabs_;  // guarded by mutex_; the objects stay where they are
  uint32_t expected_ = 0;                     // set before the array is shared
  std::atomic<size_t> bytes_{0};
  Status failure_;  // by Sync's thread only
};

}  // namespace hotkv
