#include "server/config/config.h"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/source_dir.h"

namespace hotkv {
namespace {

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

class TempDir {
 public:
  TempDir() {
    char pattern[] = "/tmp/hotkv-config-XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    path_ = pattern;
  }
  ~TempDir() { std::system(("rm -r " + path_).c_str()); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

Result<StartOptions> Parse(const std::vector<std::string>& args) { return ParseCommandLine(args); }

std::string ValueOf(const StartOptions& options, std::string_view name) {
  return options.settings.TextAt(static_cast<size_t>(FindSetting(name)));
}

TEST_CASE("memory sizes", "[config]") {
  CHECK(ParseMemory("7") == 7);
  CHECK(ParseMemory("1k") == 1000);
  CHECK(ParseMemory("1kb") == 1024);
  CHECK(ParseMemory("1KB") == 1024);
  CHECK(ParseMemory("5m") == 5000000);
  CHECK(ParseMemory("100mb") == 104857600);
  CHECK(ParseMemory("1g") == 1000000000);
  CHECK(ParseMemory("1GB") == 1073741824);
  CHECK(ParseMemory("3b") == 3);
  for (const char* text : {"", "b", "-1", "1x", "1 k", "9223372036854775807k", "1.5k"})
    CHECK(ParseMemory(text) < 0);
}

TEST_CASE("keyspace event flags", "[config]") {
  CHECK(EventFlagsToText(ParseEventFlags("")) == "");
  CHECK(EventFlagsToText(ParseEventFlags("KEA")) == "AKE");
  CHECK(EventFlagsToText(ParseEventFlags("Elg")) == "glE");
  CHECK(EventFlagsToText(ParseEventFlags("g$lshzxetdK")) == "AK");
  CHECK(ParseEventFlags("KEq") == -1);
}

TEST_CASE("lines of the file are split like Redis's", "[config]") {
  CHECK(*SplitConfigLine("a  b\tc") == std::vector<std::string>{"a", "b", "c"});
  CHECK(*SplitConfigLine("requirepass \"a b\\x41\\n\"") ==
        std::vector<std::string>{"requirepass", "a bA\n"});
  CHECK(*SplitConfigLine("x 'it\\'s'") == std::vector<std::string>{"x", "it's"});
  CHECK(*SplitConfigLine("save \"\"") == std::vector<std::string>{"save", ""});
  CHECK_FALSE(SplitConfigLine("x \"abc").has_value());
  CHECK_FALSE(SplitConfigLine("x \"a\"b").has_value());
}

TEST_CASE("every setting has a default that is accepted and shown unchanged", "[config]") {
  const Settings settings;
  const auto all = AllSettings();
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].name);
    CHECK(settings.TextAt(i) == all[i].default_text);
    CHECK(settings.IsDefault(i));
    CHECK(FindSetting(all[i].name) == static_cast<int>(i));
    if (!all[i].alias.empty()) CHECK(FindSetting(all[i].alias) == static_cast<int>(i));
    CHECK((i >= static_cast<size_t>(Setting::kCount) || !all[i].summary.empty()));
  }
}

TEST_CASE("every setting is in the docs page, with its default", "[config]") {
  const std::string page = TempDir::Read(SourcePath("docs/configuration.md"));
  const auto all = AllSettings();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].Has(setting_flag::kHidden)) continue;
    CAPTURE(all[i].name);
    const std::string name = "`" + std::string(all[i].name) + "`";
    CHECK(page.find(name) != std::string::npos);
    if (all[i].Has(setting_flag::kAccepted | setting_flag::kDefaultOnly)) continue;
    const size_t row = page.find("| " + name);
    REQUIRE(row != std::string::npos);
    const std::string line = page.substr(row, page.find('\n', row) - row);
    CHECK((line.find("`" + std::string(all[i].default_text) + "`") != std::string::npos ||
           all[i].default_text.empty()));
    CHECK(line.find(all[i].summary) != std::string::npos);
    CHECK((line.find("`*") != std::string::npos) == all[i].Has(setting_flag::kMutable));
  }
}

