// Lines of NDJSON: what is read writes a line that reads back as the same.
#include "tests/fuzz/fuzz_target.h"
#include "tools/hotkv_tool/ndjson.h"

namespace hotkv {
namespace {

bool Same(const Record& a, const Record& b) {
  return a.kind == b.kind && a.db == b.db && a.key == b.key && a.value == b.value &&
         a.expire_at_ms == b.expire_at_ms && a.id == b.id && a.attr == b.attr &&
         std::equal(a.vector.begin(), a.vector.end(), b.vector.begin(), b.vector.end()) && a.index == b.index;
}

std::vector<std::string> Seeds() {
  return {R"({"db":3,"key":"k","type":"string","expire_at_ms":1764500000000,"value":{"base64":"AP8="}})",
          R"({"key":"docs","type":"vectorset","value":{"dim":3,"metric":"COSINE","type":"F32","m":16,"ef_construction":200,"ef":100,"rerank":5,"fields":{"n":"NUMERIC","t":"TAG"}}})",
          R"({"db":0,"index":"docs","id":"a","vector":[1,0,-0.5e-3],"attr":{"lang":"en","n":[1.5,null,true]}})",
          R"({"index":"d","id":{"base64":"/w=="},"vector":{"base64":"AACAPwAAAEA="},"attr":"{ }"})",
          R"({"key":"v","type":"vectorset","value":{"dim":2,"type":"Q8","input_dim":8,"transient":true}})"};
}

}  // namespace
}  // namespace hotkv

HOTKV_FUZZ_TARGET(ndjson, hotkv::Seeds) {
  NdjsonLine first;
  if (!ParseNdjsonLine(input, &first).ok()) return;
  std::string text;
  HOTKV_CHECK(AppendNdjsonLine(first.record, &text).ok());
  HOTKV_CHECK(text.ends_with('\n'));
  NdjsonLine second;
  HOTKV_CHECK(ParseNdjsonLine(std::string_view(text).substr(0, text.size() - 1), &second).ok());
  HOTKV_CHECK(Same(first.record, second.record));
}
