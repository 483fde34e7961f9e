#include "ops/predict.h"

#include <algorithm>

namespace omniconv {

double output_elements(const Filter2dProblem& problem) {
  return static_cast<double>(P(problem)) * static_cast<double>(Q(problem)) * static_cast<double>(problem.c);
}

double image_bytes(const Filter2dProblem& problem) {
  const double inputs =
      static_cast<double>(problem.h) * static_cast<double>(problem.w) * static_cast<double>(problem.c);
  return inputs * static_cast<double>(size_of(problem.input)) +
         output_elements(problem) * static_cast<double>(size_of(problem.output));
}

double least_multiply_adds(const Filter2dTask& task) {
  const auto of = [](const Weights& weights) {
    const std::int64_t taps = weights.r * weights.s;
    if (weights.form == WeightForm::equal) return std::min<std::int64_t>(taps, 4);
    return weights.form == WeightForm::rank_one ? std::min(taps, weights.r + weights.s) : taps;
  };
  return static_cast<double>(of(task.weights) + (task.second ? of(*task.second) : 0));
}

double predicted_seconds(const Filter2dProblem& problem, double operations, const devices::Device::Peaks& peaks) {
  if (peaks.tflops <= 0 || peaks.gbps <= 0) return 0;
  const double multiply_adds = peaks.tflops * 1e12 / 2;
  return std::max(operations * output_elements(problem) / multiply_adds, image_bytes(problem) / (peaks.gbps * 1e9));
}

}  // namespace omniconv
