// ReplyWriter encodes RESP2 or RESP3 replies straight into a connection's output chain. Command
// handlers see only this class: they say what they answer (a map, a null, a double), and it comes
// out in the client's protocol.
//
// Invariant: a handler writes exactly one reply, aggregates with as many elements as their header
// says. Errors are given with their prefix ("ERR syntax error"); line breaks in errors and simple
// strings become blanks.
//
// Thread rules: as the chain it writes to: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/base/buffer.h"
#include "engine/base/number.h"

namespace hotkv {

namespace reply_internal {
struct Header {
  char text[7];
  uint8_t size;
};
inline constexpr size_t kReadyHeaders = 1024;
using Headers = std::array<Header, kReadyHeaders>;
extern const Headers kBulkHeaders;   // "$0\r\n" to "$1023\r\n"
extern const Headers kArrayHeaders;  // "*0\r\n" to "*1023\r\n"
}  // namespace reply_internal

class ReplyWriter {
 public:
  // Bulks from this size on are referenced instead of copied where the caller can share them.
  static constexpr size_t kReferenceBytesMin = size_t{16} << 10;

  explicit ReplyWriter(OutputChain* out, int version = 2) : resp_version(version), out_(out) {}

  int resp_version;  // 2 or 3
  bool resp3() const { return resp_version == 3; }
  OutputChain* chain() { return out_; }
  void set_chain(OutputChain* out) { out_ = out; }

  void Ok() { Constant("+OK\r\n"); }
  void Simple(std::string_view text);
  // The text with its prefix, without '-' and line end.
  void Error(std::string_view text);
  void Integer(int64_t value) {
    char* p = out_->Reserve(24);
    *p++ = ':';
    p = WriteInt64(p, value);
    out_->Commit(LineEnd(p));
  }
  void Bulk(std::string_view bytes) {
    if (bytes.size() < reply_internal::kReadyHeaders) [[likely]] {
      const reply_internal::Header& header = reply_internal::kBulkHeaders[bytes.size()];
      char* p = out_->Reserve(bytes.size() + 16);
      std::memcpy(p, &header, 8);
      p += header.size;
      if (!bytes.empty()) std::memcpy(p, bytes.data(), bytes.size());  // an empty view may be null
      out_->Commit(LineEnd(p + bytes.size()));
      return;
    }
    LongBulk(bytes);
  }
  void BulkInt(int64_t value);
  // A bulk whose bytes are not copied: release(owner) is called once they are sent (or dropped).
  // The caller has taken the reference that is given up then. Small ones are copied and released at
  // once.
  void BulkReference(std::string_view bytes, void* owner, void (*release)(void*));
  // Takes a reference of its own.
  void BulkShared(SharedBlock* block);
  // Several parts as one bulk.
  void BulkHeader(size_t size) { Header('$', size, reply_internal::kBulkHeaders); }
  void RawBytes(std::string_view bytes) { out_->Append(bytes); }
  void BulkEnd() { Constant("\r\n"); }

  void Null() { resp3() ? Constant("_\r\n") : Constant("$-1\r\n"); }
  void NullArray() { resp3() ? Constant("_\r\n") : Constant("*-1\r\n"); }
  void ArrayHeader(size_t count) { Header('*', count, reply_internal::kArrayHeaders); }
  void EmptyArray() { Constant("*0\r\n"); }
  // RESP2: an array of 2 * pairs.
  void MapHeader(size_t pairs) { resp3() ? Header('%', pairs) : ArrayHeader(pairs * 2); }
  void SetHeader(size_t count) { resp3() ? Header('~', count) : ArrayHeader(count); }
  void PushHeader(size_t count) { resp3() ? Header('>', count) : ArrayHeader(count); }
  // RESP3 only: attributes precede a reply; nothing in RESP2 (the caller then leaves the pairs
  // out).
  void AttributeHeader(size_t pairs) { Header('|', pairs); }
  // RESP2: a bulk.
  void Double(double value);
  void BigNumber(std::string_view digits);
  void Verbatim(std::string_view format3, std::string_view text);
  // RESP2: :1 or :0.
  void Bool(bool value) {
    resp3() ? Constant(value ? "#t\r\n" : "#f\r\n") : Constant(value ? ":1\r\n" : ":0\r\n");
  }
  // A reply that is RESP already.
  void Raw(std::string_view resp) { out_->Append(resp); }

  // Aggregates whose length is known only at their end. Close every one that was opened; they may
  // be nested.
  struct Deferred {
    size_t gap;
    char kind;  // '*', '%', '~' or '>'
  };
  Deferred DeferArray() { return {out_->OpenGap(), '*'}; }
  Deferred DeferMap() { return {out_->OpenGap(), '%'}; }
  Deferred DeferSet() { return {out_->OpenGap(), '~'}; }
  Deferred DeferPush() { return {out_->OpenGap(), '>'}; }
  // count: pairs for a map.
  void Close(Deferred deferred, size_t count);

  // The reply has grown over the client's limit and is lost: a handler with a long one may stop.
  bool overflowed() const { return out_->overflowed(); }

  // Errors written so far, and the prefix of the last one ("WRONGTYPE"): what statistics need after
  // a command.
  uint64_t errors() const { return errors_; }
  std::string_view last_error_prefix() const {
    return {last_error_prefix_, last_error_prefix_size_};
  }

 private:
  static char* LineEnd(char* p) {
    std::memcpy(p, "\r\n", 2);
    return p + 2;
  }
  template <size_t N>
  void Constant(const char (&text)[N]) {
    char* p = out_->Reserve(8);
    std::memcpy(p, text, N - 1);
    out_->Commit(p + N - 1);
  }
  void Header(char kind, size_t count);
  void Header(char kind, size_t count, const reply_internal::Headers& ready) {
    if (count >= reply_internal::kReadyHeaders) [[unlikely]]
      return Header(kind, count);
    char* p = out_->Reserve(8);
    std::memcpy(p, &ready[count], 8);
    out_->Commit(p + ready[count].size);
  }
  void LongBulk(std::string_view bytes);
  void Line(char kind, std::string_view text);

  OutputChain* out_;
  uint64_t errors_ = 0;
  uint8_t last_error_prefix_size_ = 0;
  char last_error_prefix_[31] = {};
};

}  // namespace hotkv
