#include "persistence/log/segment_store.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/crash_point.h"
#include "engine/base/log.h"
#include "engine/base/rule_switch.h"

namespace hotkv {

namespace {

constexpr size_t kZeroPieceBytes = 1024 * 1024;
// Syncs in between keep the filling of a large segment from delaying the log's own syncs by all of
// it.
constexpr uint64_t kZeroSyncBytes = 8 * 1024 * 1024;
constexpr size_t kSparesMax = 2;

}  // namespace

Status SegmentStore::CommitLocked(const LogCatalogChange& change) {
  HOTKV_RETURN_IF_ERROR(options_.catalog->Commit(change));
  for (const LogSegmentEntry& entry : change.put) entries_[entry.number] = entry;
  for (const uint64_t number : change.remove) {
    entries_.erase(number);
    uses_.erase(number);
  }
  CountLive();
  return Status::Ok();
}

void SegmentStore::CountLive() {
  uint64_t bytes = 0;
  uint64_t count = 0;
  for (const auto& [number, entry] : entries_) {
    if (entry.state != SegmentState::kLive) continue;
    bytes += entry.size_bytes;
    ++count;
  }
  live_bytes_.store(bytes, std::memory_order_relaxed);
  live_count_.store(count, std::memory_order_relaxed);
}

Status SegmentStore::Open() {
  HOTKV_RETURN_IF_ERROR(options_.env->MakeDir(options_.folder));
  HOTKV_RETURN_IF_ERROR(options_.env->SyncDir(ParentFolder(options_.folder)));
  HOTKV_ASSIGN_OR_RETURN(const auto entries, options_.catalog->Segments());
  {
    std::lock_guard lock(mutex_);
    for (const LogSegmentEntry& entry : entries) {
      entries_[entry.number] = entry;
      last_number_ = std::max(last_number_, entry.number);
    }
    CountLive();
  }
  TakeNumbersFromFolder();
  Sweep();
  return Status::Ok();
}

// A file that the catalog does not know is somebody's: its number is left alone.
void SegmentStore::TakeNumbersFromFolder() {
  auto files = options_.env->List(options_.folder);
  if (!files.ok()) return;
  std::lock_guard lock(mutex_);
  for (const DirEntry& file : *files) {
    const uint64_t number = ParseSegmentFileName(file.name);
    last_number_ = std::max(last_number_, number);
    if (number != 0 && entries_.contains(number)) continue;
    Log(LogLevel::kWarning,
        fmt::format("{} is not in the catalog: left alone", JoinPath(options_.folder, file.name)));
  }
}

void SegmentStore::Sweep() {
  std::lock_guard lock(mutex_);
  LogCatalogChange change;
  for (const auto& [number, entry] : entries_) {
    if (entry.state == SegmentState::kLive || making_.contains(number) ||
        spares_.contains(number)) {
      continue;
    }
    const Status status = options_.env->Unlink(PathOf(number));
    if (status.ok() || status.code() == Code::kNotFound) change.remove.push_back(number);
  }
  if (change.remove.empty()) return;
  HOTKV_CRASH_POINT("log.sweep.unlinked");
  // Entries go only when their names are gone for good; else they stay for the next sweep.
  if (!options_.env->SyncDir(options_.folder).ok()) return;
  const Status status = CommitLocked(change);
  if (!status.ok()) {
    Log(LogLevel::kWarning,
        "log segments were removed, but the catalog was not told: " + status.ToString());
  }
}

uint64_t SegmentStore::TakeSpareLocked(uint64_t bytes) {
  for (const uint64_t number : spares_) {
    if (entries_[number].size_bytes >= bytes) {
      spares_.erase(number);
      return number;
    }
  }
  return 0;
}

Result<SegmentRef> SegmentStore::Make(uint64_t bytes, Entered entered, Chain chain,
                                      Room room) {
  LogSegmentEntry entry;
  uint64_t spare = 0;
  {
    std::lock_guard lock(mutex_);
    spare = TakeSpareLocked(bytes);
    if (spare != 0) bytes = entries_[spare].size_bytes;
    entry.number = ++last_number_;
    entry.start = options_.start;
    entry.size_bytes = bytes;
    making_.insert(entry.number);
    if (spare != 0) making_.insert(spare);
    const Status status = CommitLocked({.put = {entry}, .remove = {}});
    if (!status.ok()) {
      making_.erase(entry.number);
      making_.erase(spare);
      return status;
    }
  }
  HOTKV_CRASH_POINT("log.segment.planned");
  auto made = Fill(entry.number, bytes, spare, chain, room);
  Status status = made.ok() ? Status::Ok() : made.status();
  if (made.ok()) {
    HOTKV_CRASH_POINT("log.segment.synced");
    std::lock_guard lock(mutex_);
    LogCatalogChange change;
    const bool live =
        entered == Entered::kLive && rules::Enabled(Rule::kSegmentLiveBeforeFirstBlock);
    if (live) entry.state = SegmentState::kLive;
    change.put.push_back(entry);
    if (spare != 0) change.remove.push_back(spare);
    // A later one has been taken into use meanwhile: this one would stand before it without blocks.
    const bool late = entered == Entered::kLive && entry.number < in_use_;
    status = late ? Status::Cancelled("overtaken by a later segment") : CommitLocked(change);
    // A planned segment stays in the hands of its maker until SwitchTo or Discard.
    if (status.ok() && live) making_.erase(entry.number);
    making_.erase(spare);
  }
  if (status.ok()) return std::move(made).value();
  made = status;
  {
    std::lock_guard lock(mutex_);
    making_.erase(entry.number);
    making_.erase(spare);
    if (status.code() == Code::kNoSpace) spares_.clear();  // their room is wanted now
  }
  Sweep();
  return status;
}

Result<SegmentRef> SegmentStore::Fill(uint64_t number, uint64_t bytes, uint64_t spare,
                                      Chain chain, Room room) {
  const std::string path = PathOf(number);
  SegmentHeader header;
  header.identity = options_.identity;
  header.segment = number;
  header.start = options_.start;
  header.size_bytes = bytes;
  header.recycled = spare != 0;
  header.chain_start = chain == Chain::kStarts;
  const std::string header_bytes = EncodeSegmentHeader(header);
  std::shared_ptr<File> file;
  if (spare != 0) {
    HOTKV_RETURN_IF_ERROR(options_.env->Rename(PathOf(spare), path));
    HOTKV_CRASH_POINT("log.segment.renamed");
    HOTKV_ASSIGN_OR_RETURN(file, options_.env->Open(path, OpenMode::kReadWrite, options_.io));
    HOTKV_RETURN_IF_ERROR(file->WriteAt(0, header_bytes));
  } else {
    HOTKV_ASSIGN_OR_RETURN(file, options_.env->Open(path, OpenMode::kCreateNew, options_.io));
    HOTKV_RETURN_IF_ERROR(FillNew(file.get(), header_bytes, bytes, room));
  }
  HOTKV_RETURN_IF_ERROR(file->Sync());
  HOTKV_CRASH_POINT("log.segment.filled");
  HOTKV_RETURN_IF_ERROR(options_.env->SyncDir(options_.folder));
  auto segment = std::make_shared<Segment>();
  segment->number = number;
  segment->size_bytes = bytes;
  segment->path = path;
  segment->file = std::move(file);
  return segment;
}

Status SegmentStore::FillNew(File* file, const std::string& header, uint64_t bytes,
                             Room room) {
  HOTKV_RETURN_IF_ERROR(file->WriteAt(0, header));
  if (room == Room::kReserved) return file->Allocate(header.size(), bytes - header.size());
  const std::string zeros(kZeroPieceBytes, '\0');
  uint64_t unsynced = 0;
  for (uint64_t at = header.size(); at < bytes;) {
    const uint64_t length = std::min<uint64_t>(zeros.size(), bytes - at);
    HOTKV_RETURN_IF_ERROR(
        file->WriteAt(at, std::string_view(zeros).substr(0, static_cast<size_t>(length))));
    at += length;
    unsynced += length;
    if (unsynced < kZeroSyncBytes) continue;
    HOTKV_RETURN_IF_ERROR(file->Sync());
    unsynced = 0;
  }
  return Status::Ok();
}

Status SegmentStore::SwitchTo(const Switch& change) {
  {
    std::lock_guard lock(mutex_);
    if (change.ended.segment != 0) uses_[change.ended.segment] = change.ended;
    LogCatalogChange commit;
    for (auto [number, entry] : entries_) {
      if (number == change.live) {
        entry.state = SegmentState::kLive;
      } else if (entry.state != SegmentState::kLive) {
        continue;
      } else if (number > change.ended.segment && (change.ended.segment != 0 || !entry.ended)) {
        entry.state = SegmentState::kDropped;
      } else if (number == change.ended.segment || !entry.ended) {
        SetEnd(&entry);
      }
      commit.put.push_back(entry);
    }
    HOTKV_RETURN_IF_ERROR(CommitLocked(commit));
    making_.erase(change.live);
    in_use_ = change.live;
  }
  HOTKV_CRASH_POINT("log.switched");
  Sweep();
  return Status::Ok();
}

// The end of its blocks; one without blocks is dropped.
void SegmentStore::SetEnd(LogSegmentEntry* entry) const {
  const auto use = uses_.find(entry->number);
  if (use == uses_.end()) {
    entry->state = SegmentState::kDropped;
    return;
  }
  if (!rules::Enabled(Rule::kEndInCatalogBeforeResume)) return;
  entry->ended = true;
  entry->end_offset = use->second.end_offset;
  entry->first_epoch = use->second.first_epoch;
  entry->last_epoch = use->second.last_epoch;
}

void SegmentStore::NoteUse(const LogSegmentUse& use) {
  std::lock_guard lock(mutex_);
  uses_[use.segment] = use;
}

void SegmentStore::NoteInUse(uint64_t number) {
  std::lock_guard lock(mutex_);
  in_use_ = number;
}

Status SegmentStore::End(const LogSegmentUse& use) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(use.segment);
  if (found == entries_.end() || found->second.state != SegmentState::kLive) return Status::Ok();
  uses_[use.segment] = use;
  LogSegmentEntry entry = found->second;
  SetEnd(&entry);
  return CommitLocked({.put = {entry}, .remove = {}});
}

