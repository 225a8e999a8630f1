// Filtered vector search, in process, over a sweep of selectivities:
//   micro_filter --data STEM [--query query|ex.query] [--type f32|q8|q4] [--rows N] [--queries N] [--ef N] [--k N]
//                [--dir DIR] [--undeclared 1] [--plans 1] [--only TEXT] [--warm 1] [--cpu 1]
// STEM.base.fbin and STEM.<query>.fbin as in tests/data. Elements get attributes: `r`, a random number, `c`, the rank of
// their likeness to one base row (so that what matches lies together, and mostly far from the query), and `t`, a tag
// drawn like `r`. A line a filter: the plan that was chosen, the share that matches, recall@k against a brute-force
// search, and the median latency, beside that of the search without a filter, which is measured in turn with it, query by
// query; with --plans 1 also of each plan by force. --only: filters whose text holds TEXT. --warm 1: each query several
// times in a row, so that what it reads is in the nearest cache. --cpu 1: CPU time instead of wall time, for a
// machine that others use. --dir keeps the built index for the next run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/file.h"
#include "engine/base/random.h"
#include "index/filter/filter_expression.h"
#include "index/vector_index.h"

namespace {

using namespace hotkv;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kRanks = 1000000;
constexpr uint64_t kGeneration = 1;

struct Matrix {
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::vector<float> values;
  std::span<const float> Row(size_t i) const {
    return {values.data() + i * columns, columns};
  }
};

Matrix Load(const std::string& path, uint32_t rows_max) {
  Matrix m;
  std::ifstream in(path, std::ios::binary);
  uint32_t head[2] = {0, 0};
  in.read(reinterpret_cast<char*>(head), sizeof(head));
  m.rows = std::min(head[0], rows_max);
  m.columns = head[1];
  m.values.resize(size_t{m.rows} * m.columns);
  in.read(reinterpret_cast<char*>(m.values.data()),
          static_cast<std::streamsize>(m.values.size() * sizeof(float)));
  if (!in) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(2);
  }
  return m;
}

float Dot(std::span<const float> a, std::span<const float> b) {
  float sum[16] = {};
  size_t i = 0;
  for (; i + 16 <= a.size(); i += 16) {
    for (size_t j = 0; j < 16; ++j) sum[j] += a[i + j] * b[i + j];
  }
  for (; i < a.size(); ++i) sum[0] += a[i] * b[i];
  return std::accumulate(sum, sum + 16, 0.0f);
}

struct Options {
  std::string data;
  std::string query = "query";
  std::string dir;
  ElementType type = ElementType::kQ4;
  uint32_t rows = UINT32_MAX;
  uint32_t queries = 200;
  uint32_t ef = 0;
  uint32_t k = 10;
  bool undeclared = false;
  bool plans = false;
  bool warm = false;
  bool cpu = false;
  std::string only;
};

Options Parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    const std::string value = argv[i + 1];
    const auto number = [&value] { return static_cast<uint32_t>(std::stoul(value)); };
    if (key == "--data") o.data = value;
    if (key == "--query") o.query = value;
    if (key == "--dir") o.dir = value;
    if (key == "--cpu") o.cpu = value != "0";
    if (key == "--warm") o.warm = value != "0";
    if (key == "--only") o.only = value;
    if (key == "--rows") o.rows = number();
    if (key == "--queries") o.queries = number();
    if (key == "--ef") o.ef = number();
    if (key == "--k") o.k = number();
    if (key == "--undeclared") o.undeclared = value != "0";
    if (key == "--plans") o.plans = value != "0";
    if (key == "--type") {
      const std::map<std::string, ElementType> types = {
          {"f32", ElementType::kF32}, {"q8", ElementType::kQ8}, {"q4", ElementType::kQ4}};
      o.type = types.at(value);
    }
  }
  if (o.data.empty()) {
    std::fprintf(stderr, "micro_filter --data STEM [...]: see the head of its source\n");
    std::exit(2);
  }
  return o;
}

// What every element has.
struct Attributes {
  std::vector<uint32_t> r;  // 0 ... kRanks - 1
  std::vector<uint32_t> c;
  std::vector<std::string> json;
};

// A tag that a share of the elements has, by powers of ten.
const char* TagOf(uint32_t r) {
  if (r < kRanks / 10000) return "p0001";
  if (r < kRanks / 1000) return "p001";
  if (r < kRanks / 100) return "p01";
  return r < kRanks / 10 ? "p1" : "rest";
}

