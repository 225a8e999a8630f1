#include "tools/hotkv_tool/server_target.h"

#include "engine/commands/command_context.h"
#include "tools/hotkv_tool/record_commands.h"

namespace hotkv {

Result<std::unique_ptr<ServerTarget>> ServerTarget::Connect(const RespAddress& address, unsigned lanes) {
  std::unique_ptr<ServerTarget> target(new ServerTarget);
  for (unsigned i = 0; i < lanes; ++i) {
    Lane& lane = target->lanes_.emplace_back();
    HOTKV_ASSIGN_OR_RETURN(lane.client, RespClient::Connect(address));
    lane.db = static_cast<uint32_t>(address.database);
  }
  return target;
}

void ServerTarget::Append(Lane& lane, Args args, Pending pending) {
  lane.client->Append(args);
  lane.filling.push_back(pending);
  ++filling_commands_;
  for (const std::string_view arg : args) filling_bytes_ += arg.size();
}

void ServerTarget::SelectDb(Lane& lane, uint32_t db, uint64_t position) {
  if (db == Submission::kSameDb || (lane.db_known && lane.db == db)) return;
  CommandLine line;
  MakeSelect(db, &line);
  Append(lane, line.args(), {position, false});
  lane.db = db;
  lane.db_known = true;
}

Status ServerTarget::Submit(const Submission& submission) {
  Lane& lane = lanes_[submission.lane];
  SelectDb(lane, submission.db, submission.position);
  // Only the server knows whether a SELECT of the input's takes effect.
  if (EqualsIgnoreCase(submission.args[0], "SELECT")) lane.db_known = false;
  Append(lane, submission.args, {submission.position, true});
  const bool full = filling_commands_ >= kBatchCommands * lanes_.size() || filling_bytes_ >= kBatchBytes;
  return full ? Turn() : Status::Ok();
}

Status ServerTarget::Turn() {
  for (Lane& lane : lanes_) {
    if (lane.filling.empty()) continue;
    HOTKV_RETURN_IF_ERROR(lane.client->Flush());
  }
  for (Lane& lane : lanes_) {
    HOTKV_RETURN_IF_ERROR(ReadReplies(lane, lane.sent.size()));
    lane.sent.insert(lane.sent.end(), lane.filling.begin(), lane.filling.end());
    lane.filling.clear();
  }
  filling_commands_ = 0;
  filling_bytes_ = 0;
  return Status::Ok();
}

Status ServerTarget::ReadReplies(Lane& lane, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    HOTKV_ASSIGN_OR_RETURN(const RespValue reply, lane.client->Read());
    const Pending pending = lane.sent.front();
    lane.sent.pop_front();
    if (pending.counts || reply.is_error()) Note(reply, pending.position);
  }
  return Status::Ok();
}

Status ServerTarget::EnterDb(uint32_t db) {
  SelectDb(lanes_[0], db, 0);
  return Status::Ok();
}

Status ServerTarget::Drain() {
  HOTKV_RETURN_IF_ERROR(Turn());
  for (Lane& lane : lanes_) HOTKV_RETURN_IF_ERROR(ReadReplies(lane, lane.sent.size()));
  return Status::Ok();
}

Result<RespValue> ServerTarget::Ask(Args args, uint32_t db) {
  Lane& lane = lanes_[0];
  SelectDb(lane, db, 0);
  HOTKV_RETURN_IF_ERROR(Drain());
  return lane.client->Call(args);
}

}  // namespace hotkv
