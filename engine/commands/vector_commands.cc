// VSIM.*: vector indexes. Lookups run entirely in the prepare step, without a stripe lock, on a reference to the index;
// inserts store and link there, and become visible in the handler, under the lock.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/base/number.h"
#include "engine/commands/command_context.h"
#include "engine/commands/vector_args.h"
#include "engine/commands/vector_batch.h"
#include "engine/commands/vset_common.h"
#include "engine/tx/engine.h"
#include "engine/types/vector_set.h"

namespace hotkv {

namespace {

using SetRef = VectorSetRef;

constexpr uint32_t kCapacityMax = kIndexSlotsMax;

void ReplyRows(ReplyWriter& reply, const std::vector<SearchRow>& rows, const SearchOptions& options) {
  const size_t columns = 1u + (options.with_scores ? 1 : 0) + (options.params.with_attr ? 1 : 0) +
                         (options.params.with_vector ? 1 : 0);
  const bool nested = reply.resp3() && columns > 1;
  reply.ArrayHeader(nested ? rows.size() : rows.size() * columns);
  for (const SearchRow& row : rows) {
    if (nested) reply.ArrayHeader(columns);
    reply.Bulk(row.name);
    if (options.with_scores) reply.Double(AsShortest(row.distance));
    if (options.params.with_attr) row.attr.empty() ? reply.Null() : reply.Bulk(row.attr);
    if (options.params.with_vector) ReplyVector(reply, row.vector, options.raw);
  }
}

// ---- CREATEINDEX ----

class PreparedIndex : public PreparedState {
 public:
  SetRef set;
};

Metric ParseMetric(VectorArgs* args) {
  const std::string_view name = args->Next();
  for (const Metric metric : {Metric::kCosine, Metric::kL2, Metric::kIp}) {
    if (EqualsIgnoreCase(name, MetricName(metric))) return metric;
  }
  args->Fail("ERR METRIC must be COSINE, L2 or IP");
  return Metric::kCosine;
}

VectorSetDefinition ParseDefinition(VectorArgs* args) {
  VectorSetDefinition definition;
  IndexOptions& o = definition.index;
  enum : uint32_t {
    kMetric = 1, kType = 2, kM = 4, kEfc = 8, kEf = 16, kRerank = 32, kCapacity = 64, kFields = 128, kInputDim = 256,
    kTransient = 512
  };
  uint32_t seen = 0;
  auto once = [&](uint32_t bit) {
    if ((seen & bit) != 0) args->SyntaxError();
    seen |= bit;
  };
  if (!args->Keyword("DIM")) args->SyntaxError();
  o.dim = static_cast<uint32_t>(args->Count("DIM", 1, kVectorDimMax));
  while (args->ok() && !args->done()) {
    if (args->Keyword("METRIC")) {
      once(kMetric);
      o.metric = ParseMetric(args);
    } else if (args->Keyword("TYPE")) {
      once(kType);
      o.type = ParseElementType(args);
    } else if (args->Keyword("M")) {
      once(kM);
      o.m = static_cast<uint32_t>(args->Count("M", 2, kIndexMMax));
    } else if (args->Keyword("EF_CONSTRUCTION")) {
      once(kEfc);
      o.ef_construction = static_cast<uint32_t>(args->Count("EF_CONSTRUCTION", 1, kIndexEfMax));
    } else if (args->Keyword("EF")) {
      once(kEf);
      o.ef_default = static_cast<uint32_t>(args->Count("EF", 1, kIndexEfMax));
    } else if (args->Keyword("RERANK")) {
      once(kRerank);
      o.rerank = static_cast<uint32_t>(args->Count("RERANK", 1, kIndexEfMax));
    } else if (args->Keyword("FIELDS")) {
      once(kFields);
      definition.fields = ParseFields(args);
    } else if (args->Keyword("INPUT_DIM")) {
      once(kInputDim);
      definition.reduce_from = static_cast<uint32_t>(args->Count("INPUT_DIM", o.dim, kVectorDimMax));
    } else if (args->Keyword("TRANSIENT")) {
      once(kTransient);
      definition.declared = false;
    } else if (args->Keyword("CAPACITY")) {
      once(kCapacity);
      args->Count("CAPACITY", 0, kCapacityMax);  // slabs grow by themselves: only checked
    } else {
      args->SyntaxError();
    }
  }
  if ((seen & kType) == 0) o.type = DefaultElementType(o.dim);
  return definition;
}

bool KeyExists(CommandContext& ctx) {
  const bool locked = ctx.client.in_exec;
  Stripe& stripe = ctx.engine.keyspace().stripe(ctx.key().stripe);
  if (!locked) ctx.txn.LockStripe(stripe);
  const bool exists = ctx.txn.Peek(ctx.db(), ctx.key()) != nullptr;
  if (!locked) ctx.txn.UnlockStripe(stripe);
  return exists;
}

void PrepareCreateIndex(CommandContext& ctx) {
  VectorArgs args(ctx.args, 2);
  const VectorSetDefinition definition = ParseDefinition(&args);
  if (!args.ok()) return FinishWithError(ctx, args.error());
  if (KeyExists(ctx)) return FinishWithError(ctx, "ERR index already exists");
  auto made = MakeVectorSet(ctx.engine, definition);
  if (!made.ok()) return FinishWithError(ctx, ErrorText(made.status()));
  auto prepared = std::make_unique<PreparedIndex>();
  prepared->set = SetRef::Adopt(*made);
  ctx.prepared = std::move(prepared);
}

void CreateIndex(CommandContext& ctx) {
  auto& prepared = static_cast<PreparedIndex&>(*ctx.prepared);
  if (ctx.txn.Peek(ctx.db(), ctx.key()) != nullptr) {
    DropUnlinked(ctx.engine, &prepared.set);
    ctx.reply.Error("ERR index already exists");
    return;
  }
  LinkVectorSet(ctx, std::move(prepared.set));
  ctx.reply.Ok();
}

// ---- SET, MSET ----

struct Item {
  std::string_view name;
  std::string_view attr;
  std::vector<float> vector;
  int64_t expire_at_ms = 0;
  PreparedInsert insert;
};

class PreparedItems : public PreparedState {
 public:
  SetRef set;  // before the items: an uncommitted insert must not outlive its index
  std::vector<Item> items;
  bool only_new = false;
  bool only_old = false;
};

// Checks all items, then stores and links all; on an error, which is returned, nothing has become visible.
std::string StoreItems(PreparedItems* prepared) {
  VectorIndex& index = prepared->set->index();
  for (const Item& item : prepared->items) {
    const Status status = index.CheckVector(item.vector);
    if (!status.ok()) return ErrorText(status);
  }
  for (Item& item : prepared->items) {
    auto insert = index.Prepare(item.name, item.vector, item.attr, item.expire_at_ms);
    if (!insert.ok()) return ErrorText(insert.status());
    item.insert = std::move(insert).value();
  }
  return "";
}

void PrepareItems(CommandContext& ctx, std::unique_ptr<PreparedItems> prepared) {
  const std::string error = StoreItems(prepared.get());
  if (!error.empty()) return FinishWithError(ctx, error);
  ctx.prepared = std::move(prepared);
}

// Under the lock: the index of the items. The key may have been deleted, made anew or rebuilt since they were prepared;
// then they are prepared again, for what is there now. Null when an error was answered.
VectorSet* TargetOf(CommandContext& ctx, PreparedItems* prepared) {
  const Entry* entry = ctx.txn.Peek(ctx.db(), ctx.key());
  SetRef current = VectorSetOf(entry);
  if (!current) {
    ctx.reply.Error(kNoIndex);
    return nullptr;
  }
  if (current.get() == prepared->set.get()) return current.get();
  for (Item& item : prepared->items) item.insert = PreparedInsert();
  prepared->set = std::move(current);
  const std::string error = StoreItems(prepared);
  if (error.empty()) return prepared->set.get();
  AnswerError(ctx, error);
  return nullptr;
}

CommitResult CommitItem(CommandContext& ctx, VectorSet& set, Item& item) {
  const CommitResult result = set.index().Commit(std::move(item.insert));
  RecordChange(ctx, set, VectorSet::SetChange(result.slot, item.name, item.attr, item.vector,
                                              item.expire_at_ms));
  if (item.expire_at_ms != 0) ctx.txn.NotePartEnds(ctx.key(), item.expire_at_ms);
  return result;
}

void PrepareSet(CommandContext& ctx) {
  auto prepared = std::make_unique<PreparedItems>();
  prepared->set = FetchIndex(ctx);
  if (ctx.finished) return;
  VectorArgs args(ctx.args, 2);
  Item item;
  item.name = args.Next();
  item.vector = args.Vector(prepared->set->definition().index.dim, VectorArgs::Elements::kNo).values;
  bool has_attr = false;
  while (args.ok() && !args.done()) {
    const bool may_limit = !prepared->only_new && !prepared->only_old;
    if (!has_attr && args.Keyword("ATTR")) {
      has_attr = true;
      item.attr = args.Next();
    } else if (may_limit && args.Keyword("NX")) {
      prepared->only_new = true;
    } else if (may_limit && args.Keyword("XX")) {
      prepared->only_old = true;
    } else if (item.expire_at_ms == 0 && ParseLife(ctx, &args, &item.expire_at_ms)) {
      continue;
    } else {
      args.SyntaxError();
    }
  }
  if (!args.ok()) return FinishWithError(ctx, args.error());
  prepared->items.push_back(std::move(item));
  PrepareItems(ctx, std::move(prepared));
}

void Set(CommandContext& ctx) {
  auto& prepared = static_cast<PreparedItems&>(*ctx.prepared);
  VectorSet* set = TargetOf(ctx, &prepared);
  if (set == nullptr) return;
  Item& item = prepared.items[0];
  const bool exists = set->index().Contains(item.name);
  if ((prepared.only_new && exists) || (prepared.only_old && !exists)) {
    set->index().Abandon(std::move(item.insert));
    ctx.reply.Null();
    return;
  }
  ctx.reply.Integer(CommitItem(ctx, *set, item).replaced_live ? 0 : 1);
}

void PrepareMset(CommandContext& ctx) {
  auto prepared = std::make_unique<PreparedItems>();
  prepared->set = FetchIndex(ctx);
  if (ctx.finished) return;
  VectorArgs args(ctx.args, 2);
  bool with_attrs = false;
  int64_t expire_at_ms = 0;
  for (;;) {
    if (!with_attrs && args.Keyword("ATTRS")) {
      with_attrs = true;
    } else if (expire_at_ms != 0 || !ParseLife(ctx, &args, &expire_at_ms)) {
      break;
    }
  }
  const uint64_t count = args.Count("number of items", 1, kArgumentsMax);
  const uint32_t dim = prepared->set->definition().index.dim;
  for (uint64_t i = 0; args.ok() && i < count; ++i) {
    Item item;
    item.name = args.Next();
    item.vector = args.Vector(dim, VectorArgs::Elements::kNo).values;
    if (with_attrs) item.attr = args.Next();
    item.expire_at_ms = expire_at_ms;
    prepared->items.push_back(std::move(item));
  }
  if (args.ok() && !args.done()) args.SyntaxError();
  if (!args.ok()) return FinishWithError(ctx, args.error());
  PrepareItems(ctx, std::move(prepared));
}

void Mset(CommandContext& ctx) {
  auto& prepared = static_cast<PreparedItems&>(*ctx.prepared);
  VectorSet* set = TargetOf(ctx, &prepared);
  if (set == nullptr) return;
  int64_t added = 0;
  for (Item& item : prepared.items) {
    if (!CommitItem(ctx, *set, item).replaced_live) ++added;
  }
  ctx.reply.Integer(added);
}

// ---- lookups ----

void Get(CommandContext& ctx) {
  SetRef set = FetchIndex(ctx);
  if (ctx.finished) return;
  VectorArgs args(ctx.args, 3);
  bool raw = false;
  bool with_attr = false;
  while (args.ok() && !args.done()) {
    if (!raw && args.Keyword("RAW")) {
      raw = true;
    } else if (!with_attr && args.Keyword("WITHATTR")) {
      with_attr = true;
    } else {
      args.SyntaxError();
    }
  }
  if (!args.ok()) return FinishWithError(ctx, args.error());
  ctx.finished = true;
  auto vector = set->index().GetVector(ctx.arg(2));
  const auto attr = set->index().GetAttr(ctx.arg(2));
  TouchKeysStripe(ctx);
  if (!vector.ok() || !attr) {
    ctx.reply.Null();
    return;
  }
  if (with_attr) ctx.reply.ArrayHeader(2);
  ReplyVector(ctx.reply, *vector, raw);
  if (with_attr) attr->empty() ? ctx.reply.Null() : ctx.reply.Bulk(*attr);
}

void Exists(CommandContext& ctx) {
  SetRef set = FetchIndex(ctx);
  if (ctx.finished) return;
  ctx.finished = true;
  ctx.reply.ArrayHeader(ctx.argc() - 2);
  for (size_t i = 2; i < ctx.argc(); ++i) {
    ctx.reply.Integer(set->index().Contains(ctx.arg(i)) ? 1 : 0);
  }
  TouchKeysStripe(ctx);
}

// The query's components; an element's are looked up.
bool ResolveQuery(const VectorIndex& index, VectorArgument* query, std::string* error) {
  if (query->is_element) {
    auto vector = index.GetVector(query->element);
    if (!vector.ok()) {
      *error = "ERR no such element in the index";
      return false;
    }
    query->values = std::move(vector).value();
  }
  const Status status = index.CheckVector(query->values);
  if (!status.ok()) *error = ErrorText(status);
  return status.ok();
}

void SearchMany(CommandContext& ctx, uint64_t count, bool one, VectorArgs args) {
  SetRef set = FetchIndex(ctx);
  if (ctx.finished) return;
  const VectorIndex& index = set->index();
  std::vector<VectorArgument> arguments;
  for (uint64_t i = 0; args.ok() && i < count; ++i) {
    arguments.push_back(args.Vector(index.options().dim, VectorArgs::Elements::kAllowed));
  }
  SearchOptions options = ParseSearchOptions(&args);
  if (!args.ok()) return FinishWithError(ctx, args.error());
  std::vector<std::vector<float>> queries;
  std::string error;
  for (VectorArgument& argument : arguments) {
    if (!ResolveQuery(index, &argument, &error)) return FinishWithError(ctx, error);
    queries.push_back(std::move(argument.values));
  }
  const auto batch = std::make_shared<VectorBatch>(set, std::move(queries), std::move(options));
  const std::vector<SearchOutcome> outcomes = VectorBatch::Run(batch, &ctx.engine.helpers());
  for (const SearchOutcome& outcome : outcomes) {
    if (!outcome.status.ok()) return FinishWithError(ctx, ErrorText(outcome.status));
  }
  const SearchOptions& asked = batch->options();
  const uint64_t matches = !asked.explain ? 0
                           : asked.filter ? index.CountMatching(*asked.filter)
                                          : index.Count();
  TouchKeysStripe(ctx);
  ctx.finished = true;
  if (!one) ctx.reply.ArrayHeader(outcomes.size());
  for (const SearchOutcome& outcome : outcomes) {
    if (asked.explain) {
      ReplySearchReport(ctx.reply, outcome.report, matches);
    } else {
      ReplyRows(ctx.reply, outcome.rows, asked);
    }
  }
}

void Search(CommandContext& ctx) { SearchMany(ctx, 1, true, VectorArgs(ctx.args, 2)); }

void Msearch(CommandContext& ctx) {
  VectorArgs args(ctx.args, 2);
  const uint64_t count = args.Count("number of queries", 1, kArgumentsMax);
  if (!args.ok()) return FinishWithError(ctx, args.error());
  SearchMany(ctx, count, false, args);
}

void Info(CommandContext& ctx) {
  SetRef set = FetchIndex(ctx);
  if (ctx.finished) return;
  ctx.finished = true;
  const IndexInfo info = set->index().Info();
  TouchKeysStripe(ctx);
  ReplyWriter& reply = ctx.reply;
  const auto number = [&reply](std::string_view name, uint64_t value) {
    reply.Bulk(name);
    reply.Integer(static_cast<int64_t>(value));
  };
  const auto text = [&reply](std::string_view name, std::string_view value) {
    reply.Bulk(name);
    reply.Bulk(value);
  };
  reply.MapHeader(28);
  number("dim", info.options.dim);
  number("input_dim", set->definition().reduce_from);
  number("transient", set->definition().declared ? 0 : 1);
  text("metric", MetricName(info.options.metric));
  text("type", ElementTypeName(info.options.type));
  number("m", info.options.m);
  number("ef_construction", info.options.ef_construction);
  number("ef", info.options.ef_default);
  number("rerank", info.options.rerank);
  number("count", info.live);
  number("deleted", info.dead);
  number("with_attributes", info.with_attr);
  number("expiring", info.expiring);
  number("slots", info.slots);
  number("free_slots", info.free_slots);
  number("held_slots", info.held_slots);
  number("pending", info.pending);
  number("top_level", info.top_level);
  // -1: no rebuild is under way.
  reply.Bulk("rebuild_percent");
  reply.Integer(set->rebuild_percent.load(std::memory_order_relaxed));
  number("hot_bytes", info.hot_bytes);
  number("vector_bytes", info.vector_bytes);
  number("other_bytes", info.other_bytes);
  number("object_id", set->id());
  text("kernel", info.kernel);
  const std::vector<FieldSpec> fields = set->index().fields();
  reply.Bulk("fields");
  reply.ArrayHeader(fields.size() * 2);
  for (const FieldSpec& field : fields) {
    reply.Bulk(field.name);
    reply.Bulk(FieldKindName(field.kind));
  }
  number("fields_ready", info.fields_ready ? 1 : 0);
  reply.Bulk("automatic_fields");
  reply.ArrayHeader(info.automatic_fields.size());
  for (const std::string& name : info.automatic_fields) reply.Bulk(name);
  number("field_bytes", info.field_bytes);
}

// ---- DEL, DROPINDEX, LIST ----

void Del(CommandContext& ctx) {
  const SetRef set = IndexOf(ctx);
  if (!set) return;
  int64_t removed = 0;
  for (size_t i = 2; i < ctx.argc(); ++i) {
    const auto slot = set->index().Delete(ctx.arg(i));
    if (!slot) continue;
    ++removed;
    RecordChange(ctx, *set, VectorSet::DeleteChange(*slot, ctx.arg(i)));
  }
  DeleteIfEmptied(ctx, *set);
  ctx.reply.Integer(removed);
}

void DropIndex(CommandContext& ctx) {
  Entry* entry = ctx.Find();
  if (entry != nullptr && entry->type() != ValueType::kVectorSet) {
    ctx.WrongType();
    return;
  }
  ctx.reply.Integer(ctx.txn.Delete(ctx.db(), ctx.key()) ? 1 : 0);
}

void List(CommandContext& ctx) {
  std::vector<std::string> names;
  Keyspace& keyspace = ctx.engine.keyspace();
  for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
    Stripe& stripe = keyspace.stripe(i);
    if (stripe.table(ctx.db()) == nullptr) continue;
    ctx.txn.LockStripe(stripe);
    Table* table = stripe.table(ctx.db());
    const bool any = table != nullptr && table->sums().objects != 0;
    for (uint32_t c = 0; any && c < table->chunk_count(); ++c) {
      table->ForEachInChunk(c, [&](Entry** slot) {
        const Entry* entry = *slot;
        if (entry->type() == ValueType::kVectorSet && !entry->ExpiredAt(ctx.now_ms())) {
          names.emplace_back(entry->key());
        }
      });
    }
    ctx.txn.UnlockStripe(stripe);
  }
  std::sort(names.begin(), names.end());
  ctx.reply.ArrayHeader(names.size());
  for (const std::string& name : names) ctx.reply.Bulk(name);
}

void Help(CommandContext& ctx) {
  constexpr std::string_view kLines[] = {
      "VSIM.CREATEINDEX index DIM n [METRIC COSINE|L2|IP] [TYPE F32|F16|Q8|Q4|BIN] [M n] [EF_CONSTRUCTION n] [EF n] [RERANK n] [CAPACITY n] [INPUT_DIM n] [TRANSIENT] [FIELDS n (name TAG|NUMERIC)...]",
      "VSIM.SET index id vec [ATTR json] [EX s|PX ms|EXAT t|PXAT t] [NX|XX]",
      "VSIM.MSET index [ATTRS] [EX s|PX ms|EXAT t|PXAT t] count (id vec [json])...",
      "VSIM.GET index id [RAW] [WITHATTR]",
      "VSIM.EXISTS index id [id ...]",
      "VSIM.DEL index id [id ...]",
      "VSIM.SEARCH index vec [K k] [EF n] [FILTER expr] [RANGE d] [EXACT] [OFFSET n] [WITHSCORES] [WITHATTR] [WITHVECTORS] [RAW] [EXPLAIN]",
      "VSIM.MSEARCH index count vec... [options of SEARCH]",
      "VSIM.COUNT index [FILTER expr]",
      "VSIM.DELWHERE index FILTER expr",
      "VSIM.SCAN index cursor [MATCH pattern] [COUNT n] [FILTER expr]",
      "VSIM.SETATTR index id json",
      "VSIM.GETATTR index id",
      "VSIM.EXPIRE index id EX s|PX ms|EXAT t|PXAT t|PERSIST",
      "VSIM.TTL index id",
      "VSIM.ALTER index [EF n] [RERANK n] [FIELDS n (name TAG|NUMERIC)...]",
      "VSIM.REBUILD index [M n] [EF_CONSTRUCTION n] [TYPE t]",
      "VSIM.INFO index",
      "VSIM.LIST",
      "VSIM.DROPINDEX index",
      "    vec: FP32 blob | FP16 blob | VALUES n f1 ... fn | ELE id (searches)",
  };
  ctx.reply.ArrayHeader(std::size(kLines));
  for (const std::string_view line : kLines) ctx.reply.Simple(line);
}

constexpr KeyRange kFirst{1, 1, 1};
constexpr uint32_t kReadFlags = command_flag::kReadOnly;
constexpr uint32_t kWriteFlags = command_flag::kWrite | command_flag::kDenyOom;
constexpr uint32_t kReadAcl = acl_category::kRead | acl_category::kSlow | acl_category::kVector;
constexpr uint32_t kWriteAcl = acl_category::kWrite | acl_category::kSlow | acl_category::kVector;

CommandSpec Write(std::string_view name, int arity, Handler prepare, Handler handler,
                  std::string_view summary) {
  CommandSpec spec;
  spec.name = name;
  spec.arity = arity;
  spec.flags = kWriteFlags;
  spec.acl = kWriteAcl;
  spec.keys = kFirst;
  spec.prepare = prepare;
  spec.handler = handler;
  spec.group = "vector";
  spec.since = "0.1.0";
  spec.summary = summary;
  return spec;
}

// A lookup runs in its prepare step.
CommandSpec Read(std::string_view name, int arity, Handler lookup, std::string_view summary) {
  CommandSpec spec = Write(name, arity, lookup, &AnsweredByPrepare, summary);
  spec.flags = kReadFlags;
  spec.acl = kReadAcl;
  return spec;
}

constexpr KeySpec kReadKey[] = {{.flags = key_flag::kReadOnly | key_flag::kAccess, .begin = 1}};
constexpr KeySpec kLookKey[] = {{.flags = key_flag::kReadOnly, .begin = 1}};
constexpr KeySpec kUpdateKey[] = {{.flags = key_flag::kReadWrite | key_flag::kUpdate, .begin = 1}};
constexpr KeySpec kInsertKey[] = {{.flags = key_flag::kReadWrite | key_flag::kInsert, .begin = 1}};
constexpr KeySpec kDeleteIn[] = {{.flags = key_flag::kReadWrite | key_flag::kDelete, .begin = 1}};
constexpr KeySpec kRemoveKey[] = {{.flags = key_flag::kRemove | key_flag::kDelete, .begin = 1}};

struct MoreFacts {
  std::string_view name;
  std::string_view complexity;
  std::span<const KeySpec> keys;
};
constexpr MoreFacts kMoreFacts[] = {
    {"vsim.createindex", "O(1)", kInsertKey},
    {"vsim.set", "O(log(N)) with N the number of elements.", kUpdateKey},
    {"vsim.mset", "O(M log(N)) for M vectors and N elements.", kUpdateKey},
    {"vsim.get", "O(1)", kReadKey},
    {"vsim.exists", "O(N) with N the number of ids asked for.", kLookKey},
    {"vsim.del", "O(N) with N the number of ids given.", kDeleteIn},
    {"vsim.search", "O(log(N)) with N the number of elements; O(N) with EXACT.", kReadKey},
    {"vsim.msearch", "O(M log(N)) for M queries and N elements; O(M N) with EXACT.", kReadKey},
    {"vsim.info", "O(1)", kLookKey},
    {"vsim.dropindex", "O(1); files go in the background.", kRemoveKey},
    {"vsim.list", "O(N) with N the number of keys.", {}},
    {"vsim.help", "O(1)", {}},
};

std::vector<CommandSpec> MakeSpecs() {
  std::vector<CommandSpec> specs = {
      Write("vsim.createindex", -4, &PrepareCreateIndex, &CreateIndex, "Makes a vector index."),
      Write("vsim.set", -5, &PrepareSet, &Set, "Stores a vector under an element id."),
      Write("vsim.mset", -5, &PrepareMset, &Mset, "Stores several vectors, all or none."),
      Read("vsim.get", -3, &Get, "Returns an element's vector."),
      Read("vsim.exists", -3, &Exists, "Tells which elements exist."),
      Write("vsim.del", -3, nullptr, &Del, "Removes elements."),
      Read("vsim.search", -4, &Search, "Returns the elements nearest to a vector."),
      Read("vsim.msearch", -5, &Msearch, "Runs several searches at once."),
      Read("vsim.info", 2, &Info, "Returns an index's settings and counts."),
      Write("vsim.dropindex", 2, nullptr, &DropIndex, "Removes an index."),
      Read("vsim.list", 1, nullptr, "Lists the indexes of the database."),
      Read("vsim.help", 1, nullptr, "Lists the VSIM commands."),
  };
  for (CommandSpec& spec : specs) {
    for (const MoreFacts& more : kMoreFacts) {
      if (more.name != spec.name) continue;
      spec.complexity = more.complexity;
      spec.key_specs = more.keys;
    }
    // Removing must work when memory is full.
    if (spec.name == "vsim.del" || spec.name == "vsim.dropindex") spec.flags &= ~command_flag::kDenyOom;
    if (spec.name == "vsim.list" || spec.name == "vsim.help") {
      spec.keys = {};
      spec.handler = spec.name == "vsim.list" ? &List : &Help;
    }
    if (spec.name == "vsim.list") spec.acl |= acl_category::kKeyspace;
    if (spec.name == "vsim.help") spec.flags |= command_flag::kLoading | command_flag::kStale;
  }
  AppendElementCommands(&specs);
  AppendRebuildCommand(&specs);
  AppendFilterCommands(&specs);
  AppendVectorSetCommands(&specs);
  return specs;
}

}  // namespace

std::span<const CommandSpec> VectorCommands() {
  static const std::vector<CommandSpec> specs = MakeSpecs();
  return specs;
}

}  // namespace hotkv