Status SegmentStore::DropThrough(uint64_t last_number) {
  {
    std::lock_guard lock(mutex_);
    LogCatalogChange commit;
    for (auto [number, entry] : entries_) {
      if (number > last_number || entry.state != SegmentState::kLive) continue;
      entry.state = SegmentState::kDropped;
      commit.put.push_back(entry);
    }
    if (commit.put.empty()) return Status::Ok();
    HOTKV_RETURN_IF_ERROR(CommitLocked(commit));
  }
  Sweep();
  return Status::Ok();
}

Status SegmentStore::DropBefore(uint64_t epoch) {
  {
    std::lock_guard lock(mutex_);
    LogCatalogChange commit;
    std::vector<uint64_t> kept;
    for (auto [number, entry] : entries_) {
      // In order: a gap in the middle would end every scan there.
      if (entry.state != SegmentState::kLive) continue;
      if (!entry.ended || entry.last_epoch >= epoch) break;
      entry.state = SegmentState::kDropped;
      commit.put.push_back(entry);
      if (spares_.size() + kept.size() < kSparesMax) kept.push_back(number);
    }
    if (commit.put.empty()) return Status::Ok();
    HOTKV_RETURN_IF_ERROR(CommitLocked(commit));
    spares_.insert(kept.begin(), kept.end());
  }
  HOTKV_CRASH_POINT("log.dropped");
  Sweep();
  return Status::Ok();
}

Status SegmentStore::Discard(uint64_t number) {
  {
    std::lock_guard lock(mutex_);
    making_.erase(number);
    const auto found = entries_.find(number);
    if (found == entries_.end()) return Status::Ok();
    LogSegmentEntry entry = found->second;
    if (entry.state == SegmentState::kLive) {
      entry.state = SegmentState::kDropped;
      HOTKV_RETURN_IF_ERROR(CommitLocked({.put = {entry}, .remove = {}}));
    }
  }
  Sweep();
  return Status::Ok();
}

bool SegmentStore::IsLive(uint64_t number) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(number);
  return found != entries_.end() && found->second.state == SegmentState::kLive;
}

std::vector<LogSegmentEntry> SegmentStore::Entries() const {
  std::lock_guard lock(mutex_);
  std::vector<LogSegmentEntry> entries;
  for (const auto& [number, entry] : entries_) entries.push_back(entry);
  return entries;
}

}  // namespace hotkv
