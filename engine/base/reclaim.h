// Epoch-based reclamation: memory that lock-free readers may still look at is retired, and freed once every reader that
// could see it has moved on (Fraser 2004, section 5.2.3). "Epoch" alone means the log's everywhere else; here it is
// called reclaim epoch.
//
// Thread rules: a thread registers once and gets a slot; it calls Pin before it reads shared pointers and Unpin after.
// It must not sleep, wait or do I/O while pinned. Retire may be called by any registered thread, pinned or not.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace hotkv {

class ReclaimDomain {
 public:
  static constexpr unsigned kSlotsMax = 512;

  ReclaimDomain();
  ~ReclaimDomain();  // frees all that is retired; no reader may be left
  ReclaimDomain(const ReclaimDomain&) = delete;
  ReclaimDomain& operator=(const ReclaimDomain&) = delete;

  unsigned Register();
  void Unregister(unsigned slot);

  void Pin(unsigned slot) {
    std::atomic<uint64_t>& mine = slots_[slot].pinned;
    uint64_t now = global_.load(std::memory_order_seq_cst);
    for (;;) {
      // seq_cst: Advance either sees this pin, or this re-read sees the advanced epoch.
      mine.store(now, std::memory_order_seq_cst);
      const uint64_t again = global_.load(std::memory_order_seq_cst);
      if (again == now) return;
      now = again;
    }
  }
  void Unpin(unsigned slot) { slots_[slot].pinned.store(0, std::memory_order_release); }

  // `free` runs later on whichever thread calls Collect. The object must already be unreachable for new readers.
  void Retire(std::function<void()> free);
  // Frees what no reader can see any more. Cheap when there is nothing; call it now and then (a worker's turn end).
  void Collect();
  bool empty() const { return pending_.load(std::memory_order_relaxed) == 0; }

 private:
  struct alignas(64) Slot {
    std::atomic<uint64_t> pinned{0};  // 0: not reading
    std::atomic<bool> used{false};
  };
  struct Retired {
    uint64_t at;
    std::function<void()> free;
  };
  uint64_t OldestPinned() const;

  std::atomic<uint64_t> global_{1};
  std::atomic<size_t> pending_{0};
  std::unique_ptr<Slot[]> slots_;
  std::mutex mutex_;
  std::deque<Retired> retired_;  // guarded by mutex_
};

class ReclaimPin {
 public:
  ReclaimPin(ReclaimDomain& domain, unsigned slot) : domain_(domain), slot_(slot) { domain_.Pin(slot_); }
  ~ReclaimPin() { domain_.Unpin(slot_); }
  ReclaimPin(const ReclaimPin&) = delete;
  ReclaimPin& operator=(const ReclaimPin&) = delete;

 private:
  ReclaimDomain& domain_;
  unsigned slot_;
};

}  // namespace hotkv
