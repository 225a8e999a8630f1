// Engine::Replay: effects back into the keyspace, at recovery.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/tx/engine.h"

namespace hotkv {

namespace {

// What a keyed effect works on.
struct Target {
  Keyspace& keyspace;
  Stripe& stripe;
  uint32_t db;
  KeyRef key;
  Entry** slot;

  void Put(Entry* entry) const {
    if (entry->has_expiry()) {
      stripe.expire_check_at_ms = std::min(stripe.expire_check_at_ms, entry->expire_at_ms());
    }
    if (slot == nullptr) {
      keyspace.Insert(stripe, db, key, entry);
    } else {
      keyspace.Replace(stripe, db, slot, entry, Keyspace::Old::kDestroy);
    }
  }
  void PutString(std::string_view bytes, int64_t expire_at_ms) const {
    Entry::Spec spec{.key = key.key, .bytes = bytes, .expire_at_ms = expire_at_ms};
    if (bytes.size() > kInlineValueBytesMax) {
      spec.form = Entry::Form::kRef;
      spec.pointer = SharedBlock::Copy(bytes);
    }
    Put(Entry::Create(spec));
  }
};

Status WrongTarget(const Effect& effect) {
  return Status::Corruption(fmt::format("effect does not fit its target: {}", EffectToString(effect)));
}

Status ReplayExpire(const Target& target, const Effect& effect) {
  if (target.slot == nullptr) return WrongTarget(effect);
  Entry::Spec spec = (*target.slot)->Describe();
  spec.expire_at_ms = effect.expire_at_ms;
  Entry* fresh = Entry::Create(spec);
  target.keyspace.Replace(target.stripe, target.db, target.slot, fresh,
                          Keyspace::Old::kDestroyShell);
  if (effect.expire_at_ms != 0) {
    target.stripe.expire_check_at_ms =
        std::min(target.stripe.expire_check_at_ms, effect.expire_at_ms);
  }
  return Status::Ok();
}

// kAppend and kSetRange: splices bytes into the string at `offset` (its end for kAppend).
Status ReplaySplice(const Target& target, const Effect& effect) {
  if (target.slot != nullptr && (*target.slot)->type() != ValueType::kString) {
    return WrongTarget(effect);
  }
  char scratch[24];
  std::string value;
  int64_t expire_at_ms = 0;
  if (target.slot != nullptr) {
    value = (*target.slot)->StringValue(scratch);
    expire_at_ms = (*target.slot)->expire_at_ms();
  }
  const size_t offset = effect.kind == EffectKind::kAppend ? value.size() : effect.number;
  if (offset + effect.bytes.size() > UINT32_MAX) return WrongTarget(effect);
  if (value.size() < offset + effect.bytes.size()) value.resize(offset + effect.bytes.size());
  value.replace(offset, effect.bytes.size(), effect.bytes);
  target.PutString(value, expire_at_ms);
  return Status::Ok();
}

Status ReplayLink(Engine& engine, const Target& target, const Effect& effect) {
  ObjectRef<Object> object = engine.objects().Find(effect.object_id);
  // An object that a later effect of the log drops is never made at recovery: then its link leaves nothing either, and
  // the effect that removes the key follows.
  if (!object) {
    if (target.slot != nullptr) {
      target.keyspace.Erase(target.stripe, target.db, target.key, target.slot);
    }
    return Status::Ok();
  }
  if (static_cast<uint8_t>(object->type()) != effect.type) return WrongTarget(effect);
  target.Put(Entry::Create({.key = target.key.key,
                            .type = object->type(),
                            .form = Entry::Form::kRef,
                            .pointer = object.Release(),
                            .expire_at_ms = effect.expire_at_ms}));
  return Status::Ok();
}

Status ReplayKeyed(Engine& engine, const Target& target, const Effect& effect) {
  switch (effect.kind) {
    case EffectKind::kSetString:
    case EffectKind::kSetStringExpire:
      target.PutString(effect.bytes, effect.expire_at_ms);
      return Status::Ok();
    case EffectKind::kSetInt:
    case EffectKind::kSetIntExpire:
      target.Put(Entry::Create({.key = target.key.key,
                                .form = Entry::Form::kInt,
                                .integer = effect.integer,
                                .expire_at_ms = effect.expire_at_ms}));
      return Status::Ok();
    case EffectKind::kDelete:
      if (target.slot != nullptr) {
        target.keyspace.Erase(target.stripe, target.db, target.key, target.slot);
      }
      return Status::Ok();
    case EffectKind::kExpire:
      return ReplayExpire(target, effect);
    case EffectKind::kAppend:
    case EffectKind::kSetRange:
      return ReplaySplice(target, effect);
    case EffectKind::kLink:
      return ReplayLink(engine, target, effect);
    default:
      return Status::Unsupported(fmt::format("effect of an unknown type: {}", EffectToString(effect)));
  }
}

}  // namespace

Status Engine::Replay(const Effect& effect) {
  if (IsObjectEffect(effect.kind)) {
    return Status::Internal("object effects are replayed by their object");
  }
  const uint32_t databases = keyspace_.databases();
  if (effect.db >= databases || effect.other_db >= databases) {
    return Status::OutOfRange(
        fmt::format("database {} in the log, but only {} are configured",
                    std::max(effect.db, effect.other_db), databases));
  }
  if (IsStripeWideEffect(effect.kind)) {
    if (effect.number >= keyspace_.stripe_count()) return WrongTarget(effect);
    Stripe& stripe = keyspace_.stripe(static_cast<uint32_t>(effect.number));
    stripe.lsn = std::max(stripe.lsn, effect.lsn);
    if (effect.kind == EffectKind::kSwapDb) {
      keyspace_.SwapTables(stripe, effect.db, effect.other_db);
    } else if (Table* table = keyspace_.TakeTable(stripe, effect.db)) {
      Keyspace::FreeTable(table);
    }
    return Status::Ok();
  }
  const KeyRef key = keyspace_.MakeRef(effect.key);
  Stripe& stripe = keyspace_.stripe(key.stripe);
  stripe.lsn = std::max(stripe.lsn, effect.lsn);
  return ReplayKeyed(*this, {keyspace_, stripe, effect.db, key, keyspace_.Find(stripe, effect.db, key)},
                     effect);
}

}  // namespace hotkv
