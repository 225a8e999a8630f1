#include "tests/crash/slot_object.h"

#include <algorithm>
#include <set>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"
#include "engine/base/hash.h"
#include "engine/base/rule_switch.h"

namespace hotkv::crash {

namespace {

constexpr char kSet = 1;
constexpr char kDelete = 2;

std::string GenerationPath(const std::string& folder, uint64_t generation) {
  return JoinPath(folder, "names." + std::to_string(generation));
}

}  // namespace

std::function<void(SlotObject*)> SlotObject::during_checkpoint;

void SlotObject::Register() {
  ObjectType type;
  type.type = kType;
  type.create = &Create;
  type.open = &OpenAt;
  type.remove_generation = &RemoveGeneration;
  RegisterObjectType(type);
}

Result<DurableObject*> SlotObject::Create(const ObjectPlace& place, std::string_view definition) {
  auto* object = new SlotObject(place, definition);
  Status status = object->MapSlots(OpenMode::kCreateNew);
  if (!status.ok()) {
    object->Unref();
    return status;
  }
  return static_cast<DurableObject*>(object);
}

Result<DurableObject*> SlotObject::OpenAt(const ObjectPlace& place, std::string_view definition,
                                          uint64_t generation) {
  auto* object = new SlotObject(place, definition);
  Status status = object->MapSlots(OpenMode::kReadWrite);
  if (status.ok()) status = object->ReadGeneration(generation);
  if (!status.ok()) {
    object->Unref();
    return status;
  }
  return static_cast<DurableObject*>(object);
}

Status SlotObject::RemoveGeneration(Env* env, const std::string& folder, uint64_t generation) {
  Status status = env->Unlink(GenerationPath(folder, generation));
  return status.code() == Code::kNotFound ? Status::Ok() : status;
}

Status SlotObject::MapSlots(OpenMode mode) {
  HOTKV_ASSIGN_OR_RETURN(file_, env_->Open(JoinPath(folder_, "slots"), mode));
  if (mode == OpenMode::kCreateNew) {
    HOTKV_RETURN_IF_ERROR(file_->Allocate(0, kSlots * kSlotBytes));
    HOTKV_RETURN_IF_ERROR(file_->Sync());
    HOTKV_RETURN_IF_ERROR(env_->SyncDir(folder_));
  }
  HOTKV_ASSIGN_OR_RETURN(mapping_, file_->Map(0, kSlots * kSlotBytes, MapMode::kShared));
  return Status::Ok();
}

void SlotObject::Store(uint32_t slot, std::string_view value) {
  char* p = mapping_->data() + slot * kSlotBytes;
  HOTKV_CHECK(value.size() <= kValueBytesMax);
  p[0] = static_cast<char>(value.size());
  std::copy(value.begin(), value.end(), p + 1);
}

std::string SlotObject::Load(uint32_t slot) const {
  const char* p = mapping_->data() + slot * kSlotBytes;
  return {p + 1, static_cast<size_t>(static_cast<unsigned char>(p[0])) % kSlotBytes};
}

void SlotObject::Unlink(const std::string& name) {
  const auto found = slots_.find(name);
  if (found == slots_.end()) return;
  if (rules::Enabled(Rule::kSlotReuse)) {
    retired_.push_back({found->second, begun_});
  } else {
    free_.push_back(found->second);
  }
  slots_.erase(found);
}

std::string SlotObject::Set(const std::string& name, const std::string& value) {
  const bool may_reuse = holds_ == 0 || !rules::Enabled(Rule::kSlotReuse);
  uint32_t slot = 0;
  if (!free_.empty() && may_reuse) {
    slot = free_.back();
    free_.pop_back();
  } else if (high_water_ < kSlots) {
    slot = high_water_++;
  } else {
    return "";
  }
  Store(slot, value);
  Unlink(name);
  slots_[name] = slot;
  ++changes_;
  std::string change(1, kSet);
  AppendVarint(&change, slot);
  AppendLengthPrefixed(&change, name);
  AppendLengthPrefixed(&change, value);
  return change;
}

std::string SlotObject::Delete(const std::string& name) {
  std::string change(1, kDelete);
  AppendVarint(&change, slots_.at(name));
  AppendLengthPrefixed(&change, name);
  Unlink(name);
  ++changes_;
  return change;
}

Status SlotObject::ApplyChange(std::string_view change) {
  ByteReader reader(change);
  const auto kind = reader.Le<char>();
  const auto slot = static_cast<uint32_t>(reader.Varint());
  const std::string name(reader.LengthPrefixed());
  const std::string_view value = kind == kSet ? reader.LengthPrefixed() : std::string_view();
  if (!reader.ok() || slot >= kSlots) return Status::Corruption("change of a slot object");
  ++changes_;
  const auto found = slots_.find(name);
  if (kind == kDelete) {
    if (found != slots_.end() && found->second == slot) Unlink(name);
    return Status::Ok();
  }
  // The generation may have seen a later state, in which another element had the slot.
  std::erase_if(slots_, [&](const auto& entry) { return entry.second == slot; });
  std::erase_if(retired_, [&](const Retired& r) { return r.slot == slot; });
  std::erase(free_, slot);
  Unlink(name);
  Store(slot, value);
  slots_[name] = slot;
  high_water_ = std::max(high_water_, slot + 1);
  return Status::Ok();
}

Status SlotObject::Checkpoint(uint64_t generation) {
  begun_ = generation;
  changes_ = 0;
  const auto middle = slots_.size() / 2;
  std::map<std::string, uint32_t> copy;
  // Element by element, as a copy that others change under our hands.
  std::vector<std::string> names;
  for (const auto& [name, slot] : slots_) names.push_back(name);
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == middle && during_checkpoint) during_checkpoint(this);
    const auto found = slots_.find(names[i]);
    if (found != slots_.end()) copy.insert(*found);
  }
  HOTKV_RETURN_IF_ERROR(mapping_->Sync(0, mapping_->size()));
  std::string bytes;
  AppendVarint(&bytes, copy.size());
  for (const auto& [name, slot] : copy) {
    AppendLengthPrefixed(&bytes, name);
    AppendVarint(&bytes, slot);
  }
  AppendLe(&bytes, Crc32c(bytes));
  HOTKV_ASSIGN_OR_RETURN(auto file,
                         env_->Open(GenerationPath(folder_, generation), OpenMode::kCreateOrOpen));
  HOTKV_RETURN_IF_ERROR(file->Truncate(0));
  HOTKV_RETURN_IF_ERROR(file->WriteAt(0, bytes));
  HOTKV_RETURN_IF_ERROR(file->Sync());
  HOTKV_RETURN_IF_ERROR(env_->SyncDir(folder_));
  generation_ = generation;
  return Status::Ok();
}

