#include "server/commands/client_pause.h"

#include <algorithm>

namespace hotkv {

namespace {

bool Writes(const CommandSpec& spec) {
  return spec.Has(command_flag::kWrite | command_flag::kMayReplicate);
}

}  // namespace

void ClientPause::Pause(Mode mode, int64_t until_ms) {
  if (active()) {
    mode = std::max(mode, mode_.load(std::memory_order_relaxed));
    until_ms = std::max(until_ms, until_ms_.load(std::memory_order_relaxed));
  }
  until_ms_.store(until_ms, std::memory_order_relaxed);
  mode_.store(mode, std::memory_order_relaxed);
}

void ClientPause::Unpause() { mode_.store(Mode::kNone, std::memory_order_relaxed); }

ClientPause::Mode ClientPause::mode(int64_t now_ms) {
  const Mode mode = mode_.load(std::memory_order_relaxed);
  if (mode == Mode::kNone || now_ms < until_ms_.load(std::memory_order_relaxed)) return mode;
  Unpause();
  return Mode::kNone;
}

bool ClientPause::HoldsSlow(const CommandSpec& spec, const ClientState& client, int64_t now_ms) {
  switch (mode(now_ms)) {
    case Mode::kNone:
      return false;
    case Mode::kAll:
      return true;
    case Mode::kWrite:
      break;
  }
  if (spec.name != "exec") return Writes(spec) && !client.in_multi;
  return std::any_of(client.queue.begin(), client.queue.end(),
                     [](const QueuedCommand& queued) { return Writes(*queued.spec); });
}

}  // namespace hotkv
