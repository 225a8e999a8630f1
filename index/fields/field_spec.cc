#include "index/fields/field_spec.h"

#include <algorithm>

#include "index/filter/filter_expression.h"

namespace hotkv {

std::string_view FieldKindName(FieldKind kind) {
  return kind == FieldKind::kTag ? "TAG" : "NUMERIC";
}

Status CheckFields(const std::vector<FieldSpec>& fields) {
  if (fields.size() > kIndexFieldsMax) {
    return Status::InvalidArgument("an index has at most " + std::to_string(kIndexFieldsMax) +
                                   " fields");
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string& name = fields[i].name;
    // What a filter reads as one selector is a name.
    auto selector = FilterExpression::Parse("." + name);
    const bool plain = selector.ok() && selector->nodes().size() == 1 && selector->fields()[0] == name;
    if (name.size() > kFieldNameMax || !plain) {
      return Status::InvalidArgument("a field's name must be 1 to " + std::to_string(kFieldNameMax) +
                                     " letters, digits, '_' or '-'");
    }
    const auto same = [&name](const FieldSpec& other) { return other.name == name; };
    if (std::any_of(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(i), same)) {
      return Status::InvalidArgument("field '" + name + "' is named twice");
    }
  }
  return Status::Ok();
}

std::string EncodeFields(const std::vector<FieldSpec>& fields) {
  std::string bytes;
  for (const FieldSpec& field : fields) {
    bytes.push_back(static_cast<char>(field.kind));
    bytes.push_back(static_cast<char>(field.name.size()));
    bytes += field.name;
  }
  return bytes;
}

Result<std::vector<FieldSpec>> DecodeFields(std::string_view bytes) {
  std::vector<FieldSpec> fields;
  const Status damaged = Status::Corruption("the index's fields are damaged");
  while (!bytes.empty()) {
    if (bytes.size() < 2) return damaged;
    const auto kind = static_cast<uint8_t>(bytes[0]);
    const auto length = static_cast<uint8_t>(bytes[1]);
    if (kind < 1 || kind > 2 || bytes.size() - 2 < length) return damaged;
    fields.push_back({std::string(bytes.substr(2, length)), static_cast<FieldKind>(kind)});
    bytes.remove_prefix(size_t{2} + length);
  }
  if (!CheckFields(fields).ok()) return damaged;
  return fields;
}

}  // namespace hotkv
