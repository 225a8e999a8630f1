#include "persistence/recovery/recovery.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "engine/tx/engine.h"

namespace hotkv {

Result<std::unique_ptr<Recovery>> Recovery::Inspect(Env* env, const DirectoryPaths& paths,
                                                    const CatalogState& state) {
  std::unique_ptr<Recovery> recovery(new Recovery(env, paths, state));
  HOTKV_RETURN_IF_ERROR(recovery->OpenSnapshot());
  recovery->ChooseRange();
  if (recovery->snapshot_) {
    recovery->last_epoch_ = recovery->snapshot_->footer().last_epoch;
    recovery->durable_epoch_ = recovery->last_epoch_;
    HOTKV_RETURN_IF_ERROR(recovery->effects_.AddSnapshot(*recovery->snapshot_));
  }
  if (recovery->range_) HOTKV_RETURN_IF_ERROR(recovery->Scan());
  recovery->first_epoch_ = std::max(recovery->last_epoch_, state.epoch_max) + 1;
  return recovery;
}

uint64_t Recovery::first_object_id() const {
  return std::max(state_.next_object_id, snapshot_ ? snapshot_->footer().next_object_id : 1);
}

Status Recovery::OpenSnapshot() {
  for (const auto& [number, record] : state_.snapshots) {
    if (record.state == FileState::kLive) snapshot_number_ = number;
  }
  if (snapshot_number_ == 0) return Status::Ok();
  const std::string path = JoinPath(paths_.snapshots, SnapshotFileName(snapshot_number_));
  Result<std::unique_ptr<SnapshotReader>> reader = SnapshotReader::Open(env_, path);
  if (!reader.ok() && reader.status().code() == Code::kNotFound) {
    return Status::Corruption("the catalog names this snapshot, but there is no such file")
        .At(path, -1);
  }
  if (!reader.ok()) return reader.status();
  snapshot_ = std::move(reader).value();
  const SnapshotHeader& header = snapshot_->header();
  if (header.directory_id != state_.directory_id || header.stripe_bits != state_.stripe_bits ||
      header.hash_seed != state_.hash_seed || header.number != snapshot_number_) {
    return Status::Corruption("snapshot of another data directory").At(path, 0);
  }
  stripe_sections_.resize(size_t{1} << state_.stripe_bits, nullptr);
  for (const SectionEntry& section : snapshot_->footer().sections) {
    if (section.kind != SectionKind::kStripe) continue;
    if (section.id >= stripe_sections_.size() || stripe_sections_[section.id] != nullptr) {
      return snapshot_->At(section, Status::Corruption("stripe number"));
    }
    stripe_sections_[section.id] = &section;
  }
  for (uint32_t i = 0; i < stripe_sections_.size(); ++i) {
    if (stripe_sections_[i] == nullptr) {
      return Status::Corruption(fmt::format("no section of stripe {}", i)).At(path, -1);
    }
  }
  return Status::Ok();
}

void Recovery::ChooseRange() {
  const uint64_t from = snapshot_ ? snapshot_->footer().from_epoch : 0;
  for (const auto& [first, range] : state_.ranges) {
    const bool over = range.last_epoch != 0 && range.last_epoch < from;
    if (first <= from && !over) range_ = range;
  }
}

std::vector<LogSegmentEntry> Recovery::SegmentsOf(const CatalogState& state,
                                                  const LogRange& range) {
  uint64_t end = UINT64_MAX;
  for (const auto& [first, other] : state.ranges) {
    if (first > range.first_epoch) end = std::min(end, other.first_segment);
  }
  std::vector<LogSegmentEntry> segments;
  for (const auto& [number, entry] : state.segments) {
    if (number < range.first_segment || number >= end) continue;
    if (entry.state == SegmentState::kLive) segments.push_back(entry);
  }
  return segments;
}

// Blocks before it are in the snapshot's sections and the objects' generations.
uint64_t Recovery::FirstNeededEpoch() const {
  uint64_t epoch = snapshot_ ? snapshot_->footer().from_epoch : 0;
  for (const auto& [id, object] : state_.objects) {
    const uint64_t current = object.current();
    if (current != 0) {
      epoch = std::min(epoch, EpochOf(object.generations.at(current).from_lsn));
    }
  }
  return epoch;
}

// The highest epoch of which the range is known to have a durable block, by others than its own
// blocks. What was noted of an earlier range says nothing about this one.
uint64_t Recovery::KnownDurable() const {
  uint64_t epoch = 0;
  auto note = [&](uint64_t log_epoch) {
    if (log_epoch >= range_->first_epoch) epoch = std::max(epoch, log_epoch);
  };
  note(state_.log_epoch);
  if (snapshot_) note(state_.snapshots.at(snapshot_number_).log_epoch);
  for (const auto& [id, object] : state_.objects) {
    const uint64_t current = object.current();
    if (current != 0) note(object.generations.at(current).log_epoch);
  }
  return epoch;
}

Status Recovery::Scan() {
  const uint64_t needed = FirstNeededEpoch();
  LogScanOptions options;
  options.env = env_;
  options.folder = paths_.log;
  options.identity = {state_.directory_id, 1u << state_.stripe_bits, state_.hash_seed};
  for (const LogSegmentEntry& entry : SegmentsOf(state_, *range_)) {
    // The last one that is not needed stays: from its end the chain goes on.
    if (entry.ended && entry.last_epoch < needed) options.segments.clear();
    options.segments.push_back(entry);
  }
  if (options.segments.empty()) return Status::Ok();
  options.durable_epoch = KnownDurable();
  HOTKV_ASSIGN_OR_RETURN(log_, ScanLog(options, [this](const LogBlockRef& block) {
                           effects_.AddBlock(block);
                           return Status::Ok();
                         }));
  last_epoch_ = std::max(last_epoch_, log_->end.epoch);
  durable_epoch_ = std::max(durable_epoch_, log_->watermark);
  return Status::Ok();
}

Status Recovery::ForAllGroups(unsigned threads, const std::function<Status(unsigned)>& fn) {
  std::atomic<unsigned> next{0};
  std::mutex mutex;
  Status first_error;
  auto work = [&] {
    for (;;) {
      const unsigned group = next.fetch_add(1, std::memory_order_relaxed);
      if (group >= kStripeGroups) return;
      Status status = fn(group);
      if (status.ok()) continue;
      std::lock_guard lock(mutex);
      if (first_error.ok()) first_error = std::move(status);
      next.store(kStripeGroups, std::memory_order_relaxed);
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return first_error;
}

Status Recovery::Load(Engine* engine, unsigned threads) {
  HOTKV_RETURN_IF_ERROR(LoadObjects(engine, threads));
  HOTKV_RETURN_IF_ERROR(
      ForAllGroups(threads, [&](unsigned group) { return LoadStripesOfGroup(engine, group); }));
  HOTKV_RETURN_IF_ERROR(FinishObjects());
  loaded_.store(true, std::memory_order_relaxed);
  return Status::Ok();
}

Status Recovery::FinishObjects() { return objects_ ? objects_->Finish() : Status::Ok(); }

Status Recovery::LoadObjects(Engine* engine, unsigned threads) {
  HOTKV_CHECK(engine->keyspace().options().stripe_bits == state_.stripe_bits);
  HOTKV_CHECK(engine->keyspace().options().hash_seed == state_.hash_seed);
  // Directories that never had an object are spared a pass over their effects.
  const bool has_objects = first_object_id() > 1;
  if (!has_objects) return Status::Ok();
  objects_ = std::make_unique<ObjectLoader>(
      ObjectLoader::Options{env_, paths_.index, &state_, snapshot_.get(), &effects_,
                            range_.has_value()},
      engine);
  HOTKV_RETURN_IF_ERROR(objects_->Plan());
  return ForAllGroups(threads, [&](unsigned group) { return objects_->LoadGroup(group); });
}

Status Recovery::LoadStripe(Engine* engine, uint32_t stripe, std::string* scratch) {
  const SectionEntry& section = *stripe_sections_[stripe];
  HOTKV_ASSIGN_OR_RETURN(const std::string_view body, snapshot_->Read(section, scratch));
  Stripe& target = engine->keyspace().stripe(stripe);
  target.lsn = section.cut;
  const ObjectResolver resolve = [engine](uint64_t id, ValueType type) -> Object* {
    ObjectRef<Object> object = engine->objects().Find(id);
    return object && object->type() == type ? object.Release() : nullptr;
  };
  HOTKV_RETURN_IF_ERROR(
      snapshot_->At(section, DecodeStripe(engine->keyspace(), target, body, resolve)));
  stripes_loaded_.fetch_add(1, std::memory_order_relaxed);
  keys_loaded_.fetch_add(section.entries, std::memory_order_relaxed);
  return Status::Ok();
}

Status Recovery::LoadStripesOfGroup(Engine* engine, unsigned group) {
  Keyspace& keyspace = engine->keyspace();
  const unsigned stripe_bits = keyspace.options().stripe_bits;
  std::string scratch;
  for (uint32_t i = 0; snapshot_ && i < keyspace.stripe_count(); ++i) {
    if (GroupOfStripe(i, stripe_bits) == group) {
      HOTKV_RETURN_IF_ERROR(LoadStripe(engine, i, &scratch));
    }
  }
  return effects_.ForEach(group, [&](const Effect& effect) -> Status {
    if (IsObjectEffect(effect.kind)) {
      return objects_ ? Status::Ok()
                      : Status::Corruption("an effect of an object in a directory without any");
    }
    const uint64_t stripe =
        IsStripeWideEffect(effect.kind) ? effect.number : keyspace.MakeRef(effect.key).stripe;
    if (stripe >= keyspace.stripe_count() ||
        GroupOfStripe(static_cast<uint32_t>(stripe), stripe_bits) != group) {
      return Status::Corruption("an effect in the group of another stripe");
    }
    const bool in_section = snapshot_ && effect.lsn <= stripe_sections_[stripe]->cut;
    return in_section ? Status::Ok() : engine->Replay(effect);
  });
}

}  // namespace hotkv
