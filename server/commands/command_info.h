// How COMMAND describes a CommandSpec, as replies.
//
// Thread rules: as the writer they are given.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/reply.h"
#include "engine/commands/command_spec.h"

namespace hotkv {

// The element of COMMAND and COMMAND INFO.
void ReplyCommandInfo(ReplyWriter& reply, const CommandSpec& spec);
// The value of COMMAND DOCS.
void ReplyCommandDocs(ReplyWriter& reply, const CommandSpec& spec);

// Names without '@'.
std::vector<std::string_view> AclCategoryNames(uint32_t categories);
std::optional<uint32_t> FindAclCategory(std::string_view name);

// key_flag bits of the argument at `index`, which is a key of this call.
uint32_t KeyFlagsOf(const CommandSpec& spec, Args args, uint32_t index);
void ReplyKeyFlags(ReplyWriter& reply, uint32_t flags);

}  // namespace hotkv
