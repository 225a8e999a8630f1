#include "index/vector_index.h"

#include <algorithm>
#include <chrono>

#include "engine/base/check.h"
#include "index/index_impl.h"
#include "index/reader_pin.h"

namespace hotkv {

namespace {
// Elements that VisitByName looks at while changes wait.
constexpr uint32_t kVisitedUnderLock = 1024;
}  // namespace

std::string_view MetricName(Metric metric) {
  switch (metric) {
    case Metric::kCosine:
      return "COSINE";
    case Metric::kL2:
      return "L2";
    case Metric::kIp:
      return "IP";
  }
  return "?";
}

std::string_view ElementTypeName(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return "F32";
    case ElementType::kF16:
      return "F16";
    case ElementType::kQ8:
      return "Q8";
    case ElementType::kQ4:
      return "Q4";
    case ElementType::kBin:
      return "BIN";
  }
  return "?";
}

ElementType DefaultElementType(uint32_t dim) {
  // docs/decisions/0007: below, codes are padded so far that they save nothing; below that, 4 bits
  // lose more than 0.005 of recall among vectors that lie close together.
  constexpr uint32_t kQ8DimMin = 65;
  constexpr uint32_t kQ4DimMin = 320;
  return dim >= kQ4DimMin   ? ElementType::kQ4
         : dim >= kQ8DimMin ? ElementType::kQ8
                            : ElementType::kF32;
}

PreparedInsert& PreparedInsert::operator=(PreparedInsert&& other) noexcept {
  if (this == &other) return *this;
  if (index_ != nullptr) index_->Abandon(std::move(*this));
  index_ = std::exchange(other.index_, nullptr);
  slot_ = std::exchange(other.slot_, kNoSlot);
  return *this;
}

PreparedInsert::~PreparedInsert() {
  if (index_ != nullptr) index_->Abandon(std::move(*this));
}

VectorIndex::VectorIndex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VectorIndex::~VectorIndex() = default;

Result<std::unique_ptr<VectorIndex>> VectorIndex::Create(const IndexOptions& options,
                                                         Env* env_or_null, const std::string& dir) {
  HOTKV_RETURN_IF_ERROR(Impl::CheckOptions(options));
  uint64_t uid = 0;
  if (env_or_null != nullptr) {
    HOTKV_RETURN_IF_ERROR(env_or_null->MakeDir(dir));
    HOTKV_ASSIGN_OR_RETURN(const std::vector<DirEntry> entries, env_or_null->List(dir));
    if (!entries.empty()) return Status::Exists("the folder is not empty").At(dir, -1);
    uid = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  }
  return std::unique_ptr<VectorIndex>(
      new VectorIndex(std::make_unique<Impl>(options, env_or_null, dir, uid)));
}

Result<PreparedInsert> VectorIndex::Prepare(std::string_view name, std::span<const float> vector,
                                            std::string_view attr, int64_t expire_at_ms) {
  HOTKV_RETURN_IF_ERROR(impl_->CheckVector(vector));
  const Impl::Prepared prepared = impl_->PrepareVector(vector);
  HOTKV_ASSIGN_OR_RETURN(const uint32_t slot, impl_->TakeSlot());
  impl_->StoreRow(slot, prepared);
  impl_->records_.Set(slot, {name, attr, prepared.norm, expire_at_ms});
  const Status made = impl_->graph_->InitNode(slot, impl_->LevelFor(name));
  if (!made.ok()) {
    impl_->GiveBack({&slot, 1});
    return made;
  }
  impl_->graph_->Link(slot, prepared.view);
  PreparedInsert handle;
  handle.index_ = this;
  handle.slot_ = slot;
  return handle;
}

void VectorIndex::Revise(const PreparedInsert& prepared, std::string_view attr,
                         int64_t expire_at_ms) {
  HOTKV_CHECK(prepared.index_ == this);
  ReaderPin pin;
  const RecordView old = impl_->records_.Get(prepared.slot_);
  impl_->records_.Set(prepared.slot_, {old.name(), attr, old.header->norm, expire_at_ms});
}

