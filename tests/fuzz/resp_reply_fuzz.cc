// Replies as clients and tools read them: the same values however the bytes are cut, and bounded by the limits.
#include "engine/base/resp_client.h"
#include "tests/fuzz/fuzz_target.h"

namespace hotkv {
namespace {

std::vector<std::string> ParseInSteps(std::string_view input, size_t step, bool* broken) {
  RespLimits limits;
  limits.bulk_bytes = 1 << 20;
  limits.items = 1 << 16;
  limits.depth = 16;
  RespReplyParser parser(limits);
  std::vector<std::string> values;
  for (size_t at = 0; at < input.size(); at += step) {
    parser.Feed(input.substr(at, step));
    for (;;) {
      Result<std::optional<RespValue>> value = parser.Next();
      if (!value.ok()) {
        *broken = true;
        return values;
      }
      if (!value->has_value()) break;
      values.push_back((*value)->ToString());
    }
  }
  return values;
}

std::vector<std::string> Seeds() {
  return {"+OK\r\n-ERR no\r\n:42\r\n$3\r\nabc\r\n$-1\r\n*-1\r\n*2\r\n:1\r\n*1\r\n+x\r\n",
          "%1\r\n+key\r\n,1.5\r\n~2\r\n#t\r\n#f\r\n_\r\n=7\r\ntxt:abc\r\n(12345678901234567890\r\n",
          ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n|1\r\n+a\r\n:1\r\n+OK\r\n!5\r\nERR x\r\n",
          "*1000000000\r\n", "$99999999999999999999\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"};
}

}  // namespace
}  // namespace hotkv

HOTKV_FUZZ_TARGET(resp_reply, hotkv::Seeds) {
  bool whole_broken = false;
  bool cut_broken = false;
  const std::vector<std::string> whole = ParseInSteps(input, input.size() + 1, &whole_broken);
  const std::vector<std::string> cut = ParseInSteps(input, 1, &cut_broken);
  HOTKV_CHECK(whole == cut);
  HOTKV_CHECK(whole_broken == cut_broken);
}
