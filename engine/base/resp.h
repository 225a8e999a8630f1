// RequestParser reads client requests, multibulk and inline, out of a contiguous buffer: a whole
// pipeline at once and without copying. The result is the same however the bytes are cut into
// reads; errors and limits are Redis's.
//
// Contract: Parse is given the bytes from the first one not consumed yet. What it consumed may be
// dropped once the batch has been executed (its arguments point into those bytes); the rest is kept
// and given again with more behind it. An incomplete request is not scanned twice: the parser
// remembers how far it came. Memory grows with what was received, never with what a header
// announces. Only quoted words of inline requests are copied, into the batch.
//
// Thread rules: a parser belongs to its connection's thread. Errors: kError with error(), after
// which the connection is to be closed; requests before the faulty one are in the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hotkv {

// Arguments of several requests, one after the other. Kept and reused, so that parsing does not
// allocate.
class RequestBatch {
 public:
  size_t size() const { return requests_.size(); }
  bool empty() const { return requests_.empty(); }
  std::span<const std::string_view> operator[](size_t i) const {
    return {args_.data() + requests_[i].first, requests_[i].count};
  }
  // Where the request ended in the bytes given to Parse: what can be dropped when it is the last
  // one that was executed.
  size_t EndOffset(size_t i) const { return requests_[i].end_offset; }
  void Clear();

 private:
  friend class RequestParser;
  struct Request {
    size_t first;
    size_t count;
    size_t end_offset;
  };
  static constexpr size_t kKeptArgsMax = 16384;

  // Room for `count` more arguments behind the used ones.
  std::string_view* Room(size_t count) {
    if (args_.size() - used_ < count) [[unlikely]]
      args_.resize(used_ * 2 + count);
    return args_.data() + used_;
  }
  void Add(size_t count, size_t end_offset) {
    requests_.push_back({used_, count, end_offset});
    used_ += count;
  }

  std::vector<std::string_view> args_;  // [0, used_) are in use
  size_t used_ = 0;
  std::vector<Request> requests_;
  std::deque<std::string>
      decoded_;  // quoted words of inline requests; a deque, since views point into them
};

struct ParseLimits {
  int64_t bulk_bytes_max = int64_t{512} << 20;  // proto-max-bulk-len
  size_t requests_max = 4096;                   // of one call
  bool authenticated = true;                    // else small requests only
};

class RequestParser {
 public:
  enum class Outcome : uint8_t {
    kNeedMore,  // every complete request is in the batch
    kFull,      // requests_max reached, perhaps more complete ones are left
    kError,
  };
  struct Parsed {
    Outcome outcome = Outcome::kNeedMore;
    size_t consumed = 0;
  };

  // Appends to the batch, which is empty or was filled from the same bytes.
  Parsed Parse(std::string_view data, const ParseLimits& limits, RequestBatch* batch);

  // Forgets the incomplete request: before bytes that were parsed already are given again.
  void Rewind() { ResetPartial(); }
  // "Protocol error: ...", after kError.
  const std::string& error() const { return error_; }
  // True in the midst of a request.
  bool partial() const { return scanned_ > 0; }
  // How many more bytes the argument being received needs at least: a hint for the size of the next
  // read.
  size_t missing_bytes() const { return missing_bytes_; }

  static constexpr size_t kLineBytesMax = size_t{64} << 10;
  static constexpr int64_t kArgsMax = 2147483647;
  static constexpr int64_t kUnauthenticatedArgsMax = 10;
  static constexpr int64_t kUnauthenticatedBulkBytesMax = 16384;

 private:
  enum class Step : uint8_t { kDone, kSkipped, kNeedMore, kError };
  struct ArgSpan {
    size_t offset;
    size_t size;
  };
  // `at`: where the request begins. The offset is where it ended.
  struct Request {
    Step step;
    size_t end_offset;
  };

  static size_t ParseWhole(std::string_view data, size_t at, const ParseLimits& limits,
                           RequestBatch* batch);
  Request ParseMultibulk(std::string_view data, size_t at, const ParseLimits& limits,
                         RequestBatch* batch);
  Step ParseCount(std::string_view rest, const ParseLimits& limits);
  Step ParseBulkLength(std::string_view rest, const ParseLimits& limits);
  Request ParseInline(std::string_view data, size_t at, RequestBatch* batch);
  Step Fail(std::string text);
  void ResetPartial();

  // The request that is being received; offsets count from its first byte.
  size_t scanned_ = 0;
  int64_t missing_args_ = 0;
  int64_t bulk_bytes_ = -1;  // of the argument being received, -1: its header has not come yet
  std::vector<ArgSpan> args_;
  size_t missing_bytes_ = 0;
  std::string error_;
};

}  // namespace hotkv