CommitResult VectorIndex::Commit(PreparedInsert&& prepared) {
  HOTKV_CHECK(prepared.index_ == this);
  CommitResult result;
  result.slot = prepared.slot_;
  prepared.index_ = nullptr;
  ReaderPin pin;
  std::lock_guard<std::shared_mutex> lock(impl_->names_mutex_);
  const std::string_view name = impl_->records_.Get(result.slot).name();
  const uint32_t hash = NameMap::HashOf(name);
  const auto matches = [&](uint32_t slot) { return impl_->NameIs(slot, name); };
  const std::optional<uint32_t> old = impl_->names_.Find(hash, matches);
  result.replaced_live = old && !impl_->records_.Get(*old).ExpiredAt(impl_->expiry_.DueMs());
  impl_->fields_.Set(result.slot, impl_->records_.Get(result.slot).attr());
  // Visible before the old one goes: a search meets at least one of them.
  impl_->graph_->SetLive(result.slot);
  impl_->live_.fetch_add(1, std::memory_order_relaxed);
  impl_->Enlist(result.slot);
  if (old) {
    impl_->names_.Replace(hash, matches, result.slot);
    impl_->Kill(*old);
    result.replaced_slot = *old;
  } else {
    impl_->names_.Insert(hash, result.slot);
  }
  return result;
}

void VectorIndex::Abandon(PreparedInsert&& prepared) {
  HOTKV_CHECK(prepared.index_ == this);
  prepared.index_ = nullptr;
  impl_->graph_->MarkDead(prepared.slot_);
}

std::optional<uint32_t> VectorIndex::Delete(std::string_view name) {
  ReaderPin pin;
  std::lock_guard<std::shared_mutex> lock(impl_->names_mutex_);
  const std::optional<uint32_t> slot = impl_->FindLiveLocked(name);
  if (!slot) return std::nullopt;
  impl_->names_.Erase(NameMap::HashOf(name), [&](uint32_t s) { return s == *slot; });
  impl_->Kill(*slot);
  return slot;
}

std::optional<uint32_t> VectorIndex::SetAttr(std::string_view name, std::string_view attr) {
  ReaderPin pin;
  std::lock_guard<std::shared_mutex> lock(impl_->names_mutex_);
  const std::optional<uint32_t> slot = impl_->FindLiveLocked(name);
  if (!slot) return std::nullopt;
  const RecordView old = impl_->records_.Get(*slot);
  impl_->ChangeRecord(*slot, {old.name(), attr, old.header->norm, old.expire_at_ms()});
  return slot;
}

std::optional<uint32_t> VectorIndex::SetExpiry(std::string_view name, int64_t expire_at_ms) {
  ReaderPin pin;
  std::lock_guard<std::shared_mutex> lock(impl_->names_mutex_);
  const std::optional<uint32_t> slot = impl_->FindLiveLocked(name);
  if (!slot) return std::nullopt;
  const RecordView old = impl_->records_.Get(*slot);
  impl_->ChangeRecord(*slot, {old.name(), old.attr(), old.header->norm, expire_at_ms});
  return slot;
}

std::vector<VectorIndex::Deleted> VectorIndex::DeleteExpired(size_t max) {
  std::vector<Deleted> deleted;
  const int64_t due_ms = impl_->expiry_.DueMs();
  if (due_ms == 0) return deleted;
  ReaderPin pin;
  std::lock_guard<std::shared_mutex> lock(impl_->names_mutex_);
  for (const uint32_t slot : impl_->expiry_.Due(due_ms, max)) {
    const RecordView record = impl_->records_.Get(slot);
    if (!record) continue;
    const std::string_view name = record.name();
    deleted.push_back({slot, std::string(name)});
    impl_->names_.Erase(NameMap::HashOf(name), [slot](uint32_t s) { return s == slot; });
    impl_->Kill(slot);
  }
  return deleted;
}

Status VectorIndex::CheckOptions(const IndexOptions& options) { return Impl::CheckOptions(options); }

void VectorIndex::AllowZeroVectors() { impl_->zero_allowed_ = true; }

std::vector<VectorIndex::Deleted> VectorIndex::DeleteMatching(const FilterExpression& where,
                                                              uint32_t slots_max, size_t max,
                                                              uint32_t* slot) {
  std::vector<Deleted> deleted;
  ReaderPin pin;
  std::lock_guard<std::shared_mutex> lock(impl_->names_mutex_);
  SearchGate gate(impl_->GateParts(), {}, &where);
  const uint32_t limit = impl_->graph_->slot_limit();
  uint32_t at = std::min(*slot, limit);
  const uint32_t end = at + std::min(slots_max, limit - at);
  for (; at < end && deleted.size() < max; ++at) {
    if (!gate.Accepts(at)) continue;
    const std::string_view name = impl_->records_.Get(at).name();
    deleted.push_back({at, std::string(name)});
    impl_->names_.Erase(NameMap::HashOf(name), [at](uint32_t s) { return s == at; });
    impl_->Kill(at);
  }
  *slot = at == limit ? kNoSlot : at;
  return deleted;
}

