#include "persistence/recovery/effect_source.h"

#include <algorithm>

#include <fmt/format.h>

namespace hotkv {

Status EffectSource::AddSnapshot(const SnapshotReader& snapshot) {
  if (!snapshot.footer().has_effects) return Status::Ok();
  snapshot_last_epoch_ = snapshot.footer().last_epoch;
  snapshot_path_ = snapshot.path();
  for (const SectionEntry& section : snapshot.footer().sections) {
    if (section.kind != SectionKind::kEffects) continue;
    std::string& scratch = snapshot_bytes_.emplace_back();
    HOTKV_ASSIGN_OR_RETURN(const std::string_view body, snapshot.Read(section, &scratch));
    Result<std::vector<EffectRun>> runs = DecodeEffectRuns(body);
    if (!runs.ok()) return snapshot.At(section, runs.status());
    for (const EffectRun& run : *runs) {
      runs_[run.group].push_back({run, static_cast<int64_t>(section.offset)});
    }
  }
  // The file has them as they came, epoch by epoch; sorted again only to be sure of it.
  for (auto& runs : runs_) {
    std::stable_sort(runs.begin(), runs.end(),
                     [](const auto& a, const auto& b) { return a.run.epoch < b.run.epoch; });
  }
  return Status::Ok();
}

void EffectSource::AddBlock(const LogBlockRef& block) {
  // Epochs that the snapshot's file holds by itself are not taken twice.
  if (block.header.epoch <= snapshot_last_epoch_) return;
  ++blocks_;
  for (const GroupEntry& group : block.header.groups) {
    refs_[group.group].push_back(GroupRefOf(block, group));
  }
}

Status EffectSource::ApplyRecords(uint64_t epoch, std::string_view records,
                                  const Apply& apply) const {
  std::vector<Effect> effects;
  ByteReader reader(records);
  while (!reader.empty()) {
    if (!DecodeEffect(&reader, epoch, &effects.emplace_back())) {
      return Status::Corruption(fmt::format("an effect of epoch {} cannot be read", epoch));
    }
  }
  // A worker's records are in order; several workers' stand one after the other. Equal lsns of
  // different workers touch nothing in common, and those of one commit keep their order.
  std::stable_sort(effects.begin(), effects.end(),
                   [](const Effect& a, const Effect& b) { return a.lsn < b.lsn; });
  for (const Effect& effect : effects) HOTKV_RETURN_IF_ERROR(apply(effect));
  return Status::Ok();
}

Status EffectSource::ForEach(unsigned group, const Apply& apply) {
  for (const auto& [run, section_offset] : runs_[group]) {
    Status status = ApplyRecords(run.epoch, run.records, apply);
    if (!status.ok()) {
      if (status.offset() >= 0) return status;
      return std::move(status).At(snapshot_path_, section_offset);
    }
  }
  for (const LogGroupRef& ref : refs_[group]) {
    HOTKV_ASSIGN_OR_RETURN(const std::string records, reader_.ReadGroup(ref));
    Status status = ApplyRecords(ref.epoch, records, apply);
    if (!status.ok()) {
      if (status.offset() >= 0) return status;
      return std::move(status).At(JoinPath(log_folder_, SegmentFileName(ref.segment)),
                                  static_cast<int64_t>(ref.offset));
    }
  }
  return Status::Ok();
}

}  // namespace hotkv
