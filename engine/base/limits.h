// Every bound on outside input and on queues, by name. Relations between them are asserted here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hotkv {

inline constexpr size_t kArgumentsMax = 1024 * 1024;           // multibulk count of an authenticated client
inline constexpr size_t kInlineBytesMax = 64 * 1024;           // an inline request, or a header line
inline constexpr size_t kStringBytesMax = 512u * 1024 * 1024;  // default of proto-max-bulk-len
inline constexpr size_t kUnauthArgumentsMax = 10;
inline constexpr size_t kUnauthBulkBytesMax = 16384;
inline constexpr unsigned kWorkersMax = 255;  // a worker is one byte in an effect
inline constexpr unsigned kStripeBitsDefault = 12;
inline constexpr unsigned kStripeBitsMax = 16;
inline constexpr unsigned kDatabasesMax = 1024;
inline constexpr uint32_t kVectorDimMax = 32768;
// A string value up to this size lies in its entry; a larger one in a SharedBlock.
inline constexpr size_t kInlineValueBytesMax = 16 * 1024;
inline constexpr unsigned kCommandWindow = 32;  // commands prefetched together
inline constexpr int64_t kTurnBudgetNs = 500'000;

}  // namespace hotkv
