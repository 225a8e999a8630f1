// Effects: what a write did, in the form in which the log keeps it. Deterministic, absolute (no "increment", no relative
// time), and each touches one key, one object, or one database of one stripe, so that a stripe or an object can be
// replayed with no other present.
//
// Body of a record, in memory and in the log (docs/formats/log.md):
//   varint  count in the epoch (lsn & kLsnCountMask; the epoch is the block's)
//   u8      worker (an lsn is unique together with it)
//   u8      kind in the low 5 bits, database in the high 3 (7: the database follows as a varint)
//   keyed kinds: varint key length, key; then the operands of the kind, listed below. A byte operand is a varint length
//   and bytes.
//
// A kind's number and meaning never change within a format version.
// Change together: docs/formats/log.md, effect.cc, tests/golden.
//
// Thread rules: values only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/coding.h"
#include "engine/base/shared_block.h"

namespace hotkv {

enum class EffectKind : uint8_t {
  kSetString = 1,        // key; value
  kSetStringExpire = 2,  // key; varint expire_at_ms; value
  kSetInt = 3,           // key; zigzag varint value
  kSetIntExpire = 4,     // key; varint expire_at_ms; zigzag varint value
  kDelete = 5,           // key
  kExpire = 6,           // key; varint expire_at_ms, 0: persist
  kAppend = 7,           // key; bytes to append to an existing or missing string
  kSetRange = 8,         // key; varint offset; bytes (a gap is filled with zeros)
  kFlushDb = 9,          // varint stripe: its database is emptied
  kSwapDb = 10,          // varint stripe; varint other database
  kLink = 11,            // key; u8 type; varint object id; varint expire_at_ms (0: none)
  kRestore = 12,         // key; u8 type; varint expire_at_ms (0: none); encoded value
  kObjectCreate = 13,    // varint object id; u8 type; definition bytes
  kObjectDrop = 14,      // varint object id
  kObjectChange = 15,    // varint object id; bytes in the type's own form
};
inline constexpr uint8_t kEffectKindMax = 15;

inline constexpr size_t kInlineOperandBytesMax = 16 * 1024;
inline constexpr unsigned kStripeGroups = 64;

inline constexpr bool IsObjectEffect(EffectKind kind) { return kind >= EffectKind::kObjectCreate; }
inline constexpr bool IsStripeWideEffect(EffectKind kind) {
  return kind == EffectKind::kFlushDb || kind == EffectKind::kSwapDb;
}
inline constexpr bool IsKeyedEffect(EffectKind kind) {
  return !IsObjectEffect(kind) && !IsStripeWideEffect(kind);
}

// Group of a stripe: by the stripe number's top bits. Group of an object: id mod 64.
inline constexpr unsigned GroupOfStripe(uint32_t stripe, unsigned stripe_bits) {
  return stripe_bits >= 6 ? stripe >> (stripe_bits - 6) : stripe << (6 - stripe_bits);
}
inline constexpr unsigned GroupOfObject(uint64_t object_id) {
  return static_cast<unsigned>(object_id % kStripeGroups);
}

// A decoded record. Views point into the bytes that it was decoded from.
struct Effect {
  uint64_t lsn = 0;
  uint32_t worker = 0;
  uint32_t db = 0;
  EffectKind kind = EffectKind::kDelete;
  uint8_t type = 0;            // kLink, kRestore, kObjectCreate
  std::string_view key;        // keyed kinds
  std::string_view bytes;      // value, appended bytes, encoded value, definition, change
  int64_t integer = 0;         // kSetInt*
  int64_t expire_at_ms = 0;    // 0: none
  uint64_t object_id = 0;      // object kinds, kLink
  uint64_t number = 0;         // stripe of kFlushDb/kSwapDb, offset of kSetRange
  uint32_t other_db = 0;       // kSwapDb
};

// Decodes the next record of a group body of `epoch`'s block; false when the bytes are not one (reader->ok() is false
// or a field is out of range).
bool DecodeEffect(ByteReader* reader, uint64_t epoch, Effect* out);

// Encodes everything of an effect but its stamp (count, worker): kind and database, key, operands. With a large byte
// operand the encoding ends after the operand's length, and the caller hands the bytes over apart.
struct EncodedTail {
  char* end;
  bool large;
};
// `out` has room for EffectTailBytesMax(effect).
EncodedTail EncodeEffectTail(const Effect& effect, char* out);
inline size_t EffectTailBytesMax(const Effect& effect) {
  constexpr size_t kHead = 2;      // kind and database; type
  constexpr size_t kVarints = 6;   // database, key length, and at most three operands and a length
  const size_t inlined = effect.bytes.size() <= kInlineOperandBytesMax ? effect.bytes.size() : 0;
  return kHead + kVarints * kVarint64BytesMax + effect.key.size() + inlined;
}
// The same onto a string; returns EncodedTail::large.
bool AppendEffectTail(const Effect& effect, std::string* out);

// "lsn 812.5 w0 db0 SET key [3 bytes]" for `hotkv-tool log dump`; bytes are shortened and escaped.
std::string EffectToString(const Effect& effect);

}  // namespace hotkv
