#include "index/index_impl.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/hash.h"
#include "engine/base/limits.h"
#include "engine/base/rule_switch.h"
#include "index/file/generation.h"
#include "index/reader_pin.h"

namespace hotkv {

namespace {

constexpr size_t kVectorSlabFirst = size_t{256} << 10;
constexpr size_t kCodeSlabFirst = size_t{64} << 10;
constexpr size_t kSlabCap = size_t{64} << 20;
constexpr size_t kSmallFirst = 4096;
// Squares of differences must not overflow a float.
constexpr double kNormMax = 1e18;

// Rows of a cache line or more start at one; smaller ones do not straddle two.
uint32_t RowStride(uint32_t bytes) {
  return bytes >= 64 ? (bytes + 63) / 64 * 64 : std::bit_ceil(bytes);
}

// Partial sums by position: the compiler may use vectors, and every machine gets the same result.
double SquaredNorm(std::span<const float> v) {
  double sum[8] = {};
  size_t i = 0;
  for (; i + 8 <= v.size(); i += 8) {
    for (size_t j = 0; j < 8; ++j) sum[j] += double{v[i + j]} * double{v[i + j]};
  }
  for (; i < v.size(); ++i) sum[i % 8] += double{v[i]} * double{v[i]};
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

Status Invalid(std::string text) { return Status::InvalidArgument(std::move(text)); }

}  // namespace

Status VectorIndex::Impl::CheckOptions(const IndexOptions& o) {
  if (o.dim < 1 || o.dim > kVectorDimMax) {
    return Invalid("dimension must be 1 to " + std::to_string(kVectorDimMax));
  }
  if (o.m < 2 || o.m > kIndexMMax) return Invalid("M must be 2 to " + std::to_string(kIndexMMax));
  if (o.ef_construction < 1 || o.ef_construction > kIndexEfMax || o.ef_default < 1 ||
      o.ef_default > kIndexEfMax) {
    return Invalid("EF must be 1 to " + std::to_string(kIndexEfMax));
  }
  if (o.metric > Metric::kIp) return Invalid("unknown metric");
  if (o.type > ElementType::kBin) {
    return Status::Unsupported("element type " + std::string(ElementTypeName(o.type)));
  }
  return Status::Ok();
}

VectorIndex::Impl::Impl(const IndexOptions& options, Env* env_or_null, std::string dir,
                        uint64_t uid)
    : options_(options),
      env_(env_or_null),
      dir_(std::move(dir)),
      uid_(uid),
      target_(CurrentTarget()),
      codec_(options_, target_),
      sums_(SlabGeometry::For(sizeof(uint32_t), kSmallFirst, kSlabCap), nullptr),
      ef_default_(options.ef_default),
      rerank_(options.rerank) {
  const auto row_bytes = static_cast<uint32_t>(options_.dim * sizeof(float));
  const bool files = env_ != nullptr;
  const SlabGeometry shape =
      SlabGeometry::For(RowStride(row_bytes), files ? kVectorSlabFirst : kSmallFirst,
                        files ? kSlabCap : kSlabCap * 16);
  vectors_ = MakeRows(shape, "vectors", ".f32", &vector_files_);
  if (!codec_.rows_are_vectors()) {
    const SlabGeometry code_shape =
        SlabGeometry::For(codec_.stride(), files ? kCodeSlabFirst : kSmallFirst, kSlabCap);
    codes_ = std::make_unique<SlabArray>(code_shape, nullptr);
    if (files) code_file_rows_ = MakeRows(code_shape, "codes", "", &code_files_);
  }
  GraphOptions graph;
  graph.m = options_.m;
  graph.ef_construction = std::max(options_.ef_construction, options_.m);
  graph.target = &target_;
  graph.space = codec_.space();
  graph.params = codec_.params();
  graph.query_bytes = codec_.query_bytes();
  graph_ = std::make_unique<Graph>(graph, rows());
}

std::unique_ptr<SlabArray> VectorIndex::Impl::MakeRows(const SlabGeometry& shape,
                                                       const char* prefix, const char* suffix,
                                                       std::unique_ptr<SlabFiles>* files) const {
  if (env_ == nullptr) return std::make_unique<SlabArray>(shape, nullptr);
  *files = std::make_unique<SlabFiles>(
      SlabFiles::Spec{env_, dir_, prefix, suffix, uid_, options_.dim, shape});
  return std::make_unique<SlabArray>(
      shape, [f = files->get()](uint32_t slab, size_t bytes) { return f->MakeSlab(slab, bytes); });
}

VectorIndex::Impl::~Impl() = default;

// ---- vectors ----

Status VectorIndex::Impl::CheckVector(std::span<const float> vector) const {
  if (vector.size() != options_.dim) {
    return Invalid("vector has " + std::to_string(vector.size()) + " dimensions, the index has " +
                   std::to_string(options_.dim));
  }
  const double squared = SquaredNorm(vector);
  if (std::isfinite(squared)) {
    if (options_.metric == Metric::kCosine) {
      if (squared == 0 && !zero_allowed_) return Invalid("a zero vector has no direction, which COSINE compares");
      if (std::sqrt(squared) > double{std::numeric_limits<float>::max()}) {
        return Invalid("vector is too long: its length is beyond float32");
      }
    } else if (std::sqrt(squared) > kNormMax) {
      return Invalid("vector is too long: its length must not be above 1e18");
    }
    return Status::Ok();
  }
  for (size_t i = 0; i < vector.size(); ++i) {
    if (std::isfinite(vector[i])) continue;
    return Invalid("vector component " + std::to_string(i + 1) + " is " +
                   (std::isnan(vector[i]) ? "not a number" : "infinite"));
  }
  return Status::Internal("vector norm");
}

VectorIndex::Impl::Prepared VectorIndex::Impl::PrepareVector(std::span<const float> vector) const {
  Prepared prepared;
  const size_t row = (vectors_->geometry().stride + size_t{63}) / 64 * 64;
  prepared.memory = PrivateMemory(row + codec_.query_bytes());
  prepared.data = reinterpret_cast<float*>(prepared.memory.data());
  prepared.buffer = prepared.memory.data() + row;
  if (options_.metric == Metric::kCosine) {
    const double norm = std::sqrt(SquaredNorm(vector));
    const double factor = norm > 0 ? 1 / norm : 0;
    prepared.norm = static_cast<float>(norm);
    for (size_t i = 0; i < vector.size(); ++i) {
      prepared.data[i] = static_cast<float>(double{vector[i]} * factor);
    }
  } else {
    std::memcpy(prepared.data, vector.data(), vector.size_bytes());
  }
  prepared.view = codec_.MakeQuery(prepared.data, prepared.buffer);
  return prepared;
}

void VectorIndex::Impl::StoreRow(uint32_t slot, const Prepared& vector) {
  if (vector_files_) vector_files_->MarkDirty(slot);
  std::memcpy(VectorAt(slot), vector.data, options_.dim * sizeof(float));
  if (codes_) {
    const QueryBuffer buffer(codec_.query_bytes());
    char* row = codes_->Row(slot);
    codec_.Encode(vector.data, buffer.data(), row);
    if (code_file_rows_) {
      code_files_->MarkDirty(slot);
      char* in_file = code_file_rows_->Row(slot);
      if (in_file != row) std::memcpy(in_file, row, codec_.row_bytes());
    }
  }
  sums_.At<uint32_t>(slot).store(SumOf(slot), std::memory_order_relaxed);
}

uint32_t VectorIndex::Impl::SumOf(uint32_t slot) const {
  const uint32_t sum = Crc32c({vectors_->Row(slot), options_.dim * sizeof(float)});
  return codes_ ? ExtendCrc32c(sum, {codes_->Row(slot), codec_.row_bytes()}) : sum;
}

void VectorIndex::Impl::Restore(uint32_t slot, float norm, std::vector<float>* out) const {
  const float* row = VectorAt(slot);
  out->assign(row, row + options_.dim);
  if (norm == 1) return;
  for (float& x : *out) x *= norm;
}

// ---- slots ----

uint32_t VectorIndex::Impl::LevelFor(std::string_view name) const {
  const uint64_t hash = HashBytes(name, options_.seed);
  const double uniform = (static_cast<double>(hash >> 11) + 0.5) * 0x1p-53;
  const double level = -std::log(uniform) / std::log(static_cast<double>(options_.m));
  return static_cast<uint32_t>(std::min(level, double{kLevelMax}));
}

Status VectorIndex::Impl::ReserveSlots(uint32_t slots) {
  HOTKV_RETURN_IF_ERROR(vectors_->Reserve(slots));
  if (code_file_rows_) HOTKV_RETURN_IF_ERROR(code_file_rows_->Reserve(slots));
  if (codes_) HOTKV_RETURN_IF_ERROR(codes_->Reserve(slots));
  HOTKV_RETURN_IF_ERROR(sums_.Reserve(slots));
  HOTKV_RETURN_IF_ERROR(records_.Reserve(slots));
  return graph_->Reserve(slots);
}

bool VectorIndex::Impl::IsFreeLocked(uint32_t slot) const {
  const size_t word = slot / 64;
  return word < free_bits_.size() && (free_bits_[word] >> (slot % 64) & 1) != 0;
}

void VectorIndex::Impl::SetFreeLocked(uint32_t slot, bool free) {
  if (IsFreeLocked(slot) == free) return;
  const size_t word = slot / 64;
  if (free_bits_.size() <= word) free_bits_.resize(word + 1);
  free_bits_[word] ^= uint64_t{1} << (slot % 64);
  if (free) {
    ++free_count_;
    free_hint_ = std::min(free_hint_, static_cast<uint32_t>(word));
  } else {
    --free_count_;
  }
}

Result<uint32_t> VectorIndex::Impl::TakeSlot() {
  std::lock_guard<std::mutex> lock(slots_mutex_);
  if (free_count_ != 0 && reuse_open_ && reuse_held_ == 0) {
    while (free_bits_[free_hint_] == 0) ++free_hint_;
    const auto bit = static_cast<uint32_t>(std::countr_zero(free_bits_[free_hint_]));
    const uint32_t slot = free_hint_ * 64 + bit;
    SetFreeLocked(slot, false);
    return slot;
  }
  if (next_slot_ >= kIndexSlotsMax) return Status::OutOfRange("the index is full");
  HOTKV_RETURN_IF_ERROR(ReserveSlots(next_slot_ + 1));
  return next_slot_++;
}

void VectorIndex::Impl::GiveBack(std::span<const uint32_t> slots) {
  if (slots.empty()) return;
  for (const uint32_t slot : slots) records_.Clear(slot);
  std::lock_guard<std::mutex> lock(slots_mutex_);
  if (env_ == nullptr || !rules::Enabled(Rule::kSlotReuse)) {
    for (const uint32_t slot : slots) SetFreeLocked(slot, true);
    return;
  }
  if (held_.empty() || held_.back().begun != checkpoints_begun_)
    held_.push_back({checkpoints_begun_, {}});
  held_.back().slots.insert(held_.back().slots.end(), slots.begin(), slots.end());
  held_count_ += slots.size();
}

void VectorIndex::Impl::FreeAfterReaders(uint32_t slot) {
  auto over = std::make_shared<std::atomic<bool>>(false);
  IndexReclaim().Retire([over] { over->store(true, std::memory_order_release); });
  std::lock_guard<std::mutex> lock(slots_mutex_);
  waiting_.push_back({slot, std::move(over)});
}

void VectorIndex::Impl::CollectFreed() {
  IndexReclaim().Collect();
  std::vector<uint32_t> freed;
  {
    std::lock_guard<std::mutex> lock(slots_mutex_);
    if (copying_) return;
    std::erase_if(waiting_, [&freed](const Waiting& w) {
      if (!w.over->load(std::memory_order_acquire)) return false;
      freed.push_back(w.slot);
      return true;
    });
  }
  for (const uint32_t slot : freed) graph_->ClearNode(slot);
  GiveBack(freed);
}

void VectorIndex::Impl::ReleaseSlots(uint64_t oldest_kept) {
  std::lock_guard<std::mutex> lock(slots_mutex_);
  if (oldest_kept >= reuse_from_) reuse_open_ = true;
  const auto at = begun_.find(oldest_kept);
  if (at == begun_.end()) return;
  const uint64_t begun = at->second;
  while (!held_.empty() && held_.front().begun < begun) {
    for (const uint32_t slot : held_.front().slots) SetFreeLocked(slot, true);
    held_count_ -= held_.front().slots.size();
    held_.pop_front();
  }
  begun_.erase(begun_.begin(), at);
}

// ---- names ----

bool VectorIndex::Impl::NameIs(uint32_t slot, std::string_view name) const {
  const RecordView record = records_.Get(slot);
  return record && record.name() == name;
}

std::optional<uint32_t> VectorIndex::Impl::FindLocked(std::string_view name) const {
  return names_.Find(NameMap::HashOf(name), [&](uint32_t slot) { return NameIs(slot, name); });
}

std::optional<uint32_t> VectorIndex::Impl::Find(std::string_view name) const {
  std::shared_lock<std::shared_mutex> lock(names_mutex_);
  return FindLocked(name);
}

RecordView VectorIndex::Impl::FindRecord(std::string_view name, uint32_t* slot) const {
  const std::optional<uint32_t> found = Find(name);
  if (!found) return {};
  *slot = *found;
  const RecordView record = records_.Get(*found);
  return record && record.ExpiredAt(expiry_.DueMs()) ? RecordView() : record;
}

std::optional<uint32_t> VectorIndex::Impl::FindLiveLocked(std::string_view name) const {
  const std::optional<uint32_t> slot = FindLocked(name);
  if (slot && records_.Get(*slot).ExpiredAt(expiry_.DueMs())) return std::nullopt;
  return slot;
}

void VectorIndex::Impl::Enlist(uint32_t slot) {
  const RecordView record = records_.Get(slot);
  if (!record) return;  // of a damaged file
  if (!record.attr().empty()) with_attr_.fetch_add(1, std::memory_order_relaxed);
  if (const int64_t at_ms = record.expire_at_ms(); at_ms != 0) expiry_.Add(at_ms, slot);
}

void VectorIndex::Impl::Delist(uint32_t slot) {
  const RecordView record = records_.Get(slot);
  if (!record) return;
  if (!record.attr().empty()) with_attr_.fetch_sub(1, std::memory_order_relaxed);
  if (const int64_t at_ms = record.expire_at_ms(); at_ms != 0) expiry_.Remove(at_ms, slot);
}

void VectorIndex::Impl::ChangeRecord(uint32_t slot, const RecordContent& content) {
  Delist(slot);
  records_.Set(slot, content);
  fields_.Set(slot, content.attr);
  Enlist(slot);
}

uint64_t VectorIndex::Impl::LiveCount() const {
  const uint64_t live = live_.load(std::memory_order_relaxed);
  const int64_t due_ms = expiry_.DueMs();
  if (due_ms == 0) return live;
  std::shared_lock<std::shared_mutex> lock(names_mutex_);
  const uint64_t ended = expiry_.CountDue(due_ms);
  return live > ended ? live - ended : 0;
}

void VectorIndex::Impl::Kill(uint32_t slot) {
  Delist(slot);
  fields_.Clear(slot);
  graph_->MarkDead(slot);
  live_.fetch_sub(1, std::memory_order_relaxed);
  if (pending_count_.load(std::memory_order_acquire) != 0) KillPending(slot);
}

// ---- fields ----

// Makes one column's run anew, beside reads and writes. False when there is none to be made.
bool VectorIndex::Impl::MergeNumbers() {
  std::shared_ptr<NumericColumn> column;
  NumericColumn::MergePtr merge;
  {
    std::lock_guard<std::shared_mutex> lock(names_mutex_);
    const bool built = fields_.next_to_build() >= graph_->slot_limit();
    column = fields_.MergeDue(built ? FieldIndex::Building::kBuilt : FieldIndex::Building::kGrowing);
    if (!column) return false;
    merge = column->BeginMerge();
  }
  column->DoMerge(merge.get());
  std::lock_guard<std::shared_mutex> lock(names_mutex_);
  column->FinishMerge(std::move(merge));
  return true;
}

bool VectorIndex::Impl::BuildFields(uint32_t slots_max) {
  if (MergeNumbers()) return true;
  ReaderPin pin;
  std::lock_guard<std::shared_mutex> lock(names_mutex_);
  if (!fields_.building()) fields_.BeginBuilding();
  if (!fields_.building()) return false;
  const uint32_t limit = graph_->slot_limit();
  const uint32_t begin = std::min(fields_.next_to_build(), limit);
  const uint32_t end = begin + std::min(slots_max, limit - begin);
  for (uint32_t slot = begin; slot < end; ++slot) {
    if ((graph_->meta(slot) & kMetaLive) == 0) continue;
    const RecordView record = records_.Get(slot);
    if (record) fields_.SetInBuilding(slot, record.attr());
  }
  fields_.BuiltUpTo(end);
  // Before its first use a column gets its run: with its numbers in the tail it would serve slowly.
  if (end == limit && fields_.MergeDue(FieldIndex::Building::kBuilt) == nullptr) {
    fields_.FinishBuilding();
  }
  return fields_.building();
}

// ---- the rest ----

IndexInfo VectorIndex::Impl::Info() const {
  IndexInfo info;
  info.options = options_;
  info.options.ef_default = ef_default_.load(std::memory_order_relaxed);
  info.options.rerank = rerank_.load(std::memory_order_relaxed);
  info.live = LiveCount();
  info.with_attr = with_attr_.load(std::memory_order_relaxed);
  info.dead = graph_->dead_count();
  info.pending = pending_count_.load(std::memory_order_relaxed);
  info.top_level = graph_->top_level();
  info.hot_bytes = graph_->link_bytes() + (codes_ ? codes_->bytes() : 0);
  info.vector_bytes = vectors_->bytes() + (vector_files_ ? vector_files_->bytes() : 0);
  info.other_bytes = sizeof(Impl) + (code_file_rows_ ? code_file_rows_->bytes() : 0) + graph_->other_bytes() + records_.bytes() + sums_.bytes();
  info.kernel = target_.name;
  {
    std::shared_lock<std::shared_mutex> lock(names_mutex_);
    info.other_bytes += names_.bytes() + expiry_.bytes();
    info.expiring = expiry_.size();
    ReaderPin pin;
    info.field_bytes = fields_.bytes();
    info.other_bytes += info.field_bytes;
    for (const FieldSpec& spec : fields_.specs()) {
      if (fields_.table()->Find(spec.name) == nullptr) info.fields_ready = false;
    }
    for (const FieldSpec& spec : fields_.automatic()) {
      if (fields_.table()->Find(spec.name) != nullptr) info.automatic_fields.push_back(spec.name);
    }
  }
  std::lock_guard<std::mutex> lock(slots_mutex_);
  info.slots = next_slot_;
  info.free_slots = free_count_;
  info.held_slots = held_count_ + waiting_.size();
  return info;
}

Status VectorIndex::Impl::CheckInvariants() const {
  HOTKV_RETURN_IF_ERROR(graph_->CheckInvariants());
  ReaderPin pin;
  std::shared_lock<std::shared_mutex> lock(names_mutex_);
  std::lock_guard<std::mutex> slots_lock(slots_mutex_);
  const auto broken = [](uint32_t slot, const char* what) {
    return Status::Corruption("index: slot " + std::to_string(slot) + " " + what);
  };
  uint64_t live = 0;
  uint64_t with_attr = 0;
  uint64_t expiring = 0;
  for (uint32_t slot = 0; slot < next_slot_; ++slot) {
    const uint8_t meta = graph_->meta(slot);
    if (IsFreeLocked(slot) && meta != 0) return broken(slot, "is free and in use");
    if ((meta & (kMetaLinked | kMetaLive)) == 0) continue;
    if (SumOf(slot) != sums_.At<uint32_t>(slot).load(std::memory_order_relaxed)) {
      return broken(slot, "holds a vector that does not match its checksum");
    }
    if ((meta & kMetaLive) == 0) continue;
    ++live;
    const RecordView record = records_.Get(slot);
    if (!record) return broken(slot, "is live without a name");
    const std::optional<uint32_t> mapped = FindLocked(record.name());
    if (mapped != slot) return broken(slot, "is live, but its name leads elsewhere");
    with_attr += record.attr().empty() ? 0 : 1;
    expiring += record.expire_at_ms() == 0 ? 0 : 1;
  }
  if (live != live_.load(std::memory_order_relaxed)) {
    return Status::Corruption("index: the count of live elements is wrong");
  }
  if (live != names_.size()) return Status::Corruption("index: names without live elements");
  if (with_attr != with_attr_.load(std::memory_order_relaxed) || expiring != expiry_.size()) {
    return Status::Corruption("index: the count of attributes or of ends is wrong");
  }
  return Status::Ok();
}

}  // namespace hotkv
