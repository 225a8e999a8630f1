// VSIM: the elements most similar to a vector or to an element.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/base/number.h"
#include "engine/commands/vset_commands.h"
#include "index/filter/filter_expression.h"

namespace hotkv {

namespace {

constexpr int64_t kVsetEfMax = 1'000'000;
constexpr float kNoDistance = 2e-7f;

struct VsimOptions {
  uint32_t count = 10;
  uint32_t ef = 0;
  double epsilon = 2;
  bool with_scores = false;
  bool with_attribs = false;
  bool truth = false;
  std::optional<FilterExpression> filter;
};

bool ParseCountOption(std::string_view text, int64_t min, int64_t max, int64_t* out) {
  const std::optional<int64_t> value = ParseInt64(text);
  if (!value || *value < min || *value > max) return false;
  *out = *value;
  return true;
}

// The error of a value of the option `word`, or "".
std::string TakeValue(std::string_view word, std::string_view value, VsimOptions* out) {
  int64_t number = 0;
  if (EqualsIgnoreCase(word, "COUNT")) {
    if (!ParseCountOption(value, 1, INT64_MAX, &number)) return "ERR invalid COUNT";
    out->count = static_cast<uint32_t>(std::min<int64_t>(number, kIndexSlotsMax));
  } else if (EqualsIgnoreCase(word, "EF")) {
    if (!ParseCountOption(value, 1, kVsetEfMax, &number)) return "ERR invalid EF";
    out->ef = static_cast<uint32_t>(number);
  } else if (EqualsIgnoreCase(word, "FILTER-EF")) {
    // The plan follows from the filter's selectivity: there is no effort to bound.
    if (!ParseCountOption(value, 0, INT64_MAX, &number)) return "ERR invalid FILTER-EF";
  } else if (EqualsIgnoreCase(word, "EPSILON")) {
    const std::optional<double> epsilon = ParseDouble(value);
    if (!epsilon || !(*epsilon > 0)) return "ERR invalid EPSILON";
    out->epsilon = *epsilon;
  } else if (EqualsIgnoreCase(word, "FILTER")) {
    auto filter = FilterExpression::Parse(value);
    if (!filter.ok()) return "ERR syntax error in FILTER expression: " + filter.status().message();
    out->filter = std::move(filter).value();
  } else {
    return "ERR syntax error in VSIM command";
  }
  return "";
}

std::string ParseVsimOptions(Args args, size_t at, VsimOptions* out) {
  for (; at < args.size(); ++at) {
    const std::string_view word = args[at];
    if (EqualsIgnoreCase(word, "WITHSCORES")) {
      out->with_scores = true;
    } else if (EqualsIgnoreCase(word, "WITHATTRIBS")) {
      out->with_attribs = true;
    } else if (EqualsIgnoreCase(word, "TRUTH")) {
      out->truth = true;
    } else if (EqualsIgnoreCase(word, "NOTHREAD")) {
      continue;  // a search always runs on the thread that received it
    } else if (at + 1 < args.size()) {
      std::string error = TakeValue(word, args[at + 1], out);
      if (!error.empty()) return error;
      ++at;
    } else {
      return "ERR syntax error in VSIM command";
    }
  }
  return "";
}

// The query's vector, of the stored dimension, and where the options begin; or an error.
std::string ParseQuery(const VectorSet& set, Args args, VsetVector* query) {
  const uint32_t dim = set.definition().index.dim;
  if (EqualsIgnoreCase(args[2], "ELE")) {
    auto vector = set.index().GetVector(args[3]);
    if (!vector.ok()) return "ERR element not found in set";
    query->values = std::move(vector).value();
    query->next = 4;
    return "";
  }
  auto parsed = ParseVsetVector(args, 2);
  if (!parsed) return kVsetBadVector;
  *query = std::move(*parsed);
  const Projection* projection = set.projection_or_null();
  if (projection != nullptr && query->values.size() != dim) {
    if (query->values.size() != projection->from()) {
      return VsetProjectionError(query->values.size(), projection->from());
    }
    query->values = projection->Apply(query->values);
  }
  if (query->values.size() != dim) return VsetDimensionError(query->values.size(), dim);
  return "";
}

Result<std::vector<SearchRow>> RunVsim(const VectorIndex& index, const std::vector<float>& query,
                                       const VsimOptions& options) {
  const Metric metric = index.options().metric;
  SearchParams params;
  params.k = options.count;
  params.ef = options.ef;
  params.exact = options.truth;
  params.with_attr = options.with_attribs;
  params.range = VsetDistance(metric, 1 - options.epsilon);
  if (options.filter) params.where_or_null = &*options.filter;
  return index.Search(query, params);
}

void ReplyVsim(ReplyWriter& reply, Metric metric, const std::vector<SearchRow>& rows,
               const VsimOptions& options) {
  const size_t values = (options.with_scores ? 1u : 0u) + (options.with_attribs ? 1u : 0u);
  const bool map = reply.resp3() && values != 0;
  map ? reply.MapHeader(rows.size()) : reply.ArrayHeader(rows.size() * (1 + values));
  for (const SearchRow& row : rows) {
    reply.Bulk(row.name);
    if (map && values == 2) reply.ArrayHeader(2);
    if (options.with_scores) reply.Double(VsetScore(metric, row.distance));
    if (options.with_attribs) row.attr.empty() ? reply.Null() : reply.Bulk(row.attr);
  }
}

}  // namespace

std::optional<VsetVector> ParseVsetVector(Args args, size_t at) {
  VsetVector vector;
  if (at + 1 >= args.size()) return std::nullopt;
  const std::string_view value = args[at + 1];
  if (EqualsIgnoreCase(args[at], "FP32")) {
    if (value.empty() || value.size() % sizeof(float) != 0) return std::nullopt;
    if (value.size() / sizeof(float) > kVectorDimMax) return std::nullopt;
    vector.values.resize(value.size() / sizeof(float));
    std::copy(value.begin(), value.end(), reinterpret_cast<char*>(vector.values.data()));
    vector.next = at + 2;
    return vector;
  }
  if (!EqualsIgnoreCase(args[at], "VALUES")) return std::nullopt;
  const std::optional<int64_t> dim = ParseInt64(value);
  if (!dim || *dim < 1 || *dim > int64_t{kVectorDimMax}) return std::nullopt;
  const auto count = static_cast<size_t>(*dim);
  if (args.size() - at - 2 < count) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    const std::optional<double> x = ParseDouble(args[at + 2 + i]);
    if (!x || !std::isfinite(static_cast<float>(*x))) return std::nullopt;
    vector.values.push_back(static_cast<float>(*x));
  }
  vector.next = at + 2 + count;
  return vector;
}

