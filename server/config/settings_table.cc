// The table of all directives. First those that code reads, in the order of the enumerators of
// Setting; then those of redis.conf that are accepted without effect. To add one: an enumerator and
// a line here.

#include <array>
#include <cctype>

#include "server/config/settings.h"

namespace hotkv {

namespace {

constexpr uint8_t kM = setting_flag::kMutable;
constexpr uint8_t kA = setting_flag::kAccepted;
constexpr uint8_t kAm = setting_flag::kAccepted | setting_flag::kMutable;
constexpr uint8_t kSecret = setting_flag::kSensitive | setting_flag::kMutable;
constexpr uint8_t kD = setting_flag::kDefaultOnly | setting_flag::kAccepted;
constexpr int64_t kIntMax = 2147483647;
constexpr int64_t kLongMax = INT64_MAX;
using T = SettingType;

constexpr auto kTable = std::to_array<SettingSpec>({
    // network
    {"bind", T::kWords, "* -::*", 0, 0, kM, "", "",
     "Addresses to listen on; one with '-' in front may be missing."},
    {"port", T::kInt, "6379", 0, 65535, kM, "", "", "TCP port; 0: no TCP."},
    {"unixsocket", T::kText, "", 0, 0, 0, "", "", "Path of a Unix socket to listen on as well."},
    {"unixsocketperm", T::kOctal, "0", 0, 0777, 0, "", "",
     "Its permissions, octal; 0: as the umask says."},
    {"protected-mode", T::kBool, "yes", 0, 1, kM, "", "",
     "Without a password, only local clients are let in."},
    {"tcp-backlog", T::kInt, "511", 0, kIntMax, 0, "", "",
     "Connections that may wait to be accepted."},
    {"tcp-keepalive", T::kInt, "300", 0, kIntMax, kM, "", "",
     "Seconds of silence after which a peer is probed; 0: never."},
    {"timeout", T::kInt, "0", 0, kIntMax, kM, "", "",
     "Seconds after which an idle client is closed; 0: never."},
    {"maxclients", T::kInt, "10000", 1, 4294967295, kM, "", "", "Connections at the same time."},
    {"client-query-buffer-limit", T::kMemory, "1073741824", 1048576, kLongMax, kM, "", "",
     "Bytes of requests that a client may have waiting."},
    {"client-output-buffer-limit", T::kOutputLimits,
     "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60", 0, 0, kM, "", "",
     "By class: hard limit, soft limit, seconds over the soft limit."},
    {"proto-max-bulk-len", T::kMemory, "536870912", 1048576, kLongMax, kM, "", "",
     "Bytes of one argument."},
    {"threads", T::kInt, "0", 0, 255, 0, "", "", "Worker threads; 0: one a core."},
    {"io", T::kChoice, "auto", 0, 0, 0, "", "auto|uring|epoll",
     "How sockets are driven; auto: io_uring where it works."},
    // process
    {"daemonize", T::kBool, "no", 0, 1, 0, "", "", "Run in the background."},
    {"pidfile", T::kText, "", 0, 0, 0, "", "", "File for the process number."},
    {"loglevel", T::kChoice, "notice", 0, 0, kM, "", "debug|verbose|notice|warning|nothing",
     "Least important messages that are logged."},
    {"logfile", T::kText, "", 0, 0, 0, "", "",
     "File for the log; empty: standard output. Opened again on SIGHUP."},
    {"supervised", T::kChoice, "auto", 0, 0, 0, "", "upstart|systemd|auto|no",
     "Tell a service manager when the server is ready."},
    {"shutdown-timeout", T::kInt, "10", 0, kIntMax, kAm, "", "",
     "Seconds that a shutdown waits for replicas."},
    {"shutdown-on-sigint", T::kShutdown, "default", 0, 0, kM, "", "default|save|nosave|now|force",
     "What SIGINT does: default, save, nosave, now, force."},
    {"shutdown-on-sigterm", T::kShutdown, "default", 0, 0, kM, "", "default|save|nosave|now|force",
     "What SIGTERM does: default, save, nosave, now, force."},
    {"crash-log-enabled", T::kBool, "yes", 0, 1, kM, "", "",
     "Log a report with a backtrace when the server crashes."},
    // data
    {"dir", T::kText, "./hotkv-data", 0, 0, setting_flag::kProtected, "", "",
     "Data directory; made if missing."},
    {"databases", T::kInt, "16", 1, 1024, 0, "", "", "Number of databases for SELECT."},
    {"stripes", T::kInt, "4096", 1, 65536, 0, "", "",
     "Slices of the keyspace, a power of two; fixed at the first start."},
    {"appendonly", T::kBool, "yes", 0, 1, kM, "", "", "Keep a log of all writes."},
    {"appendfsync", T::kChoice, "everysec", 0, 0, kM, "", "everysec|always|no",
     "When the log is made durable."},
    {"save", T::kSave, "3600 1 300 100 60 10000", 0, 0, kM, "", "",
     "Snapshot after so many seconds with so many changes; \"\": never."},
    {"auto-aof-rewrite-min-size", T::kMemory, "67108864", 0, kLongMax, kM, "", "",
     "Bytes of log below which its growth alone starts no snapshot."},
    {"auto-aof-rewrite-percentage", T::kInt, "100", 0, kIntMax, kM, "", "",
     "Growth of the log that starts a snapshot, in percent of the last snapshot; 0: none."},
    {"log-retention", T::kInt, "0", 0, kLongMax, kAm, "", "",
     "Seconds of log that are kept for restoring an earlier moment."},
    {"backup-dir", T::kText, "", 0, 0, setting_flag::kProtected | kA, "", "",
     "Folder below which BGSAVE may write backups."},
    {"clock-follow", T::kBool, "yes", 0, 1, kM, "", "",
     "Follow a step of the system's clock after ten seconds."},
    {"dbfilename", T::kText, "dump.rdb", 0, 0, setting_flag::kProtected | kAm, "", "",
     "Name of an RDB file to import at the first start."},
    {"stop-writes-on-bgsave-error", T::kBool, "yes", 0, 1, kM, "", "",
     "Refuse writes while snapshots fail and there is no log."},
    // memory
    {"maxmemory", T::kMemory, "0", 0, kLongMax, kM, "", "",
     "Bytes of data above which keys are evicted or writes refused; 0: no limit."},
    {"maxmemory-policy", T::kChoice, "noeviction", 0, 0, kM, "",
     "volatile-lru|volatile-lfu|volatile-random|volatile-ttl|allkeys-lru|allkeys-lfu|allkeys-"
     "random|noeviction",
     "Which keys go when memory is full."},
    {"maxmemory-samples", T::kInt, "5", 1, 64, kM, "", "", "Keys looked at to find one to evict."},
    {"lfu-log-factor", T::kInt, "10", 0, kIntMax, kM, "", "", "How slowly the LFU counter grows."},
    {"lfu-decay-time", T::kInt, "1", 0, kIntMax, kAm, "", "",
     "Minutes after which the LFU counter falls."},
    {"active-expire-effort", T::kInt, "1", 1, 10, kAm, "", "",
     "How eagerly expired keys are looked for."},
    {"lazyfree-lazy-user-del", T::kBool, "yes", 0, 1, kAm, "", "",
     "DEL frees large values in the background."},
    {"lazyfree-lazy-user-flush", T::kBool, "yes", 0, 1, kAm, "", "",
     "FLUSHDB and FLUSHALL free in the background."},
    // security
    {"requirepass", T::kText, "", 0, 0, kSecret, "", "", "Password of the default user."},
    {"aclfile", T::kText, "", 0, 0, setting_flag::kDefaultOnly, "", "",
     "File with users; not supported yet."},
    {"enable-debug-command", T::kChoice, "no", 0, 0, 0, "", "no|yes|local", "Who may use DEBUG."},
    {"enable-protected-configs", T::kChoice, "no", 0, 0, 0, "", "no|yes|local",
     "Who may change dir and similar settings."},
    // observing
    {"slowlog-log-slower-than", T::kInt, "10000", -1, kLongMax, kM, "", "",
     "Microseconds from which a command is in the slow log; -1: none."},
    {"slowlog-max-len", T::kInt, "128", 0, kLongMax, kM, "", "", "Entries of the slow log."},
    {"latency-monitor-threshold", T::kInt, "0", 0, kLongMax, kM, "", "",
     "Milliseconds from which an event is in LATENCY; 0: none."},
    {"latency-tracking", T::kBool, "yes", 0, 1, kM, "", "",
     "Keep a histogram of each command's duration."},
    {"latency-tracking-info-percentiles", T::kPercentiles, "50 99 99.9", 0, 0, kM, "", "",
     "Percentiles that INFO latencystats shows."},
    {"notify-keyspace-events", T::kEvents, "", 0, 0, kAm, "", "",
     "Events that are published, as letters."},
    {"busy-reply-threshold", T::kInt, "5000", 0, kLongMax, kAm, "lua-time-limit", "",
     "Milliseconds after which a script makes others see BUSY."},
    {"tracking-table-max-keys", T::kInt, "1000000", 0, kLongMax, kAm, "", "",
     "Keys remembered for client-side caching."},
    // encodings
    {"hash-max-listpack-entries", T::kInt, "512", 0, kLongMax, kAm, "hash-max-ziplist-entries", "",
     "Fields of a hash in the packed form."},
    {"hash-max-listpack-value", T::kMemory, "64", 0, kLongMax, kAm, "hash-max-ziplist-value", "",
     "Bytes of a field or value in the packed form."},
    {"list-max-listpack-size", T::kInt, "-2", -kIntMax - 1, kIntMax, kAm, "list-max-ziplist-size", "",
     "Size of a list's nodes; negative: by kilobytes."},
    {"set-max-intset-entries", T::kInt, "512", 0, kLongMax, kAm, "", "",
     "Members of a set of integers in the packed form."},
    {"set-max-listpack-entries", T::kInt, "128", 0, kLongMax, kAm, "", "",
     "Members of a set in the packed form."},
    {"set-max-listpack-value", T::kMemory, "64", 0, kLongMax, kAm, "", "",
     "Bytes of a member in the packed form."},
    {"zset-max-listpack-entries", T::kInt, "128", 0, kLongMax, kAm, "zset-max-ziplist-entries", "",
     "Members of a sorted set in the packed form."},
    {"zset-max-listpack-value", T::kMemory, "64", 0, kLongMax, kAm, "zset-max-ziplist-value", "",
     "Bytes of a member in the packed form."},
    {"hll-sparse-max-bytes", T::kMemory, "3000", 0, kLongMax, kAm, "", "",
     "Bytes of a sparse HyperLogLog."},
    {"stream-node-max-bytes", T::kMemory, "4096", 0, kLongMax, kAm, "", "",
     "Bytes of a stream's node."},
    {"stream-node-max-entries", T::kInt, "100", 0, kLongMax, kAm, "", "",
     "Entries of a stream's node."},

    // Meaning that is not offered: only the value that switches it off is taken.
    {"cluster-enabled", T::kBool, "no", 0, 1, kD},
    {"replicaof", T::kText, "", 0, 0, kD, "slaveof"},
    {"tls-port", T::kInt, "0", 0, 65535, kD},
    {"tls-replication", T::kBool, "no", 0, 1, kD},
    {"tls-cluster", T::kBool, "no", 0, 1, kD},

    // Accepted, without effect.
    {"acl-pubsub-default", T::kChoice, "resetchannels", 0, 0, kAm, "", "allchannels|resetchannels"},
    {"acllog-max-len", T::kInt, "128", 0, kLongMax, kAm},
    {"active-defrag-cycle-max", T::kInt, "25", 1, 99, kAm},
    {"active-defrag-cycle-min", T::kInt, "1", 1, 99, kAm},
    {"active-defrag-ignore-bytes", T::kMemory, "104857600", 1, kLongMax, kAm},
    {"active-defrag-max-scan-fields", T::kInt, "1000", 1, kLongMax, kAm},
    {"active-defrag-threshold-lower", T::kInt, "10", 0, 1000, kAm},
    {"active-defrag-threshold-upper", T::kInt, "100", 0, 1000, kAm},
    {"activedefrag", T::kBool, "no", 0, 1, kAm},
    {"activerehashing", T::kBool, "yes", 0, 1, kAm},
    {"always-show-logo", T::kBool, "no", 0, 1, kA},
    {"aof-disable-auto-gc", T::kBool, "no", 0, 1, kAm},
    {"aof-load-truncated", T::kBool, "yes", 0, 1, kAm},
    {"aof-rewrite-incremental-fsync", T::kBool, "yes", 0, 1, kAm},
    {"aof-timestamp-enabled", T::kBool, "no", 0, 1, kAm},
    {"aof-use-rdb-preamble", T::kBool, "yes", 0, 1, kAm},
    {"aof-rewrite-cpulist", T::kText, "", 0, 0, kA, "aof_rewrite_cpulist"},
    {"appenddirname", T::kText, "appendonlydir", 0, 0, kA},
    {"appendfilename", T::kText, "appendonly.aof", 0, 0, kA},
    {"bgsave-cpulist", T::kText, "", 0, 0, kA, "bgsave_cpulist"},
    {"bind-source-addr", T::kText, "", 0, 0, kA},
    {"bio-cpulist", T::kText, "", 0, 0, kA, "bio_cpulist"},
    {"cluster-allow-pubsubshard-when-down", T::kBool, "yes", 0, 1, kAm},
    {"cluster-allow-reads-when-down", T::kBool, "no", 0, 1, kAm},
    {"cluster-allow-replica-migration", T::kBool, "yes", 0, 1, kAm},
    {"cluster-announce-bus-port", T::kInt, "0", 0, 65535, kAm},
    {"cluster-announce-hostname", T::kText, "", 0, 0, kAm},
    {"cluster-announce-human-nodename", T::kText, "", 0, 0, kAm},
    {"cluster-announce-ip", T::kText, "", 0, 0, kAm},
    {"cluster-announce-port", T::kInt, "0", 0, 65535, kAm},
    {"cluster-announce-tls-port", T::kInt, "0", 0, 65535, kAm},
    {"cluster-compatibility-sample-ratio", T::kInt, "0", 0, 100, kAm},
    {"cluster-config-file", T::kText, "nodes.conf", 0, 0, kA},
    {"cluster-link-sendbuf-limit", T::kMemory, "0", 0, kLongMax, kAm},
    {"cluster-migration-barrier", T::kInt, "1", 0, kIntMax, kAm},
    {"cluster-node-timeout", T::kInt, "15000", 0, kLongMax, kAm},
    {"cluster-port", T::kInt, "0", 0, 65535, kA},
    {"cluster-preferred-endpoint-type", T::kChoice, "ip", 0, 0, kAm, "",
     "ip|hostname|unknown-endpoint"},
    {"cluster-replica-no-failover", T::kBool, "no", 0, 1, kAm, "cluster-slave-no-failover"},
    {"cluster-replica-validity-factor", T::kInt, "10", 0, kIntMax, kAm,
     "cluster-slave-validity-factor"},
    {"cluster-require-full-coverage", T::kBool, "yes", 0, 1, kAm},
    {"cluster-slot-stats-enabled", T::kBool, "no", 0, 1, kAm},
    {"crash-memcheck-enabled", T::kBool, "yes", 0, 1, kAm},
    {"disable-thp", T::kBool, "yes", 0, 1, kA},
    {"dynamic-hz", T::kBool, "yes", 0, 1, kAm},
    {"enable-module-command", T::kChoice, "no", 0, 0, kA, "", "no|yes|local"},
    {"hide-user-data-from-log", T::kBool, "yes", 0, 1, kAm},
    {"hz", T::kInt, "10", 0, kIntMax, kAm},
    {"ignore-warnings", T::kText, "", 0, 0, kA},
    {"io-threads", T::kInt, "1", 1, 128, kA},
    {"io-threads-do-reads", T::kBool, "no", 0, 1, kA},
    {"jemalloc-bg-thread", T::kBool, "yes", 0, 1, kAm},
    {"lazyexpire-nested-arbitrary-keys", T::kBool, "yes", 0, 1, kAm},
    {"lazyfree-lazy-eviction", T::kBool, "yes", 0, 1, kAm},
    {"lazyfree-lazy-expire", T::kBool, "yes", 0, 1, kAm},
    {"lazyfree-lazy-server-del", T::kBool, "yes", 0, 1, kAm},
    {"list-compress-depth", T::kInt, "0", 0, kIntMax, kAm},
    {"list-max-ziplist-entries", T::kInt, "512", 0, kLongMax, kA},
    {"list-max-ziplist-value", T::kInt, "64", 0, kLongMax, kA},
    {"locale-collate", T::kText, "", 0, 0, kAm},
    {"lookahead", T::kInt, "16", 1, kIntMax, kAm},
    {"masterauth", T::kText, "", 0, 0, kAm | setting_flag::kSensitive},
    {"masteruser", T::kText, "", 0, 0, kAm},
    {"max-new-connections-per-cycle", T::kInt, "10", 1, 1000, kAm},
    {"max-new-tls-connections-per-cycle", T::kInt, "1", 1, 1000, kAm},
    {"maxmemory-clients", T::kMemoryShare, "0", 0, 0, kAm},
    {"maxmemory-eviction-tenacity", T::kInt, "10", 0, 100, kAm},
    {"min-replicas-max-lag", T::kInt, "10", 0, kIntMax, kAm, "min-slaves-max-lag"},
    {"min-replicas-to-write", T::kInt, "0", 0, kIntMax, kAm, "min-slaves-to-write"},
    {"min-string-size-avoid-copy-reply", T::kInt, "16384", 0, kIntMax, kAm},
    {"min-string-size-avoid-copy-reply-threaded", T::kInt, "65536", 0, kIntMax, kAm},
    {"no-appendfsync-on-rewrite", T::kBool, "no", 0, 1, kAm},
    {"oom-score-adj", T::kChoice, "no", 0, 0, kAm, "", "no|yes|relative|absolute"},
    {"oom-score-adj-values", T::kOomScores, "0 200 800", 0, 0, kAm},
    {"proc-title-template", T::kText, "{title} {listen-addr} {server-mode}", 0, 0, kAm},
    {"propagation-error-behavior", T::kChoice, "ignore", 0, 0, kAm, "",
     "ignore|panic|panic-on-replicas"},
    {"rdb-del-sync-files", T::kBool, "no", 0, 1, kAm},
    {"rdb-save-incremental-fsync", T::kBool, "yes", 0, 1, kAm},
    {"rdbchecksum", T::kBool, "yes", 0, 1, kA},
    {"rdbcompression", T::kBool, "yes", 0, 1, kAm},
    {"repl-backlog-size", T::kMemory, "1048576", 1, kLongMax, kAm},
    {"repl-backlog-ttl", T::kInt, "3600", 0, kLongMax, kAm},
    {"repl-disable-tcp-nodelay", T::kBool, "no", 0, 1, kAm},
    {"repl-diskless-load", T::kChoice, "disabled", 0, 0, kAm, "",
     "disabled|on-empty-db|swapdb|flush-before-load"},
    {"repl-diskless-sync", T::kBool, "yes", 0, 1, kAm},
    {"repl-diskless-sync-delay", T::kInt, "5", 0, kIntMax, kAm},
    {"repl-diskless-sync-max-replicas", T::kInt, "0", 0, kIntMax, kAm},
    {"repl-ping-replica-period", T::kInt, "10", 1, kIntMax, kAm, "repl-ping-slave-period"},
    {"repl-timeout", T::kInt, "60", 1, kIntMax, kAm},
    {"replica-announce-ip", T::kText, "", 0, 0, kAm, "slave-announce-ip"},
    {"replica-announce-port", T::kInt, "0", 0, 65535, kAm, "slave-announce-port"},
    {"replica-announced", T::kBool, "yes", 0, 1, kAm},
    {"replica-full-sync-buffer-limit", T::kMemory, "0", 0, kLongMax, kAm},
    {"replica-ignore-disk-write-errors", T::kBool, "no", 0, 1, kAm},
    {"replica-ignore-maxmemory", T::kBool, "yes", 0, 1, kAm, "slave-ignore-maxmemory"},
    {"replica-lazy-flush", T::kBool, "yes", 0, 1, kAm, "slave-lazy-flush"},
    {"replica-priority", T::kInt, "100", 0, kIntMax, kAm, "slave-priority"},
    {"replica-read-only", T::kBool, "yes", 0, 1, kAm, "slave-read-only"},
    {"replica-serve-stale-data", T::kBool, "yes", 0, 1, kAm, "slave-serve-stale-data"},
    {"sanitize-dump-payload", T::kChoice, "no", 0, 0, kAm, "", "no|yes|clients"},
    {"server-cpulist", T::kText, "", 0, 0, kA, "server_cpulist"},
    {"set-proc-title", T::kBool, "yes", 0, 1, kA},
    {"socket-mark-id", T::kInt, "0", 0, 4294967295, kA},
    {"syslog-enabled", T::kBool, "no", 0, 1, kA},
    {"syslog-facility", T::kText, "local0", 0, 0, kA},
    {"syslog-ident", T::kText, "redis", 0, 0, kA},
    {"tls-auth-clients", T::kChoice, "yes", 0, 0, kAm, "", "no|yes|optional"},
    {"tls-ca-cert-dir", T::kText, "", 0, 0, kAm},
    {"tls-ca-cert-file", T::kText, "", 0, 0, kAm},
    {"tls-cert-file", T::kText, "", 0, 0, kAm},
    {"tls-ciphers", T::kText, "", 0, 0, kAm},
    {"tls-ciphersuites", T::kText, "", 0, 0, kAm},
    {"tls-client-cert-file", T::kText, "", 0, 0, kAm},
    {"tls-client-key-file", T::kText, "", 0, 0, kAm},
    {"tls-client-key-file-pass", T::kText, "", 0, 0, kAm | setting_flag::kSensitive},
    {"tls-dh-params-file", T::kText, "", 0, 0, kAm},
    {"tls-key-file", T::kText, "", 0, 0, kAm},
    {"tls-key-file-pass", T::kText, "", 0, 0, kAm | setting_flag::kSensitive},
    {"tls-prefer-server-ciphers", T::kBool, "no", 0, 1, kAm},
    {"tls-protocols", T::kText, "", 0, 0, kAm},
    {"tls-session-cache-size", T::kInt, "20480", 0, kIntMax, kAm},
    {"tls-session-cache-timeout", T::kInt, "300", 0, kIntMax, kAm},
    {"tls-session-caching", T::kBool, "yes", 0, 1, kAm},
    {"vset-force-single-threaded-execution", T::kBool, "no", 0, 1, kAm},
});

consteval bool StartsWithUsed() {
  // Spot checks of the order; a wrong one moves at least one of these.
  const auto is = [](Setting id, std::string_view name) {
    return kTable[static_cast<size_t>(id)].name == name;
  };
  return is(Setting::kBind, "bind") && is(Setting::kMaxClients, "maxclients") &&
         is(Setting::kIo, "io") && is(Setting::kLogFile, "logfile") && is(Setting::kDir, "dir") &&
         is(Setting::kSave, "save") &&
         is(Setting::kStopWritesOnBgsaveError, "stop-writes-on-bgsave-error") &&
         is(Setting::kMaxMemoryPolicy, "maxmemory-policy") &&
         is(Setting::kRequirePass, "requirepass") &&
         is(Setting::kSlowlogMaxLen, "slowlog-max-len") &&
         is(Setting::kStreamNodeMaxEntries, "stream-node-max-entries");
}
static_assert(StartsWithUsed());

bool SameName(std::string_view lower, std::string_view any_case) {
  if (lower.size() != any_case.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(any_case[i])) != lower[i]) return false;
  }
  return true;
}

}  // namespace

std::span<const SettingSpec> AllSettings() { return kTable; }

int FindSetting(std::string_view name) {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (SameName(kTable[i].name, name)) return static_cast<int>(i);
    if (!kTable[i].alias.empty() && SameName(kTable[i].alias, name)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace hotkv
