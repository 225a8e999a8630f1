#include "persistence/catalog/catalog.h"

#include "engine/base/crash_point.h"

namespace hotkv {

namespace {

CatalogBatch Difference(const CatalogRecords& before, const CatalogRecords& after) {
  CatalogBatch batch;
  for (const auto& [key, value] : after) {
    const auto found = before.find(key);
    if (found == before.end() || found->second != value) batch[key] = value;
  }
  for (const auto& [key, value] : before) {
    if (!after.contains(key)) batch[key] = std::nullopt;
  }
  return batch;
}

}  // namespace

Result<std::unique_ptr<Catalog>> Catalog::Open(std::unique_ptr<CatalogStore> store) {
  std::unique_ptr<Catalog> catalog(new Catalog(std::move(store)));
  HOTKV_ASSIGN_OR_RETURN(CatalogRecords records, catalog->store_->Load());
  Result<CatalogState> state = DecodeCatalog(records);
  if (!state.ok()) return Status(state.status()).At(catalog->store_->path(), -1);
  catalog->records_ = std::move(records);
  catalog->state_ = std::move(state).value();
  return catalog;
}

CatalogState Catalog::Read() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void Catalog::With(const std::function<void(const CatalogState&)>& read) const {
  std::lock_guard lock(mutex_);
  read(state_);
}

Status Catalog::Update(const std::function<void(CatalogState*)>& edit) {
  std::lock_guard lock(mutex_);
  CatalogState next = state_;
  edit(&next);
  CatalogRecords records = EncodeCatalog(next);
  CatalogBatch batch = Difference(records_, records);
  if (batch.empty()) return Status::Ok();
  for (const std::string& key : uncertain_) {
    const auto record = records.find(key);
    if (record != records.end()) {
      batch[key] = record->second;
    } else {
      batch[key] = std::nullopt;
    }
  }
  HOTKV_CRASH_POINT("catalog.before_commit");
  Status status = store_->Commit(batch);
  if (!status.ok()) {
    for (const auto& [key, value] : batch) uncertain_.insert(key);
    return status;
  }
  HOTKV_CRASH_POINT("catalog.after_commit");
  uncertain_.clear();
  state_ = std::move(next);
  records_ = std::move(records);
  return Status::Ok();
}

}  // namespace hotkv
