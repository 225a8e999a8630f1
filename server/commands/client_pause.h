// ClientPause: CLIENT PAUSE's state. The worker asks before it runs a command; a command that is
// held back is tried again until the pause is over. While writes are paused nothing expires and
// nothing is evicted either.
//
// Thread rules: any thread. Holds() costs one relaxed load while there is no pause.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/commands/command_spec.h"
#include "engine/tx/client_state.h"

namespace hotkv {

class ClientPause {
 public:
  enum class Mode : uint8_t { kNone, kWrite, kAll };

  // A pause that is on is only ever made longer and stricter, until it is over.
  void Pause(Mode mode, int64_t until_ms);
  void Unpause();

  bool active() const { return mode_.load(std::memory_order_relaxed) != Mode::kNone; }
  Mode mode(int64_t now_ms);
  // The command must wait. Ends a pause whose time is over.
  bool Holds(const CommandSpec& spec, const ClientState& client, int64_t now_ms) {
    if (!active()) [[likely]]
      return false;
    return HoldsSlow(spec, client, now_ms);
  }

 private:
  bool HoldsSlow(const CommandSpec& spec, const ClientState& client, int64_t now_ms);

  std::atomic<Mode> mode_{Mode::kNone};
  std::atomic<int64_t> until_ms_{0};
};

}  // namespace hotkv
