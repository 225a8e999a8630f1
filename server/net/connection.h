// Connection: one socket with its buffers, as the event loop sees it. The session's Client is
// derived from it.
//
// Life: made when the worker adopts an accepted socket, given to the loop with EventLoop::Add,
// closed with EventLoop::Remove (which closes the descriptor), then deleted by the worker. Nothing
// refers to it after Remove.
//
// Thread rules: owned by its worker's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/base/buffer.h"

namespace hotkv {

class Connection {
 public:
  Connection(int fd_in, BlockPool* pool) : fd(fd_in), out(pool) {}
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd;
  InputBuffer in;   // bytes received and not consumed
  OutputChain out;  // replies on their way
  // Bytes of `out` from this position in the stream of replies on must not be sent yet (they wait
  // for the log).
  uint64_t send_limit = UINT64_MAX;
  uint64_t bytes_received = 0;
  uint64_t bytes_sent = 0;

  // --- the event loop's own ---
  struct LoopState {
    uint32_t slot = 0;
    bool receiving = false;       // a receive is armed
    bool paused = false;          // the worker wants no data now
    bool queued_flush = false;    // in the loop's list of connections to send
    bool waits_writable = false;  // the socket was full
    size_t submitted = 0;         // bytes handed to the kernel in this turn
    int send_result = 0;
    uint32_t watched = 0;  // events that epoll watches
  };
  LoopState loop;
};

}  // namespace hotkv
