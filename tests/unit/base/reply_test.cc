#include "engine/base/reply.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "engine/base/allocator.h"
#include "engine/base/shared_block.h"

namespace hotkv {
namespace {

std::string Written(int version, const std::function<void(ReplyWriter&)>& write) {
  BlockPool pool;
  OutputChain chain(&pool);
  ReplyWriter writer(&chain, version);
  write(writer);
  return chain.ToString();
}

void CheckBoth(const std::function<void(ReplyWriter&)>& write, const std::string& resp2,
               const std::string& resp3) {
  CHECK(Written(2, write) == resp2);
  CHECK(Written(3, write) == resp3);
}

TEST_CASE("replies in both protocols", "[reply]") {
  CheckBoth([](ReplyWriter& w) { w.Ok(); }, "+OK\r\n", "+OK\r\n");
  CheckBoth([](ReplyWriter& w) { w.Simple("QUEUED"); }, "+QUEUED\r\n", "+QUEUED\r\n");
  CheckBoth([](ReplyWriter& w) { w.Error("ERR a\r\nb\n"); }, "-ERR a  b\r\n", "-ERR a  b\r\n");
  CheckBoth([](ReplyWriter& w) { w.Integer(-42); }, ":-42\r\n", ":-42\r\n");
  CheckBoth([](ReplyWriter& w) { w.Integer(INT64_MIN); }, ":-9223372036854775808\r\n",
            ":-9223372036854775808\r\n");
  CheckBoth([](ReplyWriter& w) { w.Bulk("ab\r\n"); }, "$4\r\nab\r\n\r\n", "$4\r\nab\r\n\r\n");
  CheckBoth([](ReplyWriter& w) { w.Bulk(""); }, "$0\r\n\r\n", "$0\r\n\r\n");
  CheckBoth([](ReplyWriter& w) { w.BulkInt(-120); }, "$4\r\n-120\r\n", "$4\r\n-120\r\n");
  CheckBoth([](ReplyWriter& w) { w.Null(); }, "$-1\r\n", "_\r\n");
  CheckBoth([](ReplyWriter& w) { w.NullArray(); }, "*-1\r\n", "_\r\n");
  CheckBoth([](ReplyWriter& w) { w.ArrayHeader(1025); }, "*1025\r\n", "*1025\r\n");
  CheckBoth([](ReplyWriter& w) { w.MapHeader(3); }, "*6\r\n", "%3\r\n");
  CheckBoth([](ReplyWriter& w) { w.SetHeader(3); }, "*3\r\n", "~3\r\n");
  CheckBoth([](ReplyWriter& w) { w.PushHeader(3); }, "*3\r\n", ">3\r\n");
  CheckBoth([](ReplyWriter& w) { w.Double(1.5); }, "$3\r\n1.5\r\n", ",1.5\r\n");
  CheckBoth([](ReplyWriter& w) { w.Double(std::numeric_limits<double>::infinity()); },
            "$3\r\ninf\r\n", ",inf\r\n");
  CheckBoth([](ReplyWriter& w) { w.Double(-std::numeric_limits<double>::infinity()); },
            "$4\r\n-inf\r\n", ",-inf\r\n");
  CheckBoth([](ReplyWriter& w) { w.Bool(true); }, ":1\r\n", "#t\r\n");
  CheckBoth([](ReplyWriter& w) { w.Bool(false); }, ":0\r\n", "#f\r\n");
  CheckBoth([](ReplyWriter& w) { w.Verbatim("txt", "hi"); }, "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n");
  CheckBoth([](ReplyWriter& w) { w.BigNumber("123"); }, "$3\r\n123\r\n", "(123\r\n");
}

// An empty view may have no address; the sanitizers' build shows what copies from it.
TEST_CASE("empty views without an address are written like other empty ones", "[reply]") {
  const std::string_view none;
  REQUIRE(none.data() == nullptr);
  CheckBoth([&](ReplyWriter& w) { w.Bulk(none); }, "$0\r\n\r\n", "$0\r\n\r\n");
  CheckBoth([&](ReplyWriter& w) { w.Simple(none); }, "+\r\n", "+\r\n");
  CheckBoth([&](ReplyWriter& w) { w.Error(none); }, "-\r\n", "-\r\n");
  CheckBoth([&](ReplyWriter& w) { w.Raw(none); w.RawBytes(none); }, "", "");
  CheckBoth([&](ReplyWriter& w) { w.BigNumber(none); }, "$0\r\n\r\n", "(\r\n");
  CheckBoth([&](ReplyWriter& w) { w.Verbatim("txt", none); }, "$0\r\n\r\n", "=4\r\ntxt:\r\n");
  int released = 0;
  const auto release = [](void* owner) { ++*static_cast<int*>(owner); };
  CheckBoth([&](ReplyWriter& w) { w.BulkReference(none, &released, release); }, "$0\r\n\r\n",
            "$0\r\n\r\n");
  CHECK(released == 2);
  SharedBlock* block = SharedBlock::Copy(none);
  CheckBoth([&](ReplyWriter& w) { w.BulkShared(block); }, "$0\r\n\r\n", "$0\r\n\r\n");
  block->Unref();
  InputBuffer input;
  input.Append(none);
  CHECK(input.size() == 0);
}

TEST_CASE("bulks of every size around the limits", "[reply]") {
  for (size_t size :
       {0, 1, 9, 10, 99, 100, 999, 1000, 1023, 1024, 4096, 16383, 16384, 16385, 100000}) {
    const std::string bytes(size, 'b');
    CHECK(Written(2, [&](ReplyWriter& w) { w.Bulk(bytes); }) ==
          "$" + std::to_string(size) + "\r\n" + bytes + "\r\n");
  }
}

TEST_CASE("deferred lengths, nested", "[reply]") {
  const auto write = [](ReplyWriter& w) {
    const auto outer = w.DeferMap();
    w.Bulk("a");
    const auto inner = w.DeferArray();
    for (int i = 0; i < 12; ++i) w.Integer(i);
    w.Close(inner, 12);
    w.Bulk("b");
    w.Close(w.DeferSet(), 0);
    w.Close(outer, 2);
    w.Ok();
  };
  std::string integers;
  for (int i = 0; i < 12; ++i) integers += ":" + std::to_string(i) + "\r\n";
  CheckBoth(write, "*4\r\n$1\r\na\r\n*12\r\n" + integers + "$1\r\nb\r\n*0\r\n+OK\r\n",
            "%2\r\n$1\r\na\r\n*12\r\n" + integers + "$1\r\nb\r\n~0\r\n+OK\r\n");
}

TEST_CASE("errors are counted with their prefix", "[reply]") {
  BlockPool pool;
  OutputChain chain(&pool);
  ReplyWriter writer(&chain);
  writer.Ok();
  CHECK(writer.errors() == 0);
  writer.Error("WRONGTYPE Operation against a key");
  CHECK(writer.errors() == 1);
  CHECK(writer.last_error_prefix() == "WRONGTYPE");
}

TEST_CASE("shared blocks are referenced, and released when sent or dropped", "[reply]") {
  BlockPool pool;
  SharedBlock* block = SharedBlock::Copy(std::string(50000, 's'));
  {
    OutputChain chain(&pool);
    ReplyWriter writer(&chain);
    writer.BulkShared(block);
    writer.BulkShared(block);
    CHECK_FALSE(block->unique());
    const std::string one = "$50000\r\n" + std::string(50000, 's') + "\r\n";
    CHECK(chain.ToString() == one + one);
    iovec pieces[8];
    CHECK(chain.Gather(pieces) == 5);
    CHECK(pieces[1].iov_base == block->data());
    chain.Consume(one.size());
    CHECK(chain.ToString() == one);
  }
  CHECK(block->unique());
  block->Unref();
}

// Appends of all kinds, gathers, partial sends, rewinds; the bytes that leave must be those of a
// plain string.
TEST_CASE("chains against a string", "[reply]") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    BlockPool pool;
    OutputChain chain(&pool);
    std::string expected;
    std::string sent;
    int references = 0;
    for (int step = 0; step < 200; ++step) {
      const std::string bytes(random() % (random() % 4 == 0 ? 40000 : 100),
                              static_cast<char>('a' + step % 26));
      const OutputChain::Mark mark = chain.Here();
      switch (random() % 4) {
        case 0:
          chain.Append(bytes);
          break;
        case 1: {
          auto* copy = new std::pair<std::string, int*>(bytes, &references);
          ++references;
          chain.AppendReference(copy->first, copy, [](void* owner) {
            auto* pair = static_cast<std::pair<std::string, int*>*>(owner);
            --*pair->second;
            delete pair;
          });
          break;
        }
        case 2: {
          const size_t gap = chain.OpenGap();
          chain.Append(bytes);
          chain.FillGap(gap, "<gap>");
          expected += "<gap>";
          break;
        }
        default:
          chain.Commit(chain.Reserve(100));
          chain.Append(bytes);
          break;
      }
      expected += bytes;
      if (random() % 5 == 0) {
        chain.Rewind(mark);
        expected.resize(mark.bytes_appended - chain.bytes_consumed());
      }
      REQUIRE(chain.bytes() == expected.size());
      if (random() % 3 != 0) continue;
      iovec pieces[4];
      const size_t count = chain.Gather(pieces, 1 + random() % 60000);
      std::string part;
      for (size_t i = 0; i < count; ++i)
        part.append(static_cast<char*>(pieces[i].iov_base), pieces[i].iov_len);
      REQUIRE(expected.starts_with(part));
      const size_t taken = part.empty() ? 0 : random() % (part.size() + 1);
      chain.Consume(taken);
      expected.erase(0, taken);
      REQUIRE(chain.ToString() == expected);
    }
    chain.Clear();
    CHECK(references == 0);
    CHECK(chain.empty());
  }
}

// (A sanitizer's pool keeps nothing; there the check for leaks tells whether the block was given back.)
TEST_CASE("an empty chain holds no block", "[reply]") {
  BlockPool pool;
  OutputChain chain(&pool);
  char* block = pool.Take();
  pool.Give(block);
  chain.Append("hello");
  iovec piece[1];
  REQUIRE(chain.Gather(piece) == 1);
  CHECK((kSanitized || piece[0].iov_base == block));
  chain.Consume(5);
  char* again = pool.Take();
  CHECK((kSanitized || again == block));
  pool.Give(again);
}

}  // namespace
}  // namespace hotkv
