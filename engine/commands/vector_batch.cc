#include "engine/commands/vector_batch.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "engine/base/clock.h"

namespace hotkv {

namespace {

// Smaller batches are through before a helper is awake.
constexpr size_t kHelpedMin = 4;
// A helper is worth being woken for so many searches.
constexpr size_t kQueriesPerHelper = 2;

}  // namespace

VectorBatch::VectorBatch(VectorSetRef set, std::vector<std::vector<float>> queries,
                         SearchOptions options)
    : set_(std::move(set)),
      queries_(std::move(queries)),
      options_(std::move(options)),
      helped_(queries_.size()) {
  options_.params.where_or_null = options_.filter ? &*options_.filter : nullptr;
}

std::optional<size_t> VectorBatch::Take() {
  const size_t query = next_.fetch_add(1, std::memory_order_relaxed);
  return query < queries_.size() ? std::optional(query) : std::nullopt;
}

SearchOutcome VectorBatch::Search(size_t query) const {
  SearchOutcome outcome;
  SearchParams params = options_.params;
  if (options_.explain) params.report_or_null = &outcome.report;
  auto rows = set_->index().Search(queries_[query], params);
  outcome.status = rows.status();
  if (rows.ok()) outcome.rows = std::move(rows).value();
  return outcome;
}

void VectorBatch::DoPieces() {
  while (const std::optional<size_t> query = Take()) {
    Helped& helped = helped_[*query];
    helped.outcome = Search(*query);
    helped.done.store(true, std::memory_order_release);
  }
}

SearchOutcome VectorBatch::Await(size_t query, int64_t search_ns) {
  Helped& helped = helped_[query];
  const int64_t deadline_ns = Clock::MonotonicNs() + search_ns;
  while (!helped.done.load(std::memory_order_acquire)) {
    if (Clock::MonotonicNs() >= deadline_ns) return Search(query);
    std::this_thread::yield();
  }
  return std::move(helped.outcome);
}

std::vector<SearchOutcome> VectorBatch::Run(const std::shared_ptr<VectorBatch>& batch,
                                            HelperThreads* helpers) {
  const size_t count = batch->queries_.size();
  if (count >= kHelpedMin) {
    helpers->Offer(batch, static_cast<unsigned>(count / kQueriesPerHelper));
  }
  std::vector<SearchOutcome> outcomes(count);
  std::vector<bool> own(count);
  const int64_t begin_ns = Clock::MonotonicNs();
  int64_t done = 0;
  for (; const std::optional<size_t> query = batch->Take(); ++done) {
    outcomes[*query] = batch->Search(*query);
    own[*query] = true;
  }
  const int64_t search_ns = (Clock::MonotonicNs() - begin_ns) / std::max<int64_t>(done, 1);
  for (size_t i = 0; i < count; ++i) {
    if (!own[i]) outcomes[i] = batch->Await(i, search_ns);
  }
  return outcomes;
}

}  // namespace hotkv