TEST_CASE("a file, then the command line: the last one wins", "[config]") {
  const TempDir dir;
  const std::string more = dir.Write("more.conf", "maxclients 77\ntimeout 5\n");
  const std::string file = dir.Write(
      "redis.conf",
      "# a comment\n\nport 7001\nPORT 7002\nbind 127.0.0.1 -::1\nrequirepass \"se cret\"\n"
      "maxmemory 1gb\nio-threads 4\nhz 50\ninclude " +
          more +
          "\nsave 900 1\nsave 60 5\ntimeout 9\nclient-output-buffer-limit replica 1mb 2mb 3\n");
  const Result<StartOptions> options =
      Parse({file, "--maxclients", "88", "--appendfsync=always", "--save", "7", "8"});
  REQUIRE(options.ok());
  CHECK(options->settings.Int(Setting::kPort) == 7002);
  CHECK(options->settings.Words(Setting::kBind) == std::vector<std::string>{"127.0.0.1", "-::1"});
  CHECK(options->settings.Text(Setting::kRequirePass) == "se cret");
  CHECK(options->settings.Int(Setting::kMaxMemory) == 1073741824);
  CHECK(options->settings.Int(Setting::kMaxClients) == 88);
  CHECK(options->settings.Int(Setting::kTimeout) == 9);
  CHECK(options->settings.Text(Setting::kAppendFsync) == "always");
  CHECK(ValueOf(*options, "save") == "900 1 60 5 7 8");
  CHECK(options->accepted == std::vector<std::string>{"io-threads", "hz"});
  CHECK(options->settings.OutputLimitOf(ClientClass::kReplica).hard_bytes == 1048576);
  CHECK(options->settings.OutputLimitOf(ClientClass::kPubSub).hard_bytes == 33554432);
  CHECK(options->config_file == file);
}

TEST_CASE("save points can be switched off", "[config]") {
  CHECK(Parse({"--save", ""})->settings.SavePoints().empty());
  CHECK(Parse({})->settings.SavePoints().size() == 3);
}

TEST_CASE("wrong directives end with one clear message", "[config]") {
  const TempDir dir;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"foo bar", "Bad directive or wrong number of arguments"},
      {"port abc", "argument couldn't be parsed into an integer"},
      {"port 99999", "argument must be between 0 and 65535 inclusive"},
      {"port", "wrong number of arguments"},
      {"port 1 2", "wrong number of arguments"},
      {"appendonly maybe", "argument must be 'yes' or 'no'"},
      {"maxmemory lots", "argument must be a memory value"},
      {"appendfsync sometimes", "argument(s) must be one of the following: everysec, always, no"},
      {"save 1 2 3", "Invalid save parameters"},
      {"shutdown-on-sigterm nosve",
       "argument(s) must be one of the following: default, save, nosave, now, force"},
      {"shutdown-on-sigint now save nosave",
       "shutdown options SAVE and NOSAVE can't be used simultaneously"},
      {"shutdown-on-sigint \"\"", "argument(s) must be one of the following"},
      {"maxclients \"10", "Unbalanced quotes in configuration line"},
      {"replicaof 127.0.0.1 6379", "wrong number of arguments"},
      {"cluster-enabled yes", "HotKV does not offer this"},
      {"rename-command FLUSHALL \"\"", "HotKV does not offer this directive"},
      {"client-output-buffer-limit normal 1 2",
       "Wrong number of arguments in buffer limit configuration."},
      {"include /nonexistent/file", "can't open config file"},
      {"stripes 1000", "argument must be a power of two"},
  };
  for (const auto& [line, why] : cases) {
    CAPTURE(line);
    const Result<StartOptions> options =
        Parse({dir.Write("bad.conf", "timeout 1\n" + line + "\n")});
    REQUIRE_FALSE(options.ok());
    CHECK_THAT(options.status().message(),
               Catch::Contains(why) && Catch::Contains("FATAL CONFIG FILE ERROR"));
    if (line[0] != 's' || line[1] != 't')
      CHECK_THAT(options.status().message(), Catch::Contains("at line 2"));
  }
  CHECK_THAT(Parse({"--nonsense", "1"}).status().message(), Catch::Contains("Bad directive"));
  CHECK_THAT(Parse({"/nonexistent.conf"}).status().message(), Catch::Contains("No such file"));
  CHECK_THAT(Parse({"--port", "1", "--bind"}).status().message(),
             Catch::Contains("wrong number of arguments"));
}

