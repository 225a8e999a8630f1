#include "server/commands/command_info.h"

#include <algorithm>
#include <array>
#include <span>

#include "engine/base/number.h"
#include "engine/commands/command_context.h"
#include "engine/commands/command_docs.h"

namespace hotkv {

namespace {

struct NamedBit {
  uint32_t bit;
  std::string_view name;
};

// In the order in which Redis lists them.
constexpr NamedBit kCommandFlags[] = {
    {command_flag::kWrite, "write"},
    {command_flag::kReadOnly, "readonly"},
    {command_flag::kDenyOom, "denyoom"},
    {command_flag::kAdmin, "admin"},
    {command_flag::kPubSub, "pubsub"},
    {command_flag::kNoScript, "noscript"},
    {command_flag::kBlocking, "blocking"},
    {command_flag::kLoading, "loading"},
    {command_flag::kStale, "stale"},
    {command_flag::kSkipMonitor, "skip_monitor"},
    {command_flag::kSkipSlowlog, "skip_slowlog"},
    {command_flag::kFast, "fast"},
    {command_flag::kNoAuth, "no_auth"},
    {command_flag::kNoAsyncLoading, "no_async_loading"},
    {command_flag::kNoMulti, "no_multi"},
    {command_flag::kMovableKeys, "movablekeys"},
    {command_flag::kAllowBusy, "allow_busy"},
};

constexpr NamedBit kAclCategories[] = {
    {acl_category::kKeyspace, "keyspace"},
    {acl_category::kRead, "read"},
    {acl_category::kWrite, "write"},
    {acl_category::kString, "string"},
    {acl_category::kPubSub, "pubsub"},
    {acl_category::kAdmin, "admin"},
    {acl_category::kFast, "fast"},
    {acl_category::kSlow, "slow"},
    {acl_category::kBlocking, "blocking"},
    {acl_category::kDangerous, "dangerous"},
    {acl_category::kConnection, "connection"},
    {acl_category::kTransaction, "transaction"},
    {acl_category::kScripting, "scripting"},
    {acl_category::kVector, "vector"},
};

constexpr NamedBit kKeyFlags[] = {
    {key_flag::kReadOnly, "RO"},
    {key_flag::kReadWrite, "RW"},
    {key_flag::kOverwrite, "OW"},
    {key_flag::kRemove, "RM"},
    {key_flag::kAccess, "access"},
    {key_flag::kUpdate, "update"},
    {key_flag::kInsert, "insert"},
    {key_flag::kDelete, "delete"},
    {key_flag::kNotKey, "not_key"},
    {key_flag::kIncomplete, "incomplete"},
    {key_flag::kVariableFlags, "variable_flags"},
};

std::vector<std::string_view> NamesOf(std::span<const NamedBit> table, uint32_t bits) {
  std::vector<std::string_view> names;
  for (const NamedBit& named : table) {
    if ((bits & named.bit) != 0) names.push_back(named.name);
  }
  return names;
}

void ReplyNames(ReplyWriter& reply, const std::vector<std::string_view>& names) {
  reply.SetHeader(names.size());
  for (const std::string_view name : names) reply.Simple(name);
}

// Words separated by blanks.
std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// What a command does to its keys, where its spec does not say.
uint32_t DefaultKeyFlags(const CommandSpec& spec) {
  return spec.Has(command_flag::kWrite) ? key_flag::kReadWrite | key_flag::kUpdate
                                        : key_flag::kReadOnly | key_flag::kAccess;
}

KeySpec SpecOfRange(const CommandSpec& spec) {
  KeySpec out;
  out.flags = DefaultKeyFlags(spec);
  out.begin = spec.keys.first;
  out.last = spec.keys.last < 0 ? spec.keys.last : spec.keys.last - spec.keys.first;
  out.step = spec.keys.step;
  return out;
}

void ReplyPair(ReplyWriter& reply, std::string_view name, int64_t value) {
  reply.Bulk(name);
  reply.Integer(value);
}

void ReplyTyped(ReplyWriter& reply, std::string_view type) {
  reply.MapHeader(2);
  reply.Bulk("type");
  reply.Bulk(type);
  reply.Bulk("spec");
}

void ReplyKeySpec(ReplyWriter& reply, const KeySpec& spec) {
  reply.MapHeader(spec.notes.empty() ? 3 : 4);
  if (!spec.notes.empty()) {
    reply.Bulk("notes");
    reply.Bulk(spec.notes);
  }
  reply.Bulk("flags");
  ReplyKeyFlags(reply, spec.flags);

  reply.Bulk("begin_search");
  if (spec.begin_keyword.empty()) {
    ReplyTyped(reply, "index");
    reply.MapHeader(1);
    ReplyPair(reply, "index", spec.begin);
  } else {
    ReplyTyped(reply, "keyword");
    reply.MapHeader(2);
    reply.Bulk("keyword");
    reply.Bulk(spec.begin_keyword);
    ReplyPair(reply, "startfrom", spec.begin);
  }

  reply.Bulk("find_keys");
  if (spec.find == KeySpec::Find::kRange) {
    ReplyTyped(reply, "range");
    reply.MapHeader(3);
    ReplyPair(reply, "lastkey", spec.last);
    ReplyPair(reply, "keystep", spec.step);
    ReplyPair(reply, "limit", spec.limit);
  } else {
    ReplyTyped(reply, "keynum");
    reply.MapHeader(3);
    ReplyPair(reply, "keynumidx", spec.keynum);
    ReplyPair(reply, "firstkey", spec.first);
    ReplyPair(reply, "keystep", spec.step);
  }
}

void ReplyKeySpecs(ReplyWriter& reply, const CommandSpec& spec) {
  if (!spec.key_specs.empty()) {
    reply.SetHeader(spec.key_specs.size());
    for (const KeySpec& key_spec : spec.key_specs) ReplyKeySpec(reply, key_spec);
  } else if (spec.keys.first > 0) {
    reply.SetHeader(1);
    ReplyKeySpec(reply, SpecOfRange(spec));
  } else {
    reply.SetHeader(0);
  }
}

std::string_view TypeName(ArgumentType type) {
  switch (type) {
    case ArgumentType::kString:
      return "string";
    case ArgumentType::kInteger:
      return "integer";
    case ArgumentType::kDouble:
      return "double";
    case ArgumentType::kKey:
      return "key";
    case ArgumentType::kPattern:
      return "pattern";
    case ArgumentType::kUnixTime:
      return "unix-time";
    case ArgumentType::kPureToken:
      return "pure-token";
    case ArgumentType::kOneOf:
      return "oneof";
    case ArgumentType::kBlock:
      return "block";
  }
  return "string";
}

void ReplyArgument(ReplyWriter& reply, const ArgumentSpec& arg);

void ReplyArguments(ReplyWriter& reply, std::span<const ArgumentSpec> arguments) {
  reply.ArrayHeader(arguments.size());
  for (const ArgumentSpec& arg : arguments) ReplyArgument(reply, arg);
}

void ReplyArgument(ReplyWriter& reply, const ArgumentSpec& arg) {
  const bool nested = arg.type == ArgumentType::kOneOf || arg.type == ArgumentType::kBlock;
  std::vector<std::string_view> flags;
  if (arg.optional) flags.push_back("optional");
  if (arg.multiple) flags.push_back("multiple");
  if (arg.multiple_token) flags.push_back("multiple_token");

  const ReplyWriter::Deferred map = reply.DeferMap();
  size_t pairs = 3;
  reply.Bulk("name");
  reply.Bulk(arg.name);
  reply.Bulk("type");
  reply.Bulk(TypeName(arg.type));
  if (!nested) {
    reply.Bulk("display_text");
    reply.Bulk(arg.name);
  }
  if (arg.key_spec >= 0) {
    ReplyPair(reply, "key_spec_index", arg.key_spec);
    ++pairs;
  }
  if (!arg.token.empty()) {
    reply.Bulk("token");
    reply.Bulk(arg.token);
    ++pairs;
  }
  if (!arg.since.empty()) {
    reply.Bulk("since");
    reply.Bulk(arg.since);
    ++pairs;
  }
  if (!flags.empty()) {
    reply.Bulk("flags");
    ReplyNames(reply, flags);
    ++pairs;
  }
  if (nested) {
    reply.Bulk("arguments");
    ReplyArguments(reply, arg.children);
  }
  reply.Close(map, pairs);
}

// Indexes of the arguments that a key spec finds.
std::vector<uint32_t> IndexesOf(const KeySpec& spec, Args args) {
  const auto count = static_cast<int64_t>(args.size());
  int64_t begin = spec.begin;
  if (!spec.begin_keyword.empty()) {
    const bool backwards = begin < 0;
    begin = backwards ? count + begin : begin;
    while (begin > 0 && begin < count &&
           !EqualsIgnoreCase(args[static_cast<size_t>(begin)], spec.begin_keyword)) {
      begin += backwards ? -1 : 1;
    }
    if (begin <= 0 || begin >= count) return {};
    ++begin;
  }
  int64_t first = begin;
  int64_t last = begin + spec.last;
  if (spec.find == KeySpec::Find::kKeynum) {
    const int64_t place = begin + spec.keynum;
    if (place < 0 || place >= count) return {};
    const std::optional<int64_t> keys = ParseInt64(args[static_cast<size_t>(place)]);
    if (!keys || *keys < 0 || *keys > count) return {};
    first = begin + spec.first;
    last = first + (*keys - 1) * spec.step;
  } else if (spec.last < 0) {
    last = spec.limit > 1 ? begin + (count - begin) / spec.limit + spec.last : count + spec.last;
  }
  std::vector<uint32_t> out;
  for (int64_t i = first; i <= last && i < count; i += spec.step) {
    out.push_back(static_cast<uint32_t>(i));
  }
  return out;
}

bool HasWord(Args args, size_t from, std::string_view upper) {
  return args.size() > from &&
         std::any_of(args.begin() + static_cast<std::ptrdiff_t>(from), args.end(),
                     [&](std::string_view arg) { return EqualsIgnoreCase(arg, upper); });
}

// Flags that depend on the arguments.
uint32_t SettledFlags(const CommandSpec& spec, Args args, uint32_t flags) {
  if ((flags & key_flag::kVariableFlags) == 0) return flags;
  constexpr uint32_t kReadAndWrite = key_flag::kReadWrite | key_flag::kAccess | key_flag::kUpdate;
  if (spec.name == "set") {
    const bool reads =
        HasWord(args, 3, "GET") || HasWord(args, 3, "IFEQ") || HasWord(args, 3, "IFNE");
    return reads ? kReadAndWrite : key_flag::kOverwrite | key_flag::kUpdate;
  }
  if (spec.name == "bitfield") {
    const bool writes = HasWord(args, 2, "SET") || HasWord(args, 2, "INCRBY");
    return writes ? kReadAndWrite : key_flag::kReadOnly | key_flag::kAccess;
  }
  return flags & ~key_flag::kVariableFlags;
}

}  // namespace

std::vector<std::string_view> AclCategoryNames(uint32_t categories) {
  return NamesOf(kAclCategories, categories);
}

std::optional<uint32_t> FindAclCategory(std::string_view name) {
  for (const NamedBit& named : kAclCategories) {
    if (name.size() == named.name.size() &&
        std::equal(name.begin(), name.end(), named.name.begin(), [](char a, char b) {
          return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
        })) {
      return named.bit;
    }
  }
  return std::nullopt;
}

void ReplyKeyFlags(ReplyWriter& reply, uint32_t flags) {
  ReplyNames(reply, NamesOf(kKeyFlags, flags));
}

uint32_t KeyFlagsOf(const CommandSpec& spec, Args args, uint32_t index) {
  for (const KeySpec& key_spec : spec.key_specs) {
    const std::vector<uint32_t> indexes = IndexesOf(key_spec, args);
    if (std::find(indexes.begin(), indexes.end(), index) != indexes.end()) {
      return SettledFlags(spec, args, key_spec.flags);
    }
  }
  return DefaultKeyFlags(spec);
}

void ReplyCommandInfo(ReplyWriter& reply, const CommandSpec& spec) {
  reply.ArrayHeader(10);
  reply.Bulk(spec.name);
  reply.Integer(spec.arity);
  ReplyNames(reply, NamesOf(kCommandFlags, spec.flags));
  reply.Integer(spec.keys.first);
  reply.Integer(spec.keys.last);
  reply.Integer(spec.keys.step);
  const std::vector<std::string_view> categories = AclCategoryNames(spec.acl);
  reply.SetHeader(categories.size());
  for (const std::string_view category : categories) reply.Simple("@" + std::string(category));
  const std::vector<std::string_view> tips = Words(spec.tips);
  reply.SetHeader(tips.size());
  for (const std::string_view tip : tips) reply.Bulk(tip);
  ReplyKeySpecs(reply, spec);
  if (spec.subcommands.empty()) return reply.SetHeader(0);
  reply.ArrayHeader(spec.subcommands.size());
  for (const CommandSpec& sub : spec.subcommands) ReplyCommandInfo(reply, sub);
}

void ReplyCommandDocs(ReplyWriter& reply, const CommandSpec& spec) {
  const ReplyWriter::Deferred map = reply.DeferMap();
  size_t pairs = 0;
  const auto text = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    reply.Bulk(name);
    reply.Bulk(value);
    ++pairs;
  };
  text("summary", spec.summary);
  text("since", spec.since);
  text("group", spec.group.empty() ? std::string_view("generic") : spec.group);
  text("complexity", spec.complexity);
  if (!spec.deprecated_since.empty()) {
    reply.Bulk("doc_flags");
    ReplyNames(reply, {"deprecated"});
    ++pairs;
  }
  text("deprecated_since", spec.deprecated_since);
  text("replaced_by", spec.replaced_by);
  if (!spec.arguments.empty()) {
    reply.Bulk("arguments");
    ReplyArguments(reply, spec.arguments);
    ++pairs;
  }
  if (!spec.subcommands.empty()) {
    reply.Bulk("subcommands");
    reply.MapHeader(spec.subcommands.size());
    for (const CommandSpec& sub : spec.subcommands) {
      reply.Bulk(sub.name);
      ReplyCommandDocs(reply, sub);
    }
    ++pairs;
  }
  reply.Close(map, pairs);
}

}  // namespace hotkv
