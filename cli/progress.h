// How far a long work is, on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace omniconv::cli {

// One line on stderr, drawn again at most ten times a second, and only for work of more than a second. The work is a
// number of images.
class ProgressBar {
 public:
  ProgressBar(bool enabled, std::int64_t images) : enabled_(enabled), images_(images) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Of the image at hand, how many of its rows are done.
  void update(std::int64_t rows, std::int64_t all_rows, std::int64_t columns);
  void next_image();
  // Of a work whose parts are no images: `what` names them, as in "problems".
  void update(std::int64_t done, std::int64_t all, const char* what);
  // For other lines on the terminal.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  // Where it is time for it. `rate` is of work, as in "30 Mpixel/s".
  template <typename Rate>
  void draw(double share, const Rate& rate);
  static double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

  bool enabled_, drawn_ = false;
  std::int64_t images_, images_done_ = 0;
  double pixels_done_ = 0, pixels_here_ = 0;  // of images before this one, and of this one
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace omniconv::cli
