// What few_channels_patch.kernel is compiled for: which records of a tile's patch the terms of a product are, and what
// lies in local memory. No device.
#pragma once

#include <cstdint>
#include <optional>

#include "core/checked.h"
#include "devices/tensor_map.h"
#include "operations/conv2d/shape.h"
#include "operations/split/divisor.h"
#include "operations/split/numbers.h"

namespace omniconv::operations::few_channels {

using split_gemm::Divisor;

constexpr std::int64_t group_items = 256, most_channels = 4;

// Of the filter, and of a group of work items: `held` times `columns` columns of filters, by tiles of `blocks` times 64
// pixels for each of `workers` warpgroups, in rows of `width`. Of `side` pixels of y that follow each other one is made
// for each column: taps_w and stride_w are of all of these together, and so are pixels. The constants of the text have
// these names.
struct Form {
  std::int64_t channels = 1, taps_h = 1, taps_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t columns = 8, held = 1, blocks = 2, width = 16, side = 1, workers = 2;
  std::int64_t parts = 2, output_bytes = 4;  // of a number; of y's
  bool nhwc = false, is_boxed = false;       // y is stored as boxes,
  std::int64_t buffers = 1;                  // of so many blocks of a warpgroup

  constexpr std::int64_t fold() const { return channels > 2 ? 1 : 4 / channels; }
  constexpr std::int64_t records() const { return up(taps_w, fold()); }  // of a row of the filter
  constexpr std::int64_t sixteens() const { return up(taps_h * records(), 4); }
  // Sixteens that are summed up in the units: of two parts, of which more do not fit the registers, two of long sums.
  constexpr std::int64_t body() const { return parts == 2 && sixteens() > 4 ? 2 : 4; }
  constexpr std::int64_t bodies() const { return up(sixteens(), body()); }
  constexpr std::int64_t items() const { return 128 * workers; }
  constexpr std::int64_t tile_rows() const { return 64 * workers * blocks / width; }
  constexpr std::int64_t patch_h() const { return (tile_rows() - 1) * stride_h + (taps_h - 1) * dilation_h + 1; }
  constexpr std::int64_t patch_w() const { return (width - 1) * stride_w + (records() - 1) * fold() * dilation_w + 1; }
  constexpr std::int64_t record_bytes() const { return 8 * parts; }
  // Neighbouring taps are of neighbouring planes, where there are several: half of local memory's banks apart.
  constexpr std::int64_t plane_w() const {
    const std::int64_t least = up(patch_w(), stride_w), all = 128 / record_bytes(), half = all / 2;
    return stride_w == 1 ? least : up(least - half, all) * all + half;
  }
  // The next tile's patch is filled while one is made, where the registers hold what a work item loads of it.
  constexpr bool is_ahead() const { return up(patch_h() * patch_w(), items()) * (fold() == 1 ? channels : 4) <= 9; }
  constexpr std::int64_t filter_bytes() const { return held * parts * sixteens() * columns * 32; }
  constexpr std::int64_t patch_bytes() const { return patch_h() * stride_w * plane_w() * record_bytes(); }
  constexpr std::int64_t table_bytes() const { return up(sixteens(), 2) * 32; }
  // Where the warpgroups turn their sums of 64 pixels, or have them as boxes: turned, four numbers lie between the
  // lines of two filters, so that neither way two meet in a bank.
  constexpr std::int64_t staged_bytes() const {
    const std::int64_t turned = nhwc ? 0 : columns / side * (64 * side + 4) * 4,
                       boxes = is_boxed ? buffers * columns * 64 * output_bytes : 0;
    return workers * up(turned > boxes ? turned : boxes, alignment()) * alignment();
  }
  // Bytes of a line of a box: of filters of a pixel, or of pixels of a filter.
  constexpr std::int64_t box_line() const {
    const std::int64_t all = (nhwc ? columns : width) * output_bytes;
    return all < 128 ? all : 128;
  }
  // Where what is staged begins: boxes are swizzled by their addresses, as filters are.
  constexpr std::int64_t alignment() const { return is_boxed ? 1024 : 256; }
  // What a launch asks for.
  constexpr std::int64_t local_bytes() const {
    return alignment() + staged_bytes() + filter_bytes() + table_bytes() + (is_ahead() ? 2 : 1) * patch_bytes();
  }

 private:
  static constexpr std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
};

// Numbers of so many parts, of `size` bytes each; the sides of a form are those of columns without dilation.
inline Form form_of(const Conv2dShape& g, std::int64_t columns, std::int64_t held, std::int64_t blocks,
                    std::int64_t width, std::int64_t side, std::int64_t workers, std::int64_t parts,
                    std::int64_t size) {
  return {.channels = g.c_group,
          .taps_h = g.r,
          .taps_w = g.s + (side - 1) * g.stride_w,
          .stride_h = g.stride_h,
          .stride_w = side * g.stride_w,
          .dilation_h = g.dilation_h,
          .dilation_w = g.dilation_w,
          .columns = columns,
          .held = held,
          .blocks = blocks,
          .width = width,
          .side = side,
          .workers = workers,
          .parts = parts,
          .output_bytes = size,
          .nhwc = g.nhwc};
}

// y as boxes, without its buffer and the type of its numbers: of rows of pixels lines of filters, or of filters lines
// of rows; nothing where copies cannot store it so, or would store what is another group's.
inline std::optional<devices::TensorMap> boxes_of(const Conv2dShape& g, const Form& form) {
  const std::int64_t size = form.output_bytes, along = form.nhwc ? form.columns : form.width, line = form.box_line(),
                     row = (form.nhwc ? g.k : g.q) * size;
  constexpr std::int64_t most = std::int64_t{1} << 31;  // coordinates count less
  if (form.side > 1 || (line != 64 && line != 128) || along * size % line != 0 || row % 16 != 0 ||
      (size == 2 && form.columns % 16 != 0) || g.n * (form.nhwc ? g.p : g.k) >= most)
    return {};
  if (g.k_group % form.columns != 0 && !(form.nhwc && g.groups == 1)) return {};
  devices::TensorMap map{.rank = 3};
  map.swizzle = split_gemm::swizzle_of(line);
  if (form.nhwc) {
    map.extents = {g.k, g.q, g.n * g.p}, map.strides_bytes = {row, g.q * row};
    map.box = {line / size, form.width, 1};
  } else {
    map.extents = {g.q, g.p, g.n * g.k}, map.strides_bytes = {row, g.p * row};
    map.box = {line / size, 1, form.columns};
  }
  return map;
}

// task_t of few_channels_patch.kernel.
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
  task.group_sets = narrow(divide_up(g.k_group * form.side, form.columns * form.held));
  task.sets = task.group_sets * task.groups;
  task.tiles_h = narrow(divide_up(g.p, form.tile_rows())),
  task.tiles_w = narrow(divide_up(g.q, form.width * form.side));
  task.tiles = narrow(g.n * task.tiles_h * task.tiles_w);
  task.by_tiles_w = Divisor(task.tiles_w), task.by_tiles_h = Divisor(task.tiles_h);
  return task;
}

}  // namespace omniconv::operations::few_channels
