#include <catch2/catch.hpp>
#include <limits>
#include <set>

#include "engine/base/sim_env.h"
#include "index/distance/targets.h"
#include "tests/unit/index/index_support.h"

namespace hotkv {
namespace {

using namespace index_test;

uint64_t BytesOf(const VectorIndex& index) {
  const IndexInfo info = index.Info();
  return info.hot_bytes + info.vector_bytes + info.other_bytes;
}

TEST_CASE("an index counts its memory: empty, of one element, of many, in memory and in files") {
  constexpr uint32_t kDim = 128;
  SimEnv env;
  Random random(77);
  IndexOptions options;
  options.dim = kDim;
  for (Env* files : {static_cast<Env*>(nullptr), static_cast<Env*>(&env)}) {
    INFO((files == nullptr ? "in memory" : "in files"));
    auto index = VectorIndex::Create(options, files, "counted").value();
    const uint64_t empty = BytesOf(*index);
    CHECK(empty > 1000);  // the tables of its arrays
    CHECK(empty < 1'000'000);
    const auto add = [&](int from, int to) {
      for (int i = from; i < to; ++i) {
        index->Commit(index->Prepare("element:" + std::to_string(i), RandomVector(&random, kDim), "").value());
      }
    };
    add(0, 1);
    const uint64_t one = BytesOf(*index);
    CHECK(one >= empty + kDim * sizeof(float));
    CHECK(one < 1'000'000);
    add(1, 1000);
    // The vectors, as many links and a name each at least; with room ahead, not several times as much.
    const uint64_t least = uint64_t{1000} * (kDim * sizeof(float) + 2 * options.m * sizeof(uint32_t) + 8);
    CHECK(BytesOf(*index) >= least);
    CHECK(BytesOf(*index) <= 4 * least + empty);
  }
}

TEST_CASE("an empty index answers nothing and loses nothing", "[index]") {
  auto index = Make(4, Metric::kCosine);
  CHECK(index->Count() == 0);
  CHECK(Find(*index, {1, 0, 0, 0}, 10).empty());
  CHECK_FALSE(index->Delete("a").has_value());
  CHECK_FALSE(index->Contains("a"));
  CHECK(index->GetVector("a").status().code() == Code::kNotFound);
  CHECK_FALSE(index->RandomName(7).has_value());
  CHECK(index->CheckInvariants().ok());
}

TEST_CASE("options out of range are refused", "[index]") {
  IndexOptions options;
  for (const uint32_t dim : {0u, 32769u}) {
    options.dim = dim;
    CHECK(VectorIndex::Create(options, nullptr, "").status().code() == Code::kInvalidArgument);
  }
  options.dim = 4;
  options.m = 1;
  CHECK(VectorIndex::Create(options, nullptr, "").status().code() == Code::kInvalidArgument);
  options.m = 513;
  CHECK(VectorIndex::Create(options, nullptr, "").status().code() == Code::kInvalidArgument);
  options.m = 16;
  options.ef_construction = 0;
  CHECK(VectorIndex::Create(options, nullptr, "").status().code() == Code::kInvalidArgument);
}

TEST_CASE("bad vectors are refused with a reason and change nothing", "[index]") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const uint32_t dim : {3u, 8u, 16u, 520u}) {
    auto index = Make(dim, Metric::kCosine);
    Random random(dim);
    for (int i = 0; i < 50; ++i) Put(index.get(), std::to_string(i), RandomVector(&random, dim));
    const std::vector<float> query = RandomVector(&random, dim);
    const auto before = Find(*index, query, 10);
    for (const float bad : {nan, -nan, inf, -inf}) {
      for (const size_t lane : {size_t{0}, size_t{dim / 2}, size_t{dim - 1}}) {
        std::vector<float> v = RandomVector(&random, dim);
        v[lane] = bad;
        const Status status = index->Prepare("bad", v, "").status();
        CHECK(status.code() == Code::kInvalidArgument);
        CHECK(status.message().find("component " + std::to_string(lane + 1)) != std::string::npos);
        CHECK(index->Search(v, {}).status().code() == Code::kInvalidArgument);
      }
    }
    const Status wrong = index->Prepare("bad", std::vector<float>(dim + 1, 1.0f), "").status();
    CHECK(wrong.code() == Code::kInvalidArgument);
    CHECK(wrong.message().find(std::to_string(dim + 1)) != std::string::npos);
    CHECK(wrong.message().find(std::to_string(dim)) != std::string::npos);
    CHECK(index->Prepare("bad", {}, "").status().code() == Code::kInvalidArgument);
    CHECK(index->Prepare("bad", std::vector<float>(dim, 0.0f), "").status().code() ==
          Code::kInvalidArgument);
    CHECK(index->Count() == 50);
    const auto after = Find(*index, query, 10);
    REQUIRE(after.size() == before.size());
    for (size_t i = 0; i < after.size(); ++i) CHECK(after[i].name == before[i].name);
  }
}

