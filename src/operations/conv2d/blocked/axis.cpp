#include "operations/conv2d/blocked/axis.h"

#include <algorithm>

#include "core/checked.h"

namespace omniconv::operations {
namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
std::int64_t residue(std::int64_t a, std::int64_t b) {
  return a - floor_divide(a, b) * b;
}

// `offset(tap)` is the element of x that the tap of w reads for the first element of y.
template <typename Offset>
BlockedAxis axis_of(bool forward, std::int64_t taps, std::int64_t stride, std::int64_t of_x, std::int64_t of_y,
                    const Offset& offset) {
  BlockedAxis axis{
      .unit = forward ? stride : 1, .extent = forward ? of_x : of_y, .phases = {}, .classes = {}, .low = 0, .high = 0};
  for (std::int64_t tap = 0; tap < taps; ++tap) axis.phases.push_back(forward ? residue(offset(tap), stride) : 0);
  std::sort(axis.phases.begin(), axis.phases.end());
  axis.phases.erase(std::unique(axis.phases.begin(), axis.phases.end()), axis.phases.end());
  const auto phase_of = [&](std::int64_t value) {
    return std::lower_bound(axis.phases.begin(), axis.phases.end(), value) - axis.phases.begin();
  };
  const std::int64_t classes = forward ? 1 : std::min(stride, of_x), step = forward ? 1 : stride;
  for (std::int64_t begin = 0; begin < classes; ++begin) {
    BlockedClass some{begin, step, forward ? of_y : divide_up(of_x - begin, stride), {}};
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      if (forward) {
        some.taps.push_back({tap, phase_of(residue(offset(tap), stride)), floor_divide(offset(tap), stride)});
      } else if ((begin - offset(tap)) % stride == 0) {
        some.taps.push_back({tap, phase_of(0), (begin - offset(tap)) / stride});
      }
    }
    axis.classes.push_back(some);
  }
  bool first = true;
  for (const BlockedClass& some : axis.classes)
    for (const BlockedTap& tap : some.taps) {
      axis.low = first ? tap.index : std::min(axis.low, tap.index);
      axis.high = first ? tap.index : std::max(axis.high, tap.index);
      first = false;
    }
  return axis;
}

}  // namespace

AxisPart part_within(std::int64_t first, std::int64_t unit, std::int64_t extent, std::int64_t count) {
  const auto until = [&](std::int64_t end) {
    return std::clamp<std::int64_t>(end <= first ? 0 : divide_up(end - first, unit), 0, count);
  };
  return {until(0), until(extent)};
}

BlockedAxis BlockedAxis::down(const Conv2dShape& g, bool forward) {
  return axis_of(forward, g.r, g.stride_h, g.h, g.p, [&](std::int64_t tap) { return g.row_of(0, tap); });
}
BlockedAxis BlockedAxis::along(const Conv2dShape& g, bool forward) {
  return axis_of(forward, g.s, g.stride_w, g.w, g.q, [&](std::int64_t tap) { return g.column_of(0, tap); });
}

std::int64_t BlockedAxis::most_taps() const {
  std::size_t most = 0;
  for (const BlockedClass& some : classes) most = std::max(most, some.taps.size());
  return static_cast<std::int64_t>(most);
}

}  // namespace omniconv::operations
