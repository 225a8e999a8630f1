// Replaying logged changes onto an opened generation, and linking what they added.
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/sync_point.h"
#include "index/index_impl.h"
#include "index/reader_pin.h"

namespace hotkv {

void VectorIndex::Impl::AddToPending(uint32_t slot) {
  std::lock_guard<std::mutex> lock(pending_mutex_);
  if (!pending_.emplace(slot, PendingState::kWaiting).second) return;
  pending_queue_.push_back(slot);
  pending_count_.store(pending_.size(), std::memory_order_release);
}

// A live element that is not linked, or not yet for sure.
void VectorIndex::Impl::KillPending(uint32_t slot) {
  std::lock_guard<std::mutex> lock(pending_mutex_);
  const auto at = pending_.find(slot);
  if (at == pending_.end()) return;
  if (at->second == PendingState::kLinking) {
    at->second = PendingState::kDoomed;
    return;
  }
  pending_.erase(at);
  pending_count_.store(pending_.size(), std::memory_order_release);
  // The queue's entry is passed by when its turn comes.
  if ((graph_->meta(slot) & kMetaLinked) == 0) FreeAfterReaders(slot);
}

uint64_t VectorIndex::Impl::LinkPending(uint64_t elements_max) {
  for (uint64_t done = 0; done < elements_max; ++done) {
    uint32_t slot;
    {
      std::lock_guard<std::mutex> lock(pending_mutex_);
      if (pending_queue_.empty()) break;
      slot = pending_queue_.front();
      pending_queue_.pop_front();
      const auto at = pending_.find(slot);
      if (at == pending_.end() || at->second != PendingState::kWaiting) continue;
      at->second = PendingState::kLinking;
    }
    HOTKV_SYNC_POINT("index.pending.linking");
    const QueryBuffer buffer(codec_.query_bytes());
    graph_->Link(slot, codec_.MakeQuery(VectorAt(slot), buffer.data()));
    std::lock_guard<std::mutex> lock(pending_mutex_);
    const auto at = pending_.find(slot);
    // Deleted while it was being linked, when its death could not yet be noted on the node.
    if (at->second == PendingState::kDoomed && (graph_->meta(slot) & kMetaDead) == 0) {
      graph_->MarkDead(slot);
    }
    pending_.erase(at);
    pending_count_.store(pending_.size(), std::memory_order_release);
  }
  return pending_count_.load(std::memory_order_relaxed);
}

Status VectorIndex::Impl::ClaimSlot(uint32_t slot) {
  std::lock_guard<std::mutex> lock(slots_mutex_);
  if (slot >= kIndexSlotsMax) return Status::InvalidArgument("slot number out of range");
  if (slot >= next_slot_) {
    HOTKV_RETURN_IF_ERROR(ReserveSlots(slot + 1));
    for (uint32_t skipped = next_slot_; skipped < slot; ++skipped) SetFreeLocked(skipped, true);
    next_slot_ = slot + 1;
  }
  SetFreeLocked(slot, false);
  // Set, deleted and set again within the log: the first one's slot may be on its way to be freed.
  std::erase_if(waiting_, [slot](const Waiting& w) { return w.slot == slot; });
  for (Held& held : held_) held_count_ -= std::erase(held.slots, slot);
  return Status::Ok();
}

Status VectorIndex::Impl::ApplySet(uint32_t slot, const RecordContent& content,
                                   std::span<const float> vector) {
  HOTKV_RETURN_IF_ERROR(CheckVector(vector));
  HOTKV_RETURN_IF_ERROR(ClaimSlot(slot));
  const Prepared prepared = PrepareVector(vector);
  RecordContent record = content;
  record.norm = prepared.norm;
  return ApplyRow(slot, record, prepared);
}

Status VectorIndex::Impl::ApplyRow(uint32_t slot, const RecordContent& record,
                                   const Prepared& prepared) {
  const std::string_view name = record.name;
  ReaderPin pin;
  std::lock_guard<std::shared_mutex> lock(names_mutex_);
  const uint8_t meta = slot < graph_->slot_limit() ? graph_->meta(slot) : uint8_t{0};
  if ((meta & kMetaLive) != 0) {
    if (!NameIs(slot, name)) {
      return Status::Corruption("slot " + std::to_string(slot) + " holds another element");
    }
    ChangeRecord(slot, record);
    return Status::Ok();
  }
  StoreRow(slot, prepared);
  records_.Set(slot, record);
  fields_.Set(slot, record.attr);
  bool link = true;
  if ((meta & kMetaLinked) != 0) {
    link = !graph_->Revive(slot);
  } else {
    HOTKV_RETURN_IF_ERROR(graph_->InitNode(slot, LevelFor(name)));
  }
  graph_->SetLive(slot);
  live_.fetch_add(1, std::memory_order_relaxed);
  Enlist(slot);
  if (link) AddToPending(slot);
  const uint32_t hash = NameMap::HashOf(name);
  const auto matches = [&](uint32_t s) { return s != slot && NameIs(s, name); };
  const std::optional<uint32_t> old = names_.Find(hash, matches);
  if (old) {
    names_.Replace(hash, matches, slot);
    Kill(*old);
  } else {
    names_.Insert(hash, slot);
  }
  return Status::Ok();
}

Status VectorIndex::Impl::ApplyDelete(uint32_t slot, std::string_view name) {
  ReaderPin pin;
  std::lock_guard<std::shared_mutex> lock(names_mutex_);
  if (slot >= graph_->slot_limit() || (graph_->meta(slot) & kMetaLive) == 0) return Status::Ok();
  if (!NameIs(slot, name)) {
    return Status::Corruption("slot " + std::to_string(slot) + " holds another element");
  }
  names_.Erase(NameMap::HashOf(name), [&](uint32_t s) { return s == slot; });
  Kill(slot);
  return Status::Ok();
}

template <typename Change>
Status VectorIndex::Impl::ApplyToRecord(uint32_t slot, std::string_view name, Change&& change) {
  ReaderPin pin;
  std::lock_guard<std::shared_mutex> lock(names_mutex_);
  if (slot >= graph_->slot_limit() || (graph_->meta(slot) & kMetaLive) == 0) return Status::Ok();
  if (!NameIs(slot, name)) {
    return Status::Corruption("slot " + std::to_string(slot) + " holds another element");
  }
  const RecordView old = records_.Get(slot);
  RecordContent record = {old.name(), old.attr(), old.header->norm, old.expire_at_ms()};
  change(&record);
  ChangeRecord(slot, record);
  return Status::Ok();
}

Status VectorIndex::ApplySet(uint32_t slot, std::string_view name, std::span<const float> vector,
                             std::string_view attr, int64_t expire_at_ms) {
  return impl_->ApplySet(slot, {name, attr, 1, expire_at_ms}, vector);
}
Status VectorIndex::ApplyDelete(uint32_t slot, std::string_view name) {
  return impl_->ApplyDelete(slot, name);
}
Status VectorIndex::ApplyAttr(uint32_t slot, std::string_view name, std::string_view attr) {
  return impl_->ApplyToRecord(slot, name, [attr](RecordContent* record) { record->attr = attr; });
}
Status VectorIndex::ApplyExpiry(uint32_t slot, std::string_view name, int64_t expire_at_ms) {
  return impl_->ApplyToRecord(
      slot, name, [expire_at_ms](RecordContent* record) { record->expire_at_ms = expire_at_ms; });
}
uint64_t VectorIndex::LinkPending(uint64_t elements_max) {
  return impl_->LinkPending(elements_max);
}

}  // namespace hotkv
