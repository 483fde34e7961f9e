// The extents of a pool2d problem, where its elements lie, and which windows hold which elements: what loops over it
// need, worked out once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "omniconv/pool2d.h"

namespace omniconv {

// [first, end)
struct PoolRange {
  std::int64_t first, end;
  std::int64_t count() const { return end - first; }
};

// One axis: windows of `taps` elements, `stride` apart, the first of which begins `pad` before the image.
struct PoolAxis {
  std::int64_t extent, taps, stride, pad, outputs;

  // Where window o begins, which may be outside the image.
  std::int64_t begin(std::int64_t o) const { return o * stride - pad; }
  // The taps of window o that are inside the image: at least one.
  PoolRange taps_of(std::int64_t o) const {
    return {std::max<std::int64_t>(0, -begin(o)), std::min(taps, extent - begin(o))};
  }
  // The windows that hold element i; there may be none.
  PoolRange windows_of(std::int64_t i) const {
    const std::int64_t before = i + pad - taps;  // the last element that a window can begin with and still not reach i
    return {before < 0 ? 0 : before / stride + 1, std::min(outputs, (i + pad) / stride + 1)};
  }
  // Windows that hold one element, at most.
  std::int64_t most_windows() const { return std::min(outputs, (taps + stride - 1) / stride); }
};

struct Pool2dShape {
  explicit Pool2dShape(const Pool2dProblem& problem)
      : n(problem.n),
        c(problem.c),
        rows(axis(problem.h, problem.r, problem.stride_h, problem.pad_top, P(problem))),
        columns(axis(problem.w, problem.s, problem.stride_w, problem.pad_left, Q(problem))),
        nhwc(problem.layout == Layout::nhwc),
        pooling(problem.pooling) {}

  std::int64_t n, c;
  PoolAxis rows, columns;
  bool nhwc;
  Pooling pooling;

  std::int64_t x_elements() const { return n * c * rows.extent * columns.extent; }
  std::int64_t y_elements() const { return n * c * rows.outputs * columns.outputs; }

  // Elements before x[in, ic, h, w] and y[in, ic, p, q].
  std::int64_t x_at(std::int64_t in, std::int64_t ic, std::int64_t h, std::int64_t w) const {
    return at(in, ic, h, w, rows.extent, columns.extent);
  }
  std::int64_t y_at(std::int64_t in, std::int64_t ic, std::int64_t p, std::int64_t q) const {
    return at(in, ic, p, q, rows.outputs, columns.outputs);
  }

  // What the sum of window (p, q) is divided by.
  std::int64_t divisor(std::int64_t p, std::int64_t q) const {
    if (pooling == Pooling::average) return rows.taps * columns.taps;
    return rows.taps_of(p).count() * columns.taps_of(q).count();
  }

 private:
  // The stride of one window means nothing, and may be any number: here it is so large that there is no other.
  static PoolAxis axis(std::int64_t extent, std::int64_t taps, std::int64_t stride, std::int64_t pad,
                       std::int64_t outputs) {
    return {extent, taps, outputs == 1 ? std::max(taps, pad + extent) : stride, pad, outputs};
  }
  std::int64_t at(std::int64_t in, std::int64_t ic, std::int64_t y, std::int64_t x, std::int64_t height,
                  std::int64_t width) const {
    return nhwc ? ((in * height + y) * width + x) * c + ic : ((in * c + ic) * height + y) * width + x;
  }
};

}  // namespace omniconv
