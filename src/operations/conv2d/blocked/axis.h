// One axis of the outputs: where they lie and what of the source their taps read.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/conv2d/shape.h"

namespace omniconv::operations {

// Of elements first + i * unit, i < count, those that lie in [0, extent): i in [begin, end), which are equal for none.
struct AxisPart {
  std::int64_t begin, end;
};
AxisPart part_within(std::int64_t first, std::int64_t unit, std::int64_t extent, std::int64_t count);

// Tap `tap` of w reads, for output i, element (i + index) * unit + phases[phase] of the source.
struct BlockedTap {
  std::int64_t tap, phase, index;
};

// Outputs begin + i * step, i < count, all of which meet the same taps.
struct BlockedClass {
  std::int64_t begin, step, count;
  std::vector<BlockedTap> taps;  // in the order of w
};

// Forward there is one class, and outputs lie the stride apart in the source. Backward to the data there is a class for
// each residue of x by the stride: the taps that meet it, and no others, read neighbouring elements of dy.
struct BlockedAxis {
  std::int64_t unit, extent;  // of the source
  std::vector<std::int64_t> phases;
  std::vector<BlockedClass> classes;
  std::int64_t low, high;  // indices of all taps lie in [low, high]

  static BlockedAxis down(const Conv2dShape& g, bool forward);
  static BlockedAxis along(const Conv2dShape& g, bool forward);

  std::int64_t reach() const { return high - low; }
  std::int64_t count() const { return classes.front().count; }  // no class has more
  std::int64_t most_taps() const;
};

}  // namespace omniconv::operations
