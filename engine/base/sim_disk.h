// The disk behind SimEnv: files as pages of a cache over durable content, folders, and what a power
// cut may leave of them. Private to engine/base; tests use sim_env.h.
//
// What counts as legal after a cut:
//  - of each page any version since its last sync, chosen for each 512-byte sector by itself; so
//  writes are lost, torn
//    and reordered, within a file and across files;
//  - a file's size follows its changes of size in order, up to any point, also into the middle of a
//  growing write;
//    bytes that did not arrive read as before or as zeros, and never come back once a cut-off of
//    the file counts;
//  - names: of each folder a prefix of its changes; a rename between folders counts in both or in
//  neither; a sync of a
//    file says nothing about its name.
//
// Every change has a number (one counter for the whole disk), so that a cut can also keep "all up
// to" or "all since".
//
// Thread rules: none; SimEnv's mutex guards all of it. Pages are immutable once another version
// refers to them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hotkv::sim {

inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kSectorBytes = 512;

using Page = std::array<char, kPageBytes>;
using PageRef =
    std::shared_ptr<Page>;  // shared by the versions of a file and by the images of cuts

// A file's bytes; a page that is null is a hole and reads as zeros.
struct Content {
  uint64_t size = 0;
  std::vector<PageRef> pages;

  PageRef page(size_t index) const { return index < pages.size() ? pages[index] : nullptr; }
  void SetPage(size_t index, PageRef page);
  void Resize(uint64_t new_size);  // zeroes what lies beyond
  size_t Read(uint64_t offset, std::span<char> out) const;
  void Write(uint64_t offset, std::string_view data);
  uint64_t allocated_bytes() const;
};

// How one cut chooses; drawn from its seed.
class CutPlan {
 public:
  explicit CutPlan(uint64_t seed, uint64_t last_change);

  enum class Mode : uint8_t {
    kNothing,     // all that is unsynced is lost
    kEverything,  // nothing is lost
    kUpTo,        // changes up to a moment
    kSince,       // changes since a moment, without those before
    kByFile,
    kByPage,
    kBySector,
    kMost,  // a page here and there is missing
    kFew,   // a page here and there has arrived
  };
  static constexpr uint64_t kModes = 9;

  void BeginFile() { file_kept_ = Below(2) == 0; }
  // Which of `count` versions (the first is the durable one) a sector has; changes[i] is the number
  // of version i + 1.
  size_t Choose(std::span<const uint64_t> changes);
  bool by_sector() const { return mode_ == Mode::kBySector; }
  // How many of the changes of a size or of a folder count.
  size_t ChoosePrefix(std::span<const uint64_t> changes);
  uint64_t Below(uint64_t bound) { return random_() % bound; }

 private:
  std::mt19937_64 random_;
  Mode mode_;
  uint64_t moment_;
  bool file_kept_ = false;
};

class Inode {
 public:
  Inode(uint64_t id, bool is_dir) : id_(id), is_dir_(is_dir) {}
  ~Inode();
  Inode(const Inode&) = delete;
  Inode& operator=(const Inode&) = delete;

  uint64_t id() const { return id_; }
  bool is_dir() const { return is_dir_; }

  // --- files ---
  uint64_t size() const { return current_.size; }
  uint64_t allocated_bytes() const { return current_.allocated_bytes(); }
  // Bytes of new pages that a write of the range would take.
  uint64_t NewBytes(uint64_t offset, uint64_t length) const;
  size_t Read(uint64_t offset, std::span<char> out);
  void Write(uint64_t change, uint64_t offset, std::string_view data);
  void Resize(uint64_t change, uint64_t new_size);
  void Allocate(uint64_t change, uint64_t offset, uint64_t length);
  void Sync(uint64_t change);
  void SyncRange(uint64_t change, uint64_t offset, uint64_t length);
  // A sync that fails: some of the dirty sectors arrive, the others count as clean from now on. The
  // cache keeps what was written or goes back to what the disk has.
  void FailSync(uint64_t change, std::mt19937_64* random);
  // Takes what was written through shared mappings over into the cache, as a change; of `share` in
  // 256 of the pages.
  void Capture(uint64_t change, unsigned share, std::mt19937_64* random);
  // A descriptor whose mappings are the file's; made at the first call. -1: the system refused.
  int MappableDescriptor();
  bool mapped() const { return descriptor_ >= 0; }
  bool dirty() const { return !dirty_.empty() || !sizes_.empty(); }

  // The file after a power cut.
  Content Cut(CutPlan* plan) const;
  // Copies of a file: all of its state (the machine runs on), or as freshly read from the disk.
  std::shared_ptr<Inode> Clone() const;
  void SetDurable(Content content);
  // Changes bytes on the disk and in the cache behind everybody's back.
  void Corrupt(uint64_t offset, std::string_view bytes);

  // --- folders ---
  std::map<std::string, uint64_t> entries;          // as seen
  std::map<std::string, uint64_t> durable_entries;  // as synced

 private:
  struct Version {
    uint64_t change = 0;
    PageRef page;
  };
  struct SizeChange {
    uint64_t change = 0;
    uint64_t before = 0;
    uint64_t after = 0;
  };
  void NoteVersions(uint64_t change, uint64_t offset, uint64_t length);
  void NoteSize(uint64_t change, uint64_t before);
  PageRef CutPage(size_t index, CutPlan* plan, uint64_t from, uint64_t to) const;

  const uint64_t id_;
  const bool is_dir_;
  Content durable_;
  Content current_;
  std::map<size_t, std::vector<Version>> dirty_;  // by page, oldest version first
  std::vector<SizeChange> sizes_;
  int descriptor_ = -1;
};

// A change of names: each part sets a name of a folder to an inode (0: removes it); all parts count
// or none.
struct NameChange {
  struct Part {
    uint64_t folder = 0;
    std::string name;
    uint64_t inode = 0;
  };
  uint64_t change = 0;
  std::vector<Part> parts;
};

class Disk {
 public:
  Disk();

  std::map<uint64_t, std::shared_ptr<Inode>>
      inodes;  // unlinked ones too, as long as a cut may bring them back
  std::vector<NameChange> unsynced_names;
  uint64_t last_change = 0;
  uint64_t last_inode = 1;
  uint64_t capacity = UINT64_MAX;

  static constexpr uint64_t kRoot = 1;

  std::shared_ptr<Inode> NewInode(bool is_dir);
  void Apply(NameChange change);
  void SyncFolder(uint64_t folder);
  // Of files that have a name or are open.
  uint64_t UsedBytes() const;
  // Forgets inodes that no name, seen or durable, can reach and nobody holds.
  void DropUnreachable();

  Disk PowerCut(uint64_t seed) const;
  Disk KillProcess() const;

 private:
  std::set<uint64_t> Reachable() const;
};

}  // namespace hotkv::sim
