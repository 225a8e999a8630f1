// The part of the worker that executes requests: from received bytes to replies in the output
// chain.

#include <algorithm>
#include <utility>

#include "engine/base/clock.h"
#include "engine/base/cycle_clock.h"
#include "engine/base/log.h"
#include "engine/commands/command_context.h"
#include "engine/tx/engine.h"
#include "server/server.h"
#include "server/session/worker.h"

namespace hotkv {

namespace {

constexpr size_t kPauseReceiveBytes =
    size_t{1} << 20;  // waiting for execution; the socket then fills up instead
constexpr uint64_t kSlowCommandNs = 1'000'000;  // after such a one the turn's time is read again

// What a browser sends when a web page makes it talk to us: such a connection is dropped without an
// answer.
bool LooksLikeHttp(std::string_view name) {
  return EqualsIgnoreCase(name, "POST") || EqualsIgnoreCase(name, "HOST:");
}

}  // namespace

bool Worker::MayExecute(const Client& client) const {
  return !(client.parked || client.waits || client.closing || client.close_after_reply);
}

void Worker::OnData(Connection& connection, std::string_view bytes) {
  Client& client = Client::Of(connection);
  if (client.closing || client.close_after_reply) return;
  client.last_active_ms = state_.now_ms;
  if (client.in.empty() && MayExecute(client)) {
    const size_t done = Execute(client, bytes);
    if (done < bytes.size() && !client.closing) client.in.Append(bytes.substr(done));
    AfterExecution(client);
    return;
  }
  client.in.Append(bytes);
  if (client.in_backlog || !MayExecute(client)) return AfterExecution(client);
  ExecuteBuffered(client);
}

void Worker::ExecuteBuffered(Client& client) {
  if (!client.in.empty() && MayExecute(client)) {
    client.in.Consume(Execute(client, {client.in.data(), client.in.size()}));
  }
  AfterExecution(client);
}

void Worker::AfterExecution(Client& client) {
  if (client.closing) return;
  if (!client.out.empty()) {
    if (!client.holds.empty()) SetSendLimit(client);
    loop_->QueueSend(client);
    if (OverOutputLimit(client)) return;
  } else if (client.close_after_reply) {
    return CloseLater(client);
  }
  if (client.in.size() > limits_.query_bytes_max) {
    Publish(client);
    Log(LogLevel::kWarning, "Closing client that reached max query buffer length: " +
                                DescribeClient(client, state_.now_ms));
    server_->stats().query_buffer_limit_disconnections.fetch_add(1, std::memory_order_relaxed);
    return CloseLater(client);
  }
  // A request that is still arriving must go on arriving; only what waits for execution holds the
  // sender back.
  const bool held_up = client.in_backlog || client.parked || client.waits;
  if (held_up && client.in.size() > kPauseReceiveBytes) {
    loop_->Pause(client);
  } else if (client.loop.paused) {
    loop_->Resume(client);
  }
  if (client.peer_closed && !client.in_backlog && !client.waits) FinishAfterPeerClosed(client);
  Publish(client);
}

size_t Worker::Execute(Client& client, std::string_view data) {
  state_.cycle_mark = CycleNow();
  slice_end_cycles_ = state_.cycle_mark + budget_cycles_;
  size_t done = 0;
  for (;;) {
    batch_.Clear();
    ParseLimits limits = limits_.parse;
    if (!client.authenticated) [[unlikely]] {
      // One at a time: the limits end with the request that authenticates.
      limits.authenticated = false;
      limits.requests_max = 1;
    }
    const RequestParser::Parsed parsed = client.parser.Parse(data.substr(done), limits, &batch_);
    Stop stop = Stop::kNo;
    const size_t executed = RunBatch(client, &stop);
    RecordFinished();
    state_.first_key = nullptr;  // a refused command leaves it
    AddRelaxed(state_.commands, executed);
    client.commands += executed;
    if (executed < batch_.size()) {
      if (executed > 0) done += batch_.EndOffset(executed - 1);
      client.parser.Rewind();
      if (stop == Stop::kBudget && !client.in_backlog) {
        client.in_backlog = true;
        backlog_.push_back(&client);
      }
      return client.closing ? data.size() : done;
    }
    done += parsed.consumed;
    if (parsed.outcome == RequestParser::Outcome::kError) {
      ProtocolError(client);
      return data.size();
    }
    if (parsed.outcome == RequestParser::Outcome::kNeedMore || !MayExecute(client)) return done;
  }
}

void Worker::ProtocolError(Client& client) {
  if (client.closing || client.close_after_reply) return;
  client.reply.Error("ERR " + client.parser.error());
  if (!client.holds.empty()) ++client.held_replies;
  client.close_after_reply = true;
  if (LogEnabled(LogLevel::kVerbose)) {
    Log(LogLevel::kVerbose,
        client.parser.error() + " from client: " + DescribeClient(client, state_.now_ms));
  }
}

// Returns how many requests were executed; all, unless *stop says why not.
size_t Worker::RunBatch(Client& client, Stop* stop) {
  const size_t size = batch_.size();
  for (size_t first = 0; first < size; first += kCommandWindow) {
    const size_t count = std::min<size_t>(kCommandWindow, size - first);
    Prefetch(client, first, count);
    for (size_t i = 0; i < count; ++i) {
      if (!MayExecute(client)) [[unlikely]] {
        *stop = Stop::kBlocked;
        return first + i;
      }
      state_.first_key = first_keys_[i];
      *stop = RunOne(client, specs_[i], batch_[first + i]);
      if (*stop == Stop::kBlocked) [[unlikely]]
        return first + i;
      if (*stop == Stop::kBudget && first + i + 1 < size) [[unlikely]]
        return first + i + 1;
    }
  }
  *stop = Stop::kNo;
  return size;
}

// Passes over the window, so that the cache misses of its commands overlap: stripe, table, chunk,
// entry. They only look, under a reclaim pin; a wrong guess (a SELECT in the window) costs nothing
// but its use.
void Worker::Prefetch(const Client& client, size_t first, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    specs_[i] = executor_.Lookup(batch_[first + i]);
    first_keys_[i] = nullptr;
  }
  if (count == 1) return;
  const Keyspace& keyspace = engine_->keyspace();
  const uint32_t db = client.db;
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    std::string_view key;
    if (specs_[i] == nullptr || !Executor::FirstKey(*specs_[i], batch_[first + i], &key)) continue;
    refs_[used] = keyspace.MakeRef(key);
    first_keys_[i] = &refs_[used];
    keyspace.PrefetchStripe(refs_[used++]);
  }
  const ReclaimPin pin(engine_->reclaim(), state_.reclaim_slot);
  for (size_t i = 0; i < used; ++i) keyspace.PrefetchTable(refs_[i], db);
  for (size_t i = 0; i < used; ++i) keyspace.PrefetchChunk(refs_[i], db);
  for (size_t i = 0; i < used; ++i) keyspace.PrefetchEntry(refs_[i], db);
}

