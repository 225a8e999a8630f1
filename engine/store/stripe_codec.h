// Stripe codec: all entries of a stripe as bytes (docs/formats/snapshot.md, "stripe section"), and
// back.
//
//   for each database in use: varint database, varint entry count, entries
//   entry: u8 type in the low 4 bits, flags in the high 4 (0x10 expiry, 0x20 integer, 0x40 link to
//   an object)
//          varint key length, key; varint expire_at_ms with 0x10; then
//          0x20: zigzag varint. 0x40: varint object id. Else: varint length and bytes, of the
//          string or as the type's encode gave them.
//
// Large strings go by reference: encoding a stripe under its lock must not copy a gigabyte.
//
// Thread rules: the stripe's lock, or nobody else at work on the stripe.
// Errors (decode): kCorruption with the offset in the bytes; kUnsupported for a type that this
// build does not know; kInvalidArgument for a database beyond the configured number. The stripe
// then holds what was decoded before. Change together: docs/formats/snapshot.md, tests/golden.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/shared_block.h"
#include "engine/store/keyspace.h"

namespace hotkv {

struct StripeImage {
  // The block's bytes stand before bytes[at].
  struct Large {
    size_t at = 0;
    SharedBlockRef block;
  };
  std::string bytes;
  std::vector<Large> large;
  uint64_t entries = 0;
  size_t large_bytes = 0;

  size_t size_bytes() const { return bytes.size() + large_bytes; }
  // Calls fn(std::string_view) for the pieces in order.
  template <typename Fn>
  void ForEachPiece(Fn&& fn) const {
    size_t from = 0;
    for (const Large& l : large) {
      if (l.at > from) fn(std::string_view(bytes).substr(from, l.at - from));
      fn(l.block.view());
      from = l.at;
    }
    if (bytes.size() > from) fn(std::string_view(bytes).substr(from));
  }
};

// Appends to *out.
void EncodeStripe(const Keyspace& keyspace, const Stripe& stripe, StripeImage* out);

// Finds the object that a link names: a reference for the entry, or null when there is none of this
// type.
using ObjectResolver = std::function<Object*(uint64_t id, ValueType type)>;

// Inserts the entries into a stripe that does not hold their keys yet.
Status DecodeStripe(Keyspace& keyspace, Stripe& stripe, std::string_view bytes,
                    const ObjectResolver& resolve);

// One decoded entry, for tools that read a section without a keyspace. Views point into the
// section's bytes.
struct DecodedEntry {
  uint32_t db = 0;
  ValueType type = ValueType::kString;
  bool is_int = false;
  std::string_view key;
  std::string_view bytes;
  int64_t integer = 0;
  uint64_t object_id = 0;  // 0: not a link
  int64_t expire_at_ms = 0;
};
// on_db is told each database's entry count before its entries.
Status VisitStripeBytes(std::string_view bytes,
                        const std::function<Status(uint32_t db, uint64_t entries)>& on_db,
                        const std::function<Status(const DecodedEntry&)>& on_entry);

}  // namespace hotkv
