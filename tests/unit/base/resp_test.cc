#include "engine/base/resp.h"

#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <vector>

#include "engine/base/buffer.h"

namespace hotkv {
namespace {

using Words = std::vector<std::string>;

struct Seen {
  std::vector<Words> requests;
  std::string error;
  bool operator==(const Seen&) const = default;
};

// Feeds the parts one after the other, as a connection does: leftovers stay in the input buffer.
Seen Feed(const std::vector<std::string>& parts, ParseLimits limits = {}) {
  RequestParser parser;
  RequestBatch batch;
  InputBuffer buffer;
  Seen seen;
  for (const std::string& part : parts) {
    buffer.Append(part);
    for (;;) {
      batch.Clear();
      const RequestParser::Parsed parsed =
          parser.Parse({buffer.data(), buffer.size()}, limits, &batch);
      for (size_t i = 0; i < batch.size(); ++i) {
        seen.requests.emplace_back(batch[i].begin(), batch[i].end());
      }
      buffer.Consume(parsed.consumed);
      if (parsed.outcome == RequestParser::Outcome::kError) {
        seen.error = parser.error();
        return seen;
      }
      if (parsed.outcome == RequestParser::Outcome::kNeedMore) break;
    }
  }
  return seen;
}

// The outcome must not depend on how the bytes are cut.
Seen FeedAllWays(const std::string& text, ParseLimits limits = {}) {
  const Seen whole = Feed({text}, limits);
  for (size_t cut = 1; cut < text.size(); ++cut) {
    INFO("cut at " << cut);
    CHECK(Feed({text.substr(0, cut), text.substr(cut)}, limits) == whole);
  }
  std::vector<std::string> bytes;
  for (char c : text) bytes.emplace_back(1, c);
  CHECK(Feed(bytes, limits) == whole);
  limits.requests_max = 1;
  CHECK(Feed({text}, limits) == whole);
  return whole;
}

std::string Encode(const Words& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words)
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return text;
}

TEST_CASE("pipelines of multibulk requests", "[resp]") {
  const std::vector<Words> requests = {
      {"SET", "key", "va\r\nlue"}, {"GET", "key"}, {"PING"}, {"SET", "", std::string(300, 'x')}};
  std::string text;
  for (const Words& words : requests) text += Encode(words);
  const Seen seen = FeedAllWays(text);
  CHECK(seen.requests == requests);
  CHECK(seen.error.empty());
}

TEST_CASE("inline requests and their quotes", "[resp]") {
  CHECK(FeedAllWays("PING\r\n").requests == std::vector<Words>{{"PING"}});
  CHECK(FeedAllWays("  set  a\tb \n").requests == std::vector<Words>{{"set", "a", "b"}});
  CHECK(FeedAllWays("\r\n\nPING\n").requests == std::vector<Words>{{"PING"}});
  CHECK(FeedAllWays("set k \"a b\\n\\x41\\\"\\q\"\r\n").requests ==
        std::vector<Words>{{"set", "k", "a b\nA\"q"}});
  CHECK(FeedAllWays("set k 'a\\'b\\n' \"\"\r\n").requests ==
        std::vector<Words>{{"set", "k", "a'b\\n", ""}});
  CHECK(FeedAllWays("set a\"b c\" d\r\n").requests == std::vector<Words>{{"set", "ab c", "d"}});
  CHECK(FeedAllWays("set k \"\\xZZ\"\r\n").requests == std::vector<Words>{{"set", "k", "xZZ"}});
  for (const char* text :
       {"set k \"abc\r\n", "set k \"a\"b\r\n", "set k 'a'b\r\n", "get '\r\n", "get \"a\\\"\r\n"}) {
    CAPTURE(text);
    CHECK(FeedAllWays(text).error == "Protocol error: unbalanced quotes in request");
  }
  CHECK(FeedAllWays("PING\r\nget 'x\r\nPING\r\n").requests == std::vector<Words>{{"PING"}});
}

TEST_CASE("requests around inline ones with quotes", "[resp]") {
  const Seen seen = FeedAllWays("echo \"\\x41\\x42\"\r\n" + Encode({"GET", "a"}) + "echo 'x'\r\n");
  CHECK(seen.requests == std::vector<Words>{{"echo", "AB"}, {"GET", "a"}, {"echo", "x"}});
}

TEST_CASE("protocol errors have Redis's texts", "[resp]") {
  const std::string head = "*2\r\n$3\r\nGET\r\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {head + "$abc\r\n", "invalid bulk length"},
      {head + "x3\r\n", "expected '$', got 'x'"},
      {head + "$536870913\r\n", "invalid bulk length"},
      {"*2147483648\r\n", "invalid multibulk length"},
      {"*1\r\n$-1\r\n", "invalid bulk length"},
      {"*1\r\n$9223372036854775808\r\n", "invalid bulk length"},
      {"*x\r\n", "invalid multibulk length"},
      {"*03\r\n", "invalid multibulk length"},
      {"*\r\n", "invalid multibulk length"},
      {"*1\r\n$03\r\nabc\r\n", "invalid bulk length"},
      {"*1\r\n$+3\r\nabc\r\n", "invalid bulk length"},
      {"*1\r\n:3\r\n", "expected '$', got ':'"},
  };
  for (const auto& [text, error] : cases) {
    CAPTURE(text);
    const Seen seen = FeedAllWays(text);
    CHECK(seen.error == "Protocol error: " + error);
    CHECK(seen.requests.empty());
  }
  CHECK(FeedAllWays(Encode({"PING"}) + "*-9x\r\n").requests == std::vector<Words>{{"PING"}});
}

