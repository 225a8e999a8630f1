#include "engine/store/stripe_codec.h"

#include <algorithm>

#include "engine/base/coding.h"
#include "engine/types/durable_object.h"

namespace hotkv {

namespace {

constexpr uint8_t kTypeMask = 0x0f;
constexpr uint8_t kExpiry = 0x10;
constexpr uint8_t kInteger = 0x20;
constexpr uint8_t kLink = 0x40;
constexpr uint8_t kUnknownFlags = 0x80;
constexpr size_t kEntryBytesMin = 3;

void EncodeString(const Entry& entry, StripeImage* out) {
  if (entry.form() == Entry::Form::kInline) {
    AppendLengthPrefixed(&out->bytes, entry.inline_value());
    return;
  }
  SharedBlock* block = entry.block();
  AppendVarint(&out->bytes, block->size());
  if (block->size() <= kInlineValueBytesMax) {
    out->bytes.append(block->view());
    return;
  }
  out->large.push_back({out->bytes.size(), SharedBlockRef::Share(block)});
  out->large_bytes += block->size();
}

void EncodeInPlace(const Entry& entry, StripeImage* out) {
  const ObjectType* type = FindObjectType(entry.type());
  HOTKV_CHECK(type != nullptr && type->encode != nullptr);
  std::string value;
  type->encode(*entry.object(), &value);
  AppendLengthPrefixed(&out->bytes, value);
}

void EncodeEntry(const Entry& entry, StripeImage* out) {
  const bool is_string = entry.type() == ValueType::kString;
  const bool is_link = !is_string && entry.object()->id() != 0;
  auto head = static_cast<uint8_t>(entry.type());
  if (entry.has_expiry()) head |= kExpiry;
  if (entry.is_int()) head |= kInteger;
  if (is_link) head |= kLink;
  out->bytes.push_back(static_cast<char>(head));
  AppendLengthPrefixed(&out->bytes, entry.key());
  if (entry.has_expiry()) AppendVarint(&out->bytes, static_cast<uint64_t>(entry.expire_at_ms()));
  if (entry.is_int()) {
    AppendVarint(&out->bytes, ZigZag(entry.int_value()));
  } else if (is_link) {
    AppendVarint(&out->bytes, entry.object()->id());
  } else if (is_string) {
    EncodeString(entry, out);
  } else {
    EncodeInPlace(entry, out);
  }
  ++out->entries;
}

Status DecodeEntry(ByteReader* reader, uint32_t db, DecodedEntry* out) {
  *out = DecodedEntry{};
  out->db = db;
  const auto head = reader->Le<uint8_t>();
  if ((head & kUnknownFlags) != 0) return Status::Corruption("unknown entry flags");
  out->type = static_cast<ValueType>(head & kTypeMask);
  out->is_int = (head & kInteger) != 0;
  out->key = reader->LengthPrefixed();
  if ((head & kExpiry) != 0) {
    out->expire_at_ms = static_cast<int64_t>(reader->Varint());
    if (out->expire_at_ms <= 0) return Status::Corruption("expiry time out of range");
  }
  const bool is_string = out->type == ValueType::kString;
  if ((head & kLink) != 0) {
    out->object_id = reader->Varint();
    if (is_string || out->is_int || out->object_id == 0) return Status::Corruption("bad link");
  } else if (out->is_int) {
    if (!is_string) return Status::Corruption("an integer that is no string");
    out->integer = UnZigZag(reader->Varint());
  } else {
    out->bytes = reader->LengthPrefixed();
  }
  if (!reader->ok()) return Status::Corruption("entry runs past the end");
  return Status::Ok();
}

// What the decoded entry holds, in the form in which the table keeps it.
Status FillValue(const DecodedEntry& entry, const ObjectResolver& resolve, Entry::Spec* spec) {
  if (entry.is_int) {
    spec->form = Entry::Form::kInt;
    spec->integer = entry.integer;
    return Status::Ok();
  }
  if (entry.type == ValueType::kString) {
    if (entry.bytes.size() <= kInlineValueBytesMax) {
      spec->bytes = entry.bytes;
      return Status::Ok();
    }
    if (entry.bytes.size() > UINT32_MAX) return Status::Corruption("value too long");
    spec->form = Entry::Form::kRef;
    spec->pointer = SharedBlock::Copy(entry.bytes);
    return Status::Ok();
  }
  spec->form = Entry::Form::kRef;
  if (entry.object_id != 0) {
    spec->pointer = resolve(entry.object_id, entry.type);
    if (spec->pointer == nullptr) return Status::Corruption("link to an object that is not there");
    return Status::Ok();
  }
  const ObjectType* type = FindObjectType(entry.type);
  if (type == nullptr || type->decode == nullptr) {
    return Status::Unsupported("a value of a type that this version does not know");
  }
  HOTKV_ASSIGN_OR_RETURN(Object * object, type->decode(entry.bytes));
  spec->pointer = object;
  return Status::Ok();
}

}  // namespace

void EncodeStripe(const Keyspace& keyspace, const Stripe& stripe, StripeImage* out) {
  for (uint32_t db = 0; db < keyspace.databases(); ++db) {
    Table* table = stripe.table(db);
    if (table == nullptr || table->size() == 0) continue;
    AppendVarint(&out->bytes, db);
    AppendVarint(&out->bytes, table->size());
    constexpr uint32_t kAhead = 2;  // chunks whose entries are fetched before they are encoded
    for (uint32_t chunk = 0; chunk < table->chunk_count(); ++chunk) {
      if (chunk + kAhead < table->chunk_count()) table->PrefetchEntriesOf(chunk + kAhead);
      table->ForEachInChunk(chunk, [out](Entry** slot) { EncodeEntry(**slot, out); });
    }
  }
}

Status VisitStripeBytes(std::string_view bytes,
                        const std::function<Status(uint32_t db, uint64_t entries)>& on_db,
                        const std::function<Status(const DecodedEntry&)>& on_entry) {
  ByteReader reader(bytes);
  auto at = [&](Status status) {
    const auto offset = static_cast<int64_t>(bytes.size() - reader.remaining());
    return std::move(status).At("", offset);
  };
  uint64_t next_db = 0;
  while (!reader.empty()) {
    const uint64_t db = reader.Varint();
    const uint64_t entries = reader.Varint();
    if (!reader.ok() || db < next_db || db >= kDatabasesMax) {
      return at(Status::Corruption("bad database number"));
    }
    if (entries > reader.remaining() / kEntryBytesMin) {
      return at(Status::Corruption("more entries than the section has room for"));
    }
    next_db = db + 1;
    HOTKV_RETURN_IF_ERROR(on_db(static_cast<uint32_t>(db), entries));
    for (uint64_t i = 0; i < entries; ++i) {
      DecodedEntry entry;
      Status status = DecodeEntry(&reader, static_cast<uint32_t>(db), &entry);
      if (status.ok()) status = on_entry(entry);
      if (!status.ok()) return at(std::move(status));
    }
  }
  if (!reader.ok()) return at(Status::Corruption("section ends in the middle of a number"));
  return Status::Ok();
}

Status DecodeStripe(Keyspace& keyspace, Stripe& stripe, std::string_view bytes,
                    const ObjectResolver& resolve) {
  auto on_db = [&](uint32_t db, uint64_t entries) {
    if (db >= keyspace.databases()) {
      return Status::InvalidArgument("the data uses database " + std::to_string(db) +
                                     ", but only " + std::to_string(keyspace.databases()) +
                                     " are configured: raise `databases`");
    }
    keyspace.Reserve(stripe, db, entries);
    return Status::Ok();
  };
  auto on_entry = [&](const DecodedEntry& entry) -> Status {
    const KeyRef ref = keyspace.MakeRef(entry.key);
    if (ref.stripe != stripe.index) return Status::Corruption("a key of another stripe");
    if (keyspace.Find(stripe, entry.db, ref) != nullptr) return Status::Corruption("a key twice");
    Entry::Spec spec;
    spec.key = entry.key;
    spec.type = entry.type;
    spec.expire_at_ms = entry.expire_at_ms;
    HOTKV_RETURN_IF_ERROR(FillValue(entry, resolve, &spec));
    keyspace.Insert(stripe, entry.db, ref, Entry::Create(spec));
    return Status::Ok();
  };
  return VisitStripeBytes(bytes, on_db, on_entry);
}

}  // namespace hotkv
