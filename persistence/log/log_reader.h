// Reads the epoch log: LogScanner walks the block headers after a restart (or for the tools) and
// decides where the log ends; LogReader fetches the records of a group when they are wanted.
//
// Where the log ends. Blocks form a chain (each names the checksum of the one before). The first
// block that is not there as it should be, after epoch p, is
//  - the torn tail of a crash, when p is at or past every durable watermark seen: in all valid
//  blocks of the segments'
//    own starts, later ones included, and in the catalog. The log is cut there, whatever survived
//    behind it;
//  - corruption, when some watermark is beyond p.
// Bodies of blocks above the watermark are checked by the scan, those at or below it when they are
// read.
//
// Thread rules: a scan belongs to one thread; a LogReader may be used by any.
// Errors: kCorruption with path, offset and, in the text, the epoch; kUnsupported for a newer
// format.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "persistence/log/log_catalog.h"
#include "persistence/log/log_format.h"

namespace hotkv {

// A place in the log: right behind the block of `epoch`. segment 0: before the first block.
struct LogEnd {
  uint64_t epoch = 0;
  uint64_t segment = 0;
  uint64_t offset = 0;
  uint32_t checksum = 0;     // of that block
  uint64_t wall_ms = 0;      // of that block
  uint64_t first_epoch = 0;  // of the first block in that segment
  bool operator==(const LogEnd&) const = default;
};

struct LogBlockRef {
  uint64_t segment = 0;
  uint64_t offset = 0;  // of the block in its file
  BlockHeader header;
};

// What a scan dropped behind the end, for the one line in the server's log and in the tools.
struct LogTornTail {
  std::string path;
  uint64_t offset = 0;  // where the log was cut
  uint64_t bytes =
      0;  // how far signs of later blocks of this start reach, in that file and later ones
  uint64_t blocks = 0;  // whole blocks among them
  std::string reason;   // what is wrong with the first one
};

struct LogScanOptions {
  Env* env = nullptr;
  std::string folder;  // .../log
  LogIdentity identity;
  // Live segments, ascending, from the first one wanted on (a segment whose last epoch is before
  // every cut may be left out).
  std::vector<LogSegmentEntry> segments;
  // The highest epoch known durable from elsewhere: snapshots, index generations.
  // Only of times when logging was on: an epoch that has no block counts as lost.
  uint64_t durable_epoch = 0;
  bool check_all_bodies = false;  // for the tools
};

struct LogScanResult {
  LogEnd end;                         // of the last block that counts
  LogEnd durable_end;                 // of the last block at or below the watermark
  std::vector<LogBlockRef> unsynced;  // the blocks above it that count
  std::vector<LogSegmentUse> uses;    // of each segment that has blocks that count
  uint64_t watermark = 0;
  uint64_t blocks = 0;
  bool clean_stop = false;
  std::optional<LogTornTail> torn;
};

// Calls the visitor for each block that counts, in order of epochs. An error of the visitor's ends
// the scan.
using LogBlockVisitor = std::function<Status(const LogBlockRef&)>;
Result<LogScanResult> ScanLog(const LogScanOptions& options, const LogBlockVisitor& visitor);

// Where a group's records lie; small enough to be kept for each group of each block.
struct LogGroupRef {
  uint64_t segment = 0;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  uint64_t epoch = 0;
  uint32_t crc = 0;
  GroupEncoding encoding = GroupEncoding::kPlain;
};
LogGroupRef GroupRefOf(const LogBlockRef& block, const GroupEntry& group);

class LogReader {
 public:
  LogReader(Env* env, std::string folder) : env_(env), folder_(std::move(folder)) {}

  // The records of the group (effect.h), checked and decompressed.
  Result<std::string> ReadGroup(const LogGroupRef& ref);
  // All bytes of a block as they are stored.
  Result<std::string> ReadBlock(const LogBlockRef& ref);
  // Closes the segment's file; a later read opens it again.
  void Forget(uint64_t segment);

 private:
  Result<std::shared_ptr<File>> Open(uint64_t segment);
  Result<std::string> ReadBytes(uint64_t segment, uint64_t offset, uint64_t bytes);

  Env* const env_;
  const std::string folder_;
  std::mutex mutex_;
  // Guarded by mutex_. Shared: a reader may still use a file that another has forgotten.
  std::map<uint64_t, std::shared_ptr<File>> files_;
};

}  // namespace hotkv
