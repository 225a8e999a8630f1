#include "persistence/log/log_reader.h"

#include <zstd.h>

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "engine/base/crc32c.h"
#include "engine/base/rule_switch.h"
#include "persistence/log/segment_view.h"

namespace hotkv {

namespace {

// A frame's claim about its own size is believed up to here.
constexpr uint64_t kGroupRawBytesMax = uint64_t{8} << 30;

class Scanner {
 public:
  Scanner(const LogScanOptions& options, const LogBlockVisitor& visitor)
      : options_(options), visitor_(visitor) {}

  Result<LogScanResult> Run() {
    result_.watermark = options_.durable_epoch;
    for (const LogSegmentEntry& entry : options_.segments) {
      HOTKV_ASSIGN_OR_RETURN(
          auto view, SegmentView::Open(options_.env, options_.folder, entry, options_.identity));
      views_.push_back(std::move(view));
      if (entry.ended) RaiseWatermark(entry.last_epoch);
    }
    HOTKV_RETURN_IF_ERROR(Walk());
    HOTKV_RETURN_IF_ERROR(LookBehindEnd());
    HOTKV_RETURN_IF_ERROR(Visit(result_.watermark));
    HOTKV_RETURN_IF_ERROR(CheckTail());
    if (torn_.bytes > 0) result_.torn = torn_;
    return result_;
  }

 private:
  // Where the walk stands: behind the last block that it met.
  struct Position {
    size_t view = 0;
    uint64_t offset = kSegmentHeaderBytes;
    uint64_t epoch = 0;
    uint32_t checksum = 0;
    bool chained = false;  // checksum is known
    bool clean_stop = false;
  };
  struct Met {
    size_t view = 0;
    LogBlockRef ref;
  };

  void RaiseWatermark(uint64_t epoch) { result_.watermark = std::max(result_.watermark, epoch); }

  bool Follows(const BlockHeader& header) const {
    if (header.epoch <= at_.epoch) return false;
    if (!at_.chained || !rules::Enabled(Rule::kChain)) return true;
    return header.previous_checksum == at_.checksum;
  }

  Status Walk() {
    while (!views_.empty()) {
      HOTKV_ASSIGN_OR_RETURN(const bool more, Step());
      if (!more) break;
      HOTKV_RETURN_IF_ERROR(Visit(result_.watermark));
    }
    return Status::Ok();
  }

  // Takes the next block of the chain: here, or at the begin of a later segment.
  Result<bool> Step() {
    SegmentView& view = views_[at_.view];
    bool may_go_on = true;
    if (at_.offset < view.limit()) {
      if (!at_.chained && view.header().chain_start) at_.chained = true;
      HOTKV_ASSIGN_OR_RETURN(BlockProbe probe, view.Probe(at_.offset));
      if (probe.found && Follows(probe.header)) {
        Take(at_.view, at_.offset, std::move(probe.header));
        return true;
      }
      reason_ = probe.found ? "a block that does not follow the one before" : probe.reason;
      may_go_on = !view.entry().ended;
    }
    const bool first_is_known_empty = view.entry().ended && view.entry().first_epoch == 0;
    if (!may_go_on || (!at_.chained && !first_is_known_empty)) return false;
    for (size_t next = at_.view + 1; next < views_.size(); ++next) {
      if (views_[next].header().chain_start) return false;
      if (views_[next].limit() <= kSegmentHeaderBytes) continue;
      HOTKV_ASSIGN_OR_RETURN(BlockProbe probe, views_[next].Probe(kSegmentHeaderBytes));
      if (!probe.found || !Follows(probe.header)) continue;
      Take(next, kSegmentHeaderBytes, std::move(probe.header));
      return true;
    }
    return false;
  }

  void Take(size_t view, uint64_t offset, BlockHeader header) {
    at_ = {
        view, offset + header.block_bytes, header.epoch, header.checksum, true, header.clean_stop};
    RaiseWatermark(header.durable_epoch);
    met_.push_back({view, {views_[view].entry().number, offset, std::move(header)}});
  }

