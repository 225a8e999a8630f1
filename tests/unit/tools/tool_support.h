// Files and captured records for the tests of hotkv-tool.
//
// Thread rules: one thread.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tools/hotkv_tool/record.h"

namespace hotkv {

// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hotkv-tool-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, std::string_view bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }

 private:
  std::string path_;
};

inline std::string ReadFileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// A record with bytes of its own.
struct OwnedRecord {
  RecordKind kind = RecordKind::kCommand;
  uint32_t db = 0;
  std::string key;
  std::string value;
  int64_t expire_at_ms = 0;
  std::string id;
  std::string attr;
  std::vector<float> vector;
  IndexDefinition index;
  std::vector<std::string> args;
  bool operator==(const OwnedRecord&) const = default;

  static OwnedRecord Of(const Record& r) {
    return {r.kind,
            r.db,
            std::string(r.key),
            std::string(r.value),
            r.expire_at_ms,
            std::string(r.id),
            std::string(r.attr),
            {r.vector.begin(), r.vector.end()},
            r.index,
            {r.args.begin(), r.args.end()}};
  }
  Record View() const {
    Record r;
    r.kind = kind;
    r.db = db;
    r.key = key;
    r.value = value;
    r.expire_at_ms = expire_at_ms;
    r.id = id;
    r.attr = attr;
    r.vector = vector;
    r.index = index;
    return r;
  }
};

struct ReadOutcome {
  std::vector<OwnedRecord> records;
  std::vector<uint64_t> positions;
  Status status;
};

inline ReadOutcome ReadAll(RecordReader* reader) {
  ReadOutcome outcome;
  Record record;
  for (;;) {
    const Result<bool> more = reader->Next(&record);
    if (!more.ok()) {
      outcome.status = more.status();
      return outcome;
    }
    if (!*more) return outcome;
    outcome.records.push_back(OwnedRecord::Of(record));
    outcome.positions.push_back(reader->position());
  }
}

}  // namespace hotkv
