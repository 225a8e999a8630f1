// What each string command is: facts for dispatch, COMMAND and the docs page.
#include "engine/commands/string_commands.h"

namespace hotkv {

namespace {

using namespace command_flag;  // NOLINT: flags are listed, not mixed with other names
using Type = ArgumentType;
constexpr uint32_t kAclString = acl_category::kString;
constexpr uint32_t kAclReadFast = kAclString | acl_category::kRead | acl_category::kFast;
constexpr uint32_t kAclReadSlow = kAclString | acl_category::kRead | acl_category::kSlow;
constexpr uint32_t kAclWriteFast = kAclString | acl_category::kWrite | acl_category::kFast;
constexpr uint32_t kAclWriteSlow = kAclString | acl_category::kWrite | acl_category::kSlow;
constexpr uint32_t kGrowFast = kWrite | kDenyOom | kFast;
constexpr uint32_t kGrow = kWrite | kDenyOom;

// --- key specs ---
constexpr KeySpec kRead[] = {{.flags = key_flag::kReadOnly | key_flag::kAccess, .begin = 1}};
constexpr KeySpec kReadLength[] = {{.flags = key_flag::kReadOnly, .begin = 1}};
constexpr KeySpec kReadTwo[] = {
    {.flags = key_flag::kReadOnly | key_flag::kAccess, .begin = 1, .last = 1}};
constexpr KeySpec kReadAll[] = {
    {.flags = key_flag::kReadOnly | key_flag::kAccess, .begin = 1, .last = -1}};
constexpr KeySpec kChange[] = {
    {.flags = key_flag::kReadWrite | key_flag::kAccess | key_flag::kUpdate, .begin = 1}};
constexpr KeySpec kInsertInto[] = {{.flags = key_flag::kReadWrite | key_flag::kInsert, .begin = 1}};
constexpr KeySpec kUpdateIn[] = {{.flags = key_flag::kReadWrite | key_flag::kUpdate, .begin = 1}};
constexpr KeySpec kReplace[] = {{.flags = key_flag::kOverwrite | key_flag::kUpdate, .begin = 1}};
constexpr KeySpec kMake[] = {{.flags = key_flag::kOverwrite | key_flag::kInsert, .begin = 1}};
constexpr KeySpec kReplacePairs[] = {
    {.flags = key_flag::kOverwrite | key_flag::kUpdate, .begin = 1, .last = -1, .step = 2}};
constexpr KeySpec kMakePairs[] = {
    {.flags = key_flag::kOverwrite | key_flag::kInsert, .begin = 1, .last = -1, .step = 2}};
constexpr KeySpec kReplaceCounted[] = {{.flags = key_flag::kOverwrite | key_flag::kUpdate,
                                        .begin = 1,
                                        .find = KeySpec::Find::kKeynum,
                                        .keynum = 0,
                                        .first = 1,
                                        .step = 2}};
constexpr KeySpec kSetKey[] = {{.flags = key_flag::kReadWrite | key_flag::kAccess |
                                         key_flag::kUpdate | key_flag::kVariableFlags,
                                .begin = 1,
                                .notes = "RW and ACCESS because of GET and the IF conditions"}};
constexpr KeySpec kTakeAway[] = {
    {.flags = key_flag::kReadWrite | key_flag::kAccess | key_flag::kDelete, .begin = 1}};
constexpr KeySpec kDeleteIf[] = {
    {.flags = key_flag::kReadWrite | key_flag::kDelete | key_flag::kVariableFlags, .begin = 1}};
constexpr KeySpec kDelete[] = {{.flags = key_flag::kRemove | key_flag::kDelete, .begin = 1}};

// --- arguments ---
constexpr ArgumentSpec kKey{.name = "key", .type = Type::kKey, .key_spec = 0};
constexpr ArgumentSpec kValue{.name = "value"};
constexpr ArgumentSpec kSeconds{.name = "seconds", .type = Type::kInteger};
constexpr ArgumentSpec kMillis{.name = "milliseconds", .type = Type::kInteger};

constexpr ArgumentSpec kKeyArg[] = {kKey};
constexpr ArgumentSpec kKeysArg[] = {
    {.name = "key", .type = Type::kKey, .multiple = true, .key_spec = 0}};
constexpr ArgumentSpec kKeyValueArgs[] = {kKey, kValue};
constexpr ArgumentSpec kDecrementArgs[] = {kKey, {.name = "decrement", .type = Type::kInteger}};
constexpr ArgumentSpec kIncrementArgs[] = {kKey, {.name = "increment", .type = Type::kInteger}};
constexpr ArgumentSpec kFloatArgs[] = {kKey, {.name = "increment", .type = Type::kDouble}};
constexpr ArgumentSpec kRangeArgs[] = {
    kKey, {.name = "start", .type = Type::kInteger}, {.name = "end", .type = Type::kInteger}};
constexpr ArgumentSpec kSetRangeArgs[] = {kKey, {.name = "offset", .type = Type::kInteger}, kValue};
constexpr ArgumentSpec kSetExArgs[] = {kKey, kSeconds, kValue};
constexpr ArgumentSpec kPSetExArgs[] = {kKey, kMillis, kValue};

constexpr ArgumentSpec kPair[] = {kKey, kValue};
constexpr ArgumentSpec kPairsArg[] = {
    {.name = "data", .type = Type::kBlock, .multiple = true, .children = kPair}};

constexpr ArgumentSpec kEx{.name = "seconds", .type = Type::kInteger, .token = "EX"};
constexpr ArgumentSpec kPx{.name = "milliseconds", .type = Type::kInteger, .token = "PX"};
constexpr ArgumentSpec kExAt{.name = "unix-time-seconds", .type = Type::kUnixTime, .token = "EXAT"};
constexpr ArgumentSpec kPxAt{
    .name = "unix-time-milliseconds", .type = Type::kUnixTime, .token = "PXAT"};
constexpr ArgumentSpec kKeepTtl{.name = "keepttl", .type = Type::kPureToken, .token = "KEEPTTL"};
constexpr ArgumentSpec kPersist{.name = "persist", .type = Type::kPureToken, .token = "PERSIST"};
constexpr ArgumentSpec kNx{.name = "nx", .type = Type::kPureToken, .token = "NX"};
constexpr ArgumentSpec kXx{.name = "xx", .type = Type::kPureToken, .token = "XX"};
constexpr ArgumentSpec kIfEq{.name = "ifeq-value", .token = "IFEQ", .since = "8.4.0"};
constexpr ArgumentSpec kIfNe{.name = "ifne-value", .token = "IFNE", .since = "8.4.0"};
constexpr ArgumentSpec kIfDEq{.name = "ifdeq-digest", .token = "IFDEQ", .since = "8.4.0"};
constexpr ArgumentSpec kIfDNe{.name = "ifdne-digest", .token = "IFDNE", .since = "8.4.0"};

constexpr ArgumentSpec kExpiryOrKeep[] = {kEx, kPx, kExAt, kPxAt, kKeepTtl};
constexpr ArgumentSpec kExpiryOrPersist[] = {kEx, kPx, kExAt, kPxAt, kPersist};
constexpr ArgumentSpec kPresence[] = {kNx, kXx};
constexpr ArgumentSpec kCompare[] = {kIfEq, kIfNe, kIfDEq, kIfDNe};
constexpr ArgumentSpec kSetConditions[] = {kNx, kXx, kIfEq, kIfNe, kIfDEq, kIfDNe};
constexpr ArgumentSpec kSetArgs[] = {
    kKey,
    kValue,
    {.name = "condition",
     .type = Type::kOneOf,
     .optional = true,
     .since = "2.6.12",
     .children = kSetConditions},
    {.name = "get", .type = Type::kPureToken, .token = "GET", .optional = true, .since = "6.2.0"},
    {.name = "expiration", .type = Type::kOneOf, .optional = true, .children = kExpiryOrKeep}};
constexpr ArgumentSpec kGetExArgs[] = {
    kKey,
    {.name = "expiration", .type = Type::kOneOf, .optional = true, .children = kExpiryOrPersist}};
constexpr ArgumentSpec kMSetExArgs[] = {
    {.name = "numkeys", .type = Type::kInteger},
    {.name = "data", .type = Type::kBlock, .multiple = true, .children = kPair},
    {.name = "condition", .type = Type::kOneOf, .optional = true, .children = kPresence},
    {.name = "expiration", .type = Type::kOneOf, .optional = true, .children = kExpiryOrKeep}};
constexpr ArgumentSpec kDelExArgs[] = {
    kKey, {.name = "condition", .type = Type::kOneOf, .optional = true, .children = kCompare}};
constexpr ArgumentSpec kIncrExBy[] = {
    {.name = "float", .type = Type::kDouble, .token = "BYFLOAT"},
    {.name = "integer", .type = Type::kInteger, .token = "BYINT"}};
constexpr ArgumentSpec kIncrExArgs[] = {
    kKey,
    {.name = "increment", .type = Type::kOneOf, .optional = true, .children = kIncrExBy},
    {.name = "saturate", .type = Type::kPureToken, .token = "SATURATE", .optional = true},
    {.name = "lowerbound", .token = "LBOUND", .optional = true},
    {.name = "upperbound", .token = "UBOUND", .optional = true},
    {.name = "expiration", .type = Type::kOneOf, .optional = true, .children = kExpiryOrPersist},
    {.name = "enx", .type = Type::kPureToken, .token = "ENX", .optional = true}};
constexpr ArgumentSpec kLcsArgs[] = {
    {.name = "key1", .type = Type::kKey, .key_spec = 0},
    {.name = "key2", .type = Type::kKey, .key_spec = 0},
    {.name = "len", .type = Type::kPureToken, .token = "LEN", .optional = true},
    {.name = "idx", .type = Type::kPureToken, .token = "IDX", .optional = true},
    {.name = "min-match-len", .type = Type::kInteger, .token = "MINMATCHLEN", .optional = true},
    {.name = "withmatchlen", .type = Type::kPureToken, .token = "WITHMATCHLEN", .optional = true}};

constexpr CommandSpec kStringCommands[] = {
    {.name = "append",
     .arity = 3,
     .flags = kGrowFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = AppendCommand,
     .group = "string",
     .since = "2.0.0",
     .summary = "Appends bytes to a string, which is made if it does not exist.",
     .complexity = "O(1) on average; O(N), N the length of the string, when it has to be moved.",
     .key_specs = kInsertInto,
     .arguments = kKeyValueArgs},
    {.name = "decr",
     .arity = 2,
     .flags = kGrowFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = DecrCommand,
     .group = "string",
     .since = "1.0.0",
     .summary = "Subtracts one from an integer; a missing key counts as 0.",
     .complexity = "O(1)",
     .key_specs = kChange,
     .arguments = kKeyArg},
    {.name = "decrby",
     .arity = 3,
     .flags = kGrowFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = DecrByCommand,
     .group = "string",
     .since = "1.0.0",
     .summary = "Subtracts a number from an integer; a missing key counts as 0.",
     .complexity = "O(1)",
     .key_specs = kChange,
     .arguments = kDecrementArgs},
    {.name = "delex",
     .arity = -2,
     .flags = kWrite | kFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = DelExCommand,
     .group = "string",
     .since = "8.4.0",
     .summary = "Deletes a key if its value, or the digest of it, is or is not the one given.",
     .complexity = "O(1) for IFEQ and IFNE; O(N), N the length of the string, for IFDEQ and IFDNE.",
     .key_specs = kDeleteIf,
     .arguments = kDelExArgs},
    {.name = "delifeq",
     .arity = 3,
     .flags = kWrite | kFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = DelIfEqCommand,
     .group = "string",
     .since = "9.0.0",
     .summary = "Deletes a key if its value is the one given.",
     .complexity = "O(1)",
     .key_specs = kDelete,
     .arguments = kKeyValueArgs},
    {.name = "digest",
     .arity = 2,
     .flags = kReadOnly | kFast,
     .acl = kAclReadFast,
     .keys = {1, 1, 1},
     .handler = DigestCommand,
     .group = "string",
     .since = "8.4.0",
     .summary = "Returns the XXH3 digest of a string as 16 hexadecimal digits.",
     .complexity = "O(N), N the length of the string.",
     .key_specs = kRead,
     .arguments = kKeyArg},
    {.name = "get",
     .arity = 2,
     .flags = kReadOnly | kFast,
     .acl = kAclReadFast,
     .keys = {1, 1, 1},
     .handler = GetCommand,
     .group = "string",
     .since = "1.0.0",
     .summary = "Returns a string.",
     .complexity = "O(1)",
     .key_specs = kRead,
     .arguments = kKeyArg},
    {.name = "getdel",
     .arity = 2,
     .flags = kWrite | kFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = GetDelCommand,
     .group = "string",
     .since = "6.2.0",
     .summary = "Returns a string and deletes its key.",
     .complexity = "O(1)",
     .key_specs = kTakeAway,
     .arguments = kKeyArg},
    {.name = "getex",
     .arity = -2,
     .flags = kWrite | kFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = GetExCommand,
     .group = "string",
     .since = "6.2.0",
     .summary = "Returns a string and sets or removes its key's expiry.",
     .complexity = "O(1)",
     .key_specs = kChange,
     .arguments = kGetExArgs},
    {.name = "getrange",
     .arity = 4,
     .flags = kReadOnly,
     .acl = kAclReadSlow,
     .keys = {1, 1, 1},
     .handler = GetRangeCommand,
     .group = "string",
     .since = "2.4.0",
     .summary = "Returns the bytes of a string between two positions, both included.",
     .complexity = "O(N), N the number of bytes returned.",
     .key_specs = kRead,
     .arguments = kRangeArgs},
    {.name = "getset",
     .arity = 3,
     .flags = kGrowFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = GetSetCommand,
     .prepare = PrepareValueAt2,
     .group = "string",
     .since = "1.0.0",
     .summary = "Returns a string and sets the key to a new one.",
     .complexity = "O(1)",
     .key_specs = kChange,
     .deprecated_since = "6.2.0",
     .replaced_by = "`SET` with the `GET` option",
     .arguments = kKeyValueArgs},
    {.name = "incr",
     .arity = 2,
     .flags = kGrowFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = IncrCommand,
     .group = "string",
     .since = "1.0.0",
     .summary = "Adds one to an integer; a missing key counts as 0.",
     .complexity = "O(1)",
     .key_specs = kChange,
     .arguments = kKeyArg},
    {.name = "incrby",
     .arity = 3,
     .flags = kGrowFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = IncrByCommand,
     .group = "string",
     .since = "1.0.0",
     .summary = "Adds a number to an integer; a missing key counts as 0.",
     .complexity = "O(1)",
     .key_specs = kChange,
     .arguments = kIncrementArgs},
    {.name = "incrbyfloat",
     .arity = 3,
     .flags = kGrowFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = IncrByFloatCommand,
     .group = "string",
     .since = "2.6.0",
     .summary = "Adds a number to a decimal number; a missing key counts as 0.",
     .complexity = "O(1)",
     .key_specs = kChange,
     .arguments = kFloatArgs},
    {.name = "increx",
     .arity = -2,
     .flags = kGrowFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = IncrExCommand,
     .group = "string",
     .since = "8.8.0",
     .summary = "Adds to a number within bounds and sets its key's expiry.",
     .complexity = "O(1)",
     .key_specs = kChange,
     .arguments = kIncrExArgs},
    {.name = "lcs",
     .arity = -3,
     .flags = kReadOnly,
     .acl = kAclReadSlow,
     .keys = {1, 2, 1},
     .handler = LcsCommand,
     .group = "string",
     .since = "7.0.0",
     .summary = "Finds the longest common subsequence of two strings.",
     .complexity = "O(N*M), N and M the lengths of the strings.",
     .key_specs = kReadTwo,
     .arguments = kLcsArgs},
    {.name = "mget",
     .arity = -2,
     .flags = kReadOnly | kFast,
     .acl = kAclReadFast,
     .keys = {1, -1, 1},
     .handler = MGetCommand,
     .group = "string",
     .since = "1.0.0",
     .summary = "Returns the strings of one or more keys, at one moment.",
     .complexity = "O(N), N the number of keys.",
     .key_specs = kReadAll,
     .tips = "request_policy:multi_shard",
     .arguments = kKeysArg},
    {.name = "mset",
     .arity = -3,
     .flags = kGrow,
     .acl = kAclWriteSlow,
     .keys = {1, -1, 2},
     .handler = MSetCommand,
     .group = "string",
     .since = "1.0.1",
     .summary = "Sets one or more strings, all at one moment.",
     .complexity = "O(N), N the number of keys.",
     .key_specs = kReplacePairs,
     .tips = "request_policy:multi_shard response_policy:all_succeeded",
     .arguments = kPairsArg},
    {.name = "msetex",
     .arity = -4,
     .flags = kGrow | kMovableKeys,
     .acl = kAclWriteSlow,
     .handler = MSetExCommand,
     .get_keys = MSetExKeys,
     .group = "string",
     .since = "8.4.0",
     .summary = "Sets one or more strings with one expiry, all at one moment.",
     .complexity = "O(N), N the number of keys.",
     .key_specs = kReplaceCounted,
     .tips = "request_policy:multi_shard response_policy:all_succeeded",
     .arguments = kMSetExArgs},
    {.name = "msetnx",
     .arity = -3,
     .flags = kGrow,
     .acl = kAclWriteSlow,
     .keys = {1, -1, 2},
     .handler = MSetNxCommand,
     .group = "string",
     .since = "1.0.1",
     .summary = "Sets one or more strings, all or, if one of the keys exists, none.",
     .complexity = "O(N), N the number of keys.",
     .key_specs = kMakePairs,
     .arguments = kPairsArg},
    {.name = "psetex",
     .arity = 4,
     .flags = kGrow,
     .acl = kAclWriteSlow,
     .keys = {1, 1, 1},
     .handler = PSetExCommand,
     .prepare = PrepareValueAt3,
     .group = "string",
     .since = "2.6.0",
     .summary = "Sets a string that expires in some milliseconds.",
     .complexity = "O(1)",
     .key_specs = kReplace,
     .deprecated_since = "2.6.12",
     .replaced_by = "`SET` with the `PX` option",
     .arguments = kPSetExArgs},
    {.name = "set",
     .arity = -3,
     .flags = kGrow,
     .acl = kAclWriteSlow,
     .keys = {1, 1, 1},
     .handler = SetCommand,
     .prepare = PrepareValueAt2,
     .group = "string",
     .since = "1.0.0",
     .summary = "Sets a key to a string, whatever was there.",
     .complexity = "O(1)",
     .key_specs = kSetKey,
     .arguments = kSetArgs},
    {.name = "setex",
     .arity = 4,
     .flags = kGrow,
     .acl = kAclWriteSlow,
     .keys = {1, 1, 1},
     .handler = SetExCommand,
     .prepare = PrepareValueAt3,
     .group = "string",
     .since = "2.0.0",
     .summary = "Sets a string that expires in some seconds.",
     .complexity = "O(1)",
     .key_specs = kReplace,
     .deprecated_since = "2.6.12",
     .replaced_by = "`SET` with the `EX` option",
     .arguments = kSetExArgs},
    {.name = "setnx",
     .arity = 3,
     .flags = kGrowFast,
     .acl = kAclWriteFast,
     .keys = {1, 1, 1},
     .handler = SetNxCommand,
     .prepare = PrepareValueAt2,
     .group = "string",
     .since = "1.0.0",
     .summary = "Sets a string if the key does not exist.",
     .complexity = "O(1)",
     .key_specs = kMake,
     .deprecated_since = "2.6.12",
     .replaced_by = "`SET` with the `NX` option",
     .arguments = kKeyValueArgs},
    {.name = "setrange",
     .arity = 4,
     .flags = kGrow,
     .acl = kAclWriteSlow,
     .keys = {1, 1, 1},
     .handler = SetRangeCommand,
     .group = "string",
     .since = "2.2.0",
     .summary =
         "Overwrites a string from a position on; a gap before it is filled with zero bytes.",
     .complexity =
         "O(M), M the number of bytes written, plus O(N) when a string of N bytes is moved.",
     .key_specs = kUpdateIn,
     .arguments = kSetRangeArgs},
    {.name = "strlen",
     .arity = 2,
     .flags = kReadOnly | kFast,
     .acl = kAclReadFast,
     .keys = {1, 1, 1},
     .handler = StrLenCommand,
     .group = "string",
     .since = "2.2.0",
     .summary = "Returns the length of a string in bytes.",
     .complexity = "O(1)",
     .key_specs = kReadLength,
     .arguments = kKeyArg},
    {.name = "substr",
     .arity = 4,
     .flags = kReadOnly,
     .acl = kAclReadSlow,
     .keys = {1, 1, 1},
     .handler = GetRangeCommand,
     .group = "string",
     .since = "1.0.0",
     .summary = "Returns the bytes of a string between two positions, both included.",
     .complexity = "O(N), N the number of bytes returned.",
     .key_specs = kRead,
     .deprecated_since = "2.0.0",
     .replaced_by = "`GETRANGE`",
     .arguments = kRangeArgs},
};

}  // namespace

std::span<const CommandSpec> StringCommands() { return kStringCommands; }

}  // namespace hotkv
