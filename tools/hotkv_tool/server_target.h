// ServerTarget: commands to a running server, pipelined over one connection a lane. At most two batches a lane are under
// way, so memory stays flat however slow the server is.
//
// Thread rules: as CommandTarget. Errors: those of RespClient; a server that stops answering is one.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "engine/base/resp_client.h"
#include "tools/hotkv_tool/command_target.h"

namespace hotkv {

class ServerTarget : public CommandTarget {
 public:
  static Result<std::unique_ptr<ServerTarget>> Connect(const RespAddress& address, unsigned lanes);

  unsigned lanes() const override { return static_cast<unsigned>(lanes_.size()); }
  Status Submit(const Submission& submission) override;
  Status EnterDb(uint32_t db) override;
  Status Drain() override;
  Result<RespValue> Ask(Args args, uint32_t db) override;
  Status Finish() override { return Drain(); }

 private:
  static constexpr size_t kBatchCommands = 512;
  static constexpr size_t kBatchBytes = size_t{1} << 20;

  struct Pending {
    uint64_t position = 0;
    bool counts = true;  // false: a SELECT of our own
  };
  struct Lane {
    std::unique_ptr<RespClient> client;
    uint32_t db = 0;
    bool db_known = true;
    std::deque<Pending> sent;
    std::vector<Pending> filling;
  };

  ServerTarget() = default;
  void Append(Lane& lane, Args args, Pending pending);
  void SelectDb(Lane& lane, uint32_t db, uint64_t position);
  // Sends what was gathered and reads the answers to what was sent before that.
  Status Turn();
  Status ReadReplies(Lane& lane, size_t count);

  std::vector<Lane> lanes_;
  size_t filling_commands_ = 0;
  size_t filling_bytes_ = 0;
};

}  // namespace hotkv
