// Writing a generation while the index is being read and changed, and opening one.
//
// The copy is fuzzy: each slot is taken as it is met. That is enough, because every change after
// `from` is in the log and sets or removes one element in one given slot, whatever the copy has of
// it. What the copy must be by itself is a sound graph over the slots that it keeps, and names that
// lead to one slot each.
#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/crash_point.h"
#include "engine/base/crc32c.h"
#include "engine/base/sync_point.h"
#include "index/file/generation.h"
#include "index/file/graph_file.h"
#include "index/index_impl.h"
#include "index/reader_pin.h"

namespace hotkv {

namespace {

constexpr size_t kWriteBuffer = size_t{1} << 20;
constexpr uint32_t kCopyBatch = 4096;

// Appends to a file from a given offset on, with the checksum of what was appended.
class SectionWriter {
 public:
  SectionWriter(File* file, uint64_t offset) : file_(file) {
    section_.offset = offset;
    buffer_.reserve(kWriteBuffer);
  }
  Status Append(std::string_view bytes) {
    buffer_.append(bytes);
    return buffer_.size() >= kWriteBuffer ? Flush() : Status::Ok();
  }
  uint64_t bytes() const { return section_.bytes + buffer_.size(); }
  Result<FileSection> Finish() {
    HOTKV_RETURN_IF_ERROR(Flush());
    return section_;
  }

