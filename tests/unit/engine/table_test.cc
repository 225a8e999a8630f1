// Table and Keyspace against a std::map model: contents, overflow counts, growth and shrinking, SCAN's promise.
#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <set>
#include <string>

#include "engine/store/keyspace.h"

namespace hotkv {
namespace {

std::string KeyName(uint64_t n) { return "key:" + std::to_string(n); }

struct Fixture {
  explicit Fixture(unsigned stripe_bits) : keyspace({stripe_bits, 0x5eed, 4}, &reclaim) {}
  ~Fixture() { reclaim.Collect(); }

  void Set(uint32_t db, const std::string& key, const std::string& value) {
    const KeyRef ref = keyspace.MakeRef(key);
    Stripe& stripe = keyspace.stripe(ref.stripe);
    Entry* entry = Entry::Create({.key = key, .bytes = value});
    Entry** slot = keyspace.Find(stripe, db, ref);
    if (slot == nullptr) {
      keyspace.Insert(stripe, db, ref, entry);
    } else {
      keyspace.Replace(stripe, db, slot, entry, Keyspace::Old::kDestroy);
    }
  }
  bool Erase(uint32_t db, const std::string& key) {
    const KeyRef ref = keyspace.MakeRef(key);
    Stripe& stripe = keyspace.stripe(ref.stripe);
    Entry** slot = keyspace.Find(stripe, db, ref);
    if (slot == nullptr) return false;
    keyspace.Erase(stripe, db, ref, slot);
    return true;
  }
  std::string Get(uint32_t db, const std::string& key) {
    const KeyRef ref = keyspace.MakeRef(key);
    Entry** slot = keyspace.Find(keyspace.stripe(ref.stripe), db, ref);
    return slot == nullptr ? "(none)" : std::string((*slot)->inline_value());
  }
  uint64_t ScanOnce(uint64_t cursor, size_t count, std::multiset<std::string>* seen) {
    Keyspace::ScanHooks hooks;
    hooks.lock = [](Stripe& s) { s.lock.Lock(); };
    hooks.unlock = [](Stripe& s) { s.lock.Unlock(); };
    hooks.visit = [&](Stripe&, Entry* e) { seen->insert(std::string(e->key())); };
    return keyspace.Scan(cursor, 0, count, hooks);
  }
  void CheckOverflowCounts(Table& table, unsigned stripe_bits);

  ReclaimDomain reclaim;
  Keyspace keyspace;
};

// Each chunk's overflow count must be the number of entries that passed over it on their way from home.
void Fixture::CheckOverflowCounts(Table& table, unsigned stripe_bits) {
  std::vector<unsigned> expected(table.chunk_count(), 0);
  for (uint32_t c = 0; c < table.chunk_count(); ++c) {
    table.ForEachInChunk(c, [&](Entry** slot) {
      const uint64_t hash = HashBytes((*slot)->key(), keyspace.options().hash_seed);
      for (uint32_t at = table.Home(hash << stripe_bits); at != c; at = (at + 1) % table.chunk_count()) {
        ++expected[at];
      }
    });
  }
  for (uint32_t c = 0; c < table.chunk_count(); ++c) {
    const unsigned counted = table.chunks()[c].overflow;
    if (counted != Chunk::kOverflowSticky) REQUIRE(counted == expected[c]);
  }
}

TEST_CASE("random inserts, replacements and erasures agree with a map") {
  for (const unsigned stripe_bits : {0u, 3u, 12u}) {
    Fixture f(stripe_bits);
    std::map<std::string, std::string> model;
    std::mt19937_64 random(stripe_bits + 1);
    for (int phase = 0; phase < 6; ++phase) {
      const uint64_t erase_share = phase % 2 == 0 ? 20 : 80;  // grows, then shrinks
      for (int i = 0; i < 6000; ++i) {
        const std::string key = KeyName(random() % 4000);
        if (random() % 100 < erase_share) {
          REQUIRE(f.Erase(0, key) == (model.erase(key) != 0));
        } else {
          model[key] = std::string(random() % 600, 'v');
          f.Set(0, key, model[key]);
        }
      }
      REQUIRE(f.keyspace.Size(0) == model.size());
      for (const auto& [key, value] : model) REQUIRE(f.Get(0, key) == value);
      if (stripe_bits == 0) f.CheckOverflowCounts(*f.keyspace.stripe(0).table(0), 0);
    }
  }
}

TEST_CASE("sums of a table are those of its entries") {
  Fixture f(0);
  std::mt19937_64 random(7);
  for (int i = 0; i < 5000; ++i) {
    const std::string key = KeyName(random() % 700);
    const KeyRef ref = f.keyspace.MakeRef(key);
    Stripe& stripe = f.keyspace.stripe(ref.stripe);
    Entry** slot = f.keyspace.Find(stripe, 0, ref);
    if (random() % 3 == 0 && slot != nullptr) {
      f.keyspace.Erase(stripe, 0, ref, slot);
      continue;
    }
    Entry* entry = Entry::Create({.key = key,
                                  .bytes = std::string(random() % 300, 'x'),
                                  .expire_at_ms = random() % 2 == 0 ? 1000 : 0});
    if (slot == nullptr) {
      f.keyspace.Insert(stripe, 0, ref, entry);
    } else {
      f.keyspace.Replace(stripe, 0, slot, entry, Keyspace::Old::kDestroy);
    }
  }
  Table& table = *f.keyspace.stripe(0).table(0);
  int64_t bytes = 0;
  uint32_t volatile_keys = 0;
  for (uint32_t c = 0; c < table.chunk_count(); ++c) {
    table.ForEachInChunk(c, [&](Entry** slot) {
      bytes += Keyspace::BytesOf(*slot);
      volatile_keys += (*slot)->has_expiry() ? 1 : 0;
    });
  }
  CHECK(table.sums().entry_bytes == bytes);
  CHECK(table.sums().volatile_keys == volatile_keys);
}

TEST_CASE("SCAN returns what is there throughout, while tables grow and shrink between calls") {
  for (const unsigned stripe_bits : {0u, 4u, 12u}) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      Fixture f(stripe_bits);
      std::mt19937_64 random(seed);
      for (int i = 0; i < 300; ++i) f.Set(0, "keep:" + std::to_string(i), "v");
      for (int i = 0; i < 8000; ++i) f.Set(0, "drop:" + std::to_string(i), "v");
      std::multiset<std::string> seen;
      uint64_t cursor = 0;
      int calls = 0;
      int dropped = 0;
      int added = 0;
      do {
        cursor = f.ScanOnce(cursor, 10, &seen);
        REQUIRE(cursor < (uint64_t{1} << 53));
        if (++calls % 20 == 0) {
          for (int i = 0; i < 900 && dropped < 8000; ++i) f.Erase(0, "drop:" + std::to_string(dropped++));
          if (random() % 2 == 0 && added < 6000) {
            for (int i = 0; i < 500; ++i) f.Set(0, "new:" + std::to_string(added++), "v");
          }
        }
        REQUIRE(calls < 100000);
      } while (cursor != 0);
      for (int i = 0; i < 300; ++i) REQUIRE(seen.count("keep:" + std::to_string(i)) >= 1);
    }
  }
}

