// Reads .fbin and .ibin files: uint32 rows, uint32 columns, then rows of float32 or int32, little-endian, no padding.
//
// Thread rules: values. Errors: a Status with the path when the file is missing, shorter or longer than its header
// says, or larger than kVectorFileBytesMax.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace hotkv {

inline constexpr uint64_t kVectorFileBytesMax = uint64_t{1} << 40;

template <typename T>
struct Matrix {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<T> values;

  std::span<const T> Row(size_t i) const { return {values.data() + i * columns, columns}; }
};

Result<Matrix<float>> ReadFbin(const std::string& path);
Result<Matrix<int32_t>> ReadIbin(const std::string& path);

}  // namespace hotkv