int64_t VectorIndex::NextExpiryMs() const { return impl_->expiry_.next_ms(); }

void VectorIndex::SetSearchDefaults(uint32_t ef, uint32_t rerank) {
  impl_->ef_default_.store(ef, std::memory_order_relaxed);
  impl_->rerank_.store(rerank, std::memory_order_relaxed);
}

Status VectorIndex::CheckVector(std::span<const float> vector) const {
  return impl_->CheckVector(vector);
}

bool VectorIndex::Contains(std::string_view name) const {
  ReaderPin pin;
  uint32_t slot = 0;
  return static_cast<bool>(impl_->FindRecord(name, &slot));
}

Result<std::vector<float>> VectorIndex::GetVector(std::string_view name) const {
  ReaderPin pin;
  uint32_t slot = 0;
  const RecordView record = impl_->FindRecord(name, &slot);
  if (!record) return Status::NotFound("no such element");
  std::vector<float> vector;
  impl_->Restore(slot, record.header->norm, &vector);
  return vector;
}

std::optional<std::string> VectorIndex::GetAttr(std::string_view name) const {
  ReaderPin pin;
  uint32_t slot = 0;
  const RecordView record = impl_->FindRecord(name, &slot);
  if (!record) return std::nullopt;
  return std::string(record.attr());
}

std::optional<int64_t> VectorIndex::GetExpiry(std::string_view name) const {
  ReaderPin pin;
  uint32_t slot = 0;
  const RecordView record = impl_->FindRecord(name, &slot);
  if (!record) return std::nullopt;
  return record.expire_at_ms();
}

Result<std::vector<std::vector<LinkRow>>> VectorIndex::GetLinks(std::string_view name) const {
  ReaderPin pin;
  uint32_t slot = 0;
  if (!impl_->FindRecord(name, &slot)) return Status::NotFound("no such element");
  Impl::Prepared query;
  query.data = impl_->VectorAt(slot);
  const int64_t due_ms = impl_->expiry_.DueMs();
  std::vector<std::vector<LinkRow>> levels(impl_->graph_->LevelOf(slot) + 1);
  for (uint32_t level = 0; level < levels.size(); ++level) {
    for (const uint32_t to : impl_->graph_->LinksOf(slot, level)) {
      const RecordView record = impl_->records_.Get(to);
      if ((impl_->graph_->meta(to) & kMetaLive) == 0 || !record) continue;
      if (record.ExpiredAt(due_ms)) continue;
      LinkRow row;
      row.name = record.name();
      impl_->ExactDistances(query, &to, 1, &row.distance);
      levels[level].push_back(std::move(row));
    }
    std::stable_sort(levels[level].begin(), levels[level].end(),
                     [](const LinkRow& a, const LinkRow& b) { return a.distance < b.distance; });
  }
  return levels;
}

uint64_t VectorIndex::CountMatching(const FilterExpression& where) const {
  return impl_->CountMatching(where);
}

Status VectorIndex::SetFields(std::vector<FieldSpec> fields) {
  HOTKV_RETURN_IF_ERROR(CheckFields(fields));
  std::lock_guard<std::shared_mutex> lock(impl_->names_mutex_);
  const bool empty = impl_->live_.load(std::memory_order_relaxed) == 0;
  impl_->fields_.Define(std::move(fields),
                        empty ? FieldIndex::Elements::kNone : FieldIndex::Elements::kSome);
  return Status::Ok();
}

std::vector<FieldSpec> VectorIndex::fields() const {
  std::shared_lock<std::shared_mutex> lock(impl_->names_mutex_);
  return impl_->fields_.specs();
}

bool VectorIndex::BuildFields(uint32_t slots_max) { return impl_->BuildFields(slots_max); }

uint64_t VectorIndex::Count() const { return impl_->LiveCount(); }

Result<std::vector<SearchRow>> VectorIndex::Search(std::span<const float> query,
                                                   const SearchParams& params) const {
  return impl_->Search(query, params);
}

std::vector<VectorIndex::VisitedOwned> VectorIndex::VisitSome(uint32_t from_slot,
                                                              uint32_t slots_max, bool with_vectors,
                                                              uint32_t* next) const {
  ReaderPin pin;
  std::vector<VisitedOwned> visited;
  const uint32_t limit = impl_->graph_->slot_limit();
  const uint32_t begin = std::min(from_slot, limit);
  const uint32_t end = begin + std::min(slots_max, limit - begin);
  for (uint32_t slot = begin; slot < end; ++slot) {
    if ((impl_->graph_->meta(slot) & kMetaLive) == 0) continue;
    const RecordView record = impl_->records_.Get(slot);
    if (!record) continue;
    VisitedOwned& e = visited.emplace_back();
    e.slot = slot;
    e.name = record.name();
    e.attr = record.attr();
    e.expire_at_ms = record.expire_at_ms();
    if (with_vectors) impl_->Restore(slot, record.header->norm, &e.vector);
  }
  *next = end == limit ? kNoSlot : end;
  return visited;
}

