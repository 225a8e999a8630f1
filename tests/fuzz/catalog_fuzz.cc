// Values of the catalog: what decodes encodes back to a catalog that decodes to the same; sealed values are checked.
#include "persistence/catalog/catalog_state.h"
#include "persistence/catalog/lmdb_store.h"
#include "tests/fuzz/fuzz_target.h"

namespace hotkv {
namespace {

std::string Packed(const CatalogRecords& records) {
  std::string out;
  for (const auto& [key, value] : records) {
    AppendPiece(key, &out);
    AppendPiece(value, &out);
  }
  return out;
}

std::vector<std::string> Seeds() {
  CatalogState state;
  state.format = kDirectoryFormat;
  state.stripe_bits = 12;
  state.server_id = std::string(40, 'a');
  state.replication_id = std::string(40, 'b');
  CatalogState full = state;
  full.snapshots[7] = {FileState::kLive, 1, 2, 3, true, 4, 5, 6, {{8, 9}}};
  full.segments[3] = {3, 1, SegmentState::kLive, 4096, true, 8192, 1, 2};
  full.ranges[0] = {0, 0, 3};
  full.objects[8].state = FileState::kLive;
  full.objects[8].type = 6;
  full.objects[8].generations[9] = {FileState::kLive, 5 << 22, 6};
  full.settings["acl"] = "user default on";
  return {Packed(EncodeCatalog(state)), Packed(EncodeCatalog(full))};
}

}  // namespace
}  // namespace hotkv

HOTKV_FUZZ_TARGET(catalog, hotkv::Seeds) {
  CatalogRecords records;
  FuzzInput pieces(input);
  while (!pieces.empty()) {
    const std::string key(pieces.Piece());
    const std::string value(pieces.Piece());
    records[key] = value;
    const Result<std::string> unsealed = UnsealCatalogValue(key, SealCatalogValue(key, value));
    HOTKV_CHECK(unsealed.ok() && *unsealed == value);
    static_cast<void>(UnsealCatalogValue(key, value).ok());
  }
  const Result<CatalogState> state = DecodeCatalog(records);
  if (!state.ok() || state->format == 0) return;
  const Result<CatalogState> again = DecodeCatalog(EncodeCatalog(*state));
  HOTKV_CHECK(again.ok() && *again == *state);
}
