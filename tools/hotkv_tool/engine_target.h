// EngineTarget: commands to an engine in this process, one lane a worker. Lane 0 runs commands at once on the caller's
// thread; vectors of all lanes are gathered and run in parallel, since linking them is what takes time.
//
// Commands offered: the engine's families and SELECT. Objection() tells an unknown command or a wrong number of arguments
// before anything has run.
//
// Thread rules: as CommandTarget; nobody else may use the engine's workers meanwhile.
// Errors: kBusy when the log takes nothing any more.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/tx/client_state.h"
#include "engine/tx/engine.h"
#include "engine/tx/executor.h"
#include "tools/hotkv_tool/command_target.h"

namespace hotkv {

// The families of commands that tools run in process; constant.
std::span<const std::span<const CommandSpec>> ToolCommandFamilies();

class EngineTarget : public CommandTarget {
 public:
  // The engine was built with a table of ToolCommandFamilies().
  explicit EngineTarget(Engine* engine);

  unsigned lanes() const override { return static_cast<unsigned>(lanes_.size()); }
  std::string Objection(Args args) const override;
  Status Submit(const Submission& submission) override;
  Status EnterDb(uint32_t db) override;
  Status Drain() override;
  Result<RespValue> Ask(Args args, uint32_t db) override;
  Status Finish() override { return Drain(); }

 private:
  static constexpr size_t kQueuedMax = 512;  // commands a lane

  struct Queued {
    std::string bytes;
    std::vector<size_t> lengths;
    uint32_t db = 0;
    uint64_t position = 0;
  };
  struct Lane {
    Lane(Engine* engine, unsigned worker) : executor(engine, &engine->worker(worker)) {}
    Executor executor;
    ClientState client;
    BlockPool pool;
    std::vector<Queued> queue;
    std::vector<std::pair<uint64_t, Result<RespValue>>> answers;  // errors only
    uint64_t answered = 0;
  };

  Result<RespValue> Run(unsigned lane, Args args);
  void RunQueue(unsigned lane);
  void EndTurn(unsigned worker);

  Engine* const engine_;
  std::deque<Lane> lanes_;
  uint64_t since_turn_end_ = 0;
};

}  // namespace hotkv
