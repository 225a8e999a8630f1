#include "server/session/client_registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/commands/command_spec.h"
#include "server/session/worker.h"

namespace hotkv {

void ClientRegistry::Add(Client* client) {
  std::lock_guard<std::mutex> lock(mutex_);
  clients_.emplace(client->id, client);
  count_.store(clients_.size(), std::memory_order_relaxed);
}

void ClientRegistry::Remove(Client* client) {
  std::lock_guard<std::mutex> lock(mutex_);
  clients_.erase(client->id);
  count_.store(clients_.size(), std::memory_order_relaxed);
}

void ClientRegistry::ForEach(const std::function<void(Client&)>& visit) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, client] : clients_) visit(*client);
}

bool ClientRegistry::With(uint64_t id, const std::function<void(Client&)>& visit) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = clients_.find(id);
  if (found == clients_.end()) return false;
  visit(*found->second);
  return true;
}

namespace {

std::string FlagsOf(const Client& client) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const ClientShared& shared = client.shared;
  std::string flags;
  if (shared.monitor.load(kRelaxed)) flags += 'O';
  if (shared.subscriptions.load(kRelaxed) + shared.pattern_subscriptions.load(kRelaxed) +
          shared.shard_subscriptions.load(kRelaxed) >
      0) {
    flags += 'P';
  }
  if (shared.multi_queued.load(kRelaxed) >= 0) flags += 'x';
  if (shared.parked.load(kRelaxed)) flags += 'b';
  if (client.is_unix) flags += 'U';
  if (shared.no_evict.load(kRelaxed)) flags += 'e';
  if (shared.no_touch.load(kRelaxed)) flags += 'T';
  return flags.empty() ? "N" : flags;
}

}  // namespace

std::string DescribeClient(Client& client, int64_t now_ms) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  ClientShared& shared = client.shared;
  const CommandSpec* command = shared.last_command.load(kRelaxed);
  const uint64_t output = shared.output_bytes.load(kRelaxed);
  const uint64_t query = shared.query_bytes.load(kRelaxed);
  const uint64_t query_free = shared.query_free_bytes.load(kRelaxed);
  const uint64_t multi = shared.multi_bytes.load(kRelaxed);
  const uint64_t blocks = (output + BlockPool::kBlockBytes - 1) / BlockPool::kBlockBytes;
  std::lock_guard<std::mutex> lock(shared.mutex);
  return fmt::format(
      "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} "
      "multi={} watch={} "
      "qbuf={} qbuf-free={} argv-mem={} multi-mem={} rbs={} rbp={} obl={} oll={} omem={} "
      "tot-mem={} events={} cmd={} "
      "user={} redir=-1 resp={} lib-name={} lib-ver={} io-thread={} tot-net-in={} tot-net-out={} "
      "tot-cmds={}",
      client.id, client.peer_address, client.local_address, client.socket_number, shared.name,
      std::max<int64_t>(now_ms - client.created_ms, 0) / 1000,
      std::max<int64_t>(now_ms - shared.last_active_ms.load(kRelaxed), 0) / 1000, FlagsOf(client),
      shared.db.load(kRelaxed), shared.subscriptions.load(kRelaxed),
      shared.pattern_subscriptions.load(kRelaxed), shared.shard_subscriptions.load(kRelaxed),
      shared.multi_queued.load(kRelaxed), shared.watched_keys.load(kRelaxed), query, query_free, 0,
      multi, 0, 0, 0, blocks, blocks * BlockPool::kBlockBytes,
      sizeof(Client) + query + query_free + multi + blocks * BlockPool::kBlockBytes,
      output > 0 ? "rw" : "r", command == nullptr ? std::string_view("NULL") : command->name,
      shared.user, shared.resp_version.load(kRelaxed), shared.lib_name, shared.lib_version,
      client.worker().id(), shared.bytes_received.load(kRelaxed), shared.bytes_sent.load(kRelaxed),
      shared.commands.load(kRelaxed));
}

void Client::Park(std::function<bool(Client&, bool expired)> done, int64_t deadline_ms,
                  ParkKind kind) {
  HOTKV_CHECK(!parked && !in_exec);
  parked = true;
  park_kind = kind;
  parked_on = std::move(done);
  parked_deadline_ms = deadline_ms;
  shared.parked.store(kind == ParkKind::kBlocking, std::memory_order_relaxed);
  worker_->AddParked(*this);
}

}  // namespace hotkv
