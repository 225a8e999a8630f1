#include "engine/tx/txn.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/cycle_clock.h"
#include "engine/base/sync_point.h"
#include "engine/tx/client_state.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {

std::string WatchName(uint32_t db, std::string_view key) {
  std::string name = std::to_string(db);
  name.push_back(':');
  name.append(key);
  return name;
}

size_t GrownCapacity(size_t needed) {
  constexpr size_t kDoublingMax = size_t{1} << 20;  // beyond, as Redis's strings do, one MiB ahead
  return needed < kDoublingMax ? needed * 2 : needed + kDoublingMax;
}

}  // namespace

Keyspace& Txn::keyspace() { return engine_->keyspace(); }

Stripe& Txn::StripeOf(const KeyRef& key) {
  Stripe& stripe = engine_->keyspace().stripe(key.stripe);
  HOTKV_DCHECK(holds_all_ || stripe.lock.is_locked());
  return stripe;
}

void Txn::Begin(int64_t now_ms) {
  HOTKV_DCHECK(locked_.empty() && effects_.empty());
  now_ms_ = now_ms;
  lfu_ = engine_->lfu_policy.load(std::memory_order_relaxed);
  holds_all_ = false;
  touched_lsn_ = 0;
  found_key_ = nullptr;
}

void Txn::LockKey(const KeyRef& key) {
  Stripe& stripe = engine_->keyspace().stripe(key.stripe);
  if (!stripe.lock.TryLock()) [[unlikely]]
    LockContended(stripe);
  locked_.push_back(&stripe);
}

void Txn::LockKeys(std::span<const KeyRef> keys) {
  for (const KeyRef& key : keys) locked_.push_back(&engine_->keyspace().stripe(key.stripe));
  std::sort(locked_.begin(), locked_.end());
  locked_.erase(std::unique(locked_.begin(), locked_.end()), locked_.end());
  for (Stripe* stripe : locked_) {
    if (!stripe->lock.TryLock()) [[unlikely]]
      LockContended(*stripe);
  }
}

void Txn::StopWorld() {
  HOTKV_CHECK(locked_.empty());
  const uint64_t start = CycleNow();
  engine_->gate().Stop(worker_->id);
  const uint64_t ns = CyclesToNs(CycleNow() - start);
  worker_->blocked_ns += ns;
  worker_->AddWait(WaitCause::kStop, ns);
  holds_all_ = true;
}

void Txn::LockContended(Stripe& stripe) {
  const uint64_t start = CycleNow();
  stripe.lock.Lock();
  const uint64_t ns = CyclesToNs(CycleNow() - start);
  worker_->blocked_ns += ns;
  worker_->AddWait(WaitCause::kStripe, ns);
}

uint64_t Txn::CommitAndUnlock() {
  uint64_t newest = touched_lsn_;
  if (!effects_.empty()) {
    newest = std::max(newest, Publish());
  } else if (holds_all_) {
    for (unsigned i = 0; i < engine_->workers(); ++i) {
      newest = std::max(newest, engine_->worker(i).last_lsn);
    }
  } else {
    for (const Stripe* stripe : locked_) newest = std::max(newest, stripe->lsn);
  }
  for (Stripe* stripe : locked_) stripe->lock.Unlock();
  locked_.clear();
  if (holds_all_) {
    holds_all_ = false;
    engine_->gate().Resume();
  }
  return EpochOf(newest);
}

