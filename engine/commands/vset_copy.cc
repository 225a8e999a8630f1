#include "engine/commands/vset_copy.h"

#include <atomic>
#include <utility>

#include "engine/tx/engine.h"
#include "engine/types/background_job.h"

namespace hotkv {

namespace {

class PreparedCopy : public PreparedState {
 public:
  explicit PreparedCopy(Engine* engine) : engine_(engine) {}
  ~PreparedCopy() override { Drop(); }
  void Drop() {
    if (copy) DropUnlinked(*engine_, &copy);
  }
  VectorSetRef source;
  std::unique_ptr<VectorSet::Journal> journal;
  VectorSetRef copy;  // until it is linked

 private:
  Engine* const engine_;
};

// A copy of at most so many slots is made at once, where there are no files.
constexpr uint64_t kCopiedAtOnceMax = 256;

// The error, or "".
std::string Make(Engine& engine, VectorSetRef source, PreparedCopy* prepared) {
  prepared->source = source;
  prepared->journal = std::make_unique<VectorSet::Journal>(source);  // before the copy reads anything
  auto made = MakeCopyOfSet(engine, *source);
  if (!made.ok()) return ErrorText(made.status());
  prepared->copy = VectorSetRef::Adopt(*made);
  return "";
}

// Shared by the job and the client that waits for it: either may go first.
struct CopyUnderWay {
  VectorSetRef source;  // constant
  std::atomic<bool> wanted{true};  // relaxed: a hint for the job
  std::unique_ptr<PreparedCopy> prepared;  // the job's until it is done
  std::string error;                       // as above
  std::atomic<bool> done{false};           // release by the job, acquire by the client
};

class PendingCopy : public PreparedState {
 public:
  explicit PendingCopy(std::shared_ptr<CopyUnderWay> copy) : copy_(std::move(copy)) {}
  ~PendingCopy() override { copy_->wanted.store(false, std::memory_order_relaxed); }
  CopyUnderWay& copy() { return *copy_; }

 private:
  const std::shared_ptr<CopyUnderWay> copy_;
};

class CopyJob : public BackgroundJob {
 public:
  CopyJob(Engine* engine, std::shared_ptr<CopyUnderWay> copy)
      : engine_(engine), copy_(std::move(copy)) {}
  ~CopyJob() override {
    if (!done_) Finish("ERR the copy was given up");
  }
  Progress Step() override {
    if (copy_->wanted.load(std::memory_order_relaxed)) {
      Finish(Make(*engine_, copy_->source, copy_->prepared.get()));
    }
    return Progress::kDone;
  }

 private:
  void Finish(std::string error) {
    copy_->error = std::move(error);
    done_ = true;
    copy_->done.store(true, std::memory_order_release);
  }

