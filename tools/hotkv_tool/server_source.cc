#include "tools/hotkv_tool/server_source.h"

#include <cstring>

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/limits.h"
#include "engine/base/number.h"

namespace hotkv {

namespace {

constexpr std::string_view kScanCount = "1000";
constexpr size_t kBatchBytes = size_t{16} << 20;
constexpr size_t kElementsAtOnce = 128;
constexpr std::string_view kNone = "none";

Status Unexpected(std::string_view command, const RespValue& reply) {
  return Status::InvalidArgument(fmt::format("{}: {}", command, reply.ToString()));
}

// "db3:keys=12,expires=0,..." -> 3 and 12.
bool ParseKeyspaceLine(std::string_view line, uint32_t* db, uint64_t* keys) {
  constexpr std::string_view kKeys = "keys=";
  const size_t colon = line.find(':');
  if (!line.starts_with("db") || colon == std::string_view::npos) return false;
  const auto number = ParseUint64(line.substr(2, colon - 2));
  const size_t at = line.find(kKeys, colon);
  if (!number || at == std::string_view::npos) return false;
  const std::string_view rest = line.substr(at + kKeys.size());
  const auto count = ParseUint64(rest.substr(0, rest.find(',')));
  if (!count || *number >= kDatabasesMax) return false;
  *db = static_cast<uint32_t>(*number);
  *keys = *count;
  return true;
}

std::string TextField(const RespValue& reply, std::string_view name) {
  const RespValue* field = reply.Field(name);
  return field == nullptr ? std::string() : field->text;
}

uint32_t NumberField(const RespValue& reply, std::string_view name) {
  const RespValue* field = reply.Field(name);
  return field == nullptr ? 0 : static_cast<uint32_t>(field->integer);
}

IndexDefinition DefinitionFrom(const RespValue& info) {
  IndexDefinition index;
  index.dim = NumberField(info, "dim");
  index.metric = TextField(info, "metric");
  index.type = TextField(info, "type");
  index.m = NumberField(info, "m");
  index.ef_construction = NumberField(info, "ef_construction");
  index.ef = NumberField(info, "ef");
  index.rerank = NumberField(info, "rerank");
  index.input_dim = NumberField(info, "input_dim");
  index.transient = NumberField(info, "transient") != 0;
  const RespValue* declared = info.Field("fields");
  if (declared == nullptr) return index;
  const std::vector<RespValue>& fields = declared->items;
  for (size_t f = 0; f + 1 < fields.size(); f += 2) {
    const bool numeric = fields[f + 1].text == FieldKindName(FieldKind::kNumeric);
    index.fields.push_back({fields[f].text, numeric ? FieldKind::kNumeric : FieldKind::kTag});
  }
  return index;
}

}  // namespace

Result<std::unique_ptr<ServerSource>> ServerSource::Connect(const RespAddress& address) {
  HOTKV_ASSIGN_OR_RETURN(auto client, RespClient::Connect(address));
  return std::unique_ptr<ServerSource>(new ServerSource(std::move(client)));
}

Result<std::vector<RespValue>> ServerSource::Pipeline(
    const std::vector<std::vector<std::string_view>>& commands) {
  for (const auto& command : commands) client_->Append(command);
  HOTKV_RETURN_IF_ERROR(client_->Flush());
  std::vector<RespValue> replies;
  for (size_t i = 0; i < commands.size(); ++i) {
    HOTKV_ASSIGN_OR_RETURN(RespValue reply, client_->Read());
    replies.push_back(std::move(reply));
  }
  return replies;
}

Result<std::vector<uint32_t>> ServerSource::Databases() {
  HOTKV_ASSIGN_OR_RETURN(const RespValue info, client_->CallOk({"INFO", "keyspace"}));
  std::vector<uint32_t> databases;
  std::string_view text = info.text;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    uint32_t db = 0;
    uint64_t keys = 0;
    if (!ParseKeyspaceLine(line, &db, &keys)) continue;
    databases.push_back(db);
    keys_total_ += keys;
  }
  return databases;
}

Status ServerSource::ForEach(const ExportFilter& filter, Problems* problems, const Put& put) {
  HOTKV_ASSIGN_OR_RETURN(std::vector<uint32_t> databases, Databases());
  if (filter.db) {
    databases = {*filter.db};
    keys_total_ = 0;
  }
  Run run{filter, problems, put};
  for (const uint32_t db : databases) {
    run.db = db;
    HOTKV_RETURN_IF_ERROR(client_->CallOk({"SELECT", std::to_string(db)}).status());
    HOTKV_RETURN_IF_ERROR(ExportDb(run));
  }
  return Status::Ok();
}

