#include "tools/common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace hotkv {
namespace {

constexpr std::chrono::milliseconds kBetweenDraws{100};
constexpr size_t kBarColumns = 30;

}  // namespace

ProgressBar::ProgressBar(std::string_view label, uint64_t total)
    : label_(label), total_(total), on_terminal_(::isatty(STDERR_FILENO) == 1), start_(Clock::now()) {}

ProgressBar::~ProgressBar() { Finish(); }

void ProgressBar::Update(uint64_t done) {
  done_ = done;
  if (!on_terminal_) return;
  const auto now = Clock::now();
  if (drawn_ && now - last_drawn_ < kBetweenDraws) return;
  Draw(now);
}

void ProgressBar::Finish() {
  if (!drawn_) return;
  Draw(Clock::now());
  std::fputc('\n', stderr);
  drawn_ = false;
  on_terminal_ = false;
}

void ProgressBar::Draw(Clock::time_point now) {
  last_drawn_ = now;
  drawn_ = true;
  const double seconds = std::max(std::chrono::duration<double>(now - start_).count(), 1e-3);
  const double rate = static_cast<double>(done_) / seconds;
  std::string line;
  if (total_ > 0) {
    const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    const auto filled = static_cast<size_t>(share * static_cast<double>(kBarColumns));
    line = fmt::format("\r{} [{}{}] {:3.0f}%  {}/{}  {:.0f}/s", label_, std::string(filled, '#'),
                       std::string(kBarColumns - filled, '.'), share * 100, done_, total_, rate);
    const double left = static_cast<double>(total_ - std::min(done_, total_)) / std::max(rate, 1e-9);
    if (done_ < total_ && done_ > 0) line += fmt::format("  {:.0f} s left", left);
  } else {
    line = fmt::format("\r{}  {}  {:.0f}/s", label_, done_, rate);
  }
  line += "\x1b[K";
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace hotkv