TEST_CASE("lengths at the edges of float are handled", "[index]") {
  auto cosine = Make(2, Metric::kCosine);
  Put(cosine.get(), "large", {3e38f, 0});
  Put(cosine.get(), "small", {0, 1e-44f});
  CHECK(Find(*cosine, {1, 0}, 1).front().name == "large");
  CHECK(Find(*cosine, {0, 1}, 1).front().name == "small");
  CHECK(cosine->Prepare("x", std::vector<float>{3.4e38f, 3.4e38f}, "").status().code() ==
        Code::kInvalidArgument);
  auto l2 = Make(2, Metric::kL2);
  CHECK(l2->Prepare("x", std::vector<float>{1e19f, 0}, "").status().code() ==
        Code::kInvalidArgument);
  Put(l2.get(), "zero", {0, 0});
  Put(l2.get(), "far", {-1e18f, 0});
  const auto rows = Find(*l2, {1e18f, 0}, 2);
  CHECK(rows[1].distance == Approx(2e18));
}

TEST_CASE("distances and order are those of the metric", "[index]") {
  for (const Metric metric : {Metric::kCosine, Metric::kL2, Metric::kIp}) {
    for (const uint32_t dim : {1u, 2u, 7u, 100u, 384u}) {
      auto index = Make(dim, metric);
      Model model{metric, {}};
      Random random(dim);
      for (int i = 0; i < 300; ++i) {
        const std::string name = "e" + std::to_string(i);
        const auto v = RandomVector(&random, dim);
        model.elements[name] = v;
        Put(index.get(), name, v);
      }
      for (int q = 0; q < 10; ++q) {
        const auto query = RandomVector(&random, dim);
        const auto truth = model.Nearest(query, 20);
        const auto rows = Find(*index, query, 20);
        REQUIRE(rows.size() == truth.size());
        for (size_t i = 0; i < rows.size(); ++i) {
          CHECK(rows[i].distance == Approx(truth[i].first).margin(1e-5));
          CHECK(ModelDistance(metric, query, model.elements[rows[i].name]) ==
                Approx(rows[i].distance).margin(1e-5));
          if (i != 0) CHECK(rows[i - 1].distance <= rows[i].distance);
        }
      }
      CHECK(index->CheckInvariants().ToString() == "OK");
    }
  }
}

TEST_CASE("k, offset, range and the parts of a row", "[index]") {
  auto index = Make(2, Metric::kL2);
  for (int i = 0; i < 20; ++i) {
    Put(index.get(), std::to_string(i), {static_cast<float>(i), 0},
        "{\"i\":" + std::to_string(i) + "}");
  }
  SearchParams params;
  params.k = 3;
  params.offset = 2;
  params.with_attr = true;
  params.with_vector = true;
  const auto rows = index->Search(std::vector<float>{0, 0}, params).value();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].name == "2");
  CHECK(rows[0].distance == 2);
  CHECK(rows[0].attr == "{\"i\":2}");
  CHECK(rows[0].vector == std::vector<float>{2, 0});
  params.range = 3;
  CHECK(index->Search(std::vector<float>{0, 0}, params).value().size() == 2);
  params.range = std::numeric_limits<float>::quiet_NaN();
  CHECK(index->Search(std::vector<float>{0, 0}, params).status().code() == Code::kInvalidArgument);
  params = {};
  params.k = 0;
  CHECK(index->Search(std::vector<float>{0, 0}, params).status().code() == Code::kInvalidArgument);
  params.k = 1000;
  CHECK(index->Search(std::vector<float>{0, 0}, params).value().size() == 20);
  params.offset = 4000000000u;
  CHECK(index->Search(std::vector<float>{0, 0}, params).value().empty());
  params = {};
  params.k = 1;
  params.offset = 0;
  params.ef = kIndexEfMax + 1;
  CHECK(index->Search(std::vector<float>{0, 0}, params).status().code() == Code::kInvalidArgument);
}

