#include "text/device_text.h"

#include "embedded/box_copies.kernel.h"
#include "embedded/conv2d_shape.kernel.h"
#include "embedded/exact_division.kernel.h"
#include "embedded/exact_root.kernel.h"
#include "embedded/filter2d_pixels.kernel.h"
#include "embedded/filter2d_stage.kernel.h"
#include "embedded/filter2d_strips.kernel.h"
#include "embedded/filter2d_words.kernel.h"
#include "embedded/gemm_elements.kernel.h"
#include "embedded/parts.kernel.h"
#include "embedded/philox.kernel.h"
#include "embedded/plain_sums.kernel.h"
#include "embedded/register_tiles.kernel.h"
#include "embedded/rung_products.kernel.h"
#include "embedded/rung_tiles.kernel.h"
#include "embedded/scales.kernel.h"
#include "embedded/stored_elements.kernel.h"
#include "embedded/tensor_tiles.kernel.h"
#include "embedded/tensor_units.kernel.h"
#include "embedded/tf32_units.kernel.h"
#include "embedded/tile_boxes.kernel.h"
#include "embedded/tile_products.kernel.h"
#include "embedded/warp_tiles.kernel.h"
#include "embedded/warp_units.kernel.h"

namespace omniconv::kernels {

std::string_view filter2d_pixels() {
  return filter2d_pixels_kernel;
}

std::string_view filter2d_words() {
  return filter2d_words_kernel;
}

std::string_view filter2d_strips() {
  return filter2d_strips_kernel;
}

std::string_view filter2d_stage() {
  return filter2d_stage_kernel;
}

std::string_view gemm_elements() {
  return gemm_elements_kernel;
}

std::string_view stored_elements() {
  return stored_elements_kernel;
}

std::string_view register_tiles() {
  return register_tiles_kernel;
}

std::string_view philox() {
  return philox_kernel;
}

std::string_view rung_tiles() {
  return rung_tiles_kernel;
}

std::string_view rung_products() {
  return rung_products_kernel;
}

std::string_view plain_sums() {
  return plain_sums_kernel;
}

std::string_view conv2d_shape() {
  return conv2d_shape_kernel;
}

std::string_view tensor_tiles() {
  return tensor_tiles_kernel;
}

std::string_view box_copies() {
  return box_copies_kernel;
}

std::string_view tensor_units() {
  return tensor_units_kernel;
}

std::string_view scales() {
  return scales_kernel;
}

std::string_view warp_units() {
  return warp_units_kernel;
}

std::string_view tf32_units() {
  return tf32_units_kernel;
}

std::string_view warp_tiles() {
  return warp_tiles_kernel;
}

std::string_view parts() {
  return parts_kernel;
}

std::string_view tile_boxes() {
  return tile_boxes_kernel;
}

std::string_view tile_products() {
  return tile_products_kernel;
}

std::string_view exact_division() {
  return exact_division_kernel;
}

std::string_view exact_root() {
  return exact_root_kernel;
}

}  // namespace omniconv::kernels
