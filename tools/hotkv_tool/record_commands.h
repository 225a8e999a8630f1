// The commands that make a record what it is, for a server, an engine in process, or a file of commands.
//
// Thread rules: values only.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "engine/commands/command_spec.h"
#include "tools/hotkv_tool/record.h"

namespace hotkv {

// One command's arguments; views of the record and texts of its own.
class CommandLine {
 public:
  void Clear() {
    args_.clear();
    texts_.clear();
  }
  CommandLine& Add(std::string_view borrowed) {
    args_.push_back(borrowed);
    return *this;
  }
  CommandLine& AddNumber(uint64_t number) {
    args_.push_back(texts_.emplace_back(std::to_string(number)));
    return *this;
  }
  Args args() const { return args_; }

 private:
  std::vector<std::string_view> args_;
  std::deque<std::string> texts_;  // a deque, since views point into them
};

// SET key value [PXAT t]; VSIM.CREATEINDEX key ...; VSIM.SET key id FP32 blob [ATTR json] [PXAT t]; or the command itself. The
// expiry of an index is not in it: see MakeExpiry.
void MakeCommand(const Record& record, CommandLine* line);
// PEXPIREAT key t
void MakeExpiry(std::string_view key, int64_t expire_at_ms, CommandLine* line);
// SELECT db
void MakeSelect(uint32_t db, CommandLine* line);

}  // namespace hotkv
