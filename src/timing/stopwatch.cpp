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

Summary sample(const std::function<Event(int)>& submit, const SamplingOptions& options) {
  std::vector<double> seconds;
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  for (int i = 0; i < options.warm_up; ++i) submit(i).wait();
  const auto steady = [&] {
    const Summary summary = summarize(seconds);
    return summary.high - summary.low <= options.steady * summary.median;
  };
  while (static_cast<int>(seconds.size()) < options.most_samples) {
    Event event = submit(options.warm_up + static_cast<int>(seconds.size()));
    event.wait();
    seconds.push_back(event.seconds());
    const auto taken = static_cast<int>(seconds.size());
    if (taken >= options.least_samples &&
        (spent() >= options.budget_seconds || (taken % 5 == 0 && taken >= 20 && steady())))
      break;
  }
  return summarize(std::move(seconds));
}

}  // namespace omniconv::timing
