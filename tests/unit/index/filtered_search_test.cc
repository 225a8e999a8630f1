// Searches with a filter against a brute-force search over what matches: recall and number of rows at every share, with
// matches that lie far from the query, by fields and by attributes alone; while elements change; after a restart.
#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "engine/base/file.h"
#include "engine/base/sim_env.h"
#include "index/filter/filter_expression.h"
#include "tests/support/source_dir.h"
#include "tests/unit/index/index_support.h"

namespace hotkv {
namespace {

using namespace index_test;

constexpr uint32_t kElements = 10000;
constexpr uint32_t kDim = 16;

// Elements "0", "1", ... with a random rank r, a rank c by nearness to one point, and a tag t, all shares exact.
struct World {
  std::vector<std::vector<float>> vectors;
  std::vector<uint32_t> r;
  std::vector<uint32_t> c;
  std::unique_ptr<VectorIndex> index;

  std::string Attributes(uint32_t i) const {
    return "{\"r\":" + std::to_string(r[i]) + ",\"c\":" + std::to_string(c[i]) + ",\"t\":\"" +
           (r[i] < kElements / 100 ? "rare" : "often") + "\"}";
  }
};

World MakeWorld(ElementType type, bool fields) {
  World world;
  Random random(3);
  for (uint32_t i = 0; i < kElements; ++i) world.vectors.push_back(RandomVector(&random, kDim));
  std::vector<uint32_t> order(kElements);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = kElements; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  world.r.resize(kElements);
  for (uint32_t at = 0; at < kElements; ++at) world.r[order[at]] = at;
  std::vector<std::pair<double, uint32_t>> near;
  for (uint32_t i = 0; i < kElements; ++i) {
    near.emplace_back(ModelDistance(Metric::kCosine, world.vectors[i], world.vectors[0]), i);
  }
  std::sort(near.begin(), near.end());
  world.c.resize(kElements);
  for (uint32_t at = 0; at < kElements; ++at) world.c[near[at].second] = at;
  IndexOptions options;
  options.dim = kDim;
  options.type = type;
  options.ef_construction = 60;
  world.index = VectorIndex::Create(options, nullptr, "").value();
  if (fields) {
    REQUIRE(world.index->SetFields({{"r", FieldKind::kNumeric}, {"c", FieldKind::kNumeric}, {"t", FieldKind::kTag}}).ok());
  }
  for (uint32_t i = 0; i < kElements; ++i) Put(world.index.get(), std::to_string(i), world.vectors[i], world.Attributes(i));
  return world;
}

World& WithFields() {
  static World world = MakeWorld(ElementType::kF32, true);
  return world;
}

struct Outcome {
  double recall = 0;
  size_t fewest = SIZE_MAX;
  std::set<std::string> plans;
};

Outcome Run(const World& world, const std::string& filter, SearchPlan plan, const std::vector<bool>& matches, uint32_t k,
            uint32_t queries) {
  auto where = FilterExpression::Parse(filter);
  REQUIRE(where.ok());
  Random random(11);
  Outcome outcome;
  size_t hits = 0;
  size_t wanted = 0;
  for (uint32_t q = 0; q < queries; ++q) {
    const std::vector<float> query = RandomVector(&random, kDim);
    std::vector<double> distances;
    for (uint32_t i = 0; i < kElements; ++i) {
      if (matches[i]) distances.push_back(ModelDistance(Metric::kCosine, query, world.vectors[i]));
    }
    std::sort(distances.begin(), distances.end());
    const size_t expected = std::min<size_t>(k, distances.size());
    SearchParams params;
    params.k = k;
    params.where_or_null = &*where;
    params.plan = plan;
    SearchReport report;
    params.report_or_null = &report;
    const auto rows = world.index->Search(query, params);
    REQUIRE(rows.ok());
    REQUIRE(rows->size() == expected);
    outcome.plans.insert(std::string(SearchPlanName(report.plan)));
    for (const SearchRow& row : *rows) {
      const auto i = static_cast<uint32_t>(std::stoul(row.name));
      REQUIRE(matches[i]);
      hits += ModelDistance(Metric::kCosine, query, world.vectors[i]) <= distances[expected - 1] + 1e-6 ? 1 : 0;
    }
    wanted += expected;
  }
  outcome.recall = wanted == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(wanted);
  return outcome;
}

std::vector<bool> Below(const std::vector<uint32_t>& ranks, uint32_t limit) {
  std::vector<bool> matches;
  for (const uint32_t rank : ranks) matches.push_back(rank < limit);
  return matches;
}

constexpr uint32_t kShares[] = {10000, 5000, 1000, 100, 10, 1};  // of 10,000: 100% to 0.01%

TEST_CASE("filtered search finds what is nearest at every share", "[index][filter]") {
  const World& world = WithFields();
  std::set<std::string> plans;
  for (const uint32_t limit : kShares) {
    INFO(limit << " match");
    const std::string bound = std::to_string(limit);
    Outcome o = Run(world, ".r < " + bound, SearchPlan::kChoose, Below(world.r, limit), 10, 60);
    CHECK(o.recall >= 0.95);
    plans.insert(o.plans.begin(), o.plans.end());
    // What matches lies together, for most queries far away.
    o = Run(world, ".c < " + bound, SearchPlan::kChoose, Below(world.c, limit), 10, 60);
    CHECK(o.recall >= 0.95);
    o = Run(world, ".r < " + bound, SearchPlan::kChoose, Below(world.r, limit), 50, 10);
    CHECK(o.recall >= 0.95);
  }
  CHECK(plans == std::set<std::string>{"scan", "walk"});
  const Outcome rare = Run(world, ".t == 'rare'", SearchPlan::kChoose, Below(world.r, 100), 10, 30);
  CHECK(rare.recall == 1);
  std::vector<bool> both = Below(world.r, 5000);
  for (uint32_t i = 0; i < kElements; ++i) both[i] = both[i] && world.c[i] >= 5000 && world.r[i] >= 100;
  CHECK(Run(world, ".t != 'rare' and .r < 5000 and not (.c < 5000)", SearchPlan::kChoose, both, 10, 40).recall >= 0.95);
  CHECK(Run(world, ".t == 'never'", SearchPlan::kChoose, std::vector<bool>(kElements), 10, 5).recall == 1);
  CHECK(Run(world, ".unknown == 1", SearchPlan::kChoose, std::vector<bool>(kElements), 10, 5).recall == 1);
}

TEST_CASE("filtered search: a walk among what does not match gives up, and says so", "[index][filter]") {
  const World& world = WithFields();
  const auto where = FilterExpression::Parse(".c < 4000").value();
  Random random(5);
  uint32_t gave_up = 0;
  for (int q = 0; q < 20; ++q) {
    // Opposite to the point around which all matches lie.
    std::vector<float> query = world.vectors[0];
    const std::vector<float> noise = RandomVector(&random, kDim);
    for (uint32_t i = 0; i < kDim; ++i) query[i] = noise[i] / 4 - query[i];
    SearchParams params;
    params.where_or_null = &where;
    SearchReport report;
    params.report_or_null = &report;
    const auto rows = world.index->Search(query, params);
    params.plan = SearchPlan::kScan;
    SearchReport scan;
    params.report_or_null = &scan;
    const auto truth = world.index->Search(query, params);
    REQUIRE((rows.ok() && truth.ok()));
    CHECK(scan.distances == 4000);
    CHECK(scan.nodes == 0);
    REQUIRE(rows->size() == 10);
    if (report.plan != SearchPlan::kScan) continue;
    ++gave_up;
    CHECK(report.attempts == 2);
    CHECK(report.nodes > 0);
    CHECK(report.distances == report.nodes + 4000);
    for (size_t i = 0; i < 10; ++i) CHECK((*rows)[i].name == (*truth)[i].name);
  }
  CHECK(gave_up >= 18);
}

TEST_CASE("filtered search: every plan by force returns as many rows as there are", "[index][filter]") {
  const World& world = WithFields();
  for (const SearchPlan plan : {SearchPlan::kScan, SearchPlan::kWalk, SearchPlan::kTwoHop}) {
    for (const uint32_t limit : {5000u, 1000u, 20u}) {
      INFO(SearchPlanName(plan) << " " << limit);
      const Outcome o = Run(world, ".r < " + std::to_string(limit), plan, Below(world.r, limit), 10, 30);
      // Loose where a plan is not for so few.
      CHECK(o.recall >= (limit >= 1000 || plan == SearchPlan::kScan ? 0.95 : 0.5));
    }
  }
}

TEST_CASE("filtered search without fields reads attributes, and finds as much", "[index][filter]") {
  static const World world = MakeWorld(ElementType::kQ8, false);
  for (const uint32_t limit : kShares) {
    INFO(limit << " match");
    const std::string bound = std::to_string(limit);
    CHECK(Run(world, ".r < " + bound, SearchPlan::kChoose, Below(world.r, limit), 10, 15).recall >= 0.95);
    CHECK(Run(world, ".c < " + bound, SearchPlan::kChoose, Below(world.c, limit), 10, 15).recall >= 0.95);
  }
  // Fields declared now serve once they are built; meanwhile the answers are the same.
  REQUIRE(world.index->SetFields({{"r", FieldKind::kNumeric}}).ok());
  bool more = true;
  for (int i = 0; more; ++i) {
    if (i % 20 == 0) {
      CHECK(world.index->Info().fields_ready == false);
      CHECK(Run(world, ".r < 100", SearchPlan::kChoose, Below(world.r, 100), 10, 3).recall >= 0.95);
    }
    more = world.index->BuildFields(100);
  }
  CHECK(world.index->Info().fields_ready);
  auto where = FilterExpression::Parse(".r < 100");
  SearchParams params;
  SearchReport report;
  params.where_or_null = &*where;
  params.report_or_null = &report;
  REQUIRE(world.index->Search(world.vectors[0], params).ok());
  CHECK(report.listed);
  CHECK(report.covered);
  CHECK(report.json_reads == 0);
  CHECK(report.distances == 100);
  CHECK(world.index->CountMatching(*where) == 100);
  // Filters that used `c` have asked for a column; it is no declared field.
  CHECK(world.index->Info().automatic_fields.empty());
  while (world.index->BuildFields(1000)) {
  }
  CHECK(world.index->Info().automatic_fields == std::vector<std::string>{"c"});
  CHECK(world.index->fields().size() == 1);
  for (const uint32_t limit : {1000u, 10u}) {
    CHECK(Run(world, ".c < " + std::to_string(limit), SearchPlan::kChoose, Below(world.c, limit), 10, 15).recall >= 0.95);
  }
  where = FilterExpression::Parse(".c < 10 and .t != 'x'");
  REQUIRE(world.index->Search(world.vectors[0], params).ok());
  CHECK(report.listed);
  CHECK_FALSE(report.covered);
  // Declared, it stays; what fields there are changes at once.
  REQUIRE(world.index->SetFields({{"c", FieldKind::kNumeric}}).ok());
  CHECK(world.index->Info().fields_ready);
  CHECK(world.index->Info().automatic_fields.empty());
}

TEST_CASE("a field that filters use undeclared gets its column once, and answers are right meanwhile", "[index][filter][threads]") {
  constexpr uint32_t kCount = 6000;
  constexpr uint32_t kStep = 256;
  IndexOptions options;
  options.dim = 8;
  options.ef_construction = 40;
  auto index = VectorIndex::Create(options, nullptr, "").value();
  Random random(2);
  std::vector<std::vector<float>> vectors;
  for (uint32_t i = 0; i < kCount; ++i) {
    vectors.push_back(RandomVector(&random, 8));
    Put(index.get(), std::to_string(i), vectors[i], "{\"u\":" + std::to_string(i % 100) + "}");
  }
  CHECK_FALSE(index->BuildFields(kStep));
  const auto where = FilterExpression::Parse(".u == 7").value();
  const auto search = [&](const std::vector<float>& query, SearchReport* report) {
    SearchParams params;
    params.where_or_null = &where;
    params.k = 5;
    params.report_or_null = report;
    return index->Search(query, params).value();
  };
  // How many of the nearest of the 60 that match; -1 when a row does not match or some are missing.
  const auto hits_of = [&](const std::vector<float>& query, const std::vector<SearchRow>& rows) {
    std::vector<std::pair<double, std::string>> all;
    for (uint32_t i = 7; i < kCount; i += 100) {
      all.emplace_back(ModelDistance(Metric::kCosine, query, vectors[i]), std::to_string(i));
    }
    std::sort(all.begin(), all.end());
    if (rows.size() != 5) return -1;
    int hits = 0;
    for (const SearchRow& row : rows) {
      if (std::stoi(row.name) % 100 != 7) return -1;
      hits += ModelDistance(Metric::kCosine, query, vectors[std::stoul(row.name)]) <= all[4].first + 1e-6 ? 1 : 0;
    }
    return hits;
  };
  SearchReport first;
  CHECK(hits_of(vectors[0], search(vectors[0], &first)) >= 0);
  CHECK_FALSE(first.covered);
  CHECK(first.json_reads > 0);
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> wrong{0};
  std::atomic<uint32_t> searches{0};
  std::atomic<int> hits{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random mine(t + 50);
      while (!stop) {
        const std::vector<float> query = RandomVector(&mine, 8);
        SearchReport report;
        const int found = hits_of(query, search(query, &report));
        found < 0 ? static_cast<void>(++wrong) : static_cast<void>(hits += found);
        ++searches;
      }
    });
  }
  uint32_t steps = 0;
  for (; index->BuildFields(kStep); ++steps) {
    const uint32_t before = searches;
    while (searches < before + 2) std::this_thread::yield();
  }
  // Searches went on wishing for it until it was there; it is not made again.
  const uint32_t before = searches;
  while (searches < before + 20) std::this_thread::yield();
  uint32_t more = 0;
  for (int i = 0; i < 10; ++i) more += index->BuildFields(kStep) ? 1 : 0;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(hits >= 0.95 * 5 * searches);
  CHECK(more == 0);
  CHECK(steps >= kCount / kStep);
  CHECK(steps <= kCount / kStep + 3);  // and perhaps its run
  CHECK(index->Info().automatic_fields == std::vector<std::string>{"u"});
  SearchReport last;
  CHECK(hits_of(vectors[1], search(vectors[1], &last)) == 5);
  CHECK(last.covered);
  CHECK(last.json_reads == 0);
  CHECK(last.distances == kCount / 100);
}

