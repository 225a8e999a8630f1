#include "engine/store/entry.h"

#include "engine/base/allocator.h"
#include "engine/base/check.h"
#include "engine/base/limits.h"
#include "engine/base/number.h"

namespace hotkv {

Entry* Entry::Create(const Spec& spec) {
  size_t value_size = sizeof(int64_t);
  if (spec.form == Form::kInline) value_size = spec.bytes.size();
  HOTKV_DCHECK(value_size <= kInlineValueBytesMax);
  const bool is_long = spec.key.size() > UINT8_MAX || value_size > UINT8_MAX;
  const size_t size = kHeaderBytes + (spec.expire_at_ms != 0 ? 8 : 0) + (is_long ? 8 : 0) +
                      spec.key.size() + value_size;
  auto* entry = static_cast<Entry*>(AllocateBlock(size));
  auto flags = static_cast<uint8_t>((spec.expire_at_ms != 0 ? kExpiry : 0) | (is_long ? kLong : 0));
  if (spec.form == Form::kInt) flags |= kInt;
  if (spec.form == Form::kRef) flags |= kRef;
  entry->head_ = static_cast<uint8_t>(static_cast<uint8_t>(spec.type) | flags);
  entry->clock_ = spec.access_clock;
  entry->key_length_ = is_long ? uint8_t{0} : static_cast<uint8_t>(spec.key.size());
  entry->value_length_ = is_long ? uint8_t{0} : static_cast<uint8_t>(value_size);
  char* p = entry->body();
  if (spec.expire_at_ms != 0) {
    StoreLe<int64_t>(p, spec.expire_at_ms);
    p += 8;
  }
  if (is_long) {
    StoreLe<uint32_t>(p, static_cast<uint32_t>(spec.key.size()));
    StoreLe<uint32_t>(p + 4, static_cast<uint32_t>(value_size));
    p += 8;
  }
  if (!spec.key.empty()) std::memcpy(p, spec.key.data(), spec.key.size());
  p += spec.key.size();
  if (spec.form == Form::kInt) {
    StoreLe<int64_t>(p, spec.integer);
  } else if (spec.form == Form::kRef) {
    StoreLe<void*>(p, spec.pointer);
  } else if (!spec.bytes.empty()) {
    std::memcpy(p, spec.bytes.data(), spec.bytes.size());
  }
  return entry;
}

Entry::Spec Entry::Describe() const {
  Spec spec{.key = key(),
            .type = type(),
            .form = form(),
            .expire_at_ms = expire_at_ms(),
            .access_clock = clock_};
  if (spec.form == Form::kInline) spec.bytes = inline_value();
  if (spec.form == Form::kInt) spec.integer = int_value();
  if (spec.form == Form::kRef) spec.pointer = pointer();
  return spec;
}

void Entry::Destroy(Entry* entry) {
  if (entry->form() == Form::kRef) {
    if (entry->type() == ValueType::kString) {
      entry->block()->Unref();
    } else {
      entry->object()->Unref();
    }
  }
  FreeBlock(entry);
}

void Entry::DestroyShell(Entry* entry) { FreeBlock(entry); }

std::string_view Entry::StringValue(char* scratch) const {
  switch (form()) {
    case Form::kInline: return inline_value();
    case Form::kInt: return {scratch, static_cast<size_t>(WriteInt64(scratch, int_value()) - scratch)};
    case Form::kRef: return block()->view();
  }
  return {};
}

size_t Entry::StringLength() const {
  char scratch[24];
  return StringValue(scratch).size();
}

bool Entry::TryReplaceInline(std::string_view bytes) {
  if (form() != Form::kInline || type() != ValueType::kString) return false;
  const size_t key_bytes = key_size();
  const bool is_long = (head_ & kLong) != 0;
  if (!is_long && bytes.size() > UINT8_MAX) return false;
  const size_t needed = kHeaderBytes + key_offset() + key_bytes + bytes.size();
  if (bytes.size() != value_size()) {
    const size_t current = kHeaderBytes + key_offset() + key_bytes + value_size();
    if (SizeClassOf(needed) != SizeClassOf(current)) return false;
  }
  char* value = value_begin();
  if (is_long) {
    StoreLe<uint32_t>(body() + lengths_offset() + 4, static_cast<uint32_t>(bytes.size()));
  } else {
    value_length_ = static_cast<uint8_t>(bytes.size());
  }
  if (!bytes.empty()) std::memmove(value, bytes.data(), bytes.size());
  return true;
}

}  // namespace hotkv
