// VectorSet: the object behind a key of type vectorset, a VectorIndex with what the log and the commands need around it.
//
// A change in the log (the bytes of a kObjectChange effect):
//   u8 op   1 set: varint slot, name, attributes (each a varint length and bytes), float32 components to the end
//           2 delete: varint slot, name
//           3 attributes: varint slot, name, attributes
//           4 set an element that ends by itself: varint slot, name, attributes, i64 milliseconds since the Unix epoch,
//             components
//           5 end: varint slot, name, i64 milliseconds since the Unix epoch, 0 for none
//           6 search defaults: varint ef, varint rerank
//           7 declared fields: as EncodeFields gives them, to the end
// Change together: docs/formats/log.md, tests/golden.
//
// Thread rules: searches by any thread that holds a reference. Changes are committed under the lock of the stripe whose key
// links to the object; what comes before (VectorIndex::Prepare) needs no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types/durable_object.h"
#include "engine/types/projection.h"
#include "index/vector_index.h"

namespace hotkv {

struct VectorSetDefinition {
  IndexOptions index;
  bool declared = true;  // made by CREATEINDEX: stays when its last element goes
  std::vector<FieldSpec> fields;  // declared ones, as made
  uint32_t reduce_from = 0;  // dimension of what users give, where vectors are projected to index.dim; 0: they are not
};

class VectorSet : public DurableObject {
 public:
  VectorSet(uint64_t id, const VectorSetDefinition& definition, std::unique_ptr<VectorIndex> index);

  static Result<VectorSet*> Create(const ObjectPlace& place, const VectorSetDefinition& definition);

  VectorIndex& index() { return *index_; }
  const VectorIndex& index() const { return *index_; }
  // As made; what VSIM.ALTER changed since then is in index().options().
  const VectorSetDefinition& definition() const { return definition_; }
  // The dimension of what users give.
  uint32_t input_dim() const {
    return definition_.reduce_from != 0 ? definition_.reduce_from : definition_.index.dim;
  }
  // Null where vectors are stored as they are given.
  const Projection* projection_or_null() const { return projection_.get(); }

  // The bytes of a change, to be recorded with Txn::RecordObjectChange in the commit that made it.
  static std::string SetChange(uint32_t slot, std::string_view name, std::string_view attr,
                               std::span<const float> vector, int64_t expire_at_ms = 0);
  static std::string DeleteChange(uint32_t slot, std::string_view name);
  static std::string AttrChange(uint32_t slot, std::string_view name, std::string_view attr);
  static std::string ExpiryChange(uint32_t slot, std::string_view name, int64_t expire_at_ms);
  static std::string DefaultsChange(uint32_t ef, uint32_t rerank);
  static std::string FieldsChange(const std::vector<FieldSpec>& fields);
  // Called after the index has changed and before the commit takes its lsn (both seq_cst: a checkpoint that does not see
  // the note began in an epoch that the commit's is not before).
  void NoteChange(std::string_view change) {
    changed_bytes_.fetch_add(change.size(), std::memory_order_seq_cst);
    if (journals_open_.load(std::memory_order_seq_cst) != 0) AddToJournals(change);
  }

  // Makes a change of another set's here, by name; its bytes for this set's slots, empty where it changes nothing.
  Result<std::string> Repeat(std::string_view change);
  // How far a rebuild of this set has come, in percent; negative: there is none.
  std::atomic<int> rebuild_percent{-1};

  // Collects the changes that are made while it lives, and holds the set's slots: for what works on a copy of it.
  class Journal {
   public:
    explicit Journal(ObjectRef<VectorSet> set);
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;
    std::vector<std::string> Take();

   private:
    friend class VectorSet;
    const ObjectRef<VectorSet> set_;
    std::vector<std::string> changes_;  // guarded by the set's journals_mutex_
  };

  uint64_t Digest() const override;
  size_t MemoryBytes() const override;
  void EncodeDefinition(std::string* out) const override;
  static Result<VectorSetDefinition> DecodeDefinition(std::string_view bytes);
  Status ApplyChange(std::string_view change) override;
  Status Checkpoint(uint64_t generation) override;
  bool CheckpointDue() const override;
  bool SlotsWait() const override;
  bool ChangedSinceCheckpoint() const override {
    return changed_bytes_.load(std::memory_order_seq_cst) != 0;
  }
  void ReleaseSlots(uint64_t oldest_kept) override { index_->ReleaseSlots(oldest_kept); }
  void HoldSlots() override { index_->HoldSlots(); }
  void UnholdSlots() override { index_->UnholdSlots(); }
  bool Upkeep() override;
  int64_t NextEndMs() const override { return index_->NextExpiryMs(); }
  bool RemoveEnded(size_t max, std::vector<std::string>* changes) override;

 protected:
  ~VectorSet() override = default;

 private:
  struct ElementChange {
    uint32_t slot = 0;
    std::string_view name;
    std::string_view attr;
    int64_t expire_at_ms = 0;
    std::vector<float> vector;  // of those that set one
  };
  Result<ElementChange> DecodeElementChange(std::string_view bytes) const;
  Result<bool> ApplyToIndex(std::string_view bytes);
  const VectorSetDefinition definition_;
  const std::unique_ptr<VectorIndex> index_;
  const std::unique_ptr<const Projection> projection_;
  std::atomic<uint64_t> changed_bytes_{0};  // of effects since the last generation was begun
  void AddToJournals(std::string_view change);
  std::mutex journals_mutex_;
  std::vector<Journal*> journals_;  // guarded by journals_mutex_
  // Their number: raised before a copy reads the index, read after a change of it (both seq_cst), so a change that the
  // journal misses was there before the copy began.
  std::atomic<uint32_t> journals_open_{0};
};

ObjectType VectorSetType();

// Registers every type of this build; called once at program start.
void RegisterObjectTypes();

}  // namespace hotkv
