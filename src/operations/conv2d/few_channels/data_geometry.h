// What few_channels_data.kernel is compiled for: which pixels of y and taps meet which pixels of dx, and what lies in
// local memory. No device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/checked.h"
#include "operations/conv2d/shape.h"
#include "operations/split/divisor.h"

namespace omniconv::operations::few_channels {

using split_gemm::Divisor;

// Of the filter, and of a group of work items: `blocks` times 128 pixels of y at a time, in rows of `width`, by columns
// of `rows` rows of the filter at a time, so many `columns` in a product. The constants of the text have these names.
//
// A cell is the `stride_h` by `stride_w` pixels of dx that begin at a multiple of the strides, padding counted. A tap
// that lies t from the first meets, for pixel p of y, the pixel t % stride of cell p + t / stride, in both directions.
struct DataForm {
  std::int64_t channels = 1, filters = 1, taps_h = 1, taps_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1,
               dilation_w = 1;
  std::int64_t columns = 8, rows = 1, blocks = 1, width = 16;
  std::int64_t aligned = 1;      // columns of y that strips begin at multiples of
  std::int64_t all_columns = 0;  // of cells, where one strip has all columns of y; else 0

  // Of the product: terms, and columns.
  constexpr std::int64_t bodies() const { return up(filters, 64); }                  // of up to 64 terms
  constexpr std::int64_t sixteens() const { return up(up(filters, 16), bodies()); }  // of a body
  constexpr std::int64_t row_columns() const { return taps_w * channels; }
  constexpr std::int64_t slices() const { return up(taps_h, rows); }
  constexpr std::int64_t chunks() const { return up(rows * row_columns(), columns); }  // of a slice
  constexpr std::int64_t all_chunks() const {                                          // the last slice may have fewer
    return (slices() - 1) * chunks() + up((taps_h - (slices() - 1) * rows) * row_columns(), columns);
  }
  // Pixels of y that a step makes, and those cells of them to which all taps have come.
  constexpr std::int64_t height() const { return 128 * blocks / width; }
  constexpr std::int64_t reach_h() const { return (taps_h - 1) * dilation_h / stride_h; }
  constexpr std::int64_t reach_w() const { return (taps_w - 1) * dilation_w / stride_w; }
  constexpr bool is_whole() const { return all_columns > 0; }
  constexpr std::int64_t margin() const { return is_whole() ? up(std::max(reach_w(), all_columns - width), 2) * 2 : 0; }
  constexpr std::int64_t cells() const { return width + margin(); }
  constexpr std::int64_t left() const {
    return is_whole() ? 0 : width - std::max<std::int64_t>(width - reach_w(), 0) / aligned * aligned;
  }
  constexpr std::int64_t strip() const { return cells() - left(); }
  constexpr std::int64_t ring() const { return height() + reach_h(); }  // rows of cells that a step meets
  // From a column of products to the next: every second one lies eight banks from the one before.
  constexpr std::int64_t pitch() const { return up(128 * blocks + (height() + 1) * margin() - 4, 8) * 8 + 4; }

  constexpr std::int64_t filter_bytes() const { return bodies() * all_chunks() * 2 * sixteens() * columns * 32; }
  constexpr std::int64_t product_bytes() const { return rows * row_columns() * pitch() * 4; }
  constexpr std::int64_t ring_bytes() const { return ring() * stride_h * channels * stride_w * cells() * 4; }
  // What a launch asks for: the filters begin at a multiple of 256 bytes.
  constexpr std::int64_t local_bytes() const { return 256 + filter_bytes() + product_bytes() + ring_bytes(); }

  // Additions behind the matrix units that one number passes through: of the taps that meet a pixel of dx, and once for
  // each row of them and body, where a step adds to what others left.
  constexpr std::int64_t additions() const {
    const std::int64_t h = meeting(taps_h, stride_h, dilation_h), w = meeting(taps_w, stride_w, dilation_w);
    return h * w + h * bodies();
  }

 private:
  static constexpr std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
  // Taps of the same remainder by the stride, at most.
  static constexpr std::int64_t meeting(std::int64_t taps, std::int64_t stride, std::int64_t dilation) {
    std::int64_t most = 0;
    for (std::int64_t first = 0; first < std::min(taps, stride); ++first) {
      std::int64_t count = 0;
      for (std::int64_t tap = first; tap < taps; ++tap) count += (tap - first) * dilation % stride == 0;
      most = std::max(most, count);
    }
    return most;
  }
};

inline DataForm data_form_of(const Conv2dShape& g, std::int64_t columns, std::int64_t rows, std::int64_t blocks,
                             std::int64_t width) {
  DataForm form{.channels = g.c_group,
                .filters = g.k_group,
                .taps_h = g.r,
                .taps_w = g.s,
                .stride_h = g.stride_h,
                .stride_w = g.stride_w,
                .dilation_h = g.dilation_h,
                .dilation_w = g.dilation_w,
                .columns = columns,
                .rows = std::min(rows, g.r),
                .blocks = blocks,
                .width = width};
  if (!g.nhwc) form.aligned = g.q % 8 == 0 ? 8 : g.q % 2 == 0 ? 2 : 1;
  if (g.q <= width) form.all_columns = (g.pad_left + g.w - 1) / g.stride_w + 1;
  return form;
}

// task_t of few_channels_data.kernel. A unit is a strip of cells of an image, from a row on so many rows down.
struct DataTask {
  std::int32_t images = 0, groups = 0, h = 0, w = 0, out_h = 0, out_w = 0;
  std::int32_t pad_top = 0, pad_left = 0;
  std::int32_t first_row = 0, end_row = 0;  // of cells that have pixels of dx
  std::int32_t first_column = 0;            // of y, that the first strip begins at: below 0 mostly
  std::int32_t unit_rows = 0;
  std::int32_t strips = 0, segments = 0, units = 0;
  Divisor by_strips, by_segments;
};
// Extents of a problem have been found to be counted in 32 bits (data.cpp).
inline DataTask data_task_of(const Conv2dShape& g, const DataForm& form, std::int64_t unit_rows) {
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  DataTask task;
  task.images = narrow(g.n), task.groups = narrow(g.groups), task.h = narrow(g.h), task.w = narrow(g.w);
  task.out_h = narrow(g.p), task.out_w = narrow(g.q);
  task.pad_top = narrow(g.pad_top), task.pad_left = narrow(g.pad_left);
  task.first_row = narrow(g.pad_top / g.stride_h), task.end_row = narrow((g.pad_top + g.h - 1) / g.stride_h + 1);
  const std::int64_t first = g.pad_left / g.stride_w, end = (g.pad_left + g.w - 1) / g.stride_w + 1,
                     begin = first - form.left();
  task.first_column = narrow(form.is_whole() ? 0
                             : begin >= 0    ? begin / form.aligned * form.aligned
                                             : -divide_up(-begin, form.aligned) * form.aligned);
  task.unit_rows = narrow(unit_rows);
  task.strips = narrow(divide_up(end - task.first_column - form.left(), form.strip()));
  task.segments = narrow(divide_up(std::int64_t{task.end_row} - task.first_row, unit_rows));
  task.units = narrow(g.n * task.segments * task.strips);
  task.by_strips = Divisor(task.strips), task.by_segments = Divisor(task.segments);
  return task;
}

}  // namespace omniconv::operations::few_channels
