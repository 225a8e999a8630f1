// Counts whole replies in a stream of RESP2 or RESP3 bytes, however they are cut, without building them: the load
// generator has to be cheaper than the server that it measures.
//
// Thread rules: one thread. Errors: broken() once the bytes are not RESP.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hotkv {

class ReplyScanner {
 public:
  // Returns how many top-level replies these bytes completed.
  size_t Scan(std::string_view bytes);

  bool broken() const { return broken_; }
  uint64_t errors() const { return errors_; }
  const std::string& first_error() const { return first_error_; }
  uint64_t nulls() const { return nulls_; }

 private:
  void TakeLine(std::string_view line);

  std::string partial_line_;
  uint64_t skip_bytes_ = 0;  // left of a bulk string and its CRLF
  // Elements still missing of the reply under way, 0 between replies.
  uint64_t open_elements_ = 0;
  uint64_t errors_ = 0;
  uint64_t nulls_ = 0;
  std::string first_error_;
  bool broken_ = false;
};

}  // namespace hotkv
