// What few_channels_filter.kernel is compiled for: whose channels are rows, where rows meet patches, and what lies in
// local memory. No device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/checked.h"
#include "operations/conv2d/shape.h"
#include "operations/split/divisor.h"

namespace omniconv::operations::few_channels {

using split_gemm::Divisor;

constexpr std::int64_t filter_rows = 64, adding_slices = 8, most_few = 8, most_columns = 4096;

// A row is a filter, or of few filters and strides of 1 a channel; a column is a channel, or a filter, at a tap. `held`
// times `columns` columns are summed at once, by each of `workers` warpgroups of a group. The constants of the text
// have these names.
struct FilterForm {
  std::int64_t channels = 1, taps_h = 1, taps_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t columns = 8, held = 1, stages = 2, workers = 2;
  std::int64_t pixel = 1;  // elements from a pixel of patches to the next
  bool rows_of_x = false, mirrored = false;

  bool operator==(const FilterForm&) const = default;

  constexpr std::int64_t all_columns() const { return channels * taps_h * taps_w; }
  constexpr std::int64_t set_columns() const { return columns * held; }
  // Of each: patches of this step and of the next, at multiples of 256 bytes; rows of so many steps;
  // and where columns lie.
  constexpr std::int64_t worker_bytes() const {
    return 2 * 256 * set_columns() + stages * filter_rows * 256 + (16 * set_columns() + 255) / 256 * 256;
  }
  constexpr std::int64_t local_bytes() const { return 256 + workers * worker_bytes(); }
};

inline FilterForm filter_form_of(const Conv2dShape& g, bool rows_of_x, std::int64_t columns, std::int64_t held,
                                 std::int64_t stages, std::int64_t workers) {
  const std::int64_t channels = rows_of_x ? g.k_group : g.c_group;
  return {.channels = channels,
          .taps_h = g.r,
          .taps_w = g.s,
          .stride_h = g.stride_h,
          .stride_w = g.stride_w,
          .dilation_h = g.dilation_h,
          .dilation_w = g.dilation_w,
          .columns = columns,
          .held = held,
          .stages = stages,
          .workers = workers,
          .pixel = g.nhwc ? channels * g.groups : 1,
          .rows_of_x = rows_of_x,
          .mirrored = g.flip != rows_of_x};
}

// task_t of few_channels_filter.kernel.
struct FilterTask {
  std::int32_t images = 0, groups = 0;
  std::int32_t rows = 0, row_pixels = 0, row_width = 0;
  std::int32_t h = 0, w = 0, pad_top = 0, pad_left = 0;
  std::int32_t sets_m = 0, sets_n = 0, sets = 0;
  std::int32_t image_pieces = 0, steps = 0, parts = 0;
  Divisor by_image, by_width;
};
// Extents of a problem have been found to be counted in 32 bits (filter.cpp). Where rows are x's, a pixel of x meets
// y's taps from the last on: with the padding that remains of a filter's reach.
inline FilterTask filter_task_of(const Conv2dShape& g, const FilterForm& form, std::int64_t most_parts) {
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const bool of_x = form.rows_of_x;
  FilterTask task;
  task.images = narrow(g.n), task.groups = narrow(g.groups);
  task.rows = narrow(of_x ? g.c_group : g.k_group);
  task.row_pixels = narrow(of_x ? g.h * g.w : g.p * g.q), task.row_width = narrow(of_x ? g.w : g.q);
  task.h = narrow(of_x ? g.p : g.h), task.w = narrow(of_x ? g.q : g.w);
  task.pad_top = narrow(of_x ? (g.r - 1) * g.dilation_h - g.pad_top : g.pad_top);
  task.pad_left = narrow(of_x ? (g.s - 1) * g.dilation_w - g.pad_left : g.pad_left);
  task.sets_m = narrow(divide_up(task.rows, filter_rows));
  task.sets_n = narrow(divide_up(form.all_columns(), form.set_columns()));
  task.sets = narrow(std::int64_t{task.sets_m} * task.sets_n * task.groups);
  task.image_pieces = narrow(divide_up(task.row_pixels, 16));
  task.steps = narrow(divide_up(g.n * task.image_pieces, 4));
  task.parts = narrow(std::clamp<std::int64_t>(most_parts, 1, task.steps));
  task.by_image = Divisor(task.image_pieces), task.by_width = Divisor(task.row_width);
  return task;
}

}  // namespace omniconv::operations::few_channels
