#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/index/index_support.h"

namespace hotkv {
namespace {

using namespace index_test;

void CheckAllLive(const std::vector<SearchRow>& rows, const Model& model, size_t wanted) {
  CHECK(rows.size() == wanted);
  for (const auto& row : rows) CHECK(model.elements.count(row.name) == 1);
}

TEST_CASE("deletes around the entry point, down to nothing and up again", "[index][delete]") {
  for (const bool repaired : {false, true}) {
    auto index = Make(16, Metric::kL2, 16, 60);
    Model model{Metric::kL2, {}};
    Random random(30);
    const int n = 20000;
    for (int i = 0; i < n; ++i) {
      const auto v = RandomVector(&random, 16);
      model.elements[std::to_string(i)] = v;
      Put(index.get(), std::to_string(i), v);
    }
    std::vector<std::vector<float>> queries;
    for (int i = 0; i < 300; ++i) queries.push_back(RandomVector(&random, 16));
    const auto remove = [&](const std::string& name) {
      CHECK(index->Delete(name).has_value() == (model.elements.erase(name) == 1));
    };
    remove("0");
    for (int q = 0; q < 10; ++q) {
      for (const auto& row : Find(*index, queries[static_cast<size_t>(q)], 50)) remove(row.name);
    }
    std::vector<std::string> names;
    for (const auto& [name, v] : model.elements) names.push_back(name);
    for (const auto& name : names) {
      if (model.elements.size() > n / 10 && random.Below(10) != 0) remove(name);
    }
    if (repaired) {
      RepairAll(index.get());
      CHECK(index->Info().dead == 0);
    }
    CHECK(index->CheckInvariants().ToString() == "OK");
    for (const auto& q : queries) CheckAllLive(Find(*index, q, 10, 100), model, 10);
    CHECK(Recall(*index, model, queries, 10, 100) >= 0.95);

    names.clear();
    for (const auto& [name, v] : model.elements) names.push_back(name);
    for (const auto& name : names) remove(name);
    CHECK(index->Count() == 0);
    CHECK(Find(*index, queries[0], 10).empty());
    if (repaired) {
      RepairAll(index.get());
      CHECK(index->CheckInvariants().ToString() == "OK");
    }
    Put(index.get(), "new", queries[0]);
    const auto rows = Find(*index, queries[0], 10);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].name == "new");
    for (int i = 0; i < 3000; ++i) {
      const auto v = RandomVector(&random, 16);
      model.elements[std::to_string(i)] = v;
      Put(index.get(), std::to_string(i), v);
    }
    model.elements["new"] = queries[0];
    CHECK(Recall(*index, model, queries, 10, 100) >= 0.95);
    RepairAll(index.get());
    CHECK(index->CheckInvariants().ToString() == "OK");
    CHECK(Recall(*index, model, queries, 10, 100) >= 0.95);
  }
}

TEST_CASE("recall holds after half the elements went and came ten times", "[index][delete]") {
  const uint32_t dim = 24;
  const int n = 6000;
  Random random(31);
  auto index = Make(dim, Metric::kCosine, 12, 80);
  auto fresh = Make(dim, Metric::kCosine, 12, 80);
  Model model{Metric::kCosine, {}};
  for (int i = 0; i < n; ++i) {
    const auto v = RandomVector(&random, dim);
    model.elements[std::to_string(i)] = v;
    Put(index.get(), std::to_string(i), v);
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = round % 2; i < n; i += 2) {
      index->Delete(std::to_string(i));
    }
    RepairAll(index.get());
    for (int i = round % 2; i < n; i += 2) {
      const auto v = RandomVector(&random, dim);
      model.elements[std::to_string(i)] = v;
      Put(index.get(), std::to_string(i), v);
    }
  }
  CHECK(index->CheckInvariants().ToString() == "OK");
  // Without an Env slots are reused at once.
  CHECK(index->Info().slots <= n + n / 2 + 100);
  for (const auto& [name, v] : model.elements) Put(fresh.get(), name, v);
  std::vector<std::vector<float>> queries;
  for (int i = 0; i < 400; ++i) queries.push_back(RandomVector(&random, dim));
  for (const uint32_t ef : {20u, 40u, 100u}) {
    const double worn = Recall(*index, model, queries, 10, ef);
    const double made = Recall(*fresh, model, queries, 10, ef);
    INFO("ef " << ef << ": " << worn << " against " << made);
    CHECK(worn >= made - 0.01);
  }
}

TEST_CASE("many identical vectors do not hide the rest", "[index][delete]") {
  for (const Metric metric : {Metric::kL2, Metric::kIp, Metric::kCosine}) {
    for (const uint32_t dim : {4u, 128u}) {
      {
        const int copies = 500;
        auto index = Make(dim, metric, 16, 100);
        Random random(dim);
        std::map<std::string, std::vector<float>> elements;
        std::vector<std::vector<float>> distinct;
        const auto unit = [&] {
          auto v = RandomVector(&random, dim);
          double norm = 0;
          for (const float x : v) norm += double{x} * x;
          for (float& x : v) x = static_cast<float>(x / std::sqrt(norm));
          return v;
        };
        int number = 0;
        const auto add = [&](const std::vector<float>& v) {
          const std::string name = std::to_string(number++);
          Put(index.get(), name, v);
          elements[name] = v;
        };
        for (int group = 0; group < 2; ++group) {
          const auto v = unit();
          distinct.push_back(v);
          for (int i = 0; i < copies; ++i) add(v);
          for (int i = 0; i < 20; ++i) {
            distinct.push_back(unit());
            add(distinct.back());
          }
        }
        RepairAll(index.get());
        INFO(MetricName(metric) << " dim " << dim << " copies " << copies);
        CHECK(index->CheckInvariants().ToString() == "OK");
        for (const auto& query : distinct) {
          for (const uint32_t k : {1u, 10u}) {
            const auto rows = Find(*index, query, k);
            REQUIRE(rows.size() == k);
            CHECK(elements[rows[0].name] == query);
          }
        }
        const auto all = Find(*index, distinct[0], static_cast<uint32_t>(elements.size()));
        std::set<std::string> names;
        for (const auto& row : all) names.insert(row.name);
        CHECK(names.size() == elements.size());
      }
    }
  }
}

TEST_CASE("a crowd of copies among others, walked", "[index][delete]") {
  for (const Metric metric : {Metric::kL2, Metric::kCosine}) {
    auto index = Make(12, metric, 16, 100);
    Random random(40);
    std::vector<std::vector<float>> others;
    const auto crowd = RandomVector(&random, 12);
    for (int i = 0; i < 12000; ++i) {
      const bool copy = i % 3 != 2;
      const auto v = copy ? crowd : RandomVector(&random, 12);
      Put(index.get(), std::to_string(i), v);
      if (!copy) others.push_back(v);
    }
    RepairAll(index.get());
    CHECK(index->CheckInvariants().ToString() == "OK");
    size_t found = 0;
    for (size_t i = 0; i < others.size(); i += 4) {
      const auto rows = Find(*index, others[i], 10, 100);
      CHECK(rows.size() == 10);
      found += rows[0].name == std::to_string(i * 3 + 2) ? 1u : 0u;
    }
    CHECK(found >= 990);
    const auto rows = Find(*index, crowd, 50, 100);
    REQUIRE(rows.size() == 50);
    CHECK(rows[49].distance == rows[0].distance);
  }
}

}  // namespace
}  // namespace hotkv
