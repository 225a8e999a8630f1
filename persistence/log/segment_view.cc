#include "persistence/log/segment_view.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/crc32c.h"
#include "engine/base/rule_switch.h"

namespace hotkv {

namespace {

// Small windows while blocks are small, so that a walk over large blocks does not read their
// bodies.
constexpr size_t kWindowBytes = 64 * 1024;
constexpr size_t kSearchBytes = 1024 * 1024;

bool AllZero(std::string_view bytes) {
  if (bytes.empty()) return true;
  return bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

Result<SegmentView> SegmentView::Open(Env* env, const std::string& folder,
                                      const LogSegmentEntry& entry, const LogIdentity& identity) {
  const std::string path = JoinPath(folder, SegmentFileName(entry.number));
  SegmentView view;
  view.entry_ = entry;
  view.checksum_seed_ = identity.checksum_seed();
  auto file = env->Open(path, OpenMode::kRead);
  if (!file.ok() && file.status().code() == Code::kNotFound) {
    return Status::Corruption("the catalog names this log segment, but there is no such file")
        .At(path, -1);
  }
  if (!file.ok()) return std::move(file).status();
  view.file_ = std::move(file).value();
  HOTKV_ASSIGN_OR_RETURN(view.file_bytes_, view.file_->Size());
  HOTKV_ASSIGN_OR_RETURN(const std::string_view bytes, view.Window(0, kSegmentHeaderBytes));
  auto header = DecodeSegmentHeader(bytes);
  if (!header.ok()) return std::move(header).status().At(path, 0);
  view.header_ = *header;
  if (view.header_.segment != entry.number || view.header_.start != entry.start) {
    return Status::Corruption(fmt::format("holds segment {} of start {}, the catalog says {} of {}",
                                          view.header_.segment, view.header_.start, entry.number,
                                          entry.start))
        .At(path, 0);
  }
  if (view.header_.identity != identity) {
    return Status::Corruption("log segment of another data directory").At(path, 0);
  }
  return view;
}

Result<std::string_view> SegmentView::Window(uint64_t offset, size_t length) {
  if (offset >= file_bytes_) return std::string_view();
  length = static_cast<size_t>(std::min<uint64_t>(length, file_bytes_ - offset));
  const bool inside =
      offset >= buffer_offset_ && offset + length <= buffer_offset_ + buffer_.size();
  if (!inside) {
    const size_t wanted = std::max(length, kWindowBytes);
    buffer_.resize(static_cast<size_t>(std::min<uint64_t>(wanted, file_bytes_ - offset)));
    buffer_offset_ = offset;
    auto read = file_->ReadAt(offset, {buffer_.data(), buffer_.size()});
    if (!read.ok()) {
      buffer_.clear();
      return std::move(read).status();
    }
    buffer_.resize(*read);
    length = std::min(length, buffer_.size());
  }
  return std::string_view(buffer_).substr(static_cast<size_t>(offset - buffer_offset_), length);
}

Result<BlockProbe> SegmentView::Probe(uint64_t offset) {
  BlockProbe probe;
  if (offset % kBlockAlignBytes != 0 || offset + kBlockFixedBytes > file_bytes_) {
    probe.reason = "end of the file";
    return probe;
  }
  HOTKV_ASSIGN_OR_RETURN(const std::string_view bytes, Window(offset, kBlockHeaderBytesMax));
  auto header = DecodeBlockHeader(bytes, checksum_seed_);
  if (!header.ok() && header.status().code() == Code::kUnsupported) {
    return std::move(header).status().At(path(), static_cast<int64_t>(offset));
  }
  if (!header.ok()) {
    probe.reason = header.status().message();
    return probe;
  }
  const bool ours = header->segment == header_.segment &&
                    (header->start == header_.start || !rules::Enabled(Rule::kStartNumber));
  if (!ours) {
    probe.reason = "a block of another segment";
    return probe;
  }
  if (header->block_bytes > limit() - offset) {
    probe.reason = "block reaches beyond the end";
    return probe;
  }
  probe.found = true;
  probe.header = std::move(header).value();
  return probe;
}

Result<bool> SegmentView::BodiesAreGood(uint64_t offset, const BlockHeader& header) {
  for (const GroupEntry& group : header.groups) {
    uint32_t crc = 0;
    for (uint64_t done = 0; done < group.bytes;) {
      const uint64_t want = std::min<uint64_t>(kSearchBytes, group.bytes - done);
      HOTKV_ASSIGN_OR_RETURN(const std::string_view bytes,
                             Window(offset + group.offset + done, static_cast<size_t>(want)));
      if (bytes.empty()) return false;
      crc = ExtendCrc32c(crc, bytes);
      done += bytes.size();
    }
    if (crc != group.crc) return false;
  }
  return true;
}

Result<LaterBlocks> SegmentView::SearchFrom(uint64_t offset) {
  LaterBlocks found;
  if (file_bytes_ < header_.size_bytes) found.reach = file_bytes_;  // cut off, zeros and all
  offset = BlockBytesFor(offset);
  while (offset < file_bytes_) {
    HOTKV_ASSIGN_OR_RETURN(const std::string_view window, Window(offset, kSearchBytes));
    if (window.empty()) break;
    const uint64_t window_end = offset + window.size();
    // In one go: long runs of zeros are what nearly every search meets.
    if (AllZero(window)) {
      offset = BlockBytesFor(window_end);
      continue;
    }
    const std::string part(window);  // probing moves the window
    for (const uint64_t begin = offset; offset < window_end;) {
      const auto rest = std::string_view(part).substr(static_cast<size_t>(offset - begin));
      HOTKV_ASSIGN_OR_RETURN(offset, SearchAt(offset, rest, &found));
    }
  }
  return found;
}

// Takes into account what is at the offset, where `bytes` begin; returns where to look next.
Result<uint64_t> SegmentView::SearchAt(uint64_t offset, std::string_view bytes,
                                       LaterBlocks* found) {
  const uint64_t next = offset + kBlockAlignBytes;
  if (!header_.recycled && !AllZero(bytes.substr(0, kBlockAlignBytes))) {
    found->reach = std::max(found->reach, std::min(next, file_bytes_));
  }
  const bool cannot_begin = bytes.size() >= kBlockFixedBytes && PeekBlockHeaderBytes(bytes) == 0;
  if (cannot_begin) return next;
  HOTKV_ASSIGN_OR_RETURN(const BlockProbe probe, Probe(offset));
  if (!probe.found) return next;
  found->watermark = std::max(found->watermark, probe.header.durable_epoch);
  ++found->blocks;
  found->reach = std::max(found->reach, offset + probe.header.block_bytes);
  return offset + probe.header.block_bytes;
}

}  // namespace hotkv
