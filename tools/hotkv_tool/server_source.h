// ServerSource: the data of a running server, by SCAN, in batches of bounded size. Keys that are there throughout are
// exported once or, where SCAN gives them twice, twice in the same form; it is no picture of one moment.
//
// Strings from any server that speaks RESP; vector indexes from one that has VSIM.*.
// Thread rules: one thread. Errors: those of RespClient; kUnsupported for a key of a type that has no form, unless the
// filter says to skip these.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/resp_client.h"
#include "tools/hotkv_tool/export_filter.h"

namespace hotkv {

class ServerSource : public RecordSource {
 public:
  static Result<std::unique_ptr<ServerSource>> Connect(const RespAddress& address);

  Status ForEach(const ExportFilter& filter, Problems* problems, const Put& put) override;
  uint64_t total() const override { return keys_total_; }
  uint64_t done() const override { return counts_.keys; }

 private:
  explicit ServerSource(std::unique_ptr<RespClient> client) : client_(std::move(client)) {}

  struct Run {
    const ExportFilter& filter;
    Problems* problems;
    const Put& put;
    uint32_t db = 0;
  };
  struct StringKey {
    std::string key;
    uint64_t bytes = 0;
    int64_t expire_at_ms = 0;
  };

  Result<std::vector<uint32_t>> Databases();
  Status ExportDb(const Run& run);
  Status ExportKeys(const Run& run, const std::vector<std::string>& keys);
  Status ExportStrings(const Run& run, const std::vector<std::string>& keys);
  Status ExportValues(const Run& run, const std::vector<StringKey>& keys, size_t from, size_t to);
  Status ExportIndex(const Run& run, const std::string& key);
  Result<std::vector<int64_t>> EndsOf(const std::string& key, std::span<const RespValue> ids);
  Status ExportElements(const Run& run, const std::string& key, uint32_t dim, bool some_end,
                        const std::vector<RespValue>& ids);
  Result<std::vector<RespValue>> Pipeline(const std::vector<std::vector<std::string_view>>& commands);
  Result<int64_t> ExpiryFrom(const RespValue& reply, std::string_view key);

  const std::unique_ptr<RespClient> client_;
  uint64_t keys_total_ = 0;
  bool has_pexpiretime_ = true;
};

}  // namespace hotkv
