#include "tools/hotkv_tool/salvage_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/limits.h"
#include "engine/tx/engine.h"
#include "engine/types/vector_set.h"
#include "persistence/recovery/object_loader.h"
#include "tools/hotkv_tool/log_repair.h"
#include "tools/hotkv_tool/log_scan.h"

namespace hotkv {

namespace {

// The effect that makes a key what a snapshot's entry says.
Effect EffectOf(const DecodedEntry& entry) {
  Effect effect;
  effect.db = entry.db;
  effect.key = entry.key;
  effect.expire_at_ms = entry.expire_at_ms;
  effect.type = static_cast<uint8_t>(entry.type);
  if (entry.object_id != 0) {
    effect.kind = EffectKind::kLink;
    effect.object_id = entry.object_id;
  } else if (entry.is_int) {
    effect.kind = entry.expire_at_ms != 0 ? EffectKind::kSetIntExpire : EffectKind::kSetInt;
    effect.integer = entry.integer;
  } else if (entry.type == ValueType::kString) {
    effect.kind = entry.expire_at_ms != 0 ? EffectKind::kSetStringExpire : EffectKind::kSetString;
    effect.bytes = entry.bytes;
  } else {
    effect.kind = EffectKind::kRestore;
    effect.bytes = entry.bytes;
  }
  return effect;
}

}  // namespace

Result<std::unique_ptr<SalvageSource>> SalvageSource::Open(const std::string& path) {
  Result<std::unique_ptr<StoredDirectory>> directory =
      StoredDirectory::Open(path, StoredDirectory::Locking::kRefuseLocked);
  if (directory.ok()) return std::unique_ptr<SalvageSource>(new SalvageSource(std::move(*directory)));
  if (directory.status().code() == Code::kLocked || directory.status().code() == Code::kUnsupported) {
    return directory.status();
  }
  return OpenWithoutCatalog(path, directory.status());
}

Result<std::unique_ptr<SalvageSource>> SalvageSource::OpenWithoutCatalog(const std::string& path,
                                                                         const Status& why) {
  std::vector<std::string> notes;
  HOTKV_ASSIGN_OR_RETURN(auto directory, StoredDirectory::OpenByFiles(path, &notes));
  std::unique_ptr<SalvageSource> source(new SalvageSource(std::move(directory)));
  source->by_files_ = true;
  source->lost_before_.push_back(why.ToString() + "; the files are taken as their headers say");
  source->lost_before_.insert(source->lost_before_.end(), notes.begin(), notes.end());
  return source;
}

void SalvageSource::LostOnce(const std::string& what) {
  if (lost_once_.insert(what).second) Lost(what);
}

Status SalvageSource::ForEach(const ExportFilter& filter, Problems* problems, const Put& put) {
  problems_ = problems;
  for (const std::string& lost : lost_before_) Lost(lost);
  EngineOptions options;
  options.keyspace.stripe_bits = directory_->state().stripe_bits;
  options.keyspace.hash_seed = directory_->state().hash_seed;
  options.keyspace.databases = kDatabasesMax;
  const CommandTable no_commands({});
  engine_ = std::make_unique<Engine>(options, &no_commands);
  stripes_.resize(engine_->keyspace().stripe_count());
  OpenSnapshot();
  ReadEffectSections();
  ScanRange();
  LoadIndexes();
  const Run run{filter, problems, put, Clock::NowMs()};
  Keyspace& keyspace = engine_->keyspace();
  for (unsigned group = 0; group < kStripeGroups; ++group) {
    LoadGroup(group);
    for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
      if (GroupOfStripe(i, options.keyspace.stripe_bits) != group) continue;
      Stripe& stripe = keyspace.stripe(i);
      HOTKV_RETURN_IF_ERROR(ExportStripe(run, keyspace, stripe));
      EmptyStripe(keyspace, stripe);
      ++stripes_done_;
    }
  }
  indexes_.clear();
  engine_.reset();
  return Status::Ok();
}

// ---- what there is ----

void SalvageSource::OpenSnapshot() {
  const CatalogState& state = directory_->state();
  for (auto it = state.snapshots.rbegin(); it != state.snapshots.rend() && !snapshot_; ++it) {
    if (it->second.state != FileState::kLive) continue;
    const std::string path = JoinPath(directory_->paths().snapshots, SnapshotFileName(it->first));
    Result<std::unique_ptr<SnapshotReader>> reader = SnapshotReader::Open(directory_->env(), path);
    if (!reader.ok()) {
      Lost(fmt::format("{}; lost: the snapshot with its {} keys", reader.status().ToString(), it->second.entries));
      continue;
    }
    if ((*reader)->header().directory_id != state.directory_id) {
      Lost(path + ": snapshot of another data directory");
      continue;
    }
    snapshot_ = std::move(*reader);
  }
  if (!snapshot_) return;
  for (const SectionEntry& section : snapshot_->footer().sections) {
    if (section.kind == SectionKind::kStripe && section.id < stripes_.size()) {
      stripes_[section.id] = {&section, section.cut};
    }
  }
}