std::string VsetDimensionError(size_t got, size_t want) {
  return fmt::format("ERR Vector dimension mismatch - got {} but set has {}", got, want);
}

std::string VsetProjectionError(size_t got, size_t want) {
  return fmt::format(
      "ERR Input dimension mismatch for projection - got {} but projection expects {}", got, want);
}

double VsetScore(Metric metric, float distance) {
  switch (metric) {
    case Metric::kCosine:
      // Less than the rounding of a float32 dot product is no distance.
      return distance < kNoDistance ? 1 : 1 - double{distance} / 2;
    case Metric::kL2:
      return 1 / (1 + double{distance});
    case Metric::kIp:
      break;
  }
  return std::clamp(-double{distance}, 0.0, 1.0);
}

float VsetDistance(Metric metric, double score) {
  switch (metric) {
    case Metric::kCosine:
      return static_cast<float>(2 * (1 - score));
    case Metric::kL2:
      return score > 0 ? static_cast<float>(1 / score - 1) : INFINITY;
    case Metric::kIp:
      break;
  }
  return score > 0 ? static_cast<float>(-score) : INFINITY;
}

void PrepareVsim(CommandContext& ctx) {
  const FetchedVectorSet fetched = FetchVectorSet(ctx);
  ctx.finished = true;
  if (fetched.wrong_type) return ctx.WrongType();
  if (!fetched.set) return ctx.reply.EmptyArray();
  const VectorSet& set = *fetched.set;
  VsetVector query;
  VsimOptions options;
  std::string error = ParseQuery(set, ctx.args, &query);
  if (error.empty()) error = ParseVsimOptions(ctx.args, query.next, &options);
  if (!error.empty()) return ctx.reply.Error(error);
  const auto rows = RunVsim(set.index(), query.values, options);
  TouchKeysStripe(ctx);
  if (!rows.ok()) return ctx.reply.Error(ErrorText(rows.status()));
  ReplyVsim(ctx.reply, set.definition().index.metric, *rows, options);
}

}  // namespace hotkv
