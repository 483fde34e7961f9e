// The one stopwatch: device time by events, repeated until it is steady, with an interval.
#pragma once

#include <functional>
#include <vector>

#include "omniconv/context.h"

namespace omniconv::timing {

struct Summary {
  double median = 0, minimum = 0;  // seconds
  double low = 0, high = 0;        // the median's 95 % interval, from order statistics (binomial)
  int samples = 0;
};
// Throws for no samples.
Summary summarize(std::vector<double> seconds);

struct SamplingOptions {
  double budget_seconds = 1;  // samples are taken until it is spent
  int least_samples = 5, most_samples = 1000;
  double steady = 0.01;  // or until the interval is within this share of the median
  int warm_up = 1;
};
// `submit(i)` submits the i-th repetition (warm-ups included) and returns its event; rotating among buffers by i keeps
// caches cold. The sample is the device's own time of that submission.
Summary sample(const std::function<Event(int)>& submit, const SamplingOptions& options = {});

// Two works side by side. `ratio` is of the second's seconds to the first's, taken pair by pair, so that what slows the
// machine for a while slows both; it has no samples where the clock was too coarse for any pair.
struct Comparison {
  Summary first, second, ratio;
};
// As sample(), in pairs of neighbours whose order changes from pair to pair: first, second, second, first. Both works
// count their repetitions together, so that neither finds in the caches what the other has just read.
Comparison compare(const std::function<Event(int)>& first, const std::function<Event(int)>& second,
                   const SamplingOptions& options = {});

}  // namespace omniconv::timing
