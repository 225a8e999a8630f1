#include "engine/base/sim_disk.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/check.h"

namespace hotkv::sim {

namespace {

// Zero-filled files are common here: their pages are one.
const PageRef& ZeroPage() {
  static const auto* page = new PageRef(std::make_shared<Page>());
  return *page;
}

bool AllZero(std::string_view data) {
  return data.empty() ||
         (data[0] == 0 && std::memcmp(data.data(), data.data() + 1, data.size() - 1) == 0);
}

size_t PageCount(uint64_t bytes) {
  return static_cast<size_t>((bytes + kPageBytes - 1) / kPageBytes);
}

void PreadAll(int fd, uint64_t offset, std::span<char> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    HOTKV_CHECK(n > 0);
    done += static_cast<size_t>(n);
  }
}

void PwriteAll(int fd, uint64_t offset, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    HOTKV_CHECK(n > 0);
    data.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

}  // namespace

void Content::SetPage(size_t index, PageRef page) {
  if (index >= pages.size()) {
    if (page == nullptr) return;
    pages.resize(index + 1);
  }
  pages[index] = std::move(page);
}

void Content::Resize(uint64_t new_size) {
  if (new_size < size) {
    pages.resize(std::min(pages.size(), PageCount(new_size)));
    const size_t tail = new_size % kPageBytes;
    if (tail != 0 && PageCount(new_size) == pages.size() && pages.back() != nullptr) {
      auto page = std::make_shared<Page>(*pages.back());
      std::fill(page->begin() + static_cast<ptrdiff_t>(tail), page->end(), '\0');
      pages.back() = std::move(page);
    }
  }
  size = new_size;
}

size_t Content::Read(uint64_t offset, std::span<char> out) const {
  if (offset >= size) return 0;
  const size_t length = static_cast<size_t>(std::min<uint64_t>(out.size(), size - offset));
  for (size_t done = 0; done < length;) {
    const uint64_t at = offset + done;
    const size_t in_page = at % kPageBytes;
    const size_t n = std::min(length - done, kPageBytes - in_page);
    const PageRef source = page(static_cast<size_t>(at / kPageBytes));
    if (source == nullptr) {
      std::memset(out.data() + done, 0, n);
    } else {
      std::memcpy(out.data() + done, source->data() + in_page, n);
    }
    done += n;
  }
  return length;
}

void Content::Write(uint64_t offset, std::string_view data) {
  size = std::max(size, offset + data.size());
  while (!data.empty()) {
    const size_t index = static_cast<size_t>(offset / kPageBytes);
    const size_t in_page = offset % kPageBytes;
    const std::string_view part = data.substr(0, kPageBytes - in_page);
    const PageRef old = page(index);
    if (AllZero(part) && (part.size() == kPageBytes || old == nullptr || old == ZeroPage())) {
      SetPage(index, ZeroPage());
    } else {
      auto fresh = old == nullptr ? std::make_shared<Page>() : std::make_shared<Page>(*old);
      std::memcpy(fresh->data() + in_page, part.data(), part.size());
      SetPage(index, std::move(fresh));
    }
    data.remove_prefix(part.size());
    offset += part.size();
  }
}

uint64_t Content::allocated_bytes() const {
  const auto count =
      std::count_if(pages.begin(), pages.end(), [](const PageRef& p) { return p != nullptr; });
  return static_cast<uint64_t>(count) * kPageBytes;
}

CutPlan::CutPlan(uint64_t seed, uint64_t last_change) : random_(seed) {
  random_.discard(2);
  mode_ = static_cast<Mode>(Below(kModes));
  // Moments near the end are the interesting ones: most changes before them are synced.
  const uint64_t back = uint64_t{1} << Below(10);
  moment_ = last_change - std::min(last_change, Below(back + 1));
}

size_t CutPlan::Choose(std::span<const uint64_t> changes) {
  const size_t all = changes.size();
  const auto later = [&] { return std::upper_bound(changes.begin(), changes.end(), moment_); };
  switch (mode_) {
    case Mode::kNothing:
      return 0;
    case Mode::kEverything:
      return all;
    case Mode::kUpTo:
      return static_cast<size_t>(later() - changes.begin());
    case Mode::kSince:
      return later() == changes.end() ? 0 : all;
    case Mode::kByFile:
      return file_kept_ ? all : 0;
    case Mode::kByPage:
    case Mode::kBySector:
      return Below(all + 1);
    case Mode::kMost:
      return Below(8) == 0 ? Below(all + 1) : all;
    case Mode::kFew:
      return Below(8) == 0 ? Below(all + 1) : 0;
  }
  return 0;
}

size_t CutPlan::ChoosePrefix(std::span<const uint64_t> changes) {
  const size_t all = changes.size();
  switch (mode_) {
    case Mode::kNothing:
      return 0;
    case Mode::kEverything:
      return all;
    case Mode::kUpTo:
      return static_cast<size_t>(std::upper_bound(changes.begin(), changes.end(), moment_) -
                                 changes.begin());
    default:
      break;
  }
  const uint64_t pick = Below(4);
  if (pick == 0) return 0;
  return pick == 1 ? Below(all + 1) : all;
}

Inode::~Inode() {
  if (descriptor_ >= 0) close(descriptor_);
}

uint64_t Inode::NewBytes(uint64_t offset, uint64_t length) const {
  uint64_t bytes = 0;
  for (size_t i = static_cast<size_t>(offset / kPageBytes); i < PageCount(offset + length); ++i) {
    if (current_.page(i) == nullptr) bytes += kPageBytes;
  }
  return bytes;
}

size_t Inode::Read(uint64_t offset, std::span<char> out) {
  if (descriptor_ < 0) return current_.Read(offset, out);
  if (offset >= current_.size) return 0;
  const size_t length = static_cast<size_t>(std::min<uint64_t>(out.size(), current_.size - offset));
  PreadAll(descriptor_, offset, out.first(length));
  return length;
}

void Inode::NoteVersions(uint64_t change, uint64_t offset, uint64_t length) {
  for (size_t i = static_cast<size_t>(offset / kPageBytes); i < PageCount(offset + length); ++i) {
    dirty_[i].push_back({change, current_.page(i)});
  }
}

void Inode::NoteSize(uint64_t change, uint64_t before) {
  if (before != current_.size) sizes_.push_back({change, before, current_.size});
}

void Inode::Write(uint64_t change, uint64_t offset, std::string_view data) {
  if (data.empty()) return;
  const uint64_t before = current_.size;
  if (descriptor_ >= 0) {
    Capture(change, 256, nullptr);
    PwriteAll(descriptor_, offset, data);
  }
  current_.Write(offset, data);
  NoteVersions(change, offset, data.size());
  NoteSize(change, before);
}

void Inode::Resize(uint64_t change, uint64_t new_size) {
  const uint64_t before = current_.size;
  if (new_size == before) return;
  if (descriptor_ >= 0) {
    Capture(change, 256, nullptr);
    HOTKV_CHECK(ftruncate(descriptor_, static_cast<off_t>(new_size)) == 0);
  }
  current_.Resize(new_size);
  if (new_size < before) NoteVersions(change, new_size, before - new_size);
  NoteSize(change, before);
}

void Inode::Allocate(uint64_t change, uint64_t offset, uint64_t length) {
  const uint64_t before = current_.size;
  const uint64_t end = offset + length;
  if (end > before) {
    current_.Resize(end);
    if (descriptor_ >= 0) HOTKV_CHECK(ftruncate(descriptor_, static_cast<off_t>(end)) == 0);
  }
  for (size_t i = static_cast<size_t>(offset / kPageBytes); i < PageCount(end); ++i) {
    if (current_.page(i) == nullptr) current_.SetPage(i, ZeroPage());
  }
  NoteSize(change, before);
}

void Inode::Sync(uint64_t change) {
  Capture(change, 256, nullptr);
  durable_ = current_;
  dirty_.clear();
  sizes_.clear();
}

void Inode::SyncRange(uint64_t change, uint64_t offset, uint64_t length) {
  const bool shrunk = std::any_of(sizes_.begin(), sizes_.end(),
                                  [](const SizeChange& s) { return s.after < s.before; });
  if (shrunk) return Sync(change);
  Capture(change, 256, nullptr);
  for (size_t i = static_cast<size_t>(offset / kPageBytes); i < PageCount(offset + length); ++i) {
    durable_.SetPage(i, current_.page(i));
    dirty_.erase(i);
  }
  durable_.Resize(current_.size);
  sizes_.clear();
}

void Inode::FailSync(uint64_t change, std::mt19937_64* random) {
  Capture(change, 256, nullptr);
  CutPlan plan((*random)(), change);
  durable_ = Cut(&plan);
  dirty_.clear();
  sizes_.clear();
  // Where the file is mapped its memory cannot be taken back, as on the file systems that keep such
  // pages.
  if (descriptor_ < 0 && (*random)() % 2 == 0) {
    const uint64_t size = current_.size;
    current_ = durable_;
    current_.Resize(size);
  }
}

void Inode::Capture(uint64_t change, unsigned share, std::mt19937_64* random) {
  if (descriptor_ < 0) return;
  auto seen = std::make_shared<Page>();
  for (size_t i = 0; i < PageCount(current_.size); ++i) {
    if (share < 256 && (*random)() % 256 >= share) continue;
    const uint64_t offset = uint64_t{i} * kPageBytes;
    const size_t length =
        static_cast<size_t>(std::min<uint64_t>(kPageBytes, current_.size - offset));
    seen->fill('\0');
    PreadAll(descriptor_, offset, {seen->data(), length});
    const PageRef known = current_.page(i);
    const Page& before = known == nullptr ? *ZeroPage() : *known;
    if (std::memcmp(seen->data(), before.data(), kPageBytes) == 0) continue;
    current_.SetPage(i, seen);
    dirty_[i].push_back({change, seen});
    seen = std::make_shared<Page>();
  }
}

int Inode::MappableDescriptor() {
  if (descriptor_ >= 0) return descriptor_;
  const int fd = memfd_create("hotkv-sim", MFD_CLOEXEC);
  if (fd < 0) return -1;
  HOTKV_CHECK(ftruncate(fd, static_cast<off_t>(current_.size)) == 0);
  for (size_t i = 0; i < current_.pages.size(); ++i) {
    const PageRef page = current_.pages[i];
    const uint64_t offset = uint64_t{i} * kPageBytes;
    if (page == nullptr || page == ZeroPage() || offset >= current_.size) continue;
    const uint64_t length = std::min<uint64_t>(kPageBytes, current_.size - offset);
    PwriteAll(fd, offset, {page->data(), static_cast<size_t>(length)});
  }
  return descriptor_ = fd;
}

PageRef Inode::CutPage(size_t index, CutPlan* plan, uint64_t from, uint64_t to) const {
  std::vector<PageRef> versions{durable_.page(index)};
  std::vector<uint64_t> changes;
  for (const Version& version : dirty_.at(index)) {
    if (version.change >= to) break;
    if (version.change <= from) {
      versions[0] = version.page;
    } else {
      versions.push_back(version.page);
      changes.push_back(version.change);
    }
  }
  if (!plan->by_sector()) return versions[plan->Choose(changes)];
  auto page = std::make_shared<Page>();
  for (size_t at = 0; at < kPageBytes; at += kSectorBytes) {
    const PageRef& chosen = versions[plan->Choose(changes)];
    if (chosen != nullptr) std::memcpy(page->data() + at, chosen->data() + at, kSectorBytes);
  }
  return page;
}

Content Inode::Cut(CutPlan* plan) const {
  plan->BeginFile();
  std::vector<uint64_t> size_changes;
  for (const SizeChange& s : sizes_) size_changes.push_back(s.change);
  const size_t kept = plan->ChoosePrefix(size_changes);
  uint64_t size = durable_.size;
  // Versions from before the last cut-off that counts are gone, those from after the first that
  // does not were never.
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;
  for (size_t i = 0; i < kept; ++i) {
    size = sizes_[i].after;
    if (sizes_[i].after < sizes_[i].before) from = sizes_[i].change;
  }
  for (size_t i = sizes_.size(); i > kept; --i) {
    if (sizes_[i - 1].after < sizes_[i - 1].before) to = sizes_[i - 1].change;
  }
  const bool grew = kept > 0 && sizes_[kept - 1].after > sizes_[kept - 1].before;
  if (grew && plan->by_sector() && plan->Below(2) == 0) {
    const uint64_t span = sizes_[kept - 1].after - sizes_[kept - 1].before;
    size = sizes_[kept - 1].before + plan->Below(span + 1) / kSectorBytes * kSectorBytes;
  }
  Content result = durable_;
  for (const auto& [index, versions] : dirty_)
    result.SetPage(index, CutPage(index, plan, from, to));
  // Resize zeroes what lies beyond only when it shrinks: pages may have arrived beyond the size
  // that counts.
  result.size = std::max<uint64_t>(size, uint64_t{result.pages.size()} * kPageBytes);
  result.Resize(size);
  return result;
}

std::shared_ptr<Inode> Inode::Clone() const {
  auto copy = std::make_shared<Inode>(id_, is_dir_);
  copy->entries = entries;
  copy->durable_entries = durable_entries;
  copy->durable_ = durable_;
  copy->current_ = current_;
  copy->dirty_ = dirty_;
  copy->sizes_ = sizes_;
  return copy;
}

void Inode::SetDurable(Content content) {
  durable_ = std::move(content);
  current_ = durable_;
}

void Inode::Corrupt(uint64_t offset, std::string_view bytes) {
  for (Content* content : {&durable_, &current_}) {
    if (offset + bytes.size() <= content->size) content->Write(offset, bytes);
  }
  if (descriptor_ >= 0) PwriteAll(descriptor_, offset, bytes);
}

Disk::Disk() { inodes[kRoot] = std::make_shared<Inode>(kRoot, true); }

std::shared_ptr<Inode> Disk::NewInode(bool is_dir) {
  const uint64_t id = ++last_inode;
  return inodes[id] = std::make_shared<Inode>(id, is_dir);
}

namespace {

void SetName(std::map<std::string, uint64_t>* entries, const NameChange::Part& part) {
  if (part.inode == 0) {
    entries->erase(part.name);
  } else {
    (*entries)[part.name] = part.inode;
  }
}

}  // namespace

void Disk::Apply(NameChange change) {
  for (const auto& part : change.parts) SetName(&inodes.at(part.folder)->entries, part);
  unsynced_names.push_back(std::move(change));
}

void Disk::SyncFolder(uint64_t folder) {
  // Backwards: what a change that counts also touches must count up to there.
  std::set<uint64_t> folders{folder};
  std::vector<bool> counts(unsynced_names.size());
  for (size_t i = unsynced_names.size(); i-- > 0;) {
    const auto& parts = unsynced_names[i].parts;
    counts[i] = std::any_of(parts.begin(), parts.end(),
                            [&](const auto& part) { return folders.contains(part.folder); });
    if (counts[i]) {
      for (const auto& part : parts) folders.insert(part.folder);
    }
  }
  std::vector<NameChange> left;
  for (size_t i = 0; i < unsynced_names.size(); ++i) {
    if (!counts[i]) {
      left.push_back(std::move(unsynced_names[i]));
      continue;
    }
    for (const auto& part : unsynced_names[i].parts) {
      SetName(&inodes.at(part.folder)->durable_entries, part);
    }
  }
  unsynced_names = std::move(left);
}

uint64_t Disk::UsedBytes() const {
  std::set<uint64_t> named{kRoot};
  std::vector<uint64_t> todo{kRoot};
  while (!todo.empty()) {
    const Inode& inode = *inodes.at(todo.back());
    todo.pop_back();
    for (const auto& [name, id] : inode.entries) {
      if (named.insert(id).second) todo.push_back(id);
    }
  }
  uint64_t bytes = 0;
  for (const auto& [id, inode] : inodes) {
    const bool open = inode.use_count() > 1;
    if (open || named.contains(id)) bytes += inode->allocated_bytes();
  }
  return bytes;
}

std::set<uint64_t> Disk::Reachable() const {
  std::set<uint64_t> found{kRoot};
  std::vector<uint64_t> todo{kRoot};
  const auto visit = [&](uint64_t id) {
    if (id != 0 && found.insert(id).second) todo.push_back(id);
  };
  for (const NameChange& change : unsynced_names) {
    for (const auto& part : change.parts) {
      visit(part.inode);
      visit(part.folder);  // removed meanwhile, perhaps: a cut looks at what became of its names all the same
    }
  }
  while (!todo.empty()) {
    const Inode& inode = *inodes.at(todo.back());
    todo.pop_back();
    for (const auto& [name, id] : inode.entries) visit(id);
    for (const auto& [name, id] : inode.durable_entries) visit(id);
  }
  return found;
}

void Disk::DropUnreachable() {
  const std::set<uint64_t> reachable = Reachable();
  std::erase_if(inodes, [&](const auto& item) {
    return !reachable.contains(item.first) && item.second.use_count() == 1;
  });
}

Disk Disk::PowerCut(uint64_t seed) const {
  CutPlan plan(seed, last_change);
  Disk disk;
  disk.last_change = last_change;
  disk.last_inode = last_inode;
  disk.capacity = capacity;
  for (const auto& [id, inode] : inodes) {
    auto copy = std::make_shared<Inode>(id, inode->is_dir());
    copy->entries = inode->durable_entries;
    if (!inode->is_dir()) copy->SetDurable(inode->Cut(&plan));
    disk.inodes[id] = std::move(copy);
  }
  // For each folder the first change that does not count; a change that touches such a folder ends
  // the others' too.
  std::map<uint64_t, std::vector<uint64_t>> by_folder;
  for (const NameChange& change : unsynced_names) {
    for (const auto& part : change.parts) {
      auto& changes = by_folder[part.folder];
      if (changes.empty() || changes.back() != change.change) changes.push_back(change.change);
    }
  }
  std::map<uint64_t, uint64_t> ends;
  for (const auto& [folder, changes] : by_folder) {
    const size_t kept = plan.ChoosePrefix(changes);
    ends[folder] = kept == changes.size() ? UINT64_MAX : changes[kept];
  }
  for (const NameChange& change : unsynced_names) {
    const bool counts =
        std::all_of(change.parts.begin(), change.parts.end(),
                    [&](const auto& part) { return change.change < ends[part.folder]; });
    for (const auto& part : change.parts) {
      if (counts) {
        SetName(&disk.inodes.at(part.folder)->entries, part);
      } else {
        ends[part.folder] = std::min(ends[part.folder], change.change);
      }
    }
  }
  for (const auto& [id, inode] : disk.inodes) inode->durable_entries = inode->entries;
  disk.DropUnreachable();
  return disk;
}

Disk Disk::KillProcess() const {
  Disk disk;
  disk.unsynced_names = unsynced_names;
  disk.last_change = last_change;
  disk.last_inode = last_inode;
  disk.capacity = capacity;
  for (const auto& [id, inode] : inodes) disk.inodes[id] = inode->Clone();
  disk.DropUnreachable();
  return disk;
}

}  // namespace hotkv::sim
