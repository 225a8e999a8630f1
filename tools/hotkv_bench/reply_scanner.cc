#include "tools/hotkv_bench/reply_scanner.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace hotkv {

// A line without its CRLF. Sets skip_bytes_ and open_elements_; one element of the reply is then accounted for.
void ReplyScanner::TakeLine(std::string_view line) {
  if (open_elements_ == 0) open_elements_ = 1;
  const char kind = line.empty() ? '\0' : line[0];
  const bool has_length = kind == '$' || kind == '*' || kind == '%' || kind == '~' || kind == '>' ||
                          kind == '=' || kind == '!' || kind == '|';
  int64_t length = 0;
  if (has_length) {
    const auto [end, error] = std::from_chars(line.data() + 1, line.data() + line.size(), length);
    if (error != std::errc() || end != line.data() + line.size() || length < -1) broken_ = true;
  } else if (std::memchr("+-:,_#(", kind, 7) == nullptr) {
    broken_ = true;
  }
  if (broken_) return;
  --open_elements_;
  if (kind == '-' || kind == '!') {
    ++errors_;
    if (first_error_.empty()) first_error_ = line;
  }
  if (kind == '_' || (length == -1 && has_length)) ++nulls_;
  if (!has_length || length < 0) return;
  const auto count = static_cast<uint64_t>(length);
  if (kind == '$' || kind == '=' || kind == '!') {
    skip_bytes_ = count + 2;
  } else {
    open_elements_ += kind == '%' ? 2 * count : kind == '|' ? 2 * count + 1 : count;
  }
}

size_t ReplyScanner::Scan(std::string_view bytes) {
  size_t finished = 0;
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  while (p < end && !broken_) {
    if (skip_bytes_ > 0) {
      const auto step = std::min<uint64_t>(skip_bytes_, static_cast<uint64_t>(end - p));
      p += step;
      skip_bytes_ -= step;
      if (skip_bytes_ == 0 && open_elements_ == 0) ++finished;
      continue;
    }
    const char* newline = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
    if (newline == nullptr) {
      partial_line_.append(p, end);
      break;
    }
    std::string_view line(p, static_cast<size_t>(newline - p));
    if (!partial_line_.empty()) {
      partial_line_.append(line);
      line = partial_line_;
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    TakeLine(line);
    partial_line_.clear();
    p = newline + 1;
    if (skip_bytes_ == 0 && open_elements_ == 0 && !broken_) ++finished;
  }
  return finished;
}

}  // namespace hotkv
