#include "index/quant/codec.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace hotkv {

namespace {

// Where the scale is cut off, in standard deviations: anything from 2 to 3.5 gives the same recall
// at 4 bits after the re-rank; at 8 bits there are levels enough to lose almost nothing.
constexpr float kClipQ4 = 2.8f;
constexpr float kClipQ8 = 4.5f;
// Products with quantised normal values come out this much too small at kClipQ4, above all by
// clipping.
constexpr float kStretchQ4 = 1.0042f;
constexpr float kQueryMax = 127.0f;
// Of a product with the signs of a normal vector, made unbiased: sqrt(pi / 2 - 1) of one component's deviation.
constexpr float kDeviationBin = 0.756f;

SpaceKind SpaceFor(ElementType type, Metric metric) {
  const bool l2 = metric == Metric::kL2;
  const bool unit = metric == Metric::kCosine;
  switch (type) {
    case ElementType::kF16:
      return l2 ? SpaceKind::kF16L2 : SpaceKind::kF16Dot;
    case ElementType::kQ8:
      return unit ? SpaceKind::kQ8Unit : l2 ? SpaceKind::kQ8L2 : SpaceKind::kQ8Dot;
    case ElementType::kQ4:
      return unit ? SpaceKind::kQ4Unit : l2 ? SpaceKind::kQ4L2 : SpaceKind::kQ4Dot;
    case ElementType::kBin:
      return unit ? SpaceKind::kBinUnit : l2 ? SpaceKind::kBinL2 : SpaceKind::kBinDot;
    case ElementType::kF32:
      break;
  }
  return l2 ? SpaceKind::kF32L2 : SpaceKind::kF32Dot;
}

}  // namespace

Codec::Codec(const IndexOptions& options, const Target& target)
    : options_(options), target_(target), space_(SpaceFor(options.type, options.metric)) {
  params_.dim = options.dim;
  params_.length = options.dim;
  switch (options.type) {
    case ElementType::kF16:
      params_.row_bytes = options.dim * 2;
      query_bytes_ = options.dim * 4;
      deviation_ = 0.0003f;  // rounding to 11 bits
      return;
    case ElementType::kQ4:
    case ElementType::kQ8:
    case ElementType::kBin:
      break;
    case ElementType::kF32:
      params_.row_bytes = options.dim * 4;
      return;
  }
  rotation_ = std::make_unique<Rotation>(options.dim, options.seed);
  const bool four = options.type == ElementType::kQ4;
  params_.length = rotation_->plan().length;
  params_.row_bytes = four ? params_.length / 2 : params_.length;
  const bool one_bit = options.type == ElementType::kBin;
  if (one_bit) params_.row_bytes = params_.length / 8 + static_cast<uint32_t>(sizeof(float));
  if (options.metric != Metric::kCosine) params_.row_bytes += sizeof(float);
  const float sigma = 1 / std::sqrt(static_cast<float>(params_.length));
  encode_scale_ = (four ? kClipQ4 / 15 : kClipQ8 / 255) * sigma;
  params_.scale = encode_scale_ * (four ? kStretchQ4 : 1);
  // A code is off by a uniform error of one step, 2 * scale; the errors of the components add up at
  // random, weighted by a unit vector. What is clipped at 4 bits adds a little.
  deviation_ = 2 * params_.scale / std::sqrt(12.0f) * (four ? 1.1f : 1.0f);
  if (one_bit) deviation_ = kDeviationBin * sigma;
  // Rotated floats, then the query's bytes.
  query_bytes_ = params_.length * 5;
}

uint32_t Codec::stride() const {
  const uint32_t bytes = params_.row_bytes;
  return bytes >= 64 ? (bytes + 63) / 64 * 64 : std::bit_ceil(bytes);
}

float Codec::Direct(const float* vector, float* rotated) const {
  const RotationPlan& plan = rotation_->plan();
  std::memcpy(rotated, vector, options_.dim * sizeof(float));
  std::memset(rotated + options_.dim, 0, (plan.length - options_.dim) * sizeof(float));
  float norm = 1;
  if (options_.metric != Metric::kCosine) {
    norm = std::sqrt(target_.raw.f32_dot(vector, vector, options_.dim));
    const float inverse = norm > 0 ? 1 / norm : 0;
    for (uint32_t i = 0; i < options_.dim; ++i) rotated[i] *= inverse;
  }
  target_.raw.rotate(plan, rotated);
  return norm;
}

QueryView Codec::MakeQuery(const float* vector, void* buffer) const {
  QueryView query;
  query.data = vector;
  if (!has_codes()) return query;
  auto* rotated = static_cast<float*>(buffer);
  auto* bytes = reinterpret_cast<int8_t*>(rotated + params_.length);
  query.norm = Direct(vector, rotated);
  const float most = target_.raw.max_abs(rotated, params_.length);
  const float inverse = most > 0 ? kQueryMax / most : 0;
  query.data = bytes;
  query.factor = most / kQueryMax;
  query.sum =
      static_cast<float>(target_.raw.quantize_query(rotated, params_.length, inverse, bytes));
  return query;
}

void Codec::Encode(const float* vector, void* buffer, char* row) const {
  if (options_.type == ElementType::kF16) {
    target_.raw.f16_encode(vector, options_.dim, reinterpret_cast<uint16_t*>(row));
    return;
  }
  auto* rotated = static_cast<float*>(buffer);
  const float norm = Direct(vector, rotated);
  auto* codes = reinterpret_cast<uint8_t*>(row);
  if (options_.type == ElementType::kBin) {
    const float sum = target_.raw.encode_bin(rotated, params_.length, codes);
    const float scale = sum > 0 ? 1 / sum : 0;
    char* behind = row + params_.length / 8;
    std::memcpy(behind, &scale, sizeof(scale));
    if (options_.metric != Metric::kCosine) std::memcpy(behind + sizeof(scale), &norm, sizeof(norm));
    return;
  }
  const bool four = options_.type == ElementType::kQ4;
  const float inverse = 0.5f / encode_scale_;
  (four ? target_.raw.encode_q4 : target_.raw.encode_q8)(rotated, params_.length, inverse, codes);
  if (options_.metric == Metric::kCosine) return;
  std::memcpy(row + (four ? params_.length / 2 : params_.length), &norm, sizeof(norm));
}

float Codec::Deviation(const QueryView& query, const char* row) const {
  if (!has_codes() || options_.metric == Metric::kCosine) return deviation_;
  float norm;
  std::memcpy(&norm, row + params_.row_bytes - sizeof(norm), sizeof(norm));
  return deviation_ * query.norm * norm * (options_.metric == Metric::kL2 ? 2.0f : 1.0f);
}

QueryView Codec::FromRow(const char* row, void* buffer) const {
  return OpsOf(target_, space_).from_row(params_, row, buffer);
}

}  // namespace hotkv
