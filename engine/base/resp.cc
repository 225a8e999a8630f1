#include "engine/base/resp.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/base/number.h"

namespace hotkv {

namespace {

constexpr int64_t kWholeArgsMax = 1024;  // requests with more arguments take the general path

// A length in its plain form: one to nine digits, no leading zero, then "\r\n". Returns -1 for everything else, complete
// or not, and leaves the position alone: the general path then decides.
inline int64_t PlainLength(const char** position, const char* end) {
  const char* p = *position;
  if (p == end) return -1;
  auto digit = static_cast<unsigned>(static_cast<unsigned char>(*p)) - '0';
  if (digit > 9) return -1;
  unsigned value = digit;
  const char* const last = p + 9;
  const bool zero = digit == 0;
  for (++p; p != end; ++p) {
    digit = static_cast<unsigned>(static_cast<unsigned char>(*p)) - '0';
    if (digit > 9) break;
    if (zero || p == last) return -1;
    value = value * 10 + digit;
  }
  if (end - p < 2 || *p != '\r') return -1;
  *position = p + 2;
  return value;
}

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Splits an inline request into words, by the rules of redis-cli's prompt, and decodes them where they stand (no escape
// is longer than what it stands for).
class LineSplitter {
 public:
  LineSplitter(char* begin, char* end) : p_(begin), end_(end), out_(begin) {}

  // The next word; empty at the end of the line or for unbalanced quotes, see failed().
  std::optional<std::string_view> Next() {
    while (p_ < end_ && IsBlank(*p_)) ++p_;
    if (p_ == end_ || *p_ == '\0') return std::nullopt;
    out_ = p_;
    char* const word = out_;
    while (p_ < end_ && !IsBlank(*p_) && *p_ != '\0') {
      const bool fine = *p_ == '"' ? DoubleQuoted() : *p_ == '\'' ? SingleQuoted() : Plain();
      if (!fine) {
        failed_ = true;
        return std::nullopt;
      }
    }
    return std::string_view(word, static_cast<size_t>(out_ - word));
  }
  bool failed() const { return failed_; }

 private:
  bool Plain() {
    *out_++ = *p_++;
    return true;
  }

  // A closing quote must end the word.
  bool AtWordEnd() const { return p_ == end_ || IsBlank(*p_) || *p_ == '\0'; }

  bool DoubleQuoted() {
    ++p_;
    while (p_ < end_ && *p_ != '\0') {
      if (*p_ == '"') {
        ++p_;
        return AtWordEnd();
      }
      if (*p_ == '\\' && end_ - p_ > 1) {
        Escape();
      } else {
        *out_++ = *p_++;
      }
    }
    return false;
  }

  void Escape() {
    if (p_[1] == 'x' && end_ - p_ > 3 && HexValue(p_[2]) >= 0 && HexValue(p_[3]) >= 0) {
      *out_++ = static_cast<char>(HexValue(p_[2]) * 16 + HexValue(p_[3]));
      p_ += 4;
      return;
    }
    char c = p_[1];
    switch (c) {
      case 'n': c = '\n'; break;
      case 'r': c = '\r'; break;
      case 't': c = '\t'; break;
      case 'b': c = '\b'; break;
      case 'a': c = '\a'; break;
      default: break;
    }
    *out_++ = c;
    p_ += 2;
  }

  bool SingleQuoted() {
    ++p_;
    while (p_ < end_ && *p_ != '\0') {
      if (*p_ == '\'') {
        ++p_;
        return AtWordEnd();
      }
      if (*p_ == '\\' && end_ - p_ > 1 && p_[1] == '\'') ++p_;
      *out_++ = *p_++;
    }
    return false;
  }

