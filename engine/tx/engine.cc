#include "engine/tx/engine.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/clock.h"

namespace hotkv {

namespace {

constexpr size_t kEvictedPerClockRead = 16;
constexpr uint64_t kTtlSamples = 256;
constexpr int64_t kExpireCycleMs = 100;
constexpr int64_t kExpireIdleCycleMs = 1000;  // the next cycle, where the last one found little
constexpr unsigned kStripesPerClockRead = 16;
constexpr size_t kPartsEndedAtOnce = 512;  // of one object, under its stripe's lock

uint64_t DigestOfEntry(uint32_t db, const Entry& entry) {
  char scratch[24];
  uint64_t value = 0;
  if (entry.type() == ValueType::kString) {
    value = HashBytes(entry.StringValue(scratch), 1);
  } else {
    value = entry.object()->Digest();
  }
  const uint64_t parts[4] = {HashBytes(entry.key(), 2), value,
                             static_cast<uint64_t>(entry.expire_at_ms()),
                             uint64_t{db} << 8 | static_cast<uint64_t>(entry.type())};
  return HashBytes({reinterpret_cast<const char*>(parts), sizeof(parts)}, 3);
}

}  // namespace

WorkerState::WorkerState(Engine* engine_in, unsigned id_in, uint32_t command_count)
    : id(id_in),
      engine(engine_in),
      reclaim_slot(engine_in->reclaim().Register()),
      txn(engine_in, this),
      random(engine_in->options().keyspace.hash_seed + id_in + 1),
      per_command(std::make_unique<CommandCounters[]>(command_count)) {}

void ObjectTable::Add(Object* object) {
  object->Ref();
  std::lock_guard<std::mutex> lock(mutex_);
  objects_[object->id()] = object;
  uint64_t next = next_id_.load(std::memory_order_relaxed);
  while (next <= object->id() && !next_id_.compare_exchange_weak(next, object->id() + 1)) {
  }
}

ObjectRef<Object> ObjectTable::Find(uint64_t id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = objects_.find(id);
  return found == objects_.end() ? ObjectRef<Object>() : ObjectRef<Object>::Share(found->second);
}

ObjectRef<Object> ObjectTable::Take(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = objects_.find(id);
  if (found == objects_.end()) return {};
  Object* object = found->second;
  objects_.erase(found);
  return ObjectRef<Object>::Adopt(object);
}

std::vector<ObjectRef<Object>> ObjectTable::All() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<ObjectRef<Object>> all;
  all.reserve(objects_.size());
  for (const auto& [id, object] : objects_) all.push_back(ObjectRef<Object>::Share(object));
  return all;
}

size_t ObjectTable::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return objects_.size();
}

LazyFree::LazyFree() : thread_([this] { Run(); }) {}

LazyFree::~LazyFree() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LazyFree::Push(std::function<void()> free) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(free));
    pending_.fetch_add(1, std::memory_order_relaxed);
  }
  changed_.notify_all();
}

void LazyFree::Drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return pending_.load(std::memory_order_relaxed) == 0; });
}

void LazyFree::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> free = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    free();
    free = nullptr;
    freed_.fetch_add(1, std::memory_order_relaxed);
    lock.lock();
    pending_.fetch_sub(1, std::memory_order_relaxed);
    changed_.notify_all();
  }
}

Engine::Engine(const EngineOptions& options, const CommandTable* commands)
    : options_(options),
      commands_(commands),
      keyspace_(options.keyspace, &reclaim_),
      epochs_(options.workers, options.first_epoch),
      gate_(options.workers) {
  HOTKV_CHECK(options.workers >= 1 && options.workers <= kWorkersMax);
  objects_.SetNextId(options.first_object_id);
  for (unsigned i = 0; i < options.workers; ++i) {
    workers_.push_back(std::make_unique<WorkerState>(this, i, commands->count()));
    workers_.back()->expire_stripe = i;
  }
}

Engine::~Engine() {
  // No reader is left. What is retired may hand its memory to lazy_free_, which ends before reclaim_ does.
  while (!reclaim_.empty()) reclaim_.Collect();
  lazy_free_.Drain();
  for (auto& object : objects_.All()) objects_.Take(object->id());
}

void Engine::SetDiskDenied(std::string reason) {
  const bool denied = !reason.empty();
  {
    std::lock_guard<std::mutex> lock(reason_mutex_);
    disk_denied_reason_ = std::move(reason);
  }
  disk_denied.store(denied, std::memory_order_relaxed);
}

