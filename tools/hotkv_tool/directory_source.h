// DirectorySource: the data of a stopped server's directory, as the server would load it, without changing it. Stripes are
// loaded and given up group by group (a 64th of the keys at a time), vector indexes are mapped: memory does not grow with
// the directory.
//
// Keys past their time are left out.
// Thread rules: one thread. Errors: those of Recovery.
#pragma once

#include <memory>
#include <string>

#include "tools/hotkv_tool/export_filter.h"
#include "tools/hotkv_tool/offline_directory.h"

namespace hotkv {

class VectorSet;

// Loads the stripes of one group after the other into the engine, calls fn for each of them, and empties them again. The
// objects of all groups are loaded before.
Status ForEachLoadedStripe(Recovery* recovery, Engine* engine, const std::function<Status(Stripe&)>& fn);
// Databases of the stripe that may hold keys: 0 up to here.
uint32_t DatabasesOf(const Keyspace& keyspace, const Stripe& stripe);

// Frees a stripe's keys.
void EmptyStripe(Keyspace& keyspace, Stripe& stripe);

// Records of keys that are loaded into an engine.
class EngineSource : public RecordSource {
 protected:
  struct Run {
    const ExportFilter& filter;
    Problems* problems;
    const Put& put;
    int64_t now_ms = 0;
  };
  Status ExportStripe(const Run& run, Keyspace& keyspace, Stripe& stripe);

 private:
  Status ExportEntry(const Run& run, uint32_t db, const Entry& entry);
  Status ExportVectors(const Run& run, Record record, const VectorSet& set);
};

class DirectorySource : public EngineSource {
 public:
  static Result<std::unique_ptr<DirectorySource>> Open(const std::string& path);

  Status ForEach(const ExportFilter& filter, Problems* problems, const Put& put) override;
  uint64_t done() const override { return stripes_done_; }
  uint64_t total() const override { return stripes_total_; }

 private:
  explicit DirectorySource(std::unique_ptr<StoredDirectory> directory)
      : directory_(std::move(directory)),
        stripes_total_(uint64_t{1} << directory_->state().stripe_bits) {}

  const std::unique_ptr<StoredDirectory> directory_;
  uint64_t stripes_done_ = 0;
  uint64_t stripes_total_ = 0;
};

}  // namespace hotkv
