// NDJSON: one JSON object a line (docs/formats/ndjson.md). NdjsonReader reads a file of them, NdjsonWriter writes one.
//
//   {"db":0,"key":"k","type":"string","expire_at_ms":1764500000000,"value":"v"}
//   {"db":0,"key":"docs","type":"vectorset","value":{"dim":3,"metric":"COSINE","type":"F32","m":16,...}}
//   {"db":0,"index":"docs","id":"a","vector":[1,0,0],"attr":{"lang":"en"}}
//
// Bytes that are not UTF-8 stand as {"base64":"..."}. What was written reads back as the same bytes. Unknown members are
// errors, so that a misspelt one is not lost silently.
//
// Thread rules: one thread. Errors: kCorruption with path, offset of the line, and its number in the text.
// Change together: docs/formats/ndjson.md, ndjson_reader.cc, ndjson_writer.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/hotkv_tool/byte_stream.h"
#include "tools/hotkv_tool/record.h"

namespace hotkv {

// What a line holds once it is parsed; a Record's views point here.
struct NdjsonLine {
  Record record;
  std::string key;
  std::string value;
  std::string id;
  std::string attr;
  std::vector<float> vector;
};
// kCorruption with a text and no place when this is not a line of the format.
Status ParseNdjsonLine(std::string_view line, NdjsonLine* out);
// Appends the line with its line break. kCommand records have no form here.
Status AppendNdjsonLine(const Record& record, std::string* out);

class NdjsonReader : public RecordReader {
 public:
  explicit NdjsonReader(std::unique_ptr<InputStream> input) : input_(std::move(input)) {}

  Result<bool> Next(Record* record) override;
  bool SkipBad() override { return true; }
  uint64_t position() const override { return line_number_; }
  std::string Where(uint64_t position) const override;
  uint64_t done() const override { return line_offset_; }
  uint64_t total() const override { return input_->size(); }

 private:
  static constexpr size_t kReadBytes = size_t{1} << 20;
  static constexpr size_t kLineBytesMax = size_t{1} << 30;
  // The next line without its break; false at the end.
  Result<bool> NextLine(std::string_view* line);

  const std::unique_ptr<InputStream> input_;
  std::string buffer_;
  size_t begin_ = 0;    // of the next line, in the buffer
  size_t scanned_ = 0;  // no line break between begin_ and here
  uint64_t buffer_offset_ = 0;
  uint64_t line_offset_ = 0;
  uint64_t line_number_ = 0;
  bool at_end_ = false;
  NdjsonLine line_;
};

class NdjsonWriter : public RecordWriter {
 public:
  explicit NdjsonWriter(std::unique_ptr<OutputStream> output) : output_(std::move(output)) {}
  Status Put(const Record& record) override;
  Status Finish() override { return output_->Finish(); }

 private:
  const std::unique_ptr<OutputStream> output_;
};

}  // namespace hotkv
