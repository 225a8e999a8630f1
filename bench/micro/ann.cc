// Vector search and build in process, side by side with hnswlib on the same data, in the same
// minutes:
//   micro_ann --data STEM [--queries query,ex.query] [--efs 40,80,150,300] [--type f32] [--rounds
//   5] [--threads 2]
// STEM.base.fbin, STEM.<queries>.fbin and the truth beside them (STEM.gt.ibin, STEM.ex.gt.ibin) as
// in tests/data. Prints recall@10 and queries per CPU second (median of interleaved rounds), the ratio
// at equal ef, and the ratio at equal recall 0.95 and 0.99 (log of the rate, linear in recall).
// hnswlib runs as its users run it: float32, inner product.
#include <fcntl.h>
#include <hnswlib/hnswlib.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "index/vector_index.h"

namespace {

using hotkv::VectorIndex;
using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

// CPU time, so that other programs on the machine disturb the figures less.
double CpuSeconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <typename T>
struct Matrix {
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::vector<T> values;
  const T* Row(size_t i) const { return values.data() + i * columns; }
};

template <typename T>
Matrix<T> Load(const std::string& path) {
  Matrix<T> m;
  std::ifstream in(path, std::ios::binary);
  uint32_t head[2] = {0, 0};
  in.read(reinterpret_cast<char*>(head), sizeof(head));
  m.rows = head[0];
  m.columns = head[1];
  m.values.resize(size_t{m.rows} * m.columns);
  in.read(reinterpret_cast<char*>(m.values.data()),
          static_cast<std::streamsize>(m.values.size() * sizeof(T)));
  if (!in) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(2);
  }
  return m;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t comma = std::min(text.find(',', from), text.size());
    parts.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return parts;
}

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct Curve {
  std::vector<double> recall;
  std::vector<double> rate;
  // Rate at a recall by interpolation; 0 outside.
  double At(double wanted) const {
    for (size_t i = 0; i + 1 < recall.size(); ++i) {
      if (recall[i] > wanted || recall[i + 1] < wanted) continue;
      const double t =
          recall[i + 1] == recall[i] ? 0 : (wanted - recall[i]) / (recall[i + 1] - recall[i]);
      return std::exp(std::log(rate[i]) * (1 - t) + std::log(rate[i + 1]) * t);
    }
    return 0;
  }
};

struct Options {
  std::string data;
  std::vector<std::string> queries = {"query", "ex.query"};
  std::vector<uint32_t> efs = {24, 40, 56, 80, 150, 200, 300, 450};
  hotkv::ElementType type = hotkv::ElementType::kF32;
  int rounds = 5;
  int threads = 2;
  uint32_t rows = 0;
  bool peer = true;
  std::string save;
};

Options Parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    const std::string value = argv[i + 1];
    if (key == "--data") o.data = value;
    if (key == "--queries") o.queries = Split(value);
    if (key == "--rounds") o.rounds = std::stoi(value);
    if (key == "--threads") o.threads = std::stoi(value);
    if (key == "--rows") o.rows = static_cast<uint32_t>(std::stoul(value));
    if (key == "--peer") o.peer = value != "0";
    if (key == "--peer-file") o.save = value;
    if (key == "--efs") {
      o.efs.clear();
      for (const std::string& part : Split(value)) {
        o.efs.push_back(static_cast<uint32_t>(std::stoul(part)));
      }
    }
    if (key == "--type") {
      const std::map<std::string, hotkv::ElementType> types = {{"f32", hotkv::ElementType::kF32},
                                                               {"f16", hotkv::ElementType::kF16},
                                                               {"q8", hotkv::ElementType::kQ8},
                                                               {"q4", hotkv::ElementType::kQ4}};
      o.type = types.at(value);
    }
  }
  if (o.data.empty()) {
    std::fprintf(
        stderr,
        "micro_ann --data STEM [--queries query,ex.query] [--efs 40,80,150,300] [--type f32]\n");
    std::exit(2);
  }
  return o;
}

template <typename Insert>
double InParallel(int threads, uint32_t rows, Insert insert) {
  const double start = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  std::atomic<uint32_t> next{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (uint32_t i; (i = next.fetch_add(1)) < rows;) insert(i);
    });
  }
  for (auto& w : workers) w.join();
  return rows / (CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - start);
}

// One engine: search(query, k, ef) -> ids.
using SearchFn = std::vector<uint32_t> (*)(void* engine, const float* query, uint32_t ef);

double RecallOf(SearchFn search, void* engine, const Matrix<float>& queries,
                const Matrix<int32_t>& truth, uint32_t ef) {
  size_t hits = 0;
  for (uint32_t q = 0; q < queries.rows; ++q) {
    for (const uint32_t id : search(engine, queries.Row(q), ef)) {
      const int32_t* row = truth.Row(q);
      hits += std::find(row, row + 10, static_cast<int32_t>(id)) != row + 10 ? 1 : 0;
    }
  }
  return static_cast<double>(hits) / (10.0 * queries.rows);
}

double RateOf(SearchFn search, void* engine, const Matrix<float>& queries, uint32_t ef) {
  const auto start = Clock::now();
  const double cpu = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
  size_t done = 0;
  do {
    for (uint32_t q = 0; q < queries.rows; ++q) search(engine, queries.Row(q), ef);
    done += queries.rows;
  } while (Seconds(start) < 0.25);
  return static_cast<double>(done) / (CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - cpu);
}

struct Ours {
  std::unique_ptr<VectorIndex> index;
  uint32_t dim = 0;
};