  // Visits the blocks met so far up to the epoch.
  Status Visit(uint64_t last_epoch) {
    while (!met_.empty() && met_.front().ref.header.epoch <= last_epoch) {
      if (options_.check_all_bodies) {
        HOTKV_ASSIGN_OR_RETURN(const bool good, BodiesAreGood(met_.front()));
        if (!good) {
          const Met& bad = met_.front();
          return Corruption(views_[bad.view].path(), bad.ref.offset, result_.end.epoch,
                            "checksum of a group");
        }
      }
      HOTKV_RETURN_IF_ERROR(VisitFirst());
      result_.durable_end = result_.end;
    }
    return Status::Ok();
  }

  Status VisitFirst() {
    const LogBlockRef& ref = met_.front().ref;
    HOTKV_RETURN_IF_ERROR(visitor_(ref));
    const bool first = ref.segment != result_.end.segment;
    result_.end = {ref.header.epoch,
                   ref.segment,
                   ref.offset + ref.header.block_bytes,
                   ref.header.checksum,
                   ref.header.wall_ms,
                   first ? ref.header.epoch : result_.end.first_epoch};
    result_.clean_stop = ref.header.clean_stop;
    if (first) result_.uses.push_back({ref.segment, 0, ref.header.epoch, 0});
    result_.uses.back().end_offset = result_.end.offset;
    result_.uses.back().last_epoch = result_.end.epoch;
    ++result_.blocks;
    met_.pop_front();
    return Status::Ok();
  }

  Result<bool> BodiesAreGood(const Met& met) {
    return views_[met.view].BodiesAreGood(met.ref.offset, met.ref.header);
  }

  // Looks for blocks behind the place where the walk ended: their watermarks tell a torn tail from
  // corruption.
  Status LookBehindEnd() {
    if (views_.empty()) return Status::Ok();
    const uint64_t stopped_start = at_.clean_stop ? views_[at_.view].header().start : UINT64_MAX;
    for (size_t v = at_.view; v < views_.size(); ++v) {
      SegmentView& view = views_[v];
      if (v > at_.view && view.header().chain_start) break;
      if (view.header().start == stopped_start) continue;
      const bool here = v == at_.view;
      if (here && view.entry().ended && at_.offset >= view.entry().end_offset) continue;
      const uint64_t from = here ? at_.offset : kSegmentHeaderBytes;
      HOTKV_ASSIGN_OR_RETURN(const LaterBlocks later, view.SearchFrom(from));
      NoteTorn(v, from, std::max(later.reach, from), reason_);
      torn_.blocks += later.blocks;
      RaiseWatermark(later.watermark);
    }
    if (result_.watermark > at_.epoch && rules::Enabled(Rule::kWatermark)) {
      const std::string what = reason_.empty() ? "end of the log" : reason_;
      if (torn_.path.empty())
        return Corruption(views_[at_.view].path(), at_.offset, at_.epoch, what);
      return Corruption(torn_.path, torn_.offset, at_.epoch, what);
    }
    return Status::Ok();
  }

  // Blocks above the watermark count up to the first whose body did not arrive.
  Status CheckTail() {
    while (!met_.empty()) {
      HOTKV_ASSIGN_OR_RETURN(const bool good, BodiesAreGood(met_.front()));
      if (good) {
        result_.unsynced.push_back(met_.front().ref);
        HOTKV_RETURN_IF_ERROR(VisitFirst());
        continue;
      }
      if (!rules::Enabled(Rule::kCutByEpoch)) {
        met_.pop_front();
        continue;
      }
      torn_.path
          .clear();  // this is where the cut lies, before what was found behind the walk's end
      torn_.blocks += met_.size();
      for (const Met& met : met_) {
        const BlockHeader& header = met.ref.header;
        NoteTorn(met.view, met.ref.offset, met.ref.offset + header.block_bytes,
                 "checksum of a group");
      }
      met_.clear();
    }
    return Status::Ok();
  }

