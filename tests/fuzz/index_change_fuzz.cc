// Definitions of vector indexes and changes to one: a hostile change is refused or applied, never more. Changes are applied
// to a small index in memory, which must stay sound.
#include <cstdio>
#include <map>

#include "engine/types/vector_set.h"
#include "tests/fuzz/fuzz_target.h"

namespace hotkv {
namespace {

constexpr uint32_t kDim = 3;
constexpr uint32_t kSlotsMax = 4096;  // a larger slot makes room for all below it: right, but too much for each input

VectorSetDefinition Definition() {
  VectorSetDefinition definition;
  definition.index.dim = kDim;
  definition.index.metric = Metric::kL2;
  return definition;
}

ObjectRef<VectorSet> MakeSet() {
  ObjectPlace place;
  place.id = 1;
  const Result<VectorSet*> made = VectorSet::Create(place, Definition());
  HOTKV_CHECK(made.ok());
  return ObjectRef<VectorSet>::Adopt(*made);
}

// Which slots an element may be set in: one that is new, or the one that it is in. A log has no other: a freed slot is used
// again only after a generation that no longer knows its element, and replay begins there.
class SlotRule {
 public:
  bool Allows(std::string_view change) {
    ByteReader reader(change);
    const auto op = reader.Le<uint8_t>();
    const uint64_t slot = reader.Varint();
    const std::string name(reader.LengthPrefixed());
    if (!reader.ok() || op != kSet) return true;
    if (slot >= kSlotsMax) return false;
    const auto [used, fresh] = used_.try_emplace(slot, name);
    if (!fresh && (used->second != name || slot_of_[name] != slot)) return false;
    slot_of_[name] = slot;
    return true;
  }
  void NoteDeleted(std::string_view change) {
    ByteReader reader(change);
    if (reader.Le<uint8_t>() != kDelete) return;
    reader.Varint();
    slot_of_[std::string(reader.LengthPrefixed())] = kSlotsMax;
  }

 private:
  static constexpr uint8_t kSet = 1;
  static constexpr uint8_t kDelete = 2;
  std::map<uint64_t, std::string> used_;      // whose slot it is or was
  std::map<std::string, uint64_t> slot_of_;  // kSlotsMax: none
};

std::vector<std::string> Seeds() {
  const float a[] = {1, 2, 3};
  const float b[] = {-1, 0, 0.5};
  std::string changes;
  AppendPiece(VectorSet::SetChange(0, "a", "{\"n\":1}", a), &changes);
  AppendPiece(VectorSet::SetChange(1, "b", "", b), &changes);
  AppendPiece(VectorSet::SetChange(0, "a", "", b), &changes);
  AppendPiece(VectorSet::SetChange(5, "a", "", b), &changes);
  AppendPiece(VectorSet::DeleteChange(1, "b"), &changes);
  AppendPiece(VectorSet::DeleteChange(2, "none"), &changes);
  std::string definition;
  MakeSet()->EncodeDefinition(&definition);
  return {changes, definition};
}

}  // namespace
}  // namespace hotkv

HOTKV_FUZZ_TARGET(index_change, hotkv::Seeds) {
  static_cast<void>(VectorSet::DecodeDefinition(input).ok());
  const ObjectRef<VectorSet> set = MakeSet();
  SlotRule rule;
  FuzzInput pieces(input);
  for (int i = 0; i < 64 && !pieces.empty(); ++i) {
    const std::string_view change = pieces.Piece();
    if (!rule.Allows(change)) continue;
    rule.NoteDeleted(change);
    static_cast<void>(set->ApplyChange(change).ok());
  }
  set->Recovered();
  while (set->Upkeep()) {
  }
  set->Digest();
  const Status sound = set->index().CheckInvariants();
  if (!sound.ok()) std::fprintf(stderr, "%s\n", sound.ToString().c_str());
  HOTKV_CHECK(sound.ok());
}
