// Which element a product on matrix units multiplies by which, against the definition: without a device.
#include "operations/conv2d/split_gemm/geometry.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "../conformance/conv2d_testing.h"
#include "operations/conv2d/shape.h"

namespace omniconv::operations::split_gemm {
namespace {

using Pair = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;  // row, column of a source; r, s

// The first elements that a copy of `count` positions reads from one on, as the copy engine goes: along the box of
// first elements, then down it, then to the next image.
struct First {
  std::int64_t image, row, column;
  bool operator==(const First&) const = default;
};
std::vector<First> firsts_of(const devices::TensorMap& map, First at, std::int64_t count) {
  const std::int64_t last_column = map.extents[1] - 1 + map.upper_corner[0],
                     last_row = map.extents[2] - 1 + map.upper_corner[1];
  std::vector<First> all;
  for (; count > 0; --count) {
    all.push_back(at);
    at.column += map.element_strides[1];
    if (at.column <= last_column) continue;
    at.column = map.lower_corner[0], at.row += map.element_strides[2];
    if (at.row <= last_row) continue;
    at.row = map.lower_corner[1], ++at.image;
  }
  return all;
}

// Where planes read the array: the row, the column and the tap that stands with the channel.
struct Read {
  std::int64_t row, column, r, s, channel;
};
Read read_of(const Planes& planes, std::int64_t row, std::int64_t column, std::int64_t channel) {
  const std::int64_t tap = channel / planes.source_channels, r = tap / planes.folded_w, s = tap % planes.folded_w;
  return {row * planes.fold_stride_h + r * planes.fold_dilation_h - planes.fold_pad_h,
          column * planes.fold_stride_w + s * planes.fold_dilation_w - planes.fold_pad_w, r, s,
          channel % planes.source_channels};
}

// The pairs that an output pixel sums up, channel 0 alone.
std::map<std::pair<std::int64_t, std::int64_t>, std::set<Pair>> pairs_of_definition(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  std::map<std::pair<std::int64_t, std::int64_t>, std::set<Pair>> all;
  for (std::int64_t p = 0; p < g.p; ++p)
    for (std::int64_t q = 0; q < g.q; ++q)
      for (std::int64_t r = 0; r < g.r; ++r)
        for (std::int64_t s = 0; s < g.s; ++s) {
          const std::int64_t h = g.row_of(p, r), w = g.column_of(q, s);
          if (h < 0 || h >= g.h || w < 0 || w >= g.w) continue;
          if (problem.pass == Pass::forward)
            all[{p, q}].insert({h, w, r, s});
          else
            all[{h, w}].insert({p, q, r, s});
        }
  return all;
}

void check_pixels(const Conv2dProblem& problem, const PixelTask* task) {
  auto wanted = pairs_of_definition(problem);
  std::set<std::pair<std::int64_t, std::int64_t>> pixels;
  const Planes& planes = task->source;
  for (std::int32_t c = 0; c < task->classes; ++c) {
    const TapClass& of = task->of_class[static_cast<std::size_t>(c)];
    for (std::int64_t i = 0; i < task->rows; ++i)
      for (std::int64_t j = 0; j < task->columns; ++j) {
        const std::int64_t h = of.out_h + i * task->out_step_h, w = of.out_w + j * task->out_step_w;
        if (h >= task->out_h || w >= task->out_w) continue;
        EXPECT_TRUE(pixels.insert({h, w}).second) << to_text(problem) << " makes a pixel twice";
        std::set<Pair> found;
        for (std::int64_t t = 0; t < of.taps_h; ++t)
          for (std::int64_t u = 0; u < of.taps_w; ++u) {
            const std::int64_t down = of.offset_h + t * task->dilation_h, along = of.offset_w + u * task->dilation_w;
            EXPECT_TRUE(down >= 0 && down < 256 && along >= 0 && along < 256) << to_text(problem);
            const std::int64_t row = i * task->stride_h + task->corner_h + down,
                               column = j * task->stride_w + task->corner_w + along;
            if (row < 0 || row >= planes.h || column < 0 || column >= planes.w) continue;
            for (std::int64_t channel = 0; channel < planes.channels; channel += planes.source_channels) {
              const Read read = read_of(planes, row, column, channel);
              if (read.row < 0 || read.row >= planes.source_h || read.column < 0 || read.column >= planes.source_w)
                continue;
              std::int64_t r = of.first_h + t * task->class_tap_h + read.r,
                           s = of.first_w + u * task->class_tap_w + read.s;
              if (task->flip != 0) r = task->taps_h - 1 - r, s = task->taps_w - 1 - s;
              EXPECT_TRUE(found.insert({read.row, read.column, r, s}).second) << to_text(problem);
            }
          }
        EXPECT_EQ(found, (wanted[{h, w}])) << to_text(problem) << ": pixel " << h << ", " << w;
      }
  }
  EXPECT_EQ(static_cast<std::int64_t>(pixels.size()), std::int64_t{task->out_h} * task->out_w) << to_text(problem);
  // The array itself, in the place of planes: its pixels are theirs, and a group's channels are never another's.
  if (const auto array = as_array(planes, problem.type, problem.layout == Layout::nhwc, task->box())) {
    const devices::TensorMap map = [&] {
      PixelTask lying = *task;
      lying.source = *array;
      return map_of_source(lying, tile_rows);
    }();
    const std::int64_t all = std::int64_t{planes.groups} * planes.source_channels;
    EXPECT_EQ(map.extents, (decltype(map.extents){all, planes.source_w, planes.source_h, planes.images}));
    EXPECT_EQ(map.strides_bytes[0], 2 * all);
    EXPECT_EQ(read_of(planes, 3, 4, 0).row, 3);
    EXPECT_EQ(read_of(planes, 3, 4, 0).column, 4);
    if (planes.groups > 1) {
      EXPECT_EQ(planes.source_channels % task->box(), 0) << to_text(problem);
    }
    EXPECT_EQ(firsts_of(map, {0, task->corner_h, task->corner_w}, task->positions()),
              firsts_of(map_of_source(*task, tile_rows), {0, task->corner_h, task->corner_w}, task->positions()));
  }
  // Copies meet the positions in their order.
  const devices::TensorMap map = map_of_source(*task, tile_rows);
  std::vector<First> positions;
  for (std::int64_t n = 0; n < planes.images; ++n)
    for (std::int64_t i = 0; i < task->rows; ++i)
      for (std::int64_t j = 0; j < task->columns; ++j)
        positions.push_back({n, i * task->stride_h + task->corner_h, j * task->stride_w + task->corner_w});
  EXPECT_EQ(firsts_of(map, positions.front(), task->positions()), positions) << to_text(problem);
  // From one plane of parts to the next, as the text counts.
  EXPECT_EQ(map.extents[3], std::int64_t{planes.groups} * planes.images);
  EXPECT_EQ(map_of_filters(*task, 64).extents[2], planes.groups);
}

// Positions that are blocks of pixels: each pixel sums what the definition says, whether it alone has taps or filters
// of its own.
void check_blocks(const Conv2dProblem& problem, const std::optional<PixelTask>& task) {
  if (!task) return;
  auto wanted = pairs_of_definition(problem);
  const Planes& planes = task->source;
  const TapClass& of = task->of_class[0];
  EXPECT_EQ(task->classes, 1);
  std::int64_t pixels = 0;
  for (std::int64_t i = 0; i < task->rows; ++i)
    for (std::int64_t j = 0; j < task->columns; ++j)
      for (std::int32_t a = 0; a < task->block_h; ++a)
        for (std::int32_t b = 0; b < task->block_w; ++b) {
          const std::int64_t h = i * task->out_step_h + a, w = j * task->out_step_w + b;
          if (h >= task->out_h || w >= task->out_w) continue;
          ++pixels;
          std::set<Pair> found;
          for (std::int32_t t = 0; t < of.taps_h; ++t)
            for (std::int32_t u = 0; u < of.taps_w; ++u) {
              const std::int64_t row = i * task->stride_h + task->corner_h + of.offset_h + t * task->dilation_h,
                                 column = j * task->stride_w + task->corner_w + of.offset_w + u * task->dilation_w;
              if (row < 0 || row >= planes.h || column < 0 || column >= planes.w) continue;
              std::int64_t r = of.first_h + t * task->class_tap_h, s = of.first_w + u * task->class_tap_w;
              if (task->is_merged()) {
                const TapClass &down = task->of_place[static_cast<std::size_t>(a)],
                               &along = task->of_place[static_cast<std::size_t>(b)];
                if (t < down.offset_h || t >= down.offset_h + down.taps_h || u < along.offset_w ||
                    u >= along.offset_w + along.taps_w)
                  continue;
                r = down.first_h + (t - down.offset_h) * task->class_tap_h;
                s = along.first_w + (u - along.offset_w) * task->class_tap_w;
              } else if (a != task->place_h || b != task->place_w) {
                continue;
              }
              if (task->flip != 0) r = task->taps_h - 1 - r, s = task->taps_w - 1 - s;
              EXPECT_TRUE(found.insert({row, column, r, s}).second) << to_text(problem);
            }
          EXPECT_EQ(found, (wanted[{h, w}])) << to_text(problem) << ": pixel " << h << ", " << w;
        }
  EXPECT_EQ(pixels, std::int64_t{task->out_h} * task->out_w) << to_text(problem);
  EXPECT_EQ(task->filters, task->is_merged() ? task->channels * task->block_h * task->block_w : task->channels);
}

void check_blocks(const Conv2dProblem& problem) {
  if (problem.pass == Pass::backward_data) check_blocks(problem, block_task(problem));
  const auto plain = pixel_task(problem);
  if (const auto* const task = std::get_if<PixelTask>(&plain)) check_blocks(problem, row_block_task(problem, *task));
}

// Also where taps share a window: those of a row lie in it, each as far from the first as its column.
void check_pixels(const Conv2dProblem& problem) {
  const auto made = pixel_task(problem);
  const PixelTask* const task = std::get_if<PixelTask>(&made);
  if (task == nullptr) return;
  check_pixels(problem, task);
  const std::optional<PixelTask> shared = with_shared_taps(*task);
  if (!shared) return;
  check_pixels(problem, &*shared);
  std::int64_t most_along = 0;
  for (const TapClass& of : task->of_class)
    most_along = std::max<std::int64_t>(most_along, (of.taps_w - 1) * task->dilation_w);
  EXPECT_EQ(shared->stride_w, 1);
  // What a tap reads behind a row's last pixel is the next row's, and must be a zero that stands for another.
  const std::int64_t columns = shared->columns, w = task->source.w;
  EXPECT_GE(columns, task->columns) << to_text(problem);
  EXPECT_LE(columns, task->columns + most_along) << to_text(problem);
  for (std::int32_t i = 0; i < task->classes; ++i) {
    const TapClass& of = task->of_class[static_cast<std::size_t>(i)];
    for (std::int64_t at = columns; at < task->columns + (of.taps_w - 1) * task->dilation_w; ++at) {
      const std::int64_t first = task->corner_w + of.offset_w, wanted = first + at, read = first + at % columns;
      EXPECT_TRUE((wanted < 0 || wanted >= w) && (read < 0 || read >= w)) << to_text(problem) << ": " << at;
    }
  }
  EXPECT_EQ(window_rows(*shared), tile_rows + most_along) << to_text(problem);
}

void check_filters(const Conv2dProblem& problem, const FilterTask* task) {
  const Conv2dShape g(problem);
  std::set<std::pair<std::int64_t, std::int64_t>> taps;
  for (std::int64_t t = 0; t < task->taps_h; ++t)
    for (std::int64_t u = 0; u < task->taps_w; ++u)
      for (std::int64_t channel = 0; channel < task->x.channels; channel += task->x.source_channels)
        for (std::int64_t p = 0; p < g.p; ++p)
          for (std::int64_t q = 0; q < g.q; ++q) {
            const std::int64_t row = p * task->stride_h + task->corner_h + t * task->dilation_h,
                               column = q * task->stride_w + task->corner_w + u * task->dilation_w;
            const Read read = read_of(task->x, row, column, channel);
            std::int64_t r = t + read.r, s = u + read.s;
            if (task->flip != 0) r = task->all_h - 1 - r, s = task->all_w - 1 - s;
            taps.insert({r, s});
            EXPECT_EQ(read.row, g.row_of(p, r)) << to_text(problem);
            EXPECT_EQ(read.column, g.column_of(q, s)) << to_text(problem);
          }
  EXPECT_EQ(static_cast<std::int64_t>(taps.size()), g.r * g.s) << to_text(problem);
}

void check_filters(const Conv2dProblem& problem) {
  const auto made = filter_task(problem);
  if (const auto* const task = std::get_if<FilterTask>(&made)) check_filters(problem, task);
  if (const auto folded = folded_filter_task(problem)) check_filters(problem, &*folded);
}

// Numbers that are their own parts are copied as they lie, where copies can: x and y under nhwc, filters forward.
TEST(SplitGeometry, CopiesArraysThatAreTheirOwnParts) {
  const auto lies = [](const char* text) {
    const Conv2dProblem problem = conv2d_problem(text);
    const bool nhwc = problem.layout == Layout::nhwc;
    if (problem.pass == Pass::backward_filter) {
      const auto task = std::get<FilterTask>(filter_task(problem));
      return fmt::format("{}{}", as_array(task.x, problem.type, nhwc, 8) ? "x" : "",
                         as_array(task.y, problem.type, nhwc, 8) ? "y" : "");
    }
    const auto task = std::get<PixelTask>(pixel_task(problem));
    return fmt::format("{}{}{}", as_array(task.source, problem.type, nhwc, task.box()) ? "source" : "",
                       can_filters_lie(problem, task, false) ? " filters" : "",
                       can_filters_lie(problem, task, true) ? " shared" : "");
  };
  EXPECT_EQ(lies("bf16 nhwc n2c64h20w20k64r3s3p1"), "source filters shared");
  EXPECT_EQ(lies("f16 nhwc n2c32h20w20k64r3s3p1"), "source filters");
  EXPECT_EQ(lies("f16 nhwc n2c64h20w20k64r1s1u2"), "source filters shared");
  EXPECT_EQ(lies("f16 nhwc flip n2c64h20w20k64r3s3p1"), "source");
  EXPECT_EQ(lies("f16 nhwc n2c72h20w20k64r3s3p1"), "source");  // the last box is of fewer channels
  EXPECT_EQ(lies("f16 nhwc n2c68h20w20k64r3s3p1"), "");        // pixels are no multiples of 16 bytes apart
  EXPECT_EQ(lies("f16 n2c64h20w20k64r3s3p1"), "");
  EXPECT_EQ(lies("nhwc n2c64h20w20k64r3s3p1"), "");
  EXPECT_EQ(lies("f16 nhwc n2c128h20w20k64r3s3p1g2"), "source filters shared");
  EXPECT_EQ(lies("f16 nhwc n2c80h20w20k80r3s3p1g2"), "");  // a box would bring in the next group's channels
  EXPECT_EQ(lies("bwd_data f16 nhwc n2c64h20w20k64r3s3p1"), "source");
  EXPECT_EQ(lies("bwd_filter f16 nhwc n4c80h20w16k20r3s3p1g2"), "x");
  EXPECT_EQ(lies("bwd_filter f16 nhwc n4c80h20w16k80r3s3p1g2"), "xy");
  EXPECT_EQ(lies("bwd_filter f16 nhwc n4c48h20w16k80r3s3p1g4"), "");  // groups begin at no multiples of 16 bytes
  // Filters that lie are read in the order of the steps.
  const auto task = std::get<PixelTask>(pixel_task(conv2d_problem("f16 nhwc n2c96h20w20k40r3s3p1")));
  EXPECT_EQ(task.box(), 32);
  PixelTask lying = task;
  lying.filters_lie = 1;
  EXPECT_EQ(map_of_filters(lying, 64).extents[0], 9 * 96);
  EXPECT_EQ(map_of_filters(lying, 64).strides_bytes[0], 2 * 9 * 96);
}

// Rows of fp32 that copies read as they lie: under nhwc of any filter, under nchw of filters of one tap.
TEST(SplitGeometry, CopiesRowsOfFp32AsTheyLie) {
  const auto raw = [](const char* text) { return raw_task(conv2d_problem(text)).has_value(); };
  EXPECT_TRUE(raw("nhwc n2c64h20w20k64r3s3p1"));
  EXPECT_TRUE(raw("nhwc n2c36h20w20k64r1s1u2"));
  EXPECT_TRUE(raw("tf32 bwd_data nhwc n2c64h20w20k64r3s3p1u2"));
  EXPECT_FALSE(raw("nhwc n2c66h20w20k64r3s3p1"));    // pixels are no multiples of 16 bytes apart
  EXPECT_FALSE(raw("nhwc n2c16h20w20k64r3s3p1"));    // most of a box would be zeros
  EXPECT_FALSE(raw("nhwc n2c80h20w20k80r3s3p1g2"));  // a box would bring in the next group's channels
  EXPECT_FALSE(raw("bf16 nhwc n2c64h20w20k64r3s3p1"));
  EXPECT_TRUE(raw("n2c64h9w8k64r1s1"));
  EXPECT_FALSE(raw("n2c64h9w9k64r1s1"));  // channels are no multiples of 16 bytes apart
  EXPECT_FALSE(raw("n2c64h9w8k64r1s1u2"));
  EXPECT_FALSE(raw("n2c64h9w8k64r1s1p1"));
  EXPECT_FALSE(raw("n2c64h9w8k64r3s3p1"));
  // Images are rows of whole boxes of 32 pixels, of which those behind the last are dropped.
  const PixelTask task = *raw_task(conv2d_problem("n2c64h9w8k64r1s1"));
  EXPECT_EQ(task.rows, 1);
  EXPECT_EQ(task.columns, 96);
  EXPECT_EQ(task.out_h, 1);
  EXPECT_EQ(task.out_w, 72);
  const devices::TensorMap map = map_of_raw_source(task, false);
  EXPECT_EQ(map.extents[0], 72);
  EXPECT_EQ(map.strides_bytes[0], 72 * 4);
  EXPECT_EQ(map.strides_bytes[1], 64 * 72 * 4);
}

// The same of the larger of the arrays whose product filters of one tap are; and what a step multiplies: pixels of the
// columns' planes that are those of the rows, or meet zeros behind an image's last.
TEST(SplitGeometry, CopiesTheRowsOfFiltersAsTheyLie) {
  const auto rows = [](const char* text) {
    const std::optional<FilterTask> task = raw_filter_task(conv2d_problem(text));
    return task ? fmt::format("{}, {} steps of {}", task->exchanged != 0 ? "y" : "x", task->steps, task->x.channels)
                : "";
  };
  EXPECT_EQ(rows("bwd_filter n2c64h9w8k128r1s1"), "y, 4 steps of 128");
  EXPECT_EQ(rows("bwd_filter n2c64h8w8k64r1s1"), "x, 2 steps of 64");
  EXPECT_EQ(rows("bwd_filter tf32 nhwc n2c64h9w9k20r1s1"), "x, 3 steps of 64");
  EXPECT_EQ(rows("bwd_filter nhwc n2c64h9w9k20r1s1g4"), "x, 3 steps of 16");
  EXPECT_EQ(rows("bwd_filter n2c64h9w9k20r1s1"), "");         // channels are no multiples of 16 bytes apart
  EXPECT_EQ(rows("bwd_filter nhwc n2c66h9w9k20r1s1"), "");    // nor are pixels
  EXPECT_EQ(rows("bwd_filter nhwc n2c40h9w9k20r1s1g4"), "");  // nor are groups
  EXPECT_EQ(rows("bwd_filter n2c64h9w8k20r1s1u2"), "");
  EXPECT_EQ(rows("bwd_filter n2c64h9w8k20r1s1p1"), "");
  EXPECT_EQ(rows("bwd_filter n2c64h9w8k20r3s3p1"), "");
  EXPECT_EQ(rows("bwd_filter bf16 n2c64h9w8k20r1s1"), "");
  const devices::TensorMap apart = map_of_raw_rows(*raw_filter_task(conv2d_problem("bwd_filter n2c64h9w8k128r1s1")),
                                                   false, 64, 128),
                           last = map_of_raw_rows(*raw_filter_task(conv2d_problem("bwd_filter nhwc n2c64h9w8k128r1s1")),
                                                  true, 64, 128);
  EXPECT_EQ(apart.extents, (std::array<std::int64_t, 5>{72, 128, 2, 0, 0}));
  EXPECT_EQ(apart.box[0] * apart.box[1], 32 * 128);
  EXPECT_EQ(last.extents, (std::array<std::int64_t, 5>{128, 144, 1, 0, 0}));
  EXPECT_EQ(last.box[0] * last.box[1], 32 * 64);
}

// Of other filters the rows are y's, and x's channels at the taps columns.
TEST(SplitGeometry, CopiesTheRowsOfYBesideTaps) {
  const auto rows = [](const char* text, std::int64_t terms) {
    const Conv2dProblem problem = conv2d_problem(text);
    const auto task = raw_filter_task(problem, std::get<FilterTask>(filter_task(problem)));
    return task ? fmt::format("{} rows, {} columns, {} steps", task->rows(), task->columns(), task->steps_of(terms))
                : "";
  };
  EXPECT_EQ(rows("bwd_filter n2c64h8w8k128r3s3p1", 64), "128 rows, 576 columns, 2 steps");
  EXPECT_EQ(rows("bwd_filter n2c80h10w8k72r3s3p1", 64),
            "128 rows, 1152 columns, 4 steps");  // each image begins with one
  EXPECT_EQ(rows("bwd_filter n2c80h10w8k72r3s3p1", 32), "128 rows, 1152 columns, 6 steps");
  EXPECT_EQ(rows("bwd_filter nhwc n2c80h10w8k72r3s3p1", 32), "128 rows, 1152 columns, 5 steps");
  EXPECT_EQ(rows("bwd_filter tf32 n2c64h14w14k128r3s3p1u2g2", 32), "");  // 49 pixels
  EXPECT_EQ(rows("bwd_filter n2c64h9w9k128r3s3p1", 64), "");             // channels are no multiples of 16 bytes apart
  EXPECT_EQ(rows("bwd_filter nhwc n2c64h9w9k66r3s3p1", 64), "");         // nor are pixels
  EXPECT_EQ(rows("bwd_filter bf16 n2c64h8w8k128r3s3p1", 64), "");
  // Copies of columns follow the pixels of y.
  const Conv2dProblem problem = conv2d_problem("bwd_filter n2c64h16w12k128r3s3p1u2");
  const FilterTask planes = std::get<FilterTask>(filter_task(problem)), task = *raw_filter_task(problem, planes);
  EXPECT_EQ(map_of_x(task, 32).extents, map_of_x(planes, 32).extents);
  EXPECT_EQ(map_of_x(task, 32).pixels, 32);
  const devices::TensorMap of_rows = map_of_raw_rows(task, false, 32, 64);
  EXPECT_EQ(of_rows.extents, (std::array<std::int64_t, 5>{48, 128, 2, 0, 0}));
  EXPECT_EQ(of_rows.box[0] * of_rows.box[1], 32 * 64);
}

TEST(SplitGeometry, BlocksOfPixelsServeStrides) {
  const auto block = [](const char* text) {
    const std::optional<PixelTask> task = block_task(conv2d_problem(text));
    return task ? fmt::format("{}x{} {}", task->block_h, task->block_w, task->is_merged() ? "merged" : "filled") : "";
  };
  EXPECT_EQ(block("bwd_data n2c20h12w12k16r1s1u2"), "2x2 filled");
  EXPECT_EQ(block("bwd_data n2c3h32w32k16r7s7p3u2"), "2x2 merged");
  EXPECT_EQ(block("bwd_data n2c3h32w32k16r16s16u16"), "16x16 merged");
  EXPECT_EQ(block("bwd_data n2c3h32w32k16r3s3p1uw2"), "1x2 merged");
  EXPECT_EQ(block("bwd_data n2c3h32w32k16r3s3p2u2d3"), "");  // taps of a pixel lie three apart
  EXPECT_EQ(block("bwd_data n2c3h32w32k16r3s3p1"), "");
  EXPECT_EQ(block("n2c3h32w32k16r3s3p1u2"), "");
}

TEST(SplitGeometry, MeetsWhatTheDefinitionMeets) {
  std::mt19937_64 random(3);
  const auto check = [](const Conv2dProblem& problem) {
    for (const Pass pass : {Pass::forward, Pass::backward_data}) check_pixels(with_pass(problem, pass));
    for (const Pass pass : {Pass::forward, Pass::backward_data}) check_blocks(with_pass(problem, pass));
    check_filters(with_pass(problem, Pass::backward_filter));
  };
  for (int i = 0; i < 100; ++i) check(random_conv2d(random));
  for (const char* text :
       {"n2c3h17w15k4r5s5p2u2", "n1c16h20w20k16r3s3p4d4u2", "n2c20h13w11k4r1s1u3", "n1c64h9w9k8r3s3p1u4",
        "n1c3h40w40k4r16s16u16", "n1c2h300w9k2r3s1ph130dh130", "n1c20h9w12k4r4s4p2u4d3"})
    check(conv2d_problem(text));
}

TEST(SplitGeometry, SharesWindowsAlongARow) {
  const auto shared = [](const char* text) {
    return with_shared_taps(std::get<PixelTask>(pixel_task(conv2d_problem(text))));
  };
  const auto three = shared("n1c64h8w8k64r3s3p1");
  ASSERT_TRUE(three);
  EXPECT_EQ(three->columns, 9);  // a zero between a row and the next is both's
  EXPECT_EQ(three->steps_of_all(true), 9);
  const auto five = shared("n1c32h8w8k64r5s5p2");  // five taps of 32 channels: two, two and one a step
  ASSERT_TRUE(five);
  EXPECT_EQ(five->steps_of_all(false), 13);
  EXPECT_EQ(five->steps_of_all(true), 15);
  EXPECT_EQ(five->columns, 10);
  EXPECT_EQ(shared("n1c64h8w8k64r3s3")->columns, 8);     // without padding all that taps reach are the row's
  EXPECT_EQ(shared("n1c64h8w8k64r3s3p2")->columns, 10);  // all of it are the row's behind its last pixel
  EXPECT_FALSE(shared("n1c64h8w8k64r1s1"));
  EXPECT_FALSE(shared("n1c64h8w8k64r3s3p1u2"));      // positions lie two columns apart
  EXPECT_FALSE(shared("n1c64h8w300k64r3s3p1dw90"));  // windows of 308 pixels
  const auto classes = shared("bwd_data n1c64h8w8k64r3s3p1u2");
  ASSERT_TRUE(classes);
  EXPECT_EQ(classes->columns, 5);  // a pixel behind the last: one class begins with none
}

TEST(SplitGeometry, RefusesWhatCopiesCannotReach) {
  const auto refusal = [](const char* text) {
    const auto made = pixel_task(conv2d_problem(text));
    return std::holds_alternative<std::string>(made) ? std::get<std::string>(made) : "";
  };
  EXPECT_NE(refusal("bwd_data n1c3h64w64k8r5s5p2u5").find("25 remainders"), std::string::npos);
  EXPECT_NE(refusal("bwd_data n1c16h300w300k16r3s3p130d130").find("too far apart"), std::string::npos);
  EXPECT_NE(refusal("bwd_data n1c16h1w1k16r1s1p1u2").find("no pixel meets a tap"), std::string::npos);
  EXPECT_NE(refusal("n1c256h4096w4096k1r4096s4096").find("2^30 terms"), std::string::npos);
  EXPECT_NE(refusal("n1024c1024h40w40k1024r1s1g1024").find("1048576 planes of 1600 pixels"), std::string::npos);
  EXPECT_EQ(refusal("n1c16h300w300k16r3s3p130d130"), "");  // forward, taps stand among the channels
}

TEST(SplitGeometry, SumsAreShort) {
  const auto steps = [](const char* text) { return std::get<PixelTask>(pixel_task(conv2d_problem(text))).steps; };
  EXPECT_EQ(steps("n1c64h8w8k64r3s3p1"), 9);
  EXPECT_EQ(steps("n1c32h8w8k64r3s3p1"), 5);    // two taps a step
  EXPECT_EQ(steps("n1c3h8w8k64r3s3p1"), 1);     // three rows of sixteen
  EXPECT_EQ(steps("n1c72h8w8k64r3s3p1"), 14);   // 96 channels, not 128
  EXPECT_EQ(steps("n1c3h40w40k64r16s16"), 16);  // a row's 48 channels fill three quarters of a box: fewer copies
}

TEST(Divisor, DividesWhatThirtyOneBitsHold) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    const std::int64_t by = 1 + static_cast<std::int64_t>(random() >> (33 + random() % 30)),
                       n = static_cast<std::int64_t>(random() >> 33);
    for (const std::int64_t each : {n, n / by * by, n / by * by - 1, (std::int64_t{1} << 31) - 1})
      if (each >= 0) {
        ASSERT_EQ(Divisor(by).divided(each), each / by) << each << " / " << by;
      }
  }
}

}  // namespace
}  // namespace omniconv::operations::split_gemm
