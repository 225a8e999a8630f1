// VADD: parses, stores and links in the prepare step, makes the element visible under the lock. The key may be made,
// replaced or deleted in between; the element then goes where the key leads now.
#include <algorithm>
#include <cmath>

#include "engine/base/limits.h"
#include "engine/base/number.h"
#include "engine/commands/vset_commands.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {

constexpr int64_t kVsetEfMax = 1'000'000;
constexpr int64_t kVsetMMin = 4;

struct VaddArgs {
  VsetVector vector;
  uint32_t reduce = 0;
  std::string_view element;
  std::optional<std::string_view> attr;  // nothing: an element that is there keeps its own
  ElementType type = ElementType::kQ8;
  uint32_t m = 16;
  uint32_t ef = 200;
  bool type_given = false;
  bool m_given = false;
};

class PreparedVadd : public PreparedState {
 public:
  VaddArgs args;
  VectorSetRef set;  // before the insert, which must not outlive its index
  bool made = false;
  std::vector<float> vector;  // as stored
  PreparedInsert insert;
};

// A number of an option; nothing, with the error in *error, when it is none in the range.
std::optional<uint32_t> Number(std::string_view text, int64_t min, int64_t max, const char* error,
                               std::string* out) {
  const std::optional<int64_t> value = ParseInt64(text);
  if (value && *value >= min && *value <= max) return static_cast<uint32_t>(*value);
  *out = error;
  return std::nullopt;
}

bool ParseVaddOptions(Args args, size_t at, VaddArgs* out, std::string* error) {
  for (; at < args.size(); ++at) {
    const std::string_view word = args[at];
    const bool has_value = at + 1 < args.size();
    const auto type = [&](ElementType asked) {
      out->type = asked;
      out->type_given = true;
    };
    if (EqualsIgnoreCase(word, "CAS")) continue;  // inserts into one set always run side by side
    if (EqualsIgnoreCase(word, "NOQUANT")) {
      type(ElementType::kF32);
    } else if (EqualsIgnoreCase(word, "Q8")) {
      type(ElementType::kQ8);
    } else if (EqualsIgnoreCase(word, "BIN")) {
      type(ElementType::kBin);
    } else if (EqualsIgnoreCase(word, "EF") && has_value) {
      const auto ef = Number(args[++at], 1, kVsetEfMax, "ERR invalid EF", error);
      if (!ef) return false;
      out->ef = *ef;
    } else if (EqualsIgnoreCase(word, "M") && has_value) {
      const auto m = Number(args[++at], kVsetMMin, kIndexMMax, "ERR invalid M", error);
      if (!m) return false;
      out->m = *m;
      out->m_given = true;
    } else if (EqualsIgnoreCase(word, "SETATTR") && has_value) {
      out->attr = args[++at];
    } else {
      *error = "ERR invalid option after element";
      return false;
    }
  }
  return true;
}

bool ParseVadd(Args args, VaddArgs* out, std::string* error) {
  size_t at = 2;
  if (EqualsIgnoreCase(args[at], "REDUCE") && args.size() > at + 2) {
    const auto reduce = Number(args[at + 1], 1, kVectorDimMax, kVsetBadVector, error);
    if (!reduce) return false;
    out->reduce = *reduce;
    at += 2;
  }
  const auto vector = ParseVsetVector(args, at);
  if (!vector || (out->reduce != 0 && out->reduce > vector->values.size())) {
    *error = kVsetBadVector;
    return false;
  }
  out->vector = *vector;
  at = out->vector.next;
  if (at >= args.size()) {
    *error = "ERR wrong number of arguments for 'vadd' command";
    return false;
  }
  out->element = args[at];
  return ParseVaddOptions(args, at + 1, out, error);
}

// Whether the arguments fit the set; "" when they do. What a declared index was made with need not be said again.
std::string Mismatch(const VectorSet& set, const VaddArgs& args) {
  const VectorSetDefinition& definition = set.definition();
  const bool declared = definition.declared;
  const size_t dim = args.vector.values.size();
  if (args.type != definition.index.type && (args.type_given || !declared)) {
    return "ERR asked quantization mismatch with existing vector set";
  }
  if (args.m != definition.index.m && (args.m_given || !declared)) {
    return "ERR asked M value mismatch with existing vector set";
  }
  const bool projected = definition.reduce_from != 0;
  const uint32_t stored = definition.index.dim;
  if (projected ? args.reduce != stored : dim != stored) return VsetDimensionError(dim, stored);
  if (args.reduce != 0 && !projected) {
    return "ERR cannot add projection to existing set without projection";
  }
  if (projected && dim != definition.reduce_from) {
    return VsetProjectionError(dim, definition.reduce_from);
  }
  return "";
}

