// A generation of an index on disk: graph.GEN and ids.GEN, mapped. Format: docs/formats/index.md.
//
// Thread rules: constant after opening; what is mapped private may be changed through the arrays
// that adopt it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/file.h"

namespace hotkv {

struct Generation {
  std::unique_ptr<Mapping> graph;
  std::unique_ptr<Mapping> ids;
};

}  // namespace hotkv
