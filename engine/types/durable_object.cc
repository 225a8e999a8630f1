#include "engine/types/durable_object.h"

#include <array>

#include "engine/base/check.h"

namespace hotkv {

namespace {

struct Registered {
  bool known = false;
  ObjectType type;
};
constexpr size_t kTypesMax = 16;  // an entry's header has 4 bits for the type

std::array<Registered, kTypesMax>& Registry() {
  static std::array<Registered, kTypesMax> registry;
  return registry;
}

}  // namespace

void RegisterObjectType(const ObjectType& type) {
  const auto index = static_cast<size_t>(type.type);
  HOTKV_CHECK(index < kTypesMax);
  Registry()[index] = {true, type};
}

const ObjectType* FindObjectType(ValueType type) {
  const auto index = static_cast<size_t>(type);
  if (index >= kTypesMax || !Registry()[index].known) return nullptr;
  return &Registry()[index].type;
}

}  // namespace hotkv
