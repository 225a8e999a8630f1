#include "engine/base/resp_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace hotkv {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// Announced item counts are only trusted this far for reserving memory.
constexpr size_t kReserveMax = 1024;

Status NotResp(std::string_view what) {
  return Status::Corruption(fmt::format("reply is not RESP: {}", what));
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> ParseDouble(std::string_view text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan" || text == "-nan") return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

RespType AggregateType(char kind) {
  switch (kind) {
    case '%':
    case '|': return RespType::kMap;
    case '~': return RespType::kSet;
    case '>': return RespType::kPush;
    default: return RespType::kArray;
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------- parser

void RespReplyParser::Feed(std::string_view bytes) {
  if (position_ > 0 && (position_ == buffer_.size() || position_ >= kReadBytes)) {
    buffer_.erase(0, position_);
    position_ = 0;
  }
  buffer_.append(bytes);
}

Result<std::optional<RespValue>> RespReplyParser::Next() {
  if (broken_) return NotResp("earlier bytes were malformed");
  std::optional<RespValue> finished;
  while (!finished.has_value()) {
    auto step = ParseOne(&finished);
    if (!step.ok()) {
      broken_ = true;
      return std::move(step).status();
    }
    if (*step == Step::kNeedMore) break;
  }
  return finished;
}

// The text between the type byte and CRLF; nothing when it has not all arrived. Nothing is consumed.
Result<std::optional<std::string_view>> RespReplyParser::Line(size_t* line_end) {
  const std::string_view rest = std::string_view(buffer_).substr(position_);
  const size_t end = rest.find('\r');
  if (end > limits_.line_bytes && rest.size() > limits_.line_bytes) return NotResp("line too long");
  if (end == std::string_view::npos || end + 1 >= rest.size()) {
    return std::optional<std::string_view>();
  }
  if (rest[end + 1] != '\n') return NotResp("CR without LF");
  *line_end = position_ + end + 2;
  return std::optional<std::string_view>(rest.substr(1, end - 1));
}

// Hands a finished value to the innermost open aggregate, and closes those that are thereby complete.
void RespReplyParser::Attach(RespValue value, std::optional<RespValue>* finished) {
  for (;;) {
    if (stack_.empty()) {
      *finished = std::move(value);
      return;
    }
    Frame& top = stack_.back();
    top.value.items.push_back(std::move(value));
    if (--top.missing > 0) return;
    const bool drop = top.is_attribute;
    value = std::move(top.value);
    stack_.pop_back();
    if (drop) return;
  }
}

Status RespReplyParser::OpenAggregate(char kind, int64_t length) {
  const size_t factor = kind == '%' || kind == '|' ? 2 : 1;
  if (length < 0 || static_cast<uint64_t>(length) > limits_.items / factor) {
    return NotResp("bad aggregate length");
  }
  if (stack_.size() >= limits_.depth) return NotResp("nested too deeply");
  Frame frame;
  frame.value.type = AggregateType(kind);
  frame.missing = static_cast<size_t>(length) * factor;
  frame.is_attribute = kind == '|';
  frame.value.items.reserve(std::min(frame.missing, kReserveMax));
  stack_.push_back(std::move(frame));
  return {};
}

Result<RespReplyParser::Step> RespReplyParser::ParseBulk(char kind, int64_t length, size_t line_end,
                                                         std::optional<RespValue>* finished) {
  if (length < 0 || static_cast<uint64_t>(length) > limits_.bulk_bytes) {
    return NotResp("bad bulk length");
  }
  const auto bytes = static_cast<size_t>(length);
  if (buffer_.size() - line_end < bytes + 2) return Step::kNeedMore;
  if (buffer_.compare(line_end + bytes, 2, "\r\n") != 0) return NotResp("bulk without CRLF");
  std::string_view text = std::string_view(buffer_).substr(line_end, bytes);
  RespValue value;
  value.type = kind == '$'   ? RespType::kBulk
               : kind == '!' ? RespType::kError
                             : RespType::kVerbatim;
  if (value.type == RespType::kVerbatim) {
    if (text.size() < 4 || text[3] != ':') return NotResp("bad verbatim string");
    text.remove_prefix(4);
  }
  value.text = text;
  position_ = line_end + bytes + 2;
  Attach(std::move(value), finished);
  return Step::kDone;
}

// What stands whole on its line.
Result<RespValue> RespReplyParser::ParseScalar(char kind, std::string_view line) {
  RespValue value;
  switch (kind) {
    case '+': value.type = RespType::kSimple; break;
    case '-': value.type = RespType::kError; break;
    case '(': value.type = RespType::kBigNumber; break;
    case '_': return value;
    case '#':
      if (line != "t" && line != "f") return NotResp("bad boolean");
      value.type = RespType::kBoolean;
      value.integer = line == "t";
      return value;
    case ':': {
      const auto number = ParseInteger(line);
      if (!number) return NotResp("bad integer");
      value.type = RespType::kInteger;
      value.integer = *number;
      return value;
    }
    case ',': {
      const auto number = ParseDouble(line);
      if (!number) return NotResp("bad double");
      value.type = RespType::kDouble;
      value.number = *number;
      break;
    }
    default: return NotResp(fmt::format("unknown type byte {:#04x}", static_cast<uint8_t>(kind)));
  }
  value.text = line;
  return value;
}

Result<RespReplyParser::Step> RespReplyParser::ParseOne(std::optional<RespValue>* finished) {
  if (position_ >= buffer_.size()) return Step::kNeedMore;
  const char kind = buffer_[position_];
  size_t line_end = 0;
  HOTKV_ASSIGN_OR_RETURN(auto line, Line(&line_end));
  if (!line.has_value()) return Step::kNeedMore;
  const bool is_bulk = kind == '$' || kind == '!' || kind == '=';
  const bool is_aggregate = kind == '*' || kind == '%' || kind == '~' || kind == '>' || kind == '|';
  if (!is_bulk && !is_aggregate) {
    HOTKV_ASSIGN_OR_RETURN(RespValue value, ParseScalar(kind, *line));
    position_ = line_end;
    Attach(std::move(value), finished);
    return Step::kDone;
  }
  const auto length = ParseInteger(*line);
  if (!length) return NotResp("bad length");
  if (*length == -1 && (kind == '$' || kind == '*')) {  // RESP2's null
    position_ = line_end;
    Attach(RespValue(), finished);
    return Step::kDone;
  }
  if (is_bulk) return ParseBulk(kind, *length, line_end, finished);
  HOTKV_RETURN_IF_ERROR(OpenAggregate(kind, *length));
  position_ = line_end;
  if (stack_.back().missing == 0) {
    Frame empty = std::move(stack_.back());
    stack_.pop_back();
    if (!empty.is_attribute) Attach(std::move(empty.value), finished);
  }
  return Step::kDone;
}

const RespValue* RespValue::Field(std::string_view name) const {
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].text == name) return &items[i + 1];
  }
  return nullptr;
}

std::string RespValue::ToString() const {
  switch (type) {
    case RespType::kNull: return "(nil)";
    case RespType::kSimple:
    case RespType::kBigNumber:
    case RespType::kDouble: return text;
    case RespType::kError: return "(error) " + text;
    case RespType::kInteger: return fmt::format("(integer) {}", integer);
    case RespType::kBoolean: return integer != 0 ? "(true)" : "(false)";
    case RespType::kBulk:
    case RespType::kVerbatim: return "\"" + text + "\"";
    default: break;
  }
  std::string out = type == RespType::kMap ? "{" : "[";
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += type == RespType::kMap && i % 2 == 1 ? ": " : ", ";
    out += items[i].ToString();
  }
  return out + (type == RespType::kMap ? "}" : "]");
}

