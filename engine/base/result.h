// Status and Result<T>: how functions report what went wrong. Codes are for programs, messages for people.
//
// Three classes of failure are kept apart: what a client sent (answered with a RESP error), what the environment
// did (I/O, memory: a Status with path, offset and errno), and our own bugs (HOTKV_CHECK in check.h, which stops
// the process). Exceptions never cross a folder's public interface.
//
// Thread rules: values, no shared state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/check.h"

namespace hotkv {

enum class Code : uint8_t {
  kOk = 0,
  kInvalidArgument,  // the caller's input is wrong
  kNotFound,
  kExists,
  kCorruption,   // stored bytes are not what was written
  kIoError,      // the operating system refused; see sys_errno()
  kNoSpace,      // ENOSPC, EDQUOT
  kLocked,       // somebody else holds the directory or the lock
  kUnsupported,  // a newer format, or a feature that this machine lacks
  kOutOfRange,
  kBusy,  // try again later
  kCancelled,
  kInternal,
};

std::string_view CodeName(Code code);

// One pointer; null means OK, so returning success costs nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  static Status Ok() { return {}; }
  static Status InvalidArgument(std::string m) { return {Code::kInvalidArgument, std::move(m)}; }
  static Status NotFound(std::string m) { return {Code::kNotFound, std::move(m)}; }
  static Status Exists(std::string m) { return {Code::kExists, std::move(m)}; }
  static Status Corruption(std::string m) { return {Code::kCorruption, std::move(m)}; }
  static Status Locked(std::string m) { return {Code::kLocked, std::move(m)}; }
  static Status Unsupported(std::string m) { return {Code::kUnsupported, std::move(m)}; }
  static Status OutOfRange(std::string m) { return {Code::kOutOfRange, std::move(m)}; }
  static Status Busy(std::string m) { return {Code::kBusy, std::move(m)}; }
  static Status Cancelled(std::string m) { return {Code::kCancelled, std::move(m)}; }
  static Status Internal(std::string m) { return {Code::kInternal, std::move(m)}; }
  // From errno: code kNoSpace, kNotFound, kExists or kIoError; the text is "what: path: strerror".
  static Status FromErrno(int err, std::string_view what, std::string_view path);

  bool ok() const { return detail_ == nullptr; }
  Code code() const { return detail_ ? detail_->code : Code::kOk; }
  const std::string& message() const;
  int sys_errno() const { return detail_ ? detail_->sys_errno : 0; }
  const std::string& path() const;
  // Byte offset in path() at which the fault lies; -1 where there is none.
  int64_t offset() const { return detail_ ? detail_->offset : -1; }

  // Adds where it happened; no effect on OK. The message then starts with "path @offset: ".
  Status&& At(std::string path, int64_t offset) &&;
  // "CORRUPTION: hotkv-data/log/00000003.hkl @8192: block checksum ..."
  std::string ToString() const;

 private:
  struct Detail {
    Code code = Code::kOk;
    int sys_errno = 0;
    int64_t offset = -1;
    std::string message;
    std::string path;
  };
  std::unique_ptr<Detail> detail_;
};

// A value or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit by intent
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by intent
    HOTKV_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }

  T& value() & {
    HOTKV_CHECK(value_.has_value());
    return *value_;
  }
  const T& value() const& {
    HOTKV_CHECK(value_.has_value());
    return *value_;
  }
  T&& value() && {
    HOTKV_CHECK(value_.has_value());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace hotkv

// Returns the Status of `expr` from the enclosing function unless it is OK.
#define HOTKV_RETURN_IF_ERROR(expr)                  \
  do {                                               \
    ::hotkv::Status hotkv_status_ = (expr);          \
    if (!hotkv_status_.ok()) return hotkv_status_;   \
  } while (false)

#define HOTKV_CONCAT_INNER(a, b) a##b
#define HOTKV_CONCAT(a, b) HOTKV_CONCAT_INNER(a, b)

// HOTKV_ASSIGN_OR_RETURN(auto x, MakeX()); the Status is returned when there is no value.
#define HOTKV_ASSIGN_OR_RETURN(lhs, expr) \
  HOTKV_ASSIGN_OR_RETURN_IMPL(HOTKV_CONCAT(hotkv_result_, __LINE__), lhs, expr)
#define HOTKV_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) return std::move(tmp).status();    \
  lhs = std::move(tmp).value()