  Engine* const engine_;
  const std::shared_ptr<CopyUnderWay> copy_;
  bool done_ = false;
};

// Whether to make the copy on the upkeep thread, with the client waiting.
bool TakesLong(const CommandContext& ctx, const VectorSet& source) {
  if (ctx.client.in_exec || ctx.engine.background_jobs_or_null() == nullptr) return false;
  return ctx.engine.object_host_or_null() != nullptr ||
         source.index().Info().slots > kCopiedAtOnceMax;
}

void BeginCopy(CommandContext& ctx, VectorSetRef source) {
  auto copy = std::make_shared<CopyUnderWay>();
  copy->source = std::move(source);
  copy->prepared = std::make_unique<PreparedCopy>(&ctx.engine);
  ctx.client.pending = std::make_unique<PendingCopy>(copy);
  ctx.engine.background_jobs_or_null()->Add(
      std::make_unique<CopyJob>(&ctx.engine, std::move(copy)));
  ctx.retry = true;
}

Result<std::unique_ptr<VectorIndex>> CopyIndex(ObjectHost* host, const ObjectPlace& place,
                                               VectorSet& source) {
  HOTKV_ASSIGN_OR_RETURN(const uint64_t generation, host->PlanGeneration(place.id));
  HOTKV_RETURN_IF_ERROR(source.index().CopyTo(place.folder, generation));
  HOTKV_RETURN_IF_ERROR(host->PublishGeneration(place.id, generation));
  HOTKV_ASSIGN_OR_RETURN(auto index,
                         VectorIndex::Open(place.env_or_null, place.folder, generation));
  index->ReleaseSlots(generation);  // nobody has an older one
  return index;
}

// What came while the copy was made goes into it, and its bytes with the link.
Status CatchUp(const std::vector<std::string>& changes, VectorSet* copy) {
  for (const std::string& change : changes) HOTKV_RETURN_IF_ERROR(copy->ApplyChange(change));
  return Status::Ok();
}

}  // namespace

Result<VectorSet*> MakeCopyOfSet(Engine& engine, VectorSet& source) {
  ObjectPlace place;
  place.id = engine.objects().NewId();
  ObjectHost* host = engine.object_host_or_null();
  Result<std::unique_ptr<VectorIndex>> index = Status::Internal("no copy yet");
  if (host == nullptr) {
    index = source.index().CopyInMemory();
  } else {
    HOTKV_ASSIGN_OR_RETURN(place.folder, host->MakeFolder(place.id, ValueType::kVectorSet));
    place.env_or_null = host->env();
    index = CopyIndex(host, place, source);
    if (!index.ok()) host->ForgetFolder(place.id);
  }
  HOTKV_RETURN_IF_ERROR(index.status());
  return new VectorSet(place.id, source.definition(), std::move(index).value());
}

void PrepareCopyOfSet(CommandContext& ctx) {
  FetchedVectorSet fetched = FetchVectorSet(ctx);
  if (!fetched.set) return;
  if (ctx.client.pending != nullptr) {
    // Only this command leaves anything pending.
    CopyUnderWay& copy = static_cast<PendingCopy&>(*ctx.client.pending).copy();
    if (copy.source.get() == fetched.set.get()) {
      ctx.retry = !copy.done.load(std::memory_order_acquire);
      if (ctx.retry) return;
      if (!copy.error.empty()) return FinishWithError(ctx, copy.error);
      ctx.prepared = std::move(copy.prepared);
      return;
    }
    ctx.client.pending.reset();  // the key has been made anew: its copy is of no use
  }
  if (TakesLong(ctx, *fetched.set)) return BeginCopy(ctx, std::move(fetched.set));
  auto prepared = std::make_unique<PreparedCopy>(&ctx.engine);
  const std::string error = Make(ctx.engine, std::move(fetched.set), prepared.get());
  if (!error.empty()) return FinishWithError(ctx, error);
  ctx.prepared = std::move(prepared);
}

void CopySet(CommandContext& ctx, uint32_t to_db) {
  const Entry* entry = ctx.txn.Peek(ctx.db(), ctx.key(0));
  VectorSetRef source = VectorSetOf(entry);
  const int64_t expire_at_ms = entry->expire_at_ms();
  if (ctx.prepared == nullptr) ctx.prepared = std::make_unique<PreparedCopy>(&ctx.engine);
  auto& prepared = static_cast<PreparedCopy&>(*ctx.prepared);
  std::string error;
  if (prepared.source.get() != source.get()) {
    // The key has been made, or made anew, since the prepare step.
    prepared.Drop();
    error = Make(ctx.engine, std::move(source), &prepared);
  }
  std::vector<std::string> changes;
  if (error.empty()) {
    changes = prepared.journal->Take();
    const Status status = CatchUp(changes, prepared.copy.get());
    if (!status.ok()) error = ErrorText(status);
  }
  if (!error.empty()) return AnswerError(ctx, error);
  const uint64_t id = prepared.copy->id();
  std::string definition;
  prepared.copy->EncodeDefinition(&definition);
  ctx.txn.LinkNewObject(to_db, ctx.key(1), prepared.copy.Release(), definition);
  for (const std::string& change : changes) ctx.txn.RecordObjectChange(ctx.key(1), id, change);
  if (expire_at_ms != 0) ctx.txn.SetExpire(to_db, ctx.key(1), expire_at_ms);
  ctx.reply.Integer(1);
}

}  // namespace hotkv