Status SlotObject::ReadGeneration(uint64_t generation) {
  const std::string path = GenerationPath(folder_, generation);
  HOTKV_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(env_, path));
  if (bytes.size() < 4) return Status::Corruption("generation is cut off").At(path, 0);
  const std::string_view body = std::string_view(bytes).substr(0, bytes.size() - 4);
  if (LoadLe<uint32_t>(body.data() + body.size()) != Crc32c(body)) {
    return Status::Corruption("checksum of a generation").At(path, 0);
  }
  ByteReader reader(body);
  std::set<uint32_t> used;
  for (uint64_t left = reader.Varint(); left > 0 && reader.ok(); --left) {
    const std::string name(reader.LengthPrefixed());
    const auto slot = static_cast<uint32_t>(reader.Varint());
    slots_[name] = slot;
    used.insert(slot);
  }
  high_water_ = used.empty() ? 0 : *used.rbegin() + 1;
  begun_ = generation_ = generation;
  // A kept generation may still mean something by the slots in between.
  for (uint32_t slot = 0; slot < high_water_; ++slot) {
    if (!used.contains(slot)) retired_.push_back({slot, begun_});
  }
  return Status::Ok();
}

void SlotObject::ReleaseSlots(uint64_t oldest_kept) {
  std::erase_if(retired_, [&](const Retired& r) {
    if (r.begun >= oldest_kept) return false;
    free_.push_back(r.slot);
    return true;
  });
}

std::map<std::string, std::string> SlotObject::Elements() const {
  std::map<std::string, std::string> elements;
  for (const auto& [name, slot] : slots_) elements[name] = Load(slot);
  return elements;
}

uint64_t SlotObject::Digest() const {
  uint64_t digest = HashBytes(definition_, 1);
  for (const auto& [name, value] : Elements()) digest += HashBytes(name, HashBytes(value, 2));
  return digest;
}

}  // namespace hotkv::crash
