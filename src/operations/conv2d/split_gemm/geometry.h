// How the passes of a convolution are long products on matrix units: the extents that kernels are given, and what their
// copies read. No device.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/checked.h"
#include "devices/tensor_map.h"
#include "omniconv/conv2d.h"
#include "operations/split/divisor.h"
#include "operations/split/numbers.h"

namespace omniconv::operations::split_gemm {

constexpr std::int64_t most_classes = 16, most_taps = 1024, most_turned_taps = 64;

// planes_t of split_planes.kernel, where its members are explained.
struct Planes {
  std::int32_t images = 0, groups = 0;
  std::int32_t source_h = 0, source_w = 0, source_channels = 0;
  std::int32_t h = 0, w = 0, channels = 0, padded = 0;
  std::int32_t folded_w = 1;
  std::int32_t fold_stride_h = 1, fold_stride_w = 1, fold_dilation_h = 0, fold_dilation_w = 0, fold_pad_h = 0,
               fold_pad_w = 0;
  std::int32_t group_channels = 0, group_images = 0;

  std::int64_t pixels() const { return std::int64_t{images} * groups * h * w; }
  std::int64_t elements() const { return pixels() * padded; }
  std::int64_t source_elements() const { return std::int64_t{images} * groups * source_h * source_w * source_channels; }
  bool have_taps() const { return channels != source_channels; }  // among the channels
};
// What copies read of the array itself, in the place of planes, where its numbers are their own parts and it begins at
// a multiple of 16 bytes. None where boxes of so many channels would bring in those of the next group as terms, or
// copies have no such strides.
std::optional<Planes> as_array(const Planes& planes, DataType type, bool nhwc, std::int64_t box);

// class_t and task_t of split_pixels.kernel: forward, and backward of the data.
struct TapClass {
  std::int32_t taps_h = 0, taps_w = 0, first_h = 0, first_w = 0, offset_h = 0, offset_w = 0, out_h = 0, out_w = 0,
               step = 0;
};
struct PixelTask {
  Planes source;
  std::int32_t filters = 0, taps_h = 0, taps_w = 0, flip = 0;
  std::int32_t class_tap_h = 1, class_tap_w = 1;
  std::int32_t rows = 0, columns = 0;
  std::int32_t stride_h = 1, stride_w = 1, corner_h = 0, corner_w = 0;
  std::int32_t dilation_h = 1, dilation_w = 1;
  std::int32_t out_h = 0, out_w = 0, out_step_h = 1, out_step_w = 1;
  std::int32_t blocks = 0, filters_lie = 0;
  // Tiles and parts of sums are the plan's choice: tiles that have none, and those that do.
  std::int32_t classes = 1, steps = 0, tiles_m = 0, tiles_n = 0, parts = 1, whole = 0, cut = 0;
  Divisor by_tiles, by_cut, by_band, by_tiles_n, by_positions, by_columns;
  std::array<TapClass, most_classes> of_class{};
  std::int32_t block_h = 0, block_w = 0, channels = 0, place_h = 0, place_w = 0;
  std::array<TapClass, most_classes> of_place{};

