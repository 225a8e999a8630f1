// InputStream and OutputStream: the tool's input and output files, or standard input and output ("-"), in pieces of
// bounded size.
//
// An output file is written under a temporary name beside it and renamed by Finish, so that its name never stands for
// half a file.
//
// Thread rules: one thread. Errors: a Status with path and errno.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace hotkv {

class InputStream {
 public:
  static Result<std::unique_ptr<InputStream>> Open(const std::string& path);
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  // The first bytes, fewer at the end, to be read again by Read. Only before the first Read.
  Result<std::string_view> Peek(size_t size);
  // Up to `size` bytes into `buffer`; 0 only at the end.
  Result<size_t> Read(char* buffer, size_t size);
  // Back to the first byte; only where is_file().
  Status Rewind();

  const std::string& name() const { return name_; }  // "standard input" for "-"
  bool is_file() const { return is_file_; }
  uint64_t size() const { return size_; }  // 0 where not known

 private:
  InputStream(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  const int fd_;
  const std::string name_;
  bool is_file_ = false;
  uint64_t size_ = 0;
  std::string peeked_;
  size_t peeked_used_ = 0;
};

class OutputStream {
 public:
  static Result<std::unique_ptr<OutputStream>> Create(const std::string& path);
  ~OutputStream();
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  // Append to this, then call MaybeFlush.
  std::string* buffer() { return &buffer_; }
  Status MaybeFlush() { return buffer_.size() >= kBufferBytes ? Flush() : Status::Ok(); }
  Status Finish();

  const std::string& name() const { return name_; }
  uint64_t bytes_written() const { return written_ + buffer_.size(); }

 private:
  static constexpr size_t kBufferBytes = size_t{1} << 20;
  OutputStream(int fd, std::string path, std::string temporary);
  Status Flush();

  int fd_;
  const std::string name_;
  const std::string temporary_;  // empty: standard output
  std::string buffer_;
  uint64_t written_ = 0;
};

}  // namespace hotkv
