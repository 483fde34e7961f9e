// Products of the forward pass that read images, under nchw on the CPU: columns are packed out of x, or out of a copy
// of it that has its zeros around it, so that they need not be written.
//
// In the copy an axis is taken apart by stride: outputs that are neighbours read elements that are neighbours, whatever
// the stride. A phase of the axis holds what outputs read at one tap, and at all taps that are whole strides further.
#pragma once

#include <cstdint>
#include <numeric>

#include "operations/conv2d/im2col_gemm/columns.h"
#include "operations/conv2d/shape.h"
#include "operations/gemm/gemm.h"

namespace omniconv::operations {

// Rows or columns of a channel.
struct PaddedAxis {
  std::int64_t taps, stride, dilation, pad;
  bool flip;
  std::int64_t cycle;   // taps until one meets the first's phase again
  std::int64_t phases;  // that any tap reads
  std::int64_t length;  // of a phase

  PaddedAxis(std::int64_t the_taps, std::int64_t the_stride, std::int64_t the_dilation, std::int64_t the_pad,
             bool flipped, std::int64_t outputs)
      : taps(the_taps),
        stride(the_stride),
        dilation(the_dilation),
        pad(the_pad),
        flip(flipped),
        cycle(stride / std::gcd(stride, dilation)),
        phases(std::min(taps, cycle)),
        length(outputs + (taps - 1) * dilation / stride) {}

  // Where the first output finds what it reads at the tap; the next outputs follow.
  std::int64_t position(std::int64_t tap) const {
    const std::int64_t t = flip ? taps - 1 - tap : tap;
    return t % cycle * length + t * dilation / stride;
  }
  // Where in x element 0 of the phase lies, for outputs from one on; the next are a stride apart.
  std::int64_t begin(std::int64_t phase, std::int64_t output) const {
    return output * stride + phase * dilation % stride - pad;
  }
  std::int64_t extent() const { return phases * length; }
};

// The copy of a part of x, by image, channel, row, column.
struct PaddedImages {
  PaddedAxis down, along;

  PaddedImages(const Conv2dShape& g, std::int64_t rows)
      : down(g.r, g.stride_h, g.dilation_h, g.pad_top, g.flip, rows),
        along(g.s, g.stride_w, g.dilation_w, g.pad_left, g.flip, g.q) {}

  std::int64_t channel() const { return down.extent() * along.extent(); }  // elements
};

// Whether x serves as it is: every element that is read is there, in the sums' type, and neighbours are neighbours.
bool reads_x_itself(const Conv2dProblem& problem);

// The product of a part, of one group or of all groups as a batch, over images as they are or as they are padded.
GemmTask product_over_images(const Conv2dProblem& problem, const ColumnPart& part, bool padded, bool all_groups);

}  // namespace omniconv::operations