void SalvageSource::ReadEffectSections() {
  if (!snapshot_) return;
  // Runs point into the bytes, so these must not move.
  effect_bytes_.reserve(snapshot_->footer().sections.size());
  for (const SectionEntry& section : snapshot_->footer().sections) {
    if (section.kind != SectionKind::kEffects) continue;
    const Result<std::string_view> body = snapshot_->Read(section, &effect_bytes_.emplace_back());
    const Result<std::vector<EffectRun>> runs =
        body.ok() ? DecodeEffectRuns(*body) : Result<std::vector<EffectRun>>(body.status());
    if (!runs.ok()) {
      Lost(runs.status().ToString() + "; lost: effects between the snapshot's first and last section");
      continue;
    }
    for (const EffectRun& run : *runs) runs_[run.group].push_back(run);
  }
}

void SalvageSource::ScanRange() {
  const CatalogState& state = directory_->state();
  const uint64_t from = snapshot_ ? snapshot_->footer().from_epoch : 0;
  const uint64_t in_snapshot = snapshot_ && snapshot_->footer().has_effects ? snapshot_->footer().last_epoch : 0;
  for (const auto& [first, range] : state.ranges) {
    LogScanOptions options = OptionsForRange(directory_.get(), range);
    if (options.segments.empty()) continue;
    if (first > from && !by_files_) Lost(fmt::format("the log begins at epoch {} only: earlier effects are lost", first));
    has_log_ = true;
    std::vector<LogBlockRef> blocks;
    const Status damage = ScanGoodPart(std::move(options), &blocks);
    if (!damage.ok()) Lost(damage.ToString() + "; lost: all effects behind that place");
    for (const LogBlockRef& block : blocks) {
      if (block.header.epoch <= in_snapshot) continue;
      for (const GroupEntry& group : block.header.groups) refs_[group.group].push_back(GroupRefOf(block, group));
    }
  }
}

void SalvageSource::ForEachEffect(unsigned group, const Apply& apply) {
  for (const EffectRun& run : runs_[group]) ApplyRecords(run.epoch, run.records, snapshot_->path(), apply);
  for (const LogGroupRef& ref : refs_[group]) {
    const std::string where = JoinPath(directory_->paths().log, SegmentFileName(ref.segment));
    const Result<std::string> records = log_.ReadGroup(ref);
    if (records.ok()) {
      ApplyRecords(ref.epoch, *records, where, apply);
    } else {
      LostOnce(fmt::format("{}; lost: effects of stripe group {} in epoch {}", records.status().ToString(), group,
                           ref.epoch));
    }
  }
}

void SalvageSource::ApplyRecords(uint64_t epoch, std::string_view records, const std::string& where,
                                 const Apply& apply) {
  std::vector<Effect> effects;
  ByteReader reader(records);
  while (!reader.empty()) {
    Effect effect;
    if (!DecodeEffect(&reader, epoch, &effect)) {
      LostOnce(fmt::format("{}: a record of epoch {} cannot be decoded; lost: it and those behind it", where, epoch));
      break;
    }
    effects.push_back(effect);
  }
  std::stable_sort(effects.begin(), effects.end(), [](const Effect& a, const Effect& b) { return a.lsn < b.lsn; });
  for (const Effect& effect : effects) apply(effect);
}

// ---- indexes ----

void SalvageSource::PlanIndexes() {
  if (!snapshot_) return;
  std::string scratch;
  for (const SectionEntry& section : snapshot_->footer().sections) {
    if (section.kind != SectionKind::kObject) continue;
    const Result<std::string_view> body = snapshot_->Read(section, &scratch);
    const Result<ObjectSection> object = body.ok() ? DecodeObjectSection(*body) : Result<ObjectSection>(body.status());
    if (!object.ok()) {
      Lost(fmt::format("{}; lost: the index of object {}", object.status().ToString(), section.id));
      continue;
    }
    Index& index = indexes_[section.id];
    index.type = FindObjectType(static_cast<ValueType>(object->type));
    index.definition = object->definition;
    index.generation = object->generation;
    index.from_lsn = section.cut;
  }
}

