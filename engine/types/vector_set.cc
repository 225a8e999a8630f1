#include "engine/types/vector_set.h"

#include <algorithm>

#include "engine/base/coding.h"
#include "engine/base/hash.h"

namespace hotkv {

namespace {

enum class Op : uint8_t { kSet = 1, kDelete = 2, kAttributes = 3 };

constexpr uint8_t kDefinitionVersion = 1;
constexpr uint32_t kUpkeepNodes = 512;    // looked at by one step of repair
constexpr uint64_t kUpkeepElements = 64;  // linked by one step after a restart
// vectors.md: a checkpoint after effects of 64 MB or an eighth of the generation's files, whichever is more, and at 10%
// dead slots.
constexpr uint64_t kCheckpointBytes = uint64_t{64} << 20;

std::string_view BytesOf(std::span<const float> vector) {
  return {reinterpret_cast<const char*>(vector.data()), vector.size_bytes()};
}

std::string ChangeHead(Op op, uint32_t slot, std::string_view name) {
  std::string change;
  change.push_back(static_cast<char>(op));
  AppendVarint(&change, slot);
  AppendLengthPrefixed(&change, name);
  return change;
}

}  // namespace

VectorSet::VectorSet(uint64_t id, const VectorSetDefinition& definition,
                     std::unique_ptr<VectorIndex> index)
    : DurableObject(id, ValueType::kVectorSet), definition_(definition), index_(std::move(index)) {}

Result<VectorSet*> VectorSet::Create(const ObjectPlace& place,
                                     const VectorSetDefinition& definition) {
  HOTKV_ASSIGN_OR_RETURN(auto index,
                         VectorIndex::Create(definition.index, place.env_or_null, place.folder));
  return new VectorSet(place.id, definition, std::move(index));
}

std::string VectorSet::SetChange(uint32_t slot, std::string_view name, std::string_view attr,
                                 std::span<const float> vector) {
  std::string change = ChangeHead(Op::kSet, slot, name);
  AppendLengthPrefixed(&change, attr);
  change.append(BytesOf(vector));
  return change;
}

std::string VectorSet::DeleteChange(uint32_t slot, std::string_view name) {
  return ChangeHead(Op::kDelete, slot, name);
}

void VectorSet::EncodeDefinition(std::string* out) const {
  const IndexOptions& o = definition_.index;
  out->push_back(static_cast<char>(kDefinitionVersion));
  AppendVarint(out, o.dim);
  out->push_back(static_cast<char>(o.metric));
  out->push_back(static_cast<char>(o.type));
  AppendVarint(out, o.m);
  AppendVarint(out, o.ef_construction);
  AppendVarint(out, o.ef_default);
  AppendVarint(out, o.rerank);
  AppendLe<uint64_t>(out, o.seed);
  out->push_back(definition_.declared ? 1 : 0);
}

Result<VectorSetDefinition> VectorSet::DecodeDefinition(std::string_view bytes) {
  ByteReader reader(bytes);
  VectorSetDefinition definition;
  IndexOptions& o = definition.index;
  const auto version = reader.Le<uint8_t>();
  if (version != kDefinitionVersion) {
    return Status::Unsupported("vector index definition of version " + std::to_string(version));
  }
  o.dim = static_cast<uint32_t>(reader.Varint());
  const auto metric = reader.Le<uint8_t>();
  const auto type = reader.Le<uint8_t>();
  o.metric = static_cast<Metric>(metric);
  o.type = static_cast<ElementType>(type);
  o.m = static_cast<uint32_t>(reader.Varint());
  o.ef_construction = static_cast<uint32_t>(reader.Varint());
  o.ef_default = static_cast<uint32_t>(reader.Varint());
  o.rerank = static_cast<uint32_t>(reader.Varint());
  o.seed = reader.Le<uint64_t>();
  definition.declared = reader.Le<uint8_t>() != 0;
  if (!reader.ok() || !reader.empty() || metric > 2 || type > 4) {
    return Status::Corruption("vector index definition is damaged");
  }
  return definition;
}

Status VectorSet::ApplyChange(std::string_view change) {
  ByteReader reader(change);
  const auto op = static_cast<Op>(reader.Le<uint8_t>());
  const uint64_t slot = reader.Varint();
  const std::string_view name = reader.LengthPrefixed();
  const std::string_view attr = op == Op::kDelete ? std::string_view() : reader.LengthPrefixed();
  if (!reader.ok() || slot >= kIndexSlotsMax) {
    return Status::Corruption("vector index change is damaged");
  }
  const auto at = static_cast<uint32_t>(slot);
  NoteChange(change.size());
  switch (op) {
    case Op::kSet: {
      const size_t bytes = reader.remaining();
      if (bytes != size_t{definition_.index.dim} * sizeof(float)) break;
      std::vector<float> vector(definition_.index.dim);
      std::memcpy(vector.data(), reader.position(), bytes);
      return index_->ApplySet(at, name, vector, attr);
    }
    case Op::kDelete:
      return index_->ApplyDelete(at, name);
    case Op::kAttributes:
      return index_->ApplyAttr(at, name, attr);
  }
  return Status::Corruption("vector index change is damaged");
}

uint64_t VectorSet::Digest() const {
  std::string definition;
  EncodeDefinition(&definition);
  uint64_t digest = HashBytes(definition, 4);
  constexpr uint32_t kSlotsAtOnce = 1024;
  uint32_t slot = 0;
  while (slot != kNoSlot) {
    slot = index_->ForEach(
        slot, kSlotsAtOnce,
        [&](const VectorIndex::VisitedElement& e) {
          const uint64_t parts[3] = {HashBytes(e.view.name, 5), HashBytes(e.view.attr, 6),
                                     HashBytes(BytesOf(e.vector), 7)};
          digest += HashBytes({reinterpret_cast<const char*>(parts), sizeof(parts)}, 8);
        },
        true);
  }
  return digest;
}

size_t VectorSet::MemoryBytes() const {
  const IndexInfo info = index_->Info();
  return info.hot_bytes + info.vector_bytes + info.other_bytes;
}

Status VectorSet::Checkpoint(uint64_t generation) {
  // Changes from here on are not in the generation, or may be.
  changed_bytes_.exchange(0, std::memory_order_seq_cst);  // before the copy reads anything
  return index_->Checkpoint(generation);
}

bool VectorSet::CheckpointDue() const {
  const uint64_t changed = changed_bytes_.load(std::memory_order_relaxed);
  if (changed == 0) return false;
  const IndexInfo info = index_->Info();
  if (info.dead * 10 > info.slots && info.slots > 1000) return true;
  return changed > std::max(kCheckpointBytes, (info.hot_bytes + info.vector_bytes) / 8);
}

bool VectorSet::Upkeep() {
  const bool linking = index_->LinkPending(kUpkeepElements) != 0;
  return index_->RepairStep(kUpkeepNodes) || linking;
}

ObjectType VectorSetType() {
  ObjectType type;
  type.type = ValueType::kVectorSet;
  type.create = [](const ObjectPlace& place,
                   std::string_view bytes) -> Result<DurableObject*> {
    HOTKV_ASSIGN_OR_RETURN(const auto definition, VectorSet::DecodeDefinition(bytes));
    HOTKV_ASSIGN_OR_RETURN(VectorSet * set, VectorSet::Create(place, definition));
    return set;
  };
  type.open = [](const ObjectPlace& place, std::string_view bytes,
                 uint64_t generation) -> Result<DurableObject*> {
    HOTKV_ASSIGN_OR_RETURN(const auto definition, VectorSet::DecodeDefinition(bytes));
    HOTKV_ASSIGN_OR_RETURN(auto index,
                           VectorIndex::Open(place.env_or_null, place.folder, generation));
    return new VectorSet(place.id, definition, std::move(index));
  };
  type.remove_generation = &VectorIndex::RemoveGeneration;
  type.verify_generation = &VectorIndex::VerifyGeneration;
  return type;
}

void RegisterObjectTypes() { RegisterObjectType(VectorSetType()); }

}  // namespace hotkv