TEST_CASE("equal vectors have equal distances and come by slot", "[index]") {
  for (const uint32_t dim : {5u, 384u}) {
    auto index = Make(dim, Metric::kCosine);
    Random random(3);
    const auto v = RandomVector(&random, dim);
    for (int i = 0; i < 23; ++i) Put(index.get(), std::to_string(i), v);
    for (int i = 0; i < 200; ++i)
      Put(index.get(), "x" + std::to_string(i), RandomVector(&random, dim));
    const auto rows = Find(*index, v, 23);
    for (size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i].distance == rows[0].distance);
      CHECK(rows[i].slot == i);
    }
  }
}

TEST_CASE("the original vector comes back", "[index]") {
  Random random(4);
  for (const Metric metric : {Metric::kCosine, Metric::kL2, Metric::kIp}) {
    auto index = Make(33, metric);
    auto v = RandomVector(&random, 33);
    for (float& x : v) x *= 123.0f;
    Put(index.get(), "v", v);
    const auto back = index->GetVector("v").value();
    REQUIRE(back.size() == v.size());
    for (size_t i = 0; i < v.size(); ++i) CHECK(back[i] == Approx(v[i]).epsilon(1e-6));
  }
}

TEST_CASE("replacing, attributes, deleting, binary names", "[index]") {
  auto index = Make(2, Metric::kL2);
  const std::string name("a\0b\xff", 4);
  const auto first = Put(index.get(), name, {1, 1}, "one");
  CHECK(first.replaced_slot == kNoSlot);
  const auto second = Put(index.get(), name, {5, 5}, "two");
  CHECK(second.replaced_slot == first.slot);
  CHECK(index->Count() == 1);
  CHECK(index->GetAttr(name) == "two");
  CHECK(index->GetVector(name).value() == std::vector<float>{5, 5});
  CHECK(Find(*index, {1, 1}, 10).size() == 1);
  CHECK(index->SetAttr(name, "three") == second.slot);
  CHECK(index->GetAttr(name) == "three");
  CHECK(index->GetVector(name).value() == std::vector<float>{5, 5});
  CHECK_FALSE(index->SetAttr("none", "x").has_value());
  Put(index.get(), "", {0, 0}, std::string(100000, 'x'));
  CHECK(index->GetAttr("")->size() == 100000);
  CHECK(index->Delete(name) == second.slot);
  CHECK_FALSE(index->Delete(name).has_value());
  CHECK_FALSE(index->Contains(name));
  CHECK(Find(*index, {5, 5}, 10).size() == 1);
  CHECK(index->CheckInvariants().ToString() == "OK");
}

TEST_CASE("an element is invisible until its commit, and never seen when abandoned", "[index]") {
  auto index = Make(2, Metric::kL2);
  {
    auto prepared = index->Prepare("p", std::vector<float>{1, 1}, "");
    REQUIRE(prepared.ok());
    CHECK(index->Count() == 0);
    CHECK_FALSE(index->Contains("p"));
    CHECK(Find(*index, {1, 1}, 10).empty());
  }
  auto a = index->Prepare("p", std::vector<float>{1, 1}, "");
  index->Commit(std::move(*a));
  CHECK(Find(*index, {1, 1}, 10).size() == 1);
  auto b = index->Prepare("q", std::vector<float>{2, 2}, "");
  index->Abandon(std::move(*b));
  CHECK(Find(*index, {2, 2}, 10).size() == 1);
  RepairAll(index.get());
  CHECK(index->Info().dead == 0);
  CHECK(index->CheckInvariants().ToString() == "OK");
}

// Rows of the small set, and more made of pairs of them: 4,200, above what is always scanned.
std::vector<std::vector<float>> BaseVectors() {
  const auto base = LoadFbin("wordnet-cbag-384-small.base.fbin");
  std::vector<std::vector<float>> rows;
  for (uint32_t i = 0; i < 4200; ++i) {
    rows.push_back(base.vectors[i % base.rows]);
    if (i < base.rows) continue;
    for (size_t j = 0; j < rows.back().size(); ++j) {
      rows.back()[j] += 0.5f * base.vectors[(i * 7) % base.rows][j];
    }
  }
  return rows;
}

