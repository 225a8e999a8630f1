#include "engine/commands/vset_common.h"

#include <charconv>

#include "engine/base/check.h"
#include "engine/base/number.h"
#include "engine/commands/expire_util.h"
#include "engine/commands/vector_args.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {
constexpr std::string_view kDiskErrorText = "MISCONF Errors writing to an index file: ";
}  // namespace

VectorSetRef VectorSetOf(const Entry* entry) {
  if (entry == nullptr || entry->type() != ValueType::kVectorSet) return {};
  return VectorSetRef::Share(static_cast<VectorSet*>(entry->object()));
}

FetchedVectorSet FetchVectorSet(CommandContext& ctx) {
  const bool locked = ctx.client.in_exec;
  Stripe& stripe = ctx.engine.keyspace().stripe(ctx.key().stripe);
  if (!locked) ctx.txn.LockStripe(stripe);
  const Entry* entry = ctx.Find();
  FetchedVectorSet fetched;
  fetched.set = VectorSetOf(entry);
  fetched.wrong_type = entry != nullptr && !fetched.set;
  if (!locked) ctx.txn.UnlockStripe(stripe);
  return fetched;
}

VectorSetRef IndexOf(CommandContext& ctx) {
  const Entry* entry = ctx.Find();
  VectorSetRef set = VectorSetOf(entry);
  if (!set) entry != nullptr ? ctx.WrongType() : ctx.reply.Error(kNoIndex);
  return set;
}

VectorSetRef FetchIndex(CommandContext& ctx) {
  FetchedVectorSet fetched = FetchVectorSet(ctx);
  if (fetched.set) return std::move(fetched.set);
  ctx.finished = true;
  fetched.wrong_type ? ctx.WrongType() : ctx.reply.Error(kNoIndex);
  return {};
}

VectorSetRef IndexForLookup(CommandContext& ctx) {
  VectorSetRef set = FetchIndex(ctx);
  ctx.finished = true;
  return set;
}

void TouchKeysStripe(CommandContext& ctx) {
  if (ctx.client.in_exec) return;
  Stripe& stripe = ctx.engine.keyspace().stripe(ctx.key().stripe);
  ctx.txn.LockStripe(stripe);
  ctx.txn.UnlockStripe(stripe);
}

Result<VectorSet*> MakeVectorSet(Engine& engine, const VectorSetDefinition& definition) {
  ObjectPlace place;
  place.id = engine.objects().NewId();
  if (ObjectHost* host = engine.object_host_or_null()) {
    HOTKV_ASSIGN_OR_RETURN(place.folder, host->MakeFolder(place.id, ValueType::kVectorSet));
    place.env_or_null = host->env();
    auto made = VectorSet::Create(place, definition);
    if (!made.ok()) host->ForgetFolder(place.id);
    return made;
  }
  return VectorSet::Create(place, definition);
}

void DropUnlinked(Engine& engine, VectorSetRef* set) {
  const uint64_t id = (*set)->id();
  *set = VectorSetRef();
  if (ObjectHost* host = engine.object_host_or_null()) host->ForgetFolder(id);
}

void LinkVectorSet(CommandContext& ctx, VectorSetRef set) {
  std::string definition;
  set->EncodeDefinition(&definition);
  ctx.txn.LinkNewObject(ctx.db(), ctx.key(), set.Release(), definition);
}

void DeleteIfEmptied(CommandContext& ctx, const VectorSet& set) {
  if (set.definition().declared || set.index().Count() != 0) return;
  if (set.index().NextExpiryMs() != Object::kNeverMs) return;  // goes with the last of these
  ctx.txn.Delete(ctx.db(), ctx.key());
}

bool ParseLife(const CommandContext& ctx, VectorArgs* args, int64_t* expire_at_ms) {
  struct Word {
    std::string_view name;
    TimeForm form;
  };
  constexpr Word kWords[] = {{"EX", kRelativeSeconds},
                             {"PX", kRelativeMillis},
                             {"EXAT", kAbsoluteSeconds},
                             {"PXAT", kAbsoluteMillis}};
  for (const Word& word : kWords) {
    if (!args->Keyword(word.name)) continue;
    const std::string_view text = args->Next();
    if (!args->ok()) return true;
    const std::optional<int64_t> value = ParseInt64(text);
    if (!value) {
      args->Fail("ERR value is not an integer or out of range");
      return true;
    }
    const std::optional<int64_t> at_ms = ToExpireAt(*value, word.form, ctx.now_ms());
    if (*value <= 0 || !at_ms) {
      args->Fail("ERR invalid expire time in '" + std::string(ctx.spec.name) + "' command");
      return true;
    }
    *expire_at_ms = *at_ms;
    return true;
  }
  return false;
}

void RecordChange(CommandContext& ctx, VectorSet& set, std::string_view change) {
  set.NoteChange(change);
  ctx.txn.RecordObjectChange(ctx.key(), set.id(), change);
}

void FinishWithError(CommandContext& ctx, std::string_view error) {
  ctx.finished = true;
  AnswerError(ctx, error);
}

void AnswerError(CommandContext& ctx, std::string_view error) {
  if (error.starts_with(kDiskErrorText)) {
    ctx.engine.NoteObjectFailure(std::string(error.substr(kDiskErrorText.size())));
  }
  ctx.reply.Error(error);
}

std::string ErrorText(const Status& status) {
  const bool disk = status.code() == Code::kNoSpace || status.code() == Code::kIoError;
  if (!disk) return "ERR " + status.message();
  const std::string where = status.path().empty() ? "" : status.path() + ": ";
  return std::string(kDiskErrorText) + where + status.message();
}

double AsShortest(float value) {
  if (value == 0) return 0;  // minus an inner product of 0 is -0
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  double nearest = value;
  std::from_chars(text, end, nearest);
  return nearest;
}

std::string_view BlobOf(const std::vector<float>& vector) {
  return {reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float)};
}

void ReplyVector(ReplyWriter& reply, const std::vector<float>& vector, bool raw) {
  if (raw) {
    reply.Bulk(BlobOf(vector));
    return;
  }
  reply.ArrayHeader(vector.size());
  for (const float component : vector) reply.Double(AsShortest(component));
}

void AnsweredByPrepare(CommandContext&) { HOTKV_CHECK(false && "answered by its prepare step"); }

}  // namespace hotkv
