#include "server/commands/command_latency.h"

#include <algorithm>
#include <cmath>

namespace hotkv {

uint64_t LatencyCells::UpperEndOf(size_t cell) {
  if (cell < 2 * kSub) return cell;
  const size_t shift = cell / kSub - 1;
  const uint64_t top = cell - shift * kSub;
  return (top << shift) + ((uint64_t{1} << shift) - 1);
}

void LatencySnapshot::Merge(const LatencyCells& cells) {
  counts_.resize(LatencyCells::kCells);
  for (size_t i = 0; i < LatencyCells::kCells; ++i) {
    const uint64_t n = cells.counts[i].load(std::memory_order_relaxed);
    counts_[i] += n;
    count_ += n;
  }
}

uint64_t LatencySnapshot::PercentileNs(double percent) const {
  if (count_ == 0) return 0;
  const double share = std::clamp(percent, 0.0, 100.0) / 100.0;
  const auto wanted = std::max<uint64_t>(
      1, static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_) - 1e-9)));
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= wanted) return LatencyCells::UpperEndOf(i);
  }
  return LatencyCells::UpperEndOf(counts_.size() - 1);
}

std::vector<LatencySnapshot::Bucket> LatencySnapshot::PowerOfTwoBuckets() const {
  constexpr unsigned kFirstBits = 10;  // 1024 ns
  std::vector<Bucket> out;
  uint64_t cumulative = 0;
  size_t cell = 0;
  for (unsigned bits = kFirstBits; bits <= LatencyCells::kValueBits && cumulative < count_;
       ++bits) {
    const uint64_t level = uint64_t{1} << bits;
    const uint64_t before = cumulative;
    while (cell < counts_.size() &&
           (bits == LatencyCells::kValueBits || LatencyCells::UpperEndOf(cell) < level)) {
      cumulative += counts_[cell++];
    }
    if (cumulative == before) continue;
    // Redis labels a level with the end of the cell that holds it, at a precision of 1/128.
    out.push_back({(level + level / 128 - 1) / 1000, cumulative});
  }
  return out;
}

CommandLatencies::CommandLatencies(unsigned workers, uint32_t commands)
    : workers_(workers),
      commands_(commands),
      slots_(std::make_unique<Slot[]>(size_t{workers} * commands)) {}

CommandLatencies::~CommandLatencies() {
  for (size_t i = 0; i < size_t{workers_} * commands_; ++i)
    delete slots_[i].cells.load(std::memory_order_relaxed);
}

LatencyCells* CommandLatencies::Renew(Slot& slot, uint32_t generation) {
  LatencyCells* cells = slot.cells.load(std::memory_order_relaxed);
  if (cells == nullptr) {
    cells = new LatencyCells;
    // Release: a reader that sees the pointer sees the zeroed cells (acquire in Read).
    slot.cells.store(cells, std::memory_order_release);
  } else {
    for (std::atomic<uint64_t>& count : cells->counts) count.store(0, std::memory_order_relaxed);
  }
  slot.generation.store(generation, std::memory_order_release);
  return cells;
}

LatencySnapshot CommandLatencies::Read(uint32_t command) const {
  LatencySnapshot out;
  const uint32_t generation = generation_.load(std::memory_order_relaxed);
  for (unsigned w = 0; w < workers_; ++w) {
    const Slot& slot = slots_[size_t{w} * commands_ + command];
    if (slot.generation.load(std::memory_order_acquire) != generation) continue;
    const LatencyCells* cells = slot.cells.load(std::memory_order_acquire);
    if (cells != nullptr) out.Merge(*cells);
  }
  return out;
}

}  // namespace hotkv
