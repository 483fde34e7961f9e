// How a convolution, forward or backward of the data, is a product of pixels by filters on matrix units: the extents that
// its kernels are given, and what their copies read. No device.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>

#include "devices/tensor_map.h"
#include "omniconv/conv2d.h"

namespace omniconv::operations::split_gemm {

constexpr std::int64_t tile_rows = 128, step_terms = 64, most_classes = 16;

// class_t and task_t of split_conv2d.kernel, where their members are explained.
struct TapClass {
  std::int32_t taps_h = 0, taps_w = 0, first_h = 0, first_w = 0, offset_h = 0, offset_w = 0, out_h = 0, out_w = 0,
               step = 0;
};
struct ConvTask {
  std::int32_t images = 0, groups = 0;
  std::int32_t source_h = 0, source_w = 0, source_channels = 0;
  std::int32_t planes_h = 0, planes_w = 0, padded = 0, plane_channels = 0;
  std::int32_t folded_w = 1;
  std::int32_t fold_stride_h = 1, fold_stride_w = 1, fold_dilation_h = 0, fold_dilation_w = 0, fold_pad_h = 0,
               fold_pad_w = 0;
  std::int32_t filters = 0, taps_h = 0, taps_w = 0, flip = 0;
  std::int32_t class_tap_h = 1, class_tap_w = 1;
  std::int32_t rows = 0, columns = 0;
  std::int32_t stride_h = 1, stride_w = 1, corner_h = 0, corner_w = 0;
  std::int32_t dilation_h = 1, dilation_w = 1;
  std::int32_t out_h = 0, out_w = 0, out_step_h = 1, out_step_w = 1;
  std::int32_t blocks = 0;
  std::int32_t classes = 1, steps = 0, tiles_m = 0, tiles_n = 0, parts = 1;
  std::array<TapClass, most_classes> of_class{};
};

struct ConvGeometry {
  ConvTask task;              // but for its tiles
  std::int64_t channels = 64;  // of a box of pixels
  bool is_folded = false;      // taps stand among the channels of the planes

  std::int64_t positions() const { return std::int64_t{task.images} * task.rows * task.columns; }
  std::int64_t source_plane() const {  // elements
    return std::int64_t{task.groups} * task.images * task.planes_h * task.planes_w * task.padded;
  }
  std::int64_t filter_plane() const { return std::int64_t{task.groups} * task.filters * task.steps * step_terms; }
};

// Or why there is none.
std::variant<ConvGeometry, std::string> geometry_of(const Conv2dProblem& problem);

// What copies boxes of 128 positions, and of filters for a tile; without a buffer.
devices::TensorMap map_of_source(const ConvGeometry& geometry);
devices::TensorMap map_of_filters(const ConvGeometry& geometry, std::int64_t tile_columns);

}  // namespace omniconv::operations::split_gemm
