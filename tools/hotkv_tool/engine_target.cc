#include "tools/hotkv_tool/engine_target.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "engine/base/clock.h"
#include "engine/base/limits.h"
#include "engine/commands/command_context.h"

namespace hotkv {

namespace {

constexpr std::chrono::milliseconds kRetryAfter{1};
constexpr int kRetriesMax = 60'000;
constexpr uint64_t kCommandsPerTurn = 256;

void Select(CommandContext& ctx) {
  int64_t db = 0;
  if (!ctx.ParseInt(1, &db)) return;
  if (db < 0 || db >= static_cast<int64_t>(ctx.engine.keyspace().databases())) {
    ctx.reply.Error("ERR DB index is out of range");
    return;
  }
  ctx.client.db = static_cast<uint32_t>(db);
  ctx.reply.Ok();
}

constexpr CommandSpec kSelect[] = {{.name = "select",
                                    .arity = 2,
                                    .flags = command_flag::kFast,
                                    .acl = acl_category::kConnection | acl_category::kFast,
                                    .handler = Select,
                                    .group = "connection"}};

Result<RespValue> ParseReply(const std::string& bytes) {
  RespReplyParser parser;
  parser.Feed(bytes);
  HOTKV_ASSIGN_OR_RETURN(auto value, parser.Next());
  if (!value) return Status::Internal("a command gave no reply");
  return std::move(*value);
}

}  // namespace

std::span<const std::span<const CommandSpec>> ToolCommandFamilies() {
  static const std::vector<std::span<const CommandSpec>> families = {
      StringCommands(), GenericCommands(), TransactionCommands(), VectorCommands(), kSelect};
  return families;
}

EngineTarget::EngineTarget(Engine* engine) : engine_(engine) {
  for (unsigned i = 0; i < engine->workers(); ++i) lanes_.emplace_back(engine, i).client.id = i + 1;
}

std::string EngineTarget::Objection(Args args) const {
  const CommandSpec* spec = lanes_[0].executor.Lookup(args);
  if (spec == nullptr) {
    return "unknown command '" + std::string(args[0].substr(0, 64)) + "' (offline only keys and vectors can be changed)";
  }
  if (!spec->ArityFits(args.size())) {
    return "wrong number of arguments for '" + std::string(spec->name) + "'";
  }
  return {};
}

Result<RespValue> EngineTarget::Run(unsigned lane_number, Args args) {
  Lane& lane = lanes_[lane_number];
  WorkerState& worker = engine_->worker(lane_number);
  OutputChain chain(&lane.pool);
  const CommandSpec* spec = lane.executor.Lookup(args);
  for (int tries = 0; tries < kRetriesMax; ++tries) {
    worker.now_ms = Clock::NowMs();
    ReplyWriter reply(&chain);
    engine_->gate().Enter(lane_number);
    const DispatchResult result = lane.executor.Dispatch(lane.client, spec, args, reply);
    engine_->gate().Leave(lane_number);
    if (result.kind == DispatchResult::Kind::kDone) return ParseReply(chain.ToString());
    std::this_thread::sleep_for(kRetryAfter);
  }
  return Status::Busy("the log takes no more effects");
}

void EngineTarget::EndTurn(unsigned worker) {
  engine_->gate().Enter(worker);
  engine_->TurnEnd(engine_->worker(worker), kTurnBudgetNs);
  engine_->gate().Leave(worker);
}

Status EngineTarget::Submit(const Submission& submission) {
  Lane& lane = lanes_[submission.lane];
  const uint32_t db = submission.db == Submission::kSameDb ? lane.client.db : submission.db;
  if (db >= engine_->keyspace().databases()) {
    NoteRefused(submission.position, "no such database");
    return Status::Ok();
  }
  if (lanes_.size() == 1 || !EqualsIgnoreCase(submission.args[0], "VSIM.SET")) {
    HOTKV_RETURN_IF_ERROR(Drain());
    lane.client.db = db;
    HOTKV_ASSIGN_OR_RETURN(const RespValue reply, Run(submission.lane, submission.args));
    Note(reply, submission.position);
    if (++since_turn_end_ % kCommandsPerTurn == 0) EndTurn(submission.lane);
    return Status::Ok();
  }
  Queued& queued = lane.queue.emplace_back();
  queued.db = db;
  queued.position = submission.position;
  for (const std::string_view arg : submission.args) {
    queued.bytes.append(arg);
    queued.lengths.push_back(arg.size());
  }
  return lane.queue.size() >= kQueuedMax ? Drain() : Status::Ok();
}

void EngineTarget::RunQueue(unsigned lane_number) {
  Lane& lane = lanes_[lane_number];
  std::vector<std::string_view> args;
  for (const Queued& queued : lane.queue) {
    args.clear();
    size_t at = 0;
    for (const size_t length : queued.lengths) {
      args.emplace_back(queued.bytes.data() + at, length);
      at += length;
    }
    lane.client.db = queued.db;
    Result<RespValue> reply = Run(lane_number, args);
    if (reply.ok() && !reply->is_error()) {
      ++lane.answered;
    } else {
      lane.answers.emplace_back(queued.position, std::move(reply));
    }
  }
  lane.queue.clear();
  EndTurn(lane_number);
}

Status EngineTarget::EnterDb(uint32_t db) {
  if (db >= engine_->keyspace().databases()) return Status::InvalidArgument("no such database");
  lanes_[0].client.db = db;
  return Status::Ok();
}

Status EngineTarget::Drain() {
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < lanes_.size(); ++i) {
    if (!lanes_[i].queue.empty()) threads.emplace_back([this, i] { RunQueue(i); });
  }
  if (!lanes_[0].queue.empty()) RunQueue(0);
  for (std::thread& thread : threads) thread.join();
  Status failure;
  for (Lane& lane : lanes_) {
    NoteApplied(std::exchange(lane.answered, 0));
    for (const auto& [position, reply] : lane.answers) {
      if (!reply.ok() && failure.ok()) failure = reply.status();
      NoteRefused(position, reply.ok() ? reply->text : reply.status().message());
    }
    lane.answers.clear();
  }
  return failure;
}

Result<RespValue> EngineTarget::Ask(Args args, uint32_t db) {
  HOTKV_RETURN_IF_ERROR(Drain());
  if (db != Submission::kSameDb) lanes_[0].client.db = db;
  return Run(0, args);
}

}  // namespace hotkv
