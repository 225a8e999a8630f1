#include "engine/commands/vector_args.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/base/number.h"
#include "engine/commands/command_context.h"

namespace hotkv {

namespace {

constexpr uint64_t kResultsMax = 1u << 24;

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  float value = 0;
  if (exponent == 0x1f) {
    value = mantissa != 0 ? std::nanf("") : INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    value = std::ldexp(static_cast<float>(mantissa | 0x400u), static_cast<int>(exponent) - 25);
  }
  return sign != 0 ? -value : value;
}

SearchPlan ParsePlan(VectorArgs* args) {
  for (const SearchPlan plan : {SearchPlan::kScan, SearchPlan::kWalk, SearchPlan::kTwoHop}) {
    if (args->Keyword(plan == SearchPlan::kScan ? "SCAN" : plan == SearchPlan::kWalk ? "WALK" : "TWOHOP")) return plan;
  }
  args->Fail("ERR PLAN must be SCAN, WALK or TWOHOP");
  return SearchPlan::kChoose;
}

}  // namespace

std::string_view VectorArgs::Next() {
  if (done()) {
    SyntaxError();
    return {};
  }
  return args_[at_++];
}

bool VectorArgs::Keyword(std::string_view upper) {
  if (!ok() || done() || !EqualsIgnoreCase(args_[at_], upper)) return false;
  ++at_;
  return true;
}

uint64_t VectorArgs::Count(std::string_view what, uint64_t min, uint64_t max) {
  const std::string_view text = Next();
  if (!ok()) return min;
  const std::optional<int64_t> value = ParseInt64(text);
  if (!value || *value < 0 || static_cast<uint64_t>(*value) < min ||
      static_cast<uint64_t>(*value) > max) {
    Fail(fmt::format("ERR {} must be an integer from {} to {}", what, min, max));
    return min;
  }
  return static_cast<uint64_t>(*value);
}

VectorArgument VectorArgs::Blob(uint32_t dim, bool half) {
  const std::string_view blob = Next();
  VectorArgument out;
  if (!ok()) return out;
  const size_t width = half ? sizeof(uint16_t) : sizeof(float);
  const std::string_view name = half ? "FP16" : "FP32";
  if (dim != 0 && blob.size() != dim * width) {
    std::string hint;
    if (!half && blob.size() == dim * sizeof(double)) hint = "; it looks like FLOAT64";
    if (half && blob.size() == dim * sizeof(float)) hint = "; it looks like FP32";
    Fail(fmt::format("ERR vector blob has the wrong size (got {} bytes, want {} for {} dimensions as {}{})",
                     blob.size(), dim * width, dim, name, hint));
    return out;
  }
  if (blob.empty() || blob.size() % width != 0) {
    Fail(fmt::format("ERR vector blob has the wrong size (got {} bytes, want a multiple of {} as {})",
                     blob.size(), width, name));
    return out;
  }
  out.values.resize(blob.size() / width);
  if (!half) {
    std::memcpy(out.values.data(), blob.data(), blob.size());
    return out;
  }
  for (size_t i = 0; i < out.values.size(); ++i) {
    out.values[i] = HalfToFloat(LoadLe<uint16_t>(blob.data() + i * width));
  }
  return out;
}

VectorArgument VectorArgs::Values(uint32_t dim) {
  VectorArgument out;
  const uint64_t count = Count("number of vector components", 1, kVectorDimMax);
  if (!ok()) return out;
  if (count > left()) {
    Fail(fmt::format("ERR VALUES announces {} components, but only {} arguments follow", count, left()));
    return out;
  }
  if (dim != 0 && count != dim) {
    Fail(fmt::format("ERR vector has the wrong dimension (got {}, want {})", count, dim));
    return out;
  }
  out.values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view text = Next();
    const std::optional<double> value = ParseDouble(text);
    if (!value || !std::isfinite(static_cast<float>(*value))) {
      Fail(fmt::format("ERR vector component {} is not a finite float", i + 1));
      return out;
    }
    out.values.push_back(static_cast<float>(*value));
  }
  return out;
}

