#include "persistence/catalog/catalog_state.h"

#include <charconv>

#include <fmt/format.h>

#include "engine/base/coding.h"
#include "engine/base/limits.h"

namespace hotkv {

namespace {

constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kDirectoryKey = "directory";
constexpr std::string_view kCountersKey = "counters";
constexpr std::string_view kSnapshotPrefix = "snapshot/";
constexpr std::string_view kSegmentPrefix = "segment/";
constexpr std::string_view kRangePrefix = "range/";
constexpr std::string_view kObjectPrefix = "object/";
constexpr std::string_view kSettingPrefix = "setting/";
constexpr size_t kHexIdBytes = 40;

// Zero-filled, so that records of a kind lie in number order.
std::string NumberedKey(std::string_view prefix, uint64_t number) {
  return fmt::format("{}{:020}", prefix, number);
}

std::string EncodeDirectory(const CatalogState& s) {
  std::string out;
  AppendLe(&out, s.directory_id);
  AppendVarint(&out, s.stripe_bits);
  AppendLe(&out, s.hash_seed);
  AppendLengthPrefixed(&out, s.server_id);
  AppendLengthPrefixed(&out, s.replication_id);
  return out;
}

void DecodeDirectory(ByteReader* reader, CatalogState* s) {
  s->directory_id = reader->Le<uint64_t>();
  s->stripe_bits = static_cast<uint32_t>(reader->Varint());
  s->hash_seed = reader->Le<uint64_t>();
  s->server_id = reader->LengthPrefixed();
  s->replication_id = reader->LengthPrefixed();
}

std::string EncodeCounters(const CatalogState& s) {
  std::string out;
  for (const uint64_t n :
       {s.start_number, s.next_object_id, s.next_file_number, s.log_epoch, s.epoch_max}) {
    AppendVarint(&out, n);
  }
  return out;
}

void DecodeCounters(ByteReader* reader, CatalogState* s) {
  s->start_number = reader->Varint();
  s->next_object_id = reader->Varint();
  s->next_file_number = reader->Varint();
  s->log_epoch = reader->Varint();
  s->epoch_max = reader->Varint();
}

std::string EncodeSnapshot(const SnapshotRecord& r) {
  std::string out;
  out.push_back(static_cast<char>(r.state));
  AppendVarint(&out, r.from_epoch);
  AppendVarint(&out, r.last_epoch);
  AppendVarint(&out, r.log_epoch);
  out.push_back(r.has_effects ? 1 : 0);
  AppendVarint(&out, static_cast<uint64_t>(r.created_us));
  AppendVarint(&out, r.bytes);
  AppendVarint(&out, r.entries);
  AppendVarint(&out, r.generations.size());
  for (const GenerationRef& ref : r.generations) {
    AppendVarint(&out, ref.object_id);
    AppendVarint(&out, ref.generation);
  }
  return out;
}

SnapshotRecord DecodeSnapshot(ByteReader* reader) {
  SnapshotRecord r;
  r.state = static_cast<FileState>(reader->Le<uint8_t>());
  r.from_epoch = reader->Varint();
  r.last_epoch = reader->Varint();
  r.log_epoch = reader->Varint();
  r.has_effects = reader->Le<uint8_t>() != 0;
  r.created_us = static_cast<int64_t>(reader->Varint());
  r.bytes = reader->Varint();
  r.entries = reader->Varint();
  const uint64_t count = reader->Varint();
  for (uint64_t i = 0; i < count && reader->ok(); ++i) {
    const uint64_t object_id = reader->Varint();
    r.generations.push_back({object_id, reader->Varint()});
  }
  return r;
}

std::string EncodeSegment(const LogSegmentEntry& r) {
  std::string out;
  out.push_back(static_cast<char>(r.state));
  AppendVarint(&out, r.start);
  AppendVarint(&out, r.size_bytes);
  out.push_back(r.ended ? 1 : 0);
  AppendVarint(&out, r.end_offset);
  AppendVarint(&out, r.first_epoch);
  AppendVarint(&out, r.last_epoch);
  return out;
}

LogSegmentEntry DecodeSegment(uint64_t number, ByteReader* reader) {
  LogSegmentEntry r;
  r.number = number;
  r.state = static_cast<SegmentState>(reader->Le<uint8_t>());
  r.start = reader->Varint();
  r.size_bytes = reader->Varint();
  r.ended = reader->Le<uint8_t>() != 0;
  r.end_offset = reader->Varint();
  r.first_epoch = reader->Varint();
  r.last_epoch = reader->Varint();
  return r;
}

std::string EncodeObject(const ObjectRecord& r) {
  std::string out;
  out.push_back(static_cast<char>(r.state));
  out.push_back(static_cast<char>(r.type));
  AppendVarint(&out, r.next_generation);
  AppendVarint(&out, r.generations.size());
  for (const auto& [number, g] : r.generations) {
    AppendVarint(&out, number);
    out.push_back(static_cast<char>(g.state));
    AppendVarint(&out, g.from_lsn);
    AppendVarint(&out, g.log_epoch);
  }
  return out;
}

bool KnownState(FileState state) {
  return state == FileState::kPlanned || state == FileState::kLive || state == FileState::kDropped;
}

ObjectRecord DecodeObject(ByteReader* reader) {
  ObjectRecord r;
  r.state = static_cast<FileState>(reader->Le<uint8_t>());
  r.type = reader->Le<uint8_t>();
  r.next_generation = reader->Varint();
  const uint64_t count = reader->Varint();
  for (uint64_t i = 0; i < count && reader->ok(); ++i) {
    const uint64_t number = reader->Varint();
    GenerationRecord g;
    g.state = static_cast<FileState>(reader->Le<uint8_t>());
    g.from_lsn = reader->Varint();
    g.log_epoch = reader->Varint();
    // An unknown state shows in the whole record's.
    if (!KnownState(g.state)) r.state = static_cast<FileState>(0);
    r.generations[number] = g;
  }
  return r;
}

Status BadRecord(const std::string& key) {
  return Status::Corruption("catalog record '" + key + "' cannot be read");
}

// Strips `prefix`; false when the key does not begin with it.
bool TakePrefix(std::string_view prefix, std::string_view* key) {
  if (key->substr(0, prefix.size()) != prefix) return false;
  key->remove_prefix(prefix.size());
  return true;
}

bool ParseNumber(std::string_view text, uint64_t* number) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *number);
  return !text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size();
}

