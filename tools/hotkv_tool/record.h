// Record: one piece of data on its way from an input (file, server, directory) to an output. Every reader gives records
// and every writer takes them, so that n readers and m writers need no n × m converters.
//
// Views point into the reader and are valid until its next Next().
// Thread rules: values only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "index/fields/field_spec.h"

namespace hotkv {

enum class RecordKind : uint8_t {
  kCommand,  // args, as a client would send it
  kString,   // db, key, value, expire_at_ms
  kIndex,    // db, key, index, expire_at_ms
  kVector,   // db, key (of the index), id, vector, attr
};

// A vector index's definition, in the words of VSIM.CREATEINDEX. 0 or empty: the server's default.
struct IndexDefinition {
  uint32_t dim = 0;
  std::string metric;
  std::string type;
  uint32_t m = 0;
  uint32_t ef_construction = 0;
  uint32_t ef = 0;
  uint32_t rerank = 0;
  uint32_t input_dim = 0;  // of what users give, where that is projected to `dim` (VADD's REDUCE); 0: it is not
  bool transient = false;  // goes with its last element, as VADD makes them
  std::vector<FieldSpec> fields = {};
  bool operator==(const IndexDefinition&) const = default;
};

struct Record {
  RecordKind kind = RecordKind::kCommand;
  uint32_t db = 0;
  std::string_view key;
  std::string_view value;
  int64_t expire_at_ms = 0;  // 0: none
  std::string_view id;
  std::string_view attr;
  std::span<const float> vector;
  IndexDefinition index;
  std::span<const std::string_view> args;
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;
  // False at the end. kCorruption or kInvalidArgument with path and offset (the text has the line where there are
  // lines) for bytes that are not of this format.
  virtual Result<bool> Next(Record* record) = 0;
  // After an error: goes on behind the faulty record, where the format allows it.
  virtual bool SkipBad() { return false; }
  // Of the last record: a line, row or offset; Where makes a text of it: "dump.ndjson:17", "dump.resp @4711".
  virtual uint64_t position() const = 0;
  virtual std::string Where(uint64_t position) const = 0;
  // For the progress bar; total 0: not known.
  virtual uint64_t done() const = 0;
  virtual uint64_t total() const = 0;
};

class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  virtual Status Put(const Record& record) = 0;
  // Everything is where it belongs when this returns OK. Without it nothing is left of an unfinished output file.
  virtual Status Finish() = 0;
};

}  // namespace hotkv
