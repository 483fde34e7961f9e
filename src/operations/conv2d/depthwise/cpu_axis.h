// Rows or columns of a depthwise convolution on the CPU: which elements of the input meet which taps.
//
// Output t * spread + phase - before, of phase 0 .. spread - 1, meets input t * unit + begin + i * step at tap i of
// each of the phase's classes. Forward there is one phase, and classes are taps whose inputs are a whole number of
// outputs apart; to the data phases are a stride apart, with the taps that meet them in one class.
#pragma once

#include <cstdint>
#include <vector>

namespace omniconv::operations {

struct DepthwiseTaps {
  std::int64_t begin;              // what output t = 0 meets at the first
  std::vector<std::int64_t> taps;  // as w holds them
};

struct DepthwiseAxis {
  std::int64_t unit, spread, before;
  std::int64_t step;                                // from tap to tap of a class
  std::int64_t stagger;                             // and outputs t that are as far apart
  std::int64_t first, last;                         // t of all outputs, of any phase: [first, last)
  std::vector<std::vector<DepthwiseTaps>> classes;  // by phase
  std::int64_t low, high;  // outputs [t, u) meet inputs [t * unit + low, (u - 1) * unit + high]

  static DepthwiseAxis forward(std::int64_t taps, std::int64_t stride, std::int64_t dilation, std::int64_t pad,
                               bool flip, std::int64_t outputs);
  static DepthwiseAxis to_data(std::int64_t taps, std::int64_t stride, std::int64_t dilation, std::int64_t pad,
                               bool flip, std::int64_t outputs);

  // The inputs that so many t meet.
  std::int64_t reach(std::int64_t count) const { return (count - 1) * unit + high - low + 1; }

 private:
  void find_reach();
};

}  // namespace omniconv::operations
