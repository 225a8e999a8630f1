#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "server/commands/info.h"
#include "server/commands/process_facts.h"
#include "tests/unit/server/command_rig.h"

namespace hotkv {

namespace {

std::set<std::string> Sections(const std::string& info) {
  std::set<std::string> out;
  for (size_t at = info.find("# "); at != std::string::npos; at = info.find("\n# ", at + 1)) {
    if (info[at] == '\n') ++at;
    out.insert(info.substr(at + 2, info.find('\r', at) - at - 2));
  }
  return out;
}

}  // namespace

TEST_CASE("INFO: sections by name, default, all") {
  CommandRig rig;
  const std::set<std::string> by_default = {"Server",     "Clients", "Memory",      "Persistence",
                                            "Stats",      "CPU",     "Replication", "Modules",
                                            "Errorstats", "Cluster", "Hotkv",       "Keyspace"};
  CHECK(Sections(rig.Tree("INFO").text) == by_default);
  CHECK(Sections(rig.Tree("INFO default").text) == by_default);
  std::set<std::string> all = by_default;
  all.insert({"Commandstats", "Latencystats"});
  CHECK(Sections(rig.Tree("INFO everything").text) == all);
  CHECK(Sections(rig.Tree("INFO ALL").text) == all);
  CHECK(Sections(rig.Tree("INFO cpu Keyspace").text) == std::set<std::string>{"CPU", "Keyspace"});
  CHECK(Sections(rig.Tree("INFO default commandstats").text).size() == by_default.size() + 1);
  CHECK(rig("INFO nosuch") == "$");
}

TEST_CASE("INFO: lines have the form that clients parse") {
  CommandRig rig;
  rig("SET k v");
  const std::string text = rig.Tree("INFO everything").text;
  std::set<std::string> names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find("\r\n", at);
    REQUIRE(end != std::string::npos);
    const std::string line = text.substr(at, end - at);
    at = end + 2;
    if (line.empty() || line[0] == '#') continue;
    INFO(line);
    const size_t colon = line.find(':');
    REQUIRE(colon != std::string::npos);
    CHECK(names.insert(line.substr(0, colon)).second);  // no field twice
  }
  CHECK(rig.Info("server", "redis_version") == "8.4.0");
  CHECK(rig.Info("server", "redis_mode") == "standalone");
  CHECK(rig.Info("server", "tcp_port") == std::to_string(rig.server().tcp_port()));
  CHECK(rig.Info("server", "run_id").size() == 40);
  CHECK(rig.Info("replication", "role") == "master");
  CHECK_FALSE(rig.Info("hotkv", "hotkv_version").empty());
}

