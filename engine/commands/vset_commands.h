// Redis's vector sets: what the files of the V* commands share. Errors are Redis's, since clients match on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/commands/vset_common.h"

namespace hotkv {

inline constexpr const char* kVsetBadVector = "ERR invalid vector specification";

struct VsetVector {
  std::vector<float> values;
  size_t next = 0;  // the argument behind it
};
// `FP32 blob` or `VALUES n f1 ... fn` from args[at] on; nothing when it is malformed.
std::optional<VsetVector> ParseVsetVector(Args args, size_t at);

std::string VsetDimensionError(size_t got, size_t want);
std::string VsetProjectionError(size_t got, size_t want);

// The similarity, from 0 to 1, of a distance.
double VsetScore(Metric metric, float distance);
// The distance of a similarity.
float VsetDistance(Metric metric, double score);

std::pair<Handler, Handler> VaddHandlers();  // prepare, handler
void PrepareVsim(CommandContext& ctx);

}  // namespace hotkv
