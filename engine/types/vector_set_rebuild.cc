#include "engine/types/vector_set_rebuild.h"

#include <algorithm>
#include <span>
#include <thread>

#include "engine/base/crash_point.h"
#include "engine/base/log.h"
#include "engine/commands/vset_common.h"

namespace hotkv {

namespace {

constexpr size_t kElementsTakenAtOnce = 512;
constexpr uint64_t kElementsLinkedAtOnce = 32;
// With no more changes than these outstanding, what is left is repeated under the lock.
constexpr size_t kChangesLeftMax = 16;
constexpr int kPercentTaken = 10;
constexpr int kPercentLinked = 95;

int Share(size_t done, size_t all, int percent) {
  return all == 0 ? percent : static_cast<int>(done * static_cast<size_t>(percent) / all);
}

}  // namespace

VectorSetRebuild::VectorSetRebuild(Engine* engine, ObjectRef<VectorSet> source,
                                   const RebuildOptions& options)
    : engine_(engine), source_(std::move(source)), options_(options) {}

VectorSetRebuild::~VectorSetRebuild() {
  engine_->RemoveTurnTask(this);
  journal_.reset();
  if (fresh_) DropUnlinked(*engine_, &fresh_);
  SetPercent(-1);
}

BackgroundJob::Progress VectorSetRebuild::Step() {
  const Phase before = phase_;
  switch (phase_) {
    case Phase::kBegin:
      status_ = Begin();
      break;
    case Phase::kTakeOver:
      status_ = TakeOver();
      break;
    case Phase::kLink:
      status_ = Link();
      break;
    case Phase::kCatchUp:
      status_ = CatchUp();
      break;
    case Phase::kPublish:
      status_ = Publish();
      break;
    case Phase::kExchange:
      status_ = AwaitExchange();
      break;
    case Phase::kDone:
      break;
  }
  if (!status_.ok()) {
    Log(LogLevel::kWarning, "Rebuilding an index failed: " + status_.ToString());
    phase_ = Phase::kDone;
  }
  if (phase_ == Phase::kDone) {
    SetPercent(-1);
    return BackgroundJob::Progress::kDone;
  }
  const bool waiting = before == Phase::kExchange && phase_ == Phase::kExchange;
  return waiting ? BackgroundJob::Progress::kWaiting : BackgroundJob::Progress::kMore;
}

Status VectorSetRebuild::Begin() {
  journal_ = std::make_unique<VectorSet::Journal>(source_);  // before anything is read
  VectorSetDefinition definition = source_->definition();
  definition.index = options_.index;
  definition.fields = source_->index().fields();
  HOTKV_ASSIGN_OR_RETURN(VectorSet * made, MakeVectorSet(*engine_, definition));
  fresh_ = ObjectRef<VectorSet>::Adopt(made);
  order_ = source_->index().LocalityOrder();
  phase_ = Phase::kTakeOver;
  return Status::Ok();
}

Status VectorSetRebuild::TakeOver() {
  const size_t count = std::min(kElementsTakenAtOnce, order_.size() - taken_);
  const std::span<const uint32_t> slots(order_.data() + taken_, count);
  HOTKV_RETURN_IF_ERROR(fresh_->index().AdoptElements(source_->index(), slots,
                                                      static_cast<uint32_t>(taken_)));
  taken_ += count;
  SetPercent(Share(taken_, order_.size(), kPercentTaken));
  if (taken_ != order_.size()) return Status::Ok();
  fresh_->index().ShufflePending(fresh_->id());
  phase_ = Phase::kLink;
  return Status::Ok();
}

Status VectorSetRebuild::Link() {
  VectorIndex& index = fresh_->index();
  uint64_t left = 0;
  if (options_.threads > 1) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < options_.threads; ++i) {
      threads.emplace_back([&index] { index.LinkPending(UINT64_MAX); });
    }
    for (std::thread& thread : threads) thread.join();
    left = index.LinkPending(0);
  } else {
    left = index.LinkPending(kElementsLinkedAtOnce);
  }
  const size_t linked = order_.size() - std::min<size_t>(left, order_.size());
  SetPercent(kPercentTaken + Share(linked, order_.size(), kPercentLinked - kPercentTaken));
  if (left == 0) phase_ = Phase::kCatchUp;
  return Status::Ok();
}

