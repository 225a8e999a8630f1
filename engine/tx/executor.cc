#include "engine/tx/executor.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "engine/base/cycle_clock.h"
#include "engine/commands/command_context.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {

// A worker's count of commits in one epoch is bounded: past this a write waits for the next. (Its buffer is bounded by
// EpochClock::NoteAppended, which alone may look at it: it belongs to the writer once the epoch is closed.)
constexpr uint64_t kEpochCommitsMax = uint64_t{1} << (kLsnCountBits - 1);
constexpr size_t kUnknownNameMax = 128;
constexpr size_t kEvictedPerCommandMax = 32;

// Appends the key indexes of a plain range.
void RangeIndexes(const KeyRange& range, size_t argc, std::vector<uint32_t>* indexes) {
  if (range.first <= 0) return;
  const auto count = static_cast<int>(argc);
  const int last = range.last < 0 ? count + range.last : range.last;
  for (int i = range.first; i <= last && i < count; i += range.step) {
    indexes->push_back(static_cast<uint32_t>(i));
  }
}

bool TouchesKeyspaceWithoutKeys(const CommandSpec& spec) {
  if (spec.keys.first != 0 || spec.get_keys != nullptr) return false;
  if (spec.Has(command_flag::kWholeKeyspace)) return true;
  return (spec.acl & (acl_category::kConnection | acl_category::kTransaction)) == 0;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

Args ArgsOf(const QueuedCommand& queued, std::vector<std::string_view>* views) {
  views->clear();
  size_t at = 0;
  for (const uint32_t length : queued.lengths) {
    views->emplace_back(queued.bytes.data() + at, length);
    at += length;
  }
  return *views;
}

// Before any lock is taken: the cache misses of a command with many keys overlap.
void PrefetchKeys(Engine& engine, const WorkerState& worker, uint32_t db,
                  std::span<const KeyRef> keys) {
  const Keyspace& keyspace = engine.keyspace();
  const ReclaimPin pin(engine.reclaim(), worker.reclaim_slot);
  while (!keys.empty()) {
    const auto window = keys.first(std::min<size_t>(keys.size(), kCommandWindow));
    for (const KeyRef& key : window) keyspace.PrefetchStripe(key);
    for (const KeyRef& key : window) keyspace.PrefetchTable(key, db);
    for (const KeyRef& key : window) keyspace.PrefetchChunk(key, db);
    for (const KeyRef& key : window) keyspace.PrefetchEntry(key, db);
    keys = keys.subspan(window.size());
  }
}

void FillKeys(const Keyspace& keyspace, Args args, const std::vector<uint32_t>& indexes,
              std::vector<KeyRef>* keys) {
  for (const uint32_t i : indexes) keys->push_back(keyspace.MakeRef(args[i]));
}

}  // namespace

const CommandSpec* Executor::Lookup(Args args) const {
  const CommandSpec* spec = engine_->commands().Find(args[0]);
  if (spec == nullptr || spec->subcommands.empty() || args.size() < 2) return spec;
  return engine_->commands().FindSub(*spec, args[1]);
}

bool Executor::FirstKey(const CommandSpec& spec, Args args, std::string_view* key) {
  if (spec.keys.first <= 0 || static_cast<size_t>(spec.keys.first) >= args.size()) return false;
  *key = args[static_cast<size_t>(spec.keys.first)];
  return true;
}

bool Executor::KeysOf(const CommandSpec& spec, Args args, std::vector<uint32_t>* indexes) {
  if (spec.get_keys != nullptr) return spec.get_keys(args, indexes);
  RangeIndexes(spec.keys, args.size(), indexes);
  return true;
}

void Executor::Reject(ClientState& client, const CommandSpec* spec, std::string_view text,
                      ReplyWriter& reply) {
  if (spec != nullptr) AddRelaxed(worker_->per_command[spec->id].rejected, 1);
  if (spec != nullptr && spec->name == "exec") {
    RejectExec(client, text, reply);
    return;
  }
  if (client.in_multi) client.multi_broken = true;
  reply.Error(text);
}

