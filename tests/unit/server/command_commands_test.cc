#include <algorithm>
#include <set>

#include "server/commands/command_info.h"
#include "tests/unit/server/command_rig.h"

namespace hotkv {

namespace {

std::set<std::string> Texts(const RespValue& value) {
  std::set<std::string> out;
  for (const RespValue& item : value.items) out.insert(item.text);
  return out;
}

std::string UpperSubcommand(std::string_view full_name) {
  std::string name(full_name.substr(full_name.find('|') + 1));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

}  // namespace

TEST_CASE("COMMAND: the table that dispatch uses, in all forms") {
  CommandRig rig;
  const size_t top = rig.table().top_level().size();
  CHECK(rig("COMMAND COUNT") == ":" + std::to_string(top));
  const RespValue all = rig.Tree("COMMAND");
  REQUIRE(all.items.size() == top);
  CHECK(rig.Tree("COMMAND INFO").items.size() == top);
  CHECK(rig.Tree("COMMAND DOCS").items.size() == 2 * top);
  CHECK(rig.Tree("COMMAND LIST").items.size() == rig.table().count());
  for (const RespValue& info : all.items) {
    INFO(info.items.at(0).text);
    REQUIRE(info.items.size() == 10);
    const CommandSpec* spec = rig.table().Find(info.items[0].text);
    REQUIRE(spec != nullptr);
    CHECK(info.items[1].integer == spec->arity);
    CHECK(info.items[3].integer == spec->keys.first);
    CHECK(info.items[9].items.size() == spec->subcommands.size());
  }
}

TEST_CASE("COMMAND: every command is described") {
  CommandRig rig;
  const std::set<std::string_view> groups = {
      "generic",   "string", "list",         "set",         "sorted-set",
      "hash",      "pubsub", "transactions", "connection",  "server",
      "scripting", "stream", "bitmap",       "hyperloglog", "geo"};
  for (uint32_t id = 0; id < rig.table().count(); ++id) {
    const CommandSpec& spec = rig.table().at(id);
    INFO(spec.name);
    CHECK(spec.arity != 0);
    CHECK_FALSE(spec.summary.empty());
    CHECK_FALSE(spec.since.empty());
    CHECK_FALSE(spec.complexity.empty());
    CHECK(groups.contains(spec.group));
    const bool fast = (spec.acl & acl_category::kFast) != 0;
    const bool slow = (spec.acl & acl_category::kSlow) != 0;
    CHECK(fast != slow);
    CHECK(spec.Has(command_flag::kFast) == fast);
    CHECK(spec.Has(command_flag::kWrite) == ((spec.acl & acl_category::kWrite) != 0));
    if (spec.Has(command_flag::kReadOnly)) CHECK((spec.acl & acl_category::kRead) != 0);
    CHECK((spec.handler != nullptr || !spec.subcommands.empty()));
    if (spec.keys.first > 0) CHECK(spec.keys.step > 0);
  }
}

TEST_CASE("HELP of each container names every subcommand") {
  CommandRig rig({.settings = {"--enable-debug-command", "yes"}});
  for (const CommandSpec* spec : rig.table().top_level()) {
    if (spec->subcommands.empty()) continue;
    INFO(spec->name);
    const RespValue help = rig.Tree(std::string(spec->name) + " HELP");
    REQUIRE(help.items.size() > 2);
    CHECK(help.items[0].text == UpperSubcommand(spec->name) +
                                    " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    for (const CommandSpec& sub : spec->subcommands) {
      INFO(sub.name);
      const std::string name = UpperSubcommand(sub.name);
      CHECK(std::any_of(help.items.begin() + 1, help.items.end(), [&](const RespValue& line) {
        return line.text == name || line.text.starts_with(name + " ");
      }));
    }
  }
}

TEST_CASE("COMMAND INFO and DOCS: named commands, unknown ones") {
  CommandRig rig;
  CHECK(rig("COMMAND INFO get") ==
        "[[$get :2 [+readonly +fast] :1 :1 :1 [+@read +@string +@fast] [] [[$flags [+RO +access] "
        "$begin_search [$type "
        "$index $spec [$index :1]] $find_keys [$type $range $spec [$lastkey :0 $keystep :1 $limit "
        ":0]]]] []]]");
  const RespValue some = rig.Tree("COMMAND INFO nosuch CONFIG|SET config|nosuch");
  REQUIRE(some.items.size() == 3);
  CHECK(some.items[0].is_null());
  CHECK(some.items[1].items.at(0).text == "config|set");
  CHECK(some.items[2].is_null());
  const RespValue docs = rig.Tree("COMMAND DOCS nosuch select client");
  REQUIRE(docs.items.size() == 4);
  CHECK(docs.items[0].text == "select");
  CHECK(docs.items[1].Field("group")->text == "connection");
  CHECK(docs.items[1].Field("arguments")->items.size() == 1);
  const RespValue* subcommands = docs.items[3].Field("subcommands");
  REQUIRE(subcommands != nullptr);
  CHECK(subcommands->Field("client|kill") != nullptr);
  CHECK(rig("COMMAND INFO ping") ==
        "[[$ping :-1 [+fast] :0 :0 :0 [+@fast +@connection] [$request_policy:all_shards "
        "$response_policy:all_succeeded] [] []]]");
}

TEST_CASE("COMMAND in RESP3: sets and maps where Redis has them") {
  CommandRig rig({.protocol = 3});
  CHECK(rig("COMMAND INFO get") ==
        "[[$get :2 <+readonly +fast> :1 :1 :1 <+@read +@string +@fast> <> <{$flags <+RO +access> "
        "$begin_search {$type "
        "$index $spec {$index :1}} $find_keys {$type $range $spec {$lastkey :0 $keystep :1 $limit "
        ":0}}}> <>]]");
  CHECK(rig.Tree("COMMAND DOCS get").type == RespType::kMap);
}

TEST_CASE("COMMAND LIST: filters") {
  CommandRig rig;
  CHECK(Texts(rig.Tree("COMMAND LIST FILTERBY PATTERN config|RE*")) ==
        std::set<std::string>{"config|resetstat", "config|rewrite"});
  CHECK(rig("COMMAND LIST FILTERBY MODULE json") == "[]");
  CHECK(rig("COMMAND LIST FILTERBY ACLCAT nosuch") == "[]");
  const std::set<std::string> connection =
      Texts(rig.Tree("COMMAND LIST FILTERBY ACLCAT Connection"));
  for (uint32_t id = 0; id < rig.table().count(); ++id) {
    const CommandSpec& spec = rig.table().at(id);
    CHECK(connection.contains(std::string(spec.name)) ==
          ((spec.acl & acl_category::kConnection) != 0));
  }
  CHECK(rig("COMMAND LIST FILTERBY FOO x") == "-ERR syntax error");
  CHECK(rig("COMMAND LIST FILTERBY PATTERN") == "-ERR syntax error");
}

TEST_CASE("COMMAND GETKEYS and GETKEYSANDFLAGS") {
  CommandRig rig;
  CHECK(rig("COMMAND GETKEYS MSET a 1 b 2") == "[$a $b]");
  CHECK(rig("COMMAND GETKEYS MEMORY USAGE k") == "[$k]");
  CHECK(rig("COMMAND GETKEYS PING") == "-ERR The command has no key arguments");
  CHECK(rig("COMMAND GETKEYS NOSUCH a") == "-ERR Invalid command specified");
  CHECK(rig("COMMAND GETKEYS GET a b") == "-ERR Invalid number of arguments specified for command");
  CHECK(rig("COMMAND GETKEYSANDFLAGS GET a") == "[[$a [+RO +access]]]");
  CHECK(rig("COMMAND GETKEYSANDFLAGS SET a b") == "[[$a [+OW +update]]]");
  CHECK(rig("COMMAND GETKEYSANDFLAGS SET a b GET") == "[[$a [+RW +access +update]]]");
  CHECK(rig("COMMAND GETKEYSANDFLAGS RENAME a b") ==
        "[[$a [+RW +access +delete]] [$b [+OW +update]]]");
}

TEST_CASE("key flags: ranges that end before the last argument, numbers of keys, keywords") {
  static constexpr KeySpec kSpecs[] = {
      {.flags = key_flag::kOverwrite, .begin = 1},
      {.flags = key_flag::kReadOnly,
       .begin = 2,
       .find = KeySpec::Find::kKeynum,
       .keynum = 0,
       .first = 1},
      {.flags = key_flag::kRemove, .begin = -1, .begin_keyword = "STORE"},
  };
  static constexpr CommandSpec kSpec{.name = "x", .keys = {1, 1, 1}, .key_specs = kSpecs};
  const std::vector<std::string_view> call = {"x", "to", "2", "a", "b", "opt", "store", "c"};
  CHECK(KeyFlagsOf(kSpec, call, 1) == key_flag::kOverwrite);
  CHECK(KeyFlagsOf(kSpec, call, 3) == key_flag::kReadOnly);
  CHECK(KeyFlagsOf(kSpec, call, 4) == key_flag::kReadOnly);
  CHECK(KeyFlagsOf(kSpec, call, 7) == key_flag::kRemove);
  // Not found by any: what the command does as a whole.
  CHECK(KeyFlagsOf(kSpec, call, 5) == (key_flag::kReadOnly | key_flag::kAccess));

  static constexpr KeySpec kHalf[] = {
      {.flags = key_flag::kReadOnly, .begin = 1, .last = -1, .limit = 2}};
  static constexpr CommandSpec kXread{.name = "y", .keys = {1, 1, 1}, .key_specs = kHalf};
  const std::vector<std::string_view> streams = {"y", "s1", "s2", "1-1", "2-2"};
  CHECK(KeyFlagsOf(kXread, streams, 1) == key_flag::kReadOnly);
  CHECK(KeyFlagsOf(kXread, streams, 2) == key_flag::kReadOnly);
  CHECK(KeyFlagsOf(kXread, streams, 3) == (key_flag::kReadOnly | key_flag::kAccess));
}

}  // namespace hotkv
