#include "server/commands/slowlog.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hotkv {

std::vector<std::string> ShortenArguments(std::span<const std::string_view> args) {
  const size_t count = std::min(args.size(), Slowlog::kArgumentsMax);
  std::vector<std::string> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (i + 1 == count && count != args.size()) {
      out.push_back(fmt::format("... ({} more arguments)", args.size() - count + 1));
    } else if (args[i].size() > Slowlog::kArgumentBytesMax) {
      out.push_back(fmt::format("{}... ({} more bytes)",
                                args[i].substr(0, Slowlog::kArgumentBytesMax),
                                args[i].size() - Slowlog::kArgumentBytesMax));
    } else {
      out.emplace_back(args[i]);
    }
  }
  return out;
}

void Slowlog::SetCapacity(size_t capacity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  capacity_ = capacity;
  if (entries_.size() > capacity_) entries_.resize(capacity_);
}

uint64_t Slowlog::Add(SlowlogEntry entry, std::span<const std::string_view> args) {
  entry.args = ShortenArguments(args);
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t id = entry.id = next_id_++;
  entries_.push_front(std::move(entry));
  if (entries_.size() > capacity_) entries_.resize(capacity_);
  return id;
}

void Slowlog::AddWait(uint64_t id, int64_t microseconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [id](const SlowlogEntry& entry) { return entry.id == id; });
  if (found != entries_.end()) found->waited_us += microseconds;
}

std::vector<SlowlogEntry> Slowlog::Newest(size_t count) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(std::min(count, entries_.size()));
  return {entries_.begin(), end};
}

size_t Slowlog::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

void Slowlog::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.clear();
}

}  // namespace hotkv
