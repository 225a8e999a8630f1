// RespWriter: records as a file of commands that redis-cli --pipe, hotkv-tool import and a server's append-only file
// reader take. It begins with SELECT, so it is the same whatever database it is sent to.
//
// Thread rules: one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tools/hotkv_tool/byte_stream.h"
#include "tools/hotkv_tool/record.h"
#include "tools/hotkv_tool/record_commands.h"

namespace hotkv {

class RespWriter : public RecordWriter {
 public:
  explicit RespWriter(std::unique_ptr<OutputStream> output) : output_(std::move(output)) {}
  Status Put(const Record& record) override;
  Status Finish() override;

 private:
  void Append();
  void AppendPendingExpiry();

  const std::unique_ptr<OutputStream> output_;
  CommandLine line_;
  std::optional<uint32_t> db_;
  // An index's expiry follows its elements: were it past, the key would be gone before they come.
  std::string expiring_key_;
  int64_t expire_at_ms_ = 0;
};

}  // namespace hotkv