std::vector<VectorIndex::VisitedOwned> VectorIndex::VisitByName(uint32_t* cursor,
                                                                uint32_t count) const {
  std::vector<VisitedOwned> visited;
  // In parts, so that no change waits for long.
  for (uint32_t looked = 0; looked < count;) {
    const uint32_t part = std::min(count - looked, kVisitedUnderLock);
    looked += part;
    ReaderPin pin;
    std::shared_lock<std::shared_mutex> lock(impl_->names_mutex_);
    const uint64_t hashes = (uint64_t{part} << 32) / std::max<uint64_t>(impl_->names_.size(), part);
    const uint64_t end = std::min(*cursor + std::max<uint64_t>(hashes, 1), uint64_t{1} << 32);
    impl_->names_.ForEachWithin(*cursor, static_cast<uint32_t>(end - 1), [&](uint32_t slot) {
      const RecordView record = impl_->records_.Get(slot);
      if (!record) return;  // of a damaged file
      VisitedOwned& e = visited.emplace_back();
      e.slot = slot;
      e.name = record.name();
      e.attr = record.attr();
      e.expire_at_ms = record.expire_at_ms();
    });
    *cursor = static_cast<uint32_t>(end);  // 0 past the last
    if (*cursor == 0) break;
  }
  return visited;
}

std::optional<std::string> VectorIndex::RandomName(uint64_t random) const {
  ReaderPin pin;
  const uint32_t limit = impl_->graph_->slot_limit();
  if (limit == 0) return std::nullopt;
  constexpr int kTries = 64;
  uint64_t state = random;
  auto slot = static_cast<uint32_t>(random % limit);
  for (uint32_t step = 0; step < limit + kTries; ++step) {
    if (step < kTries) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      slot = static_cast<uint32_t>((state >> 33) % limit);
    } else if (++slot >= limit) {
      slot = 0;
    }
    if ((impl_->graph_->meta(slot) & kMetaLive) == 0) continue;
    const RecordView record = impl_->records_.Get(slot);
    if (record && !record.ExpiredAt(impl_->expiry_.DueMs())) return std::string(record.name());
  }
  return std::nullopt;
}

IndexInfo VectorIndex::Info() const { return impl_->Info(); }
IndexOptions VectorIndex::options() const {
  IndexOptions options = impl_->options_;
  options.ef_default = impl_->ef_default_.load(std::memory_order_relaxed);
  options.rerank = impl_->rerank_.load(std::memory_order_relaxed);
  return options;
}

bool VectorIndex::RepairStep(uint32_t nodes_max, RepairWhen when) {
  const Graph& graph = *impl_->graph_;
  // A pass looks at every node, so it waits until there is enough to do: a node in fifty to take
  // out, a node in eight that came.
  const auto wanted = [&graph, when] {
    const uint64_t slots = graph.slot_limit();
    const uint64_t dead = graph.dead_count();
    const uint64_t fresh = graph.linked_since_connect();
    const bool now = when == RepairWhen::kNow;
    if (dead != 0 && (now || dead * 50 >= slots)) return Graph::PassWanted::kRepair;
    if (fresh != 0 && (now || fresh * 8 >= slots)) return Graph::PassWanted::kConnect;
    return Graph::PassWanted::kNone;
  };
  std::vector<uint32_t> unlinked;
  const bool more = impl_->graph_->RepairStep(nodes_max, wanted(), &unlinked);
  impl_->GiveBack(unlinked);
  impl_->CollectFreed();
  return more || wanted() != Graph::PassWanted::kNone;
}

Status VectorIndex::CheckInvariants() const { return impl_->CheckInvariants(); }

void VectorIndex::ReleaseSlots(uint64_t oldest_kept) { impl_->ReleaseSlots(oldest_kept); }

void VectorIndex::HoldSlots() {
  std::lock_guard<std::mutex> lock(impl_->slots_mutex_);
  ++impl_->reuse_held_;
}

void VectorIndex::UnholdSlots() {
  std::lock_guard<std::mutex> lock(impl_->slots_mutex_);
  HOTKV_CHECK(impl_->reuse_held_ > 0);
  --impl_->reuse_held_;
}

}  // namespace hotkv
