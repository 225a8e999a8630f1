#include "tests/support/source_dir.h"

namespace hotkv {

std::string SourcePath(const std::string& path) { return std::string(HOTKV_SOURCE_DIR "/") + path; }

}  // namespace hotkv
