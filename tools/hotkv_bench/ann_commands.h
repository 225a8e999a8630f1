// The commands that `hotkv-bench ann` sends, in each server's dialect, and the measure of recall.
//
//   vsim   HotKV's own: VSIM.CREATEINDEX, VSIM.MSET, VSIM.SEARCH
//   vset   Redis vector sets: VADD, VSIM
// An element's id is its row number in decimal.
//
// Thread rules: values and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/resp_client.h"
#include "engine/base/result.h"
#include "tools/common/vector_file.h"

namespace hotkv {

enum class AnnDialect : uint8_t { kVsim, kVset };

struct AnnIndex {
  AnnDialect dialect = AnnDialect::kVsim;
  std::string name = "bench:index";
  std::string type;  // vsim: F32 F16 Q8 Q4 BIN; vset: NOQUANT Q8 BIN; empty: the server's default
  std::string metric = "COSINE";  // vsim only
  unsigned m = 16;
  unsigned ef_construction = 200;
  size_t dim = 0;
};

// Empty where the dialect has no such command.
std::string AnnCreateCommand(const AnnIndex& index);
// Appends the command(s) that store rows [from, to); returns how many replies they get.
size_t AppendAnnLoad(const AnnIndex& index, const Matrix<float>& base, size_t from, size_t to, std::string* out);
void AppendAnnSearch(const AnnIndex& index, std::span<const float> query, unsigned k, unsigned ef,
                     std::string* out);

struct AnnTruth {
  Matrix<int32_t> ids;
  Matrix<float> cosines;  // may be empty; with it, an id as near as the k-th counts as found (ties)
};

// The row numbers in a search's reply (RESP2 array of ids).
Result<std::vector<int32_t>> AnnIdsOfReply(const RespValue& reply);
// Share of the k true neighbours of query `row` among `found`.
double AnnRecall(const AnnTruth& truth, size_t row, unsigned k, std::span<const int32_t> found);

struct RecallPoint {
  double recall = 0;
  double value = 0;
};
// The value at a recall, interpolated between the two neighbouring points (linear in recall, logarithmic in value);
// negative where the points do not reach.
double InterpolateAtRecall(std::vector<RecallPoint> points, double recall);

}  // namespace hotkv
