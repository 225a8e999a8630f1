#include "index/fields/value_dictionary.h"

#include <cstring>

#include "engine/base/check.h"
#include "engine/base/hash.h"

namespace hotkv {

namespace {

constexpr uint32_t kTableFirst = 16;

// Equal numbers have one form.
double Canonical(double number) { return number == 0 ? 0 : number; }

JsonKind KindOf(const JsonValue& value) {
  return value.kind == JsonKind::kBool ? JsonKind::kNumber : value.kind;
}

}  // namespace

ValueDictionary::ValueDictionary()
    : values_(SlabGeometry::For(sizeof(DictionaryValue*), 4096, size_t{64} << 20), nullptr) {}

ValueDictionary::~ValueDictionary() {
  for (uint32_t id = kFirstValueId; id < end(); ++id) delete &At(id);
  delete table_.load(std::memory_order_relaxed);
}

uint64_t ValueDictionary::HashOf(const JsonValue& value) {
  const JsonKind kind = KindOf(value);
  if (kind == JsonKind::kNumber) {
    const double number = Canonical(value.number);
    return HashBytes({reinterpret_cast<const char*>(&number), sizeof(number)}, 1);
  }
  return HashBytes(kind == JsonKind::kNull ? std::string_view() : value.text,
                   static_cast<uint64_t>(kind));
}

bool ValueDictionary::Same(const DictionaryValue& a, const JsonValue& b) {
  const JsonKind kind = KindOf(b);
  if (a.kind != kind) return false;
  if (kind == JsonKind::kNumber) return a.number == b.number;
  return kind == JsonKind::kNull || a.text == b.text;
}

uint32_t ValueDictionary::Find(const JsonValue& value) const {
  const Table* table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return kNoValue;
  for (auto at = static_cast<uint32_t>(HashOf(value));; ++at) {
    const uint32_t id = table->ids[at & table->mask].load(std::memory_order_acquire);
    if (id == 0) return kNoValue;
    if (Same(At(id), value)) return id;
  }
}

void ValueDictionary::Place(Table* table, uint64_t hash, uint32_t id) {
  auto at = static_cast<uint32_t>(hash);
  while (table->ids[at & table->mask].load(std::memory_order_relaxed) != 0) ++at;
  table->ids[at & table->mask].store(id, std::memory_order_release);
}

void ValueDictionary::Grow() {
  Table* old = table_.load(std::memory_order_relaxed);
  const uint32_t capacity = old == nullptr ? kTableFirst : (old->mask + 1) * 2;
  auto* table = new Table{capacity - 1, std::make_unique<std::atomic<uint32_t>[]>(capacity)};
  for (uint32_t id = kFirstValueId; id < end(); ++id) Place(table, HashOf(At(id).AsJson()), id);
  table_.store(table, std::memory_order_release);
  bytes_.fetch_add(capacity * sizeof(uint32_t) / 2, std::memory_order_relaxed);
  if (old != nullptr) IndexReclaim().Retire([old] { delete old; });
}

uint32_t ValueDictionary::Intern(const JsonValue& value) {
  const uint32_t found = Find(value);
  if (found != kNoValue) return found;
  const uint32_t id = end();
  const Table* table = table_.load(std::memory_order_relaxed);
  // At most half full, so that probing ends.
  if (table == nullptr || id * 2 >= table->mask) Grow();
  HOTKV_CHECK(values_.Reserve(id + 1).ok());  // private memory: no file that could be full
  auto* made = new DictionaryValue;
  made->kind = KindOf(value);
  if (made->kind == JsonKind::kNumber) {
    made->number = Canonical(value.number);
  } else {
    made->text = value.text;
  }
  // Before the value can be met: who reads the count after it has looked for values misses none.
  if (made->kind == JsonKind::kString) strings_.fetch_add(1, std::memory_order_relaxed);
  values_.At<DictionaryValue*>(id).store(made, std::memory_order_release);
  end_.store(id + 1, std::memory_order_release);
  Place(table_.load(std::memory_order_relaxed), HashOf(value), id);
  bytes_.fetch_add(sizeof(DictionaryValue) + value.text.size() + sizeof(uint32_t) * 2,
                   std::memory_order_relaxed);
  return id;
}

size_t ValueDictionary::bytes() const { return bytes_.load(std::memory_order_relaxed); }

}  // namespace hotkv