TEST_CASE("filtered search on a real set agrees with its ground truth", "[index][filter]") {
  const FloatFile base = LoadFbin("wordnet-cbag-384-small.base.fbin");
  const FloatFile queries = LoadFbin("wordnet-cbag-384-small.query.fbin");
  const std::string dir = SourcePath("tests/data/wordnet-cbag-384-small");
  std::ifstream attributes(dir + ".attrs.tsv");
  std::string line;
  std::getline(attributes, line);
  IndexOptions options;
  options.dim = base.dim;
  options.type = ElementType::kQ4;
  options.ef_construction = 100;
  auto index = VectorIndex::Create(options, nullptr, "").value();
  REQUIRE(index->SetFields({{"pos", FieldKind::kTag}}).ok());
  for (uint32_t i = 0; i < base.rows; ++i) {
    std::getline(attributes, line);
    std::istringstream row(line);
    std::string number;
    std::string pos;
    row >> number >> pos;
    REQUIRE(number == std::to_string(i));
    Put(index.get(), number, base.vectors[i], "{\"pos\":\"" + pos + "\"}");
  }
  std::ifstream in(dir + ".filter-pos-v.gt.ibin", std::ios::binary);
  uint32_t head[2] = {0, 0};
  in.read(reinterpret_cast<char*>(head), sizeof(head));
  REQUIRE(head[0] == queries.rows);
  std::vector<int32_t> truth(size_t{head[0]} * head[1]);
  in.read(reinterpret_cast<char*>(truth.data()), static_cast<std::streamsize>(truth.size() * sizeof(int32_t)));
  auto where = FilterExpression::Parse(".pos == 'v'");
  for (const SearchPlan plan : {SearchPlan::kChoose, SearchPlan::kScan, SearchPlan::kWalk, SearchPlan::kTwoHop}) {
    size_t hits = 0;
    for (uint32_t q = 0; q < queries.rows; ++q) {
      SearchParams params;
      params.where_or_null = &*where;
      params.plan = plan;
      const auto rows = index->Search(queries.vectors[q], params);
      REQUIRE(rows->size() == 10);
      for (const SearchRow& row : *rows) {
        const auto first = truth.begin() + static_cast<std::ptrdiff_t>(size_t{q} * head[1]);
        hits += std::find(first, first + 10, std::stoi(row.name)) != first + 10 ? 1 : 0;
      }
    }
    INFO(SearchPlanName(plan));
    CHECK(static_cast<double>(hits) / (10.0 * queries.rows) >= 0.95);
  }
}

