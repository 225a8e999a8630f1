// Searching among the elements that match a filter: how many there are, and by which way to go; scans.
#include <algorithm>
#include <cmath>

#include "engine/base/random.h"
#include "index/graph/slot_marks.h"
#include "index/index_impl.h"
#include "index/reader_pin.h"

namespace hotkv {

namespace {

constexpr uint32_t kScanBatch = 256;
// Samples for an estimate: of the slots that columns list; of all slots, by columns or by JSON.
constexpr uint32_t kSampleListed = 48;
constexpr uint32_t kSampleAll = 256;
constexpr uint32_t kSampleJson = 64;
constexpr size_t kSeedsMax = 32;
// From this share on what lists give is scanned in the order of its rows in memory.
constexpr uint32_t kDenseShare = 4;
// Smaller indexes are scanned as fast as columns are made.
constexpr uint32_t kWishSlotsMin = 4096;
constexpr uint32_t kWishSample = 32;

// What the plans cost, in nanoseconds of the machine that docs/performance.md names; only their
// ratios matter. A walk that collects `ef * sqrt(share)` of what matches visits `14 ef / sqrt(share)`
// nodes; two hops test many more slots than they compute distances to.
constexpr double kTestCost = 4;
constexpr double kScanTestCost = 2.5;
constexpr double kJsonCost = 250;
constexpr double kNodeCost = 6;
constexpr double kLineCost = 4.2;
constexpr double kScannedRowCost = 4;
constexpr double kScannedLineCost = 1.6;
constexpr double kWalkNodesPerEf = 14;
constexpr double kWalkTestsPerEf = 3;
constexpr double kHopTests = 36;
constexpr double kHopTestsMax = 240;
constexpr double kHopLinkCost = 10;
constexpr double kTwoHopShareMin = 0.05;
constexpr double kShareMin = 0.002;
// A walk gives up early where a scan costs no more than so many walks.
constexpr double kEarlyScanCost = 3;
// Keeping more nodes in order costs more than it finds.
constexpr uint32_t kWalkPoolMax = 4096;

SlotMarks& MyMarks() {
  thread_local SlotMarks marks;
  return marks;
}

Random& MyRandom() {
  thread_local Random random(0x5a17);
  return random;
}

}  // namespace

std::string_view SearchPlanName(SearchPlan plan) {
  switch (plan) {
    case SearchPlan::kScan:
      return "scan";
    case SearchPlan::kWalk:
      return "walk";
    case SearchPlan::kTwoHop:
      return "twohop";
    case SearchPlan::kChoose:
      break;
  }
  return "none";
}

VectorIndex::Impl::MatchEstimate VectorIndex::Impl::EstimateMatches(const SearchJob& job) const {
  MatchEstimate estimate;
  SlotFilter& columns = *job.gate.columns();
  const uint32_t limit = graph_->slot_limit();
  const auto live = static_cast<double>(live_.load(std::memory_order_relaxed));
  uint64_t looked = 0;
  uint64_t hits = 0;
  const auto look = [&](uint32_t slot) {
    ++looked;
    if (slot >= limit || !job.gate.Accepts(slot)) return;
    ++hits;
    if (estimate.seeds.size() < kSeedsMax) estimate.seeds.push_back(slot);
  };
  job.report->covered = columns.covered();
  job.report->listed = columns.listed().has_value();
  if (columns.listed()) {
    const size_t entries = columns.listed_entries();
    const size_t step = std::max<size_t>(1, entries / kSampleListed);
    columns.ForEachListedStep(step, look);
    const double share = looked == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(looked);
    estimate.matches = std::min(static_cast<double>(*columns.listed()),
                                share * static_cast<double>(entries));
    // Nothing found in a sample of more than that is still something.
    if (hits == 0 && step > 1) estimate.matches = static_cast<double>(step) / 2;
    estimate.to_test = entries;
    return estimate;
  }
  const uint32_t sample = columns.covered() ? kSampleAll : kSampleJson;
  uint32_t tried = 0;
  for (; looked < sample && tried < sample * 4; ++tried) {
    const auto slot = static_cast<uint32_t>(MyRandom().Below(limit));
    if ((graph_->meta(slot) & kMetaLive) != 0) look(slot);
  }
  const double share = hits == 0 ? 0.5 / static_cast<double>(looked + 1)
                                 : static_cast<double>(hits) / static_cast<double>(looked);
  estimate.matches = share * live;
  estimate.to_test = limit;
  return estimate;
}

// Asks for columns of the fields that have none, of the kind that a look at some elements suggests.
void VectorIndex::Impl::WishColumns(const FilterExpression& where) const {
  const uint32_t limit = graph_->slot_limit();
  if (limit < kWishSlotsMin || !fields_.takes_wishes()) return;
  const std::vector<std::string>& names = where.fields();
  std::vector<int> numbers(names.size());
  const JsonFields reader(names);
  std::vector<JsonValue> values(names.size());
  std::string arena;
  for (uint32_t i = 0; i < kWishSample; ++i) {
    const auto slot = static_cast<uint32_t>(MyRandom().Below(limit));
    if ((graph_->meta(slot) & kMetaLive) == 0) continue;
    const RecordView record = records_.Get(slot);
    if (!record || !reader.Read(record.attr(), values, &arena)) continue;
    for (size_t f = 0; f < names.size(); ++f) {
      if (values[f].kind == JsonKind::kMissing) continue;
      numbers[f] += values[f].kind == JsonKind::kNumber ? 1 : -1;
    }
  }
  const FieldTable& table = *fields_.table();
  for (size_t f = 0; f < names.size(); ++f) {
    if (table.Find(names[f]) != nullptr || names[f].size() > kFieldNameMax) continue;
    fields_.Want(names[f], numbers[f] > 0 ? FieldKind::kNumeric : FieldKind::kTag);
  }
}

VectorIndex::Impl::PlanCosts VectorIndex::Impl::CostsOf(const SearchJob& job,
                                                        const MatchEstimate& estimate) const {
  const double share = ShareOf(estimate);
  const double ef = job.ef;
  const double test = job.gate.columns()->covered() ? kTestCost : kJsonCost;
  const double scan_test = job.gate.columns()->covered() ? kScanTestCost : kJsonCost;
  const double lines = static_cast<double>(rows()->geometry().stride) / 64;
  const double node = kNodeCost + kLineCost * lines;
  const double row = kScannedRowCost + kScannedLineCost * lines;
  PlanCosts costs;
  costs.scan = static_cast<double>(estimate.to_test) * scan_test + estimate.matches * row;
  costs.walk = kWalkNodesPerEf * ef / std::sqrt(share) * node +
               kWalkTestsPerEf * ef / std::sqrt(share) * test;
  const double hop_tests = ef * std::min(kHopTestsMax, kHopTests / share);
  costs.two_hop = hop_tests * (test + kHopLinkCost) + ef * (12 + 24 * share) * node;
  return costs;
}

SearchPlan VectorIndex::Impl::ChoosePlan(const SearchJob& job, const PlanCosts& costs,
                                         double share) const {
  if (job.params.plan != SearchPlan::kChoose) return job.params.plan;
  if (costs.scan <= costs.walk && costs.scan <= costs.two_hop) return SearchPlan::kScan;
  // With fewer matching nodes than that they hang together too loosely.
  const bool two_hop = share >= kTwoHopShareMin && costs.two_hop < costs.walk;
  return two_hop ? SearchPlan::kTwoHop : SearchPlan::kWalk;
}

double VectorIndex::Impl::ShareOf(const MatchEstimate& estimate) const {
  const double live = std::max(1.0, static_cast<double>(live_.load(std::memory_order_relaxed)));
  return std::clamp(estimate.matches / live, kShareMin, 1.0);
}

std::vector<ScoredSlot> VectorIndex::Impl::FindMatching(const SearchJob& job) const {
  if (!job.gate.columns()->covered()) WishColumns(*job.params.where_or_null);
  const MatchEstimate estimate = EstimateMatches(job);
  job.report->estimate = estimate.matches;
  const double share = ShareOf(estimate);
  const PlanCosts costs = CostsOf(job, estimate);
  const SearchPlan plan = ChoosePlan(job, costs, share);
  if (plan == SearchPlan::kScan) return ScanFor(job);
  std::vector<Found> found;
  if (plan == SearchPlan::kTwoHop) {
    found = TwoHopFor(job, estimate.seeds);
  } else {
    // Among nodes of which a share matches, the nearest that match are found with fewer of them than
    // the nearest of all would take, but by way of more nodes.
    SearchJob walk = job;
    walk.ef = std::max(job.want + 2, static_cast<uint32_t>(job.ef * std::sqrt(share)));
    walk.pool = std::clamp(static_cast<uint32_t>(2 * walk.ef / share), job.ef,
                           std::max(kWalkPoolMax, job.ef));
    walk.expected_share = job.params.plan == SearchPlan::kChoose ? share : 0;
    walk.gives_up_early = walk.expected_share > 0 && costs.scan < kEarlyScanCost * costs.walk;
    bool full = false;
    found = WalkFor(walk, &full);
    // It ended because it had no room to go on through what does not match: what matches lies
    // elsewhere.
    if (!full && job.params.plan == SearchPlan::kChoose) return ScanFor(job);
  }
  if (pending_count_.load(std::memory_order_acquire) != 0) AddPending(job, &found);
  return found.size() < job.want ? ScanFor(job) : found;
}

std::vector<ScoredSlot> VectorIndex::Impl::TwoHopFor(const SearchJob& job,
                                                     const std::vector<uint32_t>& seeds) const {
  Graph::WalkPlan plan;
  plan.query = job.query.view;
  plan.ef = job.ef;
  plan.context = &job.gate;
  plan.accepts = &GateAccepts;
  Graph::WalkCounts counts;
  const WalkPool& pool = graph_->WalkMatching(plan, seeds, &counts);
  std::vector<Candidate> candidates;
  for (uint32_t i = 0; i < pool.size; ++i) candidates.push_back({pool.distance[i], pool.slot[i]});
  job.report->plan = SearchPlan::kTwoHop;
  ++job.report->attempts;
  job.report->nodes += counts.nodes;
  job.report->distances += counts.distances;
  return Rerank(job.query, candidates, job.want, RerankFor(job.params));
}

// ---- scans ----

// What counts, none twice.
std::vector<uint32_t> VectorIndex::Impl::SlotsToScan(const SearchJob& job) const {
  std::vector<uint32_t> slots;
  uint32_t batch[kScanBatch];
  uint32_t n = 0;
  const auto test = [&] {
    job.gate.AcceptMany({batch, n}, &slots);
    n = 0;
  };
  const auto take = [&](uint32_t slot) {
    batch[n++] = slot;
    if (n == kScanBatch) test();
  };
  const uint32_t limit = graph_->slot_limit();
  SlotFilter* columns = job.gate.columns();
  if (columns != nullptr && columns->listed() && columns->listed_entries() < limit) {
    SlotMarks& marks = MyMarks();
    marks.Begin(limit);
    const size_t entries = columns->listed_entries();
    slots.reserve(entries);
    const bool in_order = entries > limit / kDenseShare;
    columns->ForEachListed([&](uint32_t slot) {
      if (slot < limit && marks.Set(slot) && !in_order) take(slot);
    });
    if (in_order) marks.ForEach(limit, take);
  } else {
    for (uint32_t slot = 0; slot < limit; ++slot) take(slot);
  }
  test();
  return slots;
}

std::vector<ScoredSlot> VectorIndex::Impl::ScanFor(const SearchJob& job) const {
  const std::vector<uint32_t> slots = SlotsToScan(job);
  job.report->plan = SearchPlan::kScan;
  ++job.report->attempts;
  job.report->distances += slots.size();
  const bool by_codes = codes_ && job.gate.filtered() && !job.params.exact &&
                        slots.size() > size_t{job.want} * 4 + kScanBatch;
  return by_codes ? ScanByCodes(job, slots) : ScanExactly(job, slots);
}

std::vector<ScoredSlot> VectorIndex::Impl::ScanExactly(const SearchJob& job,
                                                       const std::vector<uint32_t>& slots) const {
  std::vector<Found> best;  // a heap, the farthest on top
  float distances[kScanBatch];
  for (size_t begin = 0; begin < slots.size(); begin += kScanBatch) {
    const auto n = static_cast<uint32_t>(std::min<size_t>(kScanBatch, slots.size() - begin));
    ExactDistances(job.query, slots.data() + begin, n, distances);
    for (uint32_t i = 0; i < n; ++i) {
      const Found found = {distances[i], slots[begin + i]};
      if (best.size() == job.want && !Closer(found, best.front())) continue;
      if (best.size() == job.want) {
        std::pop_heap(best.begin(), best.end(), Closer);
        best.pop_back();
      }
      best.push_back(found);
      std::push_heap(best.begin(), best.end(), Closer);
    }
  }
  std::sort(best.begin(), best.end(), Closer);
  return best;
}

// By codes first; what may belong to the answer is then scored as a walk's candidates are.
std::vector<ScoredSlot> VectorIndex::Impl::ScanByCodes(const SearchJob& job,
                                                       const std::vector<uint32_t>& slots) const {
  const size_t keep = std::max<size_t>(job.ef, size_t{job.want} * 4);
  const auto nearer = [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; };
  std::vector<Candidate> best;
  float bound = std::numeric_limits<float>::infinity();
  const auto cut = [&] {
    if (best.size() <= keep) return;
    const auto end = best.begin() + static_cast<std::ptrdiff_t>(keep);
    std::nth_element(best.begin(), end, best.end(), nearer);
    bound = end->distance;
    best.erase(end, best.end());
  };
  float distances[kScanBatch];
  for (size_t begin = 0; begin < slots.size(); begin += kScanBatch) {
    const auto n = static_cast<uint32_t>(std::min<size_t>(kScanBatch, slots.size() - begin));
    graph_->Distances(job.query.view, slots.data() + begin, n, distances);
    for (uint32_t i = 0; i < n; ++i) {
      if (distances[i] < bound) best.push_back({distances[i], slots[begin + i]});
    }
    if (best.size() > keep * 4) cut();
  }
  cut();
  std::sort(best.begin(), best.end(), nearer);
  return Rerank(job.query, best, job.want, RerankFor(job.params));
}

// ---- counting ----

uint64_t VectorIndex::Impl::CountMatching(const FilterExpression& where) const {
  ReaderPin pin;
  SearchGate gate(GateParts(), {}, &where);
  const uint32_t limit = graph_->slot_limit();
  uint64_t count = 0;
  SlotFilter& columns = *gate.columns();
  if (!columns.covered()) WishColumns(where);
  if (columns.listed() && columns.listed_entries() < limit) {
    SlotMarks& marks = MyMarks();
    marks.Begin(limit);
    columns.ForEachListed([&](uint32_t slot) {
      if (slot < limit && marks.Set(slot) && gate.Accepts(slot)) ++count;
    });
    return count;
  }
  for (uint32_t slot = 0; slot < limit; ++slot) count += gate.Accepts(slot) ? 1 : 0;
  return count;
}

}  // namespace hotkv
