// A directory's catalog as its files' headers tell it, for a directory whose catalog is missing or damaged. Good enough to
// read what is there (SalvageSource), not to start on: what the catalog alone knows - from which moment on an index
// generation wants effects, how far the log was durable - is taken on the safe side for reading.
//
// Thread rules: one thread. Errors: kCorruption when no file says which directory this is.
#pragma once

#include <string>
#include <vector>

#include "engine/base/file.h"
#include "persistence/catalog/catalog_state.h"
#include "persistence/recovery/recovery.h"

namespace hotkv {

// notes: files that were left out, and why.
Result<CatalogState> CatalogFromFiles(Env* env, const DirectoryPaths& paths, std::vector<std::string>* notes);

}  // namespace hotkv