uint64_t Txn::Publish() {
  uint64_t newest = worker_->last_lsn;
  for (const Stripe* stripe : locked_) newest = std::max(newest, stripe->lsn);
  if (holds_all_) {
    // All workers are stopped, so their last lsns bound every stripe's.
    for (unsigned i = 0; i < engine_->workers(); ++i) {
      newest = std::max(newest, engine_->worker(i).last_lsn);
    }
  }
  EpochClock& epochs = engine_->epochs();
  HOTKV_SYNC_POINT("txn.locked");
  const uint64_t epoch = epochs.Enter(worker_->id);
  HOTKV_SYNC_POINT("txn.inside");
  const uint64_t lsn = std::max(newest, FirstLsnOf(epoch)) + 1;
  HOTKV_CHECK(EpochOf(lsn) == epoch);
  if (engine_->log_effects.load(std::memory_order_relaxed)) AppendEffects(lsn, epoch);
  epochs.Leave(worker_->id);
  HOTKV_SYNC_POINT("txn.published");
  worker_->last_lsn = lsn;
  for (Stripe* stripe : locked_) {
    stripe->lsn = lsn;
    ++stripe->changes;
  }
  if (holds_all_) {
    Keyspace& keyspace = engine_->keyspace();
    for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
      keyspace.stripe(i).lsn = lsn;
      ++keyspace.stripe(i).changes;
    }
  }
  AddRelaxed(worker_->changes, effects_.size());
  tails_.Clear();
  effects_.clear();
  return lsn;
}

void Txn::AppendEffects(uint64_t lsn, uint64_t epoch) {
  EffectBuffer& buffer = engine_->epochs().Buffer(worker_->id, epoch);
  for (PendingEffect& effect : effects_) {
    constexpr size_t kStampBytesMax = kVarint64BytesMax + 1;
    using Header = EffectBuffer::RecordHeader;
    char* const record = buffer.bytes.Extend(sizeof(Header) + kStampBytesMax + effect.size);
    char* const body = record + sizeof(Header);
    char* out = EncodeVarint(body, lsn & kLsnCountMask);
    *out++ = static_cast<char>(worker_->id);
    std::memcpy(out, tails_.data() + effect.offset, effect.size);
    out += effect.size;
    Header header;
    header.size = static_cast<uint32_t>(out - body);
    header.group = effect.group;
    if (effect.large) {
      buffer.large_bytes += effect.large.get()->size();
      buffer.large.push_back(std::move(effect.large));
      header.large = static_cast<uint32_t>(buffer.large.size());
    }
    std::memcpy(record, &header, sizeof(header));
    buffer.bytes.TrimTo(out);
  }
  engine_->epochs().NoteAppended(worker_->id, buffer.size_bytes());
}

void Txn::Record(const Effect& effect, unsigned group, SharedBlock* large) {
  PendingEffect& pending = effects_.emplace_back();
  pending.offset = static_cast<uint32_t>(tails_.size());
  const EncodedTail tail = EncodeEffectTail(effect, tails_.Extend(EffectTailBytesMax(effect)));
  tails_.TrimTo(tail.end);
  if (tail.large) {
    pending.large = large != nullptr ? SharedBlockRef::Share(large)
                                     : SharedBlockRef(SharedBlock::Copy(effect.bytes));
  }
  pending.size = static_cast<uint32_t>(tails_.size()) - pending.offset;
  pending.group = static_cast<uint16_t>(group);
}

void Txn::RecordKeyed(const Effect& effect, const KeyRef& key, Why why, SharedBlock* large) {
  Record(effect, GroupOfStripe(key.stripe, engine_->keyspace().options().stripe_bits), large);
  Stripe& stripe = engine_->keyspace().stripe(key.stripe);
  NotifyWatchers(stripe, effect.db, key.key, why);
}

void Txn::RecordEntry(uint32_t db, const KeyRef& key, const Entry* entry) {
  Effect effect;
  effect.db = db;
  effect.key = key.key;
  effect.expire_at_ms = entry->expire_at_ms();
  SharedBlock* large = nullptr;
  if (entry->type() != ValueType::kString) {
    effect.kind = EffectKind::kLink;
    effect.type = static_cast<uint8_t>(entry->type());
    effect.object_id = entry->object()->id();
  } else if (entry->is_int()) {
    effect.kind = entry->has_expiry() ? EffectKind::kSetIntExpire : EffectKind::kSetInt;
    effect.integer = entry->int_value();
  } else {
    effect.kind = entry->has_expiry() ? EffectKind::kSetStringExpire : EffectKind::kSetString;
    if (entry->form() == Entry::Form::kRef) large = entry->block();
    effect.bytes = large != nullptr ? large->view() : entry->inline_value();
  }
  RecordKeyed(effect, key, Why::kChange, large);
}

