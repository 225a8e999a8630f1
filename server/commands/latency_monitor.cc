#include "server/commands/latency_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace hotkv {

namespace {

constexpr size_t kGraphColumns = 80;
constexpr int64_t kGraphRows = 4;
constexpr int64_t kMinuteS = 60;
constexpr int64_t kHourS = 60 * kMinuteS;
constexpr int64_t kDayS = 24 * kHourS;

std::string AgeLabel(int64_t seconds) {
  if (seconds < kMinuteS) return fmt::format("{}s", seconds);
  if (seconds < kHourS) return fmt::format("{}m", seconds / kMinuteS);
  if (seconds < kDayS) return fmt::format("{}h", seconds / kHourS);
  return fmt::format("{}d", seconds / kDayS);
}

struct Spread {
  int64_t low = 0;
  int64_t high = 0;
  double mean = 0;
  double deviation = 0;  // mean absolute
};

Spread SpreadOf(const std::vector<LatencyMonitor::Sample>& samples) {
  Spread s;
  if (samples.empty()) return s;
  s.low = s.high = samples.front().milliseconds;
  for (const LatencyMonitor::Sample& sample : samples) {
    s.low = std::min(s.low, sample.milliseconds);
    s.high = std::max(s.high, sample.milliseconds);
    s.mean += static_cast<double>(sample.milliseconds);
  }
  const auto count = static_cast<double>(samples.size());
  s.mean /= count;
  for (const LatencyMonitor::Sample& sample : samples) {
    s.deviation += std::abs(static_cast<double>(sample.milliseconds) - s.mean) / count;
  }
  return s;
}

// What to look at when an event of this name shows up.
std::string_view AdviceFor(std::string_view event) {
  if (event == "command") {
    return "Commands over many elements took this long. See SLOWLOG GET for which ones; SCAN and "
           "its relatives, or "
           "smaller values, keep single calls short.";
  }
  if (event == "fast-command") {
    return "Commands that touch one element took this long: the process did not get the CPU, "
           "memory was swapped out, "
           "or the machine stood still. Compare with other processes' load and with swap (vmstat "
           "1).";
  }
  return "";
}

}  // namespace

void LatencyMonitor::Add(std::string_view event, int64_t milliseconds, int64_t now_s) {
  if (!Exceeds(milliseconds)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = events_.find(event);
  if (it == events_.end())
    it = events_.emplace(std::string(event), Event{std::string(event), 0, {}}).first;
  Event& e = it->second;
  e.milliseconds_max = std::max(e.milliseconds_max, milliseconds);
  if (!e.samples.empty() && e.samples.back().time_s == now_s) {
    e.samples.back().milliseconds = std::max(e.samples.back().milliseconds, milliseconds);
    return;
  }
  if (e.samples.size() == kSamplesMax) e.samples.erase(e.samples.begin());
  e.samples.push_back({now_s, milliseconds});
}

std::vector<LatencyMonitor::Event> LatencyMonitor::Events() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Event> out;
  out.reserve(events_.size());
  for (const auto& [name, event] : events_) out.push_back(event);
  return out;
}

LatencyMonitor::Event LatencyMonitor::Find(std::string_view event) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = events_.find(event);
  return it == events_.end() ? Event{} : it->second;
}

size_t LatencyMonitor::Reset(std::string_view event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (event.empty()) {
    const size_t count = events_.size();
    events_.clear();
    return count;
  }
  const auto it = events_.find(event);
  if (it == events_.end()) return 0;
  events_.erase(it);
  return 1;
}

std::string LatencyGraph(const LatencyMonitor::Event& event, int64_t now_s) {
  const Spread spread = SpreadOf(event.samples);
  std::string out = fmt::format("{} - high {} ms, low {} ms (all time high {} ms)\n", event.name,
                                spread.high, spread.low, event.milliseconds_max);
  out.append(kGraphColumns, '-');
  out += '\n';
  const size_t shown = std::min(event.samples.size(), kGraphColumns);
  const auto samples = event.samples.end() - static_cast<std::ptrdiff_t>(shown);

  // A column's height in half rows: a full row is '#', a half one '_'.
  const auto height = [&](const LatencyMonitor::Sample& s) {
    if (spread.high == spread.low) return int64_t{1};
    return 1 + (s.milliseconds - spread.low) * (2 * kGraphRows - 1) / (spread.high - spread.low);
  };
  for (int64_t row = kGraphRows - 1; row >= 0; --row) {
    std::string line;
    for (auto it = samples; it != event.samples.end(); ++it) {
      const int64_t h = height(*it) - 2 * row;
      line += h >= 2 ? '#' : h == 1 ? '_' : ' ';
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }

  // Ages below the columns, read from top to bottom.
  std::vector<std::string> labels;
  size_t label_rows = 0;
  for (auto it = samples; it != event.samples.end(); ++it) {
    labels.push_back(AgeLabel(std::max<int64_t>(0, now_s - it->time_s)));
    label_rows = std::max(label_rows, labels.back().size());
  }
  for (size_t row = 0; row < label_rows; ++row) {
    out += '\n';
    for (const std::string& label : labels) out += row < label.size() ? label[row] : ' ';
  }
  out += '\n';
  return out;
}

std::string LatencyReport(const std::vector<LatencyMonitor::Event>& events, int64_t threshold_ms,
                          int64_t now_s) {
  if (events.empty() && threshold_ms == 0) {
    return "Latency monitoring is off, so there is nothing to report. Switch it on with "
           "CONFIG SET latency-monitor-threshold <milliseconds>: what takes longer is then "
           "recorded.\n";
  }
  if (events.empty()) {
    return fmt::format("No event took {} ms or longer since recording began.\n", threshold_ms);
  }
  std::string out =
      fmt::format("{} kind(s) of event took {} ms or longer:\n", events.size(), threshold_ms);
  for (const LatencyMonitor::Event& event : events) {
    const Spread spread = SpreadOf(event.samples);
    const int64_t first_s = event.samples.front().time_s;
    const auto gaps = static_cast<double>(std::max<size_t>(1, event.samples.size() - 1));
    const double period_s = static_cast<double>(event.samples.back().time_s - first_s) / gaps;
    fmt::format_to(std::back_inserter(out),
                   "\n{}: {} spike(s), {:.0f} ms on average, {:.0f} ms mean deviation, {:.1f} s "
                   "apart, worst {} ms, the "
                   "last {} ago.\n",
                   event.name, event.samples.size(), spread.mean, spread.deviation, period_s,
                   event.milliseconds_max,
                   AgeLabel(std::max<int64_t>(0, now_s - event.samples.back().time_s)));
    const std::string_view advice = AdviceFor(event.name);
    if (!advice.empty()) fmt::format_to(std::back_inserter(out), "  {}\n", advice);
  }
  return out;
}

}  // namespace hotkv
