// The log's epochs as workers and the log writer see them.
//
// A commit, while it holds its stripes' locks, calls Enter (which announces "inside epoch e"), stamps its effects with
// an lsn of that epoch, appends them to its worker's buffer of that epoch, and calls Leave. The log writer closes
// epoch e with Close: from then on commits are in e + 1, and when Close returns no worker is inside e or an older
// epoch, so the buffers of e are complete and belong to the writer until it calls Release(e). Two buffers a worker,
// chosen by the parity of the epoch, suffice because e + 1 is never closed before Release(e).
//
// lsn: epoch in the upper 42 bits, a count in the lower 22. lsn = max(lsn of each touched stripe, last lsn of this
// worker, epoch << 22) + 1, so lsn order is a serial order, strictly increasing per stripe and per worker
// (persistence.md; Silo, SOSP'13, section 4).
//
// Thread rules: Enter, Leave and Buffer(worker, e) inside: only by that worker's thread. Close, Release and the buffers
// of a closed epoch: only by the log writer. The epoch getters: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/byte_buffer.h"
#include "engine/base/check.h"
#include "engine/base/shared_block.h"

namespace hotkv {

inline constexpr unsigned kLsnCountBits = 22;
inline constexpr uint64_t kLsnCountMask = (uint64_t{1} << kLsnCountBits) - 1;

inline constexpr uint64_t EpochOf(uint64_t lsn) { return lsn >> kLsnCountBits; }
inline constexpr uint64_t FirstLsnOf(uint64_t epoch) { return epoch << kLsnCountBits; }

// One worker's effects of one epoch: records one after the other, in lsn order.
//
// A record is a RecordHeader and `size` bytes of body (effect.h gives the body's form, which is the form on disk). A
// large operand (over kInlineOperandBytesMax) is not in the body: the body then ends with the operand's varint length,
// and the bytes are large[header.large - 1], to be written right behind the body.
struct EffectBuffer {
  struct RecordHeader {
    uint32_t size = 0;   // bytes of body
    uint32_t large = 0;  // 0: none; else index into `large`, plus 1
    uint16_t group = 0;  // stripe group, 0..63
    uint16_t reserved = 0;
  };
  static_assert(sizeof(RecordHeader) == 12);

  ByteBuffer bytes;
  std::vector<SharedBlockRef> large;
  size_t large_bytes = 0;

  size_t size_bytes() const { return bytes.size() + large_bytes; }
  bool empty() const { return bytes.empty(); }
  void Clear() {
    bytes.Clear();
    large.clear();
    large_bytes = 0;
  }
};

class EpochClock {
 public:
  // workers: number of committing threads. first_epoch: at least 1, past every epoch that any file knows.
  EpochClock(unsigned workers, uint64_t first_epoch);

  // --- workers ---
  // Announces that this worker is inside the returned epoch.
  uint64_t Enter(unsigned worker) {
    std::atomic<uint64_t>& slot = slots_[worker].inside;
    uint64_t epoch = current_.load(std::memory_order_seq_cst);
    for (;;) {
      // seq_cst on both: either the writer's scan sees this store, or the re-read sees the writer's new epoch.
      slot.store(epoch, std::memory_order_seq_cst);
      const uint64_t again = current_.load(std::memory_order_seq_cst);
      if (again == epoch) return epoch;
      epoch = again;
    }
  }
  void Leave(unsigned worker) {
    slots_[worker].inside.store(0, std::memory_order_release);  // pairs with Close's acquire
  }
  EffectBuffer& Buffer(unsigned worker, uint64_t epoch) {
    return slots_[worker].buffers[epoch & 1];
  }

  // --- log writer ---
  // Closes the current epoch and waits until no worker is inside it or an older one. Returns the closed epoch.
  // Requires that the epoch before it has been released.
  uint64_t Close();
  // The buffers of `epoch` (the last closed one) have been written or dropped and are cleared.
  void Release(uint64_t epoch);
  unsigned workers() const { return static_cast<unsigned>(slots_.size()); }
  // True when the current epoch has effects; may lag behind by a moment.
  bool CurrentHasEffects() const {
    return pending_bytes_hint_.load(std::memory_order_relaxed) != 0;
  }
  // True when a buffer of the current epoch has grown to its hand-over size.
  bool CurrentIsFull() const {
    return pending_bytes_hint_.load(std::memory_order_relaxed) >= kHintFull;
  }

  // --- any thread ---
  uint64_t current() const { return current_.load(std::memory_order_seq_cst); }
  // Highest epoch whose effects, and those of all before it, are written to the log's file (kill -9 keeps them).
  uint64_t written() const { return written_.load(std::memory_order_acquire); }
  // Highest epoch whose effects, and those of all before it, survive a power cut.
  uint64_t durable() const { return durable_.load(std::memory_order_acquire); }
  void SetWritten(uint64_t epoch) { written_.store(epoch, std::memory_order_release); }
  void SetDurable(uint64_t epoch) { durable_.store(epoch, std::memory_order_release); }

  // Writes must wait (before they take a lock) while the log is behind: set and cleared by the log writer.
  bool writes_wait() const { return writes_wait_.load(std::memory_order_relaxed); }
  void SetWritesWait(bool wait) { writes_wait_.store(wait, std::memory_order_relaxed); }

  // Called by workers after an append: wakes the writer early when a buffer has grown to its hand-over size, and when it
  // sleeps for want of effects.
  void NoteAppended(unsigned worker, size_t bytes_in_buffer) {
    if (bytes_in_buffer >= kHandOverBytes) NoteLarge(bytes_in_buffer);
    if (pending_bytes_hint_.load(std::memory_order_relaxed) == 0) {
      // seq_cst on both: either this sees the writer asleep, or the writer sees the hint before it sleeps.
      pending_bytes_hint_.store(kHintSome, std::memory_order_seq_cst);
      if (writer_asleep_.load(std::memory_order_seq_cst)) WakeWriter();
    }
    (void)worker;
  }
  // The writer sleeps here: until timeout_us have passed or somebody asks for it (a full buffer, WakeWriter). With
  // until_effects the first effect wakes it as well.
  void WaitForWork(int64_t timeout_us, bool until_effects);
  void WakeWriter();

  // A buffer this large is handed over before its time (kv-prototype.md: 2-5 ms or about 512 KiB).
  static constexpr size_t kHandOverBytes = 512 * 1024;
  // Beyond this a worker makes writes wait by itself: the log writer may be stuck in a sync.
  static constexpr size_t kWaitBytes = 128 * 1024 * 1024;

 private:
  static constexpr uint32_t kHintSome = 1;
  static constexpr uint32_t kHintFull = 2;
  void NoteLarge(size_t bytes_in_buffer);

  struct alignas(128) Slot {
    std::atomic<uint64_t> inside{0};  // 0: outside
    EffectBuffer buffers[2];
  };
  std::atomic<uint64_t> current_;
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> durable_{0};
  std::atomic<bool> writes_wait_{false};
  std::atomic<bool> wake_requested_{false};
  std::atomic<uint32_t> pending_bytes_hint_{0};
  std::atomic<bool> writer_asleep_{false};
  std::atomic<uint32_t> wake_word_{0};
  uint64_t released_;  // writer only
  std::vector<Slot> slots_;
};

}  // namespace hotkv
