// Buffers of a connection: OutputChain (replies on their way out) and InputBuffer (an incomplete
// request).
//
// An OutputChain is a sequence of pieces: stretches of fixed blocks that small replies are copied
// into, and references to shared bytes for large values, which are not copied. Pieces leave at the
// front, in order, as the socket takes them. Invariant: a block belongs to the last piece cut from
// it and goes back to its pool with that piece; an empty chain holds no block, so an idle
// connection costs no buffer.
//
// Thread rules: a chain, an input buffer and a pool belong to one thread at a time. SharedBlock is
// immutable once shared, and its count is atomic, so the last reference may be dropped by any
// thread.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/shared_block.h"

namespace hotkv {

// Blocks of one size for output chains, kept for reuse; the newest first, since it is still in the
// cache.
class BlockPool {
 public:
  static constexpr size_t kBlockBytes = size_t{16} << 10;

  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();

  char* Take();
  void Give(char* block);

 private:
  static constexpr size_t kKeptMax = 256;
  std::vector<char*> free_;
};

class OutputChain {
 public:
  // A place in the chain to come back to; valid until bytes before it are consumed.
  struct Mark {
    size_t piece_number;
    char* position;
    uint64_t bytes_appended;
  };

  explicit OutputChain(BlockPool* pool) : pool_(pool) {}
  OutputChain(const OutputChain&) = delete;
  OutputChain& operator=(const OutputChain&) = delete;
  ~OutputChain() { Clear(); }

  // Room for `size` bytes in one piece (at most kReserveMax); the caller fills it and says with
  // Commit how far.
  static constexpr size_t kReserveMax = 4096;
  char* Reserve(size_t size) {
    if (static_cast<size_t>(limit_ - position_) < size) [[unlikely]]
      NewBlock();
    return position_;
  }
  void Commit(char* end) { position_ = end; }

  void Append(std::string_view bytes) {
    if (bytes.size() <= static_cast<size_t>(limit_ - position_)) [[likely]] {
      // An empty view may be null, which memcpy must not get.
      if (!bytes.empty()) std::memcpy(position_, bytes.data(), bytes.size());
      position_ += bytes.size();
      return;
    }
    AppendSlow(bytes);
  }
  // The bytes stay where they are until they are sent; then release(owner) is called.
  void AppendReference(std::string_view bytes, void* owner, void (*release)(void*));

  // A gap for a header that is not known yet (an array whose length shows at its end). FillGap must
  // be called before the chain is sent; it returns the piece's number.
  static constexpr size_t kGapBytes = 24;
  size_t OpenGap();
  void FillGap(size_t piece_number, std::string_view bytes);

  Mark Here();
  // Forgets everything appended after the mark.
  void Rewind(const Mark& mark);

  size_t bytes() const { return sealed_bytes_ + static_cast<size_t>(position_ - open_begin_); }
  bool empty() const { return bytes() == 0; }
  // Bytes ever appended: a position in the stream of replies that does not move when the front is
  // consumed.
  uint64_t bytes_appended() const { return bytes_consumed_ + bytes(); }
  uint64_t bytes_consumed() const { return bytes_consumed_; }

  // Forgets the bytes from a position in the stream (bytes_appended) on; those before it stay.
  void DropFrom(uint64_t position);

  // Beyond this many bytes everything is dropped, what is there and what comes: the connection is
  // to be closed.
  void SetBytesMax(size_t bytes) { bytes_max_ = bytes; }
  bool overflowed() const { return overflowed_; }

  // Describes bytes from the front, at most `bytes_max`; returns how many entries of `out` were
  // used.
  size_t Gather(std::span<iovec> out, size_t bytes_max = SIZE_MAX) const;
  void Consume(size_t bytes);
  void Clear();
  // Everything as one string; for tests and for scripts, which read their own replies.
  std::string ToString() const;

 private:
  struct Piece {
    char* data;
    size_t size;
    void* owner;
    void (*release)(void*);  // null: nothing to give back, unless owner is a block of the pool
  };

  void NewBlock();
  void AppendSlow(std::string_view bytes);
  void Seal();
  void SealWithBlock();
  void Release(const Piece& piece);
  size_t next_piece_number() const { return pieces_popped_ + pieces_.size() - head_; }

  BlockPool* pool_;
  char* position_ = nullptr;    // where the next byte goes, in block_
  char* limit_ = nullptr;       // end of block_
  char* open_begin_ = nullptr;  // bytes from here to position_ are not sealed in a piece yet
  char* block_ = nullptr;
  std::vector<Piece> pieces_;  // sealed ones; those before head_ are gone
  size_t head_ = 0;
  size_t pieces_popped_ = 0;
  size_t sealed_bytes_ = 0;
  uint64_t bytes_consumed_ = 0;
  size_t bytes_max_ = SIZE_MAX;
  bool overflowed_ = false;
};

// The bytes of a request that is not complete yet. Grows by doubling with what was received, never
// with what a header announces, and gives large memory back when it is empty.
class InputBuffer {
 public:
  InputBuffer() = default;
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;
  ~InputBuffer() { Free(); }

  char* data() { return data_ + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  size_t capacity() const { return capacity_; }

  void Append(std::string_view bytes);
  // Room at the end for a read of at least `size` bytes; Commit says how many came.
  std::span<char> Writable(size_t size);
  void Commit(size_t size) { end_ += size; }
  void Consume(size_t size);
  void Free();

 private:
  static constexpr size_t kKeptBytesMax = size_t{64}
                                          << 10;  // an empty buffer above this is given back
  void Grow(size_t needed);

  char* data_ = nullptr;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace hotkv