void Txn::NotifyWatchers(Stripe& stripe, uint32_t db, std::string_view key, Why why) {
  StripeExtra* extra = stripe.extra.load(std::memory_order_relaxed);
  if (extra == nullptr || extra->watchers.empty()) [[likely]] return;
  const auto found = extra->watchers.find(WatchName(db, key));
  if (found == extra->watchers.end()) return;
  for (const Watcher& watcher : found->second) {
    if (why == Why::kExpiry && watcher.was_expired) continue;
    watcher.state->dirty.store(true, std::memory_order_relaxed);
  }
}

bool Txn::CanExpire() const {
  return !engine_->disk_denied.load(std::memory_order_relaxed) &&
         !engine_->loading.load(std::memory_order_relaxed);
}

Entry** Txn::FindSlot(Stripe& stripe, uint32_t db, const KeyRef& key) {
  if (found_key_ == key.key.data() && found_hash_ == key.hash && found_db_ == db) {
    HOTKV_DCHECK((*found_slot_)->key() == key.key);
    return found_slot_;
  }
  Entry** slot = engine_->keyspace().Find(stripe, db, key);
  if (slot == nullptr) return nullptr;
  found_key_ = key.key.data();
  found_hash_ = key.hash;
  found_db_ = db;
  found_slot_ = slot;
  return slot;
}

Entry** Txn::LiveSlot(uint32_t db, const KeyRef& key) {
  Stripe& stripe = StripeOf(key);
  Entry** slot = FindSlot(stripe, db, key);
  if (slot == nullptr || !(*slot)->ExpiredAt(now_ms_)) [[likely]] return slot;
  if (CanExpire()) {
    AddRelaxed(worker_->expired_keys, 1);
    DropSlot(db, key, slot, Why::kExpiry);
  }
  return nullptr;
}

Entry* Txn::Find(uint32_t db, const KeyRef& key) {
  Entry** slot = LiveSlot(db, key);
  if (slot == nullptr) {
    AddRelaxed(worker_->misses, 1);
    return nullptr;
  }
  AddRelaxed(worker_->hits, 1);
  if (touch_) [[likely]] Touch(*slot);
  return *slot;
}

Entry* Txn::Peek(uint32_t db, const KeyRef& key) {
  Entry** slot = LiveSlot(db, key);
  return slot == nullptr ? nullptr : *slot;
}

void Txn::TouchCounter(Entry* entry) {
  const uint8_t counter = entry->access_clock();
  entry->set_access_clock(engine_->eviction().Accessed(counter, worker_->random.Next()));
}

void Txn::Expire(uint32_t db, const KeyRef& key) { LiveSlot(db, key); }

Txn::Ended Txn::RemoveEnded(uint32_t db, const KeyRef& key, size_t max) {
  Ended ended;
  Entry** slot = LiveSlot(db, key);
  if (slot == nullptr || (*slot)->type() == ValueType::kString) return ended;
  Object* object = (*slot)->object();
  std::vector<std::string> changes;
  const bool key_goes = object->RemoveEnded(max, &changes);
  ended.removed = changes.size();
  ended.next_ms = object->NextEndMs();
  for (const std::string& change : changes) RecordObjectChange(key, object->id(), change);
  if (key_goes && ended.next_ms == Object::kNeverMs) DropSlot(db, key, slot, Why::kExpiry);
  return ended;
}

void Txn::NotePartEnds(const KeyRef& key, int64_t at_ms) {
  Stripe& stripe = StripeOf(key);
  stripe.expire_check_at_ms = std::min(stripe.expire_check_at_ms, at_ms);
}

