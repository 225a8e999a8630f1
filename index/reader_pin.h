// ReaderPin: while one lives on a thread, what this library retires (names and attributes that were
// replaced, slots that were unlinked) stays readable. One reclamation domain serves all indexes; a
// thread registers at its first pin.
//
// Thread rules: pins nest; a pin belongs to the thread that made it. Nothing is awaited while
// pinned.
#pragma once

#include <functional>

#include "engine/base/reclaim.h"

namespace hotkv {

ReclaimDomain& IndexReclaim();

class ReaderPin {
 public:
  ReaderPin();
  ~ReaderPin();
  ReaderPin(const ReaderPin&) = delete;
  ReaderPin& operator=(const ReaderPin&) = delete;
};

}  // namespace hotkv
