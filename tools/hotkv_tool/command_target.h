// CommandTarget: where an import's commands go, a running server or an engine in this process.
//
// Commands are submitted to lanes and answered later: those of one lane run in their order, those of different lanes side
// by side. An error reply is a refusal: it is noted with the command's position and does not end the run; what cannot be
// gone on after (a lost connection, a disk error) is a Status.
//
// Thread rules: one thread calls it; an implementation may use threads of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/resp_client.h"
#include "engine/base/result.h"
#include "engine/commands/command_spec.h"

namespace hotkv {

struct Refusal {
  uint64_t position = 0;
  std::string text;
};

struct Submission {
  static constexpr uint32_t kSameDb = ~uint32_t{0};
  Args args;
  uint32_t db = kSameDb;  // kSameDb: whatever database the lane is in
  unsigned lane = 0;
  uint64_t position = 0;
};

class CommandTarget {
 public:
  virtual ~CommandTarget() = default;

  virtual unsigned lanes() const = 0;
  // What is wrong with a command before it is run, where the target can tell; empty: nothing known.
  virtual std::string Objection(Args) const { return {}; }
  virtual Status Submit(const Submission& submission) = 0;
  // The database that commands submitted to lane 0 with kSameDb begin in.
  virtual Status EnterDb(uint32_t db) = 0;
  // Waits until all that was submitted has been answered.
  virtual Status Drain() = 0;
  // Drains and runs one command; an error reply is a value.
  virtual Result<RespValue> Ask(Args args, uint32_t db) = 0;
  // Drains, and makes everything durable where that is the target's business.
  virtual Status Finish() = 0;

  uint64_t applied() const { return applied_; }
  uint64_t refused() const { return refused_; }
  // The first ones since the last call, in no order over lanes.
  std::vector<Refusal> TakeRefusals();

 protected:
  // Counts an answer.
  void Note(const RespValue& reply, uint64_t position);
  void NoteApplied(uint64_t count) { applied_ += count; }
  void NoteRefused(uint64_t position, std::string text);

 private:
  static constexpr size_t kRefusalsKept = 100;
  uint64_t applied_ = 0;
  uint64_t refused_ = 0;
  std::vector<Refusal> refusals_;
};

// The first error in a reply, also inside the array that EXEC answers; null: none.
const RespValue* FindError(const RespValue& reply);

}  // namespace hotkv
