// INFO's text: sections of "name:value" lines, with Redis's names where a field means the same
// here, and a section `hotkv` of our own.
//
// Thread rules: any worker; stripe locks are taken one at a time, so the caller holds none, or the
// whole keyspace.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/commands/command_spec.h"

namespace hotkv {

class Server;

// The sections named in args (none: the default ones). A name may be "all", "everything" or
// "default"; unknown names add nothing.
std::string BuildInfo(Server& server, Args names, int64_t now_ms);

// "1.50M" for 1572864.
std::string HumanBytes(uint64_t bytes);

}  // namespace hotkv