Status ServerSource::ExportDb(const Run& run) {
  std::string cursor = "0";
  do {
    std::vector<std::string_view> args = {"SCAN", cursor, "COUNT", kScanCount};
    if (!run.filter.match.empty()) args.insert(args.end(), {"MATCH", run.filter.match});
    HOTKV_ASSIGN_OR_RETURN(const RespValue reply, client_->Call(args));
    if (reply.items.size() != 2) return Unexpected("SCAN", reply);
    std::vector<std::string> keys;
    for (const RespValue& key : reply.items[1].items) keys.push_back(key.text);
    HOTKV_RETURN_IF_ERROR(ExportKeys(run, keys));
    cursor = reply.items[0].text;
  } while (cursor != "0");
  return Status::Ok();
}

Status ServerSource::ExportKeys(const Run& run, const std::vector<std::string>& keys) {
  std::vector<std::vector<std::string_view>> commands;
  for (const std::string& key : keys) commands.push_back({"TYPE", key});
  HOTKV_ASSIGN_OR_RETURN(const std::vector<RespValue> types, Pipeline(commands));
  std::vector<std::string> strings;
  std::vector<std::string> indexes;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (types[i].is_error()) return Unexpected("TYPE", types[i]);
    const std::string& type = types[i].text;
    if (type == "string") {
      strings.push_back(keys[i]);
    } else if (type == "vectorset") {
      indexes.push_back(keys[i]);
    } else if (type != kNone) {
      std::string text = fmt::format("db {} key \"{}\": type {} cannot be exported", run.db, Printable(keys[i]), type);
      if (!run.filter.skip_bad) return Status::Unsupported(std::move(text));
      run.problems->Add(std::move(text));
      ++counts_.skipped;
    }
  }
  HOTKV_RETURN_IF_ERROR(ExportStrings(run, strings));
  for (const std::string& key : indexes) HOTKV_RETURN_IF_ERROR(ExportIndex(run, key));
  return Status::Ok();
}

// The reply of PEXPIRETIME or, on servers before Redis 7, PTTL, as an absolute time; 0: none.
Result<int64_t> ServerSource::ExpiryFrom(const RespValue& reply, std::string_view key) {
  const RespValue* value = &reply;
  RespValue again;
  if (reply.is_error() && reply.text.starts_with("ERR unknown command")) {
    has_pexpiretime_ = false;
    HOTKV_ASSIGN_OR_RETURN(again, client_->Call({"PTTL", key}));
    value = &again;
  }
  if (value->type != RespType::kInteger) return Unexpected("PEXPIRETIME", *value);
  if (value->integer < 0) return int64_t{0};
  return has_pexpiretime_ ? value->integer : Clock::NowMs() + value->integer;
}

Status ServerSource::ExportStrings(const Run& run, const std::vector<std::string>& keys) {
  std::vector<std::vector<std::string_view>> commands;
  for (const std::string& key : keys) {
    commands.push_back({"STRLEN", key});
    commands.push_back({has_pexpiretime_ ? "PEXPIRETIME" : "PTTL", key});
  }
  HOTKV_ASSIGN_OR_RETURN(const std::vector<RespValue> replies, Pipeline(commands));
  std::vector<StringKey> found;
  for (size_t i = 0; i < keys.size(); ++i) {
    StringKey key{keys[i]};
    key.bytes = static_cast<uint64_t>(std::max<int64_t>(replies[2 * i].integer, 0));
    HOTKV_ASSIGN_OR_RETURN(key.expire_at_ms, ExpiryFrom(replies[2 * i + 1], keys[i]));
    found.push_back(std::move(key));
  }
  for (size_t from = 0; from < found.size();) {
    size_t to = from;
    uint64_t bytes = 0;
    while (to < found.size() && (to == from || bytes + found[to].bytes <= kBatchBytes)) bytes += found[to++].bytes;
    HOTKV_RETURN_IF_ERROR(ExportValues(run, found, from, to));
    from = to;
  }
  return Status::Ok();
}

Status ServerSource::ExportValues(const Run& run, const std::vector<StringKey>& keys, size_t from,
                                  size_t to) {
  std::vector<std::vector<std::string_view>> commands;
  for (size_t i = from; i < to; ++i) commands.push_back({"GET", keys[i].key});
  HOTKV_ASSIGN_OR_RETURN(const std::vector<RespValue> values, Pipeline(commands));
  for (size_t i = from; i < to; ++i) {
    const RespValue& value = values[i - from];
    if (value.is_null()) continue;  // deleted or expired meanwhile
    if (value.is_error()) {
      return Status::Busy(fmt::format("db {} key \"{}\" changed its type during the export: {}", run.db,
                                      Printable(keys[i].key), value.text));
    }
    Record record;
    record.kind = RecordKind::kString;
    record.db = run.db;
    record.key = keys[i].key;
    record.value = value.text;
    record.expire_at_ms = keys[i].expire_at_ms;
    ++counts_.keys;
    HOTKV_RETURN_IF_ERROR(run.put(record));
  }
  return Status::Ok();
}

