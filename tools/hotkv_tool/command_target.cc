#include "tools/hotkv_tool/command_target.h"

#include <utility>

namespace hotkv {

const RespValue* FindError(const RespValue& reply) {
  if (reply.is_error()) return &reply;
  for (const RespValue& item : reply.items) {
    if (const RespValue* error = FindError(item)) return error;
  }
  return nullptr;
}

std::vector<Refusal> CommandTarget::TakeRefusals() { return std::exchange(refusals_, {}); }

void CommandTarget::NoteRefused(uint64_t position, std::string text) {
  ++refused_;
  if (refusals_.size() < kRefusalsKept) refusals_.push_back({position, std::move(text)});
}

void CommandTarget::Note(const RespValue& reply, uint64_t position) {
  const RespValue* error = FindError(reply);
  if (error == nullptr) {
    ++applied_;
  } else {
    NoteRefused(position, error->text);
  }
}

}  // namespace hotkv