  std::int64_t positions() const { return std::int64_t{source.images} * rows * columns; }
  std::int64_t box() const { return source.padded / blocks; }  // channels
  // Whether positions are the output's pixels, in their order; or those and some behind each row.
  bool is_plain() const { return has_plain_rows() && columns == out_w; }
  bool has_plain_rows() const {
    return classes == 1 && rows == out_h && columns >= out_w && out_step_h == 1 && out_step_w == 1;
  }
  // Whether blocks' pixels are filters, each of so many channels.
  bool is_merged() const { return filters != channels; }
  // Whether blocks are rows without a stride (row_block_task): the source's rows are as far apart as theirs.
  bool are_row_blocks() const { return block_w > 0 && stride_h > 1; }
  // Steps of 64 terms of all classes, the last of a sum, or of a window's taps, perhaps of fewer.
  std::int64_t steps_of_all(bool is_shared) const;
  std::int64_t filter_elements() const { return std::int64_t{source.groups} * filters * steps * step_terms; }
};
// Or why there is none.
std::variant<PixelTask, std::string> pixel_task(const Conv2dProblem& problem);
// The same whose source is an array of fp32 itself, of which parts are made when it has been copied; none, where copies
// have no such boxes.
// Under nchw of filters of one tap without a stride, each image a row of pixels, and of whole boxes of 32.
std::optional<PixelTask> raw_task(const Conv2dProblem& problem);
std::optional<PixelTask> raw_task(const Conv2dProblem& problem, const PixelTask& task);
// Backward of the data with a stride as one class whose positions are blocks of pixels, one of each class. Where taps
// meet one of them alone, it has the sums, and the others are zeros. Else the pixels' channels are filters of one
// product, which are zero at taps that meet others. None, where there is no such product.
std::optional<PixelTask> block_task(const Conv2dProblem& problem);
// Of a task without strides and of few filters: a position is a block of two rows of pixels, or of four, which are
// filters of one product, zero at taps that meet others, so that it has 64 of them, or nearly. None, where there is no
// such product.
std::optional<PixelTask> row_block_task(const Conv2dProblem& problem, const PixelTask& task);
// The same where the taps of a row of the filter share a window of pixels: positions are then also those behind the
// last column, as far as taps reach, but for zeros that the next row begins with. None, where they cannot.
std::optional<PixelTask> with_shared_taps(const PixelTask& task);
// Whether the array of filters has their terms in the order of the steps, so that copies can read it in the place of
// planes: where it begins at a multiple of 16 bytes.
bool can_filters_lie(const Conv2dProblem& problem, const PixelTask& task, bool is_shared);
// Whether copies can read the array of filters backward of the data, where tiles have so many columns: neighbours are
// then filters, and not terms (B_TURNED).
bool can_filters_be_turned(const Conv2dProblem& problem, const PixelTask& task, std::int64_t tile_columns);
// Pixels that the taps of a row meet, for 128 positions.
std::int64_t window_rows(const PixelTask& task);
// What copies boxes of so many positions, and of filters for a tile of so many columns; without a buffer.
devices::TensorMap map_of_source(const PixelTask& task, std::int64_t positions);
devices::TensorMap map_of_raw_source(const PixelTask& task, bool nhwc);
devices::TensorMap map_of_filters(const PixelTask& task, std::int64_t tile_columns);
devices::TensorMap map_of_turned_filters(const PixelTask& task);
// Whether a tile's results are stored as boxes, under nhwc: whose lines are multiples of 16 bytes. And what stores
// them, without a buffer; none, where a tile's columns are also those of the next group, or positions lie apart. Under
// nchw of lines of so many bytes that images have whole, or 0.
std::int64_t output_line(const PixelTask& task, DataType type, const Tile& tile);
std::optional<devices::TensorMap> map_of_planar_output(const PixelTask& task, DataType type, const Tile& tile);
bool has_boxes(const PixelTask& task, DataType type);
std::optional<devices::TensorMap> map_of_output(const PixelTask& task, DataType type, const Tile& tile);

// task_t of split_filters.kernel: backward of the filter.
struct FilterTask {
  Planes x, y;
  std::int32_t taps_h = 0, taps_w = 0;
  std::int32_t all_h = 0, all_w = 0, flip = 0;
  std::int32_t stride_h = 1, stride_w = 1, corner_h = 0, corner_w = 0, dilation_h = 1, dilation_w = 1;
  std::int32_t box = step_terms, blocks = 0, column_blocks = 0;
  std::int32_t steps = 0, tiles_m = 0, tiles_n = 0, parts = 1, whole = 0, cut = 0;
  std::int32_t tap_step = 0, filters = 0, channels = 0;
  std::int32_t items_at_once = 0, slices_at_once = 1, filters_at_once = 1, channels_at_once = 4, channel_slices = 1,
               filter_slices = 1;
  Divisor by_items, by_fours, by_taps, by_filters, by_channel_slices, by_filter_slices, by_cut, by_tiles_m, by_tiles_n;
  Divisor by_pixels, by_columns;
  std::int32_t exchanged = 0, image_steps = 0;
  Divisor by_image_steps;

  std::int64_t taps() const { return std::int64_t{taps_h} * taps_w; }
  bool have_columns_taps() const { return column_blocks > 0; }
  // What tiles are made of: channels at taps, those of whole boxes, and the other operand's channels.
  std::int64_t rows() const { return have_columns_taps() ? blocks * step_terms : taps() * blocks * box; }
  std::int64_t columns() const { return have_columns_taps() ? taps() * column_blocks * box : y.channels; }
  const Planes& without_taps() const { return have_columns_taps() ? x : y; }
  // Steps of so many pixels: of an image, where each begins with one, and of all.
  std::int64_t image_steps_of(std::int64_t terms) const {
    return divide_up(std::int64_t{without_taps().h} * without_taps().w, terms);
  }
  std::int64_t steps_of(std::int64_t terms) const {
    const Planes& of = without_taps();
    return image_steps > 0 ? of.images * image_steps_of(terms)
                           : divide_up(std::int64_t{of.images} * of.h * of.w, terms);
  }
};
std::variant<FilterTask, std::string> filter_task(const Conv2dProblem& problem);
// With as many channels as the other passes store of the same array.
void store_as_for_pixels(Planes& planes);
// The same with boxes of 32 channels, where fewer of their rows stand for no channel. None, where those of 64 have as
// few.
std::optional<FilterTask> narrow_filter_task(const FilterTask& task);
// The same where the taps of a row of the filter stand among the channels, which are less than a box. None, where they
// do so anyway, or need not.
std::optional<FilterTask> folded_filter_task(const Conv2dProblem& problem);
// The same with one of the arrays copied as it is: parts are made of it when it has been copied. Its channels are the
// rows. Of filters of one tap without a stride it is the larger array; of others y, and the columns are the channels of
// the task's planes of x at its taps. None, where copies have no such boxes.
std::optional<FilterTask> raw_filter_task(const Conv2dProblem& problem);
std::optional<FilterTask> raw_filter_task(const Conv2dProblem& problem, const FilterTask& task);
// What copies boxes of so many positions: of the operand with taps, and of the other.
devices::TensorMap map_of_x(const FilterTask& task, std::int64_t terms);
devices::TensorMap map_of_y(const FilterTask& task, std::int64_t terms);
// Of a raw task: so many pixels of so many rows, in boxes of 32 pixels under nchw, of 32 rows under nhwc.
devices::TensorMap map_of_raw_rows(const FilterTask& task, bool nhwc, std::int64_t terms, std::int64_t rows);

}  // namespace omniconv::operations::split_gemm
