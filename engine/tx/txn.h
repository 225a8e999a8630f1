// Txn: one commit in the making - a command, or all commands of an EXEC. It holds the stripes' locks, is the only way in
// which handlers look at and change the keyspace, records what changed as effects, and stamps and publishes them.
//
// A worker has one Txn and uses it again and again; nothing is allocated for a small command.
//
// Thread rules: its worker's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/byte_buffer.h"
#include "engine/store/keyspace.h"
#include "engine/tx/effect.h"
#include "engine/tx/eviction.h"

namespace hotkv {

class ClientState;
class Engine;
struct WorkerState;

class Txn {
 public:
  Txn(Engine* engine, WorkerState* worker) : engine_(engine), worker_(worker) {}
  Txn(const Txn&) = delete;
  Txn& operator=(const Txn&) = delete;

  // --- the executor's side ---
  void Begin(int64_t now_ms);
  void LockKey(const KeyRef& key);
  void LockKeys(std::span<const KeyRef> keys);  // any order, duplicates allowed
  // Stops all other workers until the commit. No stripe may be locked yet.
  void StopWorld();
  // Publishes the effects, if any, and unlocks. Returns the newest epoch that the touched stripes carry: a reply must
  // wait for it under appendfsync always.
  uint64_t CommitAndUnlock();

  // Off while a client runs that asked for CLIENT NO-TOUCH: Find then leaves access clocks alone.
  void SetTouch(bool on) { touch_ = on; }

  // --- the handlers' side ---
  int64_t now_ms() const { return now_ms_; }
  // An entry's access clock is the low byte of now_ms >> this: a unit of 8.2 s, round in 35 minutes.
  static constexpr unsigned kAccessClockShift = 13;
  Keyspace& keyspace();
  bool holds_all() const { return holds_all_; }

  // The live entry of a key, or null. An entry past its time is deleted on the way (hidden only, while nothing can be
  // written). Find counts a hit or a miss and touches the access clock, Peek does neither.
  Entry* Find(uint32_t db, const KeyRef& key);
  Entry* Peek(uint32_t db, const KeyRef& key);

  // Each records its effect. expire_at_ms 0: none.
  void SetString(uint32_t db, const KeyRef& key, std::string_view value, int64_t expire_at_ms);
  // As SetString for a value over kInlineValueBytesMax that is in a block already; takes over the reference.
  void SetBlock(uint32_t db, const KeyRef& key, SharedBlock* block, int64_t expire_at_ms);
  void SetInt(uint32_t db, const KeyRef& key, int64_t value, int64_t expire_at_ms);
  // Appends to a string entry or makes one (integers become text first). Returns the new length.
  size_t Append(uint32_t db, const KeyRef& key, std::string_view bytes);
  size_t SetRange(uint32_t db, const KeyRef& key, size_t offset, std::string_view bytes);
  bool Delete(uint32_t db, const KeyRef& key);
  // Makes room: as Delete, counted as an eviction. Returns the bytes that are freed, 0 where there was no such key.
  uint64_t Evict(uint32_t db, const KeyRef& key);
  void SetExpire(uint32_t db, const KeyRef& key, int64_t at_ms);  // the key must exist; 0 persists
  // Moves the entry with its expiry to another key, over whatever is there. Both stripes are locked; from != to.
  void Move(uint32_t from_db, const KeyRef& from, uint32_t to_db, const KeyRef& to);
  // Copies a value (string; types with objects say themselves how) over whatever is at `to`.
  void CopyString(uint32_t db, const KeyRef& from, uint32_t to_db, const KeyRef& to);

  // Links a new object to a key that does not exist; takes over the reference. Records kObjectCreate (with the
  // definition) and kLink.
  void LinkNewObject(uint32_t db, const KeyRef& key, Object* object, std::string_view definition);
  // A change of an object's content, in the type's own form. `key` is the key that links to it.
  void RecordObjectChange(const KeyRef& key, uint64_t object_id, std::string_view change);

  // Whole keyspace: requires holds_all().
  void FlushDb(uint32_t db);
  void SwapDb(uint32_t a, uint32_t b);

  // For commands that declare no keys (SCAN, KEYS, ...): one stripe at a time. Nothing is locked twice when this
  // transaction holds all.
  void LockStripe(Stripe& stripe);
  void UnlockStripe(Stripe& stripe);

