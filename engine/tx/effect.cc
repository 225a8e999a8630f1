#include "engine/tx/effect.h"

#include <limits>

#include <fmt/format.h>

#include "engine/tx/epoch.h"

namespace hotkv {

namespace {

constexpr uint32_t kDbEscape = 7;
constexpr uint32_t kDbMax = 1u << 20;

std::string Printable(std::string_view bytes) {
  std::string out;
  for (const char c : bytes.substr(0, 64)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      out.push_back(c);
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  if (bytes.size() > 64) out += fmt::format("... ({} bytes)", bytes.size());
  return out;
}

// Reads the operands that follow the key or the object id.
void DecodeOperands(ByteReader* reader, Effect* out) {
  switch (out->kind) {
    case EffectKind::kSetStringExpire:
      out->expire_at_ms = static_cast<int64_t>(reader->Varint());
      out->bytes = reader->LengthPrefixed();
      break;
    case EffectKind::kSetString:
    case EffectKind::kAppend:
      out->bytes = reader->LengthPrefixed();
      break;
    case EffectKind::kSetIntExpire:
      out->expire_at_ms = static_cast<int64_t>(reader->Varint());
      out->integer = UnZigZag(reader->Varint());
      break;
    case EffectKind::kSetInt:
      out->integer = UnZigZag(reader->Varint());
      break;
    case EffectKind::kDelete:
      break;
    case EffectKind::kExpire:
      out->expire_at_ms = static_cast<int64_t>(reader->Varint());
      break;
    case EffectKind::kSetRange:
      out->number = reader->Varint();
      out->bytes = reader->LengthPrefixed();
      break;
    case EffectKind::kFlushDb:
      out->number = reader->Varint();
      break;
    case EffectKind::kSwapDb:
      out->number = reader->Varint();
      out->other_db = static_cast<uint32_t>(reader->Varint());
      break;
    case EffectKind::kLink:
      out->type = reader->Le<uint8_t>();
      out->object_id = reader->Varint();
      out->expire_at_ms = static_cast<int64_t>(reader->Varint());
      break;
    case EffectKind::kRestore:
      out->type = reader->Le<uint8_t>();
      out->expire_at_ms = static_cast<int64_t>(reader->Varint());
      out->bytes = reader->LengthPrefixed();
      break;
    case EffectKind::kObjectCreate:
      out->type = reader->Le<uint8_t>();
      out->bytes = reader->LengthPrefixed();
      break;
    case EffectKind::kObjectDrop:
      break;
    case EffectKind::kObjectChange:
      out->bytes = reader->LengthPrefixed();
      break;
  }
}

char* EncodeOperands(const Effect& effect, char* out) {
  switch (effect.kind) {
    case EffectKind::kSetStringExpire:
      out = EncodeVarint(out, static_cast<uint64_t>(effect.expire_at_ms));
      break;
    case EffectKind::kSetIntExpire:
      out = EncodeVarint(out, static_cast<uint64_t>(effect.expire_at_ms));
      out = EncodeVarint(out, ZigZag(effect.integer));
      break;
    case EffectKind::kSetInt:
      out = EncodeVarint(out, ZigZag(effect.integer));
      break;
    case EffectKind::kExpire:
      out = EncodeVarint(out, static_cast<uint64_t>(effect.expire_at_ms));
      break;
    case EffectKind::kSetRange:
    case EffectKind::kFlushDb:
      out = EncodeVarint(out, effect.number);
      break;
    case EffectKind::kSwapDb:
      out = EncodeVarint(out, effect.number);
      out = EncodeVarint(out, effect.other_db);
      break;
    case EffectKind::kLink:
      *out++ = static_cast<char>(effect.type);
      out = EncodeVarint(out, effect.object_id);
      out = EncodeVarint(out, static_cast<uint64_t>(effect.expire_at_ms));
      break;
    case EffectKind::kRestore:
      *out++ = static_cast<char>(effect.type);
      out = EncodeVarint(out, static_cast<uint64_t>(effect.expire_at_ms));
      break;
    case EffectKind::kObjectCreate:
      *out++ = static_cast<char>(effect.type);
      break;
    case EffectKind::kSetString:
    case EffectKind::kDelete:
    case EffectKind::kAppend:
    case EffectKind::kObjectDrop:
    case EffectKind::kObjectChange:
      break;
  }
  return out;
}

char* EncodeBytes(char* out, std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  return out + bytes.size();
}

constexpr bool HasBytes(EffectKind kind) {
  return kind == EffectKind::kSetString || kind == EffectKind::kSetStringExpire ||
         kind == EffectKind::kAppend || kind == EffectKind::kSetRange ||
         kind == EffectKind::kRestore || kind == EffectKind::kObjectCreate ||
         kind == EffectKind::kObjectChange;
}

}  // namespace

bool DecodeEffect(ByteReader* reader, uint64_t epoch, Effect* out) {
  *out = Effect{};
  const uint64_t count = reader->Varint();
  out->worker = reader->Le<uint8_t>();
  const auto head = reader->Le<uint8_t>();
  const auto kind = static_cast<uint8_t>(head & 0x1f);
  uint64_t db = head >> 5;
  if (db == kDbEscape) db = reader->Varint();
  if (!reader->ok() || count > kLsnCountMask || kind == 0 || kind > kEffectKindMax || db >= kDbMax) {
    return false;
  }
  out->lsn = FirstLsnOf(epoch) + count;
  out->kind = static_cast<EffectKind>(kind);
  out->db = static_cast<uint32_t>(db);
  if (IsKeyedEffect(out->kind)) out->key = reader->LengthPrefixed();
  if (IsObjectEffect(out->kind)) out->object_id = reader->Varint();
  DecodeOperands(reader, out);
  return reader->ok() && out->expire_at_ms >= 0 && out->other_db < kDbMax;
}

EncodedTail EncodeEffectTail(const Effect& effect, char* out) {
  const uint32_t db = effect.db < kDbEscape ? effect.db : kDbEscape;
  *out++ = static_cast<char>(static_cast<uint32_t>(effect.kind) | db << 5);
  if (db == kDbEscape) out = EncodeVarint(out, effect.db);
  if (IsKeyedEffect(effect.kind)) {
    out = EncodeBytes(EncodeVarint(out, effect.key.size()), effect.key);
  }
  if (IsObjectEffect(effect.kind)) out = EncodeVarint(out, effect.object_id);
  out = EncodeOperands(effect, out);
  if (!HasBytes(effect.kind)) return {out, false};
  out = EncodeVarint(out, effect.bytes.size());
  if (effect.bytes.size() > kInlineOperandBytesMax) return {out, true};
  return {EncodeBytes(out, effect.bytes), false};
}

bool AppendEffectTail(const Effect& effect, std::string* out) {
  const size_t before = out->size();
  out->resize(before + EffectTailBytesMax(effect));
  const EncodedTail tail = EncodeEffectTail(effect, out->data() + before);
  out->resize(static_cast<size_t>(tail.end - out->data()));
  return tail.large;
}

std::string EffectToString(const Effect& e) {
  std::string what;
  switch (e.kind) {
    case EffectKind::kSetString:
    case EffectKind::kSetStringExpire: what = fmt::format("SET \"{}\"", Printable(e.bytes)); break;
    case EffectKind::kSetInt:
    case EffectKind::kSetIntExpire: what = fmt::format("SETINT {}", e.integer); break;
    case EffectKind::kDelete: what = "DELETE"; break;
    case EffectKind::kExpire: what = e.expire_at_ms ? "EXPIRE" : "PERSIST"; break;
    case EffectKind::kAppend: what = fmt::format("APPEND \"{}\"", Printable(e.bytes)); break;
    case EffectKind::kSetRange:
      what = fmt::format("SETRANGE {} \"{}\"", e.number, Printable(e.bytes));
      break;
    case EffectKind::kFlushDb: what = fmt::format("FLUSHDB stripe {}", e.number); break;
    case EffectKind::kSwapDb:
      what = fmt::format("SWAPDB stripe {} with {}", e.number, e.other_db);
      break;
    case EffectKind::kLink: what = fmt::format("LINK object {} type {}", e.object_id, e.type); break;
    case EffectKind::kRestore:
      what = fmt::format("RESTORE type {} [{} bytes]", e.type, e.bytes.size());
      break;
    case EffectKind::kObjectCreate: what = fmt::format("OBJECT-CREATE type {}", e.type); break;
    case EffectKind::kObjectDrop: what = "OBJECT-DROP"; break;
    case EffectKind::kObjectChange:
      what = fmt::format("OBJECT-CHANGE [{} bytes]", e.bytes.size());
      break;
  }
  std::string out = fmt::format("lsn {}.{} w{} db{}", EpochOf(e.lsn), e.lsn & kLsnCountMask, e.worker,
                                e.db);
  if (IsKeyedEffect(e.kind)) out += fmt::format(" \"{}\"", Printable(e.key));
  if (IsObjectEffect(e.kind)) out += fmt::format(" object {}", e.object_id);
  out += " " + what;
  if (e.expire_at_ms) out += fmt::format(" expire-at {}", e.expire_at_ms);
  return out;
}

}  // namespace hotkv