Status ServerSource::ExportIndex(const Run& run, const std::string& key) {
  HOTKV_ASSIGN_OR_RETURN(const RespValue info, client_->Call({"VSIM.INFO", key}));
  if (info.is_error()) return Unexpected(fmt::format("VSIM.INFO \"{}\"", Printable(key)), info);
  HOTKV_ASSIGN_OR_RETURN(const RespValue expiry, client_->Call({"PEXPIRETIME", key}));
  Record record;
  record.kind = RecordKind::kIndex;
  record.db = run.db;
  record.key = key;
  record.index = DefinitionFrom(info);
  HOTKV_ASSIGN_OR_RETURN(record.expire_at_ms, ExpiryFrom(expiry, key));
  if (record.index.dim == 0) return Unexpected("VSIM.INFO", info);
  ++counts_.keys;
  HOTKV_RETURN_IF_ERROR(run.put(record));
  const uint32_t count = NumberField(info, "count");
  if (count == 0) return Status::Ok();
  std::vector<float> anywhere(record.index.dim, 0.0f);
  anywhere[0] = 1;
  const std::string_view blob(reinterpret_cast<const char*>(anywhere.data()), anywhere.size() * sizeof(float));
  HOTKV_ASSIGN_OR_RETURN(const RespValue ids, client_->CallOk({"VSIM.SEARCH", key, "FP32", blob, "K",
                                                               std::to_string(count), "EXACT"}));
  const bool some_end = NumberField(info, "expiring") != 0;
  return ExportElements(run, key, record.index.dim, some_end, ids.items);
}

// The moments at which elements end, as exact as VSIM.TTL tells: to a second. 0: never.
Result<std::vector<int64_t>> ServerSource::EndsOf(const std::string& key, std::span<const RespValue> ids) {
  std::vector<std::vector<std::string_view>> commands;
  for (const RespValue& id : ids) commands.push_back({"VSIM.TTL", key, id.text});
  HOTKV_ASSIGN_OR_RETURN(const std::vector<RespValue> replies, Pipeline(commands));
  constexpr int64_t kMillisPerSecond = 1000;
  const int64_t now_ms = Clock::NowMs();
  std::vector<int64_t> ends;
  for (const RespValue& reply : replies) {
    if (reply.type != RespType::kInteger) return Unexpected("VSIM.TTL", reply);
    ends.push_back(reply.integer < 0 ? 0 : now_ms + reply.integer * kMillisPerSecond);
  }
  return ends;
}

Status ServerSource::ExportElements(const Run& run, const std::string& key, uint32_t dim,
                                    bool some_end, const std::vector<RespValue>& ids) {
  std::vector<float> vector(dim);
  std::vector<int64_t> ends(kElementsAtOnce, 0);
  for (size_t from = 0; from < ids.size(); from += kElementsAtOnce) {
    const size_t to = std::min(from + kElementsAtOnce, ids.size());
    std::vector<std::vector<std::string_view>> commands;
    for (size_t i = from; i < to; ++i) commands.push_back({"VSIM.GET", key, ids[i].text, "RAW", "WITHATTR"});
    HOTKV_ASSIGN_OR_RETURN(const std::vector<RespValue> elements, Pipeline(commands));
    if (some_end) {
      HOTKV_ASSIGN_OR_RETURN(ends, EndsOf(key, std::span(ids).subspan(from, to - from)));
    }
    for (size_t i = from; i < to; ++i) {
      const RespValue& element = elements[i - from];
      if (element.is_null()) continue;  // deleted meanwhile
      const bool whole = element.items.size() == 2 && element.items[0].text.size() == dim * sizeof(float);
      if (!whole) return Unexpected("VSIM.GET", element);
      std::memcpy(vector.data(), element.items[0].text.data(), dim * sizeof(float));
      Record record;
      record.kind = RecordKind::kVector;
      record.db = run.db;
      record.key = key;
      record.id = ids[i].text;
      record.vector = vector;
      record.attr = element.items[1].text;
      record.expire_at_ms = ends[i - from];
      ++counts_.vectors;
      HOTKV_RETURN_IF_ERROR(run.put(record));
    }
  }
  return Status::Ok();
}

}  // namespace hotkv
