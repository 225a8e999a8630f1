// Importer: records from readers to a CommandTarget.
//
// Check reads an input to its end without applying anything: format, commands that the target does not know, vectors that
// do not fit their index. Run applies it. A vector index that does not exist is made, by its definition in the input or
// else with the options' settings and the dimension of its first vector.
//
// Without skip_bad the first problem ends either; with it bad records are left out and counted. What had been applied
// before a problem stays applied, and the counts say so.
//
// Thread rules: one thread. Errors: a Status only where the run cannot go on; problems go into Problems.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tools/common/progress.h"
#include "tools/hotkv_tool/command_target.h"
#include "tools/hotkv_tool/record.h"
#include "tools/hotkv_tool/record_commands.h"
#include "tools/hotkv_tool/tool_report.h"

namespace hotkv {

struct ImportOptions {
  uint32_t db = 0;               // in which files of commands begin
  IndexDefinition new_index;     // of indexes that the input does not define; dim unused
  bool skip_bad = false;
};

class Importer {
 public:
  Importer(CommandTarget* target, ImportOptions options, Problems* problems)
      : target_(target),
        options_(std::move(options)),
        problems_(problems),
        applied_before_(target->applied()),
        refused_before_(target->refused()) {}

  // False: there are problems, and nothing more should be done.
  Result<bool> Check(RecordReader* reader, ProgressBar* progress);
  Result<bool> Run(RecordReader* reader, ProgressBar* progress);

  uint64_t records() const { return records_; }  // read by Run
  uint64_t applied() const { return target_->applied() - applied_before_ + indexes_applied_; }
  uint64_t refused() const { return target_->refused() - refused_before_ + refused_here_; }
  uint64_t skipped() const { return skipped_; }    // not readable, left out
  uint64_t expired() const { return expired_; }    // past their time: not stored

 private:
  struct Index {
    uint32_t dim = 0;      // 0: not known
    uint32_t input_dim = 0;  // 0: vectors are not projected
    bool exists = false;
    bool expired = false;  // its elements are left out
    std::string metric;
    std::string type;
  };
  using IndexKey = std::pair<uint32_t, std::string>;

  // True: go on. False: the problem just noted ends the run.
  bool Bad(RecordReader* reader, uint64_t position, const std::string& text);
  // The next record; *more is false at the end. False where a bad record ends the run.
  Result<bool> ReadNext(RecordReader* reader, Record* record, bool* more);
  Result<std::string> ObjectionTo(const Record& record);
  Result<Index*> FindIndex(const Record& record);
  Status Apply(RecordReader* reader, const Record& record);
  Status ApplyIndex(RecordReader* reader, const Record& record);
  Status ApplyVector(RecordReader* reader, const Record& record);
  // Notes a record of this run that is not applied.
  Status Refuse(RecordReader* reader, const std::string& text);
  Status MakeIndex(const Record& record, Index* index);
  Status Submit(const Record& record, unsigned lane, uint32_t db, uint64_t position);
  void TakeRefusals(RecordReader* reader);
  bool ShouldStop() const { return !options_.skip_bad && refused() != 0; }

  CommandTarget* const target_;
  const ImportOptions options_;
  Problems* const problems_;
  const uint64_t applied_before_;
  const uint64_t refused_before_;
  std::map<IndexKey, Index> indexes_;
  CommandLine line_;
  bool side_by_side_ = false;  // vectors are under way on several lanes
  uint64_t records_ = 0;
  uint64_t skipped_ = 0;
  uint64_t expired_ = 0;
  uint64_t indexes_applied_ = 0;
  uint64_t refused_here_ = 0;
};

}  // namespace hotkv