std::string Engine::disk_denied_reason() const {
  std::lock_guard<std::mutex> lock(reason_mutex_);
  return disk_denied_reason_;
}

void Engine::NoteObjectFailure(std::string reason) {
  {
    std::lock_guard<std::mutex> lock(reason_mutex_);
    object_failure_ = reason;
    object_failed_ns_ = Clock::MonotonicNs();
  }
  SetDiskDenied(std::move(reason));
}

std::string Engine::object_failure() const {
  constexpr int64_t kDeniedNs = 1'000'000'000;
  std::lock_guard<std::mutex> lock(reason_mutex_);
  const bool lasts = !object_failure_.empty() && Clock::MonotonicNs() - object_failed_ns_ < kDeniedNs;
  return lasts ? object_failure_ : std::string();
}

void Engine::AddTurnTask(TurnTask* task) {
  std::lock_guard<std::mutex> lock(tasks_mutex_);
  tasks_.push_back(task);
  turn_tasks_count_.fetch_add(1, std::memory_order_release);
}

void Engine::RemoveTurnTask(TurnTask* task) {
  std::lock_guard<std::mutex> lock(tasks_mutex_);
  const auto removed = std::erase(tasks_, task);
  turn_tasks_count_.fetch_sub(static_cast<uint32_t>(removed), std::memory_order_release);
}

bool Engine::TurnEnd(WorkerState& worker, int64_t budget_ns) {
  const int64_t deadline_ns = Clock::MonotonicNs() + budget_ns;
  bool more = false;
  if (HasTurnTasks()) {
    // One worker at a time: the others go on with their clients instead of queueing for the mutex.
    std::unique_lock<std::mutex> lock(tasks_mutex_, std::try_to_lock);
    while (lock.owns_lock() && !tasks_.empty() && Clock::MonotonicNs() < deadline_ns) {
      TurnTask* task = tasks_.front();
      if (task->Step(worker)) continue;
      tasks_.erase(tasks_.begin());
      turn_tasks_count_.fetch_sub(1, std::memory_order_release);
    }
    more = HasTurnTasks();
  }
  if (active_expire.load(std::memory_order_relaxed) && worker.now_ms >= worker.expire_next_ms &&
      !disk_denied.load(std::memory_order_relaxed) && !loading.load(std::memory_order_acquire)) {
    more |= ExpireStep(worker, deadline_ns);
  }
  while (eviction_.due() && eviction_.may_run() && Clock::MonotonicNs() < deadline_ns) {
    if (eviction_.Evict(worker, kEvictedPerClockRead) == 0) break;
    more |= eviction_.due();
  }
  reclaim_.Collect();
  return more;
}

bool Engine::ExpireStep(WorkerState& worker, int64_t deadline_ns) {
  const uint32_t count = keyspace_.stripe_count();
  size_t expired = 0;
  for (unsigned step = 0;; ++step) {
    if (step % kStripesPerClockRead == 0 && Clock::MonotonicNs() >= deadline_ns) return true;
    if (worker.expire_stripe >= count) break;
    expired += ExpireStripe(worker, keyspace_.stripe(worker.expire_stripe));
    worker.expire_stripe += options_.workers;
  }
  worker.expire_stripe = worker.id;
  if (std::exchange(worker.expire_again, false)) return true;
  worker.expire_next_ms = worker.now_ms + (expired > 0 ? kExpireCycleMs : kExpireIdleCycleMs);
  return false;
}

