// A model of the keyspace for property tests: std::map, no stripes, no encodings, no laziness. It
// runs the same random commands as the engine and says what each must reply.
//
// Thread rules: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hotkv {

class KeyspaceModel {
 public:
  struct Value {
    std::string bytes;
    int64_t expire_at_ms = 0;  // 0: none
  };
  using Database = std::map<std::string, Value>;

  explicit KeyspaceModel(size_t databases) : databases_(databases) {}

  int64_t now_ms = 0;
  uint32_t db = 0;

  // Runs a command and returns its reply in EngineFixture's notation. Only commands and forms that
  // the property test generates are known.
  std::string Run(const std::vector<std::string>& args);

  // Live keys of a database; removes the others.
  const Database& Live(uint32_t index);
  size_t databases() const { return databases_.size(); }

 private:
  Value* Find(const std::string& key) { return Find(db, key); }
  Value* Find(uint32_t index, const std::string& key);
  std::string Get(const std::string& key);
  std::string Set(const std::vector<std::string>& args);
  std::string Increment(const std::string& key, int64_t by);
  std::string Expire(const std::string& key, int64_t at_ms, std::string_view condition);
  std::string RunOnValue(const std::vector<std::string>& args);
  std::string RunOnKeys(const std::vector<std::string>& args);
  std::string RunOnDatabases(const std::vector<std::string>& args);
  void Store(const std::string& key, std::string bytes, int64_t expire_at_ms);

  std::vector<Database> databases_;
};

}  // namespace hotkv