  void NoteTorn(size_t view, uint64_t from, uint64_t to, const std::string& reason) {
    if (to <= from) return;
    if (torn_.path.empty()) {
      torn_.path = views_[view].path();
      torn_.offset = from;
      torn_.reason = reason.empty() ? "no block" : reason;
    }
    torn_.bytes += to - from;
  }

  Status Corruption(const std::string& path, uint64_t offset, uint64_t last_epoch,
                    const std::string& what) const {
    return Status::Corruption(
               fmt::format(
                   "log is damaged behind epoch {} ({}), though it was durable up to epoch {}",
                   last_epoch, what, result_.watermark))
        .At(path, static_cast<int64_t>(offset));
  }

  const LogScanOptions& options_;
  const LogBlockVisitor& visitor_;
  std::vector<SegmentView> views_;
  Position at_;
  std::deque<Met> met_;  // blocks of the chain that are not visited yet
  std::string reason_;   // why the walk ended
  LogTornTail torn_;
  LogScanResult result_;
};

Result<std::string> Decompress(std::string_view frame) {
  const unsigned long long raw = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (raw == ZSTD_CONTENTSIZE_ERROR || raw == ZSTD_CONTENTSIZE_UNKNOWN || raw > kGroupRawBytesMax) {
    return Status::Corruption("compressed group has no valid size");
  }
  std::string out(static_cast<size_t>(raw), '\0');
  const size_t n = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(n) != 0 || n != out.size())
    return Status::Corruption("compressed group is damaged");
  return out;
}

}  // namespace

Result<LogScanResult> ScanLog(const LogScanOptions& options, const LogBlockVisitor& visitor) {
  return Scanner(options, visitor).Run();
}

LogGroupRef GroupRefOf(const LogBlockRef& block, const GroupEntry& group) {
  return {block.segment, block.offset + group.offset, group.bytes, block.header.epoch, group.crc,
          group.encoding};
}

Result<std::shared_ptr<File>> LogReader::Open(uint64_t segment) {
  std::lock_guard lock(mutex_);
  auto& slot = files_[segment];
  if (slot == nullptr) {
    const std::string path = JoinPath(folder_, SegmentFileName(segment));
    HOTKV_ASSIGN_OR_RETURN(slot, env_->Open(path, OpenMode::kRead));
  }
  return slot;
}

void LogReader::Forget(uint64_t segment) {
  std::lock_guard lock(mutex_);
  files_.erase(segment);
}

Result<std::string> LogReader::ReadBytes(uint64_t segment, uint64_t offset, uint64_t bytes) {
  HOTKV_ASSIGN_OR_RETURN(const auto file, Open(segment));
  HOTKV_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (offset > size || bytes > size - offset) {
    return Status::Corruption("log segment is shorter than its blocks")
        .At(file->path(), static_cast<int64_t>(offset));
  }
  std::string out(static_cast<size_t>(bytes), '\0');
  HOTKV_ASSIGN_OR_RETURN(const size_t read, file->ReadAt(offset, {out.data(), out.size()}));
  out.resize(read);
  return out;
}

Result<std::string> LogReader::ReadGroup(const LogGroupRef& ref) {
  HOTKV_ASSIGN_OR_RETURN(std::string stored, ReadBytes(ref.segment, ref.offset, ref.bytes));
  const auto at = [&](Status status) {
    return std::move(status).At(JoinPath(folder_, SegmentFileName(ref.segment)),
                                static_cast<int64_t>(ref.offset));
  };
  if (Crc32c(stored) != ref.crc) {
    return at(Status::Corruption(fmt::format("checksum of a group of epoch {}", ref.epoch)));
  }
  if (ref.encoding == GroupEncoding::kPlain) return stored;
  auto raw = Decompress(stored);
  if (!raw.ok()) return at(std::move(raw).status());
  return raw;
}

Result<std::string> LogReader::ReadBlock(const LogBlockRef& ref) {
  return ReadBytes(ref.segment, ref.offset, ref.header.block_bytes);
}

}  // namespace hotkv
