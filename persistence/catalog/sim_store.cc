#include "persistence/catalog/sim_store.h"

#include <cerrno>

#include "engine/base/random.h"

namespace hotkv {

namespace {

void Apply(const CatalogBatch& batch, CatalogRecords* records) {
  for (const auto& [key, value] : batch) {
    if (value.has_value()) {
      (*records)[key] = *value;
    } else {
      records->erase(key);
    }
  }
}

}  // namespace

Result<CatalogRecords> SimStore::Load() {
  std::lock_guard lock(mutex_);
  return records_;
}

void SimStore::CallHook() {
  std::function<void()> hook;
  {
    std::lock_guard lock(mutex_);
    hook = hook_;
  }
  if (hook) hook();
}

Status SimStore::Commit(const CatalogBatch& batch) {
  {
    std::lock_guard lock(mutex_);
    if (off_) return Status::FromErrno(EIO, "commit", path_);
    if (failures_left_ > 0) {
      --failures_left_;
      return Status::FromErrno(ENOSPC, "commit", path_);
    }
    under_way_ = &batch;
  }
  CallHook();
  {
    std::lock_guard lock(mutex_);
    under_way_ = nullptr;
    if (off_) return Status::FromErrno(EIO, "commit", path_);
    Apply(batch, &records_);
    ++commits_;
  }
  CallHook();
  return Status::Ok();
}

std::unique_ptr<SimStore> SimStore::Image(uint64_t seed) const {
  std::lock_guard lock(mutex_);
  auto image = std::make_unique<SimStore>();
  image->records_ = records_;
  if (under_way_ != nullptr && (SplitMix64(&seed) & 1) != 0) Apply(*under_way_, &image->records_);
  return image;
}

void SimStore::SetHook(std::function<void()> hook) {
  std::lock_guard lock(mutex_);
  hook_ = std::move(hook);
}

void SimStore::FailNext(uint64_t count) {
  std::lock_guard lock(mutex_);
  failures_left_ = count;
}

void SimStore::PowerOff() {
  std::lock_guard lock(mutex_);
  off_ = true;
}

uint64_t SimStore::commits() const {
  std::lock_guard lock(mutex_);
  return commits_;
}

}  // namespace hotkv