Attributes MakeAttributes(const Matrix& base) {
  Attributes a;
  Random random(7);
  std::vector<std::pair<float, uint32_t>> likeness(base.rows);
  for (uint32_t i = 0; i < base.rows; ++i) likeness[i] = {-Dot(base.Row(i), base.Row(0)), i};
  std::sort(likeness.begin(), likeness.end());
  a.c.resize(base.rows);
  for (uint32_t at = 0; at < base.rows; ++at) {
    a.c[likeness[at].second] = static_cast<uint32_t>(uint64_t{at} * kRanks / base.rows);
  }
  // Ranks in a random order rather than draws: shares are exact.
  std::vector<uint32_t> order(base.rows);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = base.rows; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  a.r.resize(base.rows);
  for (uint32_t at = 0; at < base.rows; ++at) {
    a.r[order[at]] = static_cast<uint32_t>(uint64_t{at} * kRanks / base.rows);
  }
  for (uint32_t i = 0; i < base.rows; ++i) {
    a.json.push_back("{\"title\":\"element number " + std::to_string(i) + "\",\"r\":" + std::to_string(a.r[i]) +
                     ",\"c\":" + std::to_string(a.c[i]) + ",\"t\":\"" + TagOf(a.r[i]) + "\"}");
  }
  return a;
}

std::unique_ptr<VectorIndex> Build(const Options& o, const Matrix& base, const Attributes& attributes) {
  Env* env = o.dir.empty() ? nullptr : PosixEnv();
  if (env != nullptr) {
    auto opened = VectorIndex::Open(env, o.dir, kGeneration);
    if (opened.ok()) return std::move(opened).value();
  }
  IndexOptions options;
  options.dim = base.columns;
  options.type = o.type;
  auto made = VectorIndex::Create(options, env, o.dir);
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", made.status().ToString().c_str());
    std::exit(2);
  }
  VectorIndex& index = **made;
  std::atomic<uint32_t> next{0};
  const auto insert = [&] {
    for (uint32_t i = next.fetch_add(1); i < base.rows; i = next.fetch_add(1)) {
      auto prepared = index.Prepare(std::to_string(i), base.Row(i), attributes.json[i]);
      HOTKV_CHECK(prepared.ok());
      index.Commit(std::move(*prepared));
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) threads.emplace_back(insert);
  for (std::thread& t : threads) t.join();
  while (index.RepairStep(4096, RepairWhen::kNow)) {
  }
  if (env != nullptr) HOTKV_CHECK(index.Checkpoint(kGeneration).ok());
  return std::move(made).value();
}

struct Filter {
  std::string text;
  std::vector<bool> matches;  // by row; empty: all
};

struct Measured {
  double median_us = 0;
  double p99_us = 0;
  double plain_us = 0;  // median of the searches without a filter in between
  double recall = 0;
  uint32_t fewest = UINT32_MAX;
  SearchReport report;
  std::map<std::string, int> plans;
};

constexpr int kRounds = 3;

double At(std::vector<double>* times, double share) {
  std::sort(times->begin(), times->end());
  return (*times)[static_cast<size_t>(static_cast<double>(times->size() - 1) * share)];
}

class Bench {
 public:
  Bench(const Options& o, const Matrix& base, const Matrix& queries, const VectorIndex& index)
      : o_(o), base_(base), queries_(queries), index_(index) {}

  Measured Run(const Filter& filter, SearchPlan plan, const std::vector<float>& worst_good) const {
    auto where = FilterExpression::Parse(filter.text.empty() ? "1" : filter.text);
    HOTKV_CHECK(where.ok());
    SearchParams plain;
    plain.k = o_.k;
    plain.ef = o_.ef;
    SearchParams params = plain;
    params.plan = plan;
    if (!filter.text.empty()) params.where_or_null = &*where;
    Measured out;
    std::vector<double> times;
    std::vector<double> plain_times;
    const auto timed = [&](uint32_t q, const SearchParams& how, std::vector<double>* to) {
      const double start = NowUs();
      auto rows = index_.Search(queries_.Row(q), how);
      to->push_back(NowUs() - start);
      HOTKV_CHECK(rows.ok());
      return std::move(rows).value();
    };
    for (int round = 0; round < kRounds; ++round) {
      for (uint32_t q = 0; q < queries_.rows; ++q) {
        for (const auto& [how, to] : {std::pair(&plain, &plain_times), std::pair(&params, &times)}) {
          for (int i = 0; o_.warm && i < 2; ++i) HOTKV_CHECK(index_.Search(queries_.Row(q), *how).ok());
          timed(q, *how, to);
        }
      }
    }
    out.median_us = At(&times, 0.5);
    out.p99_us = At(&times, 0.99);
    out.plain_us = At(&plain_times, 0.5);
    Answers(filter, params, worst_good, &out);
    return out;
  }

  // Recall, and what the searches say they did.
  void Answers(const Filter& filter, SearchParams params, const std::vector<float>& worst_good, Measured* out) const {
    const uint64_t matching = Matching(filter);
    uint64_t hits = 0;
    uint64_t wanted = 0;
    params.report_or_null = &out->report;
    for (uint32_t q = 0; q < queries_.rows; ++q) {
      const auto rows = index_.Search(queries_.Row(q), params);
      HOTKV_CHECK(rows.ok());
      ++out->plans[std::string(SearchPlanName(out->report.plan))];
      out->fewest = std::min(out->fewest, static_cast<uint32_t>(rows->size()));
      for (const SearchRow& row : *rows) hits += row.distance <= worst_good[q] ? 1 : 0;
      wanted += std::min<uint64_t>(o_.k, matching);
    }
    out->recall = wanted == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(wanted);
  }

