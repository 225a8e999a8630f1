// Shared by the index tests: random vectors, an exact model, recall.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/random.h"
#include "index/vector_index.h"
#include "tests/support/source_dir.h"

namespace hotkv::index_test {

inline std::vector<float> RandomVector(Random* random, uint32_t dim) {
  std::vector<float> v(dim);
  for (float& x : v) {
    // Sum of uniforms: near enough to normal.
    x = static_cast<float>(random->Uniform() + random->Uniform() + random->Uniform() - 1.5);
  }
  return v;
}

// An index in memory.
inline std::unique_ptr<VectorIndex> Make(uint32_t dim, Metric metric, uint32_t m = 16,
                                  uint32_t efc = 200) {
  IndexOptions options;
  options.dim = dim;
  options.metric = metric;
  options.m = m;
  options.ef_construction = efc;
  return VectorIndex::Create(options, nullptr, "").value();
}

// Distances in double, straight from the definition.
inline double ModelDistance(Metric metric, const std::vector<float>& a,
                            const std::vector<float>& b) {
  double dot = 0;
  double aa = 0;
  double bb = 0;
  double l2 = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i];
    const double y = b[i];
    dot += x * y;
    aa += x * x;
    bb += y * y;
    l2 += (x - y) * (x - y);
  }
  switch (metric) {
    case Metric::kCosine:
      return 1 - dot / std::sqrt(aa * bb);
    case Metric::kL2:
      return std::sqrt(l2);
    case Metric::kIp:
      return -dot;
  }
  return 0;
}

// What the index should hold.
struct Model {
  Metric metric = Metric::kCosine;
  std::map<std::string, std::vector<float>> elements;

  std::vector<std::pair<double, std::string>> Nearest(const std::vector<float>& query,
                                                      size_t k) const {
    std::vector<std::pair<double, std::string>> all;
    for (const auto& [name, vector] : elements) {
      all.emplace_back(ModelDistance(metric, query, vector), name);
    }
    std::sort(all.begin(), all.end());
    if (all.size() > k) all.resize(k);
    return all;
  }
};

inline CommitResult Put(VectorIndex* index, const std::string& name,
                        const std::vector<float>& vector, const std::string& attr = "") {
  auto prepared = index->Prepare(name, vector, attr);
  HOTKV_CHECK(prepared.ok());
  return index->Commit(std::move(*prepared));
}

inline std::vector<SearchRow> Find(const VectorIndex& index, const std::vector<float>& query,
                                   uint32_t k, uint32_t ef = 0, bool exact = false) {
  SearchParams params;
  params.k = k;
  params.ef = ef;
  params.exact = exact;
  auto rows = index.Search(query, params);
  HOTKV_CHECK(rows.ok());
  return std::move(rows).value();
}

// Share of the model's nearest that the index found, ties within a rounding error counted as found.
inline double Recall(const VectorIndex& index, const Model& model,
                     const std::vector<std::vector<float>>& queries, uint32_t k, uint32_t ef = 0) {
  size_t hits = 0;
  size_t wanted = 0;
  for (const auto& query : queries) {
    const auto truth = model.Nearest(query, k);
    const double farthest = truth.empty() ? 0 : truth.back().first;
    for (const SearchRow& row : Find(index, query, k, ef)) {
      const auto at = model.elements.find(row.name);
      HOTKV_CHECK(at != model.elements.end());
      const double d = ModelDistance(model.metric, query, at->second);
      hits += d <= farthest + 1e-6 * (1 + std::abs(farthest)) ? 1 : 0;
    }
    wanted += truth.size();
  }
  return wanted == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(wanted);
}

// Repairs until nothing is left to do.
inline void RepairAll(VectorIndex* index) {
  while (index->RepairStep(1000, RepairWhen::kNow)) {
  }
}

struct FloatFile {
  uint32_t rows = 0;
  uint32_t dim = 0;
  std::vector<std::vector<float>> vectors;
};

// An .fbin of tests/data.
inline FloatFile LoadFbin(const std::string& name) {
  FloatFile file;
  std::ifstream in(SourcePath("tests/data/" + name), std::ios::binary);
  uint32_t head[2] = {0, 0};
  in.read(reinterpret_cast<char*>(head), sizeof(head));
  file.rows = head[0];
  file.dim = head[1];
  file.vectors.assign(file.rows, std::vector<float>(file.dim));
  for (auto& v : file.vectors) {
    in.read(reinterpret_cast<char*>(v.data()),
            static_cast<std::streamsize>(v.size() * sizeof(float)));
  }
  HOTKV_CHECK(in.good());
  return file;
}

}  // namespace hotkv::index_test
