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

// Along one axis of the planes: positions at 0, stride, ... and the classes of their taps.
struct Axis {
  std::int64_t extent = 0, positions = 0, stride = 1, corner = 0, dilation = 1, tap_step = 1, out_step = 1;
  struct Class {
    std::int64_t taps = 0, first = 0, offset = 0, out = 0;
  };
  std::array<Class, most_classes> of_class{};
  std::int64_t classes = 1;

  // Of the last position's first element, from the end of the extent.
  std::int64_t upper_corner() const { return (positions - 1) * stride + 1 + corner - extent; }
  bool can_be_copied() const {
    const auto fits = [](std::int64_t at) { return at >= least_corner && at <= most_corner; };
    bool all = stride <= most_stride && fits(corner) && fits(upper_corner());
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

// The largest box with which sums are shortest, or nearly.
std::int64_t box_for(std::int64_t taps, std::int64_t channels) {
  const std::int64_t least =
      std::min({steps_of(taps, channels, 64), steps_of(taps, channels, 32), steps_of(taps, channels, 16)});
  for (const std::int64_t box : {64, 32})
    if (steps_of(taps, channels, box) * 16 <= least * 17) return box;
  return 16;
}

std::int32_t narrow(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

void put_classes(ConvTask& task, const Axis& down, const Axis& along) {
  std::int32_t count = 0;
  for (std::int64_t i = 0; i < down.classes; ++i)
    for (std::int64_t j = 0; j < along.classes; ++j) {
      const Axis::Class &h = down.of_class[static_cast<std::size_t>(i)],
                        &w = along.of_class[static_cast<std::size_t>(j)];
      task.of_class[static_cast<std::size_t>(count++)] = {
          narrow(h.taps),   narrow(w.taps), narrow(h.first), narrow(w.first), narrow(h.offset),
          narrow(w.offset), narrow(h.out),  narrow(w.out)};
    }
  task.classes = count;
  // The longest first: what is begun last is then short.
  std::stable_sort(task.of_class.begin(), task.of_class.begin() + count, [](const TapClass& a, const TapClass& b) {
    return a.taps_h * a.taps_w > b.taps_h * b.taps_w;
  });
}

void put_axes(ConvTask& task, const Axis& down, const Axis& along) {
  put_classes(task, down, along);
  task.planes_h = narrow(down.extent), task.planes_w = narrow(along.extent);
  task.class_tap_h = narrow(down.tap_step), task.class_tap_w = narrow(along.tap_step);
  task.rows = narrow(down.positions), task.columns = narrow(along.positions);
  task.stride_h = narrow(down.stride), task.stride_w = narrow(along.stride);
  task.corner_h = narrow(down.corner), task.corner_w = narrow(along.corner);
  task.dilation_h = narrow(down.dilation), task.dilation_w = narrow(along.dilation);
  task.out_step_h = narrow(down.out_step), task.out_step_w = narrow(along.out_step);
}

// Few channels: a row's taps stand beside them, or all taps.
enum class Fold : std::uint8_t { none, row, all };

Fold fold_of(const Conv2dShape& g, const Axis& down, const Axis& along) {
  if (!down.can_be_copied()) return Fold::all;
  if (!along.can_be_copied()) return Fold::row;
  return g.c_group < 16 && g.s > 1 ? Fold::row : Fold::none;
}

ConvGeometry forward_geometry(const Conv2dShape& g) {
  ConvGeometry geometry;
  ConvTask& task = geometry.task;
  Axis down = forward_axis(g.h, g.p, g.stride_h, g.pad_top, g.dilation_h, g.r),
       along = forward_axis(g.w, g.q, g.stride_w, g.pad_left, g.dilation_w, g.s);
  const Fold fold = fold_of(g, down, along);
  geometry.is_folded = fold != Fold::none;
  std::int64_t channels = g.c_group;
  if (fold != Fold::none) {
    along = forward_axis(g.q, g.q, 1, 0, 1, 1);
    channels *= g.s;
    task.folded_w = narrow(g.s);
    task.fold_stride_w = narrow(g.stride_w), task.fold_dilation_w = narrow(g.dilation_w);
    task.fold_pad_w = narrow(g.pad_left);
  }
  if (fold == Fold::all) {
    down = forward_axis(g.p, g.p, 1, 0, 1, 1);
    channels *= g.r;
    task.fold_stride_h = narrow(g.stride_h), task.fold_dilation_h = narrow(g.dilation_h);
    task.fold_pad_h = narrow(g.pad_top);
  }
  put_axes(task, down, along);
  task.plane_channels = narrow(channels);
  task.source_h = narrow(g.h), task.source_w = narrow(g.w), task.source_channels = narrow(g.c_group);
  task.filters = narrow(g.k_group), task.out_h = narrow(g.p), task.out_w = narrow(g.q);
  return geometry;
}

ConvGeometry backward_geometry(const Conv2dShape& g) {
  ConvGeometry geometry;
  ConvTask& task = geometry.task;
  put_axes(task, backward_axis(g.p, g.h, g.stride_h, g.pad_top, g.dilation_h, g.r),
           backward_axis(g.q, g.w, g.stride_w, g.pad_left, g.dilation_w, g.s));
  task.plane_channels = task.source_channels = narrow(g.k_group);
  task.source_h = narrow(g.p), task.source_w = narrow(g.q);
  task.filters = narrow(g.c_group), task.out_h = narrow(g.h), task.out_w = narrow(g.w);
  return geometry;
}

// Why copies cannot serve the pass backward of the data.
std::string backward_refusal(const Conv2dShape& g) {
  const Axis down = backward_axis(g.p, g.h, g.stride_h, g.pad_top, g.dilation_h, g.r),
             along = backward_axis(g.q, g.w, g.stride_w, g.pad_left, g.dilation_w, g.s);
  if (down.classes * along.classes > most_classes)
    return fmt::format("pixels of {} remainders by the strides meet taps of their own, and it serves {}",
                       down.classes * along.classes, most_classes);
  if (!down.can_be_copied() || !along.can_be_copied())
    return "taps lie too far apart for copies of pixels in windows";
  return {};
}

}  // namespace

std::variant<ConvGeometry, std::string> geometry_of(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (problem.pass == Pass::backward_filter) return "serves the passes forward and bwd_data";
  for (const std::int64_t extent : {g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.pad_top, g.pad_left, g.dilation_h * g.r,
                                    g.dilation_w * g.s, g.stride_h, g.stride_w})
    if (extent >= std::int64_t{1} << 24) return "an extent is 2^24 or more";
  const bool forward = problem.pass == Pass::forward;
  if (!forward)
    if (std::string reason = backward_refusal(g); !reason.empty()) return reason;
  ConvGeometry geometry = forward ? forward_geometry(g) : backward_geometry(g);
  ConvTask& task = geometry.task;
  task.images = narrow(g.n), task.groups = narrow(g.groups);
  task.taps_h = narrow(g.r), task.taps_w = narrow(g.s), task.flip = g.flip ? 1 : 0;
  const std::int64_t channels = task.plane_channels;
  std::int64_t taps = 0;
  for (const TapClass& of : task.of_class) taps += std::int64_t{of.taps_h} * of.taps_w;
  geometry.channels = box_for(taps, channels);
  const std::int64_t blocks = divide_up(channels, geometry.channels);
  task.blocks = narrow(blocks), task.padded = narrow(blocks * geometry.channels);
  std::int64_t steps = 0;
  for (std::int32_t i = 0; i < task.classes; ++i) {
    TapClass& of = task.of_class[static_cast<std::size_t>(i)];
    of.step = narrow(steps);
    steps += steps_of(std::int64_t{of.taps_h} * of.taps_w, channels, geometry.channels);
  }
  if (steps * step_terms >= most || geometry.positions() >= most / 2)
    return "sums or pixels are 2^30 or more";
  task.steps = narrow(steps);
  return geometry;
}

devices::TensorMap map_of_source(const ConvGeometry& geometry) {
  using devices::TensorMap;
  const ConvTask& t = geometry.task;
  const std::int64_t pixel = std::int64_t{t.padded} * 2, row = pixel * t.planes_w, image = row * t.planes_h;
  const auto upper = [](std::int64_t positions, std::int64_t stride, std::int64_t corner, std::int64_t extent) {
    return Axis{.extent = extent, .positions = positions, .stride = stride, .corner = corner}.upper_corner();
  };
  return {.element = TensorMap::Element::f16,
          .rank = 4,
          .extents = {t.padded, t.planes_w, t.planes_h, std::int64_t{t.images} * t.groups},
          .strides_bytes = {pixel, row, image},
          .element_strides = {1, t.stride_w, t.stride_h, 1, 1},
          .swizzle = geometry.channels == 64   ? TensorMap::Swizzle::bytes_128
                     : geometry.channels == 32 ? TensorMap::Swizzle::bytes_64
                                               : TensorMap::Swizzle::bytes_32,
          .promotion = TensorMap::Promotion::bytes_256,
          .is_im2col = true,
          .lower_corner = {t.corner_w, t.corner_h},
          .upper_corner = {upper(t.columns, t.stride_w, t.corner_w, t.planes_w),
                           upper(t.rows, t.stride_h, t.corner_h, t.planes_h)},
          .channels = geometry.channels,
          .pixels = tile_rows};
}

devices::TensorMap map_of_filters(const ConvGeometry& geometry, std::int64_t tile_columns) {
  using devices::TensorMap;
  const ConvTask& t = geometry.task;
  const std::int64_t line = std::int64_t{t.steps} * step_terms;
  return {.element = TensorMap::Element::f16,
          .rank = 3,
          .extents = {line, t.filters, t.groups},
          .strides_bytes = {line * 2, line * 2 * t.filters},
          .box = {step_terms, tile_columns, 1},
          .swizzle = TensorMap::Swizzle::bytes_128,
          .promotion = TensorMap::Promotion::bytes_256};
}

}  // namespace omniconv::operations::split_gemm
