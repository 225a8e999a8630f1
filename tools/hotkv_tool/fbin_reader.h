// FbinReader: vectors from a .fbin file (uint32 rows, uint32 dimension, then rows of float32, little-endian), with element
// ids from a text file and attributes from a table.
//
//   ids:        line i is row i's id; without a file the row number
//   attributes: tab-separated, a header line and then a line a row. Each column becomes a member of the row's JSON
//               object, an empty field is left out. A column is numeric when all its fields are JSON numbers. A first
//               column called "row" must hold the row number (so that tables that do not fit are noticed) and is not
//               stored.
//
// Thread rules: one thread. Errors: kCorruption with path and offset; the text names row or line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/hotkv_tool/byte_stream.h"
#include "tools/hotkv_tool/record.h"

namespace hotkv {

// Lines of a text file, one after the other.
class LineStream {
 public:
  explicit LineStream(std::unique_ptr<InputStream> input) : input_(std::move(input)) {}
  // Without its break ("\n" or "\r\n"); valid until the next call. False at the end.
  Result<bool> Next(std::string_view* line);
  Status Rewind();
  uint64_t number() const { return number_; }  // of the last line, from 1
  Status Error(std::string text) const;        // at the last line

 private:
  static constexpr size_t kReadBytes = size_t{256} << 10;
  static constexpr size_t kLineBytesMax = size_t{64} << 20;
  const std::unique_ptr<InputStream> input_;
  std::string buffer_;
  size_t begin_ = 0;
  bool at_end_ = false;
  uint64_t number_ = 0;
  uint64_t buffer_offset_ = 0;
  uint64_t line_offset_ = 0;
};

// The attributes of row after row, as JSON objects.
class AttributeTable {
 public:
  // Reads the file once to find out which columns are numeric.
  static Result<std::unique_ptr<AttributeTable>> Open(const std::string& path);
  // Those of row `row`, which must be asked for in order. kCorruption when there are none.
  Status Next(uint64_t row, std::string* json);
  uint64_t rows() const { return rows_; }
  Status Error(std::string text) const { return lines_.Error(std::move(text)); }

 private:
  explicit AttributeTable(std::unique_ptr<InputStream> input) : lines_(std::move(input)) {}
  Status ReadHeader();
  Status FindNumericColumns();
  Status Split(std::string_view line);
  Status CheckRow(uint64_t row) const;

  LineStream lines_;
  std::vector<std::string> names_;  // as JSON strings
  std::vector<bool> numeric_;
  bool has_row_column_ = false;
  uint64_t rows_ = 0;
  std::vector<std::string_view> fields_;
};

struct FbinOptions {
  uint32_t db = 0;
  std::string index;
  std::string keys_path;   // empty: row numbers
  std::string attrs_path;  // empty: none
};

class FbinReader : public RecordReader {
 public:
  static Result<std::unique_ptr<FbinReader>> Open(std::unique_ptr<InputStream> input,
                                                  const FbinOptions& options);

  Result<bool> Next(Record* record) override;
  uint64_t position() const override { return next_row_ == 0 ? 0 : next_row_ - 1; }
  std::string Where(uint64_t position) const override;
  uint64_t done() const override { return next_row_ == 0 ? 0 : OffsetOf(next_row_); }
  uint64_t total() const override { return input_->size(); }
  uint32_t dim() const { return dim_; }
  uint64_t rows() const { return rows_; }

 private:
  FbinReader(std::unique_ptr<InputStream> input, FbinOptions options)
      : input_(std::move(input)), options_(std::move(options)) {}
  Status ReadHeader();
  Status ReadRow();
  Status ReadId();
  Result<size_t> ReadFully(char* buffer, size_t size);
  uint64_t OffsetOf(uint64_t row) const { return 8 + row * dim_ * sizeof(float); }
  Status Error(uint64_t offset, std::string text) const;

  const std::unique_ptr<InputStream> input_;
  const FbinOptions options_;
  std::unique_ptr<LineStream> keys_;
  std::unique_ptr<AttributeTable> attrs_;
  uint64_t rows_ = 0;
  uint32_t dim_ = 0;
  uint64_t next_row_ = 0;
  std::vector<float> vector_;
  std::string id_;
  std::string attr_;
};

}  // namespace hotkv
