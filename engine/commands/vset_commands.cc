// Redis's vector sets: everything but VADD and VSIM.
#include "engine/commands/vset_commands.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "engine/base/clock.h"
#include "engine/base/number.h"
#include "engine/base/random.h"
#include "engine/tx/engine.h"
#include "index/expiry.h"

namespace hotkv {

namespace {

constexpr uint32_t kSlotsAtOnce = 1024;
// What one reply may hold of a random choice with repetitions.
constexpr int64_t kRandomMembersMax = 1 << 24;

// The set, for a lookup that is answered in its prepare step; on a wrong type it is answered here.
bool FetchForLookup(CommandContext& ctx, VectorSetRef* set) {
  FetchedVectorSet fetched = FetchVectorSet(ctx);
  ctx.finished = true;
  *set = std::move(fetched.set);
  if (fetched.wrong_type) ctx.WrongType();
  return !fetched.wrong_type;
}

// The set of a change, under the lock; null when answered: with WRONGTYPE, or, without a key, with false.
VectorSetRef SetForChange(CommandContext& ctx) {
  const Entry* entry = ctx.Find();
  VectorSetRef set = VectorSetOf(entry);
  if (!set) entry != nullptr ? ctx.WrongType() : ctx.reply.Bool(false);
  return set;
}

void Vrem(CommandContext& ctx) {
  const VectorSetRef set = SetForChange(ctx);
  if (!set) return;
  const auto slot = set->index().Delete(ctx.arg(2));
  if (slot) {
    RecordChange(ctx, *set, VectorSet::DeleteChange(*slot, ctx.arg(2)));
    DeleteIfEmptied(ctx, *set);
  }
  ctx.reply.Bool(slot.has_value());
}

void Vsetattr(CommandContext& ctx) {
  const VectorSetRef set = SetForChange(ctx);
  if (!set) return;
  const auto slot = set->index().SetAttr(ctx.arg(2), ctx.arg(3));
  if (slot) RecordChange(ctx, *set, VectorSet::AttrChange(*slot, ctx.arg(2), ctx.arg(3)));
  ctx.reply.Bool(slot.has_value());
}

void Vcard(CommandContext& ctx) {
  VectorSetRef set;
  if (!FetchForLookup(ctx, &set)) return;
  ctx.reply.Integer(set ? static_cast<int64_t>(set->index().Count()) : 0);
  TouchKeysStripe(ctx);
}

void Vdim(CommandContext& ctx) {
  VectorSetRef set;
  if (!FetchForLookup(ctx, &set)) return;
  set ? ctx.reply.Integer(set->definition().index.dim) : ctx.reply.Error("ERR key does not exist");
}

void Vismember(CommandContext& ctx) {
  VectorSetRef set;
  if (!FetchForLookup(ctx, &set)) return;
  ctx.reply.Bool(set && set->index().Contains(ctx.arg(2)));
  TouchKeysStripe(ctx);
}

void Vgetattr(CommandContext& ctx) {
  VectorSetRef set;
  if (!FetchForLookup(ctx, &set)) return;
  const auto attr = set ? set->index().GetAttr(ctx.arg(2)) : std::nullopt;
  attr && !attr->empty() ? ctx.reply.Bulk(*attr) : ctx.reply.Null();
  TouchKeysStripe(ctx);
}

// ---- VEMB ----

std::string_view QuantName(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return "f32";
    case ElementType::kF16:
      return "f16";
    case ElementType::kQ8:
      return "int8";
    case ElementType::kQ4:
      return "int4";
    case ElementType::kBin:
      return "bin";
  }
  return "?";
}

double LengthOf(const std::vector<float>& vector) {
  double squared = 0;
  for (const float x : vector) squared += double{x} * double{x};
  return std::sqrt(squared);
}

// Redis's raw forms, made from the full vector: the codes in memory are of another kind.
void ReplyRaw(ReplyWriter& reply, ElementType type, std::vector<float> vector) {
  constexpr float kInt8Max = 127;
  constexpr size_t kWordBits = 64;
  const double length = LengthOf(vector);
  float range = 0;
  for (float& x : vector) {
    if (length > 0) x = static_cast<float>(x / length);
    range = std::max(range, std::abs(x));
  }
  const bool int8 = type == ElementType::kQ8;
  std::string blob;
  if (int8) {
    for (const float x : vector) {
      blob.push_back(static_cast<char>(std::lround(range > 0 ? x / range * kInt8Max : 0)));
    }
  } else if (type == ElementType::kBin) {
    blob.resize((vector.size() + kWordBits - 1) / kWordBits * sizeof(uint64_t));
    for (size_t i = 0; i < vector.size(); ++i) {
      if (vector[i] > 0) blob[i / 8] = static_cast<char>(blob[i / 8] | 1 << i % 8);
    }
  } else {
    blob = BlobOf(vector);
  }
  // F16 and Q4, which Redis does not have, come as floats.
  const bool floats = !int8 && type != ElementType::kBin;
  reply.ArrayHeader(int8 ? 4 : 3);
  reply.Simple(floats ? QuantName(ElementType::kF32) : QuantName(type));
  reply.Bulk(blob);
  reply.Double(length);
  if (int8) reply.Double(range);
}

void Vemb(CommandContext& ctx) {
  for (size_t i = 3; i < ctx.argc(); ++i) {
    if (!ctx.Is(i, "RAW")) return FinishWithError(ctx, "ERR invalid option");
  }
  VectorSetRef set;
  if (!FetchForLookup(ctx, &set)) return;
  if (!set) return ctx.reply.Null();
  auto vector = set->index().GetVector(ctx.arg(2));
  TouchKeysStripe(ctx);
  if (!vector.ok()) return ctx.reply.Null();
  if (ctx.argc() > 3) return ReplyRaw(ctx.reply, set->definition().index.type, std::move(*vector));
  ReplyVector(ctx.reply, *vector, false);
}

// ---- VLINKS, VINFO ----

void Vlinks(CommandContext& ctx) {
  const bool with_scores = ctx.argc() == 4 && ctx.Is(3, "WITHSCORES");
  if (ctx.argc() > 3 && !with_scores) {
    return FinishWithError(ctx, "ERR wrong number of arguments for 'vlinks' command");
  }
  VectorSetRef set;
  if (!FetchForLookup(ctx, &set)) return;
  if (!set) return ctx.reply.Null();
  const auto levels = set->index().GetLinks(ctx.arg(2));
  TouchKeysStripe(ctx);
  if (!levels.ok()) return ctx.reply.Null();
  const Metric metric = set->definition().index.metric;
  ctx.reply.ArrayHeader(levels->size());
  for (auto level = levels->rbegin(); level != levels->rend(); ++level) {  // the top layer first
    with_scores ? ctx.reply.MapHeader(level->size()) : ctx.reply.ArrayHeader(level->size());
    for (const LinkRow& row : *level) {
      ctx.reply.Bulk(row.name);
      if (with_scores) ctx.reply.Double(VsetScore(metric, row.distance));
    }
  }
}

void Vinfo(CommandContext& ctx) {
  VectorSetRef set;
  if (!FetchForLookup(ctx, &set)) return;
  if (!set) return ctx.reply.NullArray();
  const IndexInfo info = set->index().Info();
  TouchKeysStripe(ctx);
  ReplyWriter& reply = ctx.reply;
  const auto number = [&reply](std::string_view name, uint64_t value) {
    reply.Simple(name);
    reply.Integer(static_cast<int64_t>(value));
  };
  reply.MapHeader(9);
  reply.Simple("quant-type");
  reply.Simple(QuantName(info.options.type));
  number("hnsw-m", info.options.m);
  number("vector-dim", info.options.dim);
  number("projection-input-dim", set->definition().reduce_from);
  number("size", info.live);
  number("max-level", info.top_level);
  number("attributes-count", info.with_attr);
  number("vset-uid", set->id());
  number("hnsw-max-node-uid", info.slots);
}

// ---- VRANDMEMBER ----

// Different elements, `count` of them or all: a random selection in one pass over the slots.
std::vector<std::string> Sample(const VectorIndex& index, size_t count, Random* random) {
  std::vector<std::string> chosen;
  const int64_t now_ms = ExpiryBook::NowMs();
  uint64_t seen = 0;
  for (uint32_t slot = 0; slot != kNoSlot;) {
    slot = index.ForEach(slot, kSlotsAtOnce, [&](const VectorIndex::VisitedElement& e) {
      if (e.view.expire_at_ms != 0 && e.view.expire_at_ms <= now_ms) return;
      ++seen;
      if (chosen.size() < count) {
        chosen.emplace_back(e.view.name);
      } else if (const uint64_t at = random->Below(seen); at < count) {
        chosen[at] = e.view.name;
      }
    });
  }
  return chosen;
}

std::vector<std::string> RandomMembers(const VectorIndex& index, int64_t count) {
  std::vector<std::string> names;
  Random random(static_cast<uint64_t>(Clock::MonotonicNs()));
  const uint64_t size = index.Count();
  const auto wanted = static_cast<uint64_t>(std::abs(count));
  // A few of many are drawn until enough differ; more are taken in one pass.
  constexpr uint64_t kPassShare = 8;
  if (count > 0 && wanted > size / kPassShare) return Sample(index, wanted, &random);
  std::unordered_set<std::string> seen;
  for (uint64_t tries = 0; names.size() < wanted && tries < wanted * kPassShare; ++tries) {
    auto name = index.RandomName(random.Next());
    if (!name) break;
    if (count < 0 || seen.insert(*name).second) names.push_back(std::move(*name));
  }
  return names;
}

void Vrandmember(CommandContext& ctx) {
  if (ctx.argc() > 3) {
    return FinishWithError(ctx, "ERR wrong number of arguments for 'vrandmember' command");
  }
  const bool with_count = ctx.argc() == 3;
  const std::optional<int64_t> count = with_count ? ParseInt64(ctx.arg(2)) : 1;
  if (!count) return FinishWithError(ctx, "ERR COUNT value is not an integer");
  if (*count < -kRandomMembersMax) return FinishWithError(ctx, "ERR value is out of range");
  VectorSetRef set;
  if (!FetchForLookup(ctx, &set)) return;
  std::vector<std::string> names;
  if (set && *count != 0) names = RandomMembers(set->index(), *count);
  TouchKeysStripe(ctx);
  if (!with_count) return names.empty() ? ctx.reply.Null() : ctx.reply.Bulk(names[0]);
  ctx.reply.ArrayHeader(names.size());
  for (const std::string& name : names) ctx.reply.Bulk(name);
}

// ---- VRANGE ----

struct RangeEnd {
  bool open = false;  // - or +
  bool inclusive = false;
  std::string_view name;
};

std::optional<RangeEnd> ParseRangeEnd(std::string_view text, char unbounded, bool* misplaced) {
  RangeEnd end;
  *misplaced = text == (unbounded == '-' ? "+" : "-");
  if (text.size() == 1 && text[0] == unbounded) {
    end.open = true;
    return end;
  }
  if (text.size() < 2 || (text[0] != '[' && text[0] != '(')) return std::nullopt;
  end.inclusive = text[0] == '[';
  end.name = text.substr(1);
  return end;
}

// The first `count` names of the range, in order.
std::vector<std::string> NamesInRange(const VectorIndex& index, const RangeEnd& from,
                                      const RangeEnd& to, size_t count) {
  std::vector<std::string> names;  // a heap, the last of them on top, once there are `count`
  const int64_t now_ms = ExpiryBook::NowMs();
  const auto inside = [&](std::string_view name) {
    if (!from.open && (from.inclusive ? name < from.name : name <= from.name)) return false;
    return to.open || (to.inclusive ? name <= to.name : name < to.name);
  };
  for (uint32_t slot = 0; slot != kNoSlot && count != 0;) {
    slot = index.ForEach(slot, kSlotsAtOnce, [&](const VectorIndex::VisitedElement& e) {
      if (e.view.expire_at_ms != 0 && e.view.expire_at_ms <= now_ms) return;
      if (!inside(e.view.name)) return;
      if (names.size() == count) {
        if (e.view.name >= names.front()) return;
        std::pop_heap(names.begin(), names.end());
        names.pop_back();
      }
      names.emplace_back(e.view.name);
      std::push_heap(names.begin(), names.end());
    });
  }
  std::sort(names.begin(), names.end());
  // One that was replaced during the pass may have been met in both slots.
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

void Vrange(CommandContext& ctx) {
  if (ctx.argc() > 5) {
    return FinishWithError(ctx, "ERR wrong number of arguments for 'vrange' command");
  }
  const std::optional<int64_t> count = ctx.argc() == 5 ? ParseInt64(ctx.arg(4)) : -1;
  if (!count) return FinishWithError(ctx, "ERR invalid COUNT value");
  bool start_misplaced = false;
  bool end_misplaced = false;
  const auto from = ParseRangeEnd(ctx.arg(2), '-', &start_misplaced);
  const auto to = ParseRangeEnd(ctx.arg(3), '+', &end_misplaced);
  if (!from && !start_misplaced) return FinishWithError(ctx, "ERR invalid start range format");
  if (!to && !end_misplaced) return FinishWithError(ctx, "ERR invalid end range format");
  if (!from || !to) {
    return FinishWithError(
        ctx, "ERR '-' can only be used as first argument, '+' only as second");
  }
  VectorSetRef set;
  if (!FetchForLookup(ctx, &set)) return;
  std::vector<std::string> names;
  const size_t most = *count < 0 ? SIZE_MAX : static_cast<size_t>(*count);
  if (set) names = NamesInRange(set->index(), *from, *to, most);
  TouchKeysStripe(ctx);
  ctx.reply.ArrayHeader(names.size());
  for (const std::string& name : names) ctx.reply.Bulk(name);
}

// ---- what the commands are ----

using Type = ArgumentType;
constexpr KeySpec kReadKey[] = {{.flags = key_flag::kReadOnly | key_flag::kAccess, .begin = 1}};
constexpr KeySpec kLookKey[] = {{.flags = key_flag::kReadOnly, .begin = 1}};
constexpr KeySpec kUpdateKey[] = {{.flags = key_flag::kReadWrite | key_flag::kUpdate, .begin = 1}};
constexpr KeySpec kDeleteFromKey[] = {
    {.flags = key_flag::kReadWrite | key_flag::kDelete, .begin = 1}};

constexpr ArgumentSpec kKey{.name = "key", .type = Type::kKey, .key_spec = 0};
constexpr ArgumentSpec kElement{.name = "element"};
constexpr ArgumentSpec Token(std::string_view name, std::string_view token) {
  return {.name = name, .type = Type::kPureToken, .token = token};
}
constexpr ArgumentSpec OptionalToken(std::string_view name, std::string_view token) {
  return {.name = name, .type = Type::kPureToken, .token = token, .optional = true};
}
constexpr ArgumentSpec Option(std::string_view name, Type type, std::string_view token) {
  return {.name = name, .type = type, .token = token, .optional = true};
}
constexpr ArgumentSpec kAddForms[] = {Token("fp32", "FP32"), Token("values", "VALUES")};
constexpr ArgumentSpec kSearchForms[] = {Token("ele", "ELE"), Token("fp32", "FP32"),
                                         Token("values", "VALUES")};
constexpr ArgumentSpec kQuantTypes[] = {Token("noquant", "NOQUANT"), Token("bin", "BIN"),
                                        Token("q8", "Q8")};
constexpr ArgumentSpec kAddArgs[] = {
    kKey,
    Option("dim", Type::kInteger, "REDUCE"),
    {.name = "format", .type = Type::kOneOf, .children = kAddForms},
    {.name = "vector"},
    kElement,
    OptionalToken("cas", "CAS"),
    {.name = "quant_type", .type = Type::kOneOf, .optional = true, .children = kQuantTypes},
    Option("build-exploration-factor", Type::kInteger, "EF"),
    Option("attributes", Type::kString, "SETATTR"),
    Option("numlinks", Type::kInteger, "M"),
};
constexpr ArgumentSpec kSimArgs[] = {
    kKey,
    {.name = "format", .type = Type::kOneOf, .children = kSearchForms},
    {.name = "vector_or_element"},
    OptionalToken("withscores", "WITHSCORES"),
    OptionalToken("withattribs", "WITHATTRIBS"),
    Option("count", Type::kInteger, "COUNT"),
    Option("max_distance", Type::kDouble, "EPSILON"),
    Option("search-exploration-factor", Type::kInteger, "EF"),
    Option("expression", Type::kString, "FILTER"),
    Option("max-filtering-effort", Type::kInteger, "FILTER-EF"),
    OptionalToken("truth", "TRUTH"),
    OptionalToken("nothread", "NOTHREAD"),
};
constexpr ArgumentSpec kKeyArgs[] = {kKey};
constexpr ArgumentSpec kElementArgs[] = {kKey, kElement};
constexpr ArgumentSpec kEmbArgs[] = {kKey, kElement, OptionalToken("raw", "RAW")};
constexpr ArgumentSpec kLinksArgs[] = {kKey, kElement, OptionalToken("withscores", "WITHSCORES")};
constexpr ArgumentSpec kSetattrArgs[] = {kKey, kElement, {.name = "json"}};
constexpr ArgumentSpec kRandArgs[] = {
    kKey, {.name = "count", .type = Type::kInteger, .optional = true}};
constexpr ArgumentSpec kRangeArgs[] = {
    kKey,
    {.name = "start"},
    {.name = "end"},
    {.name = "count", .type = Type::kInteger, .optional = true},
};

struct Facts {
  std::string_view name;
  int arity;
  std::string_view since;
  std::string_view summary;
  std::string_view complexity;
  std::span<const ArgumentSpec> arguments;
  uint32_t flags = 0;  // beside readonly or write
};

CommandSpec SpecOf(const Facts& facts) {
  CommandSpec spec;
  spec.name = facts.name;
  spec.arity = facts.arity;
  spec.flags = facts.flags;
  spec.keys = {1, 1, 1};
  spec.group = "vector_set";
  spec.since = facts.since;
  spec.summary = facts.summary;
  spec.complexity = facts.complexity;
  spec.arguments = facts.arguments;
  const bool fast = (facts.flags & command_flag::kFast) != 0;
  spec.acl = acl_category::kVector | (fast ? acl_category::kFast : acl_category::kSlow);
  return spec;
}

CommandSpec Lookup(const Facts& facts, Handler lookup, std::span<const KeySpec> keys) {
  CommandSpec spec = SpecOf(facts);
  spec.flags |= command_flag::kReadOnly;
  spec.acl |= acl_category::kRead;
  spec.prepare = lookup;
  spec.handler = &AnsweredByPrepare;
  spec.key_specs = keys;
  return spec;
}

CommandSpec Change(const Facts& facts, Handler handler, std::span<const KeySpec> keys) {
  CommandSpec spec = SpecOf(facts);
  spec.flags |= command_flag::kWrite;
  spec.acl |= acl_category::kWrite;
  spec.handler = handler;
  spec.key_specs = keys;
  return spec;
}

}  // namespace

void AppendVectorSetCommands(std::vector<CommandSpec>* specs) {
  constexpr uint32_t kFast = command_flag::kFast;
  CommandSpec add = Change({"vadd", -5, "8.0.0", "Adds an element to a vector set, or changes its vector.",
                            "O(log(N)) with N the number of elements.", kAddArgs, command_flag::kDenyOom},
                           VaddHandlers().second, kUpdateKey);
  add.prepare = VaddHandlers().first;
  specs->push_back(add);
  specs->push_back(Change({"vrem", 3, "8.0.0", "Removes an element from a vector set.",
                           "O(1); its neighbours are linked again in the background.", kElementArgs},
                          &Vrem, kDeleteFromKey));
  specs->push_back(Change({"vsetattr", 4, "8.0.0", "Sets or removes an element's JSON attributes.", "O(1)",
                           kSetattrArgs, kFast | command_flag::kDenyOom},
                          &Vsetattr, kUpdateKey));
  specs->push_back(Lookup({"vsim", -4, "8.0.0", "Returns the elements most similar to a vector or element.",
                           "O(log(N)) with N the number of elements; O(N) with TRUTH.", kSimArgs},
                          &PrepareVsim, kReadKey));
  specs->push_back(Lookup({"vcard", 2, "8.0.0", "Returns the number of elements.", "O(1)", kKeyArgs, kFast},
                          &Vcard, kLookKey));
  specs->push_back(Lookup({"vdim", 2, "8.0.0", "Returns the dimension of the stored vectors.", "O(1)", kKeyArgs,
                           kFast},
                          &Vdim, kLookKey));
  specs->push_back(Lookup({"vemb", -3, "8.0.0", "Returns an element's vector.", "O(1)", kEmbArgs, kFast}, &Vemb,
                          kReadKey));
  specs->push_back(Lookup({"vgetattr", 3, "8.0.0", "Returns an element's JSON attributes.", "O(1)", kElementArgs,
                           kFast},
                          &Vgetattr, kReadKey));
  specs->push_back(Lookup({"vinfo", 2, "8.0.0", "Returns facts about a vector set.", "O(1)", kKeyArgs, kFast},
                          &Vinfo, kLookKey));
  specs->push_back(Lookup({"vismember", 3, "8.2.0", "Tells whether an element is there.", "O(1)", kElementArgs},
                          &Vismember, kLookKey));
  specs->push_back(Lookup({"vlinks", -3, "8.0.0", "Returns an element's neighbours on each layer of the graph.",
                           "O(1)", kLinksArgs, kFast},
                          &Vlinks, kReadKey));
  specs->push_back(Lookup({"vrandmember", -2, "8.0.0", "Returns elements chosen at random.",
                           "O(N) with N the number of elements asked for, or, when these are many, of all.",
                           kRandArgs},
                          &Vrandmember, kReadKey));
  specs->push_back(Lookup({"vrange", -4, "8.4.0", "Returns the elements in a range of names, in their order.",
                           "O(N) with N the number of elements in the set.", kRangeArgs},
                          &Vrange, kReadKey));
}

}  // namespace hotkv
