#include "index/search_gate.h"

namespace hotkv {

namespace {

constexpr uint32_t kAskedBits = 12;

}  // namespace

SearchGate::SearchGate(const Parts& parts, const ElementFilter& filter,
                       const FilterExpression* where_or_null)
    : parts_(parts),
      filter_(filter),
      where_(where_or_null),
      open_(!filter && where_or_null == nullptr && parts.due_ms == 0) {
  if (where_ != nullptr) columns_.emplace(*where_, *parts.fields);
}

bool SearchGate::Accepts(uint32_t slot) {
  if ((parts_.graph->meta(slot) & kMetaLive) == 0) return false;
  if (open_) return true;
  ++tests_;
  auto verdict = SlotFilter::Verdict::kYes;
  if (columns_) verdict = columns_->Test(slot);
  if (verdict == SlotFilter::Verdict::kNo) return false;
  const bool in_json = verdict == SlotFilter::Verdict::kInJson;
  if (!in_json && !filter_ && parts_.due_ms == 0) return true;
  const RecordView record = parts_.records->Get(slot);
  if (!record || record.ExpiredAt(parts_.due_ms)) return false;
  if (in_json && !AsksJson(slot, record)) return false;
  return !filter_ || filter_.accepts(filter_.context, {slot, record.name(), record.attr()});
}

void SearchGate::AcceptMany(std::span<const uint32_t> slots, std::vector<uint32_t>* accepted) {
  if (!columns_ || filter_ || parts_.due_ms != 0) {
    for (const uint32_t slot : slots) {
      if (Accepts(slot)) accepted->push_back(slot);
    }
    return;
  }
  const size_t before = accepted->size();
  accepted->resize(before + slots.size());
  uint32_t* kept = accepted->data() + before;
  unknown_.clear();
  const size_t matching = columns_->Sift(slots, kept, &unknown_);
  size_t live = 0;
  for (size_t i = 0; i < matching; ++i) {
    const uint32_t slot = kept[i];
    kept[live] = slot;
    live += (parts_.graph->meta(slot) & kMetaLive) != 0 ? 1 : 0;
  }
  accepted->resize(before + live);
  tests_ += slots.size() - unknown_.size();
  for (const uint32_t slot : unknown_) {
    if (Accepts(slot)) accepted->push_back(slot);
  }
}

void SearchGate::BeginWalk(const Patience& early, const Patience& late) {
  early_ = early;
  late_ = late;
  walk_tests_ = 0;
  walk_hits_ = 0;
  stopped_ = false;
}

bool SearchGate::AsksJson(uint32_t slot, const RecordView& record) {
  if (asked_.empty()) asked_.resize(size_t{1} << kAskedBits);
  uint32_t& place = asked_[slot * 2654435761u >> (32 - kAskedBits)];
  if (place >> 1 == slot + 1) return (place & 1) != 0;
  ++json_reads_;
  const bool yes = where_->Matches(record.attr());
  place = (slot + 1) << 1 | (yes ? 1 : 0);
  return yes;
}

bool SearchGate::AcceptsRecord(uint32_t slot, const RecordView& record) const {
  if (record.ExpiredAt(parts_.due_ms)) return false;
  if (where_ != nullptr && !where_->Matches(record.attr())) return false;
  return !filter_ || filter_.accepts(filter_.context, {slot, record.name(), record.attr()});
}

}  // namespace hotkv
