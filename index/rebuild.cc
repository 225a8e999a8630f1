// What building an index anew from another needs: an order of its elements, taking them over row by row.
#include <algorithm>
#include <deque>

#include "engine/base/check.h"
#include "engine/base/random.h"
#include "index/index_impl.h"
#include "index/reader_pin.h"

namespace hotkv {

namespace {
constexpr uint32_t kNodesAtOnce = 4096;  // under one ReaderPin
}  // namespace

std::vector<uint32_t> VectorIndex::LocalityOrder() const {
  const Graph& graph = *impl_->graph_;
  const uint32_t limit = graph.slot_limit();
  std::vector<uint32_t> order;
  std::vector<bool> seen(limit);
  std::deque<uint32_t> queue;
  uint32_t next_start = 0;
  const auto meet = [&](uint32_t slot) {
    if (slot >= limit || seen[slot]) return;
    seen[slot] = true;
    queue.push_back(slot);
  };
  while (next_start < limit || !queue.empty()) {
    ReaderPin pin;
    for (uint32_t n = 0; n < kNodesAtOnce && (next_start < limit || !queue.empty()); ++n) {
      if (queue.empty()) {
        meet(next_start++);  // what no link has led to
        continue;
      }
      const uint32_t slot = queue.front();
      queue.pop_front();
      const uint8_t meta = graph.meta(slot);
      if ((meta & kMetaLive) != 0) order.push_back(slot);
      if ((meta & kMetaLinked) == 0) continue;
      for (const uint32_t to : graph.LinksOf(slot, 0)) meet(to);
    }
  }
  return order;
}

Status VectorIndex::AdoptElements(const VectorIndex& from, std::span<const uint32_t> slots,
                                  uint32_t first) {
  HOTKV_CHECK(from.impl_->options_.dim == impl_->options_.dim &&
              from.impl_->options_.metric == impl_->options_.metric);
  for (size_t i = 0; i < slots.size(); ++i) {
    ReaderPin pin;
    const uint32_t slot = slots[i];
    if ((from.impl_->graph_->meta(slot) & kMetaLive) == 0) continue;
    const RecordView record = from.impl_->records_.Get(slot);
    if (!record) continue;
    const auto to = first + static_cast<uint32_t>(i);
    HOTKV_RETURN_IF_ERROR(impl_->ClaimSlot(to));
    // The row itself, not what it was made from: the same bytes.
    const std::span<const float> row(from.impl_->VectorAt(slot), impl_->options_.dim);
    const Impl::Prepared prepared = impl_->PrepareVector(row);
    std::copy(row.begin(), row.end(), prepared.data);
    const RecordContent content = {record.name(), record.attr(), record.header->norm,
                                   record.expire_at_ms()};
    HOTKV_RETURN_IF_ERROR(impl_->ApplyRow(to, content, prepared));
  }
  return Status::Ok();
}

void VectorIndex::ShufflePending(uint64_t seed) {
  std::lock_guard<std::mutex> lock(impl_->pending_mutex_);
  Random random(seed);
  auto& queue = impl_->pending_queue_;
  for (size_t i = queue.size(); i > 1; --i) std::swap(queue[i - 1], queue[random.Below(i)]);
}

}  // namespace hotkv
