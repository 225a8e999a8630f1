// EventLoop: sockets of one worker. Two implementations with the same behaviour: io_uring (one
// system call a turn) and epoll where io_uring is not permitted.
//
// A turn: Wait sends what was queued, sleeps until something happens or the deadline comes, and
// collects events; Deliver hands them to the LoopEvents. Sends are queued with QueueSend and go out
// together in the next Wait, one gathered send a connection. What a full socket does not take is
// sent later, without being asked again.
//
// Thread rules: the worker's thread, from making to destruction; Wake from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "server/net/connection.h"

namespace hotkv {

class LoopEvents {
 public:
  virtual ~LoopEvents() = default;
  // The bytes are valid until the call returns. The connection may be removed within the call.
  virtual void OnData(Connection& connection, std::string_view bytes) = 0;
  // The peer has closed (error 0) or the connection is broken (errno). The receiver removes it.
  virtual void OnDisconnect(Connection& connection, int error) = 0;
  // Everything that was queued and not limited has been sent.
  virtual void OnSent(Connection& connection) = 0;
};

enum class IoBackend : uint8_t { kAuto, kUring, kEpoll };

class EventLoop {
 public:
  // kAuto: io_uring if all that it needs works on this machine, else epoll. kUring: an error where
  // it does not.
  static Result<std::unique_ptr<EventLoop>> Make(IoBackend backend, LoopEvents* events);
  virtual ~EventLoop() = default;

  virtual std::string_view name() const = 0;  // "io_uring" or "epoll"
  virtual Status Add(Connection& connection) = 0;
  // Closes the socket; events that are already collected for it are dropped. Unsent bytes are lost.
  virtual void Remove(Connection& connection) = 0;
  // While paused no data is delivered, and the peer's closing its side shows only once it is
  // resumed.
  virtual void Pause(Connection& connection) = 0;
  virtual void Resume(Connection& connection) = 0;
  // Sends connection.out up to its limit in the next Wait.
  virtual void QueueSend(Connection& connection) = 0;
  // timeout_us 0: does not sleep; negative: no limit. Before it sleeps it looks for events for
  // spin_cycles (engine/base/cycle_clock.h): falling asleep and being woken costs tens of
  // microseconds.
  virtual void Wait(int64_t timeout_us, uint64_t spin_cycles = 0) = 0;
  virtual void Deliver() = 0;
  // Ends the present or the next Wait.
  virtual void Wake() = 0;
};

// Tries io_uring on the calling thread; the reason why it cannot be used, or OK.
Status ProbeUring();

Result<std::unique_ptr<EventLoop>> MakeUringLoop(LoopEvents* events);
Result<std::unique_ptr<EventLoop>> MakeEpollLoop(LoopEvents* events);

}  // namespace hotkv
