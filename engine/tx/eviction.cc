#include "engine/tx/eviction.h"

#include <algorithm>

#include "engine/tx/engine.h"

namespace hotkv {

namespace {

// Where few entries qualify, a sample is cut off after so many chunks of a table, and taken whole only if that found none.
constexpr uint32_t kChunksOfSample = 64;

}  // namespace

void Eviction::Configure(const Settings& settings) {
  rank_.store(settings.rank, std::memory_order_relaxed);
  volatile_only_.store(settings.volatile_only, std::memory_order_relaxed);
  samples_.store(std::max(settings.samples, 1u), std::memory_order_relaxed);
  lfu_log_factor_.store(settings.lfu_log_factor, std::memory_order_relaxed);
}

bool Eviction::may_run() const {
  return !engine_->loading.load(std::memory_order_acquire) &&
         !engine_->disk_denied.load(std::memory_order_relaxed) && !engine_->epochs().writes_wait();
}

uint8_t Eviction::Accessed(uint8_t counter, uint64_t random) const {
  if (counter == UINT8_MAX) return counter;
  const uint64_t above = counter > kNewFrequency ? counter - kNewFrequency : 0;
  const uint64_t odds = above * lfu_log_factor_.load(std::memory_order_relaxed) + 1;
  return static_cast<uint8_t>(counter + (random % odds == 0 ? 1 : 0));
}

size_t Eviction::Evict(WorkerState& worker, size_t keys_max) {
  size_t evicted = 0;
  while (evicted < keys_max && due() && EvictOne(worker)) ++evicted;
  return evicted;
}

bool Eviction::EvictOne(WorkerState& worker) {
  if (rank_.load(std::memory_order_relaxed) == EvictionRank::kNone) return false;
  Candidate victim = Sample(worker, kChunksOfSample);
  if (!victim.found) victim = Sample(worker, UINT32_MAX);
  if (!victim.found) return false;
  const KeyRef key = engine_->keyspace().MakeRef(victim.key);
  Txn& txn = worker.txn;
  txn.Begin(worker.now_ms);
  txn.LockKey(key);
  // Another worker may have taken it since; then there is one less anyway.
  const uint64_t freed = txn.Evict(victim.db, key);
  txn.CommitAndUnlock();
  excess_.fetch_sub(static_cast<int64_t>(freed), std::memory_order_relaxed);
  return true;
}

// Goes from a random stripe on until enough entries were seen.
Eviction::Candidate Eviction::Sample(WorkerState& worker, uint32_t chunks_max) {
  Keyspace& keyspace = engine_->keyspace();
  const bool volatile_only = volatile_only_.load(std::memory_order_relaxed);
  const uint32_t count = keyspace.stripe_count();
  const auto start = static_cast<uint32_t>(worker.random.Next() % count);
  unsigned left = samples_.load(std::memory_order_relaxed);
  Candidate best;
  for (uint32_t i = 0; i < count && left > 0; ++i) {
    Stripe& stripe = keyspace.stripe((start + i) % count);
    if (stripe.table(0) == nullptr && stripe.extra.load(std::memory_order_acquire) == nullptr) {
      continue;
    }
    SpinLockGuard guard(stripe.lock);
    for (uint32_t db = 0; db < keyspace.databases() && left > 0; ++db) {
      Table* table = stripe.table(db);
      if (table == nullptr || table->size() == 0) continue;
      if (volatile_only && table->sums().volatile_keys == 0) continue;
      SampleTable(worker, *table, db, chunks_max, &left, &best);
    }
  }
  return best;
}

void Eviction::Consider(WorkerState& worker, uint32_t db, Entry& entry, Candidate* best) const {
  const uint64_t score = ScoreOf(worker, entry);
  if (best->found && score <= best->score) return;
  *best = {true, score, db, std::string(entry.key())};
}

// Entries at random places, each found by itself: neighbours would be met together again and again. A table with no more
// of them than are wanted is looked at whole.
void Eviction::SampleTable(WorkerState& worker, Table& table, uint32_t db, uint32_t chunks_max,
                           unsigned* left, Candidate* best) {
  const bool volatile_only = volatile_only_.load(std::memory_order_relaxed);
  const uint32_t chunks = table.chunk_count();
  chunks_max = std::min(chunks_max, chunks);
  const uint32_t qualify = volatile_only ? table.sums().volatile_keys : table.size();
  const bool whole = qualify <= *left && chunks <= chunks_max;
  for (unsigned wanted = whole ? 1 : *left; wanted > 0; --wanted) {
    const auto start = static_cast<uint32_t>(worker.random.Below(chunks));
    Entry* found[Chunk::kSlots];
    unsigned count = 0;
    for (uint32_t i = 0; i < chunks_max && (whole || count == 0); ++i) {
      table.ForEachInChunk((start + i) % chunks, [&](Entry** slot) {
        if (volatile_only && !(*slot)->has_expiry()) return;
        if (!whole) {
          found[count++] = *slot;
        } else {
          Consider(worker, db, **slot, best);
          --*left;
        }
      });
    }
    if (whole) return;
    if (count == 0) return;  // few qualify here
    Consider(worker, db, *found[worker.random.Below(count)], best);
    --*left;
  }
}

uint64_t Eviction::ScoreOf(WorkerState& worker, Entry& entry) const {
  switch (rank_.load(std::memory_order_relaxed)) {
    case EvictionRank::kLeastRecent: {
      const auto now = static_cast<uint8_t>(worker.now_ms >> Txn::kAccessClockShift);
      return static_cast<uint8_t>(now - entry.access_clock());
    }
    case EvictionRank::kLeastFrequent: {
      // One sampled entry ages for each that goes, whatever the number of samples.
      const uint8_t counter = entry.access_clock();
      const bool ages = worker.random.Below(samples_.load(std::memory_order_relaxed)) == 0;
      if (ages && counter > 0) entry.set_access_clock(static_cast<uint8_t>(counter - 1));
      return UINT8_MAX - uint64_t{counter};
    }
    case EvictionRank::kNearestExpiry:
      return static_cast<uint64_t>(INT64_MAX - entry.expire_at_ms());
    case EvictionRank::kRandom:
    case EvictionRank::kNone:
      break;
  }
  return worker.random.Next();
}

}  // namespace hotkv
