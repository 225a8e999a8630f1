#include "engine/base/result.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace hotkv {

namespace {
const std::string kNoText;
}  // namespace

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "OK";
    case Code::kInvalidArgument: return "INVALID ARGUMENT";
    case Code::kNotFound: return "NOT FOUND";
    case Code::kExists: return "EXISTS";
    case Code::kCorruption: return "CORRUPTION";
    case Code::kIoError: return "I/O ERROR";
    case Code::kNoSpace: return "NO SPACE";
    case Code::kLocked: return "LOCKED";
    case Code::kUnsupported: return "UNSUPPORTED";
    case Code::kOutOfRange: return "OUT OF RANGE";
    case Code::kBusy: return "BUSY";
    case Code::kCancelled: return "CANCELLED";
    case Code::kInternal: return "INTERNAL";
  }
  return "UNKNOWN";
}

Status::Status(Code code, std::string message) : detail_(std::make_unique<Detail>()) {
  HOTKV_CHECK(code != Code::kOk);
  detail_->code = code;
  detail_->message = std::move(message);
}

Status::Status(const Status& other)
    : detail_(other.detail_ ? std::make_unique<Detail>(*other.detail_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) detail_ = other.detail_ ? std::make_unique<Detail>(*other.detail_) : nullptr;
  return *this;
}

const std::string& Status::message() const { return detail_ ? detail_->message : kNoText; }
const std::string& Status::path() const { return detail_ ? detail_->path : kNoText; }

Status Status::FromErrno(int err, std::string_view what, std::string_view path) {
  Code code = Code::kIoError;
  if (err == ENOSPC || err == EDQUOT) code = Code::kNoSpace;
  if (err == ENOENT) code = Code::kNotFound;
  if (err == EEXIST) code = Code::kExists;
  Status status(code, fmt::format("{}: {}", what, std::strerror(err)));
  status.detail_->sys_errno = err;
  status.detail_->path = path;
  return status;
}

Status&& Status::At(std::string path, int64_t offset) && {
  if (detail_) {
    detail_->path = std::move(path);
    detail_->offset = offset;
  }
  return std::move(*this);
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  std::string where;
  if (!detail_->path.empty()) {
    where = detail_->offset >= 0 ? fmt::format("{} @{}: ", detail_->path, detail_->offset)
                                 : fmt::format("{}: ", detail_->path);
  }
  return fmt::format("{}: {}{}", CodeName(detail_->code), where, detail_->message);
}

}  // namespace hotkv