// ---------------------------------------------------------------------------------------------- address

namespace {

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr ==
            text.data() + i + 3) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

Status ParseDatabase(std::string_view text, RespAddress* address) {
  const auto number = ParseInteger(text);
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) {
    return Status::InvalidArgument(fmt::format("not a database number: '{}'", text));
  }
  address->database = static_cast<int>(*number);
  return {};
}

Status ParseHostPort(std::string_view text, RespAddress* address) {
  std::string_view port;
  if (text.starts_with('[')) {  // [::1]:6379
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return Status::InvalidArgument("'[' without ']'");
    address->host = text.substr(1, close - 1);
    if (close + 1 < text.size() && text[close + 1] == ':') port = text.substr(close + 2);
  } else if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    if (colon > 0) address->host = text.substr(0, colon);
    port = text.substr(colon + 1);
  } else if (!text.empty()) {
    address->host = text;
  }
  if (port.empty()) return {};
  const auto number = ParseInteger(port);
  if (!number || *number < 1 || *number > 65535) {
    return Status::InvalidArgument(fmt::format("not a port: '{}'", port));
  }
  address->port = static_cast<uint16_t>(*number);
  return {};
}

Status ParseSocketUrl(std::string_view rest, RespAddress* address) {
  const size_t query = rest.find("?db=");
  if (query != std::string_view::npos) {
    HOTKV_RETURN_IF_ERROR(ParseDatabase(rest.substr(query + 4), address));
  }
  address->socket_path = rest.substr(0, query);
  if (address->socket_path.empty()) return Status::InvalidArgument("no socket path in the URL");
  return {};
}

}  // namespace

