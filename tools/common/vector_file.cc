#include "tools/common/vector_file.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "engine/base/coding.h"
#include "engine/base/file.h"

namespace hotkv {
namespace {

constexpr size_t kHeaderBytes = 8;

template <typename T>
Result<Matrix<T>> ReadMatrix(const std::string& path) {
  static_assert(sizeof(T) == 4);
  HOTKV_ASSIGN_OR_RETURN(std::unique_ptr<File> file, PosixEnv()->Open(path, OpenMode::kRead));
  HOTKV_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::array<char, kHeaderBytes> header{};
  HOTKV_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, header));
  if (got < kHeaderBytes) return Status::Corruption("shorter than its header").At(path, 0);
  Matrix<T> matrix;
  matrix.rows = LoadLe<uint32_t>(header.data());
  matrix.columns = LoadLe<uint32_t>(header.data() + 4);
  const uint64_t cells = uint64_t{matrix.rows} * matrix.columns;
  if (matrix.columns == 0 || cells > kVectorFileBytesMax / sizeof(T) ||
      cells * sizeof(T) + kHeaderBytes != size) {
    return Status::Corruption(fmt::format("{} rows of {} do not make {} bytes", matrix.rows,
                                          matrix.columns, size))
        .At(path, 0);
  }
  matrix.values.resize(cells);
  uint64_t done = 0;
  auto* bytes = reinterpret_cast<char*>(matrix.values.data());
  while (done < cells * sizeof(T)) {
    HOTKV_ASSIGN_OR_RETURN(const size_t part,
                           file->ReadAt(kHeaderBytes + done, {bytes + done, cells * sizeof(T) - done}));
    if (part == 0) return Status::Corruption("ends early").At(path, static_cast<int64_t>(done));
    done += part;
  }
  return matrix;
}

}  // namespace

Result<Matrix<float>> ReadFbin(const std::string& path) { return ReadMatrix<float>(path); }
Result<Matrix<int32_t>> ReadIbin(const std::string& path) { return ReadMatrix<int32_t>(path); }

}  // namespace hotkv
