#include "persistence/object_folders.h"

#include <algorithm>

#include "engine/base/crash_point.h"
#include "engine/base/log.h"
#include "engine/base/sync_point.h"
#include "persistence/recovery/object_loader.h"

namespace hotkv {

Result<std::string> ObjectFolders::MakeFolder(uint64_t object_id, ValueType type) {
  const std::string folder = ObjectFolder(index_folder_, object_id);
  HOTKV_RETURN_IF_ERROR(catalog_->Update([&](CatalogState* state) {
    ObjectRecord& record = state->objects[object_id];
    record.state = FileState::kPlanned;
    record.type = static_cast<uint8_t>(type);
    state->next_object_id = std::max(state->next_object_id, object_id + 1);
  }));
  HOTKV_CRASH_POINT("object.folder_planned");
  HOTKV_RETURN_IF_ERROR(env_->MakeDir(folder));
  HOTKV_RETURN_IF_ERROR(env_->SyncDir(index_folder_));
  HOTKV_CRASH_POINT("object.folder_made");
  HOTKV_RETURN_IF_ERROR(catalog_->Update(
      [&](CatalogState* state) { state->objects[object_id].state = FileState::kLive; }));
  return folder;
}

void ObjectFolders::ForgetFolder(uint64_t object_id) {
  std::lock_guard lock(mutex_);
  unfinished_.erase(object_id);
  forgotten_[object_id] = engine_->epochs().current();
}

Result<uint64_t> ObjectFolders::PlanGeneration(uint64_t object_id) {
  uint64_t generation = 0;
  {
    std::lock_guard lock(mutex_);
    unfinished_.insert(object_id);  // before it is seen: not to be collected
  }
  HOTKV_RETURN_IF_ERROR(catalog_->Update([&](CatalogState* state) {
    ObjectRecord& record = state->objects[object_id];
    generation = record.next_generation++;
    record.generations[generation].state = FileState::kPlanned;
  }));
  return generation;
}

Status ObjectFolders::PublishGeneration(uint64_t object_id, uint64_t generation) {
  HOTKV_CRASH_POINT("object.first_generation_written");
  // No effect names the object yet: there is nothing in the log that this could come too early for.
  const uint64_t from_lsn = FirstLsnOf(engine_->epochs().current()) - 1;
  HOTKV_RETURN_IF_ERROR(catalog_->Update([&](CatalogState* state) {
    GenerationRecord& record = state->objects[object_id].generations[generation];
    record.state = FileState::kLive;
    record.from_lsn = from_lsn;
  }));
  {
    std::lock_guard lock(mutex_);
    unfinished_.erase(object_id);
  }
  HOTKV_CRASH_POINT("object.first_generation_live");
  return Status::Ok();
}

void ObjectFolders::ForgetUnknown() {
  const uint64_t epoch = engine_->epochs().current();
  catalog_->With([&](const CatalogState& state) {
    std::lock_guard lock(mutex_);
    for (const auto& [id, record] : state.objects) {
      if (!engine_->objects().Find(id)) forgotten_[id] = epoch;
    }
  });
}

Result<NewGeneration> ObjectFolders::Checkpoint(DurableObject* object) {
  NewGeneration made;
  made.object = ObjectRef<Object>::Share(object);
  HOTKV_RETURN_IF_ERROR(catalog_->Update([&](CatalogState* state) {
    ObjectRecord& record = state->objects[object->id()];
    made.generation = record.next_generation++;
    record.generations[made.generation].state = FileState::kPlanned;
  }));
  {
    std::lock_guard lock(mutex_);
    begun_[object->id()] = made.generation;
  }
  HOTKV_CRASH_POINT("object.generation_planned");
  // A change is made before it takes its lsn: what is of an earlier epoch than this is there
  // already.
  made.from_lsn = FirstLsnOf(engine_->epochs().current());
  Status status = object->Checkpoint(made.generation);
  made.to_epoch = engine_->epochs().current();
  HOTKV_CRASH_POINT("object.generation_written");
  if (!status.ok()) {
    (void)Abandon(made);
    return status;
  }
  return made;
}

bool ObjectFolders::IsAsIn(const DurableObject& object, uint64_t current) {
  std::lock_guard lock(mutex_);
  const auto begun = begun_.find(object.id());
  if (begun != begun_.end() && begun->second != current) return false;
  return current != 0 && !object.ChangedSinceCheckpoint();
}

void ObjectFolders::MakeLive(const NewGeneration& generation, uint64_t log_epoch,
                             CatalogState* state) {
  const auto record = state->objects.find(generation.object->id());
  if (record == state->objects.end()) return;
  GenerationRecord& g = record->second.generations[generation.generation];
  g.state = FileState::kLive;
  g.from_lsn = generation.from_lsn;
  g.log_epoch = log_epoch;
  state->epoch_max = std::max(state->epoch_max, generation.to_epoch);
}

Status ObjectFolders::Abandon(const NewGeneration& generation) {
  return catalog_->Update([&](CatalogState* state) {
    const auto record = state->objects.find(generation.object->id());
    if (record == state->objects.end()) return;
    record->second.generations[generation.generation].state = FileState::kDropped;
  });
}

void ObjectFolders::Pin(uint64_t object_id) {
  std::lock_guard lock(mutex_);
  pinned_.insert(object_id);
}

void ObjectFolders::Unpin(uint64_t object_id) {
  std::lock_guard lock(mutex_);
  pinned_.erase(pinned_.find(object_id));
}

ObjectFolders::Garbage ObjectFolders::FindGarbage(const CatalogState& state,
                                                  uint64_t durable_epoch) {
  std::map<uint64_t, std::set<uint64_t>> referred;
  uint64_t oldest_from = 0;  // of the kept snapshots; 0: there is none
  for (const auto& [number, snapshot] : state.snapshots) {
    if (snapshot.state != FileState::kLive) continue;
    oldest_from =
        oldest_from == 0 ? snapshot.from_epoch : std::min(oldest_from, snapshot.from_epoch);
    for (const GenerationRef& ref : snapshot.generations) {
      referred[ref.object_id].insert(ref.generation);
    }
  }
  Garbage garbage;
  HOTKV_SYNC_POINT("object.find_garbage");
  std::lock_guard lock(mutex_);
  for (const auto& [id, record] : state.objects) {
    if (pinned_.contains(id) || unfinished_.contains(id)) continue;
    const auto forgotten = forgotten_.find(id);
    if (forgotten != forgotten_.end()) {
      const bool settled = record.state != FileState::kLive || forgotten->second <= durable_epoch ||
                           forgotten->second < oldest_from;
      if (settled && !referred.contains(id)) {
        garbage.folders.insert(id);
        continue;
      }
    }
    const uint64_t current = record.current();
    uint64_t oldest_kept = current;
    for (const auto& [number, generation] : record.generations) {
      const bool kept = number == current || referred[id].contains(number);
      if (kept) oldest_kept = std::min(oldest_kept, number);
      if (!kept) garbage.generations[id].insert(number);
    }
    uint64_t& released = released_[id];
    if (oldest_kept > released) garbage.oldest_kept[id] = released = oldest_kept;
  }
  return garbage;
}

Status ObjectFolders::Collect(uint64_t durable_epoch) {
  CatalogState state;
  Garbage garbage;
  // In one look: a first generation is live in the catalog before it leaves unfinished_, and would
  // be in neither for somebody who looks at the one before and the other after that.
  catalog_->With([&](const CatalogState& now) {
    state = now;
    garbage = FindGarbage(now, durable_epoch);
  });
  ReleaseSlots(garbage);
  if (garbage.folders.empty() && garbage.generations.empty()) return Status::Ok();
  HOTKV_RETURN_IF_ERROR(catalog_->Update([&](CatalogState* next) {
    for (const uint64_t id : garbage.folders) next->objects[id].state = FileState::kDropped;
    for (const auto& [id, numbers] : garbage.generations) {
      for (const uint64_t number : numbers) {
        next->objects[id].generations[number].state = FileState::kDropped;
      }
    }
  }));
  HOTKV_CRASH_POINT("object.dropped");
  HOTKV_RETURN_IF_ERROR(RemoveGenerations(garbage, state));
  HOTKV_RETURN_IF_ERROR(RemoveFolders(garbage));
  HOTKV_CRASH_POINT("object.unlinked");
  return catalog_->Update([&](CatalogState* next) {
    for (const uint64_t id : garbage.folders) next->objects.erase(id);
    for (const auto& [id, numbers] : garbage.generations) {
      const auto record = next->objects.find(id);
      for (const uint64_t number : numbers) record->second.generations.erase(number);
    }
  });
}

void ObjectFolders::ReleaseSlots(const Garbage& garbage) {
  for (const auto& [id, oldest_kept] : garbage.oldest_kept) {
    ObjectRef<Object> object = engine_->objects().Find(id);
    if (object) static_cast<DurableObject&>(*object).ReleaseSlots(oldest_kept);
  }
}

Status ObjectFolders::RemoveGenerations(const Garbage& garbage, const CatalogState& state) {
  for (const auto& [id, numbers] : garbage.generations) {
    const ObjectType* type = FindObjectType(static_cast<ValueType>(state.objects.at(id).type));
    const std::string folder = ObjectFolder(index_folder_, id);
    for (const uint64_t number : numbers) {
      if (type == nullptr || type->remove_generation == nullptr) continue;
      HOTKV_RETURN_IF_ERROR(type->remove_generation(env_, folder, number));
    }
    HOTKV_RETURN_IF_ERROR(env_->SyncDir(folder));
  }
  return Status::Ok();
}

Status ObjectFolders::RemoveFolders(const Garbage& garbage) {
  if (garbage.folders.empty()) return Status::Ok();
  for (const uint64_t id : garbage.folders) {
    HOTKV_RETURN_IF_ERROR(RemoveTree(env_, ObjectFolder(index_folder_, id)));
  }
  HOTKV_RETURN_IF_ERROR(env_->SyncDir(index_folder_));
  std::lock_guard lock(mutex_);
  for (const uint64_t id : garbage.folders) {
    forgotten_.erase(id);
    begun_.erase(id);
    released_.erase(id);
  }
  return Status::Ok();
}

}  // namespace hotkv
