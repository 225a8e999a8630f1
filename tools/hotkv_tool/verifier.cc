#include "tools/hotkv_tool/verifier.h"

#include <fmt/format.h>

#include "engine/base/hash.h"
#include "engine/store/stripe_codec.h"
#include "engine/types/durable_object.h"
#include "persistence/catalog/catalog_state.h"
#include "persistence/recovery/object_loader.h"
#include "tools/hotkv_tool/directory_source.h"
#include "tools/hotkv_tool/log_scan.h"

namespace hotkv {

namespace {

bool HasObjects(const ObjectType* type) { return type != nullptr && type->create != nullptr; }

}  // namespace

void Verifier::Run() {
  CheckFiles();
  for (const auto& [number, snapshot] : directory_->state().snapshots) {
    if (snapshot.state == FileState::kLive) CheckSnapshot(number);
  }
  CheckLog();
  CheckOpenLinks();
  CheckGenerations();
  // What is known to be damaged cannot be loaded.
  if (problems_->empty()) CheckLoad();
}

uint32_t Verifier::StripeOf(std::string_view key) const {
  const unsigned bits = directory_->state().stripe_bits;
  const uint64_t hash = HashBytes(key, directory_->state().hash_seed);
  return bits == 0 ? 0 : static_cast<uint32_t>(hash >> (64 - bits));
}

// ---- files against catalog ----

void Verifier::CheckFolder(const std::string& folder, const std::set<std::string>& known) {
  const Result<std::vector<DirEntry>> entries = directory_->env()->List(folder);
  std::set<std::string> found;
  if (entries.ok()) {
    for (const DirEntry& entry : *entries) found.insert(entry.name);
  }
  for (const std::string& name : known) {
    if (!found.contains(name)) problems_->Add(JoinPath(folder, name) + ": the catalog names it, but it is not there");
  }
}

void Verifier::CheckFiles() {
  const CatalogState& state = directory_->state();
  const DirectoryPaths& paths = directory_->paths();
  std::set<std::string> live;
  std::set<std::string> named;
  const auto report = [&](const std::string& folder) {
    CheckFolder(folder, live);
    const Result<std::vector<DirEntry>> entries = directory_->env()->List(folder);
    for (const DirEntry& entry : entries.ok() ? *entries : std::vector<DirEntry>()) {
      if (!named.contains(entry.name)) notes_.push_back(JoinPath(folder, entry.name) + " is not in the catalog");
    }
    live.clear();
    named.clear();
  };
  for (const auto& [number, snapshot] : state.snapshots) {
    named.insert(SnapshotFileName(number));
    if (snapshot.state == FileState::kLive) live.insert(SnapshotFileName(number));
  }
  report(paths.snapshots);
  for (const auto& [number, segment] : state.segments) {
    named.insert(SegmentFileName(number));
    if (segment.state == SegmentState::kLive) live.insert(SegmentFileName(number));
  }
  report(paths.log);
  for (const auto& [id, object] : state.objects) {
    named.insert(std::to_string(id));
    if (object.state == FileState::kLive) live.insert(std::to_string(id));
  }
  report(paths.index);
}

// ---- snapshots ----

Status Verifier::CheckIdentity(const SnapshotReader& reader, uint64_t number) const {
  const CatalogState& state = directory_->state();
  const SnapshotHeader& header = reader.header();
  const SnapshotRecord& record = state.snapshots.at(number);
  const SnapshotFooter& footer = reader.footer();
  if (header.directory_id != state.directory_id || header.stripe_bits != state.stripe_bits ||
      header.hash_seed != state.hash_seed || header.number != number) {
    return Status::Corruption("snapshot of another data directory").At(reader.path(), 0);
  }
  if (footer.from_epoch != record.from_epoch || footer.last_epoch != record.last_epoch ||
      footer.entries != record.entries || reader.file_bytes() != record.bytes) {
    return Status::Corruption("the catalog says something else about this snapshot").At(reader.path(), -1);
  }
  return Status::Ok();
}

void Verifier::CheckSnapshot(uint64_t number) {
  const std::string path = JoinPath(directory_->paths().snapshots, SnapshotFileName(number));
  Result<std::unique_ptr<SnapshotReader>> reader = SnapshotReader::Open(directory_->env(), path);
  if (!reader.ok()) {
    problems_->Add(reader.status());
    return;
  }
  ++counts_.snapshots;
  snapshot_path_ = path;
  const Status identity = CheckIdentity(**reader, number);
  if (!identity.ok()) problems_->Add(identity);
  section_objects_.clear();
  section_keys_ = 0;
  const SnapshotFooter& footer = (*reader)->footer();
  std::set<uint64_t> stripes;
  for (const SectionEntry& section : footer.sections) {
    if (section.kind == SectionKind::kObject) section_objects_.insert(section.id);
    if (section.kind == SectionKind::kStripe) stripes.insert(section.id);
  }
  if (stripes.size() != uint64_t{1} << directory_->state().stripe_bits) {
    problems_->Add(path + ": not one section a stripe");
  }
  for (const SectionEntry& section : footer.sections) {
    ++counts_.sections;
    const Status status = CheckSection(**reader, section);
    if (!status.ok()) problems_->Add(status);
  }
  if (problems_->empty() && section_keys_ != footer.entries) {
    problems_->Add(fmt::format("{}: {} keys in its sections, {} by its footer", path, section_keys_, footer.entries));
  }
}

Status Verifier::CheckSection(const SnapshotReader& reader, const SectionEntry& section) {
  std::string scratch;
  HOTKV_ASSIGN_OR_RETURN(const std::string_view body, reader.Read(section, &scratch));
  Status status;
  switch (section.kind) {
    case SectionKind::kStripe: status = CheckStripe(section, body); break;
    case SectionKind::kObject: status = CheckObjectSection(section, body); break;
    case SectionKind::kEffects: status = CheckEffectRuns(body); break;
  }
  return reader.At(section, std::move(status));
}

Status Verifier::CheckStripe(const SectionEntry& section, std::string_view body) {
  uint64_t announced = 0;
  uint64_t found = 0;
  HOTKV_RETURN_IF_ERROR(VisitStripeBytes(
      body,
      [&](uint32_t, uint64_t entries) {
        announced += entries;
        return Status::Ok();
      },
      [&](const DecodedEntry& entry) -> Status {
        ++found;
        if (StripeOf(entry.key) != section.id) {
          return Status::Corruption(fmt::format("key \"{}\" belongs to another stripe", Printable(entry.key)));
        }
        if (entry.object_id != 0 && !section_objects_.contains(entry.object_id)) {
          open_links_[entry.object_id].push_back(
              fmt::format("{}: section of stripe {}: key \"{}\" links to object {}, which has no section and is in no effect",
                          snapshot_path_, section.id, Printable(entry.key), entry.object_id));
        }
        return Status::Ok();
      }));
  section_keys_ += found;
  if (announced != found || found != section.entries) {
    return Status::Corruption(fmt::format("{} entries, {} by its header", found, section.entries));
  }
  return Status::Ok();
}

Status Verifier::CheckObjectSection(const SectionEntry& section, std::string_view body) {
  HOTKV_ASSIGN_OR_RETURN(const ObjectSection object, DecodeObjectSection(body));
  if (!HasObjects(FindObjectType(static_cast<ValueType>(object.type)))) {
    return Status::Unsupported(fmt::format("an object of type {} that this version does not know", object.type));
  }
  const auto& objects = directory_->state().objects;
  const auto record = objects.find(section.id);
  if (record == objects.end() || record->second.state != FileState::kLive) {
    return Status::Corruption(fmt::format("the catalog has no folder of object {}", section.id));
  }
  if (!record->second.generations.contains(object.generation)) {
    return Status::Corruption(
        fmt::format("the catalog has no generation {} of object {}", object.generation, section.id));
  }
  return Status::Ok();
}

// ---- effects ----

Status Verifier::CheckEffectPlace(const Effect& effect, unsigned group) const {
  const unsigned bits = directory_->state().stripe_bits;
  unsigned right = 0;
  if (IsObjectEffect(effect.kind)) {
    right = GroupOfObject(effect.object_id);
  } else {
    const uint64_t stripe = IsStripeWideEffect(effect.kind) ? effect.number : StripeOf(effect.key);
    if (stripe >= uint64_t{1} << bits) return Status::Corruption("an effect on a stripe that does not exist");
    right = GroupOfStripe(static_cast<uint32_t>(stripe), bits);
  }
  if (right == group) return Status::Ok();
  return Status::Corruption(fmt::format("in the wrong group: {}", EffectToString(effect)));
}

Status Verifier::CheckRecords(uint64_t epoch, unsigned group, std::string_view records) {
  ByteReader reader(records);
  Effect effect;
  while (!reader.empty()) {
    if (!DecodeEffect(&reader, epoch, &effect)) {
      return Status::Corruption(fmt::format("epoch {}: a record that cannot be decoded", epoch));
    }
    ++counts_.effects;
    if (effect.kind == EffectKind::kObjectCreate || effect.kind == EffectKind::kObjectDrop) {
      objects_in_effects_.insert(effect.object_id);
    }
    HOTKV_RETURN_IF_ERROR(CheckEffectPlace(effect, group));
  }
  return Status::Ok();
}

Status Verifier::CheckEffectRuns(std::string_view body) {
  HOTKV_ASSIGN_OR_RETURN(const std::vector<EffectRun> runs, DecodeEffectRuns(body));
  for (const EffectRun& run : runs) {
    HOTKV_RETURN_IF_ERROR(CheckRecords(run.epoch, run.group, run.records));
  }
  return Status::Ok();
}

void Verifier::CheckOpenLinks() {
  for (const auto& [object, links] : open_links_) {
    if (objects_in_effects_.contains(object)) continue;
    for (const std::string& link : links) problems_->Add(link);
  }
}

void Verifier::CheckBlock(LogReader* reader, const LogBlockRef& block) {
  ++counts_.blocks;
  for (const GroupEntry& group : block.header.groups) {
    const Result<std::string> records = reader->ReadGroup(GroupRefOf(block, group));
    if (!records.ok()) {
      problems_->Add(records.status());
      continue;
    }
    Status status = CheckRecords(block.header.epoch, group.group, *records);
    if (status.ok()) continue;
    const std::string path = JoinPath(directory_->paths().log, SegmentFileName(block.segment));
    problems_->Add(std::move(status).At(path, static_cast<int64_t>(block.offset + group.offset)));
  }
}

void Verifier::CheckLog() {
  LogReader reader(directory_->env(), directory_->paths().log);
  const Status status = ScanAllRanges(
      directory_,
      [&](const LogBlockRef& block) {
        CheckBlock(&reader, block);
        return Status::Ok();
      },
      problems_, &notes_);
  if (!status.ok()) problems_->Add(status);
}

// ---- index generations ----

void Verifier::CheckGenerations() {
  for (const auto& [id, object] : directory_->state().objects) {
    if (object.state != FileState::kLive) continue;
    const ObjectType* type = FindObjectType(static_cast<ValueType>(object.type));
    if (!HasObjects(type)) {
      problems_->Add(fmt::format("object {} is of type {}, which this version does not know", id, object.type));
      continue;
    }
    const std::string folder = ObjectFolder(directory_->paths().index, id);
    for (const auto& [generation, record] : object.generations) {
      if (record.state != FileState::kLive || type->verify_generation == nullptr) continue;
      ++counts_.generations;
      const Status status = type->verify_generation(directory_->env(), folder, generation);
      if (!status.ok()) problems_->Add(status);
    }
  }
}

// ---- a load, as the server would do it ----

void Verifier::CheckLoad() {
  Result<std::unique_ptr<Recovery>> recovery = directory_->Inspect();
  if (!recovery.ok()) {
    problems_->Add(recovery.status());
    return;
  }
  const std::unique_ptr<Engine> engine = directory_->MakeEngine(**recovery);
  Keyspace& keyspace = engine->keyspace();
  const Status status = ForEachLoadedStripe(recovery->get(), engine.get(), [&](Stripe& stripe) {
    for (uint32_t db = 0; db < DatabasesOf(keyspace, stripe); ++db) {
      if (const Table* table = stripe.table(db)) counts_.keys += table->size();
    }
    return Status::Ok();
  });
  if (!status.ok()) problems_->Add(status);
}

}  // namespace hotkv
