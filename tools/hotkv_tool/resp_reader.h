// RespReader: commands from a file in RESP's request form, as redis-cli --pipe takes it: multibulk or one command a line.
// That is also the command form of Redis's append-only file; its time annotations ("#TS:...") are passed over. A file
// that begins with an RDB image ("REDIS...") is refused.
//
// Rules: a command that is cut off, a MULTI without its EXEC at the end of the file, and commands that change how replies
// arrive (SUBSCRIBE, MONITOR, ...) are errors: nothing of them may be applied.
//
// Thread rules: one thread. Errors: kCorruption or kInvalidArgument with path and the offset at which the command begins.
#pragma once

#include <memory>
#include <string>

#include "engine/base/buffer.h"
#include "engine/base/resp.h"
#include "tools/hotkv_tool/byte_stream.h"
#include "tools/hotkv_tool/record.h"

namespace hotkv {

class RespReader : public RecordReader {
 public:
  explicit RespReader(std::unique_ptr<InputStream> input) : input_(std::move(input)) {}

  Result<bool> Next(Record* record) override;
  uint64_t position() const override { return command_offset_; }
  std::string Where(uint64_t position) const override;
  uint64_t done() const override { return command_offset_; }
  uint64_t total() const override { return input_->size(); }

 private:
  static constexpr size_t kReadBytes = size_t{1} << 20;

  // Parses more commands into the batch; false at the end.
  Result<bool> Refill();
  Result<bool> ReadMore();
  Status CheckCommand(std::span<const std::string_view> args);
  Status Error(Status status) const;

  const std::unique_ptr<InputStream> input_;
  InputBuffer buffer_;
  RequestParser parser_;
  RequestBatch batch_;
  size_t next_ = 0;             // in the batch
  size_t consumed_ = 0;         // of the buffer, by the batch
  bool failed_ = false;         // a protocol error follows the batch
  bool at_end_ = false;         // of the input
  uint64_t buffer_offset_ = 0;  // of the buffer's first byte in the input
  uint64_t command_offset_ = 0;
  uint64_t next_offset_ = 0;
  uint64_t multi_offset_ = 0;
  bool in_multi_ = false;
  bool first_ = true;
};

}  // namespace hotkv
