// The server around a running command.
//
// Thread rules: the client's worker.
#pragma once

#include "engine/commands/command_context.h"
#include "server/server.h"
#include "server/session/client.h"

namespace hotkv {

inline Server& ServerOf(CommandContext& ctx) { return Client::Of(ctx.client).server(); }

}  // namespace hotkv
