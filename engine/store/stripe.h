// Stripe: a slice of the keyspace, chosen by the top bits of a key's hash, with one lock, one Lamport stamp and a table
// for each database in use.
//
// Thread rules: everything but `lock` and the table pointers is guarded by `lock`; table pointers are read without it by
// prefetch passes (under a reclaim pin), so a replaced table is retired, not freed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/spin_lock.h"
#include "engine/store/table.h"

namespace hotkv {

// Set when a key that a client watches changes. Shared by the client and the stripes of its watched keys.
struct WatchState {
  std::atomic<bool> dirty{false};
};

struct Watcher {
  std::shared_ptr<WatchState> state;
  bool was_expired = false;  // past its time already when WATCH saw it: its removal by expiry changes nothing
};

// What few stripes need.
struct StripeExtra {
  // Databases other than 0; null where unused.
  std::vector<std::atomic<Table*>> tables;
  // Watchers by database and key ("<db>:<key>").
  std::unordered_map<std::string, std::vector<Watcher>> watchers;
  explicit StripeExtra(unsigned databases) : tables(databases) {}
};

struct alignas(64) Stripe {
  SpinLock lock;
  uint32_t changes = 0;  // commits since the last snapshot section of this stripe
  uint64_t lsn = 0;            // of the last commit that touched this stripe
  std::atomic<Table*> table0{nullptr};
  std::atomic<StripeExtra*> extra{nullptr};
  int64_t expire_check_at_ms = 0;  // active expiry need not look before: no entry expires earlier
  uint32_t index = 0;

  Table* table(uint32_t db) const {
    if (db == 0) return table0.load(std::memory_order_acquire);
    const StripeExtra* more = extra.load(std::memory_order_acquire);
    return more == nullptr ? nullptr : more->tables[db].load(std::memory_order_acquire);
  }
};
static_assert(sizeof(Stripe) == 64);

}  // namespace hotkv
