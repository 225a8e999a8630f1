// What COMMAND tells of a command beyond its flags: where its keys lie and what happens to them,
// and its arguments as a tree. Values of CommandSpec, one constexpr array a command (arrays are
// shared where commands agree).
//
// Thread rules: constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hotkv {

namespace key_flag {
// One of these: what the command does to the key as a whole.
inline constexpr uint32_t kReadOnly = 1u << 0;   // RO
inline constexpr uint32_t kReadWrite = 1u << 1;  // RW: changes what is there
inline constexpr uint32_t kOverwrite = 1u << 2;  // OW: whatever was there is gone
inline constexpr uint32_t kRemove = 1u << 3;     // RM
// Any of these: what it does to the value's content.
inline constexpr uint32_t kAccess = 1u << 4;  // returns, copies or depends on it
inline constexpr uint32_t kUpdate = 1u << 5;
inline constexpr uint32_t kInsert = 1u << 6;  // adds, changes nothing that is there
inline constexpr uint32_t kDelete = 1u << 7;
inline constexpr uint32_t kNotKey = 1u << 8;
inline constexpr uint32_t kIncomplete = 1u << 9;
inline constexpr uint32_t kVariableFlags = 1u << 10;  // arguments decide
}  // namespace key_flag

struct KeySpec {
  enum class Find : uint8_t { kRange, kKeynum };

  uint32_t flags = 0;
  int begin = 0;  // argument where the keys begin, or where the search for begin_keyword starts
  std::string_view begin_keyword = "";  // the keys begin behind this word
  Find find = Find::kRange;
  int last =
      0;  // kRange: last key, counted from the first; negative: from the end of the arguments
  int limit = 0;   // kRange with last -1: 2 means the first half of what is left, and so on
  int keynum = 0;  // kKeynum: where the number of keys stands, counted from `begin`
  int first = 0;   // kKeynum: first key, counted from `begin`
  int step = 1;
  std::string_view notes = "";
};

enum class ArgumentType : uint8_t {
  kString,
  kInteger,
  kDouble,
  kKey,
  kPattern,
  kUnixTime,
  kPureToken,  // a word without a value
  kOneOf,      // one of its children
  kBlock,      // all of its children, in order
};

struct ArgumentSpec {
  std::string_view name;
  ArgumentType type = ArgumentType::kString;
  std::string_view token = "";  // word in front of the value
  bool optional = false;
  bool multiple = false;        // may be given again and again
  bool multiple_token = false;  // then with its token each time
  int key_spec = -1;            // kKey: index of the KeySpec that finds it
  std::string_view since = "";
  std::span<const ArgumentSpec> children = {};
};

}  // namespace hotkv
