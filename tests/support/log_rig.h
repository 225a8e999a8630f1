// What tests of the epoch log share: a catalog in memory, a log writer on a simulated disk that is
// driven by hand, a model of everything committed, and reading a log back.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/log.h"
#include "engine/base/sim_env.h"
#include "engine/tx/effect.h"
#include "engine/tx/epoch.h"
#include "persistence/log/log_catalog.h"
#include "persistence/log/log_reader.h"
#include "persistence/log/log_writer.h"

namespace hotkv {

class FakeLogCatalog : public LogCatalog {
 public:
  using Entries = std::map<uint64_t, LogSegmentEntry>;
  FakeLogCatalog() = default;
  explicit FakeLogCatalog(Entries entries) : entries_(std::move(entries)) {}

  Result<std::vector<LogSegmentEntry>> Segments() override {
    std::lock_guard lock(mutex_);
    std::vector<LogSegmentEntry> list;
    for (const auto& [number, entry] : entries_) list.push_back(entry);
    return list;
  }

  Status Commit(const LogCatalogChange& change) override {
    {
      std::lock_guard lock(mutex_);
      if (failures > 0) {
        --failures;
        return Status(Code::kIoError, "the catalog is not there");
      }
      for (const auto& entry : change.put) {
        entries_[entry.number] = entry;
        if (entry.ended) durable_epoch_ = std::max(durable_epoch_, entry.last_epoch);
      }
      for (const uint64_t number : change.remove) entries_.erase(number);
    }
    if (on_commit) on_commit();
    return Status::Ok();
  }

  Entries entries() const {
    std::lock_guard lock(mutex_);
    return entries_;
  }
  // No change becomes durable while f runs: what it takes an image of fits what it is given.
  template <typename F>
  void Freeze(F f) {
    std::lock_guard lock(mutex_);
    f(entries_, durable_epoch_);
  }
  uint64_t durable_epoch() const {
    std::lock_guard lock(mutex_);
    return durable_epoch_;
  }
  void SetDurableEpoch(uint64_t epoch) { durable_epoch_ = epoch; }

  int failures = 0;                 // so many commits fail
  std::function<void()> on_commit;  // after a change has become durable

 private:
  mutable std::mutex mutex_;
  Entries entries_;
  uint64_t durable_epoch_ = 0;
};

inline LogIdentity TestIdentity() { return {77, 4096, 0x1234567890abcdef}; }

// Appends an effect as a commit does; returns the epoch that it went to.
inline uint64_t CommitEffect(EpochClock* clock, unsigned worker, const Effect& effect,
                             unsigned group) {
  const uint64_t epoch = clock->Enter(worker);
  EffectBuffer& buffer = clock->Buffer(worker, epoch);
  std::string body;
  AppendVarint(&body, effect.lsn & kLsnCountMask);
  body.push_back(static_cast<char>(worker));
  EffectBuffer::RecordHeader header;
  if (AppendEffectTail(effect, &body)) {
    buffer.large.push_back(SharedBlockRef(SharedBlock::Copy(effect.bytes)));
    buffer.large_bytes += effect.bytes.size();
    header.large = static_cast<uint32_t>(buffer.large.size());
  }
  header.size = static_cast<uint32_t>(body.size());
  header.group = static_cast<uint16_t>(group);
  buffer.bytes.Append({reinterpret_cast<const char*>(&header), sizeof(header)});
  buffer.bytes.Append(body);
  clock->NoteAppended(worker, buffer.size_bytes());
  clock->Leave(worker);
  return epoch;
}

// Effects by epoch and group, as text.
using LogModel = std::map<uint64_t, std::map<unsigned, std::vector<std::string>>>;

inline std::string EffectText(const Effect& effect) {
  return std::string(effect.key) + "=" + std::string(effect.bytes);
}

struct LogContent {
  LogScanResult scan;
  LogModel effects;  // epochs without effects are left out
  std::vector<uint64_t> epochs;
};

inline LogScanOptions ScanOptionsFor(Env* env, const FakeLogCatalog& catalog) {
  LogScanOptions options;
  options.env = env;
  options.folder = "data/log";
  options.identity = TestIdentity();
  options.durable_epoch = catalog.durable_epoch();
  for (const auto& [number, entry] : catalog.entries()) {
    if (entry.state == SegmentState::kLive) options.segments.push_back(entry);
  }
  return options;
}

// Reads all of a log; a group that cannot be read makes it fail.
inline Result<LogContent> ReadLog(Env* env, const FakeLogCatalog& catalog) {
  LogContent content;
  LogReader reader(env, "data/log");
  const auto visit = [&](const LogBlockRef& block) -> Status {
    content.epochs.push_back(block.header.epoch);
    for (const GroupEntry& group : block.header.groups) {
      HOTKV_ASSIGN_OR_RETURN(const std::string bytes, reader.ReadGroup(GroupRefOf(block, group)));
      ByteReader records(bytes);
      Effect effect;
      while (!records.empty()) {
        if (!DecodeEffect(&records, block.header.epoch, &effect))
          return Status::Corruption("record");
        content.effects[block.header.epoch][group.group].push_back(EffectText(effect));
      }
    }
    return Status::Ok();
  };
  HOTKV_ASSIGN_OR_RETURN(content.scan, ScanLog(ScanOptionsFor(env, catalog), visit));
  return content;
}

// One run of a server, as far as the log is concerned: opens what the last one left, then writes.
class LogRig {
 public:
  static constexpr unsigned kWorkers = 2;