Worker::Stop Worker::RunOne(Client& client, const CommandSpec* spec, Args args) {
  const bool unusual = !client.authenticated || client.reply_mode != ReplyMode::kOn ||
                       spec == nullptr || client.no_touch || server_->pause().active() ||
                       (spec->acl & acl_category::kConnection) != 0;
  if (unusual) [[unlikely]]
    return RunUnusual(client, spec, args);
  return Dispatch(client, spec, args);
}

// Commands that need a look before or after: no password yet, replies switched off, clients paused.
Worker::Stop Worker::RunUnusual(Client& client, const CommandSpec* spec, Args args) {
  if (spec == nullptr && LooksLikeHttp(args[0])) {
    Log(LogLevel::kWarning,
        "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: "
        "commands to HotKV. This is "
        "likely due to an attacker attempting to use Cross Protocol Scripting. Connection "
        "aborted: " +
            client.peer_address);
    CloseLater(client);
    return Stop::kNo;
  }
  if (spec != nullptr && !client.authenticated && !spec->Has(command_flag::kNoAuth) &&
      spec->ArityFits(args.size())) {
    client.reply.Error("NOAUTH Authentication required.");
    server_->recorder().RecordError(id_, "NOAUTH");
    return Stop::kNo;
  }
  if (spec != nullptr && server_->pause().Holds(*spec, client, state_.now_ms)) {
    WaitLater(client, WaitCause::kPause);
    return Stop::kBlocked;
  }
  client.last_command = spec;
  Publish(client);  // CLIENT LIST shows its own client as it is now
  if (client.no_touch && spec != nullptr && spec->name != "touch") {
    state_.txn.SetTouch(false);
    const Stop stop = DispatchByReplyMode(client, spec, args);
    state_.txn.SetTouch(true);
    return stop;
  }
  return DispatchByReplyMode(client, spec, args);
}

