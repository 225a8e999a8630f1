// A blocking RESP client for the tools and tests: address, connection, pipelining, replies as trees.
//
// RespReplyParser turns bytes, however they are cut, into RespValue trees (RESP2 and RESP3). It is made for a server
// that may be faulty: each length and the nesting are bounded, and memory grows with what arrived, not with what was
// announced. RespClient adds a socket with time limits.
//
// Thread rules: one thread at a time uses a client or parser. Errors: a broken connection, a time-out and bytes that
// are not RESP are a Status, after which the client is of no further use; an error *reply* is a RespValue of type
// kError.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace hotkv {

enum class RespType : uint8_t {
  kNull,
  kSimple,
  kError,  // also RESP3's bulk error
  kInteger,
  kBulk,
  kArray,
  kMap,  // items: key, value, key, value …
  kSet,
  kPush,
  kDouble,
  kBoolean,    // integer 0 or 1
  kBigNumber,  // text
  kVerbatim,   // text without its three-letter format
};

struct RespValue {
  RespType type = RespType::kNull;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<RespValue> items;

  bool is_error() const { return type == RespType::kError; }
  bool is_null() const { return type == RespType::kNull; }
  bool is_aggregate() const { return type >= RespType::kArray && type <= RespType::kPush; }
  // The value of a map's field, a map being a flat array of names and values under RESP2; null: it is not there.
  const RespValue* Field(std::string_view name) const;
  // For people and test failures: as redis-cli would print it, on one line.
  std::string ToString() const;
};

struct RespLimits {
  size_t bulk_bytes = size_t{1} << 30;
  size_t line_bytes = size_t{1} << 20;
  size_t items = size_t{1} << 28;  // of one aggregate
  size_t depth = 64;
};

class RespReplyParser {
 public:
  explicit RespReplyParser(RespLimits limits = {}) : limits_(limits) {}

  void Feed(std::string_view bytes);
  // The next whole reply, nothing if more bytes are needed, kCorruption if this is not RESP (for good).
  // Attributes (RESP3 "|") are read and dropped.
  Result<std::optional<RespValue>> Next();

 private:
  struct Frame {
    RespValue value;
    size_t missing = 0;
    bool is_attribute = false;
  };
  enum class Step : uint8_t { kDone, kNeedMore };

  Result<Step> ParseOne(std::optional<RespValue>* finished);
  Result<Step> ParseBulk(char kind, int64_t length, size_t line_end,
                         std::optional<RespValue>* finished);
  Result<RespValue> ParseScalar(char kind, std::string_view line);
  Status OpenAggregate(char kind, int64_t length);
  Result<std::optional<std::string_view>> Line(size_t* line_end);
  void Attach(RespValue value, std::optional<RespValue>* finished);

  RespLimits limits_;
  std::string buffer_;
  size_t position_ = 0;
  std::vector<Frame> stack_;
  bool broken_ = false;
};

// redis://[user[:password]@]host[:port][/database], unix:///path/to/socket[?db=n], host:port, or a path to a socket.
struct RespAddress {
  std::string host = "127.0.0.1";
  uint16_t port = 6379;
  std::string socket_path;  // not empty: a Unix socket
  std::string user;
  std::string password;
  int database = 0;

  static Result<RespAddress> Parse(std::string_view url);
  std::string ToString() const;  // without the password
};

struct RespClientOptions {
  int connect_timeout_ms = 5000;
  int reply_timeout_ms = 60000;
  int protocol = 2;  // 3: HELLO 3
  RespLimits limits;
};

// Connects a stream socket; the caller owns the descriptor. No handshake.
Result<int> ConnectSocket(const RespAddress& address, int timeout_ms);

// Appends a command in wire form ("*2\r\n$3\r\nGET\r\n…").
void AppendRespCommand(std::span<const std::string_view> args, std::string* out);
void AppendRespCommand(std::initializer_list<std::string_view> args, std::string* out);

class RespClient {
 public:
  // Connects, authenticates, chooses protocol and database as the address says.
  static Result<std::unique_ptr<RespClient>> Connect(const RespAddress& address,
                                                     RespClientOptions options = {});
  ~RespClient();
  RespClient(const RespClient&) = delete;
  RespClient& operator=(const RespClient&) = delete;

  // One command, one reply. Pushes that arrive meanwhile are kept for TakePushes().
  Result<RespValue> Call(std::span<const std::string_view> args);
  Result<RespValue> Call(std::initializer_list<std::string_view> args);
  // As Call, but an error reply is a Status too (kInvalidArgument with its text).
  Result<RespValue> CallOk(std::initializer_list<std::string_view> args);

  // Pipelining: Append any number, Flush, then Read as often. A pipeline whose replies fill the socket's buffers before
  // it has been sent is read ahead by Flush, so that both sides never wait for one another.
  void Append(std::span<const std::string_view> args) { AppendRespCommand(args, &out_); }
  void Append(std::initializer_list<std::string_view> args) { AppendRespCommand(args, &out_); }
  void AppendRaw(std::string_view bytes) { out_.append(bytes); }
  Status Flush();
  Result<RespValue> Read();

  std::vector<RespValue> TakePushes();
  int fd() const { return fd_; }

 private:
  RespClient(int fd, RespClientOptions options)
      : fd_(fd), options_(options), parser_(options.limits) {}
  Status Handshake(const RespAddress& address);
  Status WaitFor(short events, short* got);
  Status ReadSome();

  int fd_;
  RespClientOptions options_;
  RespReplyParser parser_;
  std::string out_;
  std::vector<RespValue> pushes_;
};

}  // namespace hotkv
