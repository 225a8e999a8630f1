#include "engine/types/vector_set.h"

#include <algorithm>
#include <utility>

#include "engine/base/coding.h"
#include "engine/base/hash.h"
#include "engine/base/limits.h"

namespace hotkv {

namespace {

enum class Op : uint8_t {
  kSet = 1,
  kDelete = 2,
  kAttributes = 3,
  kSetEnding = 4,
  kEnd = 5,
  kDefaults = 6,
  kFields = 7
};

// Of what follows a definition's fixed part: a tag each, with a length and bytes.
enum class DefinitionTag : uint8_t { kReduceFrom = 1, kFields = 2 };

constexpr uint8_t kDefinitionVersion = 1;
constexpr uint32_t kUpkeepNodes = 512;    // looked at by one step of repair
constexpr uint32_t kUpkeepSlots = 256;    // given columns by one step
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
    : DurableObject(id, ValueType::kVectorSet),
      definition_(definition),
      index_(std::move(index)),
      projection_(definition.reduce_from == 0
                      ? nullptr
                      : std::make_unique<Projection>(definition.reduce_from, definition.index.dim,
                                                     definition.index.seed)) {
  if (!definition_.declared) index_->AllowZeroVectors();  // as in Redis
}

Result<VectorSet*> VectorSet::Create(const ObjectPlace& place,
                                     const VectorSetDefinition& definition) {
  HOTKV_ASSIGN_OR_RETURN(auto index,
                         VectorIndex::Create(definition.index, place.env_or_null, place.folder));
  HOTKV_RETURN_IF_ERROR(index->SetFields(definition.fields));
  return new VectorSet(place.id, definition, std::move(index));
}

std::string VectorSet::SetChange(uint32_t slot, std::string_view name, std::string_view attr,
                                 std::span<const float> vector, int64_t expire_at_ms) {
  std::string change = ChangeHead(expire_at_ms != 0 ? Op::kSetEnding : Op::kSet, slot, name);
  AppendLengthPrefixed(&change, attr);
  if (expire_at_ms != 0) AppendLe<int64_t>(&change, expire_at_ms);
  change.append(BytesOf(vector));
  return change;
}

std::string VectorSet::DeleteChange(uint32_t slot, std::string_view name) {
  return ChangeHead(Op::kDelete, slot, name);
}

std::string VectorSet::AttrChange(uint32_t slot, std::string_view name, std::string_view attr) {
  std::string change = ChangeHead(Op::kAttributes, slot, name);
  AppendLengthPrefixed(&change, attr);
  return change;
}

std::string VectorSet::ExpiryChange(uint32_t slot, std::string_view name, int64_t expire_at_ms) {
  std::string change = ChangeHead(Op::kEnd, slot, name);
  AppendLe<int64_t>(&change, expire_at_ms);
  return change;
}

std::string VectorSet::DefaultsChange(uint32_t ef, uint32_t rerank) {
  std::string change;
  change.push_back(static_cast<char>(Op::kDefaults));
  AppendVarint(&change, ef);
  AppendVarint(&change, rerank);
  return change;
}

std::string VectorSet::FieldsChange(const std::vector<FieldSpec>& fields) {
  std::string change;
  change.push_back(static_cast<char>(Op::kFields));
  change += EncodeFields(fields);
  return change;
}

void VectorSet::EncodeDefinition(std::string* out) const {
  const IndexOptions o = index_->options();
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
  if (definition_.reduce_from != 0) {
    std::string bytes;
    AppendVarint(&bytes, definition_.reduce_from);
    out->push_back(static_cast<char>(DefinitionTag::kReduceFrom));
    AppendLengthPrefixed(out, bytes);
  }
  if (const auto fields = index_->fields(); !fields.empty()) {
    out->push_back(static_cast<char>(DefinitionTag::kFields));
    AppendLengthPrefixed(out, EncodeFields(fields));
  }
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
  bool sound = metric <= 2 && type <= 4;
  while (reader.ok() && !reader.empty()) {
    const auto tag = static_cast<DefinitionTag>(reader.Le<uint8_t>());
    const std::string_view content = reader.LengthPrefixed();
    if (tag == DefinitionTag::kFields) {
      HOTKV_ASSIGN_OR_RETURN(definition.fields, DecodeFields(content));
      continue;
    }
    ByteReader part(content);
    if (tag != DefinitionTag::kReduceFrom) {
      return Status::Unsupported("vector index definition with an unknown part");
    }
    const uint64_t from = part.Varint();
    sound = sound && part.ok() && part.empty() && from >= o.dim && from <= kVectorDimMax;
    definition.reduce_from = static_cast<uint32_t>(from);
  }
  if (!reader.ok() || !sound) return Status::Corruption("vector index definition is damaged");
  return definition;
}

Result<VectorSet::ElementChange> VectorSet::DecodeElementChange(std::string_view bytes) const {
  const Status damaged = Status::Corruption("vector index change is damaged");
  ElementChange change;
  ByteReader reader(bytes);
  const auto op = static_cast<Op>(reader.Le<uint8_t>());
  const uint64_t slot = reader.Varint();
  change.name = reader.LengthPrefixed();
  const bool sets = op == Op::kSet || op == Op::kSetEnding;
  if (sets || op == Op::kAttributes) change.attr = reader.LengthPrefixed();
  if (op == Op::kSetEnding || op == Op::kEnd) change.expire_at_ms = reader.Le<int64_t>();
  if (!reader.ok() || slot >= kIndexSlotsMax) return damaged;
  change.slot = static_cast<uint32_t>(slot);
  if (!sets) return change;
  const size_t size = reader.remaining();
  if (size != size_t{definition_.index.dim} * sizeof(float)) return damaged;
  change.vector.resize(definition_.index.dim);
  std::memcpy(change.vector.data(), reader.position(), size);
  return change;
}

// A change of the index as a whole; false for one of an element.
Result<bool> VectorSet::ApplyToIndex(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto op = static_cast<Op>(reader.Le<uint8_t>());
  if (op == Op::kFields) {
    HOTKV_ASSIGN_OR_RETURN(auto fields, DecodeFields(bytes.substr(1)));
    HOTKV_RETURN_IF_ERROR(index_->SetFields(std::move(fields)));
    return true;
  }
  if (op != Op::kDefaults) return false;
  const uint64_t ef = reader.Varint();
  const uint64_t rerank = reader.Varint();
  if (!reader.ok() || ef < 1 || ef > kIndexEfMax || rerank > kIndexEfMax) {
    return Status::Corruption("vector index change is damaged");
  }
  index_->SetSearchDefaults(static_cast<uint32_t>(ef), static_cast<uint32_t>(rerank));
  return true;
}

Status VectorSet::ApplyChange(std::string_view bytes) {
  NoteChange(bytes);
  HOTKV_ASSIGN_OR_RETURN(const bool done, ApplyToIndex(bytes));
  if (done) return Status::Ok();
  HOTKV_ASSIGN_OR_RETURN(const ElementChange change, DecodeElementChange(bytes));
  switch (static_cast<Op>(bytes[0])) {
    case Op::kSet:
    case Op::kSetEnding:
      return index_->ApplySet(change.slot, change.name, change.vector, change.attr,
                              change.expire_at_ms);
    case Op::kDelete:
      return index_->ApplyDelete(change.slot, change.name);
    case Op::kAttributes:
      return index_->ApplyAttr(change.slot, change.name, change.attr);
    case Op::kEnd:
      return index_->ApplyExpiry(change.slot, change.name, change.expire_at_ms);
    case Op::kDefaults:
    case Op::kFields:
      break;
  }
  return Status::Corruption("vector index change is damaged");
}

Result<std::string> VectorSet::Repeat(std::string_view bytes) {
  HOTKV_ASSIGN_OR_RETURN(const bool done, ApplyToIndex(bytes));
  if (done) return std::string(bytes);
  HOTKV_ASSIGN_OR_RETURN(const ElementChange change, DecodeElementChange(bytes));
  std::optional<uint32_t> slot;
  switch (static_cast<Op>(bytes[0])) {
    case Op::kSet:
    case Op::kSetEnding: {
      HOTKV_ASSIGN_OR_RETURN(PreparedInsert insert,
                             index_->Prepare(change.name, change.vector, change.attr,
                                             change.expire_at_ms));
      const CommitResult result = index_->Commit(std::move(insert));
      return SetChange(result.slot, change.name, change.attr, change.vector, change.expire_at_ms);
    }
    case Op::kDelete:
      slot = index_->Delete(change.name);
      return slot ? DeleteChange(*slot, change.name) : std::string();
    case Op::kAttributes:
      slot = index_->SetAttr(change.name, change.attr);
      return slot ? AttrChange(*slot, change.name, change.attr) : std::string();
    case Op::kEnd:
      slot = index_->SetExpiry(change.name, change.expire_at_ms);
      return slot ? ExpiryChange(*slot, change.name, change.expire_at_ms) : std::string();
    case Op::kDefaults:
    case Op::kFields:
      break;
  }
  return Status::Corruption("vector index change is damaged");
}

VectorSet::Journal::Journal(ObjectRef<VectorSet> set) : set_(std::move(set)) {
  set_->HoldSlots();
  std::lock_guard<std::mutex> lock(set_->journals_mutex_);
  set_->journals_.push_back(this);
  set_->journals_open_.fetch_add(1, std::memory_order_seq_cst);
}

VectorSet::Journal::~Journal() {
  {
    std::lock_guard<std::mutex> lock(set_->journals_mutex_);
    std::erase(set_->journals_, this);
    set_->journals_open_.fetch_sub(1, std::memory_order_seq_cst);
  }
  set_->UnholdSlots();
}

std::vector<std::string> VectorSet::Journal::Take() {
  std::lock_guard<std::mutex> lock(set_->journals_mutex_);
  return std::exchange(changes_, {});
}

void VectorSet::AddToJournals(std::string_view change) {
  std::lock_guard<std::mutex> lock(journals_mutex_);
  for (Journal* journal : journals_) journal->changes_.emplace_back(change);
}

bool VectorSet::RemoveEnded(size_t max, std::vector<std::string>* changes) {
  for (const VectorIndex::Deleted& gone : index_->DeleteExpired(max)) {
    changes->push_back(DeleteChange(gone.slot, gone.name));
    NoteChange(changes->back());
  }
  return !definition_.declared && index_->Count() == 0;
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
          const uint64_t parts[4] = {HashBytes(e.view.name, 5), HashBytes(e.view.attr, 6),
                                     HashBytes(BytesOf(e.vector), 7),
                                     static_cast<uint64_t>(e.view.expire_at_ms)};
          // Without its end, which most elements have not, as before there were any.
          const size_t bytes = sizeof(parts) - (e.view.expire_at_ms == 0 ? sizeof(parts[0]) : 0);
          digest += HashBytes({reinterpret_cast<const char*>(parts), bytes}, 8);
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

bool VectorSet::SlotsWait() const {
  const IndexInfo info = index_->Info();
  return info.held_slots > 1000 && info.held_slots * 16 > info.slots;
}

bool VectorSet::Upkeep() {
  const bool linking = index_->LinkPending(kUpkeepElements) != 0;
  const bool building = index_->BuildFields(kUpkeepSlots);
  return index_->RepairStep(kUpkeepNodes) || linking || building;
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
