#include "tools/hotkv_tool/resp_reader.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>

namespace hotkv {

namespace {

constexpr std::string_view kRdbMagic = "REDIS";
constexpr std::string_view kAnnotation = "#TS:";
// After these the next replies are no longer one for each command.
constexpr std::string_view kRefused[] = {"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "SYNC",
                                         "PSYNC",     "HELLO",      "QUIT",       "RESET",   "SHUTDOWN"};

std::string Upper(std::string_view text) {
  std::string upper(text.substr(0, 32));
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

}  // namespace

std::string RespReader::Where(uint64_t position) const {
  return fmt::format("{} @{}", input_->name(), position);
}

Status RespReader::Error(Status status) const {
  return std::move(status).At(input_->name(), static_cast<int64_t>(command_offset_));
}

Result<bool> RespReader::ReadMore() {
  const size_t size = std::max(kReadBytes, std::min(parser_.missing_bytes(), 16 * kReadBytes));
  const std::span<char> room = buffer_.Writable(size);
  HOTKV_ASSIGN_OR_RETURN(const size_t got, input_->Read(room.data(), room.size()));
  buffer_.Commit(got);
  if (got == 0) at_end_ = true;
  if (first_ && buffer_.size() >= kRdbMagic.size()) {
    first_ = false;
    if (std::string_view(buffer_.data(), kRdbMagic.size()) == kRdbMagic) {
      return Error(Status::Unsupported(
          "begins with an RDB image: only the command form can be read (in Redis: aof-use-rdb-preamble no, then "
          "BGREWRITEAOF)"));
    }
  }
  return got != 0;
}

Result<bool> RespReader::Refill() {
  buffer_.Consume(consumed_);
  buffer_offset_ += consumed_;
  consumed_ = 0;
  batch_.Clear();
  next_ = 0;
  for (;;) {
    command_offset_ = next_offset_ = buffer_offset_ + consumed_;
    if (failed_) return Error(Status::Corruption(parser_.error()));
    const auto parsed =
        parser_.Parse({buffer_.data(), buffer_.size()}, {.requests_max = 1024}, &batch_);
    consumed_ = parsed.consumed;
    failed_ = parsed.outcome == RequestParser::Outcome::kError;
    if (!batch_.empty()) return true;
    if (failed_) continue;
    buffer_.Consume(consumed_);
    buffer_offset_ += consumed_;
    consumed_ = 0;
    HOTKV_ASSIGN_OR_RETURN(const bool more, ReadMore());
    if (more) continue;
    command_offset_ = buffer_offset_;
    if (!buffer_.empty()) return Error(Status::Corruption("ends in the midst of a command"));
    if (in_multi_) {
      command_offset_ = multi_offset_;
      return Error(Status::Corruption("a MULTI without its EXEC"));
    }
    return false;
  }
}

Status RespReader::CheckCommand(std::span<const std::string_view> args) {
  const std::string name = Upper(args[0]);
  if (std::find(std::begin(kRefused), std::end(kRefused), name) != std::end(kRefused)) {
    return Error(Status::InvalidArgument(fmt::format("{} cannot be imported", name)));
  }
  if (name == "MULTI" && !in_multi_) multi_offset_ = command_offset_;
  if (name == "MULTI") in_multi_ = true;
  if (name == "EXEC" || name == "DISCARD") in_multi_ = false;
  return Status::Ok();
}

Result<bool> RespReader::Next(Record* record) {
  for (;;) {
    if (next_ == batch_.size()) {
      HOTKV_ASSIGN_OR_RETURN(const bool more, Refill());
      if (!more) return false;
    }
    const auto args = batch_[next_];
    command_offset_ = next_offset_;
    next_offset_ = buffer_offset_ + batch_.EndOffset(next_);
    ++next_;
    if (args.empty() || args[0].starts_with(kAnnotation)) continue;
    HOTKV_RETURN_IF_ERROR(CheckCommand(args));
    *record = Record{};
    record->kind = RecordKind::kCommand;
    record->args = args;
    return true;
  }
}

}  // namespace hotkv
