// COPY of a vector set: a generation in a folder of its own, written by the upkeep thread while the set is read and changed
// and the client waits; then, under the locks, what came since, and the link. Small copies without files, those in EXEC, and
// those of an engine without an upkeep thread are made at once.
//
// Thread rules: the executing worker's thread.
#pragma once

#include <memory>

#include "engine/commands/vset_common.h"

namespace hotkv {

// The prepare step of COPY; does nothing for a source of another type.
void PrepareCopyOfSet(CommandContext& ctx);
// Under the locks, for a source of this type; answers. `to`: the second key, in `to_db`, whatever is there.
void CopySet(CommandContext& ctx, uint32_t to_db);

// An unlinked copy with the same slots.
Result<VectorSet*> MakeCopyOfSet(Engine& engine, VectorSet& source);

}  // namespace hotkv
