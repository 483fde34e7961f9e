#include "timing/stopwatch.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "omniconv/error.h"

namespace omniconv::timing {

Summary summarize(std::vector<double> seconds) {
  if (seconds.empty()) throw bad_input("no samples to summarize: at least one is needed");
  std::sort(seconds.begin(), seconds.end());
  const auto n = static_cast<std::int64_t>(seconds.size());
  const auto at = [&](std::int64_t i) {
    return seconds[static_cast<std::size_t>(std::clamp<std::int64_t>(i, 0, n - 1))];
  };
  Summary summary;
  summary.samples = static_cast<int>(n);
  summary.minimum = seconds.front();
  summary.median = n % 2 == 1 ? at(n / 2) : (at(n / 2 - 1) + at(n / 2)) / 2;
  // Ranks between which the true median lies with 95 % (normal form of the binomial distribution).
  const double half_width = 0.98 * std::sqrt(static_cast<double>(n));
  summary.low = at(static_cast<std::int64_t>(std::floor(static_cast<double>(n) / 2 - half_width)));
  summary.high = at(static_cast<std::int64_t>(std::ceil(static_cast<double>(n) / 2 + half_width)));
  return summary;
}

namespace {

// Decides after each sample whether to take another: at least so many, then until the budget is spent or the samples
// are steady.
class Sampling {
 public:
  explicit Sampling(const SamplingOptions& options) : options_(options) {}

  // `deciding` are the samples so far, whose interval says whether they are steady.
  bool goes_on(const std::vector<double>& deciding, int taken) const {
    if (taken >= options_.most_samples) return false;
    if (taken < options_.least_samples) return true;
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    if (spent >= options_.budget_seconds) return false;
    return taken < 20 || taken % 5 != 0 || !steady(deciding);
  }

 private:
  bool steady(const std::vector<double>& samples) const {
    if (samples.empty()) return false;
    const Summary summary = summarize(samples);
    return summary.high - summary.low <= options_.steady * summary.median;
  }

  SamplingOptions options_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

double seconds_of(Event event) {
  event.wait();
  return event.seconds();
}

}  // namespace

Summary sample(const std::function<Event(int)>& submit, const SamplingOptions& options) {
  std::vector<double> seconds;
  const Sampling sampling(options);
  for (int i = 0; i < options.warm_up; ++i) submit(i).wait();
  while (sampling.goes_on(seconds, static_cast<int>(seconds.size())))
    seconds.push_back(seconds_of(submit(options.warm_up + static_cast<int>(seconds.size()))));
  return summarize(std::move(seconds));
}

Comparison compare(const std::function<Event(int)>& first, const std::function<Event(int)>& second,
                   const SamplingOptions& options) {
  std::vector<double> seconds[2], ratios;
  const Sampling sampling(options);
  int repetition = 0;
  for (int i = 0; i < options.warm_up; ++i) {
    first(repetition++).wait();
    second(repetition++).wait();
  }
  for (int pair = 0; sampling.goes_on(ratios, pair); ++pair) {
    for (const int which : {pair % 2, 1 - pair % 2})
      seconds[which].push_back(seconds_of((which == 0 ? first : second)(repetition++)));
    if (seconds[0].back() > 0 && seconds[1].back() > 0) ratios.push_back(seconds[1].back() / seconds[0].back());
  }
  return {summarize(std::move(seconds[0])), summarize(std::move(seconds[1])),
          ratios.empty() ? Summary{} : summarize(std::move(ratios))};
}

}  // namespace omniconv::timing