VectorSetDefinition DefinitionFor(const VaddArgs& args) {
  VectorSetDefinition definition;
  definition.declared = false;
  const auto dim = static_cast<uint32_t>(args.vector.values.size());
  if (args.reduce != 0) definition.reduce_from = dim;
  definition.index.dim = args.reduce != 0 ? args.reduce : dim;
  definition.index.type = args.type;
  definition.index.m = args.m;
  definition.index.ef_construction = args.ef;
  return definition;
}

// What would be refused only once there is a set, found before one is made.
std::string RefuseVector(const std::vector<float>& vector) {
  const auto is_finite = [](float x) { return std::isfinite(x); };
  const bool finite = std::all_of(vector.begin(), vector.end(), is_finite);
  return finite ? "" : "ERR vector component is not a finite float";
}

void GiveUp(CommandContext& ctx, PreparedVadd* prepared) {
  prepared->insert = PreparedInsert();
  if (std::exchange(prepared->made, false)) DropUnlinked(ctx.engine, &prepared->set);
  prepared->set = VectorSetRef();
}

// Stores and links the element in `set`, or in a new one where there is none. The error, or "".
std::string Store(CommandContext& ctx, VectorSetRef set, PreparedVadd* prepared) {
  const VaddArgs& args = prepared->args;
  if (set) {
    std::string error = Mismatch(*set, args);
    if (!error.empty()) return error;
  } else {
    std::string error = RefuseVector(args.vector.values);
    if (!error.empty()) return error;
    auto made = MakeVectorSet(ctx.engine, DefinitionFor(args));
    if (!made.ok()) return ErrorText(made.status());
    set = VectorSetRef::Adopt(*made);
    prepared->made = true;
  }
  prepared->set = std::move(set);
  const Projection* projection = prepared->set->projection_or_null();
  prepared->vector = projection != nullptr ? projection->Apply(args.vector.values) : args.vector.values;
  auto insert = prepared->set->index().Prepare(args.element, prepared->vector, args.attr.value_or(""));
  if (!insert.ok()) {
    GiveUp(ctx, prepared);
    return ErrorText(insert.status());
  }
  prepared->insert = std::move(insert).value();
  return "";
}

void PrepareVadd(CommandContext& ctx) {
  auto prepared = std::make_unique<PreparedVadd>();
  std::string error;
  if (!ParseVadd(ctx.args, &prepared->args, &error)) return FinishWithError(ctx, error);
  FetchedVectorSet fetched = FetchVectorSet(ctx);
  if (fetched.wrong_type) {
    ctx.finished = true;
    ctx.WrongType();
    return;
  }
  error = Store(ctx, std::move(fetched.set), prepared.get());
  if (!error.empty()) return FinishWithError(ctx, error);
  ctx.prepared = std::move(prepared);
}

void Vadd(CommandContext& ctx) {
  auto& prepared = static_cast<PreparedVadd&>(*ctx.prepared);
  const Entry* entry = ctx.txn.Peek(ctx.db(), ctx.key());
  VectorSetRef current = VectorSetOf(entry);
  if (entry != nullptr && !current) {
    GiveUp(ctx, &prepared);
    ctx.WrongType();
    return;
  }
  const bool as_prepared = current ? current.get() == prepared.set.get() : prepared.made;
  if (!as_prepared) {
    GiveUp(ctx, &prepared);
    const std::string error = Store(ctx, std::move(current), &prepared);
    if (!error.empty()) return AnswerError(ctx, error);
  }
  VectorSet& set = *prepared.set;
  if (std::exchange(prepared.made, false)) LinkVectorSet(ctx, prepared.set);
  const VaddArgs& args = prepared.args;
  std::string attr(args.attr.value_or(""));
  if (!args.attr) {
    attr = set.index().GetAttr(args.element).value_or("");
    if (!attr.empty()) set.index().Revise(prepared.insert, attr, 0);
  }
  const CommitResult result = set.index().Commit(std::move(prepared.insert));
  RecordChange(ctx, set, VectorSet::SetChange(result.slot, args.element, attr, prepared.vector));
  ctx.reply.Bool(!result.replaced_live);
}

}  // namespace

std::pair<Handler, Handler> VaddHandlers() { return {&PrepareVadd, &Vadd}; }

}  // namespace hotkv
