#include "engine/base/resp.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/base/number.h"

namespace hotkv {

namespace {

constexpr int64_t kWholeArgsMax = 1024;  // requests with more arguments take the general path

// A length in its plain form: one to nine digits, no leading zero, then "\r\n". Returns -1 for
// everything else, complete or not, and leaves the position alone: the general path then decides.
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

// Splits an inline request into words, by the rules of redis-cli's prompt. A word without quotes is
// a view of the line; others are decoded into `decoded`.
class LineSplitter {
 public:
  LineSplitter(std::string_view line, std::deque<std::string>* decoded)
      : p_(line.data()), end_(line.data() + line.size()), decoded_(decoded) {}

  // The next word; empty at the end of the line or for unbalanced quotes, see failed().
  std::optional<std::string_view> Next() {
    while (p_ < end_ && IsBlank(*p_)) ++p_;
    if (AtWordEnd()) return std::nullopt;
    const char* const word = p_;
    while (!AtWordEnd() && *p_ != '"' && *p_ != '\'') ++p_;
    if (AtWordEnd()) return std::string_view(word, static_cast<size_t>(p_ - word));
    std::string& out = decoded_->emplace_back(word, p_);
    while (!AtWordEnd()) {
      const bool fine = *p_ == '"'    ? DoubleQuoted(&out)
                        : *p_ == '\'' ? SingleQuoted(&out)
                                      : Plain(&out);
      if (!fine) {
        failed_ = true;
        return std::nullopt;
      }
    }
    return out;
  }
  bool failed() const { return failed_; }

 private:
  bool Plain(std::string* out) {
    out->push_back(*p_++);
    return true;
  }

  // A zero byte ends the line, as in Redis.
  bool AtWordEnd() const { return p_ == end_ || IsBlank(*p_) || *p_ == '\0'; }

  // A closing quote must end the word.
  bool DoubleQuoted(std::string* out) {
    ++p_;
    while (p_ < end_ && *p_ != '\0') {
      if (*p_ == '"') {
        ++p_;
        return AtWordEnd();
      }
      if (*p_ == '\\' && end_ - p_ > 1) {
        Escape(out);
      } else {
        out->push_back(*p_++);
      }
    }
    return false;
  }

  void Escape(std::string* out) {
    if (p_[1] == 'x' && end_ - p_ > 3 && HexValue(p_[2]) >= 0 && HexValue(p_[3]) >= 0) {
      out->push_back(static_cast<char>(HexValue(p_[2]) * 16 + HexValue(p_[3])));
      p_ += 4;
      return;
    }
    char c = p_[1];
    switch (c) {
      case 'n':
        c = '\n';
        break;
      case 'r':
        c = '\r';
        break;
      case 't':
        c = '\t';
        break;
      case 'b':
        c = '\b';
        break;
      case 'a':
        c = '\a';
        break;
      default:
        break;
    }
    out->push_back(c);
    p_ += 2;
  }

  bool SingleQuoted(std::string* out) {
    ++p_;
    while (p_ < end_ && *p_ != '\0') {
      if (*p_ == '\'') {
        ++p_;
        return AtWordEnd();
      }
      if (*p_ == '\\' && end_ - p_ > 1 && p_[1] == '\'') ++p_;
      out->push_back(*p_++);
    }
    return false;
  }

