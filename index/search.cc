// Searching: the plan (walk or scan), the float32 scores, the rows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/check.h"
#include "index/cold_rows.h"
#include "index/index_impl.h"
#include "index/reader_pin.h"

namespace hotkv {

namespace {

// Below this many slots, or this many floats, a scan is as fast as a walk, and exact.
constexpr uint32_t kScanSlotsMin = 1024;
constexpr uint32_t kScanSlotsMax = 4096;
constexpr uint64_t kScanFloatsMax = 1u << 20;
// A walk looks at about this many nodes for each of its ef.
constexpr uint64_t kWalkNodesPerEf = 16;
// With fewer passing elements than this share a scan over the filter is cheaper than walking
// through the others.
constexpr double kScanSelectivityMax = 0.02;
// Full vectors are fetched this many ahead of their use.
constexpr uint32_t kRowsAhead = 4;
// Rows that have left memory are asked for so many at once.
constexpr size_t kColdRowsStep = 32;
constexpr size_t kPrefetchBytesMax = 4096;
constexpr float kRerankDeviations = 3;
// Candidates that 4-bit codes put a little too far away would be missed at small depths, most of all
// among vectors that lie close together.
constexpr uint32_t kQ4EfMargin = 8;

// How far the codes' distances were off among the candidates that have been scored so far. Elements
// that share a direction share a part of their error, and more of it than theory has for independent
// ones.
class CodeErrors {
 public:
  void Add(float error) {
    ++count_;
    const float step = error - mean_;
    mean_ += step / static_cast<float>(count_);
    squares_ += step * (error - mean_);
  }
  float mean() const { return mean_; }
  float Deviation(float expected) const {
    return count_ < 2 ? expected
                      : std::max(expected, std::sqrt(squares_ / static_cast<float>(count_ - 1)));
  }