void Txn::DropObject(uint64_t object_id, uint32_t db) {
  Effect effect;
  effect.kind = EffectKind::kObjectDrop;
  effect.db = db;
  effect.object_id = object_id;
  Record(effect, GroupOfObject(object_id), nullptr);
  Object* object = engine_->objects().Take(object_id).Release();
  if (object == nullptr) return;
  ObjectHost* host = engine_->object_host_or_null();
  engine_->lazy_free().Push([object, host, object_id] {
    object->Unref();
    if (host != nullptr) host->ForgetFolder(object_id);
  });
}

void Txn::ReleaseValueOf(const Entry* entry, uint32_t db) {
  if (entry->form() != Entry::Form::kRef) return;
  if (entry->type() == ValueType::kString) {
    entry->block()->Unref();
    return;
  }
  Object* object = entry->object();
  DropObject(object->id(), db);
  object->Unref();
}

void Txn::DropSlot(uint32_t db, const KeyRef& key, Entry** slot, Why why) {
  Effect effect;
  effect.kind = EffectKind::kDelete;
  effect.db = db;
  effect.key = key.key;
  RecordKeyed(effect, key, why);
  found_key_ = nullptr;
  Entry* entry = engine_->keyspace().Take(StripeOf(key), db, key, slot);
  ReleaseValueOf(entry, db);
  Entry::DestroyShell(entry);
}

void Txn::Put(uint32_t db, const KeyRef& key, Entry** slot, Entry* entry) {
  Keyspace& keyspace = engine_->keyspace();
  Stripe& stripe = StripeOf(key);
  if (entry->has_expiry() && entry->expire_at_ms() < stripe.expire_check_at_ms) {
    stripe.expire_check_at_ms = entry->expire_at_ms();
  }
  if (entry->type() != ValueType::kString) NotePartEnds(key, entry->object()->NextEndMs());
  if (slot == nullptr) {
    found_key_ = nullptr;
    keyspace.Insert(stripe, db, key, entry);
    return;
  }
  if (lfu_) entry->set_access_clock((*slot)->access_clock());  // a new value, the same key
  // The old value is accounted for by Replace, so it must live until then.
  const bool is_object = (*slot)->type() != ValueType::kString;
  Object* object = is_object ? (*slot)->object() : nullptr;
  keyspace.Replace(stripe, db, slot, entry,
                   is_object ? Keyspace::Old::kDestroyShell : Keyspace::Old::kDestroy);
  if (!is_object) return;
  DropObject(object->id(), db);
  object->Unref();
}

void Txn::SetString(uint32_t db, const KeyRef& key, std::string_view value, int64_t expire_at_ms) {
  if (value.size() > kInlineValueBytesMax) {
    SetBlock(db, key, SharedBlock::Copy(value), expire_at_ms);
    return;
  }
  Stripe& stripe = StripeOf(key);
  Entry** slot = FindSlot(stripe, db, key);
  const bool same_shape = slot != nullptr && (*slot)->has_expiry() == (expire_at_ms != 0);
  if (same_shape && (*slot)->TryReplaceInline(value)) {
    if (expire_at_ms != 0) {
      (*slot)->set_expire_at_ms(expire_at_ms);
      stripe.expire_check_at_ms = std::min(stripe.expire_check_at_ms, expire_at_ms);
    }
    Touch(*slot);
  } else {
    Put(db, key, slot,
        Entry::Create({.key = key.key,
                       .bytes = value,
                       .expire_at_ms = expire_at_ms,
                       .access_clock = AccessClock()}));
  }
  Effect effect;
  effect.kind = expire_at_ms != 0 ? EffectKind::kSetStringExpire : EffectKind::kSetString;
  effect.db = db;
  effect.key = key.key;
  effect.bytes = value;
  effect.expire_at_ms = expire_at_ms;
  RecordKeyed(effect, key);
}

void Txn::SetBlock(uint32_t db, const KeyRef& key, SharedBlock* block, int64_t expire_at_ms) {
  Entry** slot = FindSlot(StripeOf(key), db, key);
  Entry* entry = Entry::Create({.key = key.key,
                                .form = Entry::Form::kRef,
                                .pointer = block,
                                .expire_at_ms = expire_at_ms,
                                .access_clock = AccessClock()});
  Put(db, key, slot, entry);
  RecordEntry(db, key, entry);
}

