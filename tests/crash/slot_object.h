// SlotObject: a small durable object that keeps to the same rules as a vector index: elements lie
// in numbered slots of a file that is mapped and shared; generations say which element has which
// slot; a freed slot is used again only when a generation that was begun later is the oldest one
// kept. For the power-cut simulation, where a wrong byte must show.
//
// Thread rules: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/types/durable_object.h"

namespace hotkv::crash {

class SlotObject final : public DurableObject {
 public:
  static constexpr ValueType kType = ValueType::kStream;  // no other type has it in these tests
  static constexpr size_t kSlotBytes = 64;
  static constexpr size_t kSlots = 128;
  static constexpr size_t kValueBytesMax = kSlotBytes - 1;

  static void Register();
  static Result<DurableObject*> Create(const ObjectPlace& place, std::string_view definition);
  static Result<DurableObject*> OpenAt(const ObjectPlace& place, std::string_view definition,
                                       uint64_t generation);
  static Status RemoveGeneration(Env* env, const std::string& folder, uint64_t generation);

  // The logged form of the change, to be recorded by the caller. Empty: no slot is free.
  std::string Set(const std::string& name, const std::string& value);
  std::string Delete(const std::string& name);
  std::map<std::string, std::string> Elements() const;
  const std::string& definition() const { return definition_; }

  // Runs in the middle of each checkpoint: changes go on while one is taken.
  static std::function<void(SlotObject*)> during_checkpoint;

  uint64_t Digest() const override;
  size_t MemoryBytes() const override { return kSlots * kSlotBytes; }
  void EncodeDefinition(std::string* out) const override { out->append(definition_); }
  Status ApplyChange(std::string_view change) override;
  Status Checkpoint(uint64_t generation) override;
  bool CheckpointDue() const override { return changes_ >= 20; }
  bool ChangedSinceCheckpoint() const override { return changes_ != 0 || generation_ == 0; }
  void ReleaseSlots(uint64_t oldest_kept) override;
  void HoldSlots() override { ++holds_; }
  void UnholdSlots() override { --holds_; }

 private:
  struct Retired {
    uint32_t slot = 0;
    uint64_t begun = 0;  // the newest generation that was begun when the slot was unlinked
  };
  SlotObject(const ObjectPlace& place, std::string_view definition)
      : DurableObject(place.id, kType),
        env_(place.env_or_null),
        folder_(place.folder),
        definition_(definition) {}
  ~SlotObject() override = default;
  Status MapSlots(OpenMode mode);
  Status ReadGeneration(uint64_t generation);
  void Store(uint32_t slot, std::string_view value);
  std::string Load(uint32_t slot) const;
  void Unlink(const std::string& name);

  Env* const env_;
  const std::string folder_;
  const std::string definition_;
  std::unique_ptr<File> file_;
  std::unique_ptr<Mapping> mapping_;
  std::map<std::string, uint32_t> slots_;  // of the live elements
  std::vector<uint32_t> free_;
  std::vector<Retired> retired_;
  uint32_t high_water_ = 0;
  uint64_t begun_ = 0;
  uint64_t generation_ = 0;  // the newest that was written or opened
  uint64_t changes_ = 0;     // since then
  int holds_ = 0;
};

}  // namespace hotkv::crash