Status DecodeNumbered(const std::string& key, const std::string& value, CatalogState* state) {
  std::string_view rest = key;
  ByteReader reader(value);
  uint64_t number = 0;
  FileState file_state = FileState::kLive;
  if (TakePrefix(kSnapshotPrefix, &rest) && ParseNumber(rest, &number)) {
    const SnapshotRecord& r = state->snapshots[number] = DecodeSnapshot(&reader);
    file_state = r.state;
  } else if (TakePrefix(kSegmentPrefix, &rest) && ParseNumber(rest, &number)) {
    const LogSegmentEntry& r = state->segments[number] = DecodeSegment(number, &reader);
    file_state = static_cast<FileState>(r.state);
  } else if (TakePrefix(kObjectPrefix, &rest) && ParseNumber(rest, &number)) {
    const ObjectRecord& r = state->objects[number] = DecodeObject(&reader);
    file_state = r.state;
  } else if (TakePrefix(kRangePrefix, &rest) && ParseNumber(rest, &number)) {
    const uint64_t last_epoch = reader.Varint();
    state->ranges[number] = {number, last_epoch, reader.Varint()};
  } else {
    return BadRecord(key);
  }
  if (!reader.ok() || !reader.empty() || !KnownState(file_state)) return BadRecord(key);
  return Status::Ok();
}

}  // namespace

uint64_t ObjectRecord::current() const {
  for (auto it = generations.rbegin(); it != generations.rend(); ++it) {
    if (it->second.state == FileState::kLive) return it->first;
  }
  return 0;
}

CatalogRecords EncodeCatalog(const CatalogState& state) {
  CatalogRecords out;
  std::string format;
  AppendLe<uint32_t>(&format, state.format);
  out.emplace(kFormatKey, std::move(format));
  out.emplace(kDirectoryKey, EncodeDirectory(state));
  out.emplace(kCountersKey, EncodeCounters(state));
  for (const auto& [n, r] : state.snapshots) {
    out.emplace(NumberedKey(kSnapshotPrefix, n), EncodeSnapshot(r));
  }
  for (const auto& [n, r] : state.segments) {
    out.emplace(NumberedKey(kSegmentPrefix, n), EncodeSegment(r));
  }
  for (const auto& [n, r] : state.ranges) {
    std::string value;
    AppendVarint(&value, r.last_epoch);
    AppendVarint(&value, r.first_segment);
    out.emplace(NumberedKey(kRangePrefix, n), std::move(value));
  }
  for (const auto& [n, r] : state.objects) {
    out.emplace(NumberedKey(kObjectPrefix, n), EncodeObject(r));
  }
  for (const auto& [name, value] : state.settings) {
    out.emplace(std::string(kSettingPrefix) + name, value);
  }
  return out;
}

Result<CatalogState> DecodeCatalog(const CatalogRecords& records) {
  CatalogState state;
  if (records.empty()) return state;
  const auto format = records.find(std::string(kFormatKey));
  if (format == records.end() || format->second.size() != sizeof(uint32_t)) {
    return BadRecord(std::string(kFormatKey));
  }
  state.format = LoadLe<uint32_t>(format->second.data());
  if (state.format > kDirectoryFormat) {
    return Status::Unsupported(fmt::format(
        "the directory has format {}, this version reads up to {}: use the newer hotkv-server",
        state.format, kDirectoryFormat));
  }
  for (const auto& [key, value] : records) {
    std::string_view rest = key;
    if (key == kFormatKey) continue;
    if (TakePrefix(kSettingPrefix, &rest)) {
      state.settings.emplace(rest, value);
      continue;
    }
    if (key != kDirectoryKey && key != kCountersKey) {
      HOTKV_RETURN_IF_ERROR(DecodeNumbered(key, value, &state));
      continue;
    }
    ByteReader reader(value);
    key == kDirectoryKey ? DecodeDirectory(&reader, &state) : DecodeCounters(&reader, &state);
    if (!reader.ok() || !reader.empty()) return BadRecord(key);
  }
  if (state.server_id.size() != kHexIdBytes || state.replication_id.size() != kHexIdBytes ||
      state.stripe_bits > kStripeBitsMax) {
    return BadRecord(std::string(kDirectoryKey));
  }
  return state;
}

std::string SnapshotFileName(uint64_t number) { return fmt::format("{:08}.hks", number); }

Result<uint64_t> ParseFileNumber(const std::string& name, const std::string& extension) {
  std::string_view stem = name;
  uint64_t number = 0;
  if (stem.size() <= extension.size() || stem.substr(stem.size() - extension.size()) != extension) {
    return Status::NotFound("not a file of this kind");
  }
  stem.remove_suffix(extension.size());
  if (!ParseNumber(stem, &number)) return Status::NotFound("not a file of this kind");
  return number;
}

}  // namespace hotkv
