// Listening sockets, and the thread that accepts connections from them.
//
// Accepting is a thread's work of its own, not a worker's: it sleeps nearly always, and a worker
// that is kept busy (by an endless script) never keeps a new client waiting.
//
// Thread rules: Bind functions are free of state. An Acceptor is made, changed and destroyed by one
// thread at a time; its callback runs on the acceptor's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/result.h"
#include "server/config/settings.h"

namespace hotkv {

struct ListenSocket {
  int fd = -1;
  bool is_unix = false;
  std::string name;  // "127.0.0.1:6379", "[::1]:6379", "/path"
};

struct Accepted {
  int fd = -1;
  bool is_unix = false;
  bool is_local = false;  // Unix socket or loopback
  std::string peer;       // "127.0.0.1:51234", "/path:0"
  std::string local;
};

// By bind, port, unixsocket, unixsocketperm and tcp-backlog. An address marked optional ("-::1")
// may fail to bind. Port 0: no TCP. An empty result means that nothing is listened on.
Result<std::vector<ListenSocket>> BindSockets(const Settings& settings);
// A TCP socket on a free port of the loopback interface; for tests.
Result<ListenSocket> BindLoopback();
void CloseSockets(std::vector<ListenSocket>* sockets);
uint16_t PortOf(const ListenSocket& socket);

class Acceptor {
 public:
  Acceptor(std::vector<ListenSocket> sockets, std::function<void(Accepted)> accept);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  Status Start();
  // Listens on these from now on; the old ones are closed.
  void Replace(std::vector<ListenSocket> sockets);
  void Stop();
  std::vector<std::string> names() const;

 private:
  void Run();
  void AcceptAll(const ListenSocket& socket);

  mutable std::mutex mutex_;
  std::vector<ListenSocket> sockets_;  // guarded by mutex_
  const std::function<void(Accepted)> accept_;
  int wake_fd_ = -1;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Socket options of an accepted TCP connection: no delay, keepalive after `keepalive_s` seconds (0:
// none).
void PrepareTcpSocket(int fd, int64_t keepalive_s);

}  // namespace hotkv
