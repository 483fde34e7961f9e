// What few_channels.kernel is compiled for: which records of a tile's patch the terms of a product are, and what lies
// in local memory. No device.
#pragma once

#include <cstdint>

#include "core/checked.h"
#include "operations/conv2d/shape.h"
#include "operations/split/divisor.h"

namespace omniconv::operations::few_channels {

using split_gemm::Divisor;

constexpr std::int64_t group_items = 256, most_channels = 4;

// Of the filter, and of a group of work items: `held` times `columns` filters, by tiles of `blocks` times 128 pixels,
// in rows of `width`. The constants of the text have these names.
struct Form {
  std::int64_t channels = 1, taps_h = 1, taps_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t columns = 8, held = 1, blocks = 2, width = 16;
  bool nhwc = false;

  constexpr std::int64_t fold() const { return channels > 2 ? 1 : 4 / channels; }
  constexpr std::int64_t records() const { return up(taps_w, fold()); }  // of a row of the filter
  constexpr std::int64_t sixteens() const { return up(taps_h * records(), 4); }
  constexpr std::int64_t bodies() const { return up(sixteens(), 4); }  // sums of up to 64 terms
  constexpr std::int64_t tile_rows() const { return 128 * blocks / width; }
  constexpr std::int64_t patch_h() const { return (tile_rows() - 1) * stride_h + (taps_h - 1) * dilation_h + 1; }
  constexpr std::int64_t patch_w() const { return (width - 1) * stride_w + (records() - 1) * fold() * dilation_w + 1; }
  // Neighbouring taps are of neighbouring planes, where there are several: half of local memory's banks apart.
  constexpr std::int64_t plane_w() const {
    const std::int64_t least = up(patch_w(), stride_w);
    return stride_w == 1 ? least : up(least - 4, 8) * 8 + 4;
  }
  constexpr std::int64_t filter_bytes() const { return held * 2 * sixteens() * columns * 32; }
  constexpr std::int64_t patch_bytes() const { return patch_h() * stride_w * plane_w() * 16; }
  // Where the two warpgroups turn their sums of 64 pixels: lines of 68, so that neither way two meet in a bank.
  constexpr std::int64_t turned_bytes() const { return nhwc ? 0 : 2 * columns * 68 * 4; }
  // What a launch asks for: the filters begin at a multiple of 256 bytes.
  constexpr std::int64_t local_bytes() const {
    return 256 + filter_bytes() + bodies() * 64 + patch_bytes() + turned_bytes();
  }

 private:
  static constexpr std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
};

inline Form form_of(const Conv2dShape& g, std::int64_t columns, std::int64_t held, std::int64_t blocks,
                    std::int64_t width) {
  return {.channels = g.c_group,
          .taps_h = g.r,
          .taps_w = g.s,
          .stride_h = g.stride_h,
          .stride_w = g.stride_w,
          .dilation_h = g.dilation_h,
          .dilation_w = g.dilation_w,
          .columns = columns,
          .held = held,
          .blocks = blocks,
          .width = width,
          .nhwc = g.nhwc};
}

// task_t of few_channels.kernel.
struct Task {
  std::int32_t images = 0, groups = 0, h = 0, w = 0, out_h = 0, out_w = 0;
  std::int32_t filters = 0;
  std::int32_t pad_top = 0, pad_left = 0;
  std::int32_t group_sets = 0, sets = 0;
  std::int32_t tiles_h = 0, tiles_w = 0, tiles = 0;
  Divisor by_tiles_w, by_tiles_h;
};
// Extents of a problem have been found to be counted in 32 bits (gpu.cpp).
inline Task task_of(const Conv2dShape& g, const Form& form) {
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  Task task;
  task.images = narrow(g.n), task.groups = narrow(g.groups), task.h = narrow(g.h), task.w = narrow(g.w);
  task.out_h = narrow(g.p), task.out_w = narrow(g.q), task.filters = narrow(g.k_group);
  task.pad_top = narrow(g.pad_top), task.pad_left = narrow(g.pad_left);
  task.group_sets = narrow(divide_up(g.k_group, form.columns * form.held));
  task.sets = task.group_sets * task.groups;
  task.tiles_h = narrow(divide_up(g.p, form.tile_rows())), task.tiles_w = narrow(divide_up(g.q, form.width));
  task.tiles = narrow(g.n * task.tiles_h * task.tiles_w);
  task.by_tiles_w = Divisor(task.tiles_w), task.by_tiles_h = Divisor(task.tiles_h);
  return task;
}

}  // namespace omniconv::operations::few_channels
