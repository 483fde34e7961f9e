// The best rate of several measurements, for the peaks of every kind of device.
#pragma once

#include <algorithm>
#include <chrono>

namespace omniconv::devices {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What was done, in units of the caller's, and how long it took.
struct Done {
  double units = 0, seconds = 0;
};

// The most units per second of the calls of `measure`, which returns Done, that fit in `budget` seconds, after the
// first, which warms up; at least one is counted. Times too short for the clock count as no rate, 0.
template <typename Measure>
double best_rate(double budget, const Measure& measure) {
  const auto start = std::chrono::steady_clock::now();
  const auto rate = [&] {
    const Done done = measure();
    return done.seconds > 0 ? done.units / done.seconds : 0;
  };
  rate();
  double best = rate();
  const double each = seconds_since(start) / 2;
  while (seconds_since(start) + each < budget) best = std::max(best, rate());
  return best;
}

}  // namespace omniconv::devices
