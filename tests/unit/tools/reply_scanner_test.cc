#include "tools/hotkv_bench/reply_scanner.h"

#include <catch2/catch.hpp>

#include <string>

#include "engine/base/random.h"
#include "engine/base/resp_client.h"

namespace hotkv {
namespace {

std::string RandomReply(Random* random, int depth) {
  const std::string number = std::to_string(random->Below(1000));
  switch (random->Below(depth > 0 ? 12 : 8)) {
    case 0: return "+OK\r\n";
    case 1: return "-ERR no\r\n";
    case 2: return ":" + number + "\r\n";
    case 3: return "$-1\r\n";
    case 4: return "_\r\n";
    case 5: return "#t\r\n";
    case 6: return ",1.5\r\n";
    case 7: {
      std::string text(random->Below(30), '\n');
      for (char& c : text) c = "\r\n$*ab"[random->Below(6)];
      return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    }
    default: break;
  }
  const size_t items = random->Below(4);
  const bool map = random->Below(2) == 0;
  std::string out = (map ? "%" : "*") + std::to_string(items) + "\r\n";
  for (size_t i = 0; i < (map ? 2 * items : items); ++i) out += RandomReply(random, depth - 1);
  return out;
}

TEST_CASE("reply scanner: counts what the tree parser finds, however the bytes are cut") {
  Random random(31);
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    const size_t replies = random.Below(8) + 1;
    for (size_t i = 0; i < replies; ++i) bytes += RandomReply(&random, 3);
    ReplyScanner scanner;
    RespReplyParser parser;
    size_t scanned = 0;
    size_t parsed = 0;
    for (size_t at = 0; at < bytes.size();) {
      const size_t part = random.Below(std::min<size_t>(bytes.size() - at, 13)) + 1;
      scanned += scanner.Scan(std::string_view(bytes).substr(at, part));
      parser.Feed(std::string_view(bytes).substr(at, part));
      for (;;) {
        auto next = parser.Next();
        REQUIRE(next.ok());
        if (!next->has_value()) break;
        ++parsed;
      }
      at += part;
      CAPTURE(bytes, at);
      REQUIRE(scanned == parsed);
    }
    REQUIRE(scanned == replies);
    REQUIRE_FALSE(scanner.broken());
  }
}

TEST_CASE("reply scanner: errors and nulls are counted, the first error is kept") {
  ReplyScanner scanner;
  REQUIRE(scanner.Scan("+OK\r\n-ERR a\r\n-ERR b\r\n$-1\r\n*2\r\n$-1\r\n_\r\n") == 5);
  CHECK(scanner.errors() == 2);
  CHECK(scanner.first_error() == "-ERR a");
  CHECK(scanner.nulls() == 3);
}

TEST_CASE("reply scanner: bytes that are no reply") {
  for (const char* bytes : {"hello\r\n", "$x\r\n", "*-2\r\n", "\r\n"}) {
    ReplyScanner scanner;
    scanner.Scan(bytes);
    CAPTURE(bytes);
    CHECK(scanner.broken());
  }
}

}  // namespace
}  // namespace hotkv