TEST_CASE("CONFIG SET changes all or nothing", "[config]") {
  Config config(*Parse({}));
  std::vector<std::string> told;
  config.OnChange({Setting::kTimeout}, [&](const Settings&, const Settings& after) {
    told.push_back("timeout " + after.Text(Setting::kTimeout));
    return Status::Ok();
  });
  config.OnChange({Setting::kMaxClients}, [&](const Settings&, const Settings& after) {
    if (after.Int(Setting::kMaxClients) == 13) return Status::InvalidArgument("unlucky");
    told.push_back("maxclients " + after.Text(Setting::kMaxClients));
    return Status::Ok();
  });
  const uint64_t version = config.version();
  CHECK(config.Set(Pairs{{"timeout", "5"}, {"MAXCLIENTS", "20"}}, true).ok());
  CHECK(config.Current()->Int(Setting::kTimeout) == 5);
  CHECK(config.version() > version);
  CHECK(told == std::vector<std::string>{"timeout 5", "maxclients 20"});
  told.clear();

  CHECK(config.Set(Pairs{{"timeout", "6"}, {"maxclients", "13"}}, true).message() ==
        "ERR CONFIG SET failed (possibly related to argument 'maxclients') - unlucky");
  CHECK(told == std::vector<std::string>{"timeout 6", "timeout 5"});
  CHECK(config.Current()->Int(Setting::kTimeout) == 5);

  CHECK(config.Set(Pairs{{"timeout", "7"}, {"nosuch", "1"}}, true).message() ==
        "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'");
  CHECK(config.Set(Pairs{{"timeout", "x"}}, true).message() ==
        "ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be "
        "parsed into an integer");
  CHECK(config.Set(Pairs{{"timeout", "1"}, {"timeout", "2"}}, true).message() ==
        "ERR CONFIG SET failed (possibly related to argument 'timeout') - duplicate parameter");
  CHECK(config.Set(Pairs{{"databases", "4"}}, true).message() ==
        "ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable "
        "config");
  CHECK(config.Set(Pairs{{"dbfilename", "x"}}, true).message() ==
        "ERR CONFIG SET failed (possibly related to argument 'dbfilename') - can't set protected "
        "config");
  CHECK(config.Current()->Int(Setting::kTimeout) == 5);
}

TEST_CASE("protected settings follow enable-protected-configs", "[config]") {
  Config local(*Parse({"--enable-protected-configs", "local"}));
  CHECK(local.Set(Pairs{{"dbfilename", "x"}}, true).ok());
  CHECK_FALSE(local.Set(Pairs{{"dbfilename", "y"}}, false).ok());
}

TEST_CASE("what a signal does: some words, in one order", "[config]") {
  Config config(*Parse({"--shutdown-on-sigint", "NOW", "save"}));
  const auto set = [&](const std::string& words) {
    CHECK(config.Set(Pairs{{"shutdown-on-sigterm", words}}, true).ok());
    return config.Current()->Text(Setting::kShutdownOnSigterm);
  };
  CHECK(config.Current()->Text(Setting::kShutdownOnSigint) == "save now");
  CHECK(set("force Now nosave force") == "nosave now force");
  CHECK(set("default") == "default");
  CHECK(set("default save") == "save");
}

