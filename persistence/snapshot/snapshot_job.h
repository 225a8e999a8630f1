// SnapshotJob: one snapshot in the making, while writes go on.
//
// Workers encode stripes between their turns (it is a TurnTask): a stripe's entries under its lock,
// with the cut max(its lsn, first lsn of the current epoch), so that its section plus its effects
// after the cut are the stripe at any later epoch. The directory's thread calls Advance again and
// again: it writes generations of objects, compresses and writes what the workers encoded, waits
// for the log, and makes the snapshot live. Advance never blocks on workers or log.
//
// Without a log the effects between first and last cut go into the file: then it is the moment at
// the end of its last epoch by itself.
//
// Order of events, each durable before the next: planned - log durable past the last section's
// epoch - file written and synced, folder synced - read back and checked - live, with the
// generations it refers to - what was before is dropped (by the caller). Once live it is never
// taken back: from then on the log may count on it.
//
// Thread rules: Step by workers; everything else by the directory's thread.
// Errors: of Advance. The job is then over; Cancel removes what it left. kCancelled: the log that
// it relied on was switched off; another job may be begun at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/store/stripe_codec.h"
#include "engine/tx/engine.h"
#include "persistence/catalog/catalog.h"
#include "persistence/object_folders.h"
#include "persistence/snapshot/snapshot_file.h"

namespace hotkv {

// Effects of one epoch, by stripe group.
struct TappedEpoch {
  uint64_t epoch = 0;
  std::vector<std::pair<unsigned, std::string>> groups;
};

// What a snapshot needs from the log, or from the epochs where there is none. The directory's
// thread calls it.
class SnapshotLog {
 public:
  virtual ~SnapshotLog() = default;
  // Another number each time that the log is switched on; 0 while it is off: a snapshot then keeps
  // the effects itself.
  virtual uint64_t era() const = 0;
  // All effects of this epoch (the current one) and later ones are logged or tapped. 0: not yet.
  virtual uint64_t CompleteFrom() = 0;
  // Asks for the sync of everything up to the epoch. Once that is durable: the epoch of a durable
  // block at or past it; until then, and without a log, 0.
  virtual uint64_t DurableBlockPast(uint64_t epoch) = 0;
  // From now on effects are kept for TakeTapped, until StopTap.
  virtual void StartTap() = 0;
  virtual void StopTap() = 0;
  // Epochs closed since the last call, in order; those without effects are not among them.
  virtual std::vector<TappedEpoch> TakeTapped() = 0;
  // Asks for the close of the epoch; returns whether all its effects can be taken.
  virtual bool TappedPast(uint64_t epoch) = 0;
};

struct SnapshotJobOptions {
  Env* env = nullptr;
  std::string folder;  // .../snapshots
  Catalog* catalog = nullptr;
  Engine* engine = nullptr;
  ObjectFolders* objects = nullptr;
  SnapshotLog* log = nullptr;
  std::function<void()> wake_workers;  // there is something to encode; may be empty
};

class SnapshotJob : public TurnTask {
 public:
  explicit SnapshotJob(const SnapshotJobOptions& options);
  ~SnapshotJob() override;

  enum class Progress : uint8_t { kWorked, kWaits, kDone };
  // A bounded piece of work (one object's generation is the largest).
  Result<Progress> Advance();
  // After an error, or to give up: nothing of it stays but what the catalog calls planned or
  // dropped where it fails.
  void Cancel();

  bool Step(WorkerState& worker) override;
  // Encodes one stripe. False: there is none to encode just now.
  bool EncodeNext(WorkerState& worker);
  // The calling worker encodes what there is to encode now. False when there was nothing.
  bool Help(WorkerState& worker);
  // Advance has something to do, or until the time is over.
  void WaitForImages(int64_t timeout_us);

  uint64_t number() const { return number_; }
  // Stripes are being encoded.
  bool collecting() const { return phase_ == Phase::kStripes; }
  uint64_t from_epoch() const { return from_epoch_; }
  // Of the keyspace at the first section: what the snapshot covers for "changes since the last
  // save".
  uint64_t changes_at_start() const { return changes_at_start_; }
  uint64_t stripes_done() const { return stripes_done_.load(std::memory_order_relaxed); }
  uint64_t bytes_written() const { return bytes_.load(std::memory_order_relaxed); }

  static constexpr size_t kQueueBytesMax = size_t{32} << 20;

 private:
  struct Encoded {
    uint32_t stripe = 0;
    uint64_t cut = 0;
    StripeImage image;
  };
  enum class Phase : uint8_t { kBegin, kWait, kObjects, kStripes, kLog, kFinish, kCheck, kDone };

  Status Begin();
  Status BeginSections();
  Status AddNextObject();
  Status RefreshGeneration(DurableObject* object, NewGeneration* fresh);
  Result<bool> WriteImages();
  Status WriteTapped(uint64_t up_to_epoch);
  Result<bool> LogIsPast();
  Status Finish();
  Status Publish();
  Status Check();
  void RaiseLastEpoch(uint64_t epoch) { last_epoch_ = epoch > last_epoch_ ? epoch : last_epoch_; }
  void ReleaseObjects();
  std::string path() const;

  const SnapshotJobOptions options_;
  const uint64_t era_;
  const bool with_log_;
  Phase phase_ = Phase::kBegin;
  uint64_t number_ = 0;
  uint64_t from_epoch_ = 0;
  uint64_t last_epoch_ = 0;
  uint64_t log_epoch_ = 0;  // of a durable block, when the log was past last_epoch_
  uint64_t changes_at_start_ = 0;
  int64_t created_us_ = 0;
  bool tapping_ = false;
  std::unique_ptr<SnapshotWriter> writer_;
  std::vector<ObjectRef<Object>> objects_;
  size_t next_object_ = 0;
  std::vector<NewGeneration> generations_;
  std::vector<GenerationRef> refs_;
  std::vector<std::pair<GenerationRef, uint64_t>>
      moved_from_;  // unchanged generations and their later `from`
  uint32_t written_stripes_ = 0;
  std::atomic<uint64_t> stripes_done_{0};
  std::atomic<uint64_t> bytes_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::deque<Encoded> queue_;
  size_t queue_bytes_ = 0;
  uint32_t next_stripe_ = 0;
  bool registered_ = false;  // with the engine, as a turn task
  bool open_ = false;        // sections may be taken: effects are kept from here on
};

}  // namespace hotkv