std::vector<uint32_t> SearchOurs(void* engine, const float* query, uint32_t ef) {
  auto* ours = static_cast<Ours*>(engine);
  hotkv::SearchParams params;
  params.k = 10;
  params.ef = ef;
  auto rows = ours->index->Search({query, ours->dim}, params);
  std::vector<uint32_t> ids;
  for (const auto& row : *rows) ids.push_back(static_cast<uint32_t>(std::stoul(row.name)));
  return ids;
}

struct Peer {
  std::unique_ptr<hnswlib::InnerProductSpace> space;
  std::unique_ptr<hnswlib::HierarchicalNSW<float>> index;
};

std::vector<uint32_t> SearchPeer(void* engine, const float* query, uint32_t ef) {
  auto* peer = static_cast<Peer*>(engine);
  peer->index->setEf(ef);
  auto heap = peer->index->searchKnn(query, 10);
  std::vector<uint32_t> ids;
  for (; !heap.empty(); heap.pop()) ids.push_back(static_cast<uint32_t>(heap.top().second));
  return ids;
}

void BuildPeer(const Options& o, const Matrix<float>& base, uint32_t rows, Peer* peer) {
  peer->space = std::make_unique<hnswlib::InnerProductSpace>(base.columns);
  if (!o.save.empty() && std::ifstream(o.save).good()) {
    peer->index = std::make_unique<hnswlib::HierarchicalNSW<float>>(peer->space.get(), o.save);
    std::printf("hnswlib read from %s\n", o.save.c_str());
    return;
  }
  peer->index = std::make_unique<hnswlib::HierarchicalNSW<float>>(peer->space.get(), rows, 16, 200);
  const double rate =
      InParallel(o.threads, rows, [&](uint32_t i) { peer->index->addPoint(base.Row(i), i); });
  std::printf("build, %d threads: hnswlib %.0f vectors per CPU second\n", o.threads, rate);
  if (!o.save.empty()) peer->index->saveIndex(o.save);
}

void BuildOurs(const Options& o, const Matrix<float>& base, uint32_t rows, Ours* ours) {
  hotkv::IndexOptions options;
  options.dim = base.columns;
  options.type = o.type;
  ours->dim = base.columns;
  ours->index = VectorIndex::Create(options, nullptr, "").value();
  const double rate = InParallel(o.threads, rows, [&](uint32_t i) {
    auto prepared = ours->index->Prepare(std::to_string(i), {base.Row(i), base.columns}, "");
    ours->index->Commit(std::move(*prepared));
  });
  const hotkv::IndexInfo info = ours->index->Info();
  std::printf(
      "build, %d threads: hotkv %s (%s) %.0f vectors per CPU second; bytes a vector: hot %.0f, vectors %.0f, "
      "other %.0f\n",
      o.threads, std::string(hotkv::ElementTypeName(o.type)).c_str(), info.kernel, rate,
      static_cast<double>(info.hot_bytes) / rows, static_cast<double>(info.vector_bytes) / rows,
      static_cast<double>(info.other_bytes) / rows);
}

void Compare(const Options& o, const std::string& name, Ours* ours, Peer* peer) {
  const Matrix<float> queries = Load<float>(o.data + "." + name + ".fbin");
  const size_t dot = name.rfind("query");
  const Matrix<int32_t> truth = Load<int32_t>(o.data + "." + name.substr(0, dot) + "gt.ibin");
  const size_t points = o.efs.size();
  std::vector<std::vector<double>> rates[2];
  rates[0].resize(points);
  rates[1].resize(points);
  Curve curves[2];
  for (size_t i = 0; i < points; ++i) {
    curves[0].recall.push_back(RecallOf(SearchOurs, ours, queries, truth, o.efs[i]));
    if (o.peer) curves[1].recall.push_back(RecallOf(SearchPeer, peer, queries, truth, o.efs[i]));
  }
  for (int round = 0; round < o.rounds; ++round) {
    for (size_t i = 0; i < points; ++i) {
      rates[0][i].push_back(RateOf(SearchOurs, ours, queries, o.efs[i]));
      if (o.peer) rates[1][i].push_back(RateOf(SearchPeer, peer, queries, o.efs[i]));
    }
  }
  std::printf("\n%s: ef, hotkv recall@10 : queries/s, hnswlib recall@10 : queries/s, ratio\n",
              name.c_str());
  for (size_t i = 0; i < points; ++i) {
    curves[0].rate.push_back(Median(rates[0][i]));
    std::printf("%4u  %.4f : %6.0f", o.efs[i], curves[0].recall[i], curves[0].rate[i]);
    if (o.peer) {
      curves[1].rate.push_back(Median(rates[1][i]));
      std::printf("   %.4f : %6.0f   %.2f", curves[1].recall[i], curves[1].rate[i],
                  curves[0].rate[i] / curves[1].rate[i]);
    }
    std::printf("\n");
  }
  for (const double recall : {0.95, 0.99}) {
    const double a = curves[0].At(recall);
    std::printf("at recall %.2f: hotkv %.0f", recall, a);
    if (o.peer)
      std::printf(", hnswlib %.0f, ratio %.2f", curves[1].At(recall), a / curves[1].At(recall));
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = Parse(argc, argv);
  const Matrix<float> base = Load<float>(o.data + ".base.fbin");
  const uint32_t rows = o.rows != 0 ? std::min(o.rows, base.rows) : base.rows;
  Ours ours;
  Peer peer;
  BuildOurs(o, base, rows, &ours);
  if (o.peer) BuildPeer(o, base, rows, &peer);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(1, &one);
  sched_setaffinity(0, sizeof(one), &one);
  for (const std::string& name : o.queries) Compare(o, name, &ours, &peer);
  return 0;
}
