// ClientRegistry: all clients of the server by id, for CLIENT LIST, CLIENT KILL, pub/sub and INFO.
//
// Thread rules: any thread. A client is in here as long as it lives: its destruction waits for the
// lock, so within ForEach and With a client stays; only its `shared` part and constants may be used
// there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "server/session/client.h"

namespace hotkv {

class ClientRegistry {
 public:
  uint64_t NewId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  void Add(Client* client);
  void Remove(Client* client);
  void ForEach(const std::function<void(Client&)>& visit);  // in the order of their ids
  // False when there is no such client.
  bool With(uint64_t id, const std::function<void(Client&)>& visit);
  size_t size() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> next_id_{1};
  std::atomic<size_t> count_{0};
  std::mutex mutex_;
  std::map<uint64_t, Client*> clients_;  // guarded by mutex_
};

// One line of CLIENT LIST (without line end); called within ForEach or With, or by the client's own
// worker.
std::string DescribeClient(Client& client, int64_t now_ms);

}  // namespace hotkv