Result<RespAddress> RespAddress::Parse(std::string_view url) {
  RespAddress address;
  std::string_view rest = url;
  if (rest.starts_with("unix://")) {
    HOTKV_RETURN_IF_ERROR(ParseSocketUrl(rest.substr(7), &address));
    return address;
  }
  if (rest.starts_with('/') || rest.starts_with("./")) {
    address.socket_path = rest;
    return address;
  }
  const size_t scheme = rest.find("://");
  if (scheme != std::string_view::npos) {
    if (rest.substr(0, scheme) != "redis" && rest.substr(0, scheme) != "hotkv") {
      return Status::InvalidArgument(fmt::format("unknown scheme in '{}'", url));
    }
    rest.remove_prefix(scheme + 3);
    if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
      const std::string_view login = rest.substr(0, at);
      const size_t colon = login.find(':');
      address.user = PercentDecode(login.substr(0, colon));
      if (colon != std::string_view::npos) {
        address.password = PercentDecode(login.substr(colon + 1));
      } else {
        std::swap(address.user, address.password);  // redis://secret@host
      }
      rest.remove_prefix(at + 1);
    }
    if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
      if (slash + 1 < rest.size()) {
        HOTKV_RETURN_IF_ERROR(ParseDatabase(rest.substr(slash + 1), &address));
      }
      rest = rest.substr(0, slash);
    }
  }
  HOTKV_RETURN_IF_ERROR(ParseHostPort(rest, &address));
  return address;
}

std::string RespAddress::ToString() const {
  if (!socket_path.empty()) return "unix://" + socket_path;
  return fmt::format("redis://{}:{}/{}", host, port, database);
}

// ---------------------------------------------------------------------------------------------- socket

namespace {

Status ConnectWithin(int fd, const sockaddr* address, socklen_t length, int timeout_ms) {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  int error = ::connect(fd, address, length) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waiting{fd, POLLOUT, 0};
    socklen_t error_length = sizeof(error);
    if (::poll(&waiting, 1, timeout_ms) <= 0) {
      error = ETIMEDOUT;
    } else if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_length) != 0) {
      error = errno;
    }
  }
  ::fcntl(fd, F_SETFL, flags);
  return error == 0 ? Status() : Status::FromErrno(error, "connect", "");
}

Result<int> ConnectUnix(const RespAddress& address, int timeout_ms) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address.socket_path.size() >= sizeof(name.sun_path)) {
    return Status::InvalidArgument("socket path too long");
  }
  std::memcpy(name.sun_path, address.socket_path.data(), address.socket_path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Status::FromErrno(errno, "socket", address.socket_path);
  Status status = ConnectWithin(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name), timeout_ms);
  if (status.ok()) return fd;
  ::close(fd);
  return Status::FromErrno(status.sys_errno(), "connect", address.socket_path);
}

}  // namespace

Result<int> ConnectSocket(const RespAddress& address, int timeout_ms) {
  if (!address.socket_path.empty()) return ConnectUnix(address, timeout_ms);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int failure = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  if (failure != 0) {
    return Status::NotFound(fmt::format("{}: {}", address.host, ::gai_strerror(failure)));
  }
  Status last = Status::NotFound(address.host + ": no address");
  int connected = -1;
  for (const addrinfo* each = found; each != nullptr && connected < 0; each = each->ai_next) {
    const int fd = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    Status status = ConnectWithin(fd, each->ai_addr, each->ai_addrlen, timeout_ms);
    if (status.ok()) {
      connected = fd;
    } else {
      last = Status::FromErrno(status.sys_errno(), "connect", address.ToString());
      ::close(fd);
    }
  }
  ::freeaddrinfo(found);
  if (connected < 0) return last;
  const int one = 1;
  ::setsockopt(connected, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  return connected;
}

void AppendRespCommand(std::span<const std::string_view> args, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "*{}\r\n", args.size());
  for (const std::string_view arg : args) {
    fmt::format_to(std::back_inserter(*out), "${}\r\n", arg.size());
    out->append(arg).append("\r\n");
  }
}

