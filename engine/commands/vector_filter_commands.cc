// VSIM.COUNT, VSIM.DELWHERE and VSIM.SCAN: elements chosen by their attributes, without a vector; and what EXPLAIN tells
// of a search.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/glob.h"
#include "engine/base/number.h"
#include "engine/commands/vector_args.h"
#include "engine/commands/vset_common.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {

constexpr uint64_t kScanCountMax = 1u << 20;
// One slice of DELWHERE, under the lock of the key.
constexpr uint32_t kSliceSlots = 4096;
constexpr size_t kSliceDeletes = 64;

void Count(CommandContext& ctx) {
  VectorArgs args(ctx.args, 2);
  std::optional<FilterExpression> filter;
  if (!args.done() && !args.Keyword("FILTER")) args.SyntaxError();
  if (args.ok() && ctx.argc() > 2) filter = ParseFilter(&args);
  if (args.ok() && !args.done()) args.SyntaxError();
  if (!args.ok()) return FinishWithError(ctx, args.error());
  const VectorSetRef set = IndexForLookup(ctx);
  if (!set) return;
  const uint64_t count = filter ? set->index().CountMatching(*filter) : set->index().Count();
  TouchKeysStripe(ctx);
  ctx.reply.Integer(static_cast<int64_t>(count));
}

// The key's set is still this one; the key's stripe is locked.
bool StillLinked(CommandContext& ctx, const VectorSetRef& set) {
  const Entry* entry = ctx.txn.Peek(ctx.db(), ctx.key());
  return entry != nullptr && VectorSetOf(entry).get() == set.get();
}

// Each slice is a commit of its own, so that others get their turn; in EXEC all locks are held anyway.
void DeleteWhere(CommandContext& ctx) {
  VectorArgs args(ctx.args, 2);
  if (!args.Keyword("FILTER")) args.SyntaxError();
  const auto filter = args.ok() ? ParseFilter(&args) : std::nullopt;
  if (args.ok() && !args.done()) args.SyntaxError();
  if (!args.ok()) return FinishWithError(ctx, args.error());
  VectorSetRef set = IndexForLookup(ctx);
  if (!set) return;
  Stripe& stripe = ctx.engine.keyspace().stripe(ctx.key().stripe);
  const bool locked = ctx.client.in_exec;
  int64_t removed = 0;
  for (uint32_t slot = 0; slot != kNoSlot;) {
    if (!locked) ctx.txn.LockStripe(stripe);
    if (!StillLinked(ctx, set)) {
      // Rebuilt meanwhile: from the start, in what has taken its place.
      set = VectorSetOf(ctx.txn.Peek(ctx.db(), ctx.key()));
      slot = set ? 0 : kNoSlot;
    } else {
      for (const auto& gone : set->index().DeleteMatching(*filter, kSliceSlots, kSliceDeletes, &slot)) {
        RecordChange(ctx, *set, VectorSet::DeleteChange(gone.slot, gone.name));
        ++removed;
      }
      if (slot == kNoSlot) DeleteIfEmptied(ctx, *set);
    }
    if (!locked) ctx.txn.UnlockStripe(stripe);
  }
  ctx.reply.Integer(removed);
}

struct ScanOptions {
  uint32_t cursor = 0;
  uint32_t count = 10;
  std::optional<std::string_view> pattern;
  std::optional<FilterExpression> filter;
};

ScanOptions ParseScan(VectorArgs* args) {
  ScanOptions out;
  bool has_count = false;
  const std::optional<uint64_t> cursor = ParseUint64(args->Next());
  if (!cursor || *cursor > UINT32_MAX) args->Fail("ERR invalid cursor");
  out.cursor = static_cast<uint32_t>(cursor.value_or(0));
  while (args->ok() && !args->done()) {
    if (!out.pattern && args->Keyword("MATCH")) {
      out.pattern = args->Next();
    } else if (!has_count && args->Keyword("COUNT")) {
      has_count = true;
      out.count = static_cast<uint32_t>(args->Count("COUNT", 1, kScanCountMax));
    } else if (!out.filter && args->Keyword("FILTER")) {
      out.filter = ParseFilter(args);
    } else {
      args->SyntaxError();
    }
  }
  return out;
}

