#include "progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "report.h"

namespace omniconv::cli {
namespace {

// What a terminal of so many columns has room for (0: not known), with its last column left free: a line that fills it
// would wrap.
std::string progress_line(double share, const std::string& rate, double left, int terminal) {
  const int room = terminal > 0 ? terminal - 1 : 79;
  constexpr int widest = 30, narrowest = 5;
  const std::string text = fmt::format("{:3.0f} %  {}  {:.0f} s left", 100 * share, rate, left);
  const int bar = std::min(widest, room - static_cast<int>(text.size()) - 3);
  if (bar < narrowest)
    return fmt::format("{:3.0f} %  {:.0f} s left", 100 * share, left).substr(0, static_cast<std::size_t>(room));
  const int full = static_cast<int>(share * bar);
  return fmt::format("[{:=<{}}{:<{}}] {}", "", full, "", bar - full, text);
}

}  // namespace

void ProgressBar::update(std::int64_t rows, std::int64_t all_rows, std::int64_t columns) {
  pixels_here_ = static_cast<double>(rows) * static_cast<double>(columns);
  const double done = static_cast<double>(images_done_) + static_cast<double>(rows) / static_cast<double>(all_rows);
  draw(done / static_cast<double>(images_),
       [&](double elapsed) { return fmt::format("{:.0f} Mpixel/s", (pixels_done_ + pixels_here_) / elapsed / 1e6); });
}

void ProgressBar::update(std::int64_t done, std::int64_t all, const char* what) {
  if (done == 0) return;
  draw(static_cast<double>(done) / static_cast<double>(all),
       [&](double elapsed) { return fmt::format("{:.0f} {}/s", static_cast<double>(done) / elapsed, what); });
}

template <typename Rate>
void ProgressBar::draw(double share, const Rate& rate) {
  const double elapsed = seconds(start_);
  if (!enabled_ || elapsed < 1 || (drawn_ && seconds(last_) < 0.1)) return;
  fmt::print(stderr, "\r\x1b[K{}",
             progress_line(share, rate(elapsed), elapsed * (1 - share) / share, terminal_columns(stderr)));
  std::fflush(stderr);
  drawn_ = true;
  last_ = Clock::now();
}

void ProgressBar::next_image() {
  ++images_done_;
  pixels_done_ += pixels_here_;
  pixels_here_ = 0;
}

void ProgressBar::clear() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace omniconv::cli
