#include "tools/hotkv_tool/fbin_reader.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/coding.h"
#include "engine/base/limits.h"
#include "tools/hotkv_tool/text_encoding.h"

namespace hotkv {

namespace {

constexpr size_t kHeaderBytes = 8;
constexpr std::string_view kRowColumn = "row";

// Exactly a JSON number, so that it can stand in an object as it is.
bool IsJsonNumber(std::string_view text) {
  if (text.empty() || (text[0] != '-' && (text[0] < '0' || text[0] > '9'))) return false;
  return nlohmann::json::accept(text);
}

}  // namespace

Status LineStream::Error(std::string text) const {
  return Status::Corruption(fmt::format("line {}: {}", number_, text))
      .At(input_->name(), static_cast<int64_t>(line_offset_));
}

Status LineStream::Rewind() {
  buffer_.clear();
  begin_ = 0;
  at_end_ = false;
  number_ = 0;
  buffer_offset_ = 0;
  return input_->Rewind();
}

Result<bool> LineStream::Next(std::string_view* line) {
  size_t scanned = begin_;
  for (;;) {
    size_t end = buffer_.find('\n', scanned);
    const bool last = end == std::string::npos && at_end_ && begin_ < buffer_.size();
    if (end != std::string::npos || last) {
      const size_t stop = last ? buffer_.size() : end;
      *line = std::string_view(buffer_).substr(begin_, stop - begin_);
      if (line->ends_with('\r')) line->remove_suffix(1);
      line_offset_ = buffer_offset_ + begin_;
      begin_ = last ? stop : stop + 1;
      ++number_;
      return true;
    }
    if (at_end_) return false;
    buffer_.erase(0, begin_);
    buffer_offset_ += begin_;
    begin_ = 0;
    scanned = buffer_.size();
    if (scanned > kLineBytesMax) return Error("the next line is too long");
    buffer_.resize(scanned + kReadBytes);
    HOTKV_ASSIGN_OR_RETURN(const size_t got, input_->Read(buffer_.data() + scanned, kReadBytes));
    buffer_.resize(scanned + got);
    if (got == 0) at_end_ = true;
  }
}

Result<std::unique_ptr<AttributeTable>> AttributeTable::Open(const std::string& path) {
  HOTKV_ASSIGN_OR_RETURN(auto input, InputStream::Open(path));
  if (!input->is_file()) return Status::InvalidArgument(path + ": a table of attributes must be a file");
  std::unique_ptr<AttributeTable> table(new AttributeTable(std::move(input)));
  HOTKV_RETURN_IF_ERROR(table->ReadHeader());
  HOTKV_RETURN_IF_ERROR(table->FindNumericColumns());
  HOTKV_RETURN_IF_ERROR(table->lines_.Rewind());
  std::string_view header;
  HOTKV_ASSIGN_OR_RETURN(const bool again, table->lines_.Next(&header));
  if (!again) return table->Error("no header line");
  return table;
}

Status AttributeTable::ReadHeader() {
  std::string_view header;
  HOTKV_ASSIGN_OR_RETURN(const bool more, lines_.Next(&header));
  if (!more) return Error("no header line");
  HOTKV_RETURN_IF_ERROR(Split(header));
  has_row_column_ = fields_[0] == kRowColumn;
  for (const std::string_view field : fields_) {
    if (field.empty()) return Error("a column without a name");
    AppendJsonString(field, &names_.emplace_back());
  }
  numeric_.assign(names_.size(), true);
  return Status::Ok();
}

Status AttributeTable::FindNumericColumns() {
  std::string_view line;
  for (;;) {
    HOTKV_ASSIGN_OR_RETURN(const bool more, lines_.Next(&line));
    if (!more) return Status::Ok();
    HOTKV_RETURN_IF_ERROR(Split(line));
    if (fields_.size() != names_.size()) {
      return Error(fmt::format("{} fields, the header has {}", fields_.size(), names_.size()));
    }
    HOTKV_RETURN_IF_ERROR(CheckRow(rows_));
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (!fields_[i].empty() && numeric_[i] && !IsJsonNumber(fields_[i])) numeric_[i] = false;
    }
    ++rows_;
  }
}

Status AttributeTable::Split(std::string_view line) {
  if (!IsUtf8(line)) return Error("not UTF-8");
  fields_.clear();
  for (;;) {
    const size_t tab = line.find('\t');
    fields_.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return Status::Ok();
    line.remove_prefix(tab + 1);
  }
}

Status AttributeTable::CheckRow(uint64_t row) const {
  if (!has_row_column_ || fields_[0] == std::to_string(row)) return Status::Ok();
  return Error(fmt::format("\"row\" is {}, expected {}", fields_[0], row));
}