void Scan(CommandContext& ctx) {
  VectorArgs args(ctx.args, 2);
  const ScanOptions options = ParseScan(&args);
  if (!args.ok()) return FinishWithError(ctx, args.error());
  const VectorSetRef set = IndexForLookup(ctx);
  if (!set) return;
  std::vector<std::string> names;
  const uint32_t next = set->index().ForEachByName(
      options.cursor, options.count, [&](const VectorIndex::VisitedElement& e) {
        const int64_t end_ms = e.view.expire_at_ms;
        if (end_ms != 0 && end_ms <= ctx.now_ms()) return;
        if (options.pattern && !GlobMatches(*options.pattern, e.view.name)) return;
        if (options.filter && !options.filter->Matches(e.view.attr)) return;
        names.emplace_back(e.view.name);
      });
  TouchKeysStripe(ctx);
  ctx.reply.ArrayHeader(2);
  ctx.reply.Bulk(std::to_string(next));
  ctx.reply.ArrayHeader(names.size());
  for (const std::string& name : names) ctx.reply.Bulk(name);
}

using Type = ArgumentType;
constexpr KeySpec kReadKey[] = {{.flags = key_flag::kReadOnly | key_flag::kAccess, .begin = 1}};
constexpr KeySpec kDeleteIn[] = {{.flags = key_flag::kReadWrite | key_flag::kDelete, .begin = 1}};
constexpr ArgumentSpec kIndex{.name = "index", .type = Type::kKey, .key_spec = 0};
constexpr ArgumentSpec kCountArgs[] = {kIndex, {.name = "expression", .token = "FILTER", .optional = true}};
constexpr ArgumentSpec kDeleteArgs[] = {kIndex, {.name = "expression", .token = "FILTER"}};
constexpr ArgumentSpec kScanArgs[] = {
    kIndex,
    {.name = "cursor", .type = Type::kInteger},
    {.name = "pattern", .type = Type::kPattern, .token = "MATCH", .optional = true},
    {.name = "count", .type = Type::kInteger, .token = "COUNT", .optional = true},
    {.name = "expression", .token = "FILTER", .optional = true},
};

CommandSpec Spec(std::string_view name, int arity, Handler handler, std::string_view summary,
                 std::string_view complexity) {
  CommandSpec spec;
  spec.name = name;
  spec.arity = arity;
  spec.keys = {1, 1, 1};
  spec.group = "vector";
  spec.since = "0.1.0";
  spec.summary = summary;
  spec.complexity = complexity;
  spec.flags = command_flag::kReadOnly;
  spec.acl = acl_category::kRead | acl_category::kSlow | acl_category::kVector;
  spec.prepare = handler;
  spec.handler = &AnsweredByPrepare;
  spec.key_specs = kReadKey;
  return spec;
}

}  // namespace

void ReplySearchReport(ReplyWriter& reply, const SearchReport& report, uint64_t matches) {
  const auto number = [&reply](std::string_view name, uint64_t value) {
    reply.Bulk(name);
    reply.Integer(static_cast<int64_t>(value));
  };
  reply.MapHeader(10);
  reply.Bulk("plan");
  reply.Bulk(SearchPlanName(report.plan));
  number("attempts", report.attempts);
  number("estimated_matches", static_cast<uint64_t>(report.estimate + 0.5));
  number("matches", matches);
  reply.Bulk("estimated_by");
  reply.Bulk(report.listed ? "fields" : report.estimate > 0 ? "sample" : "none");
  number("fields_complete", report.covered ? 1 : 0);
  number("tests", report.tests);
  number("attributes_read", report.json_reads);
  number("nodes_visited", report.nodes);
  number("distances", report.distances);
}

void AppendFilterCommands(std::vector<CommandSpec>* specs) {
  CommandSpec count = Spec("vsim.count", -2, &Count, "Counts the elements that match a filter, or all.",
                           "O(1) without FILTER; with it O(M) for M that match by declared fields, else O(N).");
  count.arguments = kCountArgs;
  specs->push_back(count);
  CommandSpec del = Spec("vsim.delwhere", 4, &DeleteWhere, "Removes the elements that match a filter, in slices.",
                         "O(N) with N the number of elements.");
  del.arguments = kDeleteArgs;
  // Not denied when memory is full: it frees some.
  del.flags = command_flag::kWrite;
  del.acl = acl_category::kWrite | acl_category::kSlow | acl_category::kVector;
  del.key_specs = kDeleteIn;
  specs->push_back(del);
  CommandSpec scan = Spec("vsim.scan", -3, &Scan, "Iterates over the ids of an index.",
                          "O(1) for every call. O(N) for a complete iteration.");
  scan.arguments = kScanArgs;
  specs->push_back(scan);
}

}  // namespace hotkv
