#include <cmath>

#include <nlohmann/json.hpp>

#include "tools/hotkv_tool/ndjson.h"
#include "tools/hotkv_tool/text_encoding.h"

namespace hotkv {

namespace {

using Json = nlohmann::ordered_json;

void AppendBytes(std::string_view bytes, std::string* out) {
  if (IsUtf8(bytes)) {
    AppendJsonString(bytes, out);
    return;
  }
  *out += "{\"base64\":\"";
  AppendBase64(bytes, out);
  *out += "\"}";
}

void AppendMember(std::string_view name, std::string_view bytes, std::string* out) {
  out->push_back(',');
  AppendJsonString(name, out);
  out->push_back(':');
  AppendBytes(bytes, out);
}

void AppendNumber(std::string_view name, uint64_t number, std::string* out) {
  out->push_back(',');
  AppendJsonString(name, out);
  out->push_back(':');
  *out += std::to_string(number);
}

// True when the reader makes these very bytes of them again: an object without blanks, numbers in their shortest form.
bool StandsAsObject(std::string_view attr) {
  if (attr.empty() || attr.front() != '{' || !IsUtf8(attr)) return false;
  if (JsonNesting(attr) >= kJsonNestingMax) return false;
  const Json parsed = Json::parse(attr, nullptr, false);
  if (!parsed.is_object() || (parsed.size() == 1 && parsed.contains("base64"))) return false;
  return parsed.dump() == attr;
}

void AppendHead(const Record& record, std::string* out) {
  *out += "{\"db\":" + std::to_string(record.db);
}

void AppendExpiry(const Record& record, std::string* out) {
  if (record.expire_at_ms == 0) return;
  AppendNumber("expire_at_ms", static_cast<uint64_t>(record.expire_at_ms), out);
}

void AppendKeyHead(const Record& record, std::string_view type, std::string* out) {
  AppendHead(record, out);
  AppendMember("key", record.key, out);
  AppendMember("type", type, out);
  AppendExpiry(record, out);
}

void AppendIndex(const Record& record, std::string* out) {
  AppendKeyHead(record, "vectorset", out);
  const IndexDefinition& index = record.index;
  *out += ",\"value\":{\"dim\":" + std::to_string(index.dim);
  if (!index.metric.empty()) AppendMember("metric", index.metric, out);
  if (!index.type.empty()) AppendMember("type", index.type, out);
  if (index.m != 0) AppendNumber("m", index.m, out);
  if (index.ef_construction != 0) AppendNumber("ef_construction", index.ef_construction, out);
  if (index.ef != 0) AppendNumber("ef", index.ef, out);
  if (index.rerank != 0) AppendNumber("rerank", index.rerank, out);
  if (index.input_dim != 0) AppendNumber("input_dim", index.input_dim, out);
  if (index.transient) *out += ",\"transient\":true";
  if (!index.fields.empty()) {
    *out += ",\"fields\":{";
    for (const FieldSpec& field : index.fields) {
      if (out->back() != '{') out->push_back(',');
      *out += "\"" + field.name + "\":\"" + std::string(FieldKindName(field.kind)) + "\"";
    }
    out->push_back('}');
  }
  *out += "}}\n";
}

Status AppendVector(const Record& record, std::string* out) {
  AppendHead(record, out);
  AppendMember("index", record.key, out);
  AppendMember("id", record.id, out);
  AppendExpiry(record, out);
  *out += ",\"vector\":[";
  for (size_t i = 0; i < record.vector.size(); ++i) {
    if (!std::isfinite(record.vector[i])) {
      return Status::Corruption("a vector with a component that is no number");
    }
    if (i != 0) out->push_back(',');
    AppendFloat(record.vector[i], out);
  }
  out->push_back(']');
  if (StandsAsObject(record.attr)) {
    *out += ",\"attr\":";
    *out += record.attr;
  } else if (!record.attr.empty()) {
    AppendMember("attr", record.attr, out);
  }
  *out += "}\n";
  return Status::Ok();
}

}  // namespace

Status AppendNdjsonLine(const Record& record, std::string* out) {
  switch (record.kind) {
    case RecordKind::kString:
      AppendKeyHead(record, "string", out);
      AppendMember("value", record.value, out);
      *out += "}\n";
      return Status::Ok();
    case RecordKind::kIndex:
      AppendIndex(record, out);
      return Status::Ok();
    case RecordKind::kVector:
      return AppendVector(record, out);
    case RecordKind::kCommand:
      break;
  }
  return Status::Unsupported("commands have no NDJSON form");
}

Status NdjsonWriter::Put(const Record& record) {
  HOTKV_RETURN_IF_ERROR(AppendNdjsonLine(record, output_->buffer()));
  return output_->MaybeFlush();
}

}  // namespace hotkv