Worker::Stop Worker::DispatchByReplyMode(Client& client, const CommandSpec* spec, Args args) {
  if (client.reply_mode == ReplyMode::kOn) return Dispatch(client, spec, args);

  const ReplyMode before = client.reply_mode;
  if (before == ReplyMode::kSkipNext) client.reply_mode = ReplyMode::kOn;
  const OutputChain::Mark mark = client.out.Here();
  const Stop stop = Dispatch(client, spec, args);
  const bool switched_on = before == ReplyMode::kOff && client.reply_mode == ReplyMode::kOn;
  if (stop == Stop::kBlocked) client.reply_mode = before;
  if (switched_on || stop == Stop::kBlocked) return stop;
  client.out.Rewind(mark);
  if (client.held_replies > 0) --client.held_replies;
  while (!client.holds.empty() && client.holds.back().begin >= client.out.bytes_appended())
    client.holds.pop_back();
  return stop;
}

// Its next command is tried again when the log has moved or the pause is over.
void Worker::WaitLater(Client& client, WaitCause cause) {
  client.waits = true;
  client.wait_cause = cause;
  if (client.waits_since_ns == 0) client.waits_since_ns = Clock::MonotonicNs();
  waiting_.push_back(&client);
}

Worker::Stop Worker::Dispatch(Client& client, const CommandSpec* spec, Args args) {
  // A command without a key may ask for the statistics.
  const bool reads_statistics = spec != nullptr && spec->keys.first <= 0;
  if (reads_statistics || state_.finished_count == kCommandWindow) RecordFinished();
  const uint64_t begin = client.out.bytes_appended();
  const uint64_t errors_before = client.reply.errors();
  const DispatchResult result = executor_.Dispatch(client, spec, args, client.reply);
  if (result.kind == DispatchResult::Kind::kRetry) [[unlikely]] {
    WaitLater(client, result.waits_for_job ? WaitCause::kJob : WaitCause::kLog);
    return Stop::kBlocked;
  }
  client.last_command = result.spec;
  const std::optional<uint64_t> slowlog_id = Account(client, result, args, errors_before);
  if (always_ && !disk_denied_) [[unlikely]] {
    Hold(client, begin, result.hold_epoch);
    if (slowlog_id && !client.holds.empty()) {
      slow_waits_.push_back({*slowlog_id, client.holds.back().epoch, Clock::MonotonicNs()});
    }
  }
  return state_.cycle_mark > slice_end_cycles_ ? Stop::kBudget : Stop::kNo;
}

std::optional<uint64_t> Worker::Account(Client& client, const DispatchResult& result, Args args,
                         uint64_t errors_before) {
  CommandRecorder& recorder = server_->recorder();
  const uint64_t errors = client.reply.errors() - errors_before;
  if (errors > 0) [[unlikely]] {
    AddRelaxed(state_.error_replies, errors);
    recorder.RecordError(id_, client.reply.last_error_prefix());
  }
  auto waited_ns = static_cast<int64_t>(result.blocked_ns);
  if (client.waits_since_ns != 0) [[unlikely]] {
    const auto run_ns = static_cast<int64_t>(result.run_ns + result.blocked_ns);
    const int64_t since_ns = std::exchange(client.waits_since_ns, 0);
    const int64_t before_ns = std::max<int64_t>(0, Clock::MonotonicNs() - since_ns - run_ns);
    state_.AddWait(client.wait_cause, static_cast<uint64_t>(before_ns));
    waited_ns += before_ns;
  }
  if (result.spec == nullptr) return {};
  std::optional<uint64_t> slowlog_id;
  if (recorder.NeedsAttention(static_cast<int64_t>(result.run_ns))) [[unlikely]] {
    slowlog_id = RecordSlow(client, result, args, waited_ns);
  }
  if (result.run_ns > kSlowCommandNs) [[unlikely]]
    RefreshTime();
  return slowlog_id;
}

void Worker::RecordFinished() {
  CommandRecorder& recorder = server_->recorder();
  if (recorder.track_latency()) {
    for (size_t i = 0; i < state_.finished_count; ++i) {
      recorder.AddLatency(id_, state_.finished[i].spec->id, state_.finished[i].run_ns);
    }
  }
  executor_.CountFinished();
}

std::optional<uint64_t> Worker::RecordSlow(Client& client, const DispatchResult& result, Args args,
                            int64_t waited_ns) {
  SlowCommand slow;
  slow.spec = result.spec;
  slow.args = args;
  slow.run_ns = static_cast<int64_t>(result.run_ns);
  slow.waited_ns = waited_ns;
  slow.client_addr = client.peer_address;
  {
    std::lock_guard<std::mutex> lock(client.shared.mutex);
    slow.client_name = client.shared.name;
  }
  return server_->recorder().RecordSlow(slow);
}

