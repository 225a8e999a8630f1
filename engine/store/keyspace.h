// Keyspace: the stripes. Finds, inserts, replaces and removes entries; knows nothing of commands, effects or expiry
// policy (engine/tx does).
//
// Thread rules: functions that take a Stripe need its lock. The constructor's options never change.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "engine/base/hash.h"
#include "engine/base/limits.h"
#include "engine/base/reclaim.h"
#include "engine/store/stripe.h"

namespace hotkv {

struct KeyspaceOptions {
  unsigned stripe_bits = kStripeBitsDefault;
  uint64_t hash_seed = 0;
  unsigned databases = 16;
};

// A key with what is computed from it once.
struct KeyRef {
  std::string_view key;
  uint64_t hash = 0;
  uint32_t stripe = 0;
};

class Keyspace {
 public:
  Keyspace(const KeyspaceOptions& options, ReclaimDomain* reclaim);
  ~Keyspace();
  Keyspace(const Keyspace&) = delete;
  Keyspace& operator=(const Keyspace&) = delete;

  const KeyspaceOptions& options() const { return options_; }
  uint32_t stripe_count() const { return 1u << options_.stripe_bits; }
  unsigned databases() const { return options_.databases; }
  Stripe& stripe(uint32_t index) { return stripes_[index]; }
  const Stripe& stripe(uint32_t index) const { return stripes_[index]; }

  KeyRef MakeRef(std::string_view key) const {
    const uint64_t hash = HashBytes(key, options_.hash_seed);
    return {key, hash, StripeOf(hash)};
  }
  uint32_t StripeOf(uint64_t hash) const {
    return options_.stripe_bits == 0 ? 0 : static_cast<uint32_t>(hash >> (64 - options_.stripe_bits));
  }
  uint64_t PositionOf(uint64_t hash) const { return hash << options_.stripe_bits; }

  // Passes before execution, in this order over a window of commands, without a lock but pinned in the reclaim domain.
  // Stripe and table header have passes of their own: headers of equally aligned tables share few cache sets.
  void PrefetchStripe(const KeyRef& ref) const { __builtin_prefetch(&stripes_[ref.stripe]); }
  void PrefetchTable(const KeyRef& ref, uint32_t db) const { __builtin_prefetch(stripes_[ref.stripe].table(db)); }
  void PrefetchChunk(const KeyRef& ref, uint32_t db) const {
    const Stripe& s = stripes_[ref.stripe];
    if (const Table* t = s.table(db)) t->PrefetchChunk(PositionOf(ref.hash));
  }
  void PrefetchEntry(const KeyRef& ref, uint32_t db) const {
    const Stripe& s = stripes_[ref.stripe];
    if (const Table* t = s.table(db)) {
      t->PrefetchEntry(PositionOf(ref.hash), Table::TagOf(ref.hash));
    }
  }

  // The slot of the key's entry, or null. Valid until the next Insert or Erase in this stripe.
  Entry** Find(Stripe& stripe, uint32_t db, const KeyRef& ref) {
    Table* table = stripe.table(db);
    return table == nullptr ? nullptr
                            : table->Find(PositionOf(ref.hash), Table::TagOf(ref.hash), ref.key);
  }
  // Makes the database's table of this stripe large enough for `entries` at once, if there is none yet (loading).
  void Reserve(Stripe& stripe, uint32_t db, uint64_t entries);
  // The key must not be there.
  void Insert(Stripe& stripe, uint32_t db, const KeyRef& ref, Entry* entry);
  // Puts `entry` in the place of the slot's; the old one is destroyed, or only its shell (its reference lives on).
  enum class Old : uint8_t { kDestroy, kDestroyShell };
  void Replace(Stripe& stripe, uint32_t db, Entry** slot, Entry* entry, Old old);
  // Removes the slot's entry from the table and hands it over.
  Entry* Take(Stripe& stripe, uint32_t db, const KeyRef& ref, Entry** slot);
  void Erase(Stripe& stripe, uint32_t db, const KeyRef& ref, Entry** slot);
  static int64_t BytesOf(const Entry* entry);

  // The database's table of this stripe is taken out (null if none) for the caller to free lazily with FreeTable.
  Table* TakeTable(Stripe& stripe, uint32_t db);
  void SwapTables(Stripe& stripe, uint32_t a, uint32_t b);
  static void DestroyEntries(Table* table);  // their places are not cleared: the table is of no use then
  static void FreeTable(Table* table);       // with its entries

  StripeExtra& ExtraOf(Stripe& stripe);
  bool DbInUse(const Stripe& stripe, uint32_t db) const {
    const Table* t = stripe.table(db);
    return t != nullptr && t->size() != 0;
  }

  // SCAN. Cursor: stripe and position, below 2^53; 0 is the start and the end. Visits at least `count` entries or to the
  // end, under one stripe's lock at a time (lock_stripe/unlock_stripe do nothing where the caller holds all).
  struct ScanHooks {
    std::function<void(Stripe&)> lock;
    std::function<void(Stripe&)> unlock;
    std::function<void(Stripe&, Entry*)> visit;
  };
  uint64_t Scan(uint64_t cursor, uint32_t db, size_t count, const ScanHooks& hooks);

  // Number of keys of a database; takes no lock (each stripe's count is read as it is).
  uint64_t Size(uint32_t db) const;

 private:
  static void Account(Table* table, const Entry* entry, int sign);
  void MaybeGrow(Stripe& stripe, uint32_t db);
  void MaybeShrink(Stripe& stripe, uint32_t db);
  void ReplaceTable(Stripe& stripe, uint32_t db, Table* fresh);
  std::atomic<Table*>& TableSlot(Stripe& stripe, uint32_t db);
  uint32_t GrowthPercent(const Stripe& stripe) const { return 120 + stripe.index % 16; }
  uint64_t PositionOfEntry(const Entry* entry) const {
    return PositionOf(HashBytes(entry->key(), options_.hash_seed));
  }
  size_t ScanStripe(Stripe& stripe, uint32_t db, uint64_t* position, size_t count,
                    const ScanHooks& hooks);

  const KeyspaceOptions options_;
  ReclaimDomain* const reclaim_;
  std::unique_ptr<Stripe[]> stripes_;
};

}  // namespace hotkv