void AppendRespCommand(std::initializer_list<std::string_view> args, std::string* out) {
  AppendRespCommand(std::span(args.begin(), args.size()), out);
}

// ---------------------------------------------------------------------------------------------- client

Result<std::unique_ptr<RespClient>> RespClient::Connect(const RespAddress& address,
                                                        RespClientOptions options) {
  HOTKV_ASSIGN_OR_RETURN(const int fd, ConnectSocket(address, options.connect_timeout_ms));
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  std::unique_ptr<RespClient> client(new RespClient(fd, options));
  HOTKV_RETURN_IF_ERROR(client->Handshake(address));
  return client;
}

RespClient::~RespClient() { ::close(fd_); }

Status RespClient::Handshake(const RespAddress& address) {
  if (!address.password.empty() || !address.user.empty()) {
    auto reply = address.user.empty() ? CallOk({"AUTH", address.password})
                                      : CallOk({"AUTH", address.user, address.password});
    if (!reply.ok()) return std::move(reply).status();
  }
  if (options_.protocol == 3) {
    auto reply = CallOk({"HELLO", "3"});
    if (!reply.ok()) return std::move(reply).status();
  }
  if (address.database != 0) {
    auto reply = CallOk({"SELECT", std::to_string(address.database)});
    if (!reply.ok()) return std::move(reply).status();
  }
  return {};
}

Status RespClient::WaitFor(short events, short* got) {
  pollfd waiting{fd_, events, 0};
  for (;;) {
    const int ready = ::poll(&waiting, 1, options_.reply_timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return Status::FromErrno(errno, "poll", "socket");
    if (ready == 0) return Status::Busy("no answer from the server within the time limit");
    *got = waiting.revents;
    return {};
  }
}

Status RespClient::ReadSome() {
  char bytes[kReadBytes];
  const ssize_t got = ::recv(fd_, bytes, sizeof(bytes), 0);
  if (got > 0) {
    parser_.Feed({bytes, static_cast<size_t>(got)});
    return {};
  }
  if (got == 0) return Status::FromErrno(ECONNRESET, "server closed the connection", "socket");
  if (errno == EAGAIN || errno == EINTR) return {};
  return Status::FromErrno(errno, "recv", "socket");
}

Status RespClient::Flush() {
  size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t wrote = ::send(fd_, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
    if (wrote >= 0) {
      sent += static_cast<size_t>(wrote);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Status::FromErrno(errno, "send", "socket");
    short got = 0;
    HOTKV_RETURN_IF_ERROR(WaitFor(POLLIN | POLLOUT, &got));
    if ((got & POLLIN) != 0) HOTKV_RETURN_IF_ERROR(ReadSome());
  }
  out_.clear();
  return {};
}

Result<RespValue> RespClient::Read() {
  if (!out_.empty()) HOTKV_RETURN_IF_ERROR(Flush());
  for (;;) {
    HOTKV_ASSIGN_OR_RETURN(auto value, parser_.Next());
    if (value.has_value() && value->type == RespType::kPush) {
      pushes_.push_back(*std::move(value));
      continue;
    }
    if (value.has_value()) return *std::move(value);
    short got = 0;
    HOTKV_RETURN_IF_ERROR(WaitFor(POLLIN, &got));
    HOTKV_RETURN_IF_ERROR(ReadSome());
  }
}

Result<RespValue> RespClient::Call(std::span<const std::string_view> args) {
  Append(args);
  return Read();
}

Result<RespValue> RespClient::Call(std::initializer_list<std::string_view> args) {
  return Call(std::span(args.begin(), args.size()));
}

Result<RespValue> RespClient::CallOk(std::initializer_list<std::string_view> args) {
  HOTKV_ASSIGN_OR_RETURN(RespValue reply, Call(args));
  if (reply.is_error()) return Status::InvalidArgument(reply.text);
  return reply;
}

std::vector<RespValue> RespClient::TakePushes() { return std::exchange(pushes_, {}); }

}  // namespace hotkv
