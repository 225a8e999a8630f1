// DurableObject: an object as persistence sees it. Its content is what its definition, a generation
// (a checkpoint in the object's own folder, if it has one) and the kObjectChange effects after that
// generation's `from` make of it.
//
// Two kinds of Object exist. One with an id other than 0 is a DurableObject: an entry only links to
// it, its effects name the id, and snapshots give it a section of its own. One with id 0 is a value
// that is encoded in place, in its stripe's section and in kRestore effects, by its type's encode
// and decode.
//
// Invariants: ApplyChange is idempotent, in the log's order: a change may be applied to a
// generation that has seen it, and the result is as if the generation had not. A generation may be
// written while changes go on. Thread rules: EncodeDefinition, CheckpointDue, Checkpoint,
// HoldSlots, UnholdSlots and ReleaseSlots from any thread, while commands run. ApplyChange and
// Recovered: one thread, before the object is used. The registry is filled before threads start.
// Errors: storage errors with path and errno; kCorruption for bytes that are no definition, value
// or change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/store/entry.h"
#include "engine/store/object.h"

namespace hotkv {

class Env;

class DurableObject : public Object {
 public:
  using Object::Object;

  // From which ObjectType::create makes an empty object of the same shape.
  virtual void EncodeDefinition(std::string* out) const = 0;
  virtual Status ApplyChange(std::string_view change) = 0;
  // Replay is over; what was put off (linking, freeing) may begin.
  virtual void Recovered() {}

  // --- generations; an object in memory only never gets these calls ---
  // Writes and syncs a generation into the folder, while reads and writes go on. One at a time.
  virtual Status Checkpoint(uint64_t generation) = 0;
  // Enough has changed since the last generation that the next one should not wait for a snapshot.
  virtual bool CheckpointDue() const = 0;
  // Anything at all has changed since then.
  virtual bool ChangedSinceCheckpoint() const = 0;
  // Many slots wait for ReleaseSlots.
  virtual bool SlotsWait() const { return false; }
  // Slots unlinked before generation `oldest_kept` was begun may be used again.
  virtual void ReleaseSlots(uint64_t oldest_kept) = 0;
  // While held (the calls nest), no slot is used again.
  virtual void HoldSlots() = 0;
  virtual void UnholdSlots() = 0;

  // A bounded piece of background work on the content (repair after deletions, linking after a
  // restart), without any lock of the keyspace; true while there is more. By one thread at a time.
  virtual bool Upkeep() { return false; }

 protected:
  ~DurableObject() override = default;
};

// Where an object is made or opened.
struct ObjectPlace {
  uint64_t id = 0;
  Env* env_or_null = nullptr;  // null: in memory only, without a folder
  std::string folder;
};

// What a type offers. Members that a type has no use for are null.
struct ObjectType {
  ValueType type = ValueType::kString;

  // Objects with an id. The returned object has one reference, the caller's.
  Result<DurableObject*> (*create)(const ObjectPlace& place, std::string_view definition) = nullptr;
  Result<DurableObject*> (*open)(const ObjectPlace& place, std::string_view definition,
                                 uint64_t generation) = nullptr;
  // Removes the files that only this generation needs.
  Status (*remove_generation)(Env* env, const std::string& folder, uint64_t generation) = nullptr;
  // Checks everything of a generation on disk.
  Status (*verify_generation)(Env* env, const std::string& folder, uint64_t generation) = nullptr;

  // Values in place (id 0).
  void (*encode)(const Object& value, std::string* out) = nullptr;
  Result<Object*> (*decode)(std::string_view bytes) = nullptr;
};

// Once a type, at program start (engine/types/type_list.cc, or a test). A second call for the same
// type replaces the first.
void RegisterObjectType(const ObjectType& type);
// Null where the type is not known to this build.
const ObjectType* FindObjectType(ValueType type);

}  // namespace hotkv