void Txn::SetInt(uint32_t db, const KeyRef& key, int64_t value, int64_t expire_at_ms) {
  Stripe& stripe = StripeOf(key);
  Entry** slot = FindSlot(stripe, db, key);
  if (slot != nullptr && (*slot)->is_int() && (*slot)->has_expiry() == (expire_at_ms != 0)) {
    (*slot)->set_int_value(value);
    Touch(*slot);
    if (expire_at_ms != 0) {
      (*slot)->set_expire_at_ms(expire_at_ms);
      stripe.expire_check_at_ms = std::min(stripe.expire_check_at_ms, expire_at_ms);
    }
  } else {
    Put(db, key, slot,
        Entry::Create({.key = key.key,
                       .form = Entry::Form::kInt,
                       .integer = value,
                       .expire_at_ms = expire_at_ms,
                       .access_clock = AccessClock()}));
  }
  Effect effect;
  effect.kind = expire_at_ms != 0 ? EffectKind::kSetIntExpire : EffectKind::kSetInt;
  effect.db = db;
  effect.key = key.key;
  effect.integer = value;
  effect.expire_at_ms = expire_at_ms;
  RecordKeyed(effect, key);
}

SharedBlock* Txn::OwnBlock(Stripe& stripe, uint32_t db, Entry** slot, size_t capacity) {
  Entry* entry = *slot;
  if (entry->form() == Entry::Form::kRef && entry->block()->unique() &&
      entry->block()->capacity() >= capacity) {
    return entry->block();
  }
  char scratch[24];
  const std::string_view old = entry->StringValue(scratch);
  SharedBlock* block = SharedBlock::Make(old.size(), std::max(capacity, old.size()));
  std::memcpy(block->data(), old.data(), old.size());
  Entry* fresh = Entry::Create({.key = entry->key(),
                                .form = Entry::Form::kRef,
                                .pointer = block,
                                .expire_at_ms = entry->expire_at_ms(),
                                .access_clock = AccessClock()});
  engine_->keyspace().Replace(stripe, db, slot, fresh, Keyspace::Old::kDestroy);
  return block;
}

size_t Txn::Append(uint32_t db, const KeyRef& key, std::string_view bytes) {
  Entry** slot = LiveSlot(db, key);
  if (slot == nullptr) {
    SetString(db, key, bytes, 0);
    return bytes.size();
  }
  Stripe& stripe = StripeOf(key);
  char scratch[24];
  const std::string_view old = (*slot)->StringValue(scratch);
  const size_t size = old.size() + bytes.size();
  if (size > kInlineValueBytesMax) {
    const bool fits = (*slot)->form() == Entry::Form::kRef && (*slot)->block()->capacity() >= size;
    SharedBlock* block = OwnBlock(stripe, db, slot, fits ? size : GrownCapacity(size));
    std::memcpy(block->data() + block->size(), bytes.data(), bytes.size());
    block->set_size(size);
  } else {
    std::string joined(old);
    joined.append(bytes);
    if (!(*slot)->TryReplaceInline(joined)) {
      Put(db, key, slot,
          Entry::Create({.key = key.key,
                         .bytes = joined,
                         .expire_at_ms = (*slot)->expire_at_ms(),
                         .access_clock = AccessClock()}));
    }
  }
  Effect effect;
  effect.kind = EffectKind::kAppend;
  effect.db = db;
  effect.key = key.key;
  effect.bytes = bytes;
  RecordKeyed(effect, key);
  return size;
}

