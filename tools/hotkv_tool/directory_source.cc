#include "tools/hotkv_tool/directory_source.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/glob.h"
#include "engine/types/vector_set.h"

namespace hotkv {

namespace {

constexpr uint32_t kSlotsAtOnce = 256;

IndexDefinition DefinitionOf(const VectorSet& set) {
  const IndexOptions options = set.index().options();
  IndexDefinition index;
  index.dim = options.dim;
  index.metric = MetricName(options.metric);
  index.type = ElementTypeName(options.type);
  index.m = options.m;
  index.ef_construction = options.ef_construction;
  index.ef = options.ef_default;
  index.rerank = options.rerank;
  index.input_dim = set.definition().reduce_from;
  index.transient = !set.definition().declared;
  index.fields = set.index().fields();
  return index;
}

}  // namespace

uint32_t DatabasesOf(const Keyspace& keyspace, const Stripe& stripe) {
  return stripe.extra.load(std::memory_order_acquire) == nullptr ? 1 : keyspace.databases();
}

void EmptyStripe(Keyspace& keyspace, Stripe& stripe) {
  for (uint32_t db = 0; db < DatabasesOf(keyspace, stripe); ++db) {
    if (Table* table = keyspace.TakeTable(stripe, db)) Keyspace::FreeTable(table);
  }
}

Status ForEachLoadedStripe(Recovery* recovery, Engine* engine, const std::function<Status(Stripe&)>& fn) {
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  HOTKV_RETURN_IF_ERROR(recovery->LoadObjects(engine, threads));
  Keyspace& keyspace = engine->keyspace();
  for (unsigned group = 0; group < kStripeGroups; ++group) {
    HOTKV_RETURN_IF_ERROR(recovery->LoadStripesOfGroup(engine, group));
    for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
      if (GroupOfStripe(i, keyspace.options().stripe_bits) != group) continue;
      Stripe& stripe = keyspace.stripe(i);
      HOTKV_RETURN_IF_ERROR(fn(stripe));
      EmptyStripe(keyspace, stripe);
    }
  }
  return recovery->FinishObjects();
}

Result<std::unique_ptr<DirectorySource>> DirectorySource::Open(const std::string& path) {
  HOTKV_ASSIGN_OR_RETURN(auto directory,
                         StoredDirectory::Open(path, StoredDirectory::Locking::kRefuseLocked));
  return std::unique_ptr<DirectorySource>(new DirectorySource(std::move(directory)));
}

Status DirectorySource::ForEach(const ExportFilter& filter, Problems* problems, const Put& put) {
  HOTKV_ASSIGN_OR_RETURN(auto recovery, directory_->Inspect());
  const std::unique_ptr<Engine> engine = directory_->MakeEngine(*recovery);
  const Run run{filter, problems, put, Clock::NowMs()};
  return ForEachLoadedStripe(recovery.get(), engine.get(), [&](Stripe& stripe) {
    ++stripes_done_;
    return ExportStripe(run, engine->keyspace(), stripe);
  });
}

Status EngineSource::ExportStripe(const Run& run, Keyspace& keyspace, Stripe& stripe) {
  for (uint32_t db = 0; db < DatabasesOf(keyspace, stripe); ++db) {
    if (!keyspace.DbInUse(stripe, db) || (run.filter.db && *run.filter.db != db)) continue;
    Table* table = stripe.table(db);
    Status status;
    for (uint32_t c = 0; status.ok() && c < table->chunk_count(); ++c) {
      table->ForEachInChunk(c, [&](Entry** slot) {
        if (status.ok()) status = ExportEntry(run, db, **slot);
      });
    }
    HOTKV_RETURN_IF_ERROR(status);
  }
  return Status::Ok();
}

Status EngineSource::ExportEntry(const Run& run, uint32_t db, const Entry& entry) {
  if (entry.ExpiredAt(run.now_ms)) return Status::Ok();
  if (!run.filter.match.empty() && !GlobMatches(run.filter.match, entry.key())) return Status::Ok();
  Record record;
  record.db = db;
  record.key = entry.key();
  record.expire_at_ms = entry.expire_at_ms();
  if (entry.type() == ValueType::kString) {
    char scratch[24];
    record.kind = RecordKind::kString;
    record.value = entry.StringValue(scratch);
    ++counts_.keys;
    return run.put(record);
  }
  if (entry.type() == ValueType::kVectorSet) {
    return ExportVectors(run, record, static_cast<const VectorSet&>(*entry.object()));
  }
  std::string text = fmt::format("db {} key \"{}\": type {} cannot be exported", db, Printable(entry.key()),
                                 static_cast<unsigned>(entry.type()));
  if (!run.filter.skip_bad) return Status::Unsupported(std::move(text));
  run.problems->Add(std::move(text));
  ++counts_.skipped;
  return Status::Ok();
}

Status EngineSource::ExportVectors(const Run& run, Record record, const VectorSet& set) {
  record.kind = RecordKind::kIndex;
  record.index = DefinitionOf(set);
  ++counts_.keys;
  HOTKV_RETURN_IF_ERROR(run.put(record));
  record.kind = RecordKind::kVector;
  const int64_t now_ms = Clock::NowMs();
  Status status;
  for (uint32_t slot = 0; status.ok() && slot != kNoSlot;) {
    slot = set.index().ForEach(
        slot, kSlotsAtOnce,
        [&](const VectorIndex::VisitedElement& element) {
          if (!status.ok()) return;
          const int64_t end_ms = element.view.expire_at_ms;
          if (end_ms != 0 && end_ms <= now_ms) return;
          record.expire_at_ms = end_ms;
          record.id = element.view.name;
          record.attr = element.view.attr;
          record.vector = element.vector;
          ++counts_.vectors;
          status = run.put(record);
        },
        true);
  }
  return status;
}

}  // namespace hotkv
