#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "engine/base/hash.h"
#include "engine/base/sync_point.h"
#include "tests/unit/index/index_support.h"

namespace hotkv {
namespace {

using namespace index_test;

TEST_CASE("parallel inserts leave every element reachable, from the first on", "[index][threads]") {
  for (int round = 0; round < 30; ++round) {
    IndexOptions options;
    options.dim = 8;
    options.metric = Metric::kL2;
    options.m = 4;
    options.ef_construction = 20;
    auto index = VectorIndex::Create(options, nullptr, "").value();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        Random random(static_cast<uint64_t>(round * 10 + t));
        for (int i = 0; i < 150; ++i) {
          Put(index.get(), std::to_string(t) + "-" + std::to_string(i), RandomVector(&random, 8));
        }
      });
    }
    for (auto& t : threads) t.join();
    CHECK(index->Count() == 600);
    RepairAll(index.get());
    CHECK(index->CheckInvariants().ToString() == "OK");
  }
}

#ifdef HOTKV_TEST_HOOKS
TEST_CASE("two inserts that have made their forward links both get linked to", "[index][threads]") {
  IndexOptions options;
  options.dim = 2;
  options.metric = Metric::kL2;
  auto index = VectorIndex::Create(options, nullptr, "").value();
  Put(index.get(), "first", {0, 0});
  SyncBlock block("graph.link.forward_made");
  std::thread a([&] { Put(index.get(), "a", {1, 0}); });
  std::thread b([&] { Put(index.get(), "b", {1, 0.1f}); });
  REQUIRE(block.AwaitReached(2));
  // Not committed: not found, though the graph is being changed.
  CHECK(Find(*index, {1, 0}, 10).size() == 1);
  block.Release();
  a.join();
  b.join();
  CHECK(Find(*index, {1, 0}, 10).size() == 3);
  CHECK(index->CheckInvariants().ToString() == "OK");
}
#endif

// Names carry a checksum of their vector, attributes repeat it: a row that mixes two elements
// shows.
std::string NameFor(const std::vector<float>& v) {
  const std::string_view bytes(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float));
  return std::to_string(HashBytes(bytes, 1));
}

void ChangeAndSearch(ElementType type) {
  IndexOptions options;
  options.dim = 16;
  options.metric = Metric::kL2;
  options.type = type;
  options.m = 16;
  options.ef_construction = 100;
  auto index = VectorIndex::Create(options, nullptr, "").value();
  std::mutex mutex;
  std::map<std::string, std::vector<float>>
      live;  // guarded by mutex, as commits are by a key's lock
  std::atomic<bool> stop{false};
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(t));
      for (int i = 0; i < 1500; ++i) {
        const auto v = RandomVector(&random, 16);
        const std::string name = NameFor(v);
        auto prepared = index->Prepare(name, v, "attr:" + name);
        if (random.Below(20) == 0) continue;  // abandoned
        std::lock_guard<std::mutex> lock(mutex);
        index->Commit(std::move(*prepared));
        live[name] = v;
        if (random.Below(8) == 0) index->SetAttr(name, "attr:" + name);
      }
    });
  }
  threads.emplace_back([&] {
    Random random(77);
    while (!stop.load()) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (live.size() > 600) {
          auto at = live.begin();
          std::advance(at, static_cast<long>(random.Below(200)));
          index->Delete(at->first);
          live.erase(at);
        }
      }
      std::this_thread::yield();
    }
  });
  threads.emplace_back([&] {
    while (!stop.load()) {
      index->RepairStep(200);
      std::this_thread::yield();
    }
  });
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(100 + t));
      SearchParams params;
      params.with_attr = true;
      params.with_vector = true;
      params.ef = 30;
      while (!stop.load()) {
        const auto rows = index->Search(RandomVector(&random, 16), params).value();
        for (const auto& row : rows) {
          if (row.name != NameFor(row.vector) || row.attr != "attr:" + row.name) bad.fetch_add(1);
        }
      }
    });
  }
  threads[0].join();
  threads[1].join();
  stop.store(true);
  for (size_t t = 2; t < threads.size(); ++t) threads[t].join();
  CHECK(bad.load() == 0);
  CHECK(index->Count() == live.size());
  RepairAll(index.get());
  CHECK(index->Info().dead == 0);
  CHECK(index->CheckInvariants().ToString() == "OK");
  size_t found = 0;
  for (const auto& [name, v] : live) {
    const auto rows = Find(*index, v, 1, 100);
    found += rows.size() == 1 && rows[0].name == name ? 1u : 0u;
    bool among = false;
    for (const auto& row : Find(*index, v, 10, 100)) among = among || row.name == name;
    CHECK(among);
  }
  CHECK(found * 1000 >= live.size() * 999);
}

TEST_CASE("insert, replace, delete, repair and search at the same time", "[index][threads]") {
  for (const ElementType type : {ElementType::kF32, ElementType::kQ4}) {
    INFO(ElementTypeName(type));
    ChangeAndSearch(type);
  }
}

}  // namespace
}  // namespace hotkv