// A refused EXEC ends its transaction, as in Redis.
void Executor::RejectExec(ClientState& client, std::string_view text, ReplyWriter& reply) {
  client.queue.clear();
  client.queue_bytes = 0;
  client.in_multi = false;
  client.multi_broken = false;
  Txn::Unwatch(*worker_, client);
  if (text.starts_with("ERR ")) text.remove_prefix(4);
  reply.Error("EXECABORT Transaction discarded because of: " + std::string(text));
}

void Executor::RejectUnknown(ClientState& client, Args args, ReplyWriter& reply) {
  const CommandSpec* container = engine_->commands().Find(args[0]);
  if (container != nullptr && args.size() >= 2) {
    std::string text = "ERR unknown subcommand '";
    text.append(args[1].substr(0, kUnknownNameMax));
    text += "'. Try " + Upper(container->name) + " HELP.";
    Reject(client, nullptr, text, reply);
    return;
  }
  std::string text = "ERR unknown command '";
  text.append(args[0].substr(0, kUnknownNameMax));
  text += "', with args beginning with: ";
  const size_t start = text.size();
  for (size_t i = 1; i < args.size() && text.size() - start < kUnknownNameMax; ++i) {
    const size_t room = kUnknownNameMax - (text.size() - start);
    text.push_back('\'');
    text.append(args[i].substr(0, std::min(args[i].find('\0'), room)));  // as a C string, like Redis
    text += "' ";
  }
  Reject(client, nullptr, text, reply);
}

bool Executor::Refuse(ClientState& client, const CommandSpec& spec, Args args, ReplyWriter& reply) {
  const bool bare_container = !spec.subcommands.empty() && spec.handler == nullptr;
  if (!spec.ArityFits(args.size()) || bare_container) {
    Reject(client, &spec, "ERR wrong number of arguments for '" + Lower(spec.name) + "' command",
           reply);
    return true;
  }
  if (client.in_multi && spec.Has(command_flag::kNoMulti)) {
    Reject(client, &spec, "ERR Command not allowed inside a transaction", reply);
    return true;
  }
  if (!spec.Has(command_flag::kLoading) && engine_->loading.load(std::memory_order_acquire)) {
    Reject(client, &spec, "LOADING Redis is loading the dataset in memory", reply);
    return true;
  }
  if (spec.Has(command_flag::kWrite) && engine_->disk_denied.load(std::memory_order_relaxed)) {
    Reject(client, &spec,
           "MISCONF Errors writing to the AOF file: " + engine_->disk_denied_reason(), reply);
    return true;
  }
  if (spec.Has(command_flag::kDenyOom) && !HasMemory()) {
    Reject(client, &spec, "OOM command not allowed when used memory > 'maxmemory'.", reply);
    return true;
  }
  return false;
}

// Makes room first, where keys may be evicted. While that cannot be, the command waits (the log is behind) or is refused
// for another reason anyway.
bool Executor::HasMemory() {
  if (engine_->memory_denied.load(std::memory_order_relaxed)) [[unlikely]]
    return false;
  Eviction& eviction = engine_->eviction();
  if (!eviction.due()) [[likely]]
    return true;
  return !eviction.may_run() || eviction.Evict(*worker_, kEvictedPerCommandMax) > 0 ||
         !eviction.due();
}

void Executor::Queue(ClientState& client, const CommandSpec& spec, Args args, ReplyWriter& reply) {
  QueuedCommand queued;
  queued.spec = &spec;
  size_t bytes = 0;
  for (const std::string_view arg : args) bytes += arg.size();
  queued.bytes.reserve(bytes);
  queued.lengths.reserve(args.size());
  for (const std::string_view arg : args) {
    queued.bytes.append(arg);
    queued.lengths.push_back(static_cast<uint32_t>(arg.size()));
  }
  client.queue_bytes += bytes + args.size() * sizeof(uint32_t);
  client.queue.push_back(std::move(queued));
  reply.Simple("QUEUED");
}