void CheckRecall(Metric metric, ElementType type, const std::vector<std::vector<float>>& rows,
                 const std::vector<std::vector<float>>& queries, double wanted) {
  IndexOptions options;
  options.dim = static_cast<uint32_t>(rows[0].size());
  options.metric = metric;
  options.type = type;
  options.ef_construction = 60;
  auto index = VectorIndex::Create(options, nullptr, "").value();
  Model model{metric, {}};
  for (size_t i = 0; i < rows.size(); ++i) {
    Put(index.get(), std::to_string(i), rows[i]);
    model.elements[std::to_string(i)] = rows[i];
  }
  INFO(MetricName(metric) << " " << ElementTypeName(type) << " " << index->Info().kernel);
  CHECK(index->Info().kernel == std::string(CurrentTarget().name));
  CHECK(index->CheckInvariants().ToString() == "OK");
  CHECK(Recall(*index, model, queries, 10, 100) >= wanted);
  // What is returned are float32 distances whatever the type.
  for (const SearchRow& row : Find(*index, queries[0], 10, 100)) {
    CHECK(row.distance ==
          Approx(ModelDistance(metric, queries[0], model.elements[row.name])).margin(1e-5));
  }
  size_t agreed = 0;
  for (const auto& q : queries) {
    const auto truth = model.Nearest(q, 10);
    const auto found = Find(*index, q, 10, 0, true);
    for (size_t i = 0; i < 10; ++i) agreed += found[i].name == truth[i].second ? 1u : 0u;
  }
  CHECK(agreed * 100 >= queries.size() * 10 * 99);
}

TEST_CASE("recall of the graph against an exact scan, every type and metric", "[index]") {
  const auto rows = BaseVectors();
  auto queries = LoadFbin("wordnet-cbag-384-small.query.fbin").vectors;
  queries.resize(20);
  for (const ElementType type :
       {ElementType::kF32, ElementType::kF16, ElementType::kQ8, ElementType::kQ4}) {
    for (const Metric metric : {Metric::kCosine, Metric::kL2, Metric::kIp}) {
      CheckRecall(metric, type, rows, queries, 0.97);
    }
  }
  // One bit: for 1,000 dimensions and more; at 384 re-scoring still finds most.
  for (const Metric metric : {Metric::kCosine, Metric::kL2, Metric::kIp}) {
    CheckRecall(metric, ElementType::kBin, rows, queries, 0.9);
  }
}

TEST_CASE("recall of the graph against an exact scan, every target", "[index]") {
  auto rows = BaseVectors();
  auto queries = LoadFbin("wordnet-cbag-384-small.query.fbin").vectors;
  queries.resize(15);
  // Fewer dimensions, an odd number: plain code at -O1 is slow.
  for (auto& row : rows) row.resize(99);
  for (auto& query : queries) query.resize(99);
  for (const Target* target : AllTargets()) {
    if (!target->supported()) continue;
    REQUIRE(OverrideTarget(target->name));
    for (const ElementType type :
         {ElementType::kF32, ElementType::kF16, ElementType::kQ8, ElementType::kQ4}) {
      CheckRecall(Metric::kCosine, type, rows, queries, 0.95);
    }
    CheckRecall(Metric::kL2, ElementType::kQ4, rows, queries, 0.93);
    CheckRecall(Metric::kCosine, ElementType::kBin, rows, queries, 0.7);
  }
  OverrideTarget("");
}

TEST_CASE("codes in a narrow cone: re-scoring goes on as long as it may change the answer",
          "[index]") {
  const uint32_t dim = 384;
  Random random(21);
  const auto common = RandomVector(&random, dim);
  // Few directions, so that there are near neighbours to be found.
  std::vector<std::vector<float>> directions;
  for (int i = 0; i < 10; ++i) directions.push_back(RandomVector(&random, dim));
  const auto in_cone = [&] {
    auto v = common;
    for (const auto& direction : directions) {
      const auto weight = static_cast<float>(0.4 * (random.Uniform() - 0.5));
      for (uint32_t i = 0; i < dim; ++i) v[i] += weight * direction[i];
    }
    return v;
  };
  IndexOptions options;
  options.dim = dim;
  options.type = ElementType::kQ4;
  options.ef_construction = 60;
  auto index = VectorIndex::Create(options, nullptr, "").value();
  Model model{Metric::kCosine, {}};
  for (int i = 0; i < 4200; ++i) {
    const auto v = in_cone();
    model.elements[std::to_string(i)] = v;
    Put(index.get(), std::to_string(i), v);
  }
  const auto recall = [&](const std::vector<std::vector<float>>& queries, uint32_t rerank) {
    size_t hits = 0;
    for (const auto& query : queries) {
      std::set<std::string> truth;
      for (const auto& [distance, name] : model.Nearest(query, 10)) truth.insert(name);
      SearchParams params;
      params.ef = 250;
      params.rerank = rerank;
      const auto rows = index->Search(query, params).value();
      for (const auto& row : rows) hits += truth.count(row.name);
    }
    return static_cast<double>(hits) / (10.0 * static_cast<double>(queries.size()));
  };
  std::vector<std::vector<float>> queries;
  for (int i = 0; i < 25; ++i) queries.push_back(in_cone());
  const double fixed = recall(queries, 20);
  const double by_error = recall(queries, 0);
  const double whole_pool = recall(queries, 250);
  INFO("20: " << fixed << ", by error: " << by_error << ", all: " << whole_pool);
  CHECK(whole_pool >= 0.95);
  CHECK(by_error >= whole_pool - 0.01);
  CHECK(by_error > fixed + 0.05);
}

