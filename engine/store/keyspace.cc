#include "engine/store/keyspace.h"

#include "engine/base/check.h"

namespace hotkv {

namespace {
constexpr unsigned kCursorBits = 53;  // some clients hold a cursor in a double
}

Keyspace::Keyspace(const KeyspaceOptions& options, ReclaimDomain* reclaim)
    : options_(options), reclaim_(reclaim), stripes_(std::make_unique<Stripe[]>(stripe_count())) {
  HOTKV_CHECK(options.stripe_bits <= kStripeBitsMax);
  HOTKV_CHECK(options.databases >= 1 && options.databases <= kDatabasesMax);
  for (uint32_t i = 0; i < stripe_count(); ++i) stripes_[i].index = i;
}

Keyspace::~Keyspace() {
  for (uint32_t i = 0; i < stripe_count(); ++i) {
    for (uint32_t db = 0; db < databases(); ++db) {
      if (Table* table = stripes_[i].table(db)) FreeTable(table);
    }
    delete stripes_[i].extra.load(std::memory_order_relaxed);
  }
}

int64_t Keyspace::BytesOf(const Entry* entry) {
  auto bytes = static_cast<int64_t>(entry->allocated_bytes());
  if (entry->type() == ValueType::kString && entry->form() == Entry::Form::kRef) {
    bytes += static_cast<int64_t>(entry->block()->memory_bytes());
  }
  return bytes;
}

StripeExtra& Keyspace::ExtraOf(Stripe& stripe) {
  StripeExtra* extra = stripe.extra.load(std::memory_order_acquire);
  if (extra == nullptr) {
    extra = new StripeExtra(databases());
    stripe.extra.store(extra, std::memory_order_release);
  }
  return *extra;
}

std::atomic<Table*>& Keyspace::TableSlot(Stripe& stripe, uint32_t db) {
  return db == 0 ? stripe.table0 : ExtraOf(stripe).tables[db];
}

void Keyspace::ReplaceTable(Stripe& stripe, uint32_t db, Table* fresh) {
  Table* old = TableSlot(stripe, db).exchange(fresh, std::memory_order_acq_rel);
  if (old != nullptr) reclaim_->Retire([old] { Table::Free(old); });
}

void Keyspace::Reserve(Stripe& stripe, uint32_t db, uint64_t entries) {
  if (entries == 0 || stripe.table(db) != nullptr) return;
  const uint64_t chunks = entries * 16 / (Chunk::kSlots * 13) + 1;
  HOTKV_CHECK(chunks < UINT32_MAX);
  TableSlot(stripe, db).store(Table::Make(static_cast<uint32_t>(chunks), GrowthPercent(stripe)),
                              std::memory_order_release);
}

void Keyspace::MaybeGrow(Stripe& stripe, uint32_t db) {
  Table* table = stripe.table(db);
  if (table == nullptr) {
    TableSlot(stripe, db).store(Table::Make(1, GrowthPercent(stripe)), std::memory_order_release);
    return;
  }
  if (!table->NeedsGrowth()) return;
  ReplaceTable(stripe, db, table->Rehash(table->GrownChunkCount(), [this](const Entry* e) {
    const uint64_t hash = HashBytes(e->key(), options_.hash_seed);
    return Table::PositionTag{PositionOf(hash), Table::TagOf(hash)};
  }));
}

void Keyspace::MaybeShrink(Stripe& stripe, uint32_t db) {
  Table* table = stripe.table(db);
  if (!table->NeedsShrink()) return;
  ReplaceTable(stripe, db, table->Rehash(table->ShrunkChunkCount(), [this](const Entry* e) {
    const uint64_t hash = HashBytes(e->key(), options_.hash_seed);
    return Table::PositionTag{PositionOf(hash), Table::TagOf(hash)};
  }));
}

void Keyspace::Account(Table* table, const Entry* entry, int sign) {
  Table::Sums& sums = table->sums();
  sums.entry_bytes += sign * BytesOf(entry);
  const auto one = static_cast<uint32_t>(sign);
  if (entry->has_expiry()) sums.volatile_keys += one;
  if (entry->type() != ValueType::kString) sums.objects += one;
}

void Keyspace::Insert(Stripe& stripe, uint32_t db, const KeyRef& ref, Entry* entry) {
  MaybeGrow(stripe, db);
  Table* table = stripe.table(db);
  table->Insert(PositionOf(ref.hash), Table::TagOf(ref.hash), entry);
  Account(table, entry, 1);
}

void Keyspace::Replace(Stripe& stripe, uint32_t db, Entry** slot, Entry* entry, Old old_fate) {
  Entry* old = *slot;
  Table* table = stripe.table(db);
  Account(table, old, -1);
  Account(table, entry, 1);
  Table::Replace(slot, entry);
  old_fate == Old::kDestroy ? Entry::Destroy(old) : Entry::DestroyShell(old);
}

Entry* Keyspace::Take(Stripe& stripe, uint32_t db, const KeyRef& ref, Entry** slot) {
  Entry* entry = *slot;
  Table* table = stripe.table(db);
  Account(table, entry, -1);
  table->Erase(PositionOf(ref.hash), slot);
  MaybeShrink(stripe, db);
  return entry;
}

void Keyspace::Erase(Stripe& stripe, uint32_t db, const KeyRef& ref, Entry** slot) {
  Entry::Destroy(Take(stripe, db, ref, slot));
}

Table* Keyspace::TakeTable(Stripe& stripe, uint32_t db) {
  if (stripe.table(db) == nullptr) return nullptr;
  return TableSlot(stripe, db).exchange(nullptr, std::memory_order_acq_rel);
}

void Keyspace::SwapTables(Stripe& stripe, uint32_t a, uint32_t b) {
  if (stripe.table(a) == nullptr && stripe.table(b) == nullptr) return;
  std::atomic<Table*>& slot_a = TableSlot(stripe, a);
  std::atomic<Table*>& slot_b = TableSlot(stripe, b);
  Table* table_a = slot_a.load(std::memory_order_relaxed);
  slot_a.store(slot_b.load(std::memory_order_relaxed), std::memory_order_release);
  slot_b.store(table_a, std::memory_order_release);
}

void Keyspace::DestroyEntries(Table* table) {
  for (uint32_t c = 0; c < table->chunk_count(); ++c) {
    table->ForEachInChunk(c, [](Entry** slot) { Entry::Destroy(*slot); });
  }
}

void Keyspace::FreeTable(Table* table) {
  DestroyEntries(table);
  Table::Free(table);
}

size_t Keyspace::ScanStripe(Stripe& stripe, uint32_t db, uint64_t* position, size_t count,
                            const ScanHooks& hooks) {
  Table* table = stripe.table(db);
  if (table == nullptr || table->size() == 0) {
    *position = 0;
    return 0;
  }
  const uint64_t from = *position;
  size_t visited = 0;
  auto home_of = [&](const Entry* e) { return table->Home(PositionOfEntry(e)); };
  for (uint32_t chunk = table->Home(from); chunk < table->chunk_count(); ++chunk) {
    if (visited >= count) {
      *position = table->FirstPosition(chunk);
      return visited;
    }
    table->ForEachOfHome(chunk, home_of, [&](Entry* entry) {
      if (PositionOfEntry(entry) < from) return;
      hooks.visit(stripe, entry);
      ++visited;
    });
  }
  *position = 0;
  return visited;
}

uint64_t Keyspace::Scan(uint64_t cursor, uint32_t db, size_t count, const ScanHooks& hooks) {
  const unsigned position_bits = kCursorBits - options_.stripe_bits;
  uint64_t index = cursor >> position_bits;
  uint64_t position = cursor << (64 - position_bits);
  size_t visited = 0;
  for (; index < stripe_count(); ++index) {
    Stripe& stripe = stripes_[index];
    if (stripe.table(db) != nullptr) {
      hooks.lock(stripe);
      visited += ScanStripe(stripe, db, &position, count - visited, hooks);
      hooks.unlock(stripe);
    } else {
      position = 0;
    }
    // Rounding down may return a few entries twice, never skip one.
    if (position != 0) return (index << position_bits) | (position >> (64 - position_bits));
    if (visited >= count) break;
  }
  return index + 1 >= stripe_count() ? 0 : (index + 1) << position_bits;
}

uint64_t Keyspace::Size(uint32_t db) const {
  uint64_t size = 0;
  for (uint32_t i = 0; i < stripe_count(); ++i) {
    if (const Table* table = stripes_[i].table(db)) size += table->size();
  }
  return size;
}

}  // namespace hotkv