bool Executor::MustWait(const CommandSpec& spec, const ClientState& client) const {
  const bool exec = client.in_multi && spec.Has(command_flag::kImmediateInMulti);
  if (!spec.Has(command_flag::kWrite) && !exec) return false;
  EpochClock& epochs = engine_->epochs();
  if (epochs.writes_wait()) return true;
  const uint64_t epoch = epochs.current();
  return EpochOf(worker_->last_lsn) == epoch &&
         (worker_->last_lsn & kLsnCountMask) > kEpochCommitsMax;
}

DispatchResult Executor::Dispatch(ClientState& client, const CommandSpec* spec, Args args,
                                  ReplyWriter& reply) {
  if (spec == nullptr) {
    RejectUnknown(client, args, reply);
    return {};
  }
  if (Refuse(client, *spec, args, reply)) {
    client.pending.reset();
    return {.spec = spec};
  }
  if (client.in_multi && !spec->Has(command_flag::kImmediateInMulti)) {
    Queue(client, *spec, args, reply);
    return {.spec = spec};
  }
  if (MustWait(*spec, client)) return {.kind = DispatchResult::Kind::kRetry, .spec = spec};
  const uint64_t errors = reply.errors();
  const uint64_t start = worker_->cycle_mark != 0 ? worker_->cycle_mark : CycleNow();
  worker_->blocked_ns = 0;
  DispatchResult result = Run(client, *spec, args, reply);
  worker_->cycle_mark = CycleNow();
  result.spec = spec;
  if (result.kind == DispatchResult::Kind::kRetry) return result;
  if (client.pending != nullptr) [[unlikely]]
    client.pending.reset();
  const uint64_t whole_ns = CyclesToNs(worker_->cycle_mark - start);
  result.blocked_ns = std::min(worker_->blocked_ns, whole_ns);
  result.run_ns = whole_ns - result.blocked_ns;
  if (worker_->finished_count == kCommandWindow) [[unlikely]]
    CountFinished();
  worker_->finished[worker_->finished_count++] = {spec, result.run_ns, reply.errors() != errors};
  return result;
}

void Executor::CountFinished() {
  for (size_t i = 0; i < worker_->finished_count; ++i) {
    const WorkerState::FinishedRun& run = worker_->finished[i];
    CommandCounters& counters = worker_->per_command[run.spec->id];
    AddRelaxed(counters.calls, 1);
    AddRelaxed(counters.nanoseconds, run.run_ns);
    if (run.failed) AddRelaxed(counters.failed, 1);
  }
  worker_->finished_count = 0;
}

DispatchResult Executor::Run(ClientState& client, const CommandSpec& spec, Args args,
                             ReplyWriter& reply) {
  std::vector<KeyRef>& keys = worker_->key_scratch;
  keys.clear();
  const Keyspace& keyspace = engine_->keyspace();
  if (spec.get_keys != nullptr || spec.keys.last != spec.keys.first) {
    std::vector<uint32_t>& indexes = worker_->index_scratch;
    indexes.clear();
    KeysOf(spec, args, &indexes);
    FillKeys(keyspace, args, indexes, &keys);
  } else if (spec.keys.first > 0) {
    // The prefetch pass has hashed it already, if there was one.
    const KeyRef* known = std::exchange(worker_->first_key, nullptr);
    keys.push_back(known != nullptr ? *known
                                    : keyspace.MakeRef(args[static_cast<size_t>(spec.keys.first)]));
  }
  if (keys.size() > 1) PrefetchKeys(*engine_, *worker_, client.db, keys);
  Txn& txn = worker_->txn;
  CommandContext ctx{*engine_, *worker_, client, spec, args, reply, txn, keys, nullptr, false};
  txn.Begin(worker_->now_ms);
  if (spec.prepare != nullptr) {
    spec.prepare(ctx);
    if (ctx.finished) return {.hold_epoch = txn.CommitAndUnlock()};
    if (ctx.retry) {
      txn.CommitAndUnlock();
      return {.kind = DispatchResult::Kind::kRetry, .waits_for_job = true};
    }
  }
  if (spec.Has(command_flag::kWholeKeyspace)) {
    txn.StopWorld();
  } else if (keys.size() == 1) {
    txn.LockKey(keys[0]);
  } else if (!keys.empty()) {
    txn.LockKeys(keys);
  }
  spec.handler(ctx);
  const bool wrote = txn.has_effects();
  DispatchResult result{.hold_epoch = txn.CommitAndUnlock()};
  if (wrote || client.exec_finished) {
    client.last_write_epoch = std::max(client.last_write_epoch, EpochOf(worker_->last_lsn));
  }
  if (client.exec_finished) {
    client.exec_finished = false;
    Txn::Unwatch(*worker_, client);
  }
  return result;
}

