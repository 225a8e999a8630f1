// VectorSet: the object behind a key of type vectorset, a VectorIndex with what the log and the commands need around it.
//
// A change in the log (the bytes of a kObjectChange effect):
//   u8 op   1 set: varint slot, name, attributes (each a varint length and bytes), float32 components to the end
//           2 delete: varint slot, name
//           3 attributes: varint slot, name, attributes
// Change together: docs/formats/log.md, tests/golden.
//
// Thread rules: searches by any thread that holds a reference. Changes are committed under the lock of the stripe whose key
// links to the object; what comes before (VectorIndex::Prepare) needs no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/types/durable_object.h"
#include "index/vector_index.h"

namespace hotkv {

struct VectorSetDefinition {
  IndexOptions index;
  bool declared = true;  // made by CREATEINDEX: stays when its last element goes
};

class VectorSet : public DurableObject {
 public:
  VectorSet(uint64_t id, const VectorSetDefinition& definition, std::unique_ptr<VectorIndex> index);

  static Result<VectorSet*> Create(const ObjectPlace& place, const VectorSetDefinition& definition);

  VectorIndex& index() { return *index_; }
  const VectorIndex& index() const { return *index_; }
  const VectorSetDefinition& definition() const { return definition_; }

  // The bytes of a change, to be recorded with Txn::RecordObjectChange in the commit that made it.
  static std::string SetChange(uint32_t slot, std::string_view name, std::string_view attr,
                               std::span<const float> vector);
  static std::string DeleteChange(uint32_t slot, std::string_view name);
  // Called after the index has changed and before the commit takes its lsn (both seq_cst: a checkpoint that does not see
  // the note began in an epoch that the commit's is not before).
  void NoteChange(size_t bytes) { changed_bytes_.fetch_add(bytes, std::memory_order_seq_cst); }

  uint64_t Digest() const override;
  size_t MemoryBytes() const override;
  void EncodeDefinition(std::string* out) const override;
  static Result<VectorSetDefinition> DecodeDefinition(std::string_view bytes);
  Status ApplyChange(std::string_view change) override;
  Status Checkpoint(uint64_t generation) override;
  bool CheckpointDue() const override;
  bool ChangedSinceCheckpoint() const override {
    return changed_bytes_.load(std::memory_order_seq_cst) != 0;
  }
  void ReleaseSlots(uint64_t oldest_kept) override { index_->ReleaseSlots(oldest_kept); }
  void HoldSlots() override { index_->HoldSlots(); }
  void UnholdSlots() override { index_->UnholdSlots(); }
  bool Upkeep() override;

 protected:
  ~VectorSet() override = default;

 private:
  const VectorSetDefinition definition_;
  const std::unique_ptr<VectorIndex> index_;
  std::atomic<uint64_t> changed_bytes_{0};  // of effects since the last generation was begun
};

ObjectType VectorSetType();

// Registers every type of this build; called once at program start.
void RegisterObjectTypes();

}  // namespace hotkv