// Names carry their element's group; every change moves an element's attributes within what its name says.
TEST_CASE("filtered search while elements come, change and go", "[index][filter][threads]") {
  IndexOptions options;
  options.dim = 8;
  options.ef_construction = 40;
  auto index = VectorIndex::Create(options, nullptr, "").value();
  REQUIRE(index->SetFields({{"g", FieldKind::kTag}, {"n", FieldKind::kNumeric}}).ok());
  constexpr int kNames = 6000;
  const auto attributes = [](int i, uint64_t version) {
    return "{\"g\":\"" + std::to_string(i % 7) + "\",\"n\":" + std::to_string(version % 100) + ",\"u\":" +
           std::to_string(version % 100) + "}";
  };
  Random seed(1);
  for (int i = 0; i < kNames; ++i) Put(index.get(), std::to_string(i), RandomVector(&seed, 8), attributes(i, 0));
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> searches{0};
  std::atomic<uint64_t> wrong{0};
  std::mutex commits;  // as the lock of the key
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int step = 0; step < 1500; ++step) {
        // Group 6 is left alone.
        const int i = static_cast<int>(random.Below(kNames / 7)) * 7 + static_cast<int>(random.Below(6));
        const std::string name = std::to_string(i);
        switch (random.Below(4)) {
          case 0: {
            auto prepared = index->Prepare(name, RandomVector(&random, 8), attributes(i, random.Next()));
            std::lock_guard<std::mutex> lock(commits);
            index->Commit(std::move(*prepared));
            break;
          }
          case 1: {
            std::lock_guard<std::mutex> lock(commits);
            index->Delete(name);
            break;
          }
          default: {
            std::lock_guard<std::mutex> lock(commits);
            index->SetAttr(name, attributes(i, random.Next()));
          }
        }
        if (step % 50 == 0) index->RepairStep(256, RepairWhen::kNow);
        if (step % 20 == 0) index->BuildFields(300);
      }
    });
  }
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(100 + t);
      while (!stop.load()) {
        const uint64_t group = random.Below(7);
        const bool ranged = random.Below(2) == 0;
        const std::string text = ".g == '" + std::to_string(group) + "'" + (ranged ? random.Below(2) == 0 ? " and .n < 50" : " and .u < 50" : "");
        auto where = FilterExpression::Parse(text);
        SearchParams params;
        params.where_or_null = &*where;
        params.with_attr = true;
        params.plan = static_cast<SearchPlan>(random.Below(4));
        const auto rows = index->Search(RandomVector(&random, 8), params);
        std::set<std::string> names;
        for (const SearchRow& row : *rows) {
          names.insert(row.name);
          const bool good = std::stoul(row.name) % 7 == group && where->Matches(row.attr);
          if (!good) wrong.fetch_add(1);
        }
        if (names.size() != rows->size()) wrong.fetch_add(1);
        // Nothing of the group that is left alone may be missing.
        if (group == 6 && !ranged && rows->size() != 10) wrong.fetch_add(1);
        searches.fetch_add(1);
      }
    });
  }
  threads[0].join();
  threads[1].join();
  while (searches.load() < 50) std::this_thread::yield();
  stop = true;
  threads[2].join();
  threads[3].join();
  CHECK(wrong.load() == 0);
  while (index->BuildFields(1000)) {
  }
  CHECK(index->Info().automatic_fields == std::vector<std::string>{"u"});
  RepairAll(index.get());
  CHECK(index->CheckInvariants().ToString() == "OK");
  // At rest every count is that of the attributes.
  for (const char* text : {".g == '6'", ".g == '3'", ".n < 50", ".g == '2' and .n >= 50", ".u < 20 or .n > 90", "not .n == 0"}) {
    auto where = FilterExpression::Parse(text);
    uint64_t expected = 0;
    index->ForEach(0, UINT32_MAX, [&](const VectorIndex::VisitedElement& e) { expected += where->Matches(e.view.attr); });
    INFO(text);
    CHECK(index->CountMatching(*where) == expected);
  }
}