TEST_CASE("CONFIG GET finds names, older names and patterns", "[config]") {
  const Config config(*Parse({"--maxclients", "5"}));
  const auto get = [&](std::vector<std::string_view> patterns) { return config.Get(patterns); };
  using Found = std::vector<std::pair<std::string, std::string>>;
  CHECK(get({"MaxClients"}) == Found{{"maxclients", "5"}});
  CHECK(get({"maxc*", "maxclients"}) == Found{{"maxclients", "5"}});
  CHECK(get({"hash-max-ziplist-entries"}) == Found{{"hash-max-ziplist-entries", "512"}});
  CHECK(get({"lua-time-limit", "busy-reply-threshold"}).size() == 2);
  CHECK(get({"nosuch"}).empty());
  CHECK(get({"*"}).size() > 180);
}

TEST_CASE("CONFIG REWRITE keeps comments and order, and reads back as it was", "[config]") {
  const TempDir dir;
  const std::string file = dir.Write(
      "redis.conf",
      "# first\nport 7001\n\n# about saving\nsave 900 1\nsave 60 5\nport 7002\n# last\nhz 20\n");
  Config config(*Parse({file}));
  REQUIRE(config
              .Set(Pairs{{"timeout", "33"},
                         {"requirepass", "a \"b\"\n\xff"},
                         {"save", "5 6 7 8"},
                         {"client-output-buffer-limit", "normal 1 2 3"}},
                   true)
              .ok());
  REQUIRE(config.Rewrite().ok());
  const std::string text = TempDir::Read(file);
  CHECK(
      text.starts_with("# first\nport 7002\n\n# about saving\nsave 5 6\nsave 7 8\n# last\nhz 20\n# "
                       "Generated by CONFIG REWRITE\n"));
  const Result<StartOptions> again = Parse({file});
  REQUIRE(again.ok());
  const auto all = AllSettings();
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].name);
    CHECK(again->settings.TextAt(i) == config.Current()->TextAt(i));
  }
  // A second rewrite changes nothing.
  Config second(*Parse({file}));
  REQUIRE(second.Rewrite().ok());
  CHECK(TempDir::Read(file) == text);
  CHECK(Config(*Parse({})).Rewrite().message() ==
        "ERR The server is running without a config file");
}

// Every mutable setting takes a value through CONFIG SET, shows it in CONFIG GET and survives a
// rewrite.
TEST_CASE("settings round-trip through a file", "[config]") {
  const TempDir dir;
  const std::string file = dir.Write("redis.conf", "");
  Config config(*Parse({file}));
  const auto all = AllSettings();
  size_t changed = 0;
  for (const SettingSpec& spec : all) {
    if (!spec.Has(setting_flag::kMutable) ||
        spec.Has(setting_flag::kProtected | setting_flag::kDefaultOnly))
      continue;
    CAPTURE(spec.name);
    std::string value;
    switch (spec.type) {
      case SettingType::kBool:
        value = spec.default_text == "yes" ? "no" : "yes";
        break;
      case SettingType::kInt:
      case SettingType::kMemory:
        value = std::to_string(spec.min + 1);
        break;
      case SettingType::kChoice:
        value = std::string(spec.choices.substr(spec.choices.rfind('|') + 1));
        break;
      case SettingType::kText:
        value = "with blank";
        break;
      case SettingType::kShutdown:
        value = "force nosave";
        break;
      case SettingType::kWords:
        value = "1 2";
        break;
      default:
        continue;
    }
    CHECK(config.Set(Pairs{{spec.name, value}}, true).ok());
    ++changed;
  }
  CHECK(changed > 100);
  REQUIRE(config.Rewrite().ok());
  const Result<StartOptions> again = Parse({file});
  REQUIRE(again.ok());
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].name);
    CHECK(again->settings.TextAt(i) == config.Current()->TextAt(i));
  }
}

}  // namespace
}  // namespace hotkv
