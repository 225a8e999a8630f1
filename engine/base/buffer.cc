#include "engine/base/buffer.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "engine/base/allocator.h"

namespace hotkv {

BlockPool::~BlockPool() {
  for (char* block : free_) ::operator delete(block);
}

char* BlockPool::Take() {
  if (free_.empty()) return static_cast<char*>(::operator new(kBlockBytes));
  char* block = free_.back();
  free_.pop_back();
  return block;
}

void BlockPool::Give(char* block) {
  // A sanitizer must see each use of a block as a block of its own.
  if (!kSanitized && free_.size() < kKeptMax) {
    free_.push_back(block);
  } else {
    ::operator delete(block);
  }
}

static_assert(OutputChain::kReserveMax <= BlockPool::kBlockBytes);

void OutputChain::Release(const Piece& piece) {
  if (piece.release != nullptr) {
    piece.release(piece.owner);
  } else if (piece.owner != nullptr) {
    pool_->Give(static_cast<char*>(piece.owner));
  }
}

// Ends the open piece without giving up the block.
void OutputChain::Seal() {
  const auto size = static_cast<size_t>(position_ - open_begin_);
  if (size == 0) return;
  pieces_.push_back({open_begin_, size, nullptr, nullptr});
  sealed_bytes_ += size;
  open_begin_ = position_;
}

void OutputChain::SealWithBlock() {
  if (block_ == nullptr) return;
  const auto size = static_cast<size_t>(position_ - open_begin_);
  pieces_.push_back({open_begin_, size, block_, nullptr});  // perhaps empty: it carries the block
  sealed_bytes_ += size;
  block_ = position_ = limit_ = open_begin_ = nullptr;
}

void OutputChain::NewBlock() {
  if (bytes() > bytes_max_ || overflowed_) {
    Clear();
    overflowed_ = true;
  }
  SealWithBlock();
  block_ = pool_->Take();
  position_ = open_begin_ = block_;
  limit_ = block_ + BlockPool::kBlockBytes;
}

void OutputChain::AppendSlow(std::string_view bytes) {
  while (!bytes.empty()) {
    if (position_ == limit_) NewBlock();
    const size_t part = std::min(bytes.size(), static_cast<size_t>(limit_ - position_));
    std::memcpy(position_, bytes.data(), part);
    position_ += part;
    bytes.remove_prefix(part);
  }
}

void OutputChain::AppendReference(std::string_view bytes, void* owner, void (*release)(void*)) {
  Seal();
  pieces_.push_back({const_cast<char*>(bytes.data()), bytes.size(), owner, release});
  sealed_bytes_ += bytes.size();
}

size_t OutputChain::OpenGap() {
  Reserve(kGapBytes);
  Seal();
  const size_t number = next_piece_number();
  pieces_.push_back({position_, 0, nullptr, nullptr});
  position_ += kGapBytes;
  open_begin_ = position_;
  return number;
}

void OutputChain::FillGap(size_t piece_number, std::string_view bytes) {
  if (overflowed_) return;
  HOTKV_CHECK(bytes.size() <= kGapBytes && piece_number >= pieces_popped_);
  Piece& gap = pieces_[piece_number - pieces_popped_ + head_];
  HOTKV_CHECK(gap.size == 0 && gap.release == nullptr);
  if (!bytes.empty()) std::memcpy(gap.data, bytes.data(), bytes.size());
  gap.size = bytes.size();
  sealed_bytes_ += bytes.size();
}

OutputChain::Mark OutputChain::Here() {
  Seal();
  return {next_piece_number(), position_, bytes_appended()};
}

void OutputChain::Rewind(const Mark& mark) {
  if (overflowed_) return;
  const size_t index = mark.piece_number - pieces_popped_ + head_;
  HOTKV_CHECK(mark.piece_number >= pieces_popped_ && index <= pieces_.size());
  // Blocks begun after the mark go back; the one of the mark itself, if it was sealed since, stays
  // a sealed piece cut down to nothing, for its earlier pieces still lie in it.
  bool own_block_sealed = false;
  for (size_t i = index; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    sealed_bytes_ -= piece.size;
    piece.size = 0;
    const bool is_block = piece.release == nullptr && piece.owner != nullptr;
    if (is_block && !own_block_sealed && mark.position != nullptr) {
      own_block_sealed = true;
      continue;
    }
    Release(piece);
    piece.owner = nullptr;
    piece.release = nullptr;
  }
  if (mark.position != nullptr && !own_block_sealed) {
    pieces_.resize(index);
    position_ = open_begin_ = mark.position;
    return;
  }
  position_ = open_begin_;  // the present block is newer than the mark: empty again
}

void OutputChain::DropFrom(uint64_t position) {
  HOTKV_CHECK(position >= bytes_consumed_ && position <= bytes_appended());
  Seal();
  uint64_t keep = position - bytes_consumed_;
  for (size_t i = head_; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    const size_t kept = std::min<uint64_t>(piece.size, keep);
    keep -= kept;
    sealed_bytes_ -= piece.size - kept;
    piece.size = kept;  // an empty piece leaves, with what it holds, when the front comes to it
  }
}

size_t OutputChain::Gather(std::span<iovec> out, size_t bytes_max) const {
  size_t used = 0;
  const auto add = [&](char* data, size_t size) {
    size = std::min(size, bytes_max);
    if (size == 0) return;
    bytes_max -= size;
    out[used++] = {data, size};
  };
  for (size_t i = head_; i < pieces_.size() && used < out.size(); ++i)
    add(pieces_[i].data, pieces_[i].size);
  if (used < out.size()) add(open_begin_, static_cast<size_t>(position_ - open_begin_));
  return used;
}

void OutputChain::Consume(size_t bytes) {
  bytes_consumed_ += bytes;
  while (head_ < pieces_.size()) {
    Piece& piece = pieces_[head_];
    if (bytes < piece.size) {
      piece.data += bytes;
      piece.size -= bytes;
      sealed_bytes_ -= bytes;
      return;
    }
    if (bytes == 0 && piece.size == 0 && piece.owner == nullptr)
      return;  // may be a gap that is still open
    bytes -= piece.size;
    sealed_bytes_ -= piece.size;
    Release(piece);
    ++head_;
    ++pieces_popped_;
  }
  pieces_.clear();
  head_ = 0;
  HOTKV_CHECK(bytes <= static_cast<size_t>(position_ - open_begin_));
  open_begin_ += bytes;
  if (open_begin_ == position_ && block_ != nullptr) {
    pool_->Give(block_);
    block_ = position_ = limit_ = open_begin_ = nullptr;
  }
}

void OutputChain::Clear() {
  bytes_consumed_ += bytes();
  for (; head_ < pieces_.size(); ++head_) {
    Release(pieces_[head_]);
    ++pieces_popped_;
  }
  pieces_.clear();
  head_ = 0;
  sealed_bytes_ = 0;
  if (block_ != nullptr) pool_->Give(block_);
  block_ = position_ = limit_ = open_begin_ = nullptr;
}

std::string OutputChain::ToString() const {
  std::string text;
  text.reserve(bytes());
  for (size_t i = head_; i < pieces_.size(); ++i) text.append(pieces_[i].data, pieces_[i].size);
  text.append(open_begin_, static_cast<size_t>(position_ - open_begin_));
  return text;
}

void InputBuffer::Grow(size_t needed) {
  if (begin_ > 0) {
    std::memmove(data_, data_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ + needed <= capacity_) return;
  size_t capacity = std::max<size_t>(capacity_, 1024);
  while (capacity < end_ + needed) capacity *= 2;
  char* data = static_cast<char*>(std::realloc(data_, capacity));
  HOTKV_CHECK(data != nullptr);
  data_ = data;
  capacity_ = capacity;
}

void InputBuffer::Append(std::string_view bytes) {
  if (bytes.empty()) return;
  if (capacity_ - end_ < bytes.size()) Grow(bytes.size());
  std::memcpy(data_ + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
}

std::span<char> InputBuffer::Writable(size_t size) {
  if (capacity_ - end_ < size) Grow(size);
  return {data_ + end_, capacity_ - end_};
}

void InputBuffer::Consume(size_t size) {
  begin_ += size;
  HOTKV_DCHECK(begin_ <= end_);
  if (begin_ < end_) return;
  begin_ = end_ = 0;
  if (capacity_ > kKeptBytesMax) Free();
}

void InputBuffer::Free() {
  std::free(data_);
  data_ = nullptr;
  capacity_ = begin_ = end_ = 0;
}

}  // namespace hotkv
