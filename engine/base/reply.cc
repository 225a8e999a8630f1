#include "engine/base/reply.h"

#include <algorithm>
#include <array>

namespace hotkv {

namespace reply_internal {

namespace {

constexpr Headers MakeHeaders(char kind) {
  Headers headers{};
  for (size_t n = 0; n < kReadyHeaders; ++n) {
    char digits[4] = {};
    size_t count = 0;
    for (size_t rest = n; rest != 0 || count == 0; rest /= 10)
      digits[count++] = static_cast<char>('0' + rest % 10);
    Header& header = headers[n];
    header.text[header.size++] = kind;
    while (count > 0) header.text[header.size++] = digits[--count];
    header.text[header.size++] = '\r';
    header.text[header.size++] = '\n';
  }
  return headers;
}

static_assert(sizeof(Header) == 8, "writers copy a header as one word");

}  // namespace

constinit const Headers kBulkHeaders = MakeHeaders('$');
constinit const Headers kArrayHeaders = MakeHeaders('*');

}  // namespace reply_internal

void ReplyWriter::Line(char kind, std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
  char* p = out_->Reserve(8);
  *p = kind;
  out_->Commit(p + 1);
  while (!text.empty()) {
    const size_t clean = std::min(text.find_first_of("\r\n"), text.size());
    out_->Append(text.substr(0, clean));
    text.remove_prefix(clean);
    if (text.empty()) break;
    out_->Append(" ");
    text.remove_prefix(1);
  }
  Constant("\r\n");
}

void ReplyWriter::Simple(std::string_view text) { Line('+', text); }

void ReplyWriter::Error(std::string_view text) {
  ++errors_;
  const size_t word = std::min({text.find(' '), text.size(), sizeof(last_error_prefix_)});
  if (word != 0) std::memcpy(last_error_prefix_, text.data(), word);
  last_error_prefix_size_ = static_cast<uint8_t>(word);
  Line('-', text);
}

void ReplyWriter::BulkInt(int64_t value) {
  char* p = out_->Reserve(32);
  const reply_internal::Header& header = reply_internal::kBulkHeaders[Int64TextSize(value)];
  std::memcpy(p, &header, 8);
  out_->Commit(LineEnd(WriteInt64(p + header.size, value)));
}

void ReplyWriter::LongBulk(std::string_view bytes) {
  Header('$', bytes.size());
  out_->Append(bytes);
  Constant("\r\n");
}

void ReplyWriter::BulkReference(std::string_view bytes, void* owner, void (*release)(void*)) {
  if (bytes.size() < kReferenceBytesMin) {
    Bulk(bytes);
    release(owner);
    return;
  }
  Header('$', bytes.size());
  out_->AppendReference(bytes, owner, release);
  Constant("\r\n");
}

void ReplyWriter::BulkShared(SharedBlock* block) {
  block->Ref();
  BulkReference(block->view(), block,
                [](void* owner) { static_cast<SharedBlock*>(owner)->Unref(); });
}

void ReplyWriter::Header(char kind, size_t count) {
  char* p = out_->Reserve(24);
  *p++ = kind;
  out_->Commit(LineEnd(WriteUint64(p, count)));
}

void ReplyWriter::Double(double value) {
  char* p = out_->Reserve(kDoubleTextMax + 16);
  if (resp3()) {
    *p++ = ',';
    return out_->Commit(LineEnd(WriteDouble(p, value)));
  }
  char text[kDoubleTextMax];
  const auto size = static_cast<size_t>(WriteDouble(text, value) - text);
  const reply_internal::Header& header = reply_internal::kBulkHeaders[size];
  std::memcpy(p, &header, 8);
  p += header.size;
  std::memcpy(p, text, size);
  out_->Commit(LineEnd(p + size));
}

void ReplyWriter::BigNumber(std::string_view digits) { resp3() ? Line('(', digits) : Bulk(digits); }

void ReplyWriter::Verbatim(std::string_view format3, std::string_view text) {
  HOTKV_DCHECK(format3.size() == 3);
  if (!resp3()) return Bulk(text);
  Header('=', text.size() + 4);
  out_->Append(format3);
  out_->Append(":");
  out_->Append(text);
  Constant("\r\n");
}

void ReplyWriter::Close(Deferred deferred, size_t count) {
  char kind = deferred.kind;
  if (!resp3()) {
    if (kind == '%') count *= 2;
    kind = '*';
  }
  char header[OutputChain::kGapBytes];
  header[0] = kind;
  const char* end = LineEnd(WriteUint64(header + 1, count));
  out_->FillGap(deferred.gap, {header, static_cast<size_t>(end - header)});
}

}  // namespace hotkv
