#include "tests/property/keyspace_model.h"

#include <algorithm>

#include "engine/base/number.h"

namespace hotkv {

namespace {

std::string Int(int64_t value) { return ":" + std::to_string(value); }
int64_t Number(const std::string& text) { return *ParseInt64(text); }

}  // namespace

KeyspaceModel::Value* KeyspaceModel::Find(uint32_t index, const std::string& key) {
  Database& database = databases_[index];
  const auto found = database.find(key);
  if (found == database.end()) return nullptr;
  if (found->second.expire_at_ms != 0 && found->second.expire_at_ms <= now_ms) {
    database.erase(found);
    return nullptr;
  }
  return &found->second;
}

const KeyspaceModel::Database& KeyspaceModel::Live(uint32_t index) {
  std::erase_if(databases_[index], [this](const auto& item) {
    return item.second.expire_at_ms != 0 && item.second.expire_at_ms <= now_ms;
  });
  return databases_[index];
}

void KeyspaceModel::Store(const std::string& key, std::string bytes, int64_t expire_at_ms) {
  if (expire_at_ms != 0 && expire_at_ms <= now_ms) {
    databases_[db].erase(key);
  } else {
    databases_[db][key] = {std::move(bytes), expire_at_ms};
  }
}

std::string KeyspaceModel::Get(const std::string& key) {
  const Value* value = Find(key);
  return value == nullptr ? "nil" : "$" + value->bytes;
}

// SET key value [NX|XX|IFEQ v|IFNE v] [GET] [PX ms|PXAT t|KEEPTTL]
std::string KeyspaceModel::Set(const std::vector<std::string>& args) {
  const Value* old = Find(args[1]);
  bool met = true;
  bool get = false;
  int64_t at_ms = 0;
  for (size_t i = 3; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (word == "NX") met = old == nullptr;
    if (word == "XX") met = old != nullptr;
    if (word == "IFEQ" || word == "IFNE") {
      const std::string& operand = args[++i];
      const bool equal = old != nullptr && old->bytes == operand;
      met = equal == (word == "IFEQ");
      continue;
    }
    if (word == "GET") get = true;
    if (word == "PX") at_ms = now_ms + Number(args[++i]);
    if (word == "PXAT") at_ms = Number(args[++i]);
    if (word == "KEEPTTL" && old != nullptr) at_ms = old->expire_at_ms;
  }
  std::string reply = met ? "+OK" : "nil";
  if (get) reply = Get(args[1]);
  if (met) Store(args[1], args[2], at_ms);
  return reply;
}

std::string KeyspaceModel::Increment(const std::string& key, int64_t by) {
  const Value* old = Find(key);
  const std::optional<int64_t> value = ParseInt64(old == nullptr ? "0" : old->bytes);
  if (!value) return "-ERR value is not an integer or out of range";
  int64_t sum = 0;
  if (__builtin_add_overflow(*value, by, &sum)) return "-ERR increment or decrement would overflow";
  Store(key, std::to_string(sum), old == nullptr ? 0 : old->expire_at_ms);
  return Int(sum);
}

std::string KeyspaceModel::Expire(const std::string& key, int64_t at_ms,
                                  std::string_view condition) {
  Value* value = Find(key);
  if (value == nullptr) return ":0";
  const bool has = value->expire_at_ms != 0;
  if ((condition == "NX" && has) || (condition == "XX" && !has)) return ":0";
  if (condition == "GT" && (!has || at_ms <= value->expire_at_ms)) return ":0";
  if (condition == "LT" && has && at_ms >= value->expire_at_ms) return ":0";
  Store(key, value->bytes, at_ms);
  return ":1";
}

// Commands on one key's value.
std::string KeyspaceModel::RunOnValue(const std::vector<std::string>& args) {
  const std::string& name = args[0];
  const std::string& key = args[1];
  Value* value = Find(key);
  if (name == "GET") return Get(key);
  if (name == "SET") return Set(args);
  if (name == "SETNX") {
    if (value == nullptr) Store(key, args[2], 0);
    return Int(value == nullptr ? 1 : 0);
  }
  if (name == "STRLEN")
    return Int(value == nullptr ? 0 : static_cast<int64_t>(value->bytes.size()));
  if (name == "INCRBY") return Increment(key, Number(args[2]));
  if (name == "APPEND") {
    std::string bytes = (value == nullptr ? "" : value->bytes) + args[2];
    const auto size = static_cast<int64_t>(bytes.size());
    Store(key, std::move(bytes), value == nullptr ? 0 : value->expire_at_ms);
    return Int(size);
  }
  if (name == "SETRANGE") {
    std::string bytes = value == nullptr ? "" : value->bytes;
    const auto offset = static_cast<size_t>(Number(args[2]));
    if (args[3].empty()) return Int(static_cast<int64_t>(bytes.size()));
    bytes.resize(std::max(bytes.size(), offset + args[3].size()), '\0');
    bytes.replace(offset, args[3].size(), args[3]);
    const auto size = static_cast<int64_t>(bytes.size());
    Store(key, std::move(bytes), value == nullptr ? 0 : value->expire_at_ms);
    return Int(size);
  }
  if (name == "GETRANGE") {  // both ends not negative
    if (value == nullptr) return "$";
    const auto start = static_cast<size_t>(Number(args[2]));
    const auto end = static_cast<size_t>(Number(args[3]));
    if (start > end || start >= value->bytes.size()) return "$";
    return "$" + value->bytes.substr(start, end - start + 1);
  }
  const std::string old = Get(key);
  if (name == "GETDEL") databases_[db].erase(key);
  if (name == "GETSET") Store(key, args[2], 0);
  if (name == "GETEX" && value != nullptr) {
    const bool persist = args[2] == "PERSIST";
    Store(key, value->bytes, persist ? 0 : now_ms + Number(args[3]));
  }
  return old;
}

// Commands on keys, whatever their values.
std::string KeyspaceModel::RunOnKeys(const std::vector<std::string>& args) {
  const std::string& name = args[0];
  const std::string& key = args[1];
  Value* value = Find(key);
  if (name == "PEXPIRE")
    return Expire(key, now_ms + Number(args[2]), args.size() > 3 ? args[3] : "");
  if (name == "PEXPIREAT") return Expire(key, Number(args[2]), args.size() > 3 ? args[3] : "");
  if (name == "PERSIST") {
    const bool had = value != nullptr && value->expire_at_ms != 0;
    if (had) value->expire_at_ms = 0;
    return Int(had ? 1 : 0);
  }
  if (name == "PTTL") {
    if (value == nullptr) return ":-2";
    return Int(value->expire_at_ms == 0 ? -1 : value->expire_at_ms - now_ms);
  }
  if (name == "DEL" || name == "EXISTS") {
    int64_t count = 0;
    for (size_t i = 1; i < args.size(); ++i) {
      if (Find(args[i]) == nullptr) continue;
      ++count;
      if (name == "DEL") databases_[db].erase(args[i]);
    }
    return Int(count);
  }
  if (name == "RENAME" || name == "RENAMENX") {
    if (value == nullptr) return "-ERR no such key";
    const bool only_new = name == "RENAMENX";
    if (only_new && Find(args[2]) != nullptr) return ":0";
    const Value moved = *value;
    databases_[db].erase(key);
    databases_[db][args[2]] = moved;
    return only_new ? ":1" : "+OK";
  }
  const auto to_db =
      static_cast<uint32_t>(Number(args[name == "MOVE" ? 2 : 4]));  // COPY a b DB n [REPLACE]
  const std::string& to = name == "MOVE" ? key : args[2];
  if (to_db == db && to == key) return "-ERR source and destination objects are the same";
  const bool replace = args.size() > 5;
  if (value == nullptr || (!replace && Find(to_db, to) != nullptr)) return ":0";
  databases_[to_db][to] = *value;
  if (name == "MOVE") databases_[db].erase(key);
  return ":1";
}

std::string KeyspaceModel::RunOnDatabases(const std::vector<std::string>& args) {
  if (args[0] == "FLUSHDB") {
    databases_[db].clear();
  } else if (args[0] == "FLUSHALL") {
    for (Database& database : databases_) database.clear();
  } else {
    std::swap(databases_[static_cast<size_t>(Number(args[1]))],
              databases_[static_cast<size_t>(Number(args[2]))]);
  }
  return "+OK";
}

std::string KeyspaceModel::Run(const std::vector<std::string>& args) {
  const std::string& name = args[0];
  if (name == "FLUSHDB" || name == "FLUSHALL" || name == "SWAPDB") return RunOnDatabases(args);
  if (name == "MSET" || name == "MSETNX") {
    const bool only_new = name == "MSETNX";
    for (size_t i = 1; only_new && i < args.size(); i += 2) {
      if (Find(args[i]) != nullptr) return ":0";
    }
    for (size_t i = 1; i < args.size(); i += 2) Store(args[i], args[i + 1], 0);
    return only_new ? ":1" : "+OK";
  }
  if (name == "MGET") {
    std::string reply = "[";
    for (size_t i = 1; i < args.size(); ++i) reply += (i > 1 ? ", " : "") + Get(args[i]);
    return reply + "]";
  }
  constexpr std::string_view kOfKeys[] = {"PEXPIRE", "PEXPIREAT", "PERSIST",  "PTTL", "DEL",
                                          "EXISTS",  "RENAME",    "RENAMENX", "COPY", "MOVE"};
  const bool of_keys = std::find(std::begin(kOfKeys), std::end(kOfKeys), name) != std::end(kOfKeys);
  return of_keys ? RunOnKeys(args) : RunOnValue(args);
}

}  // namespace hotkv
