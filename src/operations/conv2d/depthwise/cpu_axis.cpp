#include "operations/conv2d/depthwise/cpu_axis.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/checked.h"

namespace omniconv::operations {

void DepthwiseAxis::find_reach() {
  low = std::numeric_limits<std::int64_t>::max(), high = std::numeric_limits<std::int64_t>::min();
  for (const std::vector<DepthwiseTaps>& of_phase : classes)
    for (const DepthwiseTaps& some : of_phase) {
      low = std::min(low, some.begin);
      high = std::max(high, some.begin + (static_cast<std::int64_t>(some.taps.size()) - 1) * step);
    }
}

DepthwiseAxis DepthwiseAxis::forward(std::int64_t taps, std::int64_t stride, std::int64_t dilation, std::int64_t pad,
                                     bool flip, std::int64_t outputs) {
  const std::int64_t cycle = stride / std::gcd(stride, dilation);  // taps until one meets the first's phase again
  DepthwiseAxis axis{.unit = stride,
                     .spread = 1,
                     .before = 0,
                     .step = cycle * dilation,
                     .stagger = dilation / std::gcd(stride, dilation),
                     .first = 0,
                     .last = outputs,
                     .classes = {{}},
                     .low = 0,
                     .high = 0};
  for (std::int64_t first = 0; first < std::min(cycle, taps); ++first) {
    DepthwiseTaps some{.begin = first * dilation - pad, .taps = {}};
    for (std::int64_t t = first; t < taps; t += cycle) some.taps.push_back(flip ? taps - 1 - t : t);
    axis.classes[0].push_back(some);
  }
  axis.find_reach();
  return axis;
}

// Output t * stride + phase - pad meets input t + (phase - tap * dilation) / stride, where that is an integer.
DepthwiseAxis DepthwiseAxis::to_data(std::int64_t taps, std::int64_t stride, std::int64_t dilation, std::int64_t pad,
                                     bool flip, std::int64_t outputs) {
  const std::int64_t cycle = stride / std::gcd(stride, dilation), apart = dilation / std::gcd(stride, dilation);
  DepthwiseAxis axis{.unit = 1,
                     .spread = stride,
                     .before = pad,
                     .step = apart,
                     .stagger = apart,
                     .first = pad / stride,
                     .last = divide_up(outputs + pad, stride),
                     .classes = {},
                     .low = 0,
                     .high = 0};
  axis.classes.resize(static_cast<std::size_t>(stride));
  for (std::int64_t first = 0; first < std::min(cycle, taps); ++first) {
    const std::int64_t phase = first * dilation % stride, count = divide_up(taps - first, cycle);
    DepthwiseTaps some{.begin = (phase - first * dilation) / stride - (count - 1) * apart, .taps = {}};
    for (std::int64_t i = count - 1; i >= 0; --i) {
      const std::int64_t t = first + i * cycle;
      some.taps.push_back(flip ? taps - 1 - t : t);
    }
    axis.classes[static_cast<std::size_t>(phase)].push_back(some);
  }
  axis.find_reach();
  return axis;
}

}  // namespace omniconv::operations
