// Codec: how an index's vectors become the rows that distances are computed on. F32 has none: its
// rows are the vectors. Q4 and Q8 rotate the vector's direction and quantise it with one scale that
// is known beforehand, BIN keeps the signs and a scale of the row's own; where vectors need not have unit length (L2, IP) the row ends with the norm.
// F16 rounds.
//
// Thread rules: constant after construction.
#pragma once

#include <cstdint>
#include <memory>

#include "index/distance/targets.h"
#include "index/quant/rotation.h"
#include "index/vector_index.h"

namespace hotkv {

class Codec {
 public:
  Codec(const IndexOptions& options, const Target& target);

  bool rows_are_vectors() const { return options_.type == ElementType::kF32; }
  SpaceKind space() const { return space_; }
  const SpaceParams& params() const { return params_; }
  uint32_t row_bytes() const { return params_.row_bytes; }
  uint32_t stride() const;
  // Room for a query, made from a vector or from a row.
  uint32_t query_bytes() const { return query_bytes_; }

  // `vector` as stored: of unit length under COSINE. `buffer`: query_bytes(), 64-byte aligned, and
  // used by the view.
  QueryView MakeQuery(const float* vector, void* buffer) const;
  // `buffer` as above, for the time of the call.
  void Encode(const float* vector, void* buffer, char* row) const;
  // Standard deviation of a row's distance by codes from the true one, in the walk's units.
  float Deviation(const QueryView& query, const char* row) const;
  // The query that stands for a stored row.
  QueryView FromRow(const char* row, void* buffer) const;

 private:
  bool has_codes() const {
    return options_.type == ElementType::kQ4 || options_.type == ElementType::kQ8 ||
           options_.type == ElementType::kBin;
  }
  // Puts the rotated direction into the buffer; returns the vector's norm.
  float Direct(const float* vector, float* rotated) const;

  const IndexOptions options_;
  const Target& target_;
  std::unique_ptr<Rotation> rotation_;  // null without codes
  SpaceKind space_ = SpaceKind::kF32Dot;
  SpaceParams params_;
  uint32_t query_bytes_ = 0;
  float encode_scale_ = 1;  // half a step; the walk's scale is a little larger
  float deviation_ = 0;     // of the product of two unit vectors
};

}  // namespace hotkv