TEST_CASE("a scan of a table at rest returns every key once, whatever COUNT") {
  for (const size_t count : {1u, 7u, 100u, 100000u}) {
    Fixture f(6);
    for (int i = 0; i < 3000; ++i) f.Set(0, KeyName(static_cast<uint64_t>(i)), "v");
    std::multiset<std::string> seen;
    uint64_t cursor = 0;
    do {
      cursor = f.ScanOnce(cursor, count, &seen);
    } while (cursor != 0);
    std::set<std::string> distinct(seen.begin(), seen.end());
    CHECK(distinct.size() == 3000);
    // Rounding the cursor down may show an entry twice, hardly ever more.
    CHECK(seen.size() <= 3000 + 30);
  }
}

TEST_CASE("databases of a stripe are apart and can be swapped and taken out") {
  Fixture f(2);
  f.Set(0, "a", "zero");
  f.Set(1, "a", "one");
  CHECK(f.Get(0, "a") == "zero");
  CHECK(f.Get(1, "a") == "one");
  CHECK(f.Get(2, "a") == "(none)");
  for (uint32_t i = 0; i < f.keyspace.stripe_count(); ++i) {
    f.keyspace.SwapTables(f.keyspace.stripe(i), 0, 2);
  }
  CHECK(f.Get(0, "a") == "(none)");
  CHECK(f.Get(2, "a") == "zero");
  Stripe& stripe = f.keyspace.stripe(f.keyspace.MakeRef("a").stripe);
  Keyspace::FreeTable(f.keyspace.TakeTable(stripe, 2));
  CHECK(f.Get(2, "a") == "(none)");
  CHECK(f.keyspace.Size(1) == 1);
}

TEST_CASE("entries keep key, value and expiry at every length where their form changes") {
  for (const size_t key_size : {0u, 1u, 255u, 256u, 70000u}) {
    for (const size_t value_size : {0u, 1u, 255u, 256u, 16384u}) {
      for (const int64_t expiry : {int64_t{0}, int64_t{1}, INT64_MAX}) {
        const std::string key(key_size, 'k');
        const std::string value(value_size, 'v');
        Entry* entry = Entry::Create({.key = key, .bytes = value, .expire_at_ms = expiry});
        CHECK(entry->key() == key);
        CHECK(entry->inline_value() == value);
        CHECK(entry->expire_at_ms() == expiry);
        const std::string shorter(value_size / 2, 'w');
        if (entry->TryReplaceInline(shorter)) CHECK(entry->inline_value() == shorter);
        CHECK(entry->key() == key);
        CHECK(entry->expire_at_ms() == expiry);
        Entry::Destroy(entry);
      }
    }
  }
}

}  // namespace
}  // namespace hotkv