 private:
  Status Flush() {
    HOTKV_RETURN_IF_ERROR(file_->WriteAt(section_.offset + section_.bytes, buffer_));
    section_.crc = ExtendCrc32c(section_.crc, buffer_);
    section_.bytes += buffer_.size();
    buffer_.clear();
    return Status::Ok();
  }
  File* const file_;
  FileSection section_ = {};
  std::string buffer_;
};

template <typename T>
std::string_view BytesOf(const T* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

uint64_t WholeSlabs(const SlabGeometry& geometry, uint32_t slabs) {
  return slabs == 0 ? 0 : uint64_t{geometry.FirstSlot(slabs)} * geometry.stride;
}

}  // namespace

// What the copy keeps: states by slot, and the name hash.
struct VectorIndex::Impl::CopyPlan {
  std::vector<uint8_t> metas;
  std::vector<uint64_t> words;  // as in NameMap
  uint64_t names = 0;
  uint64_t live = 0;
  std::vector<uint32_t> dead;
  std::vector<uint32_t> pending;
  std::vector<uint64_t> free_bits;
};

VectorIndex::Impl::CopyPlan VectorIndex::Impl::PlanCopy() const {
  CopyPlan plan;
  plan.metas = GraphFile::Classify(*graph_);
  HOTKV_SYNC_POINT("index.checkpoint.classified");
  const auto slots = static_cast<uint32_t>(plan.metas.size());
  const auto is_live = [](uint8_t m) { return (m & kMetaLive) != 0; };
  plan.words.resize(NameMap::CapacityFor(
      static_cast<uint64_t>(std::count_if(plan.metas.begin(), plan.metas.end(), is_live))));
  for (uint32_t begin = 0; begin < slots; begin += kCopyBatch) {
    ReaderPin pin;
    const uint32_t end = begin + std::min(slots - begin, kCopyBatch);
    for (uint32_t slot = begin; slot < end; ++slot) {
      uint8_t& m = plan.metas[slot];
      if (is_live(m) && !PlaceName(slot, &plan)) {
        m = (m & kMetaLinked) != 0 ? static_cast<uint8_t>((m & ~kMetaLive) | kMetaDead)
                                   : uint8_t{0};
      }
      if (is_live(m)) ++plan.live;
      if ((m & kMetaDead) != 0) plan.dead.push_back(slot);
      if (is_live(m) && (m & kMetaLinked) == 0) plan.pending.push_back(slot);
    }
  }
  plan.free_bits.resize((slots + 63) / 64);
  for (uint32_t slot = 0; slot < slots; ++slot) {
    if (plan.metas[slot] == 0) plan.free_bits[slot / 64] |= uint64_t{1} << (slot % 64);
  }
  return plan;
}

// False when the name is taken: its element was replaced while the slots were being looked at, and
// the log has both.
bool VectorIndex::Impl::PlaceName(uint32_t slot, CopyPlan* plan) const {
  const RecordView record = records_.Get(slot);
  if (!record) return false;
  const uint32_t hash = NameMap::HashOf(record.name());
  uint64_t at = NameMap::HomeOf(hash, plan->words.size());
  while (plan->words[at] != 0) {
    const uint64_t word = plan->words[at];
    if (NameMap::HashIn(word) == hash && NameIs(NameMap::SlotOf(word), record.name())) return false;
    if (++at == plan->words.size()) at = 0;
  }
  plan->words[at] = NameMap::Word(hash, slot);
  ++plan->names;
  return true;
}

Status VectorIndex::Impl::WriteGraph(const CopyPlace& place, const CopyPlan& plan) const {
  const std::string path = JoinPath(place.dir, GraphFileName(place.generation));
  HOTKV_ASSIGN_OR_RETURN(const auto file, env_->Open(path, OpenMode::kCreateOrOpen));
  HOTKV_RETURN_IF_ERROR(file->Truncate(0));
  GraphHeader header = HeaderOf(place);
  header.live = plan.live;
  const auto slots = static_cast<uint32_t>(plan.metas.size());
  uint64_t end = kGenerationPage;
  GraphFile::LayOut(*graph_, slots, GraphFile::UpperRowsFor(plan.metas), &header, &end);
  FileSection& sums = header.sections[kSectionSums];
  sums.offset = end;
  sums.bytes = uint64_t{slots} * sizeof(uint32_t);
  end += RoundToPage(WholeSlabs(sums_.geometry(), sums_.SlabsFor(slots)));
  const auto list = [&](GraphSection section, size_t bytes) {
    header.sections[section].offset = end;
    header.sections[section].bytes = bytes;
    end += RoundToPage(bytes);
  };
  list(kSectionFreeBits, plan.free_bits.size() * sizeof(uint64_t));
  list(kSectionDead, plan.dead.size() * sizeof(uint32_t));
  list(kSectionPending, plan.pending.size() * sizeof(uint32_t));
  // Slabs have their full length in the file, but only what is used takes room.
  HOTKV_RETURN_IF_ERROR(file->Truncate(end));
  HOTKV_RETURN_IF_ERROR(file->Allocate(0, kGenerationPage));
  for (const FileSection& section : header.sections) {
    if (section.bytes != 0) HOTKV_RETURN_IF_ERROR(file->Allocate(section.offset, section.bytes));
  }
  HOTKV_ASSIGN_OR_RETURN(const auto mapping, file->Map(0, end, MapMode::kShared));
  char* base = mapping->data();
  {
    Graph copy(graph_->options(), rows());
    GraphFile::Adopt(base, header, {}, &copy);
    GraphFile::CopyInto(*graph_, plan.metas, &copy);
    header.entry = GraphFile::EntryOf(copy);
  }
  auto* sum_rows = reinterpret_cast<uint32_t*>(base + sums.offset);
  for (uint32_t slot = 0; slot < slots; ++slot) {
    if (plan.metas[slot] != 0) {
      sum_rows[slot] = sums_.At<uint32_t>(slot).load(std::memory_order_relaxed);
    }
  }
  const auto put = [&](GraphSection section, std::string_view bytes) {
    if (!bytes.empty())
      std::memcpy(base + header.sections[section].offset, bytes.data(), bytes.size());
  };
  put(kSectionFreeBits, BytesOf(plan.free_bits.data(), plan.free_bits.size()));
  put(kSectionDead, BytesOf(plan.dead.data(), plan.dead.size()));
  put(kSectionPending, BytesOf(plan.pending.data(), plan.pending.size()));
  for (FileSection& section : header.sections) {
    section.crc = CrcOf(base + section.offset, section.bytes);
  }
  Seal(&header);
  std::memcpy(base, &header, sizeof(header));
  HOTKV_CRASH_POINT("index.checkpoint.graph_written");
  HOTKV_RETURN_IF_ERROR(mapping->Sync(0, mapping->size()));
  return file->Sync();
}

GraphHeader VectorIndex::Impl::HeaderOf(const CopyPlace& place) const {
  GraphHeader header = {};
  header.index_uid = place.uid;
  header.generation = place.generation;
  header.seed = options_.seed;
  header.dim = options_.dim;
  header.m = options_.m;
  header.ef_construction = options_.ef_construction;
  header.ef_default = ef_default_.load(std::memory_order_relaxed);
  header.rerank = rerank_.load(std::memory_order_relaxed);
  header.metric = static_cast<uint8_t>(options_.metric);
  header.type = static_cast<uint8_t>(options_.type);
  return header;
}

Status VectorIndex::Impl::WriteIds(const CopyPlace& place, const CopyPlan& plan) const {
  const std::string path = JoinPath(place.dir, IdsFileName(place.generation));
  HOTKV_ASSIGN_OR_RETURN(const auto file, env_->Open(path, OpenMode::kCreateOrOpen));
  HOTKV_RETURN_IF_ERROR(file->Truncate(0));
  const auto slots = static_cast<uint32_t>(plan.metas.size());
  IdsHeader header = {};
  header.index_uid = place.uid;
  header.generation = place.generation;
  header.names = plan.names;
  header.word_capacity = plan.words.size();
  header.slots = slots;
  const uint64_t refs_room = RoundToPage(WholeSlabs(records_.geometry(), records_.SlabsFor(slots)));
  const uint64_t words_at = kGenerationPage + refs_room;
  const uint64_t arena_at = words_at + RoundToPage(plan.words.size() * sizeof(uint64_t));
  SectionWriter refs(file.get(), kGenerationPage);
  SectionWriter arena(file.get(), arena_at);
  std::string block;
  std::vector<uint64_t> batch;
  std::vector<IdsExpiry> expiries;
  for (uint32_t begin = 0; begin < slots; begin += kCopyBatch) {
    const uint32_t end = begin + std::min(slots - begin, kCopyBatch);
    block.clear();
    batch.clear();
    {
      ReaderPin pin;
      for (uint32_t slot = begin; slot < end; ++slot) {
        batch.push_back(0);
        if ((plan.metas[slot] & kMetaLive) == 0) continue;
        const RecordView record = records_.Get(slot);
        if (!record) continue;
        batch.back() = arena.bytes() + block.size() + 1;
        block.append(reinterpret_cast<const char*>(record.header), RecordBytes(*record.header));
        if (!record.attr().empty()) ++header.with_attr;
        if (const int64_t at_ms = record.expire_at_ms(); at_ms != 0) {
          expiries.push_back({at_ms, slot, 0});
        }
        block.append((4 - block.size() % 4) % 4, '\0');
      }
    }
    HOTKV_RETURN_IF_ERROR(arena.Append(block));
    HOTKV_RETURN_IF_ERROR(refs.Append(BytesOf(batch.data(), batch.size())));
  }
  HOTKV_RETURN_IF_ERROR(arena.Append(BytesOf(expiries.data(), expiries.size())));
  header.expiring = static_cast<uint32_t>(expiries.size());
  SectionWriter words(file.get(), words_at);
  HOTKV_RETURN_IF_ERROR(words.Append(BytesOf(plan.words.data(), plan.words.size())));
  HOTKV_ASSIGN_OR_RETURN(header.sections[kSectionRefs], refs.Finish());
  HOTKV_ASSIGN_OR_RETURN(header.sections[kSectionWords], words.Finish());
  HOTKV_ASSIGN_OR_RETURN(header.sections[kSectionArena], arena.Finish());
  Seal(&header);
  HOTKV_RETURN_IF_ERROR(file->WriteAt(0, BytesOf(&header, 1)));
  std::string fields;
  {
    std::shared_lock<std::shared_mutex> lock(names_mutex_);
    fields = EncodeFields(fields_.specs());
  }
  const FieldsHeader fields_header = {static_cast<uint32_t>(fields.size()), Crc32c(fields)};
  if (!fields.empty()) fields.insert(0, BytesOf(&fields_header, 1));
  if (!fields.empty()) HOTKV_RETURN_IF_ERROR(file->WriteAt(kFieldsAt, fields));
  HOTKV_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  const uint64_t whole = arena_at + RoundToPage(header.sections[kSectionArena].bytes);
  if (size < whole) HOTKV_RETURN_IF_ERROR(file->Truncate(whole));
  HOTKV_CRASH_POINT("index.checkpoint.ids_written");
  return file->Sync();
}

Status VectorIndex::Impl::Checkpoint(uint64_t generation) {
  if (env_ == nullptr) return Status::Unsupported("an index in memory has no generations");
  std::lock_guard<std::mutex> lock(checkpoint_mutex_);
  {
    std::lock_guard<std::mutex> slots_lock(slots_mutex_);
    begun_[generation] = ++checkpoints_begun_;
  }
  HOTKV_RETURN_IF_ERROR(WriteCopy({dir_, uid_, generation}).status());
  HOTKV_CRASH_POINT("index.checkpoint.before_vectors");
  HOTKV_RETURN_IF_ERROR(vector_files_->Sync());
  if (code_files_) HOTKV_RETURN_IF_ERROR(code_files_->Sync());
  return env_->SyncDir(dir_);
}

Result<std::vector<uint8_t>> VectorIndex::Impl::WriteCopy(const CopyPlace& place) {
  {
    std::lock_guard<std::mutex> slots_lock(slots_mutex_);
    copying_ = true;
  }
  Status copied;
  std::vector<uint8_t> metas;
  {
    // Nothing is unlinked between the look at the slots and the copy of their links.
    GraphFile::RepairHold hold(graph_.get());
    CopyPlan plan = PlanCopy();
    HOTKV_SYNC_POINT("index.checkpoint.planned");
    copied = WriteGraph(place, plan);
    if (copied.ok()) copied = WriteIds(place, plan);
    metas = std::move(plan.metas);
  }
  {
    std::lock_guard<std::mutex> slots_lock(slots_mutex_);
    copying_ = false;
  }
  HOTKV_RETURN_IF_ERROR(std::move(copied));
  return metas;
}

Status VectorIndex::Impl::AdoptRecords(const Generation& generation) {
  const IdsHeader& ids = generation.ids_header;
  const uint64_t expiry_bytes = uint64_t{ids.expiring} * sizeof(IdsExpiry);
  if (expiry_bytes > ids.sections[kSectionArena].bytes) {
    return Status::Corruption("more elements end than there is room for")
        .At(generation.ids_path, 0);
  }
  const std::string_view arena = {generation.At(kSectionArena),
                                  ids.sections[kSectionArena].bytes - expiry_bytes};
  records_.Adopt(generation.At(kSectionRefs), records_.SlabsFor(ids.slots), arena);
  for (uint32_t i = 0; i < ids.expiring; ++i) {
    IdsExpiry expiry;
    std::memcpy(&expiry, arena.data() + arena.size() + i * sizeof(expiry), sizeof(expiry));
    if (expiry.slot >= ids.slots) {
      return Status::Corruption("an element that ends lies beyond the slots")
          .At(generation.ids_path, 0);
    }
    expiry_.Add(expiry.at_ms, expiry.slot);
  }
  with_attr_.store(ids.with_attr, std::memory_order_relaxed);
  return Status::Ok();
}

Status VectorIndex::Impl::Adopt(std::unique_ptr<Generation> generation) {
  const GraphHeader& g = generation->graph_header;
  const IdsHeader& ids = generation->ids_header;
  const auto list = [&](GraphSection section, auto* out) {
    using Value = typename std::remove_reference_t<decltype(*out)>::value_type;
    const auto* first = reinterpret_cast<const Value*>(generation->At(section));
    out->assign(first, first + g.sections[section].bytes / sizeof(Value));
  };
  std::vector<uint32_t> dead;
  list(kSectionDead, &dead);
  const auto beyond = [&g](uint32_t slot) { return slot >= g.slots; };
  if (std::any_of(dead.begin(), dead.end(), beyond)) {
    return Status::Corruption("a dead slot lies beyond the end").At(generation->graph_path, 0);
  }
  // The sections must be where this build lays them out, or the slabs would run out of the file.
  GraphHeader expected = g;
  uint64_t end = kGenerationPage;
  GraphFile::LayOut(*graph_, g.slots, g.upper_rows, &expected, &end);
  for (const GraphSection s :
       {kSectionLinks, kSectionUpperAt, kSectionUpper, kSectionMeta, kSectionInDegree}) {
    if (expected.sections[s].offset == g.sections[s].offset &&
        expected.sections[s].bytes == g.sections[s].bytes) {
      continue;
    }
    return Status::Corruption("sections are not where they should be")
        .At(generation->graph_path, 0);
  }
  vector_files_->ExpectSlabs(vectors_->SlabsFor(g.slots));
  HOTKV_RETURN_IF_ERROR(vectors_->Reserve(g.slots));
  if (codes_) {
    code_files_->ExpectSlabs(code_file_rows_->SlabsFor(g.slots));
    HOTKV_RETURN_IF_ERROR(code_file_rows_->Reserve(g.slots));
    codes_->AdoptFrom(*code_file_rows_);
  }
  GraphFile::Adopt(generation->graph->data(), g, dead, graph_.get());
  sums_.Adopt(generation->At(kSectionSums), sums_.SlabsFor(g.slots));
  HOTKV_RETURN_IF_ERROR(AdoptRecords(*generation));
  HOTKV_ASSIGN_OR_RETURN(auto fields, generation->Fields());
  fields_.Define(std::move(fields), FieldIndex::Elements::kSome);
  if (ids.word_capacity * sizeof(uint64_t) != ids.sections[kSectionWords].bytes ||
      ids.names > ids.word_capacity) {
    return Status::Corruption("the name hash has a wrong size").At(generation->ids_path, 0);
  }
  names_.Adopt(reinterpret_cast<uint64_t*>(generation->At(kSectionWords)), ids.word_capacity,
               ids.names);
  live_.store(g.live, std::memory_order_relaxed);
  next_slot_ = g.slots;
  list(kSectionFreeBits, &free_bits_);
  for (const uint64_t word : free_bits_) free_count_ += static_cast<uint64_t>(std::popcount(word));
  std::vector<uint32_t> pending;
  list(kSectionPending, &pending);
  for (const uint32_t slot : pending) {
    if (!beyond(slot)) AddToPending(slot);
  }
  begun_[g.generation] = 0;
  reuse_from_ = g.generation;
  reuse_open_ = false;
  opened_ = std::move(generation);
  return Status::Ok();
}

Result<std::unique_ptr<VectorIndex>> VectorIndex::Open(Env* env, const std::string& dir,
                                                       uint64_t generation) {
  HOTKV_ASSIGN_OR_RETURN(auto opened, Generation::Open(env, dir, generation));
  const IndexOptions options = opened->Options();
  const Status valid = Impl::CheckOptions(options);
  if (!valid.ok()) return Status(valid.code(), valid.message()).At(opened->graph_path, 0);
  auto impl = std::make_unique<Impl>(options, env, dir, opened->graph_header.index_uid);
  HOTKV_RETURN_IF_ERROR(impl->Adopt(std::move(opened)));
  return std::unique_ptr<VectorIndex>(new VectorIndex(std::move(impl)));
}

Status VectorIndex::Checkpoint(uint64_t generation) { return impl_->Checkpoint(generation); }

Status VectorIndex::RemoveGeneration(Env* env, const std::string& dir, uint64_t generation) {
  for (const std::string& name : {GraphFileName(generation), IdsFileName(generation)}) {
    const Status removed = env->Unlink(JoinPath(dir, name));
    if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  }
  return Status::Ok();
}

Status VectorIndex::VerifyGeneration(Env* env, const std::string& dir, uint64_t generation) {
  {
    HOTKV_ASSIGN_OR_RETURN(const auto opened, Generation::Open(env, dir, generation));
    HOTKV_RETURN_IF_ERROR(opened->CheckSections());
  }
  HOTKV_ASSIGN_OR_RETURN(const auto index, Open(env, dir, generation));
  return index->CheckInvariants();
}

Result<std::vector<std::string>> VectorIndex::FilesOfGeneration(Env* env, const std::string& dir,
                                                                uint64_t generation) {
  HOTKV_ASSIGN_OR_RETURN(const auto index, Open(env, dir, generation));
  std::vector<std::string> files = {GraphFileName(generation), IdsFileName(generation)};
  const Impl& impl = *index->impl_;
  for (uint32_t slab = 0; slab < impl.vectors_->SlabsFor(impl.next_slot_); ++slab) {
    files.push_back(impl.vector_files_->NameOf(slab));
  }
  const uint32_t code_slabs =
      impl.code_file_rows_ ? impl.code_file_rows_->SlabsFor(impl.next_slot_) : 0;
  for (uint32_t slab = 0; slab < code_slabs; ++slab) {
    files.push_back(impl.code_files_->NameOf(slab));
  }
  return files;
}

}  // namespace hotkv