Result<size_t> VectorSetRebuild::RepeatJournal() {
  const std::vector<std::string> changes = journal_->Take();
  for (const std::string& change : changes) {
    HOTKV_ASSIGN_OR_RETURN(std::string repeated, fresh_->Repeat(change));
    if (repeated.empty()) continue;
    fresh_->NoteChange(repeated);
    if (published_) late_.push_back(std::move(repeated));
  }
  return changes.size();
}

Status VectorSetRebuild::CatchUp() {
  HOTKV_ASSIGN_OR_RETURN(const size_t repeated, RepeatJournal());
  if (repeated > kChangesLeftMax) return Status::Ok();
  if (published_) {
    exchange_.store(Exchange::kWanted, std::memory_order_relaxed);
    phase_ = Phase::kExchange;
    engine_->AddTurnTask(this);
    return Status::Ok();
  }
  phase_ = Phase::kPublish;
  return Status::Ok();
}

Status VectorSetRebuild::Publish() {
  published_ = true;  // what is repeated from here on may not be in the generation
  if (ObjectHost* host = engine_->object_host_or_null()) {
    HOTKV_ASSIGN_OR_RETURN(const uint64_t generation, host->PlanGeneration(fresh_->id()));
    HOTKV_RETURN_IF_ERROR(fresh_->Checkpoint(generation));
    HOTKV_CRASH_POINT("rebuild.generation_written");
    HOTKV_RETURN_IF_ERROR(host->PublishGeneration(fresh_->id(), generation));
    fresh_->ReleaseSlots(generation);
  }
  phase_ = Phase::kCatchUp;
  return Status::Ok();
}

Status VectorSetRebuild::AwaitExchange() {
  switch (exchange_.load(std::memory_order_acquire)) {
    case Exchange::kDone:
      phase_ = Phase::kDone;
      return status_;
    case Exchange::kRefused:  // nothing can be written just now
      phase_ = Phase::kCatchUp;
      return Status::Ok();
    case Exchange::kNone:
    case Exchange::kWanted:
      break;
  }
  return Status::Ok();
}

bool VectorSetRebuild::Step(WorkerState& worker) {
  if (engine_->disk_denied.load(std::memory_order_relaxed)) {
    exchange_.store(Exchange::kRefused, std::memory_order_release);
    return false;
  }
  Keyspace& keyspace = engine_->keyspace();
  for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
    if (TryStripe(worker, keyspace.stripe(i))) break;  // else the key has gone
  }
  exchange_.store(Exchange::kDone, std::memory_order_release);
  return false;
}

// True when the key was in this stripe.
bool VectorSetRebuild::TryStripe(WorkerState& worker, Stripe& stripe) {
  Keyspace& keyspace = engine_->keyspace();
  Txn& txn = worker.txn;
  txn.Begin(worker.now_ms);
  txn.LockStripe(stripe);
  bool found = false;
  for (uint32_t db = 0; db < keyspace.databases() && !found; ++db) {
    Table* table = stripe.table(db);
    if (table == nullptr || table->sums().objects == 0) continue;
    const Entry* entry = nullptr;
    for (uint32_t c = 0; c < table->chunk_count() && entry == nullptr; ++c) {
      table->ForEachInChunk(c, [&](Entry** slot) {
        const bool is_object = (*slot)->type() == ValueType::kVectorSet;
        if (is_object && (*slot)->object() == source_.get()) entry = *slot;
      });
    }
    if (entry == nullptr) continue;
    found = true;
    if (!entry->ExpiredAt(txn.now_ms())) Link(&txn, db, *entry);
  }
  txn.UnlockStripe(stripe);
  txn.CommitAndUnlock();
  return found;
}

void VectorSetRebuild::Link(Txn* txn, uint32_t db, const Entry& entry) {
  const auto repeated = RepeatJournal();
  if (!repeated.ok()) {
    Log(LogLevel::kWarning, "Rebuilding an index failed: " + repeated.status().ToString());
    return;
  }
  const std::string name(entry.key());  // the entry goes with the link
  const int64_t expire_at_ms = entry.expire_at_ms();
  const KeyRef key = engine_->keyspace().MakeRef(name);
  std::string definition;
  fresh_->EncodeDefinition(&definition);
  const uint64_t id = fresh_->id();
  txn->LinkNewObject(db, key, fresh_.Release(), definition);
  for (const std::string& change : late_) txn->RecordObjectChange(key, id, change);
  if (expire_at_ms != 0) txn->SetExpire(db, key, expire_at_ms);
}

}  // namespace hotkv