namespace {

// Runs one command of an EXEC under the locks that the EXEC holds.
void RunQueued(CommandContext& exec, const QueuedCommand& queued) {
  std::vector<std::string_view> views;
  const Args args = ArgsOf(queued, &views);
  std::vector<uint32_t> indexes;
  std::vector<KeyRef> keys;
  Executor::KeysOf(*queued.spec, args, &indexes);
  FillKeys(exec.engine.keyspace(), args, indexes, &keys);
  CommandContext ctx{exec.engine, exec.worker, exec.client, *queued.spec, args,
                     exec.reply,  exec.txn,    keys,        nullptr,      false};
  const uint64_t errors = exec.reply.errors();
  const uint64_t start = CycleNow();
  if (queued.spec->prepare != nullptr) queued.spec->prepare(ctx);
  if (!ctx.finished) queued.spec->handler(ctx);
  CommandCounters& counters = exec.worker.per_command[queued.spec->id];
  AddRelaxed(counters.calls, 1);
  AddRelaxed(counters.nanoseconds, CyclesToNs(CycleNow() - start));
  if (exec.reply.errors() != errors) AddRelaxed(counters.failed, 1);
}

// What keeps a queue with writes from running now; empty: nothing.
std::string WhyNotExec(const Engine& engine, const std::vector<QueuedCommand>& queue) {
  for (const QueuedCommand& queued : queue) {
    if (queued.spec->Has(command_flag::kWrite) &&
        engine.disk_denied.load(std::memory_order_relaxed)) {
      return "MISCONF Errors writing to the AOF file: " + engine.disk_denied_reason();
    }
    if (queued.spec->Has(command_flag::kDenyOom) &&
        engine.memory_denied.load(std::memory_order_relaxed)) {
      return "OOM command not allowed when used memory > 'maxmemory'.";
    }
  }
  return "";
}

}  // namespace

void Executor::Exec(CommandContext& ctx) {
  ClientState& client = ctx.client;
  if (!client.in_multi) {
    ctx.reply.Error("ERR EXEC without MULTI");
    return;
  }
  std::vector<QueuedCommand> queue = std::move(client.queue);
  client.queue.clear();
  client.queue_bytes = 0;
  client.in_multi = false;
  client.exec_finished = true;
  if (client.multi_broken) {
    client.multi_broken = false;
    ctx.reply.Error("EXECABORT Transaction discarded because of previous errors.");
    return;
  }
  const std::string refusal = WhyNotExec(ctx.engine, queue);
  if (!refusal.empty()) {
    ctx.reply.Error("EXECABORT Transaction discarded because of: " + refusal);
    return;
  }
  bool whole = false;
  std::vector<KeyRef> keys;
  std::vector<uint32_t> indexes;
  std::vector<std::string_view> views;
  const Keyspace& keyspace = ctx.engine.keyspace();
  for (const QueuedCommand& queued : queue) {
    whole |= TouchesKeyspaceWithoutKeys(*queued.spec);
    const Args args = ArgsOf(queued, &views);
    indexes.clear();
    KeysOf(*queued.spec, args, &indexes);
    FillKeys(keyspace, args, indexes, &keys);
  }
  for (const WatchedKey& watched : client.watched) keys.push_back(keyspace.MakeRef(watched.key));
  whole ? ctx.txn.StopWorld() : ctx.txn.LockKeys(keys);
  if (ctx.txn.WatchBroken(client)) {
    ctx.reply.NullArray();
    return;
  }
  client.in_exec = true;
  ctx.reply.ArrayHeader(queue.size());
  for (const QueuedCommand& queued : queue) RunQueued(ctx, queued);
  client.in_exec = false;
}

}  // namespace hotkv
