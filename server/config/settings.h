// Settings: the values of all configuration directives at one moment, and the one table that
// describes them: name, type, default, bounds, whether CONFIG SET may change it, and its text for
// --help and the docs page.
//
// Directives of redis.conf that have no meaning here are in the table too (kAccepted): they are
// read, shown by CONFIG GET and kept by CONFIG REWRITE, so that an existing file works; the log
// lists those that a file sets.
//
// Thread rules: a Settings object is immutable once published; Config (config.h) hands out the
// present one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace hotkv {

// Settings that code reads by name, or will: those that have no effect yet carry kAccepted. The
// order is that of the table, which starts with them.
enum class Setting : uint16_t {
  // network
  kBind,
  kPort,
  kUnixSocket,
  kUnixSocketPerm,
  kProtectedMode,
  kTcpBacklog,
  kTcpKeepalive,
  kTimeout,
  kMaxClients,
  kQueryBufferLimit,
  kOutputBufferLimit,
  kProtoMaxBulkLen,
  kThreads,
  kIo,
  // process
  kDaemonize,
  kPidFile,
  kLogLevel,
  kLogFile,
  kSupervised,
  kShutdownTimeout,
  kShutdownOnSigint,
  kShutdownOnSigterm,
  kCrashLogEnabled,
  // data
  kDir,
  kDatabases,
  kStripes,
  kAppendOnly,
  kAppendFsync,
  kSave,
  kAutoRewriteMinSize,
  kAutoRewritePercentage,
  kLogRetention,
  kBackupDir,
  kClockFollow,
  kDbFilename,
  kStopWritesOnBgsaveError,
  // memory
  kMaxMemory,
  kMaxMemoryPolicy,
  kMaxMemorySamples,
  kLfuLogFactor,
  kLfuDecayTime,
  kActiveExpireEffort,
  kLazyfreeLazyUserDel,
  kLazyfreeLazyUserFlush,
  // security
  kRequirePass,
  kAclFile,
  kEnableDebugCommand,
  kEnableProtectedConfigs,
  // observing
  kSlowlogLogSlowerThan,
  kSlowlogMaxLen,
  kLatencyMonitorThreshold,
  kLatencyTracking,
  kLatencyTrackingPercentiles,
  kNotifyKeyspaceEvents,
  kBusyReplyThreshold,
  kTrackingTableMaxKeys,
  // encodings
  kHashMaxListpackEntries,
  kHashMaxListpackValue,
  kListMaxListpackSize,
  kSetMaxIntsetEntries,
  kSetMaxListpackEntries,
  kSetMaxListpackValue,
  kZsetMaxListpackEntries,
  kZsetMaxListpackValue,
  kHllSparseMaxBytes,
  kStreamNodeMaxBytes,
  kStreamNodeMaxEntries,
  kCount,  // the accepted ones follow in the table
};

enum class SettingType : uint8_t {
  kBool,  // yes | no
  kInt,
  kMemory,  // bytes, with units: 1k = 1000, 1kb = 1024, ...
  kOctal,   // file permissions
  kText,
  kChoice,        // one of `choices`
  kWords,         // any number of words
  kShutdown,      // some of `choices`, or the first of them
  kSave,          // "seconds changes" pairs
  kOutputLimits,  // class hard soft seconds, four words each
  kPercentiles,   // numbers from 0 to 100
  kOomScores,     // three integers from -2000 to 2000
  kMemoryShare,   // bytes as kMemory, or a percentage
  kEvents,        // notify-keyspace-events letters
};

namespace setting_flag {
inline constexpr uint8_t kMutable = 1;       // CONFIG SET may change it
inline constexpr uint8_t kAccepted = 2;      // of Redis's, without effect here
inline constexpr uint8_t kHidden = 4;        // not matched by a glob of CONFIG GET
inline constexpr uint8_t kSensitive = 8;     // never logged
inline constexpr uint8_t kProtected = 16;    // CONFIG SET needs enable-protected-configs
inline constexpr uint8_t kDefaultOnly = 32;  // not offered: any value but the default is refused
}  // namespace setting_flag

struct SettingSpec {
  std::string_view name;
  SettingType type = SettingType::kText;
  std::string_view default_text;
  int64_t min = 0;
  int64_t max = INT64_MAX;
  uint8_t flags = 0;
  std::string_view alias = {};    // the older name, or none
  std::string_view choices = {};  // "a|b|c"
  std::string_view summary = {};

  bool Has(uint8_t flag) const { return (flags & flag) != 0; }
};

// The whole table. The first Setting::kCount entries are in the order of the enumerators.
std::span<const SettingSpec> AllSettings();
// Index in the table of a name or alias in any case; -1 if there is none.
int FindSetting(std::string_view name);

// One class of client-output-buffer-limit.
struct OutputLimit {
  int64_t hard_bytes = 0;
  int64_t soft_bytes = 0;
  int64_t soft_seconds = 0;
};
enum class ClientClass : uint8_t { kNormal, kReplica, kPubSub };

struct SaveSetting {
  int64_t seconds = 0;
  int64_t changes = 0;
};

class Settings {
 public:
  Settings();  // the defaults

  int64_t Int(Setting id) const { return at(id).number; }
  bool Bool(Setting id) const { return at(id).number != 0; }
  const std::string& Text(Setting id) const { return at(id).text; }
  // Index of a kChoice among its choices.
  int64_t Choice(Setting id) const { return at(id).number; }
  std::vector<std::string> Words(Setting id) const;
  OutputLimit OutputLimitOf(ClientClass client_class) const;
  std::vector<SaveSetting> SavePoints() const;

  // Sets one by its words, as they stand in a file or in CONFIG SET (one word there, which is split
  // where the type takes several). The message of a failure is Redis's.
  Status Set(size_t index, std::span<const std::string> words);
  const std::string& TextAt(size_t index) const { return values_[index].text; }
  bool IsDefault(size_t index) const;
  bool Equals(size_t index, const Settings& other) const {
    return values_[index].text == other.values_[index].text;
  }

 private:
  struct Value {
    std::string text;    // canonical form, as CONFIG GET shows it
    int64_t number = 0;  // kBool, kInt, kMemory, kOctal, kChoice, kEvents
  };
  static Result<Value> ParseOne(const SettingSpec& spec, const std::string& word);
  const Value& at(Setting id) const { return values_[static_cast<size_t>(id)]; }

  std::vector<Value> values_;
};

// "1gb", "100mb", "5k", "7": bytes; negative for anything else.
int64_t ParseMemory(std::string_view text);
// Flags of notify-keyspace-events, as Redis numbers them, and back. -1 for a letter that is none.
int64_t ParseEventFlags(std::string_view letters);
std::string EventFlagsToText(int64_t flags);

}  // namespace hotkv
