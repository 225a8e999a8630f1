#include "tools/hotkv_bench/command_mix.h"

#include <catch2/catch.hpp>

#include <map>
#include <set>
#include <string>

#include "engine/base/resp_client.h"

namespace hotkv {
namespace {

// Commands in wire form are arrays of bulk strings, which the reply parser reads as well.
std::vector<std::vector<std::string>> ParseCommands(const std::string& wire) {
  RespReplyParser parser;
  parser.Feed(wire);
  std::vector<std::vector<std::string>> commands;
  for (;;) {
    auto next = parser.Next();
    REQUIRE(next.ok());
    if (!next->has_value()) return commands;
    std::vector<std::string> words;
    for (const RespValue& item : (*next)->items) words.push_back(item.text);
    commands.push_back(words);
  }
}

std::vector<std::vector<std::string>> Draw(const MixOptions& options, size_t batches) {
  auto mix = CommandMix::Make(options);
  REQUIRE(mix.ok());
  auto source = (*mix)->MakeSource(0);
  std::string wire;
  size_t replies = 0;
  for (size_t i = 0; i < batches; ++i) replies += source->AppendBatch(&wire);
  auto commands = ParseCommands(wire);
  REQUIRE(commands.size() == replies);
  return commands;
}

TEST_CASE("command mix: weights, key range, sizes") {
  MixOptions options;
  options.mix = "set=30,get=60,incr=10";
  options.keys = 1000;
  options.key_bytes = 12;
  options.value_bytes = 32;
  options.pipeline = 100;
  std::map<std::string, size_t> seen;
  std::set<std::string> keys;
  std::set<std::string> values;
  for (const auto& words : Draw(options, 100)) {
    ++seen[words[0]];
    REQUIRE(words[1].size() == 12);
    REQUIRE(words[1].starts_with(words[0] == "INCR" ? "cnt:" : "key:"));
    REQUIRE(std::stoull(words[1].substr(4)) < 1000);
    if (words[0] != "INCR") keys.insert(words[1]);
    if (words[0] == "SET") {
      REQUIRE(words.size() == 3);
      REQUIRE(words[2].size() == 32);
      values.insert(words[2]);
    }
  }
  CHECK(std::abs(static_cast<double>(seen["SET"]) - 3000) < 300);
  CHECK(std::abs(static_cast<double>(seen["GET"]) - 6000) < 300);
  CHECK(std::abs(static_cast<double>(seen["INCR"]) - 1000) < 200);
  CHECK(keys.size() > 990);
  CHECK(values.size() + 100 > seen["SET"]);
}

TEST_CASE("command mix: every built-in command is well formed") {
  std::string names = BuiltInCommands();
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    MixOptions options;
    options.mix = names.substr(0, end);
    names.erase(0, std::min(end + 1, names.size()));
    const auto commands = Draw(options, 3);
    CAPTURE(options.mix);
    REQUIRE(commands.size() == 3);
    for (const auto& words : commands) {
      for (const auto& word : words) REQUIRE(word.find('{') == std::string::npos);
    }
    if (options.mix == "mset") REQUIRE(commands[0].size() == 21);
    if (options.mix == "mget") REQUIRE(commands[0].size() == 11);
  }
}

TEST_CASE("command mix: Zipf prefers low ranks, a template of one's own") {
  MixOptions options;
  options.command = "HSET h:{key} {key} {value}";
  options.keys = 10'000;
  options.distribution = "zipf:0.99";
  options.value_bytes = 5;
  options.pipeline = 1000;
  size_t first = 0;
  const auto commands = Draw(options, 20);
  for (const auto& words : commands) {
    REQUIRE(words[1] == "h:{key}");  // only whole words are filled in
    REQUIRE(words[3].size() == 5);
    first += words[2] == "key:000000000000";
  }
  // 1 / (sum of 1 / r^0.99 over 10,000 ranks) is about 0.098.
  CHECK(std::abs(static_cast<double>(first) / 20'000 - 0.098) < 0.015);
}

TEST_CASE("command mix: filling writes every key exactly once over all threads") {
  MixOptions options;
  options.keys = 1003;
  auto mix = CommandMix::Make(options);
  REQUIRE(mix.ok());
  std::map<std::string, int> seen;
  for (unsigned thread = 0; thread < 3; ++thread) {
    auto source = (*mix)->MakeFillSource(thread, 3);
    std::string wire;
    while (source->AppendBatch(&wire) > 0) {
    }
    for (const auto& words : ParseCommands(wire)) {
      REQUIRE(words[0] == "SET");
      ++seen[words[1]];
    }
  }
  REQUIRE(seen.size() == 1003);
  for (const auto& [key, times] : seen) REQUIRE(times == 1);
}

TEST_CASE("command mix: bad options are refused") {
  const auto refused = [](void (*change)(MixOptions*)) {
    MixOptions options;
    change(&options);
    return !CommandMix::Make(options).ok();
  };
  CHECK(refused([](MixOptions* o) { o->mix = "fly=3"; }));
  CHECK(refused([](MixOptions* o) { o->mix = "set=x"; }));
  CHECK(refused([](MixOptions* o) { o->mix = "set=0"; }));
  CHECK(refused([](MixOptions* o) { o->mix = ""; }));
  CHECK(refused([](MixOptions* o) { o->command = "  "; }));
  CHECK(refused([](MixOptions* o) { o->keys = 0; }));
  CHECK(refused([](MixOptions* o) { o->key_bytes = 8; }));
  CHECK(refused([](MixOptions* o) { o->pipeline = 0; }));
  CHECK(refused([](MixOptions* o) { o->distribution = "zipf"; }));
  CHECK(refused([](MixOptions* o) { o->distribution = "zipf:-1"; }));
}

}  // namespace
}  // namespace hotkv
