// The extents of a conv2d problem, and where its elements lie: what loops over it need, worked out once.
#pragma once

#include <cstdint>

#include "omniconv/conv2d.h"

namespace omniconv {

struct Conv2dShape {
  explicit Conv2dShape(const Conv2dProblem& problem)
      : n(problem.n),
        c(problem.c),
        h(problem.h),
        w(problem.w),
        k(problem.k),
        r(problem.r),
        s(problem.s),
        p(P(problem)),
        q(Q(problem)),
        groups(problem.groups),
        c_group(problem.c / problem.groups),
        k_group(problem.k / problem.groups),
        stride_h(problem.stride_h),
        stride_w(problem.stride_w),
        dilation_h(problem.dilation_h),
        dilation_w(problem.dilation_w),
        pad_top(problem.pad_top),
        pad_left(problem.pad_left),
        nhwc(problem.layout == Layout::nhwc),
        flip(problem.flip) {}

  std::int64_t n, c, h, w, k, r, s, p, q;
  std::int64_t groups, c_group, k_group;  // channels of a group
  std::int64_t stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  bool nhwc, flip;

  // Elements before x[in, ic, ih, iw], w[ik, ic of the group, ir, is] and y[in, ik, ip, iq].
  std::int64_t x_at(std::int64_t in, std::int64_t ic, std::int64_t ih, std::int64_t iw) const {
    return nhwc ? ((in * h + ih) * w + iw) * c + ic : ((in * c + ic) * h + ih) * w + iw;
  }
  std::int64_t w_at(std::int64_t ik, std::int64_t ic, std::int64_t ir, std::int64_t is) const {
    return nhwc ? ((ik * r + ir) * s + is) * c_group + ic : ((ik * c_group + ic) * r + ir) * s + is;
  }
  std::int64_t y_at(std::int64_t in, std::int64_t ik, std::int64_t ip, std::int64_t iq) const {
    return nhwc ? ((in * p + ip) * q + iq) * k + ik : ((in * k + ik) * p + ip) * q + iq;
  }

  // The row and column of x that w[.., ir, is] meets for y[.., ip, iq]; outside [0, h) and [0, w) x is zero.
  std::int64_t row_of(std::int64_t ip, std::int64_t ir) const {
    return ip * stride_h + (flip ? r - 1 - ir : ir) * dilation_h - pad_top;
  }
  std::int64_t column_of(std::int64_t iq, std::int64_t is) const {
    return iq * stride_w + (flip ? s - 1 - is : is) * dilation_w - pad_left;
  }
};

}  // namespace omniconv
