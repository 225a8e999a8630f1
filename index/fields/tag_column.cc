#include "index/fields/tag_column.h"

#include "engine/base/check.h"
#include "index/filter/filter_expression.h"

namespace hotkv {

namespace {

constexpr size_t kValueTextMax = 1024;
constexpr uint32_t kWornValuesMin = 4096;
// A list is thinned when it must grow and fewer than this share of it is in use.
constexpr uint32_t kThinDivisor = 2;

}  // namespace

TagColumn::TagColumn()
    : ids_(SlabGeometry::For(sizeof(uint32_t), 4096, size_t{64} << 20), nullptr) {}

void TagColumn::NoteArray(uint32_t id, std::string_view array) {
  arrays_.Append(id);
  ForEachInJsonArray(array, [&](const JsonValue& item) {
    PostingList& arrays = items_.At(items_.Intern(item)).postings;
    const auto listed = arrays.Read();
    if (listed.empty() || listed.back() != id) arrays.Append(id);
    return true;
  });
}

uint32_t TagColumn::IdFor(const JsonValue& value) {
  if (FilterExpression::Unusable(value.kind)) return kNoValue;
  if (value.text.size() > kValueTextMax) return kInJsonValue;
  const uint32_t end = values_.end();
  const uint32_t id = values_.Intern(value);
  if (id == end && value.kind == JsonKind::kArray) NoteArray(id, value.text);
  return id;
}

void TagColumn::Set(uint32_t slot, const JsonValue& value) {
  const uint32_t id = IdFor(value);
  const uint32_t old = IdOf(slot);
  if (id == old) return;
  HOTKV_CHECK(ids_.Reserve(slot + 1).ok());
  if (id >= kFirstValueId) {
    DictionaryValue& now = values_.At(id);
    PostingList& list = now.postings;
    const uint32_t count = now.count.fetch_add(1, std::memory_order_relaxed);
    if (count == 0) used_values_.fetch_add(1, std::memory_order_relaxed);
    if (list.full() && list.size() > kThinDivisor * (count + 8)) {
      list.Thin([&](uint32_t other) { return IdOf(other) == id; });
    }
    list.Append(slot);
  } else if (id == kInJsonValue) {
    in_json_.Append(slot);
  }
  ids_.At<uint32_t>(slot).store(id, std::memory_order_release);
  if (old >= kFirstValueId) {
    if (values_.At(old).count.fetch_sub(1, std::memory_order_relaxed) == 1) {
      used_values_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  if (old == kNoValue) count_.fetch_add(1, std::memory_order_relaxed);
  if (id == kNoValue) count_.fetch_sub(1, std::memory_order_relaxed);
}

bool TagColumn::Worn() const {
  const uint32_t made = values_.end() - kFirstValueId;
  return made > kWornValuesMin && made / 4 > used_values_.load(std::memory_order_relaxed);
}

size_t TagColumn::bytes() const {
  // Lists are about as long as the column, with room to grow.
  return ids_.bytes() + ids_.bytes() * 3 / 2 + values_.bytes() + items_.bytes();
}

}  // namespace hotkv