  const char* p_;
  const char* const end_;
  std::deque<std::string>* const decoded_;
  bool failed_ = false;
};

}  // namespace

void RequestBatch::Clear() {
  requests_.clear();
  used_ = 0;
  if (!decoded_.empty()) decoded_.clear();
  if (args_.size() > kKeptArgsMax) {
    args_.resize(kKeptArgsMax);
    args_.shrink_to_fit();
  }
}

// The usual case: a request that lies in the buffer as a whole and in plain form. Returns where it
// ends, or 0 if it is anything else.
size_t RequestParser::ParseWhole(std::string_view data, size_t at, const ParseLimits& limits,
                                 RequestBatch* batch) {
  const char* p = data.data() + at + 1;
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
  const auto end_offset = static_cast<size_t>(p - data.data());
  batch->Add(static_cast<size_t>(count), end_offset);
  return end_offset;
}

RequestParser::Parsed RequestParser::Parse(std::string_view data, const ParseLimits& limits,
                                           RequestBatch* batch) {
  size_t consumed = 0;
  const size_t batch_end = batch->size() + limits.requests_max;
  while (consumed < data.size()) {
    if (batch->size() >= batch_end) return {Outcome::kFull, consumed};
    if (data[consumed] == '*' && scanned_ == 0 && limits.authenticated) [[likely]] {
      const size_t end_offset = ParseWhole(data, consumed, limits, batch);
      if (end_offset > 0) [[likely]] {
        consumed = end_offset;
        continue;
      }
    }
    const Request request = data[consumed] == '*' ? ParseMultibulk(data, consumed, limits, batch)
                                                  : ParseInline(data, consumed, batch);
    if (request.step == Step::kNeedMore) break;
    if (request.step == Step::kError) return {Outcome::kError, consumed};
    consumed = request.end_offset;
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

RequestParser::Step RequestParser::ParseCount(std::string_view data, const ParseLimits& limits) {
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

RequestParser::Step RequestParser::ParseBulkLength(std::string_view data,
                                                   const ParseLimits& limits) {
  const char* const begin = data.data() + scanned_;
  const size_t size = data.size() - scanned_;
  const auto* cr = size == 0 ? nullptr : static_cast<const char*>(std::memchr(begin, '\r', size));
  if (cr == nullptr)
    return size > kLineBytesMax ? Fail("too big bulk count string") : Step::kNeedMore;
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
RequestParser::Request RequestParser::ParseMultibulk(std::string_view data, size_t at,
                                                     const ParseLimits& limits,
                                                     RequestBatch* batch) {
  const std::string_view rest = data.substr(at);
  if (scanned_ == 0) {
    const Step step = ParseCount(rest, limits);
    if (step == Step::kSkipped) {
      const size_t end_offset = at + scanned_;
      ResetPartial();
      return {step, end_offset};
    }
    if (step != Step::kDone) return {step, 0};
  }
  while (missing_args_ > 0) {
    if (bulk_bytes_ < 0) {
      const Step step = ParseBulkLength(rest, limits);
      if (step != Step::kDone) return {step, 0};
    }
    const auto needed = static_cast<size_t>(bulk_bytes_) + 2;
    if (rest.size() - scanned_ < needed) {
      missing_bytes_ = needed - (rest.size() - scanned_);
      return {Step::kNeedMore, 0};
    }
    args_.push_back({scanned_, static_cast<size_t>(bulk_bytes_)});
    scanned_ += needed;
    bulk_bytes_ = -1;
    missing_bytes_ = 0;
    --missing_args_;
  }
  const size_t end_offset = at + scanned_;
  std::string_view* out = batch->Room(args_.size());
  for (const ArgSpan& arg : args_) *out++ = rest.substr(arg.offset, arg.size);
  batch->Add(args_.size(), end_offset);
  ResetPartial();
  return {Step::kDone, end_offset};
}

RequestParser::Request RequestParser::ParseInline(std::string_view data, size_t at,
                                                  RequestBatch* batch) {
  const std::string_view rest = data.substr(at);
  const size_t newline = rest.find('\n');
  if (newline == std::string_view::npos) {
    const bool too_long = rest.size() > kLineBytesMax;
    return {too_long ? Fail("too big inline request") : Step::kNeedMore, 0};
  }
  std::string_view line = rest.substr(0, newline);
  if (line.ends_with('\r')) line.remove_suffix(1);
  LineSplitter splitter(line, &batch->decoded_);
  size_t count = 0;
  while (const std::optional<std::string_view> word = splitter.Next()) {
    batch->Room(count + 1)[count] = *word;
    ++count;
  }
  if (splitter.failed()) return {Fail("unbalanced quotes in request"), 0};
  const size_t end_offset = at + newline + 1;
  if (count == 0) return {Step::kSkipped, end_offset};
  batch->Add(count, end_offset);
  return {Step::kDone, end_offset};
}

}  // namespace hotkv
