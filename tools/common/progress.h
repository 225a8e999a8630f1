// A progress bar on standard error: drawn on a terminal only, at most ten times a second, so that scripts and logs stay
// clean and Update() may be called for every record.
//
// Thread rules: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace hotkv {

class ProgressBar {
 public:
  // total 0: the end is not known, only the count and the rate are shown.
  ProgressBar(std::string_view label, uint64_t total);
  ~ProgressBar();  // finishes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Update(uint64_t done);
  void Finish();

 private:
  using Clock = std::chrono::steady_clock;
  void Draw(Clock::time_point now);

  std::string label_;
  uint64_t total_;
  uint64_t done_ = 0;
  bool on_terminal_;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point last_drawn_;
};

}  // namespace hotkv