size_t Txn::SetRange(uint32_t db, const KeyRef& key, size_t offset, std::string_view bytes) {
  Entry** slot = LiveSlot(db, key);
  char scratch[24];
  const std::string_view old = slot == nullptr ? std::string_view() : (*slot)->StringValue(scratch);
  const size_t size = std::max(old.size(), offset + bytes.size());
  if (size > kInlineValueBytesMax) {
    if (slot == nullptr) {
      // An expired entry may still be there, hidden, where nothing can be written.
      Put(db, key, FindSlot(StripeOf(key), db, key),
          Entry::Create({.key = key.key,
                         .form = Entry::Form::kRef,
                         .pointer = SharedBlock::Make(0, size),
                         .access_clock = AccessClock()}));
      slot = FindSlot(StripeOf(key), db, key);
    }
    SharedBlock* block = OwnBlock(StripeOf(key), db, slot, size);
    if (offset > block->size()) {
      std::memset(block->data() + block->size(), 0, offset - block->size());
    }
    std::memcpy(block->data() + offset, bytes.data(), bytes.size());
    block->set_size(size);
  } else {
    std::string joined(old);
    joined.resize(size, '\0');
    joined.replace(offset, bytes.size(), bytes);
    const int64_t expire_at_ms = slot == nullptr ? 0 : (*slot)->expire_at_ms();
    if (slot == nullptr || !(*slot)->TryReplaceInline(joined)) {
      Put(db, key, FindSlot(StripeOf(key), db, key),
          Entry::Create({.key = key.key,
                         .bytes = joined,
                         .expire_at_ms = expire_at_ms,
                         .access_clock = AccessClock()}));
    }
  }
  Effect effect;
  effect.kind = EffectKind::kSetRange;
  effect.db = db;
  effect.key = key.key;
  effect.number = offset;
  effect.bytes = bytes;
  RecordKeyed(effect, key);
  return size;
}

uint64_t Txn::Evict(uint32_t db, const KeyRef& key) {
  Entry** slot = LiveSlot(db, key);
  if (slot == nullptr) return 0;
  auto bytes = static_cast<uint64_t>(Keyspace::BytesOf(*slot));
  if ((*slot)->type() != ValueType::kString) bytes += (*slot)->object()->MemoryBytes();
  AddRelaxed(worker_->evicted_keys, 1);
  DropSlot(db, key, slot, Why::kChange);
  return bytes;
}

bool Txn::Delete(uint32_t db, const KeyRef& key) {
  Entry** slot = LiveSlot(db, key);
  if (slot == nullptr) return false;
  DropSlot(db, key, slot, Why::kChange);
  return true;
}

void Txn::SetExpire(uint32_t db, const KeyRef& key, int64_t at_ms) {
  Stripe& stripe = StripeOf(key);
  Entry** slot = FindSlot(stripe, db, key);
  HOTKV_CHECK(slot != nullptr);
  Entry* entry = *slot;
  if (entry->has_expiry() && at_ms != 0) {
    entry->set_expire_at_ms(at_ms);
  } else if (entry->has_expiry() || at_ms != 0) {
    Entry::Spec spec = entry->Describe();
    spec.expire_at_ms = at_ms;
    engine_->keyspace().Replace(stripe, db, slot, Entry::Create(spec), Keyspace::Old::kDestroyShell);
  }
  if (at_ms != 0) stripe.expire_check_at_ms = std::min(stripe.expire_check_at_ms, at_ms);
  Effect effect;
  effect.kind = EffectKind::kExpire;
  effect.db = db;
  effect.key = key.key;
  effect.expire_at_ms = at_ms;
  RecordKeyed(effect, key);
}

void Txn::Move(uint32_t from_db, const KeyRef& from, uint32_t to_db, const KeyRef& to) {
  Entry** slot = LiveSlot(from_db, from);
  HOTKV_CHECK(slot != nullptr);
  Effect effect;
  effect.kind = EffectKind::kDelete;
  effect.db = from_db;
  effect.key = from.key;
  RecordKeyed(effect, from);
  found_key_ = nullptr;
  Entry* old = engine_->keyspace().Take(StripeOf(from), from_db, from, slot);
  Entry::Spec spec = old->Describe();
  spec.key = to.key;
  spec.access_clock = AccessClock();
  Entry* fresh = Entry::Create(spec);
  Entry::DestroyShell(old);
  Put(to_db, to, FindSlot(StripeOf(to), to_db, to), fresh);
  RecordEntry(to_db, to, fresh);
}