TEST_CASE("INFO: counters follow what was done, and RESETSTAT sets them back") {
  CommandRig rig({.workers = 2});
  rig("SET k v");
  rig("SET e v EX 100");
  rig("GET k");
  rig("GET none");
  rig("GET");
  rig("NOSUCH");
  rig.As(1, "LPUSHX");
  rig("SELECT 2");
  rig("SET other v");
  rig("SELECT 0");
  CHECK(rig.Info("stats", "keyspace_hits") == "1");
  CHECK(rig.Info("stats", "keyspace_misses") == "1");
  CHECK(rig.Info("stats", "total_connections_received") == "2");
  CHECK(rig.Info("stats", "total_error_replies") == "3");
  CHECK(rig.Info("errorstats", "errorstat_ERR") == "count=3");
  const std::string db0 = rig.Info("keyspace", "db0");
  CHECK(db0.starts_with("keys=2,expires=1,avg_ttl="));
  CHECK(db0.ends_with(",subexpiry=0"));
  const int64_t ttl_ms = std::stoll(db0.substr(std::string("keys=2,expires=1,avg_ttl=").size()));
  CHECK(ttl_ms <= 100'000);
  CHECK(ttl_ms > 80'000);
  CHECK(rig.Info("keyspace", "db2") == "keys=1,expires=0,avg_ttl=0,subexpiry=0");
  CHECK(rig.Info("keyspace", "db1").empty());
  CHECK(rig.Info("clients", "connected_clients") == "2");
  CHECK(rig.Info("commandstats", "cmdstat_set").starts_with("calls=3,usec="));
  CHECK(rig.Info("commandstats", "cmdstat_get").ends_with(",rejected_calls=1,failed_calls=0"));
  CHECK(rig.Info("latencystats", "latency_percentiles_usec_set").starts_with("p50="));

  CHECK(rig("CONFIG RESETSTAT") == "+OK");
  CHECK(rig.Info("stats", "keyspace_hits") == "0");
  CHECK(rig.Info("stats", "total_error_replies") == "0");
  CHECK(rig.Info("stats", "total_connections_received") == "0");
  CHECK(rig.Info("errorstats", "errorstat_ERR").empty());
  CHECK(rig.Info("commandstats", "cmdstat_set").empty());
  CHECK(rig.Info("latencystats", "latency_percentiles_usec_set").empty());
  CHECK(rig.Info("commandstats", "cmdstat_info").starts_with("calls="));
  rig("SET k w");
  CHECK(rig.Info("commandstats", "cmdstat_set").starts_with("calls=1,"));
}

TEST_CASE("INFO: memory grows with what is stored and sinks with what goes") {
  CommandRig rig;
  const auto used = [&] { return std::stoull(rig.Info("memory", "used_memory")); };
  const uint64_t empty = used();
  const std::string value(10'000, 'x');
  for (int i = 0; i < 100; ++i) rig.Call(0, {"SET", "k" + std::to_string(i), value});
  const uint64_t full = used();
  CHECK(full > empty + 1'000'000);
  CHECK(full < empty + 1'400'000);
  rig("FLUSHALL");
  CHECK(used() < empty + 100'000);
  CHECK(std::stoull(rig.Info("memory", "used_memory_peak")) >= full);
  CHECK(HumanBytes(1023) == "1023B");
  CHECK(HumanBytes(1572864) == "1.50M");
  CHECK(HumanBytes(uint64_t{3} << 40) == "3.00T");
}

TEST_CASE("maxmemory: commands that need memory are refused, others are not") {
  CommandRig rig;
  rig.Call(0, {"SET", "k", std::string(100'000, 'x')});
  CHECK(rig("CONFIG SET maxmemory 1000") == "+OK");
  REQUIRE(Eventually([&] {
    return rig("SET l v") == "-OOM command not allowed when used memory > 'maxmemory'.";
  }));
  CHECK(rig("EXISTS k") == ":1");
  CHECK(rig.Info("hotkv", "hotkv_write_denial") == "memory");
  CHECK(rig("DEL k") == ":1");
  CHECK(rig("CONFIG SET maxmemory 0") == "+OK");
  REQUIRE(Eventually([&] { return rig("SET l v") == "+OK"; }));
}

// Writes more than fits; returns how many of the writes were refused.
int WriteMuch(CommandRig& rig, int keys, const std::vector<std::string_view>& options = {}) {
  const std::string value(1000, 'x');
  int refused = 0;
  for (int i = 0; i < keys; ++i) {
    const std::string key = "k" + std::to_string(i);
    std::vector<std::string_view> words{"SET", key, value};
    words.insert(words.end(), options.begin(), options.end());
    refused += rig.Call(0, words) == "+OK" ? 0 : 1;
    if (i % 50 == 0) rig("GET k0");
  }
  return refused;
}

TEST_CASE("maxmemory: each policy keeps memory near the limit and accepts every write") {
  const std::string policy =
      GENERATE("allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu",
               "volatile-random", "volatile-ttl");
  CAPTURE(policy);
  CommandRig rig;
  const auto used = [&] { return std::stoll(rig.Info("memory", "used_memory")); };
  const int64_t limit = used() + 2'000'000;
  CHECK(rig("CONFIG SET maxmemory " + std::to_string(limit) + " maxmemory-policy " + policy) ==
        "+OK");
  CHECK(WriteMuch(rig, 6000, {"EX", "1000"}) == 0);
  CHECK(Eventually([&] { return used() <= limit; }));
  CHECK(used() > limit / 2);
  const int64_t evicted = std::stoll(rig.Info("stats", "evicted_keys"));
  CHECK(evicted > 3000);
  CHECK(rig("DBSIZE") == ":" + std::to_string(6000 - evicted));
  CHECK(rig.Info("hotkv", "hotkv_write_denial") == "none");
  // A lower limit is obeyed at once, without another write.
  CHECK(rig("CONFIG SET maxmemory " + std::to_string(limit - 1'000'000)) == "+OK");
  CHECK(Eventually([&] { return used() <= limit - 1'000'000; }));
  CHECK(rig("CONFIG RESETSTAT") == "+OK");
  CHECK(rig.Info("stats", "evicted_keys") == "0");
}

TEST_CASE("maxmemory: where nothing may be evicted, writes are refused") {
  CommandRig rig;
  CHECK(rig("CONFIG SET maxmemory-policy volatile-lru") == "+OK");
  CHECK(WriteMuch(rig, 500) == 0);
  CHECK(rig("CONFIG SET maxmemory 1") == "+OK");
  CHECK(rig("SET l v") == "-OOM command not allowed when used memory > 'maxmemory'.");
  CHECK(rig("DBSIZE") == ":500");
  CHECK(rig("CONFIG SET maxmemory-policy noeviction") == "+OK");
  CHECK(rig("SET l v") == "-OOM command not allowed when used memory > 'maxmemory'.");
  CHECK(rig("DBSIZE") == ":500");
  CHECK(Contains(rig("CONFIG SET maxmemory-policy demote"), "must be one of"));
}

class FakeGroup {
 public:
  FakeGroup() { REQUIRE(mkdtemp(root_.data()) != nullptr); }
  ~FakeGroup() { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_ = (std::filesystem::temp_directory_path() / "hotkv-group-XXXXXX").string();
};

TEST_CASE("The control group's limit is found in both versions, at any level") {
  FakeGroup group;
  CHECK(ReadGroupMemory(group.root()).limit == 0);
  SECTION("version 2") {
    group.Write("/proc/self/cgroup", "0::/app/server\n");
    group.Write("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    group.Write("/sys/fs/cgroup/app/server/memory.max", "max\n");
    CHECK(ReadGroupMemory(group.root()).limit == 0);
    group.Write("/sys/fs/cgroup/app/memory.max", "1000000\n");
    group.Write("/sys/fs/cgroup/app/memory.current", "700000\n");
    group.Write("/sys/fs/cgroup/app/memory.stat", "anon 1\nactive_file 100000\ninactive_file 50000\n");
  }
  SECTION("version 2 in a container, whose own group is the root") {
    group.Write("/proc/self/cgroup", "0::/\n");
    group.Write("/sys/fs/cgroup/cgroup.controllers", "memory\n");
    group.Write("/sys/fs/cgroup/memory.max", "1000000\n");
    group.Write("/sys/fs/cgroup/memory.current", "550000\n");
  }
  SECTION("version 1, beside a version 2 without the memory controller") {
    group.Write("/proc/self/cgroup", "0::/x\n5:cpu,cpuacct:/y\n4:memory:/docker/abc\n");
    const std::string folder = "/sys/fs/cgroup/memory/docker/abc/";
    group.Write(folder + "memory.limit_in_bytes", "1000000\n");
    group.Write(folder + "memory.usage_in_bytes", "600000\n");
    group.Write(folder + "memory.stat", "inactive_file 9\ntotal_inactive_file 50000\ntotal_active_file 0\n");
    group.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  }
  const GroupMemory found = ReadGroupMemory(group.root());
  CHECK(found.limit == 1'000'000);
  CHECK(found.used == 550'000);
}

TEST_CASE("Without maxmemory writes are refused near the control group's limit") {
  FakeGroup group;
  group.Write("/proc/self/cgroup", "0::/\n");
  group.Write("/sys/fs/cgroup/cgroup.controllers", "memory\n");
  group.Write("/sys/fs/cgroup/memory.max", "1000000\n");
  group.Write("/sys/fs/cgroup/memory.current", "890000\n");
  CommandRig rig;
  rig.server().gauges().SetGroupRoot(group.root());
  CHECK(rig("CONFIG SET maxmemory-policy allkeys-lru") == "+OK");  // looks anew
  CHECK(rig("SET k v") == "+OK");
  group.Write("/sys/fs/cgroup/memory.current", "910000\n");
  REQUIRE(Eventually([&] { return rig("SET k v").starts_with("-OOM "); }));
  CHECK(rig.Info("hotkv", "hotkv_write_denial") == "memory");
  CHECK(rig("GET k") == "$v");
  CHECK(rig("DEL k") == ":1");
  group.Write("/sys/fs/cgroup/memory.stat", "inactive_file 400000\nactive_file 0\n");
  REQUIRE(Eventually([&] { return rig("SET k v") == "+OK"; }));
  group.Write("/sys/fs/cgroup/memory.stat", "inactive_file 0\nactive_file 0\n");
  REQUIRE(Eventually([&] { return rig("SET k v").starts_with("-OOM "); }));
  CHECK(rig("CONFIG SET maxmemory 1gb") == "+OK");  // then that is the limit
  CHECK(rig("SET k v") == "+OK");
}

// A field that never changes says nothing: each counter of INFO's that is 0 at the start moves when the thing it counts
// happens.
TEST_CASE("INFO: no counter stands at 0 for ever") {
  FakeDisk disk;
  CommandRig rig({.settings = {"--enable-debug-command", "yes"}, .workers = 2, .disk = &disk});
  const auto zeros = [&] {
    std::set<std::string> names;
    std::istringstream lines(rig.Tree("INFO everything").text);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with(":0\r") || line.ends_with(":0.00\r")) names.insert(line.substr(0, line.find(':')));
    }
    return names;
  };
  // Of what HotKV does not have (replicas, forks), but clients and dashboards ask for.
  const std::set<std::string> always{
      "redis_git_dirty", "uptime_in_days", "connected_slaves", "master_repl_offset", "repl_backlog_active",
      "repl_backlog_size", "repl_backlog_first_byte_offset", "repl_backlog_histlen", "latest_fork_usec",
      "total_forks", "cluster_enabled"};
  // Counted in tests of their own, or of what this rig does not have.
  const std::set<std::string> elsewhere{
      "rejected_connections", "client_query_buffer_limit_disconnections",
      "client_output_buffer_limit_disconnections", "hotkv_objects", "hotkv_vector_indexes",
      "hotkv_wait_stripe_usec", "hotkv_wait_stop_usec", "hotkv_wait_log_usec", "hotkv_wait_pause_usec",
      "hotkv_wait_durability_usec", "hotkv_wait_job_usec", "lazyfree_pending_objects", "lazyfreed_objects",
      "hotkv_epoch_written", "hotkv_epoch_durable", "client_recent_max_input_buffer"};
  rig("SET k v");
  rig("SET gone v PX 1");
  rig("GET k");
  rig("GET none");
  rig("NOSUCH");
  rig("AUTH wrong wrong");
  std::set<std::string> seen_only_as_zero = zeros();
  const auto now = [&] {
    const std::set<std::string> zero = zeros();
    std::erase_if(seen_only_as_zero, [&](const std::string& name) { return !zero.contains(name); });
  };
  disk.Change([](DurabilityStatus& s) {
    s = {.log_on = true, .fsync_policy = "always", .log_error = "", .log_bytes = 1, .log_written_bytes = 2, .log_base_bytes = 3,
         .log_buffered_bytes = 4, .log_segments = 5, .log_blocks = 6, .log_syncs = 7, .log_failures = 8,
         .snapshot_running = true, .snapshot_scheduled = true, .snapshot_is_rewrite = false,
         .snapshot_started_ms = 1, .snapshot_percent = 60, .snapshots = 9, .last_snapshot_error = "", .last_snapshot_seconds = 10,
         .last_save_ms = 11'000, .changes_since_save = 12, .loaded_percent = 13, .loaded_keys = 14, .replication_id = ""};
  });
  now();
  disk.Change([](DurabilityStatus& s) { s.snapshot_is_rewrite = true; });
  now();
  rig("WATCH k");
  rig.client(1).Append({"WAIT", "1", "0"});
  REQUIRE(rig.client(1).Flush().ok());
  rig.engine().epochs().SetWritesWait(true);
  now();
  rig.engine().epochs().SetWritesWait(false);
  CHECK(rig("CONFIG SET maxmemory-policy allkeys-random maxmemory 1") == "+OK");
  REQUIRE(Eventually([&] { return rig.Info("stats", "evicted_keys") != "0"; }));
  now();
  rig.engine().loading = true;
  now();
  rig.engine().loading = false;
  rig("CONFIG SET maxmemory 0");
  rig("SET gone v PX 1");
  std::string left;
  Eventually([&] {
    rig("GET gone");
    now();
    left.clear();
    for (const std::string& name : seen_only_as_zero) {
      if (!always.contains(name) && !elsewhere.contains(name)) left += name + " ";
    }
    return left.empty();
  });
  CHECK(left == "");
}

TEST_CASE("TIME, ROLE, LOLWUT, MODULE, ACL") {
  CommandRig rig;
  const RespValue time = rig.Tree("TIME");
  REQUIRE(time.items.size() == 2);
  CHECK(std::stoll(time.items[0].text) > 1'600'000'000);
  CHECK(std::stoll(time.items[1].text) < 1'000'000);
  CHECK(rig("ROLE") == "[$master :0 []]");
  CHECK(Contains(rig("LOLWUT"), "HotKV ver. "));
  CHECK(rig("MODULE LIST") == "[]");
  CHECK(rig("MODULE LOAD x") == "-ERR unknown subcommand 'LOAD'. Try MODULE HELP.");
  CHECK(rig("ACL WHOAMI") == "$default");
  CHECK(rig("ACL USERS") == "[$default]");
  CHECK(rig("ACL CAT nosuch") == "-ERR Unknown category 'nosuch'");
  CHECK(Contains(rig("ACL CAT dangerous"), "$shutdown"));
  CHECK(Contains(rig("ACL CAT"), "$keyspace"));
  CHECK(rig.Tree("ACL GENPASS").text.size() == 64);
  CHECK(rig.Tree("ACL GENPASS 5").text.size() == 2);
  CHECK(rig.Tree("ACL GENPASS").text != rig.Tree("ACL GENPASS").text);
  CHECK(Contains(rig("ACL GENPASS 0"), "a positive number up to 4096"));
}

TEST_CASE("MEMORY: usage of a key, figures, reports") {
  CommandRig rig;
  rig("SET small v");
  rig.Call(0, {"SET", "large", std::string(100'000, 'x')});
  CHECK(rig("MEMORY USAGE none") == "nil");
  const RespValue small = rig.Tree("MEMORY USAGE small");
  CHECK(small.integer >= 6 + 4);
  CHECK(small.integer <= 64);
  const RespValue large = rig.Tree("MEMORY USAGE large SAMPLES 5");
  CHECK(large.integer >= 100'000);
  CHECK(large.integer <= 140'000);
  CHECK(rig("MEMORY USAGE small SAMPLES -1") == "-ERR syntax error");
  CHECK(rig("MEMORY USAGE small FOO 1") == "-ERR syntax error");
  CHECK(rig("MEMORY USAGE small SAMPLES x") == "-ERR value is not an integer or out of range");
  const RespValue stats = rig.Tree("MEMORY STATS");
  CHECK(stats.items.size() % 2 == 0);
  for (size_t i = 0; i + 1 < stats.items.size(); i += 2) {
    if (stats.items[i].text == "keys.count") CHECK(stats.items[i + 1].integer == 2);
  }
  CHECK(Contains(rig("MEMORY DOCTOR"), "too little data"));
  CHECK(rig("MEMORY PURGE") == "+OK");
  CHECK(rig.Tree("MEMORY MALLOC-STATS").text.size() > 100);
}

TEST_CASE("MEMORY STATS has as many pairs as its header says, in RESP3 too") {
  CommandRig rig({.protocol = 3});
  CHECK(rig.Tree("MEMORY STATS").type == RespType::kMap);
  rig("SET k v");
  CHECK(rig.Tree("MEMORY STATS").type == RespType::kMap);
  CHECK(rig("PING") == "+PONG");  // nothing was left over
}

TEST_CASE("CONFIG: get, set, errors") {
  CommandRig rig;
  CHECK(rig("CONFIG GET slowlog-max-len maxmemory-pol*") ==
        "[$maxmemory-policy $noeviction $slowlog-max-len $128]");
  CHECK(rig("CONFIG SET slowlog-max-len 7 timeout 30") == "+OK");
  CHECK(rig("CONFIG GET slowlog-max-len") == "[$slowlog-max-len $7]");
  CHECK(rig("CONFIG SET slowlog-max-len") ==
        "-ERR wrong number of arguments for 'config|set' command");
  CHECK(rig("CONFIG SET a b c") == "-ERR syntax error");
  CHECK(rig("CONFIG SET nosuch 1") ==
        "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'");
  CHECK(Contains(rig("CONFIG SET slowlog-max-len 8 port x"),
                 "-ERR CONFIG SET failed (possibly related to argument 'port')"));
  CHECK(rig("CONFIG GET slowlog-max-len") == "[$slowlog-max-len $7]");
  CHECK(rig("CONFIG GET SlowLog-Max-Len") == "[$SlowLog-Max-Len $7]");
  CHECK(rig.Call(0, {"CONFIG", "SET", "latency-tracking-info-percentiles", "50 x"}) ==
        "-ERR CONFIG SET failed (possibly related to argument 'latency-tracking-info-percentiles') "
        "- Invalid "
        "latency-tracking-info-percentiles parameters");
  CHECK(
      rig.Call(0, {"CONFIG", "SET", "latency-tracking-info-percentiles", "50 101"}) ==
      "-ERR CONFIG SET failed (possibly related to argument 'latency-tracking-info-percentiles') - "
      "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
  CHECK(rig.Call(0, {"CONFIG", "SET", "latency-tracking-info-percentiles", "50 99.5"}) == "+OK");
  CHECK(Contains(rig.Info("latencystats", "latency_percentiles_usec_config|get"), ",p99.5="));
  CHECK(rig("CONFIG REWRITE") == "-ERR The server is running without a config file");
}

TEST_CASE("SLOWLOG: threshold, entries, waits, reset") {
  CommandRig rig({.settings = {"--slowlog-max-len", "3"}});
  CHECK(rig("CONFIG SET slowlog-log-slower-than 0") == "+OK");
  rig("CLIENT SETNAME me");
  rig("GET a");
  rig("GET b");
  CHECK(rig("SLOWLOG LEN") == ":3");
  const RespValue entries = rig.Tree("SLOWLOG GET 2");
  REQUIRE(entries.items.size() == 2);
  const RespValue& newest = entries.items[0];
  REQUIRE(newest.items.size() == 6);
  CHECK(newest.items[0].integer > entries.items[1].items[0].integer);
  CHECK(newest.items[3].items[0].text == "SLOWLOG");
  CHECK(newest.items[5].text == "me");
  CHECK(newest.items[4].text.starts_with("127.0.0.1:"));
  CHECK(rig.Tree("SLOWLOG GET 1 WITHWAITS").items[0].items.size() == 7);
  CHECK(rig.Tree("SLOWLOG GET WITHWAITS").items.size() == 3);
  CHECK(rig.Tree("SLOWLOG GET -1").items.size() == 3);
  CHECK(rig("SLOWLOG GET -2") == "-ERR count should be greater than or equal to -1");
  CHECK(rig("SLOWLOG GET 1 2") ==
        "-ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.");
  rig("CONFIG SET slowlog-log-slower-than -1");
  CHECK(rig("SLOWLOG RESET") == "+OK");
  CHECK(rig("SLOWLOG LEN") == ":0");
}

TEST_CASE("LATENCY: histogram, spikes") {
  CommandRig rig(
      {.settings = {"--enable-debug-command", "yes", "--latency-monitor-threshold", "5"}});
  rig("SET k v");
  rig("SET k v");
  rig("CONFIG GET port");
  const RespValue set = rig.Tree("LATENCY HISTOGRAM set nosuch");
  REQUIRE(set.items.size() == 2);
  CHECK(set.items[0].text == "set");
  CHECK(set.items[1].items[0].text == "calls");
  CHECK(set.items[1].items[1].integer == 2);
  const RespValue& buckets = set.items[1].items[3];
  CHECK(buckets.items.back().integer == 2);
  CHECK(rig.Tree("LATENCY HISTOGRAM config").items[0].text == "config|get");
  CHECK(rig.Tree("LATENCY HISTOGRAM").items.size() >= 4);

  CHECK(rig("LATENCY LATEST") == "[]");
  rig("DEBUG SLEEP 0.02");
  const RespValue latest = rig.Tree("LATENCY LATEST");
  REQUIRE(latest.items.size() >= 1);
  CHECK(latest.items[0].items[0].text == "command");
  CHECK(latest.items[0].items[3].integer >= 20);
  CHECK(rig.Tree("LATENCY HISTORY command").items.size() == 1);
  CHECK(rig("LATENCY HISTORY nosuch") == "[]");
  CHECK(Contains(rig("LATENCY GRAPH command"), "command - high "));
  CHECK(rig("LATENCY GRAPH nosuch") == "-ERR No samples available for event 'nosuch'");
  CHECK(Contains(rig("LATENCY DOCTOR"), "command: 1 spike(s)"));
  CHECK(rig("LATENCY RESET nosuch") == ":0");
  CHECK(rig("LATENCY RESET command") == ":1");
}

}  // namespace hotkv