VectorArgument VectorArgs::Vector(uint32_t dim, Elements elements) {
  if (Keyword("FP32")) return Blob(dim, false);
  if (Keyword("FP16")) return Blob(dim, true);
  if (Keyword("VALUES")) return Values(dim);
  VectorArgument out;
  if (elements == Elements::kAllowed && Keyword("ELE")) {
    out.is_element = true;
    out.element = Next();
    return out;
  }
  SyntaxError();
  return out;
}

std::optional<FilterExpression> ParseFilter(VectorArgs* args) {
  const std::string_view text = args->Next();
  if (!args->ok()) return std::nullopt;
  auto parsed = FilterExpression::Parse(text);
  if (parsed.ok()) return std::move(parsed).value();
  args->Fail("ERR " + parsed.status().message());
  return std::nullopt;
}

std::vector<FieldSpec> ParseFields(VectorArgs* args) {
  std::vector<FieldSpec> fields;
  const uint64_t count = args->Count("number of fields", 0, kIndexFieldsMax);
  for (uint64_t i = 0; args->ok() && i < count; ++i) {
    FieldSpec field;
    field.name = args->Next();
    if (args->Keyword("NUMERIC")) {
      field.kind = FieldKind::kNumeric;
    } else if (!args->Keyword("TAG")) {
      args->Fail("ERR a field is TAG or NUMERIC");
    }
    fields.push_back(std::move(field));
  }
  if (!args->ok()) return {};
  const Status status = CheckFields(fields);
  if (!status.ok()) args->Fail("ERR " + status.message());
  return fields;
}

SearchOptions ParseSearchOptions(VectorArgs* args) {
  SearchOptions out;
  enum : uint32_t { kK = 1, kEf = 2, kRange = 4, kExact = 8, kOffset = 16, kScores = 32, kAttr = 64,
                    kVectors = 128, kRaw = 256, kFilter = 512, kExplain = 1024, kPlan = 2048 };
  uint32_t seen = 0;
  auto once = [&](uint32_t bit) {
    if ((seen & bit) != 0) args->SyntaxError();
    seen |= bit;
  };
  while (args->ok() && !args->done()) {
    if (args->Keyword("K")) {
      once(kK);
      out.params.k = static_cast<uint32_t>(args->Count("K", 1, kResultsMax));
    } else if (args->Keyword("EF")) {
      once(kEf);
      out.params.ef = static_cast<uint32_t>(args->Count("EF", 1, kIndexEfMax));
    } else if (args->Keyword("OFFSET")) {
      once(kOffset);
      out.params.offset = static_cast<uint32_t>(args->Count("OFFSET", 0, kResultsMax));
    } else if (args->Keyword("RANGE")) {
      once(kRange);
      const std::optional<double> range = ParseDouble(args->Next());
      if (!range || std::isnan(*range)) args->Fail("ERR RANGE is not a valid distance");
      if (range) out.params.range = static_cast<float>(*range);
    } else if (args->Keyword("EXACT")) {
      once(kExact);
      out.params.exact = true;
    } else if (args->Keyword("FILTER")) {
      once(kFilter);
      out.filter = ParseFilter(args);
    } else if (args->Keyword("EXPLAIN")) {
      once(kExplain);
      out.explain = true;
    } else if (args->Keyword("PLAN")) {
      once(kPlan);
      out.params.plan = ParsePlan(args);
    } else if (args->Keyword("WITHSCORES")) {
      once(kScores);
      out.with_scores = true;
    } else if (args->Keyword("WITHATTR")) {
      once(kAttr);
      out.params.with_attr = true;
    } else if (args->Keyword("WITHVECTORS")) {
      once(kVectors);
      out.params.with_vector = true;
    } else if (args->Keyword("RAW")) {
      once(kRaw);
      out.raw = true;
    } else {
      args->SyntaxError();
    }
  }
  return out;
}

ElementType ParseElementType(VectorArgs* args) {
  const std::string_view name = args->Next();
  for (const ElementType type : {ElementType::kF32, ElementType::kF16, ElementType::kQ8,
                                 ElementType::kQ4, ElementType::kBin}) {
    if (EqualsIgnoreCase(name, ElementTypeName(type))) return type;
  }
  args->Fail("ERR TYPE must be F32, F16, Q8, Q4 or BIN");
  return ElementType::kF32;
}

}  // namespace hotkv