TEST_CASE("fields survive a restart; answers are right before their columns are built", "[index][filter]") {
  SimEnv env;
  IndexOptions options;
  options.dim = 4;
  const std::vector<FieldSpec> fields = {{"g", FieldKind::kTag}, {"n", FieldKind::kNumeric}};
  Random random(8);
  const auto attributes = [](int i) {
    return "{\"g\":\"" + std::to_string(i % 5) + "\",\"n\":" + std::to_string(i) + "}";
  };
  {
    auto index = VectorIndex::Create(options, &env, "ix").value();
    REQUIRE(index->SetFields(fields).ok());
    for (int i = 0; i < 2000; ++i) Put(index.get(), std::to_string(i), RandomVector(&random, 4), attributes(i));
    REQUIRE(index->Checkpoint(1).ok());
  }
  auto index = VectorIndex::Open(&env, "ix", 1).value();
  CHECK(index->fields() == fields);
  CHECK_FALSE(index->Info().fields_ready);
  auto group = FilterExpression::Parse(".g == '3' and .n < 1000");
  CHECK(index->CountMatching(*group) == 200);
  // Replayed and new changes, before, while and after columns are built.
  REQUIRE(index->ApplyAttr(3, "3", R"({"g":"4","n":3})").ok());
  REQUIRE(index->ApplySet(2000, "new", RandomVector(&random, 4), R"({"g":"3","n":1})").ok());
  REQUIRE(index->ApplyDelete(8, "8").ok());
  CHECK(index->CountMatching(*group) == 199);
  index->BuildFields(700);
  index->Delete("13");
  index->SetAttr("1999", R"({"g":"3","n":0})");
  index->SetAttr("18", R"({"g":"0","n":0})");
  CHECK(index->CountMatching(*group) == 198);
  while (index->BuildFields(100)) {
  }
  CHECK(index->Info().fields_ready);
  CHECK(index->CountMatching(*group) == 198);
  index->SetAttr("18", R"({"g":"3","n":0})");
  CHECK(index->CountMatching(*group) == 199);
  std::vector<std::string> gone;
  for (uint32_t slot = 0; slot != kNoSlot;) {
    for (auto& deleted : index->DeleteMatching(*group, 500, 7, &slot)) gone.push_back(deleted.name);
  }
  CHECK(gone.size() == 199);
  CHECK(index->CountMatching(*group) == 0);
  CHECK(index->Count() == 2000 - 2 + 1 - 199);
  CHECK(index->CheckInvariants().ToString() == "OK");
  REQUIRE(index->Checkpoint(2).ok());
  CHECK(VectorIndex::VerifyGeneration(&env, "ix", 2).ToString() == "OK");
  CHECK(VectorIndex::Open(&env, "ix", 2).value()->fields() == fields);
}

}  // namespace
}  // namespace hotkv
