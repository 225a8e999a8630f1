// VectorSetRebuild: builds a vector set anew, with other graph settings or another element type, while it is used: a new
// object takes the elements over row by row, in an order that puts neighbours side by side, links them at random, repeats
// what was changed meanwhile, and, with a generation on disk that is live, takes the old one's place under its key.
//
// Steps are bounded, but for the checkpoint and the order. The exchange is a worker's: it holds the stripe's lock, repeats
// the last changes, and links. A key that was deleted meanwhile ends the rebuild; one that was renamed is found.
//
// Thread rules: as a BackgroundJob; Step of the TurnTask by a worker.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/tx/engine.h"
#include "engine/types/background_job.h"
#include "engine/types/vector_set.h"

namespace hotkv {

struct RebuildOptions {
  IndexOptions index;
  unsigned threads = 1;  // that link
};

class VectorSetRebuild : public BackgroundJob, private TurnTask {
 public:
  // The caller has taken source->rebuild_percent from -1 to 0.
  VectorSetRebuild(Engine* engine, ObjectRef<VectorSet> source, const RebuildOptions& options);
  ~VectorSetRebuild() override;

  BackgroundJob::Progress Step() override;
  // What went wrong, once done; OK also where the key had gone.
  const Status& status() const { return status_; }

 private:
  enum class Phase : uint8_t { kBegin, kTakeOver, kLink, kCatchUp, kPublish, kExchange, kDone };
  enum class Exchange : uint8_t { kNone, kWanted, kDone, kRefused };

  Status Begin();
  Status TakeOver();
  Status Link();
  Status CatchUp();
  Status Publish();
  Status AwaitExchange();
  // Repeats what the journal has; how many changes these were.
  Result<size_t> RepeatJournal();
  bool Step(WorkerState& worker) override;
  bool TryStripe(WorkerState& worker, Stripe& stripe);
  void Link(Txn* txn, uint32_t db, const Entry& entry);
  void SetPercent(int percent) { source_->rebuild_percent.store(percent, std::memory_order_relaxed); }

  Engine* const engine_;
  const ObjectRef<VectorSet> source_;
  const RebuildOptions options_;
  Phase phase_ = Phase::kBegin;
  Status status_;
  std::unique_ptr<VectorSet::Journal> journal_;
  ObjectRef<VectorSet> fresh_;  // until it is linked
  std::vector<uint32_t> order_;
  size_t taken_ = 0;
  bool published_ = false;
  std::vector<std::string> late_;  // changes since the generation was begun
  std::atomic<Exchange> exchange_{Exchange::kNone};  // release by the worker, acquire here
};

}  // namespace hotkv