// Replies from `begin` on wait for the epoch. What is behind a waiting reply waits with it,
// whatever its own epoch.
void Worker::Hold(Client& client, uint64_t begin, uint64_t epoch) {
  if (!client.holds.empty()) ++client.held_replies;
  if (epoch <= durable_ || (!client.holds.empty() && client.holds.back().epoch >= epoch)) return;
  if (client.holds.empty()) {
    // Not noted in durable_: the turn that sees the log move must release the others' holds.
    if (epoch <= engine_->epochs().durable()) return;
    client.held_replies = 1;
    if (!client.in_holding) holding_.push_back(&client);
    client.in_holding = true;
  }
  client.holds.push_back({begin, epoch, Clock::MonotonicNs()});
  sync_wanted_ = true;
}

void Worker::SetSendLimit(Client& client) {
  client.send_limit = client.holds.empty() ? UINT64_MAX : client.holds.front().begin;
}

void Worker::EndHold(Client& client) {
  const int64_t waited_ns = Clock::MonotonicNs() - client.holds.front().since_ns;
  state_.AddWait(WaitCause::kDurability, static_cast<uint64_t>(waited_ns));
  client.holds.pop_front();
}

void Worker::EndSlowWaits(uint64_t epoch) {
  const int64_t now_ns = Clock::MonotonicNs();
  std::erase_if(slow_waits_, [&](const SlowWait& wait) {
    if (wait.epoch > epoch) return false;
    server_->recorder().slowlog().AddWait(wait.slowlog_id, (now_ns - wait.since_ns) / 1000);
    return true;
  });
}

void Worker::ReleaseHolds() {
  EndSlowWaits(durable_);
  std::erase_if(holding_, [&](Client* client) {
    while (!client->holds.empty() && client->holds.front().epoch <= durable_) EndHold(*client);
    SetSendLimit(*client);
    loop_->QueueSend(*client);
    client->in_holding = !client->holds.empty();
    return client->holds.empty();
  });
}

// The disk has failed: nobody can say whether what was done will survive. Held replies become
// errors that say so.
void Worker::FailHolds() {
  const std::string reason = engine_->disk_denied_reason();
  EndSlowWaits(UINT64_MAX);
  for (Client* client : holding_) {
    client->in_holding = false;
    if (client->holds.empty()) continue;
    client->out.DropFrom(client->holds.front().begin);
    for (uint64_t i = 0; i < client->held_replies; ++i) {
      client->reply.Error(
          "MISCONF The log could not be made durable, the outcome of this command is unknown: " +
          reason);
    }
    while (!client->holds.empty()) EndHold(*client);
    SetSendLimit(*client);
    loop_->QueueSend(*client);
  }
  holding_.clear();
}

void Worker::RetryWaiting() {
  if (waiting_.empty()) return;
  std::vector<Client*> again = std::move(waiting_);
  waiting_.clear();
  for (Client* client : again) {
    client->waits = false;
    if (!client->closing) ExecuteBuffered(*client);
  }
}

void Worker::RunBacklog() {
  if (backlog_.empty()) return;
  std::vector<Client*> again = std::move(backlog_);
  backlog_.clear();
  for (Client* client : again) {
    client->in_backlog = false;
    if (!client->closing) ExecuteBuffered(*client);
  }
}

void Worker::AskParked() {
  for (size_t i = 0; i < parked_.size();) {
    Client& client = *parked_[i];
    const bool expired =
        client.parked_deadline_ms != 0 && state_.now_ms >= client.parked_deadline_ms;
    if (client.closing) {
      parked_[i] = parked_.back();
      parked_.pop_back();
    } else if (client.parked_on(client, expired) || expired) {
      Unpark(client);  // takes it out of the list
    } else {
      ++i;
    }
  }
}

void Worker::Unpark(Client& client) {
  std::erase(parked_, &client);
  client.parked = false;
  client.parked_on = nullptr;
  client.shared.parked.store(false, std::memory_order_relaxed);
  ExecuteBuffered(client);
}

void Worker::EndWait(Client& client, std::string_view error) {
  if (!client.parked || client.closing) return;
  if (error.empty()) {
    client.parked_on(client, true);
  } else {
    client.reply.Error(error);
  }
  Unpark(client);
}

}  // namespace hotkv
