#include "tools/hotkv_bench/ann_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hotkv {
namespace {

// Cosines are stored as float32; two that differ by less are a tie.
constexpr float kTie = 1e-6F;

std::string_view Blob(std::span<const float> row) {
  return {reinterpret_cast<const char*>(row.data()), row.size_bytes()};
}

}  // namespace

std::string AnnCreateCommand(const AnnIndex& index) {
  std::string out;
  if (index.dialect == AnnDialect::kVset) return out;
  const std::string dim = std::to_string(index.dim);
  const std::string m = std::to_string(index.m);
  const std::string ef = std::to_string(index.ef_construction);
  std::vector<std::string_view> words = {"VSIM.CREATEINDEX", index.name, "DIM", dim, "METRIC",
                                         index.metric,       "M",        m,     "EF_CONSTRUCTION",
                                         ef};
  if (!index.type.empty()) {
    words.push_back("TYPE");
    words.push_back(index.type);
  }
  AppendRespCommand(words, &out);
  return out;
}

size_t AppendAnnLoad(const AnnIndex& index, const Matrix<float>& base, size_t from, size_t to,
                     std::string* out) {
  std::vector<std::string> ids;
  for (size_t row = from; row < to; ++row) ids.push_back(std::to_string(row));
  std::vector<std::string_view> words;
  if (index.dialect == AnnDialect::kVsim) {
    const std::string count = std::to_string(to - from);
    words = {"VSIM.MSET", index.name, count};
    for (size_t row = from; row < to; ++row) {
      words.insert(words.end(), {ids[row - from], "FP32", Blob(base.Row(row))});
    }
    AppendRespCommand(words, out);
    return 1;
  }
  const std::string m = std::to_string(index.m);
  const std::string ef = std::to_string(index.ef_construction);
  for (size_t row = from; row < to; ++row) {
    words = {"VADD", index.name, "FP32", Blob(base.Row(row)), ids[row - from]};
    if (!index.type.empty()) words.push_back(index.type);
    words.insert(words.end(), {"EF", ef, "M", m});
    AppendRespCommand(words, out);
  }
  return to - from;
}

void AppendAnnSearch(const AnnIndex& index, std::span<const float> query, unsigned k, unsigned ef,
                     std::string* out) {
  const std::string k_text = std::to_string(k);
  const std::string ef_text = std::to_string(ef);
  if (index.dialect == AnnDialect::kVsim) {
    AppendRespCommand({"VSIM.SEARCH", index.name, "FP32", Blob(query), "K", k_text, "EF", ef_text}, out);
  } else {
    AppendRespCommand({"VSIM", index.name, "FP32", Blob(query), "COUNT", k_text, "EF", ef_text}, out);
  }
}

Result<std::vector<int32_t>> AnnIdsOfReply(const RespValue& reply) {
  if (reply.is_error()) return Status::Internal("search: " + reply.text);
  if (!reply.is_aggregate()) return Status::Internal("search: not an array: " + reply.ToString());
  std::vector<int32_t> ids;
  for (const RespValue& item : reply.items) {
    int32_t id = 0;
    const char* end = item.text.data() + item.text.size();
    if (std::from_chars(item.text.data(), end, id).ptr != end || item.text.empty()) {
      return Status::Internal("search: not a row number: " + item.ToString());
    }
    ids.push_back(id);
  }
  return ids;
}

double AnnRecall(const AnnTruth& truth, size_t row, unsigned k, std::span<const int32_t> found) {
  const auto ids = truth.ids.Row(row);
  const size_t wanted = std::min<size_t>(k, ids.size());
  // Everything as near as the k-th neighbour is as good an answer.
  size_t good = wanted;
  if (truth.cosines.rows > row && truth.cosines.columns == ids.size()) {
    const auto cosines = truth.cosines.Row(row);
    while (good < ids.size() && cosines[good] >= cosines[wanted - 1] - kTie) ++good;
  }
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(good);
  size_t hits = 0;
  for (size_t i = 0; i < found.size() && i < wanted; ++i) {
    const bool repeated = std::find(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(i),
                                    found[i]) != found.begin() + static_cast<std::ptrdiff_t>(i);
    hits += !repeated && std::find(ids.begin(), end, found[i]) != end;
  }
  return static_cast<double>(hits) / static_cast<double>(wanted);
}

double InterpolateAtRecall(std::vector<RecallPoint> points, double recall) {
  std::sort(points.begin(), points.end(),
            [](const RecallPoint& a, const RecallPoint& b) { return a.recall < b.recall; });
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const RecallPoint& low = points[i];
    const RecallPoint& high = points[i + 1];
    if (recall < low.recall || recall > high.recall || low.value <= 0 || high.value <= 0) continue;
    const double span = high.recall - low.recall;
    const double share = span > 0 ? (recall - low.recall) / span : 0;
    return std::exp(std::log(low.value) + share * (std::log(high.value) - std::log(low.value)));
  }
  return -1;
}

}  // namespace hotkv
