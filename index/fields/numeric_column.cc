#include "index/fields/numeric_column.h"

#include <algorithm>

#include "engine/base/check.h"

namespace hotkv {

namespace {

// Shorter tails are not merged.
constexpr uint32_t kTailMin = 1024;
// Set merges runs and tails up to this size itself: about half a millisecond.
constexpr size_t kMergedBySetMax = 1u << 15;

}  // namespace

uint64_t NumericColumn::BitsOf(const JsonValue& value) {
  switch (value.kind) {
    case JsonKind::kNumber:
    case JsonKind::kBool:
      return std::bit_cast<uint64_t>(value.number == 0 ? 0.0 : value.number);
    case JsonKind::kMissing:
    case JsonKind::kOther:
      return kMissingBits;
    default:
      return kInJsonBits;
  }
}

NumericColumn::NumericColumn()
    : bits_(SlabGeometry::For(sizeof(uint64_t), 4096, size_t{64} << 20), nullptr),
      order_(new Order) {}

NumericColumn::~NumericColumn() { delete order_.load(std::memory_order_relaxed); }

void NumericColumn::Set(uint32_t slot, const JsonValue& value) {
  HOTKV_CHECK(bits_.Reserve(slot + 1).ok());  // private memory: no file that could be full
  const std::atomic_ref<uint64_t> place = bits_.At<uint64_t>(slot);
  const uint64_t now = BitsOf(value);
  const uint64_t old = place.load(std::memory_order_relaxed) ^ kMissingBits;
  if (now == old) return;
  // Listed first: who finds the slot in a list asks the column.
  Order* order = order_.load(std::memory_order_relaxed);
  if (now == kInJsonBits) {
    in_json_.Append(slot);
  } else if (now != kMissingBits) {
    order->tail.Append(slot);
  }
  place.store(now ^ kMissingBits, std::memory_order_release);
  if (old == kMissingBits) count_.fetch_add(1, std::memory_order_relaxed);
  if (now == kMissingBits) count_.fetch_sub(1, std::memory_order_relaxed);
  const size_t tail = order->tail.size();
  const size_t run = order->run.slots.size();
  // A large tail is left to others; if nobody comes, its merge is paid for by as many changes.
  if (merge_due() && (run <= kMergedBySetMax ? tail <= kMergedBySetMax : tail > run)) {
    MergePtr merge = BeginMerge();
    DoMerge(merge.get());
    FinishMerge(std::move(merge));
  }
}

struct NumericColumn::Merge {
  const Order* from;
  std::vector<uint32_t> tail;  // of `from`, as far as it is merged
  std::unique_ptr<Order> made = std::make_unique<Order>();
};

void NumericColumn::MergeDeleter::operator()(Merge* merge) const { delete merge; }

bool NumericColumn::merge_due(uint32_t share) const {
  if (merging_) return false;
  const Order* order = order_.load(std::memory_order_relaxed);
  const size_t tail = order->tail.size();
  return tail > kTailMin && tail > order->run.slots.size() / share;
}

// No Set is under way: what the tail has so far, its slots have.
NumericColumn::MergePtr NumericColumn::BeginMerge() {
  merging_ = true;
  const Order* from = order_.load(std::memory_order_relaxed);
  const std::span<const uint32_t> tail = from->tail.Read();
  return MergePtr(new Merge{from, {tail.begin(), tail.end()}});
}

// A slot whose number changes meanwhile is in the tail behind what is merged.
void NumericColumn::DoMerge(Merge* merge) const {
  std::vector<std::pair<double, uint32_t>> fresh;
  for (const uint32_t slot : merge->tail) {
    double number = 0;
    if (StateOf(slot, &number) == State::kNumber) fresh.emplace_back(number, slot);
  }
  std::sort(fresh.begin(), fresh.end());
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  const Run& old = merge->from->run;
  Run& run = merge->made->run;
  run.numbers.reserve(old.slots.size() + fresh.size());
  run.slots.reserve(old.slots.size() + fresh.size());
  const auto put = [&run](double number, uint32_t slot) {
    run.numbers.push_back(number);
    run.slots.push_back(slot);
  };
  size_t at = 0;
  for (size_t i = 0; i < old.slots.size(); ++i) {
    const std::pair<double, uint32_t> kept = {old.numbers[i], old.slots[i]};
    double number = 0;
    // What has another number now came to the tail with it.
    if (StateOf(kept.second, &number) != State::kNumber || number != kept.first) continue;
    while (at < fresh.size() && fresh[at] < kept) {
      put(fresh[at].first, fresh[at].second);
      ++at;
    }
    if (at < fresh.size() && fresh[at] == kept) ++at;
    put(kept.first, kept.second);
  }
  for (; at < fresh.size(); ++at) put(fresh[at].first, fresh[at].second);
}

void NumericColumn::FinishMerge(MergePtr merge) {
  Order* old = order_.load(std::memory_order_relaxed);
  for (const uint32_t slot : old->tail.Read().subspan(merge->tail.size())) {
    merge->made->tail.Append(slot);
  }
  order_.store(merge->made.release(), std::memory_order_release);
  IndexReclaim().Retire([old] { delete old; });
  merging_ = false;
}

std::pair<size_t, size_t> NumericColumn::Within(const Run& run, const NumberRange& range) {
  const auto begin = run.numbers.begin();
  const auto low = std::lower_bound(begin, run.numbers.end(), range.low);
  const auto high = std::upper_bound(low, run.numbers.end(), range.high);
  return {static_cast<size_t>(low - begin), static_cast<size_t>(high - begin)};
}

NumericColumn::Places NumericColumn::Find(std::span<const NumberRange> ranges) const {
  const Order* order = order_.load(std::memory_order_acquire);
  Places places;
  for (const NumberRange& range : ranges) {
    const auto [low, high] = Within(order->run, range);
    if (low == high) continue;
    places.lists.push_back(std::span(order->run.slots).subspan(low, high - low));
    places.estimate += high - low;
  }
  // Of the tail, as much as a sample of it says.
  constexpr size_t kSample = 64;
  const std::span<const uint32_t> tail = order->tail.Read();
  const size_t step = std::max<size_t>(1, tail.size() / kSample);
  size_t looked = 0;
  size_t inside = 0;
  for (size_t i = 0; i < tail.size(); i += step, ++looked) {
    double number = 0;
    if (StateOf(tail[i], &number) != State::kNumber) continue;
    const auto has = [number](const NumberRange& range) { return range.Has(number); };
    inside += std::any_of(ranges.begin(), ranges.end(), has) ? 1 : 0;
  }
  if (looked != 0) places.estimate += (inside * tail.size() + looked - 1) / looked;
  places.lists.push_back(tail);
  places.estimate = std::min<uint64_t>(places.estimate, count());
  return places;
}

size_t NumericColumn::bytes() const {
  const Order* order = order_.load(std::memory_order_acquire);
  return bits_.bytes() + order->run.slots.size() * (sizeof(double) + sizeof(uint32_t)) +
         order->tail.bytes() + in_json_.bytes();
}

}  // namespace hotkv