  // The model holds what earlier runs have committed; what the scan does not find is cut from it.
  LogRig(std::shared_ptr<SimEnv> env, FakeLogCatalog::Entries entries, uint64_t catalog_durable,
         LogModel model, uint64_t start)
      : env_(std::move(env)),
        catalog_(std::move(entries)),
        model_(std::move(model)),
        start_(start) {
    SetLogLevel(LogLevel::kNothing);  // failures are what most of these tests are about
    catalog_.SetDurableEpoch(catalog_durable);
    (void)env_->MakeDir("data").ok();
    (void)env_->SyncDir("").ok();
  }
  LogRig() : LogRig(std::make_shared<SimEnv>(), {}, 0, {}, 1) {}

  // Options that tests may change before Open.
  LogWriterOptions options = DefaultOptions();

  static LogWriterOptions DefaultOptions() {
    LogWriterOptions o;
    o.folder = "data/log";
    o.identity = TestIdentity();
    o.segment_bytes_min = 16 * 1024;
    o.segment_bytes_max = 64 * 1024;
    o.manual = true;
    return o;
  }

  // Scans, then starts the writer. The first epoch leaves a gap to all that any run has used.
  Status Open() {
    HOTKV_ASSIGN_OR_RETURN(found_, ReadLog(env_.get(), catalog_));
    const uint64_t used = model_.empty() ? 0 : model_.rbegin()->first;
    first_epoch_ = std::max({used, found_.scan.end.epoch, first_epoch_floor}) + 3;
    clock_ = std::make_unique<EpochClock>(kWorkers, first_epoch_);
    options.env = env_.get();
    options.clock = clock_.get();
    options.catalog = &catalog_;
    options.start = start_;
    options.end = found_.scan.end;
    options.durable_end = found_.scan.durable_end;
    options.unsynced = found_.scan.unsynced;
    options.uses = found_.scan.uses;
    options.wall_ms = [this] { return static_cast<uint64_t>(now_us / 1000); };
    HOTKV_ASSIGN_OR_RETURN(writer_, LogWriter::Start(options));
    model_.erase(model_.upper_bound(found_.scan.end.epoch), model_.end());
    return Status::Ok();
  }

  void Put(const std::string& key, const std::string& value, unsigned worker = 0) {
    const unsigned group = static_cast<unsigned>(std::hash<std::string>()(key) % kStripeGroups);
    Effect effect;
    effect.kind = EffectKind::kSetString;
    effect.key = key;
    effect.bytes = value;
    effect.lsn = ++count_;
    const uint64_t epoch = CommitEffect(clock_.get(), worker, effect, group);
    model_[epoch][group].push_back(EffectText(effect));
  }

  // A turn of the writer after some time.
  void Turn(int64_t advance_us = 10'000) {
    now_us += advance_us;
    writer_->Cycle(now_us);
  }
  // Turns, without time passing much, until the epoch is durable; false when it never is.
  bool Settle(int64_t advance_us = 1000, int turns = 20) {
    const uint64_t epoch = clock_->current();
    writer_->RequestSync(epoch);
    for (int i = 0; i < turns && clock_->durable() < epoch; ++i) Turn(advance_us);
    return clock_->durable() >= epoch;
  }

  SimEnv* env() { return env_.get(); }
  FakeLogCatalog& catalog() { return catalog_; }
  EpochClock& clock() { return *clock_; }
  LogWriter& writer() { return *writer_; }
  const LogContent& found() const { return found_; }
  const LogModel& model() const { return model_; }
  uint64_t start() const { return start_; }
  void Close() { writer_.reset(); }

  // The model up to an epoch.
  LogModel ModelUpTo(uint64_t epoch) const {
    LogModel part = model_;
    part.erase(part.upper_bound(epoch), part.end());
    return part;
  }

  int64_t now_us = 1'000'000'000;
  uint64_t first_epoch_floor = 0;

 private:
  std::shared_ptr<SimEnv> env_;
  FakeLogCatalog catalog_;
  LogModel model_;
  const uint64_t start_;
  LogContent found_;
  uint64_t first_epoch_ = 0;
  uint64_t count_ = 0;
  std::unique_ptr<EpochClock> clock_;
  std::unique_ptr<LogWriter> writer_;
};

// The next run, on an image of the disk.
inline std::unique_ptr<LogRig> NextRun(LogRig& last, std::unique_ptr<SimEnv> image) {
  auto rig =
      std::make_unique<LogRig>(std::shared_ptr<SimEnv>(std::move(image)), last.catalog().entries(),
                               last.catalog().durable_epoch(), last.model(), last.start() + 1);
  rig->now_us = last.now_us + 1;
  return rig;
}

}  // namespace hotkv
