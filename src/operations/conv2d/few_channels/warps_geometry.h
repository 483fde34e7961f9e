// What few_channels_warps.kernel is compiled for: what a group of work items sums up, and how tiles of both operands
// lie in local memory. No device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operations/conv2d/few_channels/filter_geometry.h"

namespace omniconv::operations::few_channels {

// Rows are filters, columns channels at taps. Each of `warps` sums up `rows` by 8 * `blocks` of them over tiles of
// `width` by `height` pixels, 16 * `sixteens` at once; `resident` groups share a compute unit. The constants of the
// text have these names.
struct WarpsForm {
  std::int64_t channels = 1, taps_h = 1, taps_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t rows = 16, blocks = 2, warps = 4, resident = 1, width = 16, height = 1, sixteens = 1;
  std::int64_t pixel = 1;  // elements from a pixel of x to the next
  std::int64_t span = 1;   // 16 rows each, of y in local memory
  std::int64_t parts = 2;  // of a number
  bool mirrored = false;

  bool operator==(const WarpsForm&) const = default;

  constexpr std::int64_t all_columns() const { return channels * taps_h * taps_w; }
  constexpr std::int64_t set_columns() const { return 8 * blocks; }
  // Blocks of neighbouring taps that meet pixels eight further.
  constexpr std::int64_t chain() const { return taps_w % 16 == 0 && blocks % 2 == 0 && stride_w == dilation_w ? 2 : 1; }
  // Of x: numbers of a phase that the last tap lies behind the first, phases that taps meet, copies of each, pairs of
  // pairs in a copy. Eight columns read four words each, of eight copies or, where there are fewer, of neighbours too.
  constexpr std::int64_t reach() const { return (taps_w - 1) * dilation_w / stride_w; }
  constexpr std::int64_t phases() const { return std::min(stride_w, (taps_w - 1) * dilation_w + 1); }
  constexpr std::int64_t copies() const { return reach() > 0 ? 2 : 1; }
  constexpr std::int64_t quads() const { return (width + reach() + 3) / 4; }
  constexpr std::int64_t plane_bytes() const {
    const std::int64_t all = phases() * copies(), apart = all > 4 ? 16 : all > 2 ? 32 : 64;
    return (8 * quads() - apart + 127) / 128 * 128 + apart;
  }
  constexpr std::int64_t patch_rows() const { return (height - 1) * stride_h + (taps_h - 1) * dilation_h + 1; }
  constexpr std::int64_t patch_bytes() const {
    return parts * channels * patch_rows() * phases() * copies() * plane_bytes();
  }
  constexpr std::int64_t rows_bytes() const { return height * width / 16 * (1024 * span + 64); }
  constexpr std::int64_t local_bytes() const { return patch_bytes() + rows_bytes(); }
};

// Of a group's sets: so many share the warps of a group of work items, or so many groups share them.
struct WarpsSets {
  std::int64_t sets = 1, shares = 1, groups = 1;

  WarpsSets(const FilterTask& task, std::int64_t warps)
      : sets(std::int64_t{task.sets_m} * task.sets_n),
        shares(std::max<std::int64_t>(1, warps / sets)),
        groups(divide_up(sets, warps)) {}
};

// The form without its span, which follows from the task.
inline WarpsForm warps_form_of(const Conv2dShape& g, std::int64_t rows, std::int64_t blocks, std::int64_t warps,
                               std::int64_t resident, std::int64_t width, std::int64_t height, std::int64_t sixteens,
                               std::int64_t parts) {
  WarpsForm form{.channels = g.c_group,
                 .taps_h = g.r,
                 .taps_w = g.s,
                 .stride_h = g.stride_h,
                 .stride_w = g.stride_w,
                 .dilation_h = g.dilation_h,
                 .dilation_w = g.dilation_w,
                 .rows = rows,
                 .blocks = blocks,
                 .warps = warps,
                 .resident = resident,
                 .width = width,
                 .height = height,
                 .sixteens = sixteens,
                 .pixel = g.nhwc ? g.c_group * g.groups : 1,
                 .parts = parts,
                 .mirrored = g.flip};
  // Rows of the sets that a group of work items has, of the group that has the most.
  const std::int64_t sets_n = divide_up(form.all_columns(), form.set_columns()),
                     sets = divide_up(g.k_group, rows) * sets_n;
  for (std::int64_t first = 0; first < sets; first += warps) {
    const std::int64_t last = std::min(first + warps, sets) - 1;
    form.span = std::max(form.span, (last / sets_n - first / sets_n + 1) * rows / 16);
  }
  return form;
}

// A step is a tile. Sums are in no more parts than tiles, of each share of them.
inline FilterTask warps_task_of(const Conv2dShape& g, const WarpsForm& form, std::int64_t most_groups) {
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  FilterTask task;
  task.images = narrow(g.n), task.groups = narrow(g.groups), task.rows = narrow(g.k_group);
  task.row_pixels = narrow(g.p * g.q), task.row_width = narrow(g.q);
  task.h = narrow(g.h), task.w = narrow(g.w), task.pad_top = narrow(g.pad_top), task.pad_left = narrow(g.pad_left);
  task.sets_m = narrow(divide_up(g.k_group, form.rows));
  task.sets_n = narrow(divide_up(form.all_columns(), form.set_columns()));
  task.sets = narrow(std::int64_t{task.sets_m} * task.sets_n * task.groups);
  task.image_pieces = narrow(divide_up(g.p, form.height) * divide_up(g.q, form.width));
  task.steps = narrow(g.n * task.image_pieces);
  const WarpsSets sets(task, form.warps);
  task.parts = narrow(std::clamp<std::int64_t>(most_groups / (sets.groups * g.groups), 1, task.steps) * sets.shares);
  task.by_image = Divisor(task.image_pieces), task.by_width = Divisor(task.row_width);
  return task;
}

}  // namespace omniconv::operations::few_channels
