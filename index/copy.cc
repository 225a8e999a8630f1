// A copy of an index: a generation and the rows of its slots in another folder.
#include <chrono>
#include <cstring>
#include <numeric>

#include "engine/base/crash_point.h"
#include "index/index_impl.h"
#include "index/reader_pin.h"

namespace hotkv {

namespace {

// The rows of the slots that a copy keeps, into a folder's slabs.
Status CopySlabs(const SlabFiles::Spec& spec, const SlabArray& from,
                 const std::vector<uint8_t>& metas) {
  SlabFiles files(spec);
  SlabArray to(spec.geometry,
               [&files](uint32_t slab, size_t bytes) { return files.MakeSlab(slab, bytes); });
  HOTKV_RETURN_IF_ERROR(to.Reserve(static_cast<uint32_t>(metas.size())));
  for (uint32_t slot = 0; slot < metas.size(); ++slot) {
    if (metas[slot] == 0) continue;
    files.MarkDirty(slot);
    std::memcpy(to.Row(slot), from.Row(slot), spec.geometry.stride);
  }
  return files.Sync();
}

}  // namespace

Status VectorIndex::Impl::CopyRows(const CopyPlace& place,
                                   const std::vector<uint8_t>& metas) const {
  const auto spec = [&](const char* prefix, const char* suffix, const SlabArray& rows) {
    return SlabFiles::Spec{env_, place.dir, prefix, suffix, place.uid, options_.dim,
                           rows.geometry()};
  };
  HOTKV_RETURN_IF_ERROR(CopySlabs(spec("vectors", ".f32", *vectors_), *vectors_, metas));
  if (!codes_) return Status::Ok();
  return CopySlabs(spec("codes", "", *codes_), *codes_, metas);
}

Status VectorIndex::Impl::CopyTo(const std::string& dir, uint64_t generation) {
  if (env_ == nullptr) return Status::Unsupported("an index in memory has no generations");
  std::lock_guard<std::mutex> lock(checkpoint_mutex_);
  CopyPlace place = {dir, 0, generation};
  place.uid = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  HOTKV_ASSIGN_OR_RETURN(const std::vector<uint8_t> metas, WriteCopy(place));
  HOTKV_CRASH_POINT("index.copy.generation_written");
  // The rows of these slots stay as they are: no slot is reused meanwhile.
  HOTKV_RETURN_IF_ERROR(CopyRows(place, metas));
  return env_->SyncDir(dir);
}

Status VectorIndex::CopyTo(const std::string& dir, uint64_t generation) {
  return impl_->CopyTo(dir, generation);
}

Result<std::unique_ptr<VectorIndex>> VectorIndex::CopyInMemory() const {
  HOTKV_ASSIGN_OR_RETURN(auto copy, Create(options(), nullptr, ""));
  if (impl_->zero_allowed_) copy->AllowZeroVectors();
  HOTKV_RETURN_IF_ERROR(copy->SetFields(fields()));
  std::vector<uint32_t> slots(impl_->graph_->slot_limit());
  std::iota(slots.begin(), slots.end(), 0u);
  HOTKV_RETURN_IF_ERROR(copy->AdoptElements(*this, slots, 0));
  copy->LinkPending(UINT64_MAX);
  return copy;
}

}  // namespace hotkv
