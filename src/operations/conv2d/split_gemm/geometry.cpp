#include "operations/conv2d/split_gemm/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/checked.h"
#include "operations/conv2d/shape.h"

namespace omniconv::operations::split_gemm {
namespace {

// Of copies in im2col mode: corners of the box of positions, offsets of a tap, strides of positions.
constexpr std::int64_t least_corner = -128, most_corner = 127, most_offset = 255, most_stride = 8;

bool fits_in_corners(std::int64_t at) {
  return at >= least_corner && at <= most_corner;
}
// Of the last position's first element, from the end of the extent.
std::int64_t upper_corner(std::int64_t positions, std::int64_t stride, std::int64_t corner, std::int64_t extent) {
  return (positions - 1) * stride + 1 + corner - extent;
}

// Along one axis of the planes: positions at 0, stride, ... and the classes of their taps.
struct Axis {
  std::int64_t extent = 0, positions = 0, stride = 1, corner = 0, dilation = 1, tap_step = 1, out_step = 1;
  struct Class {
    std::int64_t taps = 0, first = 0, offset = 0, out = 0;
  };
  std::array<Class, most_classes> of_class{};
  std::int64_t classes = 1;

  bool can_be_copied() const {
    bool all = stride <= most_stride && fits_in_corners(corner) &&
               fits_in_corners(upper_corner(positions, stride, corner, extent));
    for (std::int64_t i = 0; i < classes; ++i) {
      const Class& of = of_class[static_cast<std::size_t>(i)];
      all = all && of.offset + (of.taps - 1) * dilation <= most_offset;
    }
    return all;
  }
};

Axis forward_axis(std::int64_t extent, std::int64_t positions, std::int64_t stride, std::int64_t pad,
                  std::int64_t dilation, std::int64_t taps) {
  Axis axis{.extent = extent, .positions = positions, .stride = stride, .corner = -pad, .dilation = dilation};
  axis.of_class[0] = {.taps = taps};
  return axis;
}

// The pixels stride * i + a of x meet the taps t for which a + pad - t * dilation is a multiple of the stride: in row
// i + (a + pad - t * dilation) / stride of y. From the last such tap on, each comes dilation / gcd rows later.
Axis backward_axis(std::int64_t extent, std::int64_t x_extent, std::int64_t stride, std::int64_t pad,
                   std::int64_t dilation, std::int64_t taps) {
  const std::int64_t common = std::gcd(stride, dilation);
  Axis axis{.extent = extent,
            .positions = divide_up(x_extent, stride),
            .corner = std::numeric_limits<std::int64_t>::max(),
            .dilation = dilation / common,
            .tap_step = -(stride / common),
            .out_step = stride,
            .classes = std::min(stride, x_extent)};
  if (axis.classes > most_classes) return axis;
  for (std::int64_t a = 0; a < axis.classes; ++a) {
    Axis::Class& of = axis.of_class[static_cast<std::size_t>(a)];
    of.out = a;
    for (std::int64_t t = taps - 1; t >= 0; --t) {
      if ((a + pad - t * dilation) % stride != 0) continue;
      if (of.taps++ > 0) continue;
      of.first = t, of.offset = (a + pad - t * dilation) / stride;
    }
    if (of.taps > 0) axis.corner = std::min(axis.corner, of.offset);
  }
  if (axis.corner == std::numeric_limits<std::int64_t>::max()) axis.corner = 0;
  for (Axis::Class& of : axis.of_class) of.offset = of.taps > 0 ? of.offset - axis.corner : 0;
  return axis;
}

std::int64_t steps_of(std::int64_t taps, std::int64_t channels, std::int64_t box) {
  return divide_up(taps * divide_up(channels, box) * box, step_terms);
}

// The box with which copies and products take least time: copies of 128 lines take about as long whatever their length,
// so that short boxes are slower than their products.
std::int64_t box_for(std::int64_t channels) {
  struct Choice {
    std::int64_t box, cycles;  // for 64 terms
  };
  std::int64_t best = 0, least = 0;
  for (const Choice each : {Choice{16, 2100}, Choice{32, 1050}, Choice{64, 900}}) {
    const std::int64_t cycles = round_up(channels, each.box) * each.cycles;
    if (best == 0 || cycles < least) best = each.box, least = cycles;
  }
  return best;
}

std::int32_t narrow(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

void put_classes(PixelTask& task, const Axis& down, const Axis& along) {
  std::int32_t count = 0;
  for (std::int64_t i = 0; i < down.classes; ++i)
    for (std::int64_t j = 0; j < along.classes; ++j) {
      const Axis::Class &h = down.of_class[static_cast<std::size_t>(i)],
                        &w = along.of_class[static_cast<std::size_t>(j)];
      task.of_class[static_cast<std::size_t>(count++)] = {narrow(h.taps),  narrow(w.taps),   narrow(h.first),
                                                          narrow(w.first), narrow(h.offset), narrow(w.offset),
                                                          narrow(h.out),   narrow(w.out)};
    }
  task.classes = count;
  // The longest first: what is begun last is then short.
  std::stable_sort(task.of_class.begin(), task.of_class.begin() + count,
                   [](const TapClass& a, const TapClass& b) { return a.taps_h * a.taps_w > b.taps_h * b.taps_w; });
}

void put_axes(PixelTask& task, const Axis& down, const Axis& along) {
  put_classes(task, down, along);
  task.class_tap_h = narrow(down.tap_step), task.class_tap_w = narrow(along.tap_step);
  task.rows = narrow(down.positions), task.columns = narrow(along.positions);
  task.stride_h = narrow(down.stride), task.stride_w = narrow(along.stride);
  task.corner_h = narrow(down.corner), task.corner_w = narrow(along.corner);
  task.dilation_h = narrow(down.dilation), task.dilation_w = narrow(along.dilation);
  task.out_step_h = narrow(down.out_step), task.out_step_w = narrow(along.out_step);
}

// Few channels: a row's taps stand beside them, or all taps.
enum class Fold : std::uint8_t { none, row, all };

Fold fold_of(const Conv2dShape& g, const Axis& down, const Axis& along, bool is_copied) {
  if (!down.can_be_copied()) return Fold::all;
  if (!along.can_be_copied()) return Fold::row;
  // What no tap meets is left out when planes are made.
  if (g.r == 1 && g.s == 1 && g.stride_h * g.stride_w > 1 && !is_copied) return Fold::all;
  return g.c_group < 16 && g.s > 1 ? Fold::row : Fold::none;
}

constexpr std::int64_t raw_channels = 32;    // of a copy of fp32 numbers
constexpr std::int64_t four = 4, eight = 8;  // numbers of 16 bytes: of 32 bits, of 16

// Whether numbers are multiplied as they are.
bool are_parts(DataType type) {
  return type == DataType::f16 || type == DataType::bf16;
}

// x as planes, and what is left of the axes when taps stand among their channels.
struct FoldedX {
  Planes planes = {};
  Axis down, along;
};
FoldedX folded_x(const Conv2dShape& g, DataType type, bool is_raw = false, Fold least = Fold::none) {
  FoldedX x{.down = forward_axis(g.h, g.p, g.stride_h, g.pad_top, g.dilation_h, g.r),
            .along = forward_axis(g.w, g.q, g.stride_w, g.pad_left, g.dilation_w, g.s)};
  const bool is_copied = g.nhwc && (is_raw ? g.c % four == 0 : are_parts(type) && g.c % eight == 0);
  const Fold fold = std::max(least, fold_of(g, x.down, x.along, is_copied));
  Planes& planes = x.planes;
  std::int64_t channels = g.c_group;
  if (fold != Fold::none) {
    x.along = forward_axis(g.q, g.q, 1, 0, 1, 1);
    channels *= g.s;
    planes.folded_w = narrow(g.s);
    planes.fold_stride_w = narrow(g.stride_w), planes.fold_dilation_w = narrow(g.dilation_w);
    planes.fold_pad_w = narrow(g.pad_left);
  }
  if (fold == Fold::all) {
    x.down = forward_axis(g.p, g.p, 1, 0, 1, 1);
    channels *= g.r;
    planes.fold_stride_h = narrow(g.stride_h), planes.fold_dilation_h = narrow(g.dilation_h);
    planes.fold_pad_h = narrow(g.pad_top);
  }
  planes.images = narrow(g.n), planes.groups = narrow(g.groups);
  planes.source_h = narrow(g.h), planes.source_w = narrow(g.w), planes.source_channels = narrow(g.c_group);
  planes.h = narrow(x.down.extent), planes.w = narrow(x.along.extent), planes.channels = narrow(channels);
  planes.group_images = planes.images;
  return x;
}

Planes unfolded_y(const Conv2dShape& g) {
  Planes planes;
  planes.images = narrow(g.n), planes.groups = narrow(g.groups);
  planes.source_h = planes.h = narrow(g.p), planes.source_w = planes.w = narrow(g.q);
  planes.source_channels = planes.channels = narrow(g.k_group);
  planes.group_images = planes.images;
  return planes;
}

PixelTask forward_task(const Conv2dShape& g, DataType type, bool is_raw) {
  PixelTask task;
  const FoldedX x = folded_x(g, type, is_raw);
  task.source = x.planes;
  put_axes(task, x.down, x.along);
  task.filters = task.channels = narrow(g.k_group), task.out_h = narrow(g.p), task.out_w = narrow(g.q);
  return task;
}

PixelTask backward_task(const Conv2dShape& g) {
  PixelTask task;
  task.source = unfolded_y(g);
  put_axes(task, backward_axis(g.p, g.h, g.stride_h, g.pad_top, g.dilation_h, g.r),
           backward_axis(g.q, g.w, g.stride_w, g.pad_left, g.dilation_w, g.s));
  task.filters = task.channels = narrow(g.c_group), task.out_h = narrow(g.h), task.out_w = narrow(g.w);
  return task;
}

// Why copies cannot serve the pass backward of the data.
std::string backward_refusal(const Conv2dShape& g) {
  const Axis down = backward_axis(g.p, g.h, g.stride_h, g.pad_top, g.dilation_h, g.r),
             along = backward_axis(g.q, g.w, g.stride_w, g.pad_left, g.dilation_w, g.s);
  if (down.classes * along.classes > most_classes)
    return fmt::format("pixels of {} remainders by the strides meet taps of their own, and it serves {}",
                       down.classes * along.classes, most_classes);
  if (!down.can_be_copied() || !along.can_be_copied()) return "taps lie too far apart for copies of pixels in windows";
  return {};
}

// All classes of an axis as one, whose taps are those of all of them: each place's, where they lie among these.
std::optional<Axis> merged(const Axis& axis) {
  if (axis.classes > most_classes) return {};
  Axis one = axis;
  one.classes = 1, one.of_class = {};
  Axis::Class& all = one.of_class[0];
  for (std::int64_t i = 0; i < axis.classes; ++i) {
    const Axis::Class& of = axis.of_class[static_cast<std::size_t>(i)];
    if (of.taps > 1 && axis.dilation != 1) return {};
    if (of.taps > 0) all.taps = std::max(all.taps, of.offset + of.taps);
  }
  one.dilation = 1;
  return one;
}

// The place of the only class that taps meet; -1: there are several, or none.
std::int64_t only_place(const Axis& axis) {
  std::int64_t place = -1;
  for (std::int64_t i = 0; i < axis.classes; ++i) {
    if (axis.of_class[static_cast<std::size_t>(i)].taps == 0) continue;
    if (place >= 0) return -1;
    place = i;
  }
  return place;
}
// The axis of that class alone.
Axis of_place(const Axis& axis, std::int64_t place) {
  Axis one = axis;
  one.classes = 1, one.of_class = {};
  one.of_class[0] = axis.of_class[static_cast<std::size_t>(place)];
  one.of_class[0].out = 0;
  return one;
}

PixelTask task_of_blocks(const Conv2dShape& g, const Axis& down, const Axis& along, std::int64_t block_h,
                         std::int64_t block_w) {
  PixelTask task;
  task.source = unfolded_y(g);
  put_axes(task, down, along);
  task.channels = narrow(g.c_group), task.filters = task.channels;
  task.out_h = narrow(g.h), task.out_w = narrow(g.w);
  task.block_h = narrow(block_h), task.block_w = narrow(block_w);
  return task;
}

// Numbers that kernels count in 32 bits.
constexpr std::int64_t most = std::int64_t{1} << 30;

std::string extent_refusal(const Conv2dProblem& problem, const Conv2dShape& g) {
  constexpr std::int64_t most_extent = std::int64_t{1} << 24;
  for (const std::int64_t extent :
       {g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.pad_top, g.pad_left, problem.pad_bottom, problem.pad_right, g.dilation_h,
        g.dilation_w, g.dilation_h * g.r, g.dilation_w * g.s, g.stride_h, g.stride_w})
    if (extent >= most_extent) return fmt::format("an extent of {} passes the {} that it counts", extent, most_extent);
  if (g.c_group * g.r >= most || g.c_group * g.r * g.s >= most) return "has sums of 2^30 terms";
  const std::int64_t planes = g.n * g.groups;
  for (const std::int64_t pixels : {g.h * g.w, g.p * g.q})
    if (pixels >= most || planes >= most / pixels)
      return fmt::format("{} planes of {} pixels pass the {} that it counts", planes, pixels, most);
  return {};
}

// Rows of x with taps of a row among their channels are as many as x's, and as long as y's.
std::string planes_refusal(const Planes& planes) {
  return planes.pixels() < most ? "" : fmt::format("planes have {} pixels, and it counts {}", planes.pixels(), most);
}

devices::TensorMap map_of_planes(const Planes& planes) {
  const bool is_array = planes.group_channels > 0;
  const std::int64_t channels = is_array ? std::int64_t{planes.groups} * planes.source_channels : planes.padded,
                     pixel = channels * 2, row = pixel * planes.w, image = row * planes.h;
  return {.element = devices::TensorMap::Element::f16,
          .rank = 4,
          .extents = {channels, planes.w, planes.h, std::int64_t{planes.images} * (is_array ? 1 : planes.groups)},
          .strides_bytes = {pixel, row, image},
          .promotion = devices::TensorMap::Promotion::bytes_256};
}

// A box of positions, each the first pixel of a window.
template <typename Task>
devices::TensorMap windows_of(const Planes& planes, const Task& task, std::int64_t rows, std::int64_t columns) {
  devices::TensorMap map = map_of_planes(planes);
  map.is_im2col = true;
  map.element_strides = {1, task.stride_w, task.stride_h, 1, 1};
  map.lower_corner = {task.corner_w, task.corner_h};
  map.upper_corner = {upper_corner(columns, task.stride_w, task.corner_w, planes.w),
                      upper_corner(rows, task.stride_h, task.corner_h, planes.h)};
  return map;
}

}  // namespace

namespace {

// What follows from the axes: boxes of channels, and steps. Or why there are none.
std::string complete(PixelTask& task, const Conv2dShape& g) {
  task.taps_h = narrow(g.r), task.taps_w = narrow(g.s), task.flip = g.flip ? 1 : 0;
  const std::int64_t channels = task.source.channels;
  const std::int64_t box = box_for(channels), blocks = divide_up(channels, box);
  task.blocks = narrow(blocks), task.source.padded = narrow(blocks * box);
  std::int64_t steps = 0;
  for (std::int32_t i = 0; i < task.classes; ++i) {
    TapClass& of = task.of_class[static_cast<std::size_t>(i)];
    of.step = narrow(steps);
    steps += steps_of(std::int64_t{of.taps_h} * of.taps_w, channels, box);
  }
  if (steps * step_terms >= most || checked_multiply(task.positions(), task.classes, "the positions") >= most / 2)
    return "has sums of 2^30 terms, or 2^29 pixels";
  if (steps == 0) return "no pixel meets a tap";
  task.steps = narrow(steps);
  return {};
}

}  // namespace

namespace {
std::variant<PixelTask, std::string> made_task(const Conv2dProblem& problem, bool is_raw) {
  const Conv2dShape g(problem);
  if (std::string reason = extent_refusal(problem, g); !reason.empty()) return reason;
  const bool forward = problem.pass == Pass::forward;
  if (!forward)
    if (std::string reason = backward_refusal(g); !reason.empty()) return reason;
  PixelTask task = forward ? forward_task(g, problem.type, is_raw) : backward_task(g);
  if (std::string reason = planes_refusal(task.source); !reason.empty()) return reason;
  if (std::string reason = complete(task, g); !reason.empty()) return reason;
  return task;
}

}  // namespace

std::variant<PixelTask, std::string> pixel_task(const Conv2dProblem& problem) {
  return made_task(problem, false);
}

std::optional<PixelTask> block_task(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  if (problem.pass != Pass::backward_data || g.stride_h * g.stride_w == 1) return {};
  if (!extent_refusal(problem, g).empty()) return {};
  const Axis down = backward_axis(g.p, g.h, g.stride_h, g.pad_top, g.dilation_h, g.r),
             along = backward_axis(g.q, g.w, g.stride_w, g.pad_left, g.dilation_w, g.s);
  if (down.classes > most_classes || along.classes > most_classes) return {};
  PixelTask task;
  if (const std::int64_t place_h = only_place(down), place_w = only_place(along);
      place_h >= 0 && place_w >= 0 && down.classes * along.classes > 1) {
    const Axis one_h = of_place(down, place_h), one_w = of_place(along, place_w);
    if (!one_h.can_be_copied() || !one_w.can_be_copied()) return {};
    task = task_of_blocks(g, one_h, one_w, down.classes, along.classes);
    task.place_h = narrow(place_h), task.place_w = narrow(place_w);
  } else {
    const std::optional<Axis> one_h = merged(down), one_w = merged(along);
    if (!one_h || !one_w || !one_h->can_be_copied() || !one_w->can_be_copied()) return {};
    task = task_of_blocks(g, *one_h, *one_w, down.classes, along.classes);
    if (g.c_group >= most / most_classes / most_classes) return {};
    task.filters = narrow(g.c_group * down.classes * along.classes);
    for (std::size_t i = 0; i < most_classes; ++i) {
      const Axis::Class &h = down.of_class[i], &w = along.of_class[i];
      task.of_place[i] = {narrow(h.taps),  narrow(w.taps),   narrow(h.first),
                          narrow(w.first), narrow(h.offset), narrow(w.offset)};
    }
  }
  if (!planes_refusal(task.source).empty() || !complete(task, g).empty()) return {};
  return task;
}

std::optional<PixelTask> row_block_task(const Conv2dProblem& problem, const PixelTask& task) {
  constexpr std::int64_t most_columns = 64, most_height = 4;
  if (task.of_class[0].taps_h == 1 || task.classes != 1 || !task.is_plain() || task.stride_h != 1 ||
      task.stride_w != 1 || task.dilation_h != 1 || task.source.have_taps() || task.is_merged() || task.block_w != 0)
    return {};
  std::int64_t height = most_height;
  while (height > 1 && (height * task.filters > most_columns || height > task.rows)) height /= 2;
  if (height == 1 || 2 * height * task.filters <= most_columns) return {};
  PixelTask blocks = task;
  TapClass& of = blocks.of_class[0];
  for (std::int64_t i = 0; i < height; ++i) {
    blocks.of_place[static_cast<std::size_t>(i)] = of;
    blocks.of_place[static_cast<std::size_t>(i)].offset_h += narrow(i);
  }
  of.taps_h = narrow(of.taps_h + height - 1);
  blocks.block_h = narrow(height), blocks.block_w = 1;
  blocks.filters = narrow(task.filters * height);
  blocks.rows = narrow(divide_up(task.rows, height));
  blocks.stride_h = blocks.out_step_h = narrow(height);
  if (of.offset_h + of.taps_h - 1 > most_offset ||
      !fits_in_corners(upper_corner(blocks.rows, height, blocks.corner_h, blocks.source.h)))
    return {};
  if (!complete(blocks, Conv2dShape(problem)).empty()) return {};
  return blocks;
}

std::int64_t PixelTask::steps_of_all(bool is_shared) const {
  if (!is_shared) return steps;
  std::int64_t all = 0;
  for (const TapClass& of : of_class)
    all += std::int64_t{of.taps_h} * blocks * divide_up(of.taps_w * box(), step_terms);
  return all;
}

std::int64_t window_rows(const PixelTask& task) {
  std::int64_t taps = 0;
  for (const TapClass& of : task.of_class) taps = std::max<std::int64_t>(taps, of.taps_w);
  return tile_rows + (taps - 1) * task.dilation_w;
}

std::optional<PixelTask> with_shared_taps(const PixelTask& task) {
  constexpr std::int64_t most_rows = 256;
  const std::int64_t rows = window_rows(task);
  if (task.stride_w != 1 || rows == tile_rows || rows > most_rows) return {};
  PixelTask shared = task;
  for (std::int32_t i = 0; i < task.classes; ++i) {
    const TapClass& of = task.of_class[static_cast<std::size_t>(i)];
    if (of.taps_w == 0) continue;
    const std::int64_t reached = task.columns + std::int64_t{of.taps_w - 1} * task.dilation_w;
    const std::int64_t first = task.corner_w + of.offset_w;  // column of the source that a row's first pixel is
    // The next row's pixels stand for those behind this one's last where both are zeros.
    const std::int64_t columns = std::max(reached + first, task.source.w - first);
    shared.columns = narrow(std::max<std::int64_t>(shared.columns, std::min(reached, columns)));
  }
  if (!fits_in_corners(upper_corner(shared.columns, 1, task.corner_w, task.source.w))) return {};
  if (shared.positions() * shared.classes >= most / 2) return {};
  return shared;
}

devices::TensorMap map_of_source(const PixelTask& task, std::int64_t positions) {
  devices::TensorMap map = windows_of(task.source, task, task.rows, task.columns);
  map.channels = task.box(), map.pixels = positions;
  map.swizzle = swizzle_of(2 * task.box());
  return map;
}

devices::TensorMap map_of_raw_source(const PixelTask& task, bool nhwc) {
  const Planes& planes = task.source;
  if (!nhwc) {
    const std::int64_t pixels = planes.source_w, channels = std::int64_t{planes.groups} * planes.source_channels;
    return {.element = devices::TensorMap::Element::f32,
            .rank = 3,
            .extents = {pixels, channels, planes.images},
            .strides_bytes = {pixels * 4, pixels * 4 * channels},
            .box = {raw_channels, step_terms, 1},
            .swizzle = swizzle_of(4 * raw_channels),
            .promotion = devices::TensorMap::Promotion::bytes_256};
  }
  devices::TensorMap map = windows_of(planes, task, task.rows, task.columns);
  map.element = devices::TensorMap::Element::f32;
  for (std::int64_t& stride : map.strides_bytes) stride *= 2;
  map.channels = raw_channels, map.pixels = tile_rows;
  map.swizzle = swizzle_of(4 * raw_channels);
  return map;
}

devices::TensorMap map_of_filters(const PixelTask& task, std::int64_t tile_columns) {
  const std::int64_t taps = std::int64_t{task.taps_h} * task.taps_w,
                     line = task.filters_lie != 0 ? taps * task.source.channels : task.steps * step_terms;
  return {.element = devices::TensorMap::Element::f16,
          .rank = 3,
          .extents = {line, task.filters, task.source.groups},
          .strides_bytes = {line * 2, line * 2 * task.filters},
          .box = {step_terms, tile_columns, 1},
          .swizzle = swizzle_of(2 * step_terms),
          .promotion = devices::TensorMap::Promotion::bytes_256};
}

devices::TensorMap map_of_turned_filters(const PixelTask& task) {
  const std::int64_t taps = std::int64_t{task.taps_h} * task.taps_w;
  return {.element = devices::TensorMap::Element::f16,
          .rank = 3,
          .extents = {task.filters, taps, std::int64_t{task.source.groups} * task.source.source_channels},
          .strides_bytes = {task.filters * 2, task.filters * 2 * taps},
          .box = {step_terms, 1, task.box()},
          .swizzle = swizzle_of(2 * step_terms),
          .promotion = devices::TensorMap::Promotion::bytes_256};
}

std::int64_t output_line(const PixelTask& task, DataType type, const Tile& tile) {
  const bool is_swapped = (tile.columns == 64 || tile.columns == 128) && !tile.is_raw;
  if (!is_swapped || task.block_w != 0 || !task.is_plain()) return 0;
  if (task.source.groups > 1 && task.filters % tile.columns != 0) return 0;
  const std::int64_t bytes = std::int64_t{task.out_h} * task.out_w * size_of(type);
  return bytes % 128 == 0 ? 128 : bytes % 64 == 0 ? 64 : 0;
}

std::optional<devices::TensorMap> map_of_planar_output(const PixelTask& task, DataType type, const Tile& tile) {
  const std::int64_t line = output_line(task, type, tile), size = size_of(type),
                     filters = std::int64_t{task.source.groups} * task.filters,
                     pixels = std::int64_t{task.out_h} * task.out_w;
  if (line == 0) return {};
  return devices::TensorMap{.element = box_element(type),
                            .rank = 3,
                            .extents = {pixels, filters, task.source.images},
                            .strides_bytes = {pixels * size, pixels * size * filters},
                            .box = {line / size, 64, 1},
                            .swizzle = swizzle_of(line)};
}

bool has_boxes(const PixelTask& task, DataType type) {
  return task.block_w == 0 && task.filters * size_of(type) % 16 == 0;
}

std::optional<devices::TensorMap> map_of_output(const PixelTask& task, DataType type, const Tile& tile) {
  if (!has_boxes(task, type) || !task.is_plain()) return {};
  if (task.source.groups > 1 && task.filters % tile.columns != 0) return {};
  const BoxShape box = box_of(tile, type);
  const std::int64_t size = size_of(type), line = std::int64_t{task.source.groups} * task.filters * size,
                     pixels = std::int64_t{task.source.images} * task.out_h * task.out_w;
  return devices::TensorMap{.element = box_element(type),
                            .rank = 3,
                            .extents = {line / size, pixels, 1},
                            .strides_bytes = {line, line},
                            .box = {box.line_bytes / size, box.rows, 1},
                            .swizzle = swizzle_of(box.line_bytes)};
}

namespace {
std::optional<Planes> array_of_planes(const Planes& planes, bool nhwc, std::int64_t box, std::int64_t alignment) {
  const std::int64_t all = std::int64_t{planes.groups} * planes.source_channels;
  const bool is_folded = planes.have_taps() || planes.fold_dilation_w != 0;
  if (!nhwc || is_folded || all % alignment != 0) return {};
  if (planes.groups > 1 && planes.source_channels % box != 0) return {};
  Planes array = planes;
  array.group_channels = planes.source_channels, array.group_images = 0;
  return array;
}
}  // namespace

std::optional<Planes> as_array(const Planes& planes, DataType type, bool nhwc, std::int64_t box) {
  return are_parts(type) ? array_of_planes(planes, nhwc, box, eight) : std::nullopt;
}

std::optional<PixelTask> raw_task(const Conv2dProblem& problem) {
  Conv2dProblem flat = problem;
  if (problem.layout == Layout::nchw) {
    const Conv2dShape g(problem);
    const bool is_flat = g.r == 1 && g.s == 1 && g.stride_h == 1 && g.stride_w == 1 && g.p == g.h && g.q == g.w &&
                         g.pad_top == 0 && g.pad_left == 0;
    if (!is_flat || g.h >= most / g.w) return {};
    flat.h = 1, flat.w = g.h * g.w;
  }
  const auto made = made_task(flat, true);
  const auto* const task = std::get_if<PixelTask>(&made);
  return task == nullptr ? std::nullopt : raw_task(problem, *task);
}

std::optional<PixelTask> raw_task(const Conv2dProblem& problem, const PixelTask& task) {
  const bool nhwc = problem.layout == Layout::nhwc;
  if (problem.type != DataType::f32 && problem.type != DataType::tf32) return {};
  PixelTask raw = task;
  if (nhwc) {
    const std::optional<Planes> array = array_of_planes(task.source, nhwc, task.box(), four);
    if (!array || task.box() < raw_channels) return {};
    raw.source = *array;
    return raw;
  }
  const Planes& planes = task.source;
  if (task.taps_h * task.taps_w != 1 || task.rows != 1 || task.block_w > 0 || task.box() != step_terms) return {};
  if (planes.source_w % four != 0 || (planes.groups > 1 && planes.source_channels % step_terms != 0)) return {};
  raw.columns = narrow(round_up(task.columns, raw_channels));
  if (raw.positions() >= most / 2) return {};
  raw.source.group_channels = planes.source_channels, raw.source.group_images = 0;
  return raw;
}

bool can_filters_lie(const Conv2dProblem& problem, const PixelTask& task, bool is_shared) {
  return are_parts(problem.type) && problem.layout == Layout::nhwc && problem.pass == Pass::forward && !problem.flip &&
         !task.source.have_taps() && !task.is_merged() && task.source.channels % task.box() == 0 &&
         (!is_shared || task.box() == step_terms);
}

bool can_filters_be_turned(const Conv2dProblem& problem, const PixelTask& task, std::int64_t tile_columns) {
  return are_parts(problem.type) && problem.layout == Layout::nhwc && problem.pass == Pass::backward_data &&
         !task.source.have_taps() && !task.is_merged() && tile_columns >= step_terms && task.filters % eight == 0 &&
         (task.source.groups == 1 || task.source.channels % task.box() == 0);
}

namespace {
std::variant<FilterTask, std::string> made_filter_task(const Conv2dProblem& problem, Fold least) {
  const Conv2dShape g(problem);
  if (std::string reason = extent_refusal(problem, g); !reason.empty()) return reason;
  const FoldedX x = folded_x(g, problem.type, false, least);
  FilterTask task;
  task.x = x.planes, task.y = unfolded_y(g);
  if (std::string reason = planes_refusal(task.x); !reason.empty()) return reason;
  // The last step reads on into the next group's images, where infinite numbers of unscaled types would meet zeros.
  const bool is_scaled = problem.type == DataType::f32 || problem.type == DataType::tf32;
  if (!is_scaled && g.groups > 1 && g.n * g.p * g.q % step_terms != 0)
    return fmt::format("sums of {} pixels of {} in groups are no multiple of {}", g.n * g.p * g.q, name(problem.type),
                       step_terms);
  const Axis::Class &down = x.down.of_class[0], &along = x.along.of_class[0];
  task.taps_h = narrow(down.taps), task.taps_w = narrow(along.taps);
  if (down.taps * along.taps > most_taps)
    return fmt::format("has {} taps, and it serves {}", down.taps * along.taps, most_taps);
  task.all_h = narrow(g.r), task.all_w = narrow(g.s), task.flip = g.flip ? 1 : 0;
  task.stride_h = narrow(x.down.stride), task.stride_w = narrow(x.along.stride);
  task.corner_h = narrow(x.down.corner), task.corner_w = narrow(x.along.corner);
  task.dilation_h = narrow(x.down.dilation), task.dilation_w = narrow(x.along.dilation);
  task.x.padded = narrow(round_up(task.x.channels, 16)), task.y.padded = narrow(round_up(task.y.channels, 16));
  task.blocks = narrow(divide_up(task.x.channels, step_terms));
  if (task.rows() >= most / 2) return "has 2^30 rows of channels at taps";
  task.steps = narrow(divide_up(g.n * g.p * g.q, step_terms));
  return task;
}
}  // namespace

std::variant<FilterTask, std::string> filter_task(const Conv2dProblem& problem) {
  return made_filter_task(problem, Fold::none);
}

std::optional<FilterTask> narrow_filter_task(const FilterTask& task) {
  constexpr std::int64_t box = 32;
  const std::int64_t blocks = divide_up(task.x.channels, box);
  if (blocks * box >= task.blocks * step_terms) return {};
  FilterTask narrow_task = task;
  narrow_task.box = box, narrow_task.blocks = narrow(blocks);
  return narrow_task;
}

std::optional<FilterTask> folded_filter_task(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  if (g.c_group >= step_terms || g.s == 1) return {};
  const auto made = made_filter_task(problem, Fold::row);
  const auto* const task = std::get_if<FilterTask>(&made);
  return task == nullptr ? std::nullopt : std::optional(*task);
}

std::optional<FilterTask> raw_filter_task(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  if (problem.type != DataType::f32 && problem.type != DataType::tf32) return {};
  if (!extent_refusal(problem, g).empty()) return {};
  if (g.r * g.s != 1 || g.stride_h * g.stride_w != 1 || g.p != g.h || g.q != g.w || g.pad_top + g.pad_left != 0)
    return {};
  const std::int64_t pixels = g.h * g.w, rows = std::max(g.c_group, g.k_group);
  const bool nhwc = problem.layout == Layout::nhwc;
  if ((nhwc ? rows : pixels) % four != 0) return {};
  FilterTask task;
  task.exchanged = g.k_group > g.c_group;
  task.x = folded_x(g, problem.type).planes, task.y = unfolded_y(g);
  if (task.exchanged != 0) std::swap(task.x, task.y);
  task.x.padded = narrow(round_up(task.x.channels, 16)), task.y.padded = narrow(round_up(task.y.channels, 16));
  task.x.group_channels = task.x.source_channels, task.x.group_images = 0;
  task.taps_h = task.taps_w = task.all_h = task.all_w = 1;
  task.blocks = narrow(divide_up(task.x.channels, step_terms));
  task.image_steps = nhwc ? 0 : narrow(divide_up(pixels, step_terms));
  const std::int64_t steps = nhwc ? divide_up(g.n * pixels, step_terms) : g.n * task.image_steps;
  if (steps >= most / step_terms || task.rows() >= most / 2) return {};
  task.steps = narrow(steps);
  return task;
}

std::optional<FilterTask> raw_filter_task(const Conv2dProblem& problem, const FilterTask& task) {
  const Conv2dShape g(problem);
  if (problem.type != DataType::f32 && problem.type != DataType::tf32) return {};
  const std::int64_t pixels = g.p * g.q;
  const bool nhwc = problem.layout == Layout::nhwc;
  if ((nhwc ? g.k_group : pixels) % four != 0) return {};
  FilterTask raw = task;
  std::swap(raw.x, raw.y);
  raw.exchanged = 1;
  raw.x.group_channels = raw.x.source_channels, raw.x.group_images = 0;
  raw.column_blocks = task.blocks, raw.blocks = narrow(divide_up(raw.x.channels, step_terms));
  raw.image_steps = nhwc ? 0 : narrow(divide_up(pixels, step_terms));
  const std::int64_t steps = nhwc ? task.steps : g.n * raw.image_steps;
  if (steps >= most / step_terms || raw.columns() >= most || raw.rows() >= most / 2) return {};
  raw.steps = narrow(steps);
  return raw;
}

devices::TensorMap map_of_raw_rows(const FilterTask& task, bool nhwc, std::int64_t terms, std::int64_t rows) {
  const Planes& x = task.x;
  const std::int64_t pixels = std::int64_t{x.source_h} * x.source_w,
                     channels = std::int64_t{x.groups} * x.source_channels;
  devices::TensorMap map{.element = devices::TensorMap::Element::f32,
                         .rank = 3,
                         .extents = {pixels, channels, x.images},
                         .strides_bytes = {pixels * 4, pixels * 4 * channels},
                         .box = {raw_channels, rows, 1},
                         .swizzle = swizzle_of(4 * raw_channels),
                         .promotion = devices::TensorMap::Promotion::bytes_256};
  if (nhwc) {
    map.extents = {channels, pixels * x.images, 1};
    map.strides_bytes = {channels * 4, channels * 4 * pixels * x.images};
    map.box = {raw_channels, terms, 1};
  }
  return map;
}

void store_as_for_pixels(Planes& planes) {
  planes.padded = narrow(round_up(planes.channels, box_for(planes.channels)));
}

devices::TensorMap map_of_x(const FilterTask& task, std::int64_t terms) {
  const Planes &x = task.have_columns_taps() ? task.y : task.x, &y = task.without_taps();
  devices::TensorMap map = windows_of(x, task, y.h, y.w);
  map.channels = task.box, map.pixels = terms;
  map.swizzle = swizzle_of(2 * task.box);
  return map;
}

devices::TensorMap map_of_y(const FilterTask& task, std::int64_t terms) {
  const Planes& y = task.y;
  const bool is_array = y.group_channels > 0;
  const std::int64_t channels = is_array ? std::int64_t{y.groups} * y.source_channels : y.padded, pixel = channels * 2,
                     pixels = y.pixels() / y.groups;
  return {.element = devices::TensorMap::Element::f16,
          .rank = 3,
          .extents = {channels, pixels, is_array ? 1 : y.groups},
          .strides_bytes = {pixel, pixel * pixels},
          .box = {step_terms, terms, 1},
          .swizzle = swizzle_of(2 * step_terms),
          .promotion = devices::TensorMap::Promotion::bytes_256};
}

}  // namespace omniconv::operations::split_gemm
