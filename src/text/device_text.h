// Device text that several solvers share, to be put before their own.
#pragma once

#include <string_view>

namespace omniconv::kernels {

// Types of pixels, borders and index maps of the filter2d kernels; its constants are listed at its top.
std::string_view filter2d_pixels();

// Elements in memory as words, widened and packed; follows filter2d_pixels.
std::string_view filter2d_words();

// Strips of rows, several elements a work item, for direct filtering and magnitudes; follows exact_root and
// filter2d_words.
std::string_view filter2d_strips();

// Rows of the continued image for local memory; follows filter2d_words.
std::string_view filter2d_stage();

// Elements of matrices, and what becomes of a sum, for gemm; its constants are listed at its top.
std::string_view gemm_elements();

// Tiles of a product on multiply-add units, through local memory and registers; follows gemm_elements.
std::string_view register_tiles();

// divide(n, d): the fp32 quotient rounded to nearest even, whatever the device's own division rounds to.
std::string_view exact_division();

// exact_root(x): the fp32 root rounded to nearest even.
std::string_view exact_root();

// Results as elements in memory; follows gemm_elements.
std::string_view stored_elements();

// Random numbers by counting.
std::string_view philox();

// How the kernels of the classic study are spread over work items.
std::string_view rung_tiles();

// Its products of matrices; follows rung_tiles.
std::string_view rung_products();

// Sums by the definition, term by term; follows gemm_elements.
std::string_view plain_sums();

// Where elements of conv2d's arrays lie; follows gemm_elements.
std::string_view conv2d_shape();

// What a tile of a product is on matrix units of compute capability 9.0; its constants are listed at its top.
std::string_view tensor_tiles();

// Bulk copies of boxes of tensor maps, by name.
std::string_view box_copies();

// These units and more of the bulk copies, by name; follows tensor_tiles and box_copies.
std::string_view tensor_units();

// Powers of two by which the largest magnitude of an array is brought into fp16's range; follows gemm_elements.
std::string_view scales();

// Matrix units that warps' instructions feed, by name; follows gemm_elements.
std::string_view warp_units();

// Those that multiply numbers of 11 bits, and copies in several stages, by name.
std::string_view tf32_units();

// Tiles of a product on warp_units, through local memory; follows scales and warp_units.
std::string_view warp_tiles();

// fp32 numbers as parts of 16 bits; follows scales and tensor_units.
std::string_view parts();

// Results of a tile stored as boxes by the bulk copies; follows parts.
std::string_view tile_boxes();

// Tiles of a long product on matrix units; follows parts and the text of an operation's tiles.
std::string_view tile_products();

}  // namespace omniconv::kernels