Status AttributeTable::Next(uint64_t row, std::string* json) {
  json->clear();
  std::string_view line;
  HOTKV_ASSIGN_OR_RETURN(const bool more, lines_.Next(&line));
  if (!more) return Error(fmt::format("no attributes of row {}", row));
  HOTKV_RETURN_IF_ERROR(Split(line));
  if (fields_.size() != names_.size()) return Error("the file has changed");
  json->push_back('{');
  for (size_t i = has_row_column_ ? 1 : 0; i < fields_.size(); ++i) {
    if (fields_[i].empty()) continue;
    if (json->size() > 1) json->push_back(',');
    *json += names_[i];
    json->push_back(':');
    if (numeric_[i]) {
      json->append(fields_[i]);
    } else {
      AppendJsonString(fields_[i], json);
    }
  }
  json->push_back('}');
  return Status::Ok();
}

Status FbinReader::Error(uint64_t offset, std::string text) const {
  return Status::Corruption(std::move(text)).At(input_->name(), static_cast<int64_t>(offset));
}

Result<std::unique_ptr<FbinReader>> FbinReader::Open(std::unique_ptr<InputStream> input,
                                                     const FbinOptions& options) {
  if (options.index.empty()) return Status::InvalidArgument("a .fbin file needs --index NAME");
  std::unique_ptr<FbinReader> reader(new FbinReader(std::move(input), options));
  HOTKV_RETURN_IF_ERROR(reader->ReadHeader());
  if (!options.keys_path.empty()) {
    HOTKV_ASSIGN_OR_RETURN(auto keys, InputStream::Open(options.keys_path));
    reader->keys_ = std::make_unique<LineStream>(std::move(keys));
  }
  if (!options.attrs_path.empty()) {
    HOTKV_ASSIGN_OR_RETURN(reader->attrs_, AttributeTable::Open(options.attrs_path));
    if (reader->attrs_->rows() != reader->rows_) {
      return Status::Corruption(fmt::format("{} rows of attributes for {} vectors", reader->attrs_->rows(),
                                            reader->rows_))
          .At(options.attrs_path, -1);
    }
  }
  return reader;
}

Result<size_t> FbinReader::ReadFully(char* buffer, size_t size) {
  size_t done = 0;
  while (done < size) {
    HOTKV_ASSIGN_OR_RETURN(const size_t got, input_->Read(buffer + done, size - done));
    if (got == 0) break;
    done += got;
  }
  return done;
}

Status FbinReader::ReadHeader() {
  char header[kHeaderBytes];
  HOTKV_ASSIGN_OR_RETURN(const size_t got, ReadFully(header, sizeof(header)));
  if (got != sizeof(header)) return Error(0, "no .fbin header");
  rows_ = LoadLe<uint32_t>(header);
  dim_ = LoadLe<uint32_t>(header + 4);
  if (dim_ == 0 || dim_ > kVectorDimMax) {
    return Error(4, fmt::format("dimension {}, must be 1 to {}", dim_, kVectorDimMax));
  }
  if (input_->is_file() && input_->size() != OffsetOf(rows_)) {
    return Error(0, fmt::format("the header says {} rows of {} components, which are {} bytes, but the file has {}",
                                rows_, dim_, OffsetOf(rows_), input_->size()));
  }
  vector_.resize(dim_);
  return Status::Ok();
}

std::string FbinReader::Where(uint64_t position) const {
  return fmt::format("{} row {}", input_->name(), position);
}

Status FbinReader::ReadRow() {
  const size_t bytes = vector_.size() * sizeof(float);
  HOTKV_ASSIGN_OR_RETURN(const size_t got, ReadFully(reinterpret_cast<char*>(vector_.data()), bytes));
  if (got != bytes) return Error(OffsetOf(next_row_), fmt::format("ends in row {}", next_row_));
  for (const float component : vector_) {
    if (!std::isfinite(component)) {
      return Error(OffsetOf(next_row_), fmt::format("row {} holds NaN or infinity", next_row_));
    }
  }
  return Status::Ok();
}

Status FbinReader::ReadId() {
  if (!keys_) {
    id_ = std::to_string(next_row_);
    return Status::Ok();
  }
  std::string_view line;
  HOTKV_ASSIGN_OR_RETURN(const bool more, keys_->Next(&line));
  if (!more) return keys_->Error(fmt::format("the last one: no id for row {}", next_row_));
  id_ = line;
  return Status::Ok();
}

Result<bool> FbinReader::Next(Record* record) {
  if (next_row_ == rows_) {
    std::string_view line;
    HOTKV_ASSIGN_OR_RETURN(const bool more, keys_ ? keys_->Next(&line) : Result<bool>(false));
    if (more) return keys_->Error(fmt::format("more ids than the {} vectors", rows_));
    return false;
  }
  HOTKV_RETURN_IF_ERROR(ReadRow());
  HOTKV_RETURN_IF_ERROR(ReadId());
  if (attrs_) HOTKV_RETURN_IF_ERROR(attrs_->Next(next_row_, &attr_));
  ++next_row_;
  *record = Record{};
  record->kind = RecordKind::kVector;
  record->db = options_.db;
  record->key = options_.index;
  record->id = id_;
  record->attr = attr_;
  record->vector = vector_;
  return true;
}

}  // namespace hotkv