TEST_CASE("a filter gets name and attributes, and gives k results", "[index]") {
  auto index = Make(16, Metric::kCosine);
  Random random(9);
  for (int i = 0; i < 20000; ++i) {
    Put(index.get(), std::to_string(i), RandomVector(&random, 16), i % 1000 == 0 ? "rare" : "");
  }
  struct Wanted {
    std::string attr;
    int modulus;
  };
  for (const double selectivity : {1.0, 0.001}) {
    const Wanted wanted{"rare", 1000};
    SearchParams params;
    params.k = 15;
    params.ef = 50;
    params.with_attr = true;
    params.filter.context = &wanted;
    params.filter.selectivity = selectivity;
    params.filter.accepts = [](const void* c, const ElementView& e) {
      return e.attr == static_cast<const Wanted*>(c)->attr;
    };
    const auto rows = index->Search(RandomVector(&random, 16), params).value();
    CHECK(rows.size() == 15);
    for (const auto& row : rows) {
      CHECK(row.attr == "rare");
      CHECK(std::stoi(row.name) % 1000 == 0);
    }
    params.filter.accepts = [](const void*, const ElementView&) { return false; };
    CHECK(index->Search(RandomVector(&random, 16), params).value().empty());
  }
}

TEST_CASE("visiting meets every element once", "[index]") {
  auto index = Make(3, Metric::kL2);
  std::set<std::string> expected;
  for (int i = 0; i < 500; ++i) {
    Put(index.get(), std::to_string(i), {static_cast<float>(i), 1, 2}, "a" + std::to_string(i));
    expected.insert(std::to_string(i));
  }
  for (int i = 0; i < 500; i += 3) {
    index->Delete(std::to_string(i));
    expected.erase(std::to_string(i));
  }
  std::multiset<std::string> met;
  uint32_t at = 0;
  while (at != kNoSlot) {
    at = index->ForEach(
        at, 64,
        [&](const VectorIndex::VisitedElement& e) {
          met.insert(std::string(e.view.name));
          CHECK(e.view.attr == "a" + std::string(e.view.name));
          CHECK(e.vector[0] == std::stof(std::string(e.view.name)));
        },
        true);
  }
  CHECK(std::multiset<std::string>(expected.begin(), expected.end()) == met);
  for (uint64_t r = 0; r < 100; ++r)
    CHECK(expected.count(*index->RandomName(r * 0x9e3779b97f4a7c15)) == 1);
}

TEST_CASE("links of an element by level", "[index]") {
  auto index = Make(4, Metric::kL2, 4);
  Random random(10);
  size_t levels = 0;
  for (int i = 0; i < 2000; ++i) Put(index.get(), std::to_string(i), RandomVector(&random, 4));
  for (int i = 0; i < 2000; ++i) {
    const auto links = index->GetLinks(std::to_string(i)).value();
    levels = std::max(levels, links.size());
    REQUIRE(!links[0].empty());
    CHECK(links[0].size() <= 8);
    for (size_t l = 1; l < links.size(); ++l) CHECK(links[l].size() <= 4);
    for (size_t j = 1; j < links[0].size(); ++j)
      CHECK(links[0][j - 1].distance <= links[0][j].distance);
  }
  CHECK(levels >= 4);
  CHECK(levels == index->Info().top_level + 1);
  CHECK(index->GetLinks("none").status().code() == Code::kNotFound);
}

}  // namespace
}  // namespace hotkv