void Txn::CopyString(uint32_t db, const KeyRef& from, uint32_t to_db, const KeyRef& to) {
  const Entry* source = Peek(db, from);
  HOTKV_CHECK(source != nullptr && source->type() == ValueType::kString);
  Entry::Spec spec = source->Describe();
  spec.key = to.key;
  spec.access_clock = AccessClock();
  if (spec.form == Entry::Form::kRef) source->block()->Ref();
  Entry* fresh = Entry::Create(spec);
  Put(to_db, to, FindSlot(StripeOf(to), to_db, to), fresh);
  RecordEntry(to_db, to, fresh);
}

void Txn::LinkNewObject(uint32_t db, const KeyRef& key, Object* object,
                        std::string_view definition) {
  engine_->objects().Add(object);
  Effect create;
  create.kind = EffectKind::kObjectCreate;
  create.db = db;
  create.type = static_cast<uint8_t>(object->type());
  create.object_id = object->id();
  create.bytes = definition;
  Record(create, GroupOfObject(object->id()), nullptr);
  Entry* entry = Entry::Create({.key = key.key,
                                .type = object->type(),
                                .form = Entry::Form::kRef,
                                .pointer = object,
                                .access_clock = AccessClock()});
  Put(db, key, FindSlot(StripeOf(key), db, key), entry);
  RecordEntry(db, key, entry);
}

void Txn::RecordObjectChange(const KeyRef& key, uint64_t object_id, std::string_view change) {
  Effect effect;
  effect.kind = EffectKind::kObjectChange;
  effect.object_id = object_id;
  effect.bytes = change;
  Record(effect, GroupOfObject(object_id), nullptr);
  Stripe& stripe = StripeOf(key);
  StripeExtra* extra = stripe.extra.load(std::memory_order_relaxed);
  if (extra == nullptr || extra->watchers.empty()) return;
  // Which database links to the object is not said: any watcher of this name is told.
  for (uint32_t db = 0; db < engine_->keyspace().databases(); ++db) {
    NotifyWatchers(stripe, db, key.key, Why::kChange);
  }
}

void Txn::MarkWatchersOfDb(Stripe& stripe, uint32_t db, uint32_t other_db) {
  StripeExtra* extra = stripe.extra.load(std::memory_order_relaxed);
  if (extra == nullptr) return;
  for (auto& [name, watchers] : extra->watchers) {
    const size_t colon = name.find(':');
    const auto of_db = static_cast<uint32_t>(std::stoul(name.substr(0, colon)));
    if (of_db != db && of_db != other_db) continue;
    const KeyRef key = engine_->keyspace().MakeRef(std::string_view(name).substr(colon + 1));
    const bool present = engine_->keyspace().Find(stripe, db, key) != nullptr ||
                         engine_->keyspace().Find(stripe, other_db, key) != nullptr;
    if (!present) continue;
    for (const Watcher& watcher : watchers) {
      watcher.state->dirty.store(true, std::memory_order_relaxed);
    }
  }
}

void Txn::FlushDb(uint32_t db) {
  HOTKV_CHECK(holds_all_);
  Keyspace& keyspace = engine_->keyspace();
  const unsigned stripe_bits = keyspace.options().stripe_bits;
  found_key_ = nullptr;
  for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
    Stripe& stripe = keyspace.stripe(i);
    if (!keyspace.DbInUse(stripe, db)) continue;
    MarkWatchersOfDb(stripe, db, db);
    Table* table = keyspace.TakeTable(stripe, db);
    for (uint32_t c = 0; table->sums().objects != 0 && c < table->chunk_count(); ++c) {
      table->ForEachInChunk(c, [&](Entry** slot) {
        if ((*slot)->type() != ValueType::kString) DropObject((*slot)->object()->id(), db);
      });
    }
    Effect effect;
    effect.kind = EffectKind::kFlushDb;
    effect.db = db;
    effect.number = i;
    Record(effect, GroupOfStripe(i, stripe_bits), nullptr);
    // A prefetch pass of a worker may still look at the table itself.
    engine_->reclaim().Retire([table, engine = engine_] {
      engine->lazy_free().Push([table] { Keyspace::FreeTable(table); });
    });
  }
}