// Tries the newest generation first; effects after an older one's `from` may be gone from the log already.
bool SalvageSource::OpenIndex(uint64_t id, Index* index) {
  if (index->type == nullptr || index->type->create == nullptr) {
    LostOnce(fmt::format("object {} is of a type that this version does not know; lost: all of it", id));
    return false;
  }
  const auto record = directory_->state().objects.find(id);
  const ObjectPlace place{id, directory_->env(), ObjectFolder(directory_->paths().index, id)};
  std::map<uint64_t, uint64_t> generations;  // number to from
  if (index->generation != 0) generations[index->generation] = index->from_lsn;
  if (record != directory_->state().objects.end() && has_log_) {
    for (const auto& [number, generation] : record->second.generations) {
      if (generation.state == FileState::kLive) generations.try_emplace(number, generation.from_lsn);
    }
  }
  for (auto it = generations.rbegin(); it != generations.rend(); ++it) {
    Status status = index->type->verify_generation == nullptr
                        ? Status::Ok()
                        : index->type->verify_generation(place.env_or_null, place.folder, it->first);
    Result<DurableObject*> opened =
        status.ok() ? index->type->open(place, index->definition, it->first) : Result<DurableObject*>(std::move(status));
    if (!opened.ok()) {
      LostOnce(fmt::format("{}; lost: generation {} of index/{}", opened.status().ToString(), it->first, id));
      continue;
    }
    index->from_lsn = it->second;
    index->object = ObjectRef<Object>::Adopt(*opened);
    return true;
  }
  // What is in effects only is put together in memory.
  Result<DurableObject*> made = index->type->create(ObjectPlace{id, nullptr, ""}, index->definition);
  if (!made.ok()) {
    LostOnce(fmt::format("{}; lost: index/{}", made.status().ToString(), id));
    return false;
  }
  index->from_lsn = 0;
  index->object = ObjectRef<Object>::Adopt(*made);
  return true;
}

void SalvageSource::ApplyToIndex(const Effect& effect) {
  const uint64_t id = effect.object_id;
  if (effect.kind == EffectKind::kObjectDrop) {
    indexes_.erase(id);
    return;
  }
  if (effect.kind == EffectKind::kObjectCreate) {
    const auto [place, fresh] = indexes_.try_emplace(id);
    if (!fresh) return;
    place->second.type = FindObjectType(static_cast<ValueType>(effect.type));
    place->second.definition = effect.bytes;
  }
  const auto found = indexes_.find(id);
  if (found == indexes_.end()) return;  // dropped before the snapshot began, or lost and named
  Index& index = found->second;
  if (!index.object && !OpenIndex(id, &index)) {
    indexes_.erase(found);
    return;
  }
  if (effect.kind != EffectKind::kObjectChange || effect.lsn <= index.from_lsn) return;
  const Status status = static_cast<DurableObject&>(*index.object).ApplyChange(effect.bytes);
  if (!status.ok()) LostOnce(fmt::format("{}; lost: a change of index/{}", status.ToString(), id));
}

void SalvageSource::LoadIndexes() {
  PlanIndexes();
  for (unsigned group = 0; group < kStripeGroups; ++group) {
    ForEachEffect(group, [this](const Effect& effect) {
      if (IsObjectEffect(effect.kind)) ApplyToIndex(effect);
    });
  }
  for (auto& [id, index] : indexes_) {
    if (index.object || OpenIndex(id, &index)) engine_->objects().Add(index.object.get());
  }
}

// ---- keys ----

void SalvageSource::LoadStripe(uint32_t stripe) {
  const SectionEntry* section = stripes_[stripe].section;
  if (section == nullptr) return;
  std::string scratch;
  const Result<std::string_view> body = snapshot_->Read(*section, &scratch);
  Status status = body.ok() ? Status::Ok() : body.status();
  if (status.ok()) {
    status = VisitStripeBytes(
        *body, [](uint32_t, uint64_t) { return Status::Ok(); },
        [this](const DecodedEntry& entry) {
          const Status put = engine_->Replay(EffectOf(entry));
          if (!put.ok()) Lost(fmt::format("{}; lost: key \"{}\"", put.ToString(), Printable(entry.key)));
          return Status::Ok();
        });
    status = snapshot_->At(*section, std::move(status));
  }
  if (!status.ok()) {
    Lost(fmt::format("{}; lost: {} keys of stripe {} as the snapshot had them", status.ToString(), section->entries, stripe));
  }
}

void SalvageSource::LoadGroup(unsigned group) {
  Keyspace& keyspace = engine_->keyspace();
  const unsigned bits = keyspace.options().stripe_bits;
  for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
    if (GroupOfStripe(i, bits) == group) LoadStripe(i);
  }
  ForEachEffect(group, [&](const Effect& effect) {
    if (IsObjectEffect(effect.kind)) return;
    const uint64_t stripe = IsStripeWideEffect(effect.kind) ? effect.number : keyspace.MakeRef(effect.key).stripe;
    if (stripe >= stripes_.size() || effect.lsn <= stripes_[stripe].cut) return;
    const Status status = engine_->Replay(effect);
    if (!status.ok()) LostOnce(fmt::format("{}; lost: this effect", status.ToString()));
  });
}

}  // namespace hotkv
