// Requests as they come over a socket: the same commands and the same error however the bytes are cut, and Redis's limits.
#include "engine/base/resp.h"
#include "engine/base/resp_client.h"
#include "tests/fuzz/fuzz_target.h"

namespace hotkv {
namespace {

struct ParsedRequests {
  std::vector<std::vector<std::string>> commands;
  std::string error;
  size_t left = 0;  // bytes that are no whole request
  bool operator==(const ParsedRequests&) const = default;
};

// Feeds the input in steps of `step` bytes, dropping what was consumed as a connection does.
ParsedRequests ParseInSteps(std::string_view input, size_t step, bool authenticated) {
  ParsedRequests out;
  RequestParser parser;
  std::string buffer;
  ParseLimits limits;
  limits.bulk_bytes_max = 1 << 20;
  limits.requests_max = 7;
  limits.authenticated = authenticated;
  for (size_t at = 0; at < input.size() || at == 0; at += step) {
    buffer.append(input.substr(at, step));
    for (;;) {
      RequestBatch batch;
      const RequestParser::Parsed parsed = parser.Parse(buffer, limits, &batch);
      HOTKV_CHECK(parsed.consumed <= buffer.size());
      for (size_t i = 0; i < batch.size(); ++i) {
        std::vector<std::string>& command = out.commands.emplace_back();
        for (const std::string_view arg : batch[i]) command.emplace_back(arg);
      }
      buffer.erase(0, parsed.consumed);
      if (parsed.outcome == RequestParser::Outcome::kError) {
        HOTKV_CHECK(!parser.error().empty());
        out.error = parser.error();
        return out;
      }
      if (parsed.outcome == RequestParser::Outcome::kNeedMore) break;
    }
  }
  out.left = buffer.size();
  return out;
}

std::vector<std::string> Seeds() {
  std::string pipeline;
  AppendRespCommand({"SET", "key", std::string(200, 'v')}, &pipeline);
  AppendRespCommand({"GET", "key"}, &pipeline);
  AppendRespCommand({"MSET", "", "\r\n", "b", "2"}, &pipeline);
  return {pipeline,
          "PING\r\nSET a \"two words\\x41\\n\"\nGET 'it\\'s'\r\n\r\n",
          "*-1\r\n*0\r\n*1\r\n$4\r\nPING\r\n",
          "*2\r\n$3\r\nGET\r\n$abc\r\n",
          "*2147483648\r\n",
          "*1\r\n$-1\r\n",
          "*1\r\n$9223372036854775808\r\n",
          "*2\r\n$3\r\nGET\r\nx3\r\n",
          "*2\r\n$4\r\nAUTH\r\n$16385\r\n",
          "SET a \"unbalanced\r\n"};
}

}  // namespace
}  // namespace hotkv

HOTKV_FUZZ_TARGET(resp_request, hotkv::Seeds) {
  for (const bool authenticated : {true, false}) {
    const ParsedRequests whole = ParseInSteps(input, input.size() + 1, authenticated);
    const size_t steps[] = {1, 1 + input.size() / 3};
    for (const size_t step : steps) {
      const ParsedRequests cut = ParseInSteps(input, step, authenticated);
      HOTKV_CHECK(cut.commands == whole.commands);
      HOTKV_CHECK(cut.error == whole.error);
    }
  }
}