TEST_CASE("negative and zero counts are no request", "[resp]") {
  CHECK(FeedAllWays("*-1\r\n*0\r\nPING\r\n").requests == std::vector<Words>{{"PING"}});
  CHECK(FeedAllWays("*-1\r\n*0\r\n" + Encode({"GET", "k"})).requests ==
        std::vector<Words>{{"GET", "k"}});
}

TEST_CASE("lines without an end are refused", "[resp]") {
  CHECK(Feed({std::string(70000, 'a')}).error == "Protocol error: too big inline request");
  CHECK(Feed({"*" + std::string(70000, '1')}).error ==
        "Protocol error: too big mbulk count string");
  CHECK(Feed({"*1\r\n$" + std::string(70000, '1')}).error ==
        "Protocol error: too big bulk count string");
  CHECK(Feed({std::string(60000, 'a')}).error.empty());
  CHECK(Feed({std::string(60000, 'a') + "\r\n"}).requests ==
        std::vector<Words>{{std::string(60000, 'a')}});
}

TEST_CASE("an unauthenticated client may send small requests only", "[resp]") {
  ParseLimits limits;
  limits.authenticated = false;
  CHECK(FeedAllWays("*11\r\n", limits).error == "Protocol error: unauthenticated multibulk length");
  CHECK(FeedAllWays("*2\r\n$4\r\nAUTH\r\n$16385\r\n", limits).error ==
        "Protocol error: unauthenticated bulk length");
  CHECK(FeedAllWays(Encode({"AUTH", "secret"}), limits).requests ==
        std::vector<Words>{{"AUTH", "secret"}});
}

TEST_CASE("proto-max-bulk-len is a limit of one argument", "[resp]") {
  ParseLimits limits;
  limits.bulk_bytes_max = 100;
  CHECK(FeedAllWays(Encode({"SET", "k", std::string(100, 'v')}), limits).requests.size() == 1);
  CHECK(FeedAllWays(Encode({"SET", "k", std::string(101, 'v')}), limits).error ==
        "Protocol error: invalid bulk length");
}

TEST_CASE("random pipelines in random pieces", "[resp]") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Words> requests;
    std::string text;
    for (size_t i = random() % 20; i < 20; ++i) {
      Words words;
      for (size_t j = 1 + random() % 5; j > 0; --j) {
        std::string word(random() % (random() % 50 == 0 ? 40000 : 30), ' ');
        for (char& c : word) c = static_cast<char>(random());
        words.push_back(word);
      }
      text += Encode(words);
      requests.push_back(words);
    }
    std::vector<std::string> parts;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % (random() % 2 != 0 ? 20 : 20000);
      parts.push_back(text.substr(at, size));
      at += size;
    }
    const Seen seen = Feed(parts);
    REQUIRE(seen.requests == requests);
  }
}

TEST_CASE(
    "a request of a hundred thousand arguments in small pieces is not scanned again and again",
    "[resp]") {
  Words words(100000, "word");
  const std::string text = Encode(words);
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size(); at += 64) parts.push_back(text.substr(at, 64));
  CHECK(Feed(parts).requests == std::vector<Words>{words});
}

TEST_CASE("what was not executed can be parsed again", "[resp]") {
  const std::string text = Encode({"SET", "a", "1"}) + "\r\nset \"b c\" 2\r\n*0\r\n" +
                           Encode({"GET", "a"}) + "*2\r\n$3\r\nGE";
  const std::vector<Words> all = {{"SET", "a", "1"}, {"set", "b c", "2"}, {"GET", "a"}};
  for (size_t executed = 1; executed <= all.size(); ++executed) {
    RequestParser parser;
    RequestBatch batch;
    CHECK(parser.Parse(text, {}, &batch).outcome == RequestParser::Outcome::kNeedMore);
    REQUIRE(batch.size() == all.size());
    const size_t end = batch.EndOffset(executed - 1);
    batch.Clear();
    parser.Rewind();
    const std::string rest = text.substr(end) + "T\r\n$1\r\nx\r\n";
    CHECK(parser.Parse(rest, {}, &batch).consumed == rest.size());
    REQUIRE(batch.size() == all.size() - executed + 1);
    for (size_t i = executed; i < all.size(); ++i) {
      CHECK(Words(batch[i - executed].begin(), batch[i - executed].end()) == all[i]);
    }
  }
}

TEST_CASE("an announced length reserves nothing", "[resp]") {
  RequestParser parser;
  RequestBatch batch;
  InputBuffer buffer;
  buffer.Append("*2\r\n$3\r\nGET\r\n$536870912\r\n");
  const RequestParser::Parsed parsed = parser.Parse({buffer.data(), buffer.size()}, {}, &batch);
  CHECK(parsed.outcome == RequestParser::Outcome::kNeedMore);
  CHECK(parsed.consumed == 0);
  CHECK(parser.missing_bytes() == 536870914);
  CHECK(buffer.capacity() <= 4096);
}

TEST_CASE("input buffers give large memory back", "[resp]") {
  InputBuffer buffer;
  const std::string part(10000, 'x');
  for (int i = 0; i < 100; ++i) buffer.Append(part);
  CHECK(buffer.size() == 1000000);
  CHECK(buffer.capacity() <= 2 * 1048576);
  buffer.Consume(999999);
  CHECK(buffer.size() == 1);
  buffer.Consume(1);
  CHECK(buffer.capacity() == 0);
}

}  // namespace
}  // namespace hotkv
