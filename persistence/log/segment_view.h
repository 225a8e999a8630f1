// One segment file as a scan sees it: windows of bytes, block headers, signs of later blocks.
// Private to persistence/log.
//
// Thread rules: one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/base/file.h"
#include "persistence/log/log_catalog.h"
#include "persistence/log/log_format.h"

namespace hotkv {

// A block header, or why there is none at this place.
struct BlockProbe {
  bool found = false;
  BlockHeader header;
  std::string reason;
};

// What a search behind the log's end found.
struct LaterBlocks {
  uint64_t watermark = 0;
  uint64_t blocks = 0;
  uint64_t reach = 0;  // offset behind the last sign of life; 0: none
};

class SegmentView {
 public:
  // Opens the file and checks its header against what the catalog and the directory say.
  static Result<SegmentView> Open(Env* env, const std::string& folder, const LogSegmentEntry& entry,
                                  const LogIdentity& identity);

  const LogSegmentEntry& entry() const { return entry_; }
  const SegmentHeader& header() const { return header_; }
  const std::string& path() const { return file_->path(); }
  // Where blocks may lie up to.
  uint64_t limit() const { return entry_.ended ? entry_.end_offset : file_bytes_; }

  // A valid block of this segment and its start at the offset, whatever comes before it.
  Result<BlockProbe> Probe(uint64_t offset);
  // Whether all bodies of the block have their checksums.
  Result<bool> BodiesAreGood(uint64_t offset, const BlockHeader& header);
  // Looks at every place from the offset on at which a block may begin.
  Result<LaterBlocks> SearchFrom(uint64_t offset);

 private:
  SegmentView() = default;
  // Up to `length` bytes at the offset, fewer at the end of the file; valid until the next call.
  Result<std::string_view> Window(uint64_t offset, size_t length);

  Result<uint64_t> SearchAt(uint64_t offset, std::string_view bytes, LaterBlocks* found);

  LogSegmentEntry entry_;
  SegmentHeader header_;
  uint32_t checksum_seed_ = 0;
  std::unique_ptr<File> file_;
  uint64_t file_bytes_ = 0;
  std::string buffer_;
  uint64_t buffer_offset_ = 0;
};

}  // namespace hotkv
