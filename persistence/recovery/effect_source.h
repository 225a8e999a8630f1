// EffectSource: the effects that recovery applies, by stripe group and in lsn order: first those in
// the snapshot's own file, if it has any, then those of the log's blocks. Only places are kept;
// records are read when a group is loaded.
//
// Thread rules: filled by one thread; ForEach then from any number of threads, for different groups
// or the same. Errors: kCorruption with file and offset.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/tx/effect.h"
#include "persistence/log/log_reader.h"
#include "persistence/snapshot/snapshot_file.h"

namespace hotkv {

class EffectSource {
 public:
  EffectSource(Env* env, const std::string& log_folder)
      : log_folder_(log_folder), reader_(env, log_folder) {}

  // The snapshot must outlive this.
  Status AddSnapshot(const SnapshotReader& snapshot);
  void AddBlock(const LogBlockRef& block);

  // Calls `apply` for each effect of the group, in lsn order.
  using Apply = std::function<Status(const Effect&)>;
  Status ForEach(unsigned group, const Apply& apply);

  uint64_t blocks() const { return blocks_; }

 private:
  Status ApplyRecords(uint64_t epoch, std::string_view records, const Apply& apply) const;

  const std::string log_folder_;
  LogReader reader_;
  std::deque<std::string> snapshot_bytes_;  // decompressed sections that runs point into
  struct PlacedRun {
    EffectRun run;
    int64_t section_offset;  // in the snapshot's file
  };
  std::string snapshot_path_;
  std::array<std::vector<PlacedRun>, kStripeGroups> runs_;
  std::array<std::vector<LogGroupRef>, kStripeGroups> refs_;
  uint64_t snapshot_last_epoch_ = 0;
  uint64_t blocks_ = 0;
};

}  // namespace hotkv