  uint64_t Matching(const Filter& filter) const {
    return filter.matches.empty()
               ? base_.rows
               : static_cast<uint64_t>(std::count(filter.matches.begin(), filter.matches.end(), true));
  }

  // The distance of the k-th nearest that matches, a query each.
  std::vector<float> Truth(const Filter& filter) const {
    std::vector<float> worst;
    for (uint32_t q = 0; q < queries_.rows; ++q) {
      std::vector<float> distances;
      for (uint32_t i = 0; i < base_.rows; ++i) {
        if (!filter.matches.empty() && !filter.matches[i]) continue;
        distances.push_back(1 - Dot(queries_.Row(q), base_.Row(i)));
      }
      const size_t k = std::min<size_t>(o_.k, distances.size());
      if (k == 0) {
        worst.push_back(-1);
        continue;
      }
      std::nth_element(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(k - 1), distances.end());
      worst.push_back(distances[k - 1] + 1e-4f);
    }
    return worst;
  }

 private:
  double NowUs() const {
    if (!o_.cpu) return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
  }

  const Options& o_;
  const Matrix& base_;
  const Matrix& queries_;
  const VectorIndex& index_;
};

void Print(const Filter& filter, double share, const char* what, const Measured& m) {
  std::string plans;
  for (const auto& [name, times] : m.plans) plans += (plans.empty() ? "" : " ") + name + ":" + std::to_string(times);
  std::printf("%-30s %8.3f %-7s %6.3f %4u %8.1f %8.1f %8.1f %6.2f  %-28s est %6.0f tests %6llu json %6llu dist %6llu\n",
              filter.text.c_str(), share * 100, what, m.recall, m.fewest, m.plain_us, m.median_us, m.p99_us,
              m.median_us / m.plain_us, plans.c_str(), m.report.estimate, static_cast<unsigned long long>(m.report.tests),
              static_cast<unsigned long long>(m.report.json_reads),
              static_cast<unsigned long long>(m.report.distances));
  std::fflush(stdout);
}

std::vector<Filter> MakeFilters(const Attributes& a) {
  std::vector<Filter> filters;
  const auto add = [&](std::string text, auto matches) {
    Filter filter;
    filter.text = std::move(text);
    for (size_t i = 0; i < a.r.size(); ++i) filter.matches.push_back(matches(i));
    filters.push_back(std::move(filter));
  };
  for (const double percent : {100.0, 50.0, 25.0, 10.0, 5.0, 2.0, 1.0, 0.1, 0.01}) {
    const auto below = static_cast<uint32_t>(percent / 100 * kRanks);
    add(".r < " + std::to_string(below), [&](size_t i) { return a.r[i] < below; });
    add(".c < " + std::to_string(below), [&](size_t i) { return a.c[i] < below; });
  }
  add(".t == 'p1'", [&](size_t i) { return a.r[i] < kRanks / 10 && a.r[i] >= kRanks / 100; });
  add(".t == 'p0001'", [&](size_t i) { return a.r[i] < kRanks / 10000; });
  add(".t == 'rest' and .c < 500000", [&](size_t i) { return a.r[i] >= kRanks / 10 && a.c[i] < 500000; });
  add(".t == 'none'", [](size_t) { return false; });
  return filters;
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = Parse(argc, argv);
  const Matrix base = Load(o.data + ".base.fbin", o.rows);
  const Matrix queries = Load(o.data + "." + o.query + ".fbin", o.queries);
  const Attributes attributes = MakeAttributes(base);
  const auto index = Build(o, base, attributes);
  if (!o.undeclared) {
    HOTKV_CHECK(index
                    ->SetFields({{"r", FieldKind::kNumeric}, {"c", FieldKind::kNumeric}, {"t", FieldKind::kTag}})
                    .ok());
    const auto start = Clock::now();
    while (index->BuildFields(1024)) {
    }
    std::printf("columns built in %.0f ms\n", std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  const Bench bench(o, base, queries, *index);
  std::printf("%-30s %8s %-7s %6s %4s %8s %8s %8s %6s\n", "filter", "share %", "plan", "recall", "rows", "plain us",
              "us", "p99 us", "x");
  const Filter none;
  Print(none, 1, "-", bench.Run(none, SearchPlan::kChoose, bench.Truth(none)));
  for (const Filter& filter : MakeFilters(attributes)) {
    if (filter.text.find(o.only) == std::string::npos) continue;
    const double share = static_cast<double>(bench.Matching(filter)) / base.rows;
    const std::vector<float> truth = bench.Truth(filter);
    Print(filter, share, "chosen", bench.Run(filter, SearchPlan::kChoose, truth));
    if (!o.plans) continue;
    for (const SearchPlan plan : {SearchPlan::kScan, SearchPlan::kWalk, SearchPlan::kTwoHop}) {
      Print(filter, share, std::string(SearchPlanName(plan)).c_str(), bench.Run(filter, plan, truth));
    }
  }
  return 0;
}
