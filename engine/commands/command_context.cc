#include "engine/commands/command_context.h"

#include "engine/base/number.h"

namespace hotkv {

bool EqualsIgnoreCase(std::string_view text, std::string_view upper) {
  if (text.size() != upper.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c) != upper[i]) return false;
  }
  return true;
}

Entry* CommandContext::FindString(size_t i, bool* wrong) {
  Entry* entry = Find(i);
  *wrong = entry != nullptr && entry->type() != ValueType::kString;
  if (*wrong) {
    WrongType();
    return nullptr;
  }
  return entry;
}

bool CommandContext::Is(size_t i, std::string_view upper) const {
  return EqualsIgnoreCase(args[i], upper);
}

bool CommandContext::ParseInt(size_t i, int64_t* value) {
  const std::optional<int64_t> parsed = ParseInt64(args[i]);
  if (!parsed) {
    reply.Error("ERR value is not an integer or out of range");
    return false;
  }
  *value = *parsed;
  return true;
}

void CommandContext::SyntaxError() { reply.Error("ERR syntax error"); }

void CommandContext::WrongType() {
  reply.Error("WRONGTYPE Operation against a key holding the wrong kind of value");
}

}  // namespace hotkv
