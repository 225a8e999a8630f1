// What an export covers, and where its records come from.
//
// Thread rules: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "tools/hotkv_tool/record.h"
#include "tools/hotkv_tool/tool_report.h"

namespace hotkv {

struct ExportFilter {
  std::optional<uint32_t> db;  // nothing: all
  std::string match;           // glob pattern of keys; empty: all
  bool skip_bad = false;       // leave out what has no form in the output, and say so
};

struct ExportCounts {
  uint64_t keys = 0;
  uint64_t vectors = 0;
  uint64_t skipped = 0;
};

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // Calls put for each record; an index's elements follow it at once. An error of put's ends it.
  using Put = std::function<Status(const Record&)>;
  virtual Status ForEach(const ExportFilter& filter, Problems* problems, const Put& put) = 0;
  const ExportCounts& counts() const { return counts_; }
  // For the progress bar.
  virtual uint64_t done() const { return counts_.keys + counts_.vectors; }
  virtual uint64_t total() const { return 0; }

 protected:
  ExportCounts counts_;
};

}  // namespace hotkv
