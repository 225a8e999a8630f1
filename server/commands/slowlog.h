// Slowlog: the last commands that ran longer than slowlog-log-slower-than, for SLOWLOG GET. Run
// time and waiting time (for the log's room, for data to become resident, for durability) are kept
// apart: a command that waited long and ran briefly was not slow itself.
//
// Thread rules: any thread; one mutex, taken only by commands over the threshold and by SLOWLOG.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hotkv {

struct SlowlogEntry {
  uint64_t id = 0;
  int64_t time_s = 0;
  int64_t run_us = 0;
  int64_t waited_us = 0;
  std::vector<std::string> args;  // shortened
  std::string client_addr;
  std::string client_name;
};

class Slowlog {
 public:
  static constexpr size_t kArgumentsMax =
      32;  // of one entry; the last then says how many more there were
  static constexpr size_t kArgumentBytesMax = 128;

  // Keeps the newest `capacity` entries.
  void SetCapacity(size_t capacity);
  // Sets entry.id, which it returns; args are shortened here.
  uint64_t Add(SlowlogEntry entry, std::span<const std::string_view> args);
  // An entry's reply has waited for durability; nothing happens when the entry is gone.
  void AddWait(uint64_t id, int64_t microseconds);
  std::vector<SlowlogEntry> Newest(size_t count) const;
  size_t size() const;
  void Clear();

 private:
  mutable std::mutex mutex_;
  std::deque<SlowlogEntry> entries_;  // newest first; guarded by mutex_
  size_t capacity_ = 128;             // guarded by mutex_
  uint64_t next_id_ = 0;              // guarded by mutex_
};

// The arguments as the slow log keeps them.
std::vector<std::string> ShortenArguments(std::span<const std::string_view> args);

}  // namespace hotkv
