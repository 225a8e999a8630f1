#include "engine/commands/vset_copy.h"

#include "engine/tx/engine.h"

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

// The error, or "".
std::string Make(CommandContext& ctx, VectorSetRef source, PreparedCopy* prepared) {
  prepared->source = source;
  prepared->journal = std::make_unique<VectorSet::Journal>(source);  // before the copy reads anything
  auto made = MakeCopyOfSet(ctx.engine, *source);
  if (!made.ok()) return ErrorText(made.status());
  prepared->copy = VectorSetRef::Adopt(*made);
  return "";
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
  auto prepared = std::make_unique<PreparedCopy>(&ctx.engine);
  const std::string error = Make(ctx, std::move(fetched.set), prepared.get());
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
    error = Make(ctx, std::move(source), &prepared);
  }
  std::vector<std::string> changes;
  if (error.empty()) {
    changes = prepared.journal->Take();
    const Status status = CatchUp(changes, prepared.copy.get());
    if (!status.ok()) error = ErrorText(status);
  }
  if (!error.empty()) {
    ctx.reply.Error(error);
    return;
  }
  const uint64_t id = prepared.copy->id();
  std::string definition;
  prepared.copy->EncodeDefinition(&definition);
  ctx.txn.LinkNewObject(to_db, ctx.key(1), prepared.copy.Release(), definition);
  for (const std::string& change : changes) ctx.txn.RecordObjectChange(ctx.key(1), id, change);
  if (expire_at_ms != 0) ctx.txn.SetExpire(to_db, ctx.key(1), expire_at_ms);
  ctx.reply.Integer(1);
}

}  // namespace hotkv
