#include "tools/hotkv_tool/importer.h"

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/hash.h"
#include "engine/base/number.h"

namespace hotkv {

namespace {

constexpr std::string_view kNoIndex = "ERR no such index";
constexpr uint64_t kLaneSeed = 7;

std::string TextOf(const RespValue& reply, std::string_view name) {
  const RespValue* field = reply.Field(name);
  return field == nullptr ? std::string() : field->text;
}

}  // namespace

bool Importer::Bad(RecordReader* reader, uint64_t position, const std::string& text) {
  problems_->Add(reader->Where(position) + ": " + text);
  if (options_.skip_bad) ++skipped_;
  return options_.skip_bad;
}

Result<bool> Importer::ReadNext(RecordReader* reader, Record* record, bool* more) {
  for (;;) {
    Result<bool> next = reader->Next(record);
    if (next.ok()) {
      *more = *next;
      return true;
    }
    const Code code = next.status().code();
    if (code == Code::kIoError) return next.status();
    problems_->Add(next.status());
    if (!options_.skip_bad || !reader->SkipBad()) return false;
    ++skipped_;
  }
}

Result<Importer::Index*> Importer::FindIndex(const Record& record) {
  const auto [place, fresh] = indexes_.try_emplace({record.db, std::string(record.key)});
  Index& index = place->second;
  if (!fresh) return &index;
  const std::string_view args[] = {"VSIM.INFO", record.key};
  HOTKV_ASSIGN_OR_RETURN(const RespValue reply, target_->Ask(args, record.db));
  if (reply.is_error()) {
    if (reply.text != kNoIndex) return Status::InvalidArgument(reply.text);
    return &index;
  }
  const RespValue* dim = reply.Field("dim");
  if (dim == nullptr || dim->integer <= 0) return Status::Internal("VSIM.INFO without a dimension");
  index.exists = true;
  index.dim = static_cast<uint32_t>(dim->integer);
  const RespValue* input_dim = reply.Field("input_dim");
  if (input_dim != nullptr) index.input_dim = static_cast<uint32_t>(input_dim->integer);
  index.metric = TextOf(reply, "metric");
  index.type = TextOf(reply, "type");
  return &index;
}

// What is wrong with a record that could be read; empty: nothing that can be told beforehand.
Result<std::string> Importer::ObjectionTo(const Record& record) {
  if (record.kind == RecordKind::kCommand) return target_->Objection(record.args);
  if (record.kind == RecordKind::kString) return std::string();
  Result<Index*> found = FindIndex(record);
  if (!found.ok()) {
    if (found.status().code() != Code::kInvalidArgument) return found.status();
    return fmt::format("index \"{}\": {}", Printable(record.key), found.status().message());
  }
  Index& index = **found;
  const bool defines = record.kind == RecordKind::kIndex;
  const auto dim = defines ? record.index.dim : static_cast<uint32_t>(record.vector.size());
  if (index.dim == 0) index.dim = dim;
  if (index.dim != dim) {
    return fmt::format("{} components, but index \"{}\" has {}", dim, Printable(record.key), index.dim);
  }
  if (!defines || !index.exists) return std::string();
  if (record.index.input_dim != index.input_dim) {
    return fmt::format("index \"{}\" exists already with INPUT_DIM {}, not {}", Printable(record.key), index.input_dim,
                       record.index.input_dim);
  }
  const bool other_metric = !record.index.metric.empty() && record.index.metric != index.metric;
  const bool other_type = !record.index.type.empty() && record.index.type != index.type;
  if (!other_metric && !other_type) return std::string();
  return fmt::format("index \"{}\" exists already as {} {}", Printable(record.key), index.metric, index.type);
}

Result<bool> Importer::Check(RecordReader* reader, ProgressBar* progress) {
  Record record;
  bool more = true;
  bool fine = true;
  while (fine) {
    HOTKV_ASSIGN_OR_RETURN(const bool readable, ReadNext(reader, &record, &more));
    fine = readable;
    if (!fine || !more) break;
    HOTKV_ASSIGN_OR_RETURN(const std::string objection, ObjectionTo(record));
    if (!objection.empty()) fine = Bad(reader, reader->position(), objection);
    progress->Update(reader->done());
  }
  return fine;
}

void Importer::TakeRefusals(RecordReader* reader) {
  for (const Refusal& refusal : target_->TakeRefusals()) {
    problems_->Add(reader->Where(refusal.position) + ": " + refusal.text);
  }
}

Result<bool> Importer::Run(RecordReader* reader, ProgressBar* progress) {
  indexes_.clear();
  HOTKV_RETURN_IF_ERROR(target_->EnterDb(options_.db));
  Record record;
  bool more = true;
  bool fine = true;
  Status status;
  while (status.ok() && fine) {
    Result<bool> readable = ReadNext(reader, &record, &more);
    if (!readable.ok()) status = std::move(readable).status();
    fine = status.ok() && *readable;
    if (!fine || !more) break;
    ++records_;
    status = Apply(reader, record);
    fine = !ShouldStop();
    progress->Update(reader->done());
  }
  const Status drained = target_->Drain();
  TakeRefusals(reader);
  side_by_side_ = false;
  if (status.ok()) status = drained;
  HOTKV_RETURN_IF_ERROR(status);
  return fine && !ShouldStop();
}

Status Importer::Submit(const Record& record, unsigned lane, uint32_t db, uint64_t position) {
  MakeCommand(record, &line_);
  return target_->Submit({line_.args(), db, lane, position});
}

Status Importer::Apply(RecordReader* reader, const Record& record) {
  if (record.kind == RecordKind::kVector) return ApplyVector(reader, record);
  if (side_by_side_) {
    HOTKV_RETURN_IF_ERROR(target_->Drain());
    side_by_side_ = false;
  }
  if (record.kind == RecordKind::kIndex) return ApplyIndex(reader, record);
  const bool command = record.kind == RecordKind::kCommand;
  return Submit(record, 0, command ? Submission::kSameDb : record.db, reader->position());
}

Status Importer::Refuse(RecordReader* reader, const std::string& text) {
  ++refused_here_;
  problems_->Add(reader->Where(reader->position()) + ": " + text);
  return Status::Ok();
}

Status Importer::MakeIndex(const Record& record, Index* index) {
  MakeCommand(record, &line_);
  HOTKV_ASSIGN_OR_RETURN(const RespValue reply, target_->Ask(line_.args(), record.db));
  if (reply.is_error()) {
    return Status::InvalidArgument(fmt::format("making index \"{}\": {}", Printable(record.key), reply.text));
  }
  index->exists = true;
  index->dim = record.index.dim;
  index->input_dim = record.index.input_dim;
  return Status::Ok();
}

Status Importer::ApplyIndex(RecordReader* reader, const Record& record) {
  HOTKV_ASSIGN_OR_RETURN(const std::string objection, ObjectionTo(record));
  if (!objection.empty()) return Refuse(reader, objection);
  Index& index = indexes_.at({record.db, std::string(record.key)});
  if (record.expire_at_ms != 0 && record.expire_at_ms <= Clock::NowMs()) {
    index.expired = true;
    ++expired_;
    return Status::Ok();
  }
  if (!index.exists) {
    const Status made = MakeIndex(record, &index);
    if (made.code() == Code::kInvalidArgument) return Refuse(reader, made.message());
    HOTKV_RETURN_IF_ERROR(made);
  }
  ++indexes_applied_;
  if (record.expire_at_ms == 0) return Status::Ok();
  MakeExpiry(record.key, record.expire_at_ms, &line_);
  HOTKV_ASSIGN_OR_RETURN(const RespValue reply, target_->Ask(line_.args(), record.db));
  return reply.is_error() ? Refuse(reader, reply.text) : Status::Ok();
}

Status Importer::ApplyVector(RecordReader* reader, const Record& record) {
  HOTKV_ASSIGN_OR_RETURN(const std::string objection, ObjectionTo(record));
  if (!objection.empty()) return Refuse(reader, objection);
  Index& index = indexes_.at({record.db, std::string(record.key)});
  const bool ended = record.expire_at_ms != 0 && record.expire_at_ms <= Clock::NowMs();
  if (index.expired || ended) {
    ++expired_;
    return Status::Ok();
  }
  if (!index.exists) {
    Record definition = record;
    definition.kind = RecordKind::kIndex;
    definition.index = options_.new_index;
    definition.index.dim = index.dim;
    const Status made = MakeIndex(definition, &index);
    if (made.code() == Code::kInvalidArgument) return Refuse(reader, made.message());
    HOTKV_RETURN_IF_ERROR(made);
  }
  // One element always takes the same lane, so that its last version in the input wins.
  const auto lane = static_cast<unsigned>(HashBytes(record.id, kLaneSeed) % target_->lanes());
  side_by_side_ = side_by_side_ || target_->lanes() > 1;
  return Submit(record, lane, record.db, reader->position());
}

}  // namespace hotkv
