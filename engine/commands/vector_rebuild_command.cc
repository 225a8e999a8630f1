// VSIM.REBUILD: begins building an index anew in the background (engine/types/vector_set_rebuild.h).
#include <optional>

#include "engine/commands/vector_args.h"
#include "engine/commands/vset_common.h"
#include "engine/types/vector_set_rebuild.h"

namespace hotkv {

namespace {

struct Wanted {
  std::optional<uint32_t> m;
  std::optional<uint32_t> ef_construction;
  std::optional<ElementType> type;
};

Wanted ParseWanted(VectorArgs* args) {
  Wanted wanted;
  while (args->ok() && !args->done()) {
    if (!wanted.m && args->Keyword("M")) {
      wanted.m = static_cast<uint32_t>(args->Count("M", 2, kIndexMMax));
    } else if (!wanted.ef_construction && args->Keyword("EF_CONSTRUCTION")) {
      wanted.ef_construction =
          static_cast<uint32_t>(args->Count("EF_CONSTRUCTION", 1, kIndexEfMax));
    } else if (!wanted.type && args->Keyword("TYPE")) {
      wanted.type = ParseElementType(args);
    } else {
      args->SyntaxError();
    }
  }
  return wanted;
}

void Rebuild(CommandContext& ctx) {
  VectorArgs args(ctx.args, 2);
  const Wanted wanted = ParseWanted(&args);
  const Entry* entry = ctx.Find();
  VectorSetRef set = VectorSetOf(entry);
  BackgroundJobs* jobs = ctx.engine.background_jobs_or_null();
  if (!args.ok()) return ctx.reply.Error(args.error());
  if (!set) return entry != nullptr ? ctx.WrongType() : ctx.reply.Error(kNoIndex);
  if (jobs == nullptr) return ctx.reply.Error("ERR no background thread is running");
  RebuildOptions options;
  options.index = set->index().options();
  options.index.m = wanted.m.value_or(options.index.m);
  options.index.ef_construction = wanted.ef_construction.value_or(options.index.ef_construction);
  options.index.type = wanted.type.value_or(options.index.type);
  const Status supported = VectorIndex::CheckOptions(options.index);
  if (!supported.ok()) return ctx.reply.Error(ErrorText(supported));
  int none = -1;
  if (!set->rebuild_percent.compare_exchange_strong(none, 0)) {
    return ctx.reply.Error("ERR the index is being rebuilt already");
  }
  jobs->Add(std::make_unique<VectorSetRebuild>(&ctx.engine, std::move(set), options));
  ctx.reply.Ok();
}

using Type = ArgumentType;
constexpr KeySpec kUpdateKey[] = {
    {.flags = key_flag::kReadWrite | key_flag::kAccess | key_flag::kUpdate, .begin = 1}};
constexpr ArgumentSpec kArgs[] = {
    {.name = "index", .type = Type::kKey, .key_spec = 0},
    {.name = "m", .type = Type::kInteger, .token = "M", .optional = true},
    {.name = "ef_construction", .type = Type::kInteger, .token = "EF_CONSTRUCTION", .optional = true},
    {.name = "type", .token = "TYPE", .optional = true},
};

}  // namespace

void AppendRebuildCommand(std::vector<CommandSpec>* specs) {
  CommandSpec spec;
  spec.name = "vsim.rebuild";
  spec.arity = -2;
  spec.flags = command_flag::kWrite | command_flag::kDenyOom;
  spec.acl = acl_category::kWrite | acl_category::kSlow | acl_category::kVector;
  spec.keys = {1, 1, 1};
  spec.handler = &Rebuild;
  spec.group = "vector";
  spec.since = "0.1.0";
  spec.summary = "Builds an index anew in the background.";
  spec.complexity = "O(1); in the background O(N log(N)) with N the number of elements.";
  spec.key_specs = kUpdateKey;
  spec.arguments = kArgs;
  specs->push_back(spec);
}

}  // namespace hotkv
