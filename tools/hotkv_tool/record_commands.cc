#include "tools/hotkv_tool/record_commands.h"

namespace hotkv {

namespace {

void AddOption(std::string_view name, uint64_t value, CommandLine* line) {
  if (value != 0) line->Add(name).AddNumber(value);
}

void MakeCreateIndex(const Record& record, CommandLine* line) {
  const IndexDefinition& index = record.index;
  line->Add("VSIM.CREATEINDEX").Add(record.key).Add("DIM").AddNumber(index.dim);
  if (!index.metric.empty()) line->Add("METRIC").Add(index.metric);
  if (!index.type.empty()) line->Add("TYPE").Add(index.type);
  AddOption("M", index.m, line);
  AddOption("EF_CONSTRUCTION", index.ef_construction, line);
  AddOption("EF", index.ef, line);
  AddOption("RERANK", index.rerank, line);
  AddOption("INPUT_DIM", index.input_dim, line);
  if (index.transient) line->Add("TRANSIENT");
  if (index.fields.empty()) return;
  line->Add("FIELDS").AddNumber(index.fields.size());
  for (const FieldSpec& field : index.fields) line->Add(field.name).Add(FieldKindName(field.kind));
}

}  // namespace

void MakeCommand(const Record& record, CommandLine* line) {
  line->Clear();
  switch (record.kind) {
    case RecordKind::kCommand:
      for (const std::string_view arg : record.args) line->Add(arg);
      break;
    case RecordKind::kString:
      line->Add("SET").Add(record.key).Add(record.value);
      AddOption("PXAT", static_cast<uint64_t>(record.expire_at_ms), line);
      break;
    case RecordKind::kIndex:
      MakeCreateIndex(record, line);
      break;
    case RecordKind::kVector:
      line->Add("VSIM.SET").Add(record.key).Add(record.id).Add("FP32");
      line->Add({reinterpret_cast<const char*>(record.vector.data()), record.vector.size_bytes()});
      if (!record.attr.empty()) line->Add("ATTR").Add(record.attr);
      AddOption("PXAT", static_cast<uint64_t>(record.expire_at_ms), line);
      break;
  }
}

void MakeExpiry(std::string_view key, int64_t expire_at_ms, CommandLine* line) {
  line->Clear();
  line->Add("PEXPIREAT").Add(key).AddNumber(static_cast<uint64_t>(expire_at_ms));
}

void MakeSelect(uint32_t db, CommandLine* line) {
  line->Clear();
  line->Add("SELECT").AddNumber(db);
}

}  // namespace hotkv
