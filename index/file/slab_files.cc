#include "index/file/slab_files.h"

#include <cstring>

#include "engine/base/check.h"
#include "engine/base/coding.h"
#include "engine/base/crash_point.h"
#include "engine/base/crc32c.h"

namespace hotkv {

namespace {

constexpr char kMagic[8] = {'H', 'K', 'S', 'L', 'A', 'B', '0', '1'};

struct SlabHeader {
  char magic[8];
  uint64_t index_uid;
  uint32_t slab;
  uint32_t dim;
  uint32_t stride;
  uint32_t slots;
  char kind[16];  // prefix and suffix
  uint32_t reserved[3];
  uint32_t crc;  // of the bytes before
};
static_assert(sizeof(SlabHeader) == 64);

SlabHeader HeaderFor(const SlabFiles::Spec& spec, uint32_t slab) {
  SlabHeader header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.index_uid = spec.index_uid;
  header.slab = slab;
  header.dim = spec.dim;
  header.stride = spec.geometry.stride;
  header.slots = spec.geometry.SlotsIn(slab);
  const std::string kind = spec.prefix + spec.suffix;
  std::memcpy(header.kind, kind.data(), std::min(kind.size(), sizeof(header.kind)));
  header.crc = Crc32c({reinterpret_cast<const char*>(&header), offsetof(SlabHeader, crc)});
  return header;
}

}  // namespace

std::string SlabFiles::NameOf(uint32_t slab) const {
  const std::string number = std::to_string(slab);
  return spec_.prefix + "." + (number.size() < 2 ? "0" + number : number) + spec_.suffix;
}

Status SlabFiles::CheckHeader(File* file, uint32_t slab) const {
  SlabHeader found = {};
  HOTKV_ASSIGN_OR_RETURN(const size_t got,
                         file->ReadAt(0, {reinterpret_cast<char*>(&found), sizeof(found)}));
  const SlabHeader want = HeaderFor(spec_, slab);
  if (got != sizeof(found) || std::memcmp(&found, &want, sizeof(want)) != 0) {
    return Status::Corruption("not a slab of this index").At(file->path(), 0);
  }
  return Status::Ok();
}

Result<char*> SlabFiles::MakeSlab(uint32_t slab, size_t bytes) {
  auto made = std::make_unique<Slab>();
  const std::string path = JoinPath(spec_.dir, NameOf(slab));
  const uint64_t file_bytes = kFilePage + (bytes + kFilePage - 1) / kFilePage * kFilePage;
  const bool expected = slab < expected_;
  HOTKV_ASSIGN_OR_RETURN(
      made->file, spec_.env->Open(path, expected ? OpenMode::kReadWrite : OpenMode::kCreateOrOpen));
  HOTKV_ASSIGN_OR_RETURN(const uint64_t size, made->file->Size());
  if (expected) {
    if (size < file_bytes) return Status::Corruption("the slab is cut off").At(path, 0);
    HOTKV_RETURN_IF_ERROR(CheckHeader(made->file.get(), slab));
  }
  // A crash may have left the file at any length, or without its header; nothing durable is in it
  // then.
  if (size < file_bytes) HOTKV_RETURN_IF_ERROR(made->file->Allocate(0, file_bytes));
  if (!CheckHeader(made->file.get(), slab).ok()) {
    if (size >= file_bytes) {
      SlabHeader zero = {};
      SlabHeader found;
      HOTKV_ASSIGN_OR_RETURN(
          const size_t got,
          made->file->ReadAt(0, {reinterpret_cast<char*>(&found), sizeof(found)}));
      if (got == sizeof(found) && std::memcmp(&found, &zero, sizeof(zero)) != 0) {
        return Status::Corruption("not a slab of this index").At(path, 0);
      }
    }
    const SlabHeader header = HeaderFor(spec_, slab);
    HOTKV_RETURN_IF_ERROR(
        made->file->WriteAt(0, {reinterpret_cast<const char*>(&header), sizeof(header)}));
  }
  HOTKV_CRASH_POINT("index.slab.made");
  HOTKV_ASSIGN_OR_RETURN(made->mapping, made->file->Map(0, file_bytes, MapMode::kShared));
  bytes_.fetch_add(file_bytes, std::memory_order_relaxed);
  if (expected) {
    // Size and name were synced with the generation that needs it.
    made->name_synced = true;
    made->file.reset();
  }
  char* rows = made->mapping->data() + kFilePage;
  std::lock_guard<std::mutex> lock(mutex_);
  if (slabs_.size() <= slab) slabs_.resize(slab + 1);
  slabs_[slab] = std::move(made);
  return rows;
}

SlabFiles::Slab* SlabFiles::At(uint32_t slab) {
  std::lock_guard<std::mutex> lock(mutex_);
  return slab < slabs_.size() ? slabs_[slab].get() : nullptr;
}

void SlabFiles::MarkDirty(uint32_t slot) {
  Slab* slab = At(spec_.geometry.SlabOf(slot));
  HOTKV_CHECK(slab != nullptr);
  slab->dirty.store(true, std::memory_order_release);
}

Status SlabFiles::Sync() {
  HOTKV_RETURN_IF_ERROR(failure_);
  bool new_names = false;
  for (uint32_t i = 0;; ++i) {
    Slab* slab = At(i);
    if (slab == nullptr) break;
    const bool dirty = slab->dirty.exchange(false, std::memory_order_acq_rel);
    if (!dirty && slab->name_synced) continue;
    // Size and header by the file, once; rows by the mapping.
    if (slab->file) failure_ = slab->file->Sync();
    if (failure_.ok()) failure_ = slab->mapping->Sync(0, slab->mapping->size());
    HOTKV_RETURN_IF_ERROR(failure_);
    new_names = new_names || !slab->name_synced;
    slab->name_synced = true;
    slab->file.reset();
  }
  if (new_names) failure_ = spec_.env->SyncDir(spec_.dir);
  return failure_;
}

}  // namespace hotkv
