// Fields of an index: those attributes that its columns hold, so that a filter on them need not read
// JSON and a search can list what matches.
//
// Thread rules: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace hotkv {

inline constexpr size_t kIndexFieldsMax = 32;
inline constexpr size_t kFieldNameMax = 64;

// Stored values: never renumbered.
enum class FieldKind : uint8_t { kTag = 1, kNumeric = 2 };

struct FieldSpec {
  std::string name;
  FieldKind kind = FieldKind::kTag;
  bool operator==(const FieldSpec&) const = default;
};

std::string_view FieldKindName(FieldKind kind);  // "TAG", "NUMERIC"

// Names that a filter can write, none twice, not too many.
Status CheckFields(const std::vector<FieldSpec>& fields);

// As in an index's definition, in the log and in ids.GEN: a byte each for kind and length of the name,
// then the name.
std::string EncodeFields(const std::vector<FieldSpec>& fields);
Result<std::vector<FieldSpec>> DecodeFields(std::string_view bytes);

}  // namespace hotkv
