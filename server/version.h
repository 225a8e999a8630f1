// Versions that the server tells: its own, and the Redis release that it follows, since clients decide by that one.
//
// Change together: project(VERSION) in CMakeLists.txt.
// Thread rules: constants.
#pragma once

#include <string_view>

namespace hotkv {

inline constexpr std::string_view kHotkvVersion = "0.1.0";
inline constexpr std::string_view kRedisVersion = "8.4.0";

}  // namespace hotkv
