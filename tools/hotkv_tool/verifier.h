// Verifier: everything in a data directory that can be checked without changing it - checksums of catalog, log blocks and
// snapshot sections, the content of each, vector index generations, files against catalog - and then a load as the server
// would do it, group by group.
//
// What the server would refuse to start with is a problem, with the same text and offset as the server's. A torn tail is
// a note: the server cuts it by itself.
//
// Thread rules: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/tx/effect.h"
#include "persistence/log/log_reader.h"
#include "persistence/snapshot/snapshot_file.h"
#include "tools/hotkv_tool/offline_directory.h"
#include "tools/hotkv_tool/tool_report.h"

namespace hotkv {

struct VerifyCounts {
  uint64_t snapshots = 0;
  uint64_t sections = 0;
  uint64_t blocks = 0;
  uint64_t effects = 0;
  uint64_t generations = 0;
  uint64_t keys = 0;  // of the load
};

class Verifier {
 public:
  Verifier(StoredDirectory* directory, Problems* problems) : directory_(directory), problems_(problems) {}

  void Run();

  const VerifyCounts& counts() const { return counts_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void CheckFiles();
  void CheckFolder(const std::string& folder, const std::set<std::string>& known);
  void CheckSnapshot(uint64_t number);
  Status CheckIdentity(const SnapshotReader& reader, uint64_t number) const;
  Status CheckSection(const SnapshotReader& reader, const SectionEntry& section);
  Status CheckStripe(const SectionEntry& section, std::string_view body);
  Status CheckObjectSection(const SectionEntry& section, std::string_view body);
  Status CheckEffectRuns(std::string_view body);
  Status CheckRecords(uint64_t epoch, unsigned group, std::string_view records);
  Status CheckEffectPlace(const Effect& effect, unsigned group) const;
  void CheckLog();
  void CheckBlock(LogReader* reader, const LogBlockRef& block);
  void CheckOpenLinks();
  void CheckGenerations();
  void CheckLoad();
  uint32_t StripeOf(std::string_view key) const;

  StoredDirectory* const directory_;
  Problems* const problems_;
  VerifyCounts counts_;
  std::vector<std::string> notes_;
  // Links to objects without a section, with where they stand. A stripe's section may be older than the
  // object's end or younger than its creation: then the effects tell of it.
  std::map<uint64_t, std::vector<std::string>> open_links_;
  std::set<uint64_t> objects_in_effects_;
  // Of the snapshot that is being checked.
  std::string snapshot_path_;
  std::set<uint64_t> section_objects_;
  uint64_t section_keys_ = 0;
};

}  // namespace hotkv
