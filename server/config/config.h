// Config: the present settings, how they came to be (file, command line, CONFIG SET), and how they
// change.
//
// CONFIG SET of several settings is atomic: all are checked, then those who asked with OnChange are
// told one after the other; if one refuses, the earlier ones are told the old values again and
// nothing has changed.
//
// Thread rules: Current and version from any thread. Set and Rewrite take a lock; callbacks run
// under it on the calling thread, so they must not call Set. OnChange only before the workers
// start.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "server/config/settings.h"

namespace hotkv {

// What main() is to do.
struct StartOptions {
  enum class Action : uint8_t { kRun, kShowVersion, kShowHelp };
  Action action = Action::kRun;
  std::string config_file;  // absolute, empty: none
  Settings settings;
  std::vector<std::string> accepted;  // directives given that have no effect here
};

// Reads [file] [--name value ...] [-]. A failure's message is complete, as it goes to standard
// error.
Result<StartOptions> ParseCommandLine(std::span<const std::string> args);

// Splits a line by redis.conf's rules (quotes, escapes); empty when quotes are unbalanced.
std::optional<std::vector<std::string>> SplitConfigLine(std::string_view line);

class Config {
 public:
  explicit Config(StartOptions options);

  std::shared_ptr<const Settings> Current() const;
  // Grows with each change: whoever keeps copies of values looks here.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  using Change = std::function<Status(const Settings& before, const Settings& after)>;
  // Called when one of the settings changes by CONFIG SET, before the change is published.
  void OnChange(std::vector<Setting> ids, Change change);

  // CONFIG SET. `connection_is_local`: for protected settings. The message is the whole error
  // reply.
  Status Set(std::span<const std::pair<std::string_view, std::string_view>> pairs,
             bool connection_is_local);
  // CONFIG GET: names and values that match any of the patterns.
  std::vector<std::pair<std::string, std::string>> Get(
      std::span<const std::string_view> patterns) const;
  // CONFIG REWRITE: changes the file's lines in place, keeps comments and unknown order, appends
  // what is new.
  Status Rewrite();
  const std::string& file() const { return file_; }

 private:
  struct Listener {
    std::vector<Setting> ids;
    Change change;
  };
  Status Tell(const Settings& before, const Settings& after, std::string* failed_name);

  const std::string file_;
  mutable std::mutex current_mutex_;
  std::shared_ptr<const Settings> current_;  // guarded by current_mutex_
  std::atomic<uint64_t> version_{1};
  std::mutex set_mutex_;
  std::vector<Listener> listeners_;
};

}  // namespace hotkv
