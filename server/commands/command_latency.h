// CommandLatencies: how long commands ran, a histogram for each worker and command, for LATENCY
// HISTOGRAM and INFO latencystats. Values are nanoseconds with a relative error below 1/64; above
// about two minutes they count as the largest. A histogram is made when its command is first run by
// its worker (16 KiB).
//
// Thread rules: Add(worker, ...) only by that worker's thread: its cells have one writer, so no
// atomic addition is needed. Reading and Reset by any thread; what is read while commands run may
// miss the last of them.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

namespace hotkv {

class LatencyCells {
 public:
  static constexpr unsigned kSubBits = 6;
  static constexpr size_t kSub = size_t{1} << kSubBits;
  static constexpr unsigned kValueBits = 37;
  static constexpr size_t kCells = (kValueBits - kSubBits + 1) * kSub;

  // Values below 2 * kSub have a cell each; above, the top kSubBits + 1 bits choose it.
  static size_t CellOf(uint64_t ns) {
    const auto width = static_cast<unsigned>(std::bit_width(ns));
    if (width > kValueBits) return kCells - 1;
    const unsigned shift = width > kSubBits + 1 ? width - kSubBits - 1 : 0;
    return shift * kSub + static_cast<size_t>(ns >> shift);
  }
  // The largest value of a cell.
  static uint64_t UpperEndOf(size_t cell);

  std::array<std::atomic<uint64_t>, kCells> counts{};
};

// A copy to read at leisure.
class LatencySnapshot {
 public:
  void Merge(const LatencyCells& cells);
  uint64_t count() const { return count_; }
  // The smallest recorded value such that `percent` per cent of all are not larger. 0 when empty.
  uint64_t PercentileNs(double percent) const;
  struct Bucket {
    uint64_t microseconds;
    uint64_t cumulative_count;
  };
  // Cumulative counts at 1024 ns times powers of two, where they grow; labelled in microseconds as
  // Redis labels them.
  std::vector<Bucket> PowerOfTwoBuckets() const;

 private:
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
};

class CommandLatencies {
 public:
  CommandLatencies(unsigned workers, uint32_t commands);
  ~CommandLatencies();
  CommandLatencies(const CommandLatencies&) = delete;
  CommandLatencies& operator=(const CommandLatencies&) = delete;

  void Add(unsigned worker, uint32_t command, uint64_t ns) {
    Slot& slot = slots_[worker * commands_ + command];
    LatencyCells* cells = slot.cells.load(std::memory_order_relaxed);
    const uint32_t generation = generation_.load(std::memory_order_relaxed);
    if (cells == nullptr || slot.generation.load(std::memory_order_relaxed) != generation)
        [[unlikely]] {
      cells = Renew(slot, generation);
    }
    std::atomic<uint64_t>& cell = cells->counts[LatencyCells::CellOf(ns)];
    cell.store(cell.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // All workers' cells of a command.
  LatencySnapshot Read(uint32_t command) const;
  // Forgets everything; each writer clears its own cells when it next adds.
  void Reset() { generation_.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Slot {
    std::atomic<LatencyCells*> cells{nullptr};
    std::atomic<uint32_t> generation{0};
  };
  LatencyCells* Renew(Slot& slot, uint32_t generation);

  const unsigned workers_;
  const uint32_t commands_;
  std::atomic<uint32_t> generation_{0};
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace hotkv