void Txn::SwapDb(uint32_t a, uint32_t b) {
  HOTKV_CHECK(holds_all_);
  found_key_ = nullptr;
  Keyspace& keyspace = engine_->keyspace();
  for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
    Stripe& stripe = keyspace.stripe(i);
    if (!keyspace.DbInUse(stripe, a) && !keyspace.DbInUse(stripe, b)) continue;
    MarkWatchersOfDb(stripe, a, b);
    keyspace.SwapTables(stripe, a, b);
    Effect effect;
    effect.kind = EffectKind::kSwapDb;
    effect.db = a;
    effect.number = i;
    effect.other_db = b;
    Record(effect, GroupOfStripe(i, keyspace.options().stripe_bits), nullptr);
  }
}

void Txn::LockStripe(Stripe& stripe) {
  if (holds_all_) return;
  HOTKV_DCHECK(locked_.empty());
  if (!stripe.lock.TryLock()) [[unlikely]]
    LockContended(stripe);
  locked_.push_back(&stripe);
}

void Txn::UnlockStripe(Stripe& stripe) {
  if (holds_all_) return;
  HOTKV_DCHECK(locked_.size() == 1 && locked_[0] == &stripe);
  found_key_ = nullptr;
  touched_lsn_ = std::max(touched_lsn_, effects_.empty() ? stripe.lsn : Publish());
  stripe.lock.Unlock();
  locked_.clear();
}

void Txn::Watch(ClientState& client, uint32_t db, const KeyRef& key) {
  for (const WatchedKey& watched : client.watched) {
    if (watched.db == db && watched.key == key.key) return;
  }
  if (!client.watch) client.watch = std::make_shared<WatchState>();
  Stripe& stripe = StripeOf(key);
  Entry** slot = engine_->keyspace().Find(stripe, db, key);
  const bool expired = slot != nullptr && (*slot)->ExpiredAt(now_ms_);
  client.watched.push_back({db, std::string(key.key), expired});
  engine_->keyspace().ExtraOf(stripe).watchers[WatchName(db, key.key)].push_back(
      {client.watch, expired});
}

void Txn::Unwatch(WorkerState& worker, ClientState& client) {
  HOTKV_DCHECK(worker.engine->gate().IsInside(worker.id) && worker.txn.locked_.empty());
  Keyspace& keyspace = worker.engine->keyspace();
  for (const WatchedKey& watched : client.watched) {
    Stripe& stripe = keyspace.stripe(keyspace.MakeRef(watched.key).stripe);
    SpinLockGuard guard(stripe.lock);
    auto& watchers = keyspace.ExtraOf(stripe).watchers;
    const auto found = watchers.find(WatchName(watched.db, watched.key));
    if (found == watchers.end()) continue;
    std::erase_if(found->second, [&](const Watcher& w) { return w.state == client.watch; });
    if (found->second.empty()) watchers.erase(found);
  }
  client.watched.clear();
  client.watch.reset();
}

bool Txn::WatchBroken(const ClientState& client) {
  if (!client.watch) return false;
  if (client.watch->dirty.load(std::memory_order_relaxed)) return true;
  Keyspace& keyspace = engine_->keyspace();
  for (const WatchedKey& watched : client.watched) {
    if (watched.was_expired) continue;
    const KeyRef key = keyspace.MakeRef(watched.key);
    Entry** slot = keyspace.Find(StripeOf(key), watched.db, key);
    if (slot != nullptr && (*slot)->ExpiredAt(now_ms_)) return true;
  }
  return false;
}

}  // namespace hotkv
