// A File whose writes and syncs go through an io_uring of its own: a gathered write and the sync
// behind it are one system call. The pair is linked, yet the sync is trusted only when the write is
// seen to be complete: kernels differ in whether a short write breaks the link.
//
// Private to engine/base: others ask Env::Open for FileIo::kUring.
//
// Thread rules: as File; the ring is guarded by a mutex.
#pragma once

#include <memory>
#include <string>

#include "engine/base/file.h"

namespace hotkv {

// Takes the descriptor over. Null (and the descriptor stays the caller's) where no ring can be
// made.
std::unique_ptr<File> MakeUringFile(int fd, const std::string& path);

}  // namespace hotkv