  char* p_;
  char* const end_;
  char* out_;
  bool failed_ = false;
};

}  // namespace

void RequestBatch::Clear() {
  requests_.clear();
  used_ = 0;
  if (args_.size() > kKeptArgsMax) {
    args_.resize(kKeptArgsMax);
    args_.shrink_to_fit();
  }
}

// The usual case: a request that lies in the buffer as a whole and in plain form. Returns its bytes, or 0 if it is
// anything else.
size_t RequestParser::ParseWhole(std::span<char> data, const ParseLimits& limits, RequestBatch* batch) {
  const char* p = data.data() + 1;
  const char* const end = data.data() + data.size();
  const int64_t count = PlainLength(&p, end);
  if (count <= 0 || count > kWholeArgsMax) return 0;
  std::string_view* arg = batch->Room(static_cast<size_t>(count));
  std::string_view* const args_end = arg + count;
  do {
    if (p == end || *p != '$') return 0;
    ++p;
    const int64_t size = PlainLength(&p, end);
    if (size < 0 || size > limits.bulk_bytes_max || end - p < size + 2) return 0;
    *arg = {p, static_cast<size_t>(size)};
    p += size + 2;
  } while (++arg != args_end);
  const auto bytes = static_cast<size_t>(p - data.data());
  batch->Add(static_cast<size_t>(count), bytes);
  return bytes;
}

RequestParser::Parsed RequestParser::Parse(std::span<char> data, const ParseLimits& limits,
                                           RequestBatch* batch) {
  size_t consumed = 0;
  const size_t batch_end = batch->size() + limits.requests_max;
  while (consumed < data.size()) {
    if (batch->size() >= batch_end) return {Outcome::kFull, consumed};
    const std::span<char> rest = data.subspan(consumed);
    if (rest[0] == '*' && scanned_ == 0 && limits.authenticated) [[likely]] {
      const size_t bytes = ParseWhole(rest, limits, batch);
      if (bytes > 0) [[likely]] {
        consumed += bytes;
        continue;
      }
    }
    const Request request =
        rest[0] == '*' ? ParseMultibulk(rest, limits, batch) : ParseInline(rest, batch);
    if (request.step == Step::kNeedMore) break;
    if (request.step == Step::kError) return {Outcome::kError, consumed};
    consumed += request.bytes;
  }
  return {Outcome::kNeedMore, consumed};
}

RequestParser::Step RequestParser::Fail(std::string text) {
  error_ = "Protocol error: " + std::move(text);
  ResetPartial();
  args_.shrink_to_fit();
  return Step::kError;
}

void RequestParser::ResetPartial() {
  scanned_ = 0;
  missing_args_ = 0;
  bulk_bytes_ = -1;
  missing_bytes_ = 0;
  args_.clear();
  if (args_.capacity() > 4096) args_.shrink_to_fit();
}

RequestParser::Step RequestParser::ParseCount(std::span<char> data, const ParseLimits& limits) {
  const auto* cr = static_cast<const char*>(std::memchr(data.data(), '\r', data.size()));
  if (cr == nullptr) {
    return data.size() > kLineBytesMax ? Fail("too big mbulk count string") : Step::kNeedMore;
  }
  const auto line = static_cast<size_t>(cr - data.data());
  if (data.size() - line < 2) return Step::kNeedMore;
  const std::optional<int64_t> count = ParseInt64({data.data() + 1, line - 1});
  if (!count || *count > kArgsMax) return Fail("invalid multibulk length");
  if (*count > kUnauthenticatedArgsMax && !limits.authenticated) {
    return Fail("unauthenticated multibulk length");
  }
  scanned_ = line + 2;
  missing_args_ = std::max<int64_t>(*count, 0);
  return *count > 0 ? Step::kDone : Step::kSkipped;
}

RequestParser::Step RequestParser::ParseBulkLength(std::span<char> data, const ParseLimits& limits) {
  const char* const begin = data.data() + scanned_;
  const size_t size = data.size() - scanned_;
  const auto* cr = size == 0 ? nullptr : static_cast<const char*>(std::memchr(begin, '\r', size));
  if (cr == nullptr) return size > kLineBytesMax ? Fail("too big bulk count string") : Step::kNeedMore;
  const auto line = static_cast<size_t>(cr - begin);
  if (size - line < 2) return Step::kNeedMore;
  if (*begin != '$') return Fail(std::string("expected '$', got '") + *begin + "'");
  const std::optional<int64_t> length = ParseInt64({begin + 1, line - 1});
  if (!length || *length < 0 || *length > limits.bulk_bytes_max) return Fail("invalid bulk length");
  if (*length > kUnauthenticatedBulkBytesMax && !limits.authenticated) {
    return Fail("unauthenticated bulk length");
  }
  bulk_bytes_ = *length;
  scanned_ += line + 2;
  return Step::kDone;
}

// The general path: goes as far as the bytes reach and goes on from there at the next call.
RequestParser::Request RequestParser::ParseMultibulk(std::span<char> data, const ParseLimits& limits,
                                                     RequestBatch* batch) {
  if (scanned_ == 0) {
    const Step step = ParseCount(data, limits);
    if (step == Step::kSkipped) {
      const size_t bytes = scanned_;
      ResetPartial();
      return {step, bytes};
    }
    if (step != Step::kDone) return {step, 0};
  }
  while (missing_args_ > 0) {
    if (bulk_bytes_ < 0) {
      const Step step = ParseBulkLength(data, limits);
      if (step != Step::kDone) return {step, 0};
    }
    const auto needed = static_cast<size_t>(bulk_bytes_) + 2;
    if (data.size() - scanned_ < needed) {
      missing_bytes_ = needed - (data.size() - scanned_);
      return {Step::kNeedMore, 0};
    }
    args_.push_back({scanned_, static_cast<size_t>(bulk_bytes_)});
    scanned_ += needed;
    bulk_bytes_ = -1;
    missing_bytes_ = 0;
    --missing_args_;
  }
  const size_t bytes = scanned_;
  std::string_view* out = batch->Room(args_.size());
  for (const ArgSpan& arg : args_) *out++ = {data.data() + arg.offset, arg.size};
  batch->Add(args_.size(), bytes);
  ResetPartial();
  return {Step::kDone, bytes};
}

RequestParser::Request RequestParser::ParseInline(std::span<char> data, RequestBatch* batch) {
  auto* newline = static_cast<char*>(std::memchr(data.data(), '\n', data.size()));
  if (newline == nullptr) {
    const bool too_long = data.size() > kLineBytesMax;
    return {too_long ? Fail("too big inline request") : Step::kNeedMore, 0};
  }
  const auto bytes = static_cast<size_t>(newline - data.data()) + 1;
  char* line_end = newline;
  if (line_end != data.data() && line_end[-1] == '\r') --line_end;
  LineSplitter splitter(data.data(), line_end);
  size_t count = 0;
  while (const std::optional<std::string_view> word = splitter.Next()) {
    batch->Room(count + 1)[count] = *word;
    ++count;
  }
  if (splitter.failed()) return {Fail("unbalanced quotes in request"), 0};
  if (count == 0) return {Step::kSkipped, bytes};
  batch->Add(count, bytes);
  return {Step::kDone, bytes};
}

}  // namespace hotkv
