// A fuzz target: one function that takes any bytes and must neither crash, nor hang, nor use memory out of proportion, and
// that checks what holds for every input (what decodes encodes back, ...) with HOTKV_CHECK.
//
//   HOTKV_FUZZ_TARGET(effect, Seeds) { ... uses `input` ... }
//
// Built twice: with libFuzzer, one executable a target (preset fuzz); and without it, all targets in the one executable
// fuzz_check, which feeds the corpus, the seeds and seeded mutations of both (fuzz_check.cc).
//
// Thread rules: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/coding.h"

namespace hotkv {

using FuzzFunction = void (*)(std::string_view input);
using FuzzSeeds = std::vector<std::string> (*)();

struct FuzzRegistration {
  FuzzRegistration(const char* name, FuzzFunction run, FuzzSeeds seeds);
};

// Hands out parts of the input to targets that need more than one string.
class FuzzInput {
 public:
  explicit FuzzInput(std::string_view bytes) : bytes_(bytes) {}
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte;
  }
  // A length of one or two bytes and as many bytes, fewer at the end.
  std::string_view Piece() {
    const uint8_t first = Byte();
    size_t length = first & 0x7f;
    if ((first & 0x80) != 0) length = length << 8 | Byte();
    const std::string_view piece = bytes_.substr(0, length);
    bytes_.remove_prefix(piece.size());
    return piece;
  }
  std::string_view Rest() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

// The inverse of FuzzInput::Piece, for seeds.
inline void AppendPiece(std::string_view piece, std::string* out) {
  HOTKV_CHECK(piece.size() < 0x8000);
  if (piece.size() >= 0x80) out->push_back(static_cast<char>(0x80 | piece.size() >> 8));
  out->push_back(static_cast<char>(piece.size() & 0xff));
  out->append(piece);
}

}  // namespace hotkv

#ifdef HOTKV_LIBFUZZER
#define HOTKV_FUZZ_ENTRY(name, seeds)                                                   \
  [[maybe_unused]] static const hotkv::FuzzSeeds fuzz_seeds_##name = &(seeds);          \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {             \
    hotkv::Fuzz_##name({reinterpret_cast<const char*>(data), size});                    \
    return 0;                                                                           \
  }
#else
#define HOTKV_FUZZ_ENTRY(name, seeds) \
  static const hotkv::FuzzRegistration fuzz_registration_##name(#name, &hotkv::Fuzz_##name, &(seeds));
#endif

// Stands outside of any namespace; the body is in namespace hotkv.
#define HOTKV_FUZZ_TARGET(name, seeds)               \
  namespace hotkv {                                  \
  static void Fuzz_##name(std::string_view input);   \
  }                                                  \
  HOTKV_FUZZ_ENTRY(name, seeds)                      \
  static void hotkv::Fuzz_##name(std::string_view input)
