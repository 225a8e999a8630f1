#include "persistence/recovery/object_loader.h"

#include <fmt/format.h>

#include <utility>

namespace hotkv {

namespace {

// Of an object that is dropped later in the log. Where loading fails it lives as long as the engine,
// longer than the loader.
class StandIn final : public Object {
 public:
  StandIn(uint64_t id, ValueType type, std::shared_ptr<std::atomic<int64_t>> alive)
      : Object(id, type), alive_(std::move(alive)) {
    alive_->fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t Digest() const override { return 0; }
  size_t MemoryBytes() const override { return sizeof(*this); }

 private:
  ~StandIn() override { alive_->fetch_sub(1, std::memory_order_relaxed); }
  const std::shared_ptr<std::atomic<int64_t>> alive_;
};

// The folder itself stays: the catalog calls it live, and this start may be killed at any moment.
Status EmptyFolder(Env* env, const std::string& folder) {
  // A copy made by a tool that leaves out empty folders lacks it.
  HOTKV_RETURN_IF_ERROR(env->MakeDir(folder));
  HOTKV_RETURN_IF_ERROR(env->SyncDir(ParentFolder(folder)));
  return RemoveContents(env, folder);
}

}  // namespace

std::string ObjectFolder(const std::string& index_folder, uint64_t object_id) {
  return JoinPath(index_folder, std::to_string(object_id));
}

std::string ObjectLoader::FolderOf(uint64_t id) const {
  return ObjectFolder(options_.index_folder, id);
}

Result<const ObjectType*> ObjectLoader::TypeOf(uint8_t type) const {
  const ObjectType* known = FindObjectType(static_cast<ValueType>(type));
  if (known == nullptr || known->create == nullptr) {
    return Status::Unsupported(
        fmt::format("an object of type {} that this version does not know", type));
  }
  return known;
}

Status ObjectLoader::Plan() {
  if (options_.snapshot_or_null == nullptr) return Status::Ok();
  for (const SectionEntry& section : options_.snapshot_or_null->footer().sections) {
    if (section.kind != SectionKind::kObject) continue;
    HOTKV_RETURN_IF_ERROR(options_.snapshot_or_null->At(section, PlanSection(section)));
  }
  return Status::Ok();
}

Status ObjectLoader::PlanSection(const SectionEntry& section) {
  std::string scratch;
  HOTKV_ASSIGN_OR_RETURN(const std::string_view body,
                         options_.snapshot_or_null->Read(section, &scratch));
  const auto at = [&](Status status) {
    return options_.snapshot_or_null->At(section, std::move(status));
  };
  const Result<ObjectSection> decoded = DecodeObjectSection(body);
  if (!decoded.ok()) return at(decoded.status());
  const ObjectSection& object = *decoded;
  Planned planned{object.type, std::string(object.definition), object.generation, section.cut};
  const auto record = options_.state->objects.find(section.id);
  if (record == options_.state->objects.end() || record->second.state != FileState::kLive) {
    return at(
        Status::Corruption(fmt::format("the catalog has no folder of object {}", section.id)));
  }
  // A generation published since the snapshot: the log has all effects after its `from`.
  const uint64_t current = record->second.current();
  if (options_.use_log && current > planned.generation) {
    planned.generation = current;
    planned.from_lsn = record->second.generations.at(current).from_lsn;
  }
  if (!record->second.generations.contains(planned.generation)) {
    return at(Status::Corruption(fmt::format("the catalog has no generation {} of object {}",
                                             planned.generation, section.id)));
  }
  planned_[section.id] = std::move(planned);
  return Status::Ok();
}

Status ObjectLoader::LoadGroup(unsigned group) {
  HOTKV_ASSIGN_OR_RETURN(const GroupFacts facts, ScanGroup(group));
  HOTKV_RETURN_IF_ERROR(AddStandIns(group, facts));
  HOTKV_RETURN_IF_ERROR(OpenPlanned(group, facts));
  return options_.effects->ForEach(group, [&](const Effect& effect) {
    return IsObjectEffect(effect.kind) ? Apply(effect, facts) : Status::Ok();
  });
}

Result<ObjectLoader::GroupFacts> ObjectLoader::ScanGroup(unsigned group) {
  GroupFacts facts;
  HOTKV_RETURN_IF_ERROR(options_.effects->ForEach(group, [&](const Effect& effect) {
    if (effect.kind == EffectKind::kObjectDrop) facts.dropped.insert(effect.object_id);
    if (effect.kind == EffectKind::kObjectCreate)
      facts.created_type[effect.object_id] = effect.type;
    return Status::Ok();
  }));
  return facts;
}

Status ObjectLoader::AddStandIns(unsigned group, const GroupFacts& facts) {
  for (const uint64_t id : facts.dropped) {
    const auto created = facts.created_type.find(id);
    const auto planned = planned_.find(id);
    // Neither in the snapshot nor made since: it was gone before the snapshot began, and no effect
    // that counts links to it.
    if (created == facts.created_type.end() && planned == planned_.end()) continue;
    const uint8_t type = planned != planned_.end() ? planned->second.type : created->second;
    Object* stand_in = new StandIn(id, static_cast<ValueType>(type), stand_ins_alive_);
    engine_->objects().Add(stand_in);
    stand_in->Unref();
    stand_ins_[group].push_back(id);
  }
  return Status::Ok();
}

Status ObjectLoader::OpenPlanned(unsigned group, const GroupFacts& facts) {
  for (const auto& [id, planned] : planned_) {
    if (GroupOfObject(id) != group || facts.dropped.contains(id)) continue;
    HOTKV_ASSIGN_OR_RETURN(const ObjectType* type, TypeOf(planned.type));
    const ObjectPlace place{id, options_.env, FolderOf(id)};
    auto opened = type->open(place, planned.definition, planned.generation);
    if (!opened.ok()) {
      Status status = std::move(opened).status();
      return status.path().empty() ? std::move(status).At(place.folder, -1) : std::move(status);
    }
    DurableObject* object = *opened;
    engine_->objects().Add(object);
    object->Unref();
    applied_from_[group][id] = planned.from_lsn;
  }
  return Status::Ok();
}

Status ObjectLoader::Create(const Effect& effect) {
  const uint64_t id = effect.object_id;
  HOTKV_ASSIGN_OR_RETURN(const ObjectType* type, TypeOf(effect.type));
  const auto record = options_.state->objects.find(id);
  if (record == options_.state->objects.end() || record->second.state != FileState::kLive) {
    return Status::Corruption(fmt::format("the catalog has no folder of object {}", id));
  }
  const uint64_t current = record->second.current();
  const ObjectPlace place{id, options_.env, FolderOf(id)};
  uint64_t from_lsn = 0;  // all that follows counts, of this commit as well
  DurableObject* object = nullptr;
  if (current != 0) {
    from_lsn = record->second.generations.at(current).from_lsn;
    HOTKV_ASSIGN_OR_RETURN(object, type->open(place, effect.bytes, current));
  } else {
    // What the folder holds was never in a generation: all of it is in the log.
    HOTKV_RETURN_IF_ERROR(EmptyFolder(options_.env, place.folder));
    HOTKV_ASSIGN_OR_RETURN(object, type->create(place, effect.bytes));
  }
  engine_->objects().Add(object);
  object->Unref();
  applied_from_[GroupOfObject(id)][id] = from_lsn;
  return Status::Ok();
}

Status ObjectLoader::Apply(const Effect& effect, const GroupFacts& facts) {
  const uint64_t id = effect.object_id;
  if (effect.kind == EffectKind::kObjectDrop || facts.dropped.contains(id)) return Status::Ok();
  auto& applied = applied_from_[GroupOfObject(id)];
  const auto from = applied.find(id);
  if (from == applied.end()) {
    if (effect.kind == EffectKind::kObjectCreate) return Create(effect);
    return Status::Corruption(fmt::format("a change of object {}, which does not exist", id));
  }
  if (effect.lsn <= from->second || effect.kind == EffectKind::kObjectCreate) return Status::Ok();
  ObjectRef<Object> object = engine_->objects().Find(id);
  return static_cast<DurableObject&>(*object).ApplyChange(effect.bytes);
}

Status ObjectLoader::Finish() {
  for (const auto& ids : stand_ins_) {
    for (const uint64_t id : ids) engine_->objects().Take(id);
  }
  if (stand_ins_alive_->load(std::memory_order_relaxed) != 0) {
    return Status::Corruption("a key links to an object that was dropped");
  }
  for (const ObjectRef<Object>& object : engine_->objects().All()) {
    static_cast<DurableObject&>(*object).Recovered();
  }
  return Status::Ok();
}

}  // namespace hotkv
