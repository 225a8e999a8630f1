#include "index/fields/field_index.h"

#include <algorithm>
#include <array>

#include "index/reader_pin.h"

namespace hotkv {

const FieldColumn* FieldTable::Find(std::string_view name) const {
  for (const FieldColumn& column : columns) {
    if (column.spec.name == name) return &column;
  }
  return nullptr;
}

FieldTable::FieldTable(std::vector<FieldColumn> all) : columns(std::move(all)) {
  std::vector<std::string> names;
  for (const FieldColumn& column : columns) names.push_back(column.spec.name);
  reader = JsonFields(std::move(names));
}

void FieldTable::Set(uint32_t slot, std::string_view attr) const {
  if (columns.empty()) return;
  std::array<JsonValue, kIndexFieldsMax> room;
  const std::span<JsonValue> values(room.data(), columns.size());
  std::string arena;
  // Attributes that are no object match nothing, as if all fields were missing.
  if (!reader.Read(attr, values, &arena)) std::fill(values.begin(), values.end(), JsonValue());
  for (size_t i = 0; i < columns.size(); ++i) {
    const FieldColumn& column = columns[i];
    column.tag ? column.tag->Set(slot, values[i]) : column.numeric->Set(slot, values[i]);
  }
}

FieldIndex::FieldIndex() : table_(new FieldTable) {}
FieldIndex::~FieldIndex() { delete table_.load(std::memory_order_relaxed); }

FieldColumn FieldIndex::MakeColumn(const FieldSpec& spec) {
  FieldColumn column;
  column.spec = spec;
  if (spec.kind == FieldKind::kTag) {
    column.tag = std::make_shared<TagColumn>();
  } else {
    column.numeric = std::make_shared<NumericColumn>();
  }
  return column;
}

void FieldIndex::Publish(std::vector<FieldColumn> columns) {
  auto* table = new FieldTable(std::move(columns));
  FieldTable* old = table_.exchange(table, std::memory_order_acq_rel);
  IndexReclaim().Retire([old] { delete old; });
}

void FieldIndex::Define(std::vector<FieldSpec> specs, Elements elements) {
  const FieldTable& now = *table();
  std::vector<FieldColumn> serving;
  std::vector<FieldColumn> missing;
  specs_ = std::move(specs);
  std::erase_if(automatic_, [this](const FieldSpec& automatic) {
    return std::any_of(specs_.begin(), specs_.end(), [&automatic](const FieldSpec& spec) {
      return spec.name == automatic.name;
    });
  });
  for (const FieldSpec& spec : AllSpecs()) {
    const FieldColumn* column = now.Find(spec.name);
    if (column != nullptr && column->spec == spec) {
      serving.push_back(*column);
    } else {
      (elements == Elements::kNone ? serving : missing).push_back(MakeColumn(spec));
    }
  }
  building_ = FieldTable(std::move(missing));
  next_to_build_ = 0;
  Publish(std::move(serving));
}

void FieldIndex::Set(uint32_t slot, std::string_view attr) {
  table()->Set(slot, attr);
  building_.Set(slot, attr);
}

void FieldIndex::Clear(uint32_t slot) { Set(slot, {}); }

void FieldIndex::SetInBuilding(uint32_t slot, std::string_view attr) {
  building_.Set(slot, attr);
}

void FieldIndex::FinishBuilding() {
  std::vector<FieldColumn> columns;
  const FieldTable& now = *table();
  for (const FieldSpec& spec : AllSpecs()) {
    const FieldColumn* built = building_.Find(spec.name);
    columns.push_back(built != nullptr ? *built : *now.Find(spec.name));
  }
  building_ = FieldTable();
  Publish(std::move(columns));
}

std::shared_ptr<NumericColumn> FieldIndex::MergeDue(Building building) const {
  constexpr uint32_t kGrowingShare = 2;
  const uint32_t share = building == Building::kBuilt ? NumericColumn::kTailShare : kGrowingShare;
  const auto find = [](const std::vector<FieldColumn>& columns, uint32_t tail_share) {
    for (const FieldColumn& c : columns) {
      if (c.numeric && c.numeric->merge_due(tail_share)) return c.numeric;
    }
    return std::shared_ptr<NumericColumn>();
  };
  auto due = find(table()->columns, NumericColumn::kTailShare);
  return due ? due : find(building_.columns, share);
}

std::vector<FieldSpec> FieldIndex::AllSpecs() const {
  std::vector<FieldSpec> all = specs_;
  all.insert(all.end(), automatic_.begin(), automatic_.end());
  return all;
}

void FieldIndex::Want(std::string_view name, FieldKind kind) {
  const std::unique_lock<std::mutex> lock(wanted_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !takes_wishes()) return;
  for (const FieldSpec& wanted : wanted_) {
    if (wanted.name == name) return;
  }
  wanted_.push_back({std::string(name), kind});
}

void FieldIndex::BeginBuilding() {
  if (building()) return;
  std::vector<FieldColumn> fresh;
  {
    const std::lock_guard<std::mutex> lock(wanted_mutex_);
    for (FieldSpec& wanted : wanted_) {
      const std::vector<FieldSpec> all = AllSpecs();
      const bool known = std::any_of(all.begin(), all.end(), [&wanted](const FieldSpec& spec) {
        return spec.name == wanted.name;
      });
      if (known || automatic_.size() == kAutomaticFieldsMax) continue;
      fresh.push_back(MakeColumn(wanted));
      automatic_.push_back(std::move(wanted));
    }
    wanted_.clear();
    wishes_left_.store(kAutomaticFieldsMax - static_cast<uint32_t>(automatic_.size()),
                       std::memory_order_relaxed);
  }
  for (const FieldColumn& column : table()->columns) {
    if (column.tag && column.tag->Worn()) fresh.push_back(MakeColumn(column.spec));
  }
  building_ = FieldTable(std::move(fresh));
  next_to_build_ = 0;
}

size_t FieldIndex::bytes() const {
  size_t bytes = 0;
  const auto add = [&bytes](const std::vector<FieldColumn>& columns) {
    for (const FieldColumn& c : columns) bytes += c.tag ? c.tag->bytes() : c.numeric->bytes();
  };
  add(table()->columns);
  add(building_.columns);
  return bytes;
}

}  // namespace hotkv
