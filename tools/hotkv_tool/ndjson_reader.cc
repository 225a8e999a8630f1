#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/coding.h"
#include "engine/base/limits.h"
#include "tools/hotkv_tool/ndjson.h"
#include "tools/hotkv_tool/text_encoding.h"

namespace hotkv {

namespace {

// Members keep the order of the text: an attribute object goes on as it was written.
using Json = nlohmann::ordered_json;

Status Bad(std::string text) { return Status::Corruption(std::move(text)); }

const Json* Member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// A string, or {"base64": "..."}.
Status ReadBytes(const Json& value, const char* name, std::string* out) {
  if (value.is_string()) {
    *out = value.get_ref<const std::string&>();
    return Status::Ok();
  }
  const Json* encoded = value.is_object() && value.size() == 1 ? Member(value, "base64") : nullptr;
  if (encoded == nullptr || !encoded->is_string()) {
    return Bad(fmt::format("\"{}\" must be a string or {{\"base64\": \"...\"}}", name));
  }
  auto bytes = DecodeBase64(encoded->get_ref<const std::string&>());
  if (!bytes) return Bad(fmt::format("\"{}\" is not base64", name));
  *out = std::move(*bytes);
  return Status::Ok();
}

Status ReadRequiredBytes(const Json& object, const char* name, std::string* out) {
  const Json* value = Member(object, name);
  if (value == nullptr) return Bad(fmt::format("\"{}\" is missing", name));
  return ReadBytes(*value, name, out);
}

// An absent number leaves *out as it is.
template <typename T>
Status ReadUint(const Json& object, const char* name, uint64_t max, T* out) {
  const Json* value = Member(object, name);
  if (value == nullptr) return Status::Ok();
  if (!value->is_number_unsigned() || value->get<uint64_t>() > max) {
    return Bad(fmt::format("\"{}\" must be an integer from 0 to {}", name, max));
  }
  *out = static_cast<T>(value->get<uint64_t>());
  return Status::Ok();
}

Status ReadBool(const Json& object, const char* name, bool* out) {
  *out = false;
  const Json* value = Member(object, name);
  if (value == nullptr) return Status::Ok();
  if (!value->is_boolean()) return Bad(fmt::format("\"{}\" must be true or false", name));
  *out = value->get<bool>();
  return Status::Ok();
}

Status ReadText(const Json& object, const char* name, std::string* out) {
  const Json* value = Member(object, name);
  if (value == nullptr) return Status::Ok();
  if (!value->is_string()) return Bad(fmt::format("\"{}\" must be a string", name));
  *out = value->get_ref<const std::string&>();
  return Status::Ok();
}

Status CheckMembers(const Json& object, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : object.items()) {
    bool found = false;
    for (const std::string_view k : known) found = found || name == k;
    if (!found) return Bad(fmt::format("unknown member \"{}\"", name));
  }
  return Status::Ok();
}

Status ReadFields(const Json& value, std::vector<FieldSpec>* out) {
  out->clear();
  const auto at = value.find("fields");
  if (at == value.end()) return Status::Ok();
  if (!at->is_object()) return Bad("\"fields\" must be an object");
  for (const auto& [name, kind] : at->items()) {
    FieldSpec field = {name, FieldKind::kTag};
    if (kind == FieldKindName(FieldKind::kNumeric)) field.kind = FieldKind::kNumeric;
    if (kind != FieldKindName(field.kind)) return Bad("a field is TAG or NUMERIC");
    out->push_back(std::move(field));
  }
  const Status sound = CheckFields(*out);
  return sound.ok() ? Status::Ok() : Bad(sound.message());
}

Status ReadDefinition(const Json& value, IndexDefinition* out) {
  if (!value.is_object()) return Bad("\"value\" of a vectorset must be an object");
  HOTKV_RETURN_IF_ERROR(
      CheckMembers(value, {"dim", "metric", "type", "m", "ef_construction", "ef", "rerank", "input_dim",
                           "transient", "fields"}));
  constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
  HOTKV_RETURN_IF_ERROR(ReadUint(value, "dim", kVectorDimMax, &out->dim));
  HOTKV_RETURN_IF_ERROR(ReadText(value, "metric", &out->metric));
  HOTKV_RETURN_IF_ERROR(ReadText(value, "type", &out->type));
  HOTKV_RETURN_IF_ERROR(ReadUint(value, "m", kMax, &out->m));
  HOTKV_RETURN_IF_ERROR(ReadUint(value, "ef_construction", kMax, &out->ef_construction));
  HOTKV_RETURN_IF_ERROR(ReadUint(value, "ef", kMax, &out->ef));
  HOTKV_RETURN_IF_ERROR(ReadUint(value, "rerank", kMax, &out->rerank));
  HOTKV_RETURN_IF_ERROR(ReadUint(value, "input_dim", kVectorDimMax, &out->input_dim));
  HOTKV_RETURN_IF_ERROR(ReadBool(value, "transient", &out->transient));
  HOTKV_RETURN_IF_ERROR(ReadFields(value, &out->fields));
  if (out->input_dim != 0 && out->input_dim < out->dim) return Bad("\"input_dim\" must be \"dim\" or more");
  return out->dim == 0 ? Bad("\"dim\" is missing") : Status::Ok();
}

Status ReadExpiry(const Json& object, NdjsonLine* out) {
  return ReadUint(object, "expire_at_ms",
                  static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
                  &out->record.expire_at_ms);
}

Status ReadKey(const Json& object, NdjsonLine* out) {
  HOTKV_RETURN_IF_ERROR(CheckMembers(object, {"db", "key", "type", "expire_at_ms", "value"}));
  HOTKV_RETURN_IF_ERROR(ReadRequiredBytes(object, "key", &out->key));
  HOTKV_RETURN_IF_ERROR(ReadExpiry(object, out));
  std::string type = "string";
  HOTKV_RETURN_IF_ERROR(ReadText(object, "type", &type));
  const Json* value = Member(object, "value");
  if (value == nullptr) return Bad("\"value\" is missing");
  if (type == "string") {
    out->record.kind = RecordKind::kString;
    return ReadBytes(*value, "value", &out->value);
  }
  if (type == "vectorset") {
    out->record.kind = RecordKind::kIndex;
    return ReadDefinition(*value, &out->record.index);
  }
  return Status::Unsupported(fmt::format("type \"{}\" is not known", type));
}

Status ReadComponents(const Json& value, std::vector<float>* out) {
  if (value.is_object()) {
    std::string bytes;
    HOTKV_RETURN_IF_ERROR(ReadBytes(value, "vector", &bytes));
    if (bytes.size() % sizeof(float) != 0) return Bad("\"vector\" is not made of whole float32");
    out->resize(bytes.size() / sizeof(float));
    std::memcpy(out->data(), bytes.data(), bytes.size());
    return Status::Ok();
  }
  if (!value.is_array()) return Bad("\"vector\" must be an array of numbers or {\"base64\": \"...\"}");
  if (value.size() > kVectorDimMax) return Bad("\"vector\" has too many components");
  for (const Json& component : value) {
    if (!component.is_number()) return Bad("\"vector\" holds something that is no number");
    out->push_back(component.get<float>());
  }
  return Status::Ok();
}

// Attributes: the JSON object itself, or its text as a string.
Status ReadAttributes(const Json& value, std::string* out) {
  const bool encoded = value.is_object() && value.size() == 1 && value.contains("base64") &&
                       value["base64"].is_string();
  if (!value.is_object() || encoded) return ReadBytes(value, "attr", out);
  *out = value.dump();
  return Status::Ok();
}

Status ReadVector(const Json& object, NdjsonLine* out) {
  HOTKV_RETURN_IF_ERROR(CheckMembers(object, {"db", "index", "id", "vector", "attr", "expire_at_ms"}));
  HOTKV_RETURN_IF_ERROR(ReadExpiry(object, out));
  out->record.kind = RecordKind::kVector;
  HOTKV_RETURN_IF_ERROR(ReadRequiredBytes(object, "index", &out->key));
  HOTKV_RETURN_IF_ERROR(ReadRequiredBytes(object, "id", &out->id));
  const Json* vector = Member(object, "vector");
  if (vector == nullptr) return Bad("\"vector\" is missing");
  HOTKV_RETURN_IF_ERROR(ReadComponents(*vector, &out->vector));
  if (out->vector.empty()) return Bad("\"vector\" is empty");
  for (const float component : out->vector) {
    if (!std::isfinite(component)) return Bad("\"vector\" holds a number beyond float32");
  }
  const Json* attr = Member(object, "attr");
  return attr == nullptr ? Status::Ok() : ReadAttributes(*attr, &out->attr);
}

Status ReadObject(const Json& object, NdjsonLine* out) {
  if (!object.is_object()) return Bad("not a JSON object");
  HOTKV_RETURN_IF_ERROR(ReadUint(object, "db", kDatabasesMax - 1, &out->record.db));
  return object.contains("index") ? ReadVector(object, out) : ReadKey(object, out);
}

// "[json.exception.parse_error.101] parse error at line 1, column 5: text" -> "text".
std::string PlainText(const std::string& what) {
  const size_t colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

}  // namespace

Status ParseNdjsonLine(std::string_view line, NdjsonLine* out) {
  *out = NdjsonLine{};
  if (JsonNesting(line) > kJsonNestingMax) return Bad("nested too deeply");
  Status status;
  try {
    status = ReadObject(Json::parse(line), out);
  } catch (const Json::exception& e) {
    status = Bad("not JSON: " + PlainText(e.what()));
  }
  out->record.key = out->key;
  out->record.value = out->value;
  out->record.id = out->id;
  out->record.attr = out->attr;
  out->record.vector = out->vector;
  return status;
}

std::string NdjsonReader::Where(uint64_t position) const {
  return fmt::format("{}:{}", input_->name(), position);
}

Result<bool> NdjsonReader::NextLine(std::string_view* line) {
  for (;;) {
    const size_t end = buffer_.find('\n', scanned_);
    const bool last = end == std::string::npos && at_end_ && begin_ < buffer_.size();
    if (end != std::string::npos || last) {
      const size_t stop = last ? buffer_.size() : end;
      *line = std::string_view(buffer_).substr(begin_, stop - begin_);
      line_offset_ = buffer_offset_ + begin_;
      ++line_number_;
      begin_ = scanned_ = last ? stop : stop + 1;
      return true;
    }
    if (at_end_) return false;
    buffer_.erase(0, begin_);
    buffer_offset_ += begin_;
    begin_ = 0;
    scanned_ = buffer_.size();
    if (scanned_ > kLineBytesMax) {
      return Bad("a line of more than a gigabyte").At(input_->name(), static_cast<int64_t>(buffer_offset_));
    }
    buffer_.resize(scanned_ + kReadBytes);
    HOTKV_ASSIGN_OR_RETURN(const size_t got, input_->Read(buffer_.data() + scanned_, kReadBytes));
    buffer_.resize(scanned_ + got);
    if (got == 0) at_end_ = true;
  }
}

Result<bool> NdjsonReader::Next(Record* record) {
  std::string_view line;
  do {
    HOTKV_ASSIGN_OR_RETURN(const bool more, NextLine(&line));
    if (!more) return false;
    if (line.ends_with('\r')) line.remove_suffix(1);
  } while (line.find_first_not_of(" \t") == std::string_view::npos);
  Status status = ParseNdjsonLine(line, &line_);
  if (!status.ok()) {
    return Status(status.code(), fmt::format("line {}: {}", line_number_, status.message()))
        .At(input_->name(), static_cast<int64_t>(line_offset_));
  }
  *record = line_.record;
  return true;
}

}  // namespace hotkv