 private:
  uint32_t count_ = 0;
  float mean_ = 0;
  float squares_ = 0;  // of the distances from the mean
};

// Elements may go, or change, between being found and being returned; then the search is done again.
constexpr int kSearchAttempts = 3;
// A walk that has tested as many slots as it should need, and has a third of what it should find, gives
// up; where a scan is no dearer than a few walks also one that after a quarter of them has a quarter.
constexpr uint32_t kPatienceDivisor = 3;
constexpr uint32_t kEarlyDivisor = 4;

}  // namespace

float VectorIndex::Impl::MetricDistance(float walk_distance) const {
  switch (options_.metric) {
    case Metric::kCosine:
      return std::max(0.0f, 1 + walk_distance);
    case Metric::kL2:
      return std::sqrt(walk_distance);
    case Metric::kIp:
      break;
  }
  return walk_distance;
}

// One kernel for every score that a user sees, so that equal vectors have equal distances.
float VectorIndex::Impl::ExactWalkDistance(const Prepared& query, uint32_t slot) const {
  const float* row = VectorAt(slot);
  return options_.metric == Metric::kL2 ? target_.raw.f32_l2(query.data, row, options_.dim)
                                        : -target_.raw.f32_dot(query.data, row, options_.dim);
}

const SlabArray* VectorIndex::Impl::MappedVectors() const {
  return vector_files_ != nullptr ? vectors_.get() : nullptr;
}

void VectorIndex::Impl::ExactDistances(const Prepared& query, const uint32_t* slots, uint32_t count,
                                       float* out) const {
  ColdRows cold(MappedVectors(), options_.dim * sizeof(float));
  if (cold.cold()) {
    for (uint32_t i = 0; i < count; ++i) cold.Ask(slots[i]);
    cold.Send();
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (i + kRowsAhead < count) PrefetchVector(slots[i + kRowsAhead]);
    out[i] = MetricDistance(ExactWalkDistance(query, slots[i]));
  }
  cold.CountRead(count);
}

void VectorIndex::Impl::PrefetchVector(uint32_t slot) const {
  const char* row = vectors_->Row(slot);
  const size_t bytes = std::min<size_t>(options_.dim * sizeof(float), kPrefetchBytesMax);
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

SearchGate::Parts VectorIndex::Impl::GateParts() const {
  return {graph_.get(), &records_, fields_.table(), expiry_.DueMs()};
}

uint32_t VectorIndex::Impl::EfFor(const SearchParams& params, uint32_t want) const {
  const uint32_t by_default = ef_default_.load(std::memory_order_relaxed);
  const uint32_t margin = options_.type == ElementType::kQ4 ? kQ4EfMargin : 0;
  return std::max(params.ef != 0 ? params.ef : by_default, want) + margin;
}

bool VectorIndex::Impl::ScanIsBetter(const SearchJob& job) const {
  if (job.params.exact || job.params.plan == SearchPlan::kScan) return true;
  if (job.params.plan != SearchPlan::kChoose) return false;
  const uint64_t slots = graph_->slot_limit();
  if (slots <= kScanSlotsMin) return true;
  if (slots <= kScanSlotsMax && slots * options_.dim <= kScanFloatsMax) return true;
  const ElementFilter& filter = job.params.filter;
  if (filter && filter.selectivity <= kScanSelectivityMax) return true;
  return job.ef * kWalkNodesPerEf >= slots;
}

// `full`: as many were found as the walk was to find, so that it ended because nothing nearer was left.
std::vector<ScoredSlot> VectorIndex::Impl::WalkFor(const SearchJob& job, bool* full) const {
  Graph::WalkPlan plan;
  plan.query = job.query.view;
  plan.ef = job.ef;
  plan.pool = job.pool;
  plan.filtered = !job.gate.open() || graph_->dead_count() != 0;
  plan.meta_mask = kMetaLive;
  plan.meta_want = kMetaLive;
  if (!job.gate.open()) {
    plan.context = &job.gate;
    plan.accepts = &GateAccepts;
    plan.stop = job.gate.stopped();
    SearchGate::Patience early;
    SearchGate::Patience late;
    if (job.expected_share > 0) {
      late.tests = static_cast<uint32_t>(job.ef / job.expected_share);
      late.hits_min = job.ef / kPatienceDivisor;
    }
    if (job.gives_up_early) {
      early.tests = late.tests / kEarlyDivisor;
      early.hits_min = job.ef / kEarlyDivisor / kEarlyDivisor;
    }
    job.gate.BeginWalk(early, late);
  }
  std::vector<Candidate> candidates;
  for (;;) {
    const WalkPool& pool = graph_->Walk(plan);
    *full = pool.size == pool.capacity && !*job.gate.stopped();
    candidates.clear();
    uint32_t passed_over = 0;
    for (uint32_t i = 0; i < pool.size; ++i) {
      if ((graph_->meta(pool.slot[i]) & kMetaLive) != 0) {
        candidates.push_back({pool.distance[i], pool.slot[i]});
      } else {
        ++passed_over;
      }
    }
    // Elements not committed yet, or deleted meanwhile, may have filled an unfiltered pool.
    if (plan.filtered || passed_over == 0 || candidates.size() >= job.want) break;
    plan.filtered = true;
  }
  job.report->plan = SearchPlan::kWalk;
  ++job.report->attempts;
  if (job.params.report_or_null != nullptr) {
    const uint64_t visited = graph_->VisitedByLastWalk();
    job.report->nodes += visited;
    job.report->distances += visited;
  }
  return Rerank(job.query, candidates, job.want, RerankFor(job.params));
}

uint32_t VectorIndex::Impl::RerankFor(const SearchParams& params) const {
  return params.rerank != 0 ? params.rerank : rerank_.load(std::memory_order_relaxed);
}

// Scores candidates with the full vectors: `count` of them, or (0) as long as one may still belong
// to the best: its distance by codes is off by more than kRerankDeviations only once in a few
// hundred.
std::vector<ScoredSlot> VectorIndex::Impl::Rerank(const Prepared& query,
                                                  const std::vector<Candidate>& candidates,
                                                  uint32_t want, uint32_t count) const {
  const size_t least = std::min<size_t>(std::max(want, count), candidates.size());
  std::vector<Found>
      found;  // walk distances; until the end a heap of the best, the farthest on top
  found.reserve(std::max<size_t>(least, want) + 1);
  CodeErrors errors;
  ColdRows cold(MappedVectors(), options_.dim * sizeof(float));
  size_t asked = 0;
  const auto ask_until = [&](size_t end) {
    for (; asked < std::min(end, candidates.size()); ++asked) cold.Ask(candidates[asked].slot);
    cold.Send();
  };
  if (cold.cold()) ask_until(std::max(least, kColdRowsStep));
  for (size_t i = 0; i < std::min<size_t>(kRowsAhead, least); ++i)
    PrefetchVector(candidates[i].slot);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    if (i >= least) {
      if (count != 0) break;
      const float slack = kRerankDeviations * errors.Deviation(codec_.Deviation(query.view, rows()->Row(c.slot)));
      if (c.distance + errors.mean() - slack > found.front().distance) break;
    }
    if (i + kRowsAhead < candidates.size()) PrefetchVector(candidates[i + kRowsAhead].slot);
    if (cold.cold() && i == asked) ask_until(asked + kColdRowsStep);
    const Found scored = {ExactWalkDistance(query, c.slot), c.slot};
    cold.CountRead(1);
    errors.Add(scored.distance - c.distance);
    if (found.size() == want) {
      if (!Closer(scored, found.front())) continue;
      std::pop_heap(found.begin(), found.end(), Closer);
      found.pop_back();
    }
    found.push_back(scored);
    std::push_heap(found.begin(), found.end(), Closer);
  }
  for (Found& f : found) f.distance = MetricDistance(f.distance);
  std::sort(found.begin(), found.end(), Closer);
  return found;
}

void VectorIndex::Impl::AddPending(const SearchJob& job, std::vector<Found>* found) const {
  std::vector<uint32_t> slots;
  {
    std::lock_guard<std::mutex> lock(pending_mutex_);
    for (const auto& [slot, state] : pending_) slots.push_back(slot);
  }
  std::erase_if(slots, [&](uint32_t slot) { return !job.gate.Accepts(slot); });
  std::vector<float> distances(slots.size());
  ExactDistances(job.query, slots.data(), static_cast<uint32_t>(slots.size()), distances.data());
  for (size_t i = 0; i < slots.size(); ++i) found->push_back({distances[i], slots[i]});
  std::sort(found->begin(), found->end(), Closer);
  // One that was linked meanwhile has been found twice.
  const auto same = [](const Found& a, const Found& b) { return a.slot == b.slot; };
  found->erase(std::unique(found->begin(), found->end(), same), found->end());
}

// `lost`: something that was found is not there any more, or does not match any more.
std::vector<SearchRow> VectorIndex::Impl::Rows(const SearchJob& job,
                                               const std::vector<Found>& found, bool* lost) const {
  const SearchParams& params = job.params;
  std::vector<SearchRow> rows;
  rows.reserve(std::min<size_t>(found.size(), params.k));
  uint32_t passed = 0;
  *lost = false;
  for (const Found& f : found) {
    if (passed == job.want || !(f.distance <= params.range)) break;
    const bool live = (graph_->meta(f.slot) & kMetaLive) != 0;
    const RecordView record = live ? records_.Get(f.slot) : RecordView();
    if (!record || !job.gate.AcceptsRecord(f.slot, record)) {
      *lost = true;
      continue;
    }
    if (passed++ < params.offset) continue;
    SearchRow& row = rows.emplace_back();
    row.slot = f.slot;
    row.distance = f.distance;
    row.name = record.name();
    if (params.with_attr) row.attr = record.attr();
    if (params.with_vector) Restore(f.slot, record.header->norm, &row.vector);
  }
  return rows;
}

std::vector<ScoredSlot> VectorIndex::Impl::FindNearest(const SearchJob& job) const {
  if (ScanIsBetter(job)) {
    const bool told = job.params.where_or_null != nullptr && job.params.report_or_null != nullptr;
    if (told) job.report->estimate = EstimateMatches(job).matches;
    return ScanFor(job);
  }
  if (job.params.where_or_null != nullptr) return FindMatching(job);
  bool full = false;
  std::vector<Found> found = WalkFor(job, &full);
  if (pending_count_.load(std::memory_order_acquire) != 0) AddPending(job, &found);
  // What a walk cannot reach, a scan does.
  if (found.size() < job.want) found = ScanFor(job);
  return found;
}

Result<std::vector<SearchRow>> VectorIndex::Impl::Search(std::span<const float> query,
                                                         const SearchParams& params) const {
  HOTKV_RETURN_IF_ERROR(CheckVector(query));
  if (params.k == 0) return Status::InvalidArgument("the number of results must be above zero");
  if (params.ef > kIndexEfMax) {
    return Status::InvalidArgument("EF must be 1 to " + std::to_string(kIndexEfMax));
  }
  if (std::isnan(params.range)) return Status::InvalidArgument("the range is not a number");
  const uint64_t live = LiveCount();
  const auto want =
      static_cast<uint32_t>(std::min<uint64_t>(uint64_t{params.k} + params.offset, live));
  if (want == 0) return std::vector<SearchRow>();
  const Prepared prepared = PrepareVector(query);
  SearchReport report;
  std::vector<SearchRow> rows;
  bool lost = true;
  for (int attempt = 0; lost && attempt < kSearchAttempts; ++attempt) {
    ReaderPin pin;
    SearchGate gate(GateParts(), params.filter, params.where_or_null);
    const SearchJob job = {prepared, params, gate, want, EfFor(params, want), &report};
    rows = Rows(job, FindNearest(job), &lost);
    report.tests += gate.tests();
    report.json_reads += gate.json_reads();
  }
  if (params.report_or_null != nullptr) *params.report_or_null = report;
  return rows;
}

}  // namespace hotkv