size_t Engine::ExpireStripe(WorkerState& worker, Stripe& stripe) {
  Txn& txn = worker.txn;
  txn.Begin(worker.now_ms);
  txn.LockStripe(stripe);
  if (stripe.expire_check_at_ms > worker.now_ms) {
    txn.UnlockStripe(stripe);
    return 0;
  }
  int64_t earliest = INT64_MAX;
  std::vector<std::pair<uint32_t, std::string>> due;
  std::vector<std::pair<uint32_t, std::string>> objects_due;
  for (uint32_t db = 0; db < keyspace_.databases(); ++db) {
    Table* table = stripe.table(db);
    if (table == nullptr) continue;
    if (table->sums().volatile_keys == 0 && table->sums().objects == 0) continue;
    for (uint32_t c = 0; c < table->chunk_count(); ++c) {
      table->ForEachInChunk(c, [&](Entry** slot) {
        const Entry& entry = **slot;
        if (entry.ExpiredAt(worker.now_ms)) {
          due.emplace_back(db, entry.key());
          return;
        }
        if (entry.has_expiry()) earliest = std::min(earliest, entry.expire_at_ms());
        if (entry.type() == ValueType::kString) return;
        const int64_t part_ends_ms = entry.object()->NextEndMs();
        if (part_ends_ms <= worker.now_ms) {
          objects_due.emplace_back(db, entry.key());
        } else {
          earliest = std::min(earliest, part_ends_ms);
        }
      });
    }
  }
  for (const auto& [db, key] : due) txn.Expire(db, keyspace_.MakeRef(key));
  size_t ended = 0;
  for (const auto& [db, key] : objects_due) {
    const Txn::Ended result = txn.RemoveEnded(db, keyspace_.MakeRef(key), kPartsEndedAtOnce);
    ended += result.removed;
    earliest = std::min(earliest, result.next_ms);
  }
  if (earliest <= worker.now_ms) worker.expire_again = true;
  stripe.expire_check_at_ms = earliest;
  txn.UnlockStripe(stripe);
  txn.CommitAndUnlock();
  return due.size() + ended;
}

Engine::Totals Engine::CountDb(uint32_t db) {
  Totals totals;
  // Loading threads work on their stripes without locks.
  if (loading.load(std::memory_order_acquire)) return totals;
  for (uint32_t i = 0; i < keyspace_.stripe_count(); ++i) {
    Stripe& stripe = keyspace_.stripe(i);
    if (stripe.table(db) == nullptr) continue;
    SpinLockGuard guard(stripe.lock);
    const Table* table = stripe.table(db);
    if (table == nullptr) continue;
    totals.keys += table->size();
    totals.volatile_keys += table->sums().volatile_keys;
    totals.entry_bytes += table->sums().entry_bytes;
    totals.table_bytes += static_cast<int64_t>(table->memory_bytes());
  }
  return totals;
}

int64_t Engine::AverageTtlMs(uint32_t db, int64_t now_ms) {
  if (loading.load(std::memory_order_acquire)) return 0;
  uint64_t left = kTtlSamples;
  double sum = 0;
  for (uint32_t i = 0; i < keyspace_.stripe_count() && left > 0; ++i) {
    Stripe& stripe = keyspace_.stripe(i);
    if (stripe.table(db) == nullptr) continue;
    SpinLockGuard guard(stripe.lock);
    Table* table = stripe.table(db);
    if (table == nullptr || table->sums().volatile_keys == 0) continue;
    for (uint32_t c = 0; c < table->chunk_count() && left > 0; ++c) {
      table->ForEachInChunk(c, [&](Entry** slot) {
        if (left == 0 || !(*slot)->has_expiry()) return;
        --left;
        sum += static_cast<double>(std::max<int64_t>(0, (*slot)->expire_at_ms() - now_ms));
      });
    }
  }
  const uint64_t seen = kTtlSamples - left;
  return seen == 0 ? 0 : static_cast<int64_t>(sum / static_cast<double>(seen));
}

uint64_t Engine::WaitedNs(WaitCause cause) const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) {
    sum += worker->waited_ns[static_cast<size_t>(cause)].load(std::memory_order_relaxed);
  }
  return sum;
}

Engine::Totals Engine::CountTotals() {
  Totals totals;
  for (uint32_t db = 0; db < keyspace_.databases(); ++db) {
    const Totals of_db = CountDb(db);
    totals.keys += of_db.keys;
    totals.volatile_keys += of_db.volatile_keys;
    totals.entry_bytes += of_db.entry_bytes;
    totals.table_bytes += of_db.table_bytes;
  }
  return totals;
}

uint64_t Engine::SumOverWorkers(std::atomic<uint64_t> WorkerState::*counter) const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) sum += ((*worker).*counter).load(std::memory_order_relaxed);
  return sum;
}

uint64_t Engine::Digest() {
  uint64_t digest = 0;
  for (uint32_t i = 0; i < keyspace_.stripe_count(); ++i) {
    Stripe& stripe = keyspace_.stripe(i);
    for (uint32_t db = 0; db < keyspace_.databases(); ++db) {
      Table* table = stripe.table(db);
      if (table == nullptr) continue;
      for (uint32_t c = 0; c < table->chunk_count(); ++c) {
        table->ForEachInChunk(c, [&](Entry** slot) { digest += DigestOfEntry(db, **slot); });
      }
    }
  }
  return digest;
}

}  // namespace hotkv