  // WATCH.
  void Watch(ClientState& client, uint32_t db, const KeyRef& key);
  // By the client's worker, with no lock held and inside the stop gate: whoever has stopped the world reads the watchers
  // of all stripes without a lock.
  static void Unwatch(WorkerState& worker, ClientState& client);
  // A watched key has changed, or passed its time since WATCH. The watched keys' stripes are locked.
  bool WatchBroken(const ClientState& client);
  // Deletes the entry of a slot that is past its time (active expiry); the stripe is locked through LockStripe.
  void Expire(uint32_t db, const KeyRef& key);
  // Removes at most `max` parts of the key's object that are past their time, and the key when nothing is left of an
  // object that does not stay empty; locked as for Expire.
  struct Ended {
    size_t removed = 0;
    int64_t next_ms = Object::kNeverMs;  // when the next part ends
  };
  Ended RemoveEnded(uint32_t db, const KeyRef& key, size_t max);
  // A part of the key's object will end by itself.
  void NotePartEnds(const KeyRef& key, int64_t at_ms);

  bool has_effects() const { return !effects_.empty(); }

 private:
  struct PendingEffect {
    uint32_t offset = 0;  // in tails_
    uint32_t size = 0;
    uint16_t group = 0;
    SharedBlockRef large;
  };

  void LockContended(Stripe& stripe);
  Stripe& StripeOf(const KeyRef& key);
  enum class Why : uint8_t { kChange, kExpiry };
  // large: the block that holds effect.bytes where these are over kInlineOperandBytesMax; null: they are copied.
  void Record(const Effect& effect, unsigned group, SharedBlock* large);
  void RecordKeyed(const Effect& effect, const KeyRef& key, Why why = Why::kChange,
                   SharedBlock* large = nullptr);
  // The effect that makes the key what its entry now is.
  void RecordEntry(uint32_t db, const KeyRef& key, const Entry* entry);
  void NotifyWatchers(Stripe& stripe, uint32_t db, std::string_view key, Why why);
  void MarkWatchersOfDb(Stripe& stripe, uint32_t db, uint32_t other_db);
  // Removes the entry and, if it links to an object, that object.
  void DropSlot(uint32_t db, const KeyRef& key, Entry** slot, Why why);
  // An entry leaves the keyspace for good: its reference, and for an object the object itself, go too.
  void ReleaseValueOf(const Entry* entry, uint32_t db);
  void DropObject(uint64_t object_id, uint32_t db);
  // Puts a new entry under the key, over what is there (slot: as found, or null). Records nothing of the new one.
  void Put(uint32_t db, const KeyRef& key, Entry** slot, Entry* entry);
  Entry** LiveSlot(uint32_t db, const KeyRef& key);
  // The slot of a key, expired or not; remembered until an entry comes or goes.
  Entry** FindSlot(Stripe& stripe, uint32_t db, const KeyRef& key);
  // The string of the slot as a block of at least `capacity` bytes that only this entry refers to.
  SharedBlock* OwnBlock(Stripe& stripe, uint32_t db, Entry** slot, size_t capacity);
  bool CanExpire() const;
  // Of a new entry: the time, or under an LFU policy a counter of uses.
  uint8_t AccessClock() const {
    return lfu_ ? Eviction::kNewFrequency : static_cast<uint8_t>(now_ms_ >> kAccessClockShift);
  }
  void Touch(Entry* entry) {
    lfu_ ? TouchCounter(entry) : entry->set_access_clock(AccessClock());
  }
  void TouchCounter(Entry* entry);
  uint64_t Publish();
  void AppendEffects(uint64_t lsn, uint64_t epoch);

  Engine* const engine_;
  WorkerState* const worker_;
  int64_t now_ms_ = 0;
  bool holds_all_ = false;
  bool touch_ = true;
  bool lfu_ = false;  // the policy as of Begin
  std::vector<Stripe*> locked_;  // ascending
  uint64_t touched_lsn_ = 0;     // newest lsn among stripes unlocked one by one
  // The last slot found: most writes look the same key up twice.
  const char* found_key_ = nullptr;  // address of the key's bytes; null: nothing remembered
  uint64_t found_hash_ = 0;
  uint32_t found_db_ = 0;
  Entry** found_slot_ = nullptr;
  ByteBuffer tails_;
  std::vector<PendingEffect> effects_;
};

}  // namespace hotkv
