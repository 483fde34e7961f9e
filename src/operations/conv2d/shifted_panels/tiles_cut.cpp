#include <algorithm>

#include "operations/conv2d/shifted_panels/tiles.h"
#include "operations/workspace_limit.h"
#include "vector/matrix/gemm_tiles.h"

namespace omniconv::operations {
namespace {

using kernels::even_part, kernels::matrix_side, kernels::PanelCut;

// Pixels of a chunk, whose parts of both copies the second cache holds for all taps, and which are worth the way of the
// sums.
constexpr std::int64_t chunk_pixels = 1024;
// Copies of a band stay in the last cache until they are multiplied.
constexpr std::int64_t band_bytes = std::int64_t{4} << 20;
// Items that are enough for many threads; parts of the sums make up for fewer.
constexpr std::int64_t enough_items = 16;
constexpr std::int64_t panel_width = kernels::matrix_tile, line_numbers = 32;

}  // namespace

GradientCut::GradientCut(const Conv2dProblem& problem, std::int64_t workspace_limit)
    : shape(problem),
      down(BlockedAxis::down(shape, true)),
      along(BlockedAxis::along(shape, true)),
      channels(PanelCut::even(shape.c_group, panel_width)),
      filters(PanelCut::full(shape.k_group, panel_width)),
      pitch(round_up(checked_add(shape.q, along.reach(), "a row"), kernels::pair_terms)),
      chunk_rows(even_part(shape.p, std::clamp<std::int64_t>(chunk_pixels / pitch, 1, shape.p))),
      band_images(1),
      band_rows(shape.p) {
  set_band(band_bytes);
  const std::int64_t all = checked_multiply(shape.n, chunks(), "the chunks");
  parts = std::clamp<std::int64_t>(enough_items / items(), 1, all);
  if (workspace_limit >= 0)
    keep_to_limit(
        workspace_limit, band_bytes, [&](std::int64_t bytes) { set_band(bytes); }, [&] { return workspace_bytes(); });
}

void GradientCut::set_band(std::int64_t bytes) {
  band_images = 1, band_rows = shape.p;
  const auto copies = [&] { return checked_add(x_bytes(), y_bytes(), "the copies"); };
  const std::int64_t image = copies();
  if (image <= bytes) {
    band_images = even_part(shape.n, std::clamp<std::int64_t>(bytes / image, 1, shape.n));
    return;
  }
  std::int64_t some = chunks();
  while (some > 1 && copies() > bytes) {
    some = divide_up(some, 2);
    band_rows = some * chunk_rows;
  }
}

GradientBand GradientCut::band(std::int64_t i) const {
  const std::int64_t of_image = divide_up(shape.p, band_rows), image = i / of_image * band_images,
                     row = i % of_image * band_rows;
  return {image, std::min(band_images, shape.n - image), row, std::min(band_rows, shape.p - row)};
}

// An odd number of lines: rows of a tile lie in different sets of a cache.
std::int64_t GradientCut::channel(std::int64_t rows) const {
  constexpr std::string_view what = "a channel's copy";
  const std::int64_t of_plane = checked_multiply(checked_add(rows, down.reach(), what), pitch, what),
                     all = checked_add(checked_multiply(phases(), of_plane, what),
                                       checked_add(along.reach(), 3 * line_numbers, what), what),
                     lines = (all - line_numbers) / line_numbers;
  return line_numbers * (lines % 2 == 0 ? lines + 1 : lines);
}
std::int64_t GradientCut::panel(std::int64_t rows) const {
  const std::int64_t whole = rows / chunk_rows, rest = rows % chunk_rows;
  constexpr std::string_view what = "a copy of filters";
  const std::int64_t of_whole = checked_multiply(whole, pairs(chunk_rows), what);
  return checked_multiply(panel_width, checked_add(of_whole, rest > 0 ? pairs(rest) : 0, what), what);
}
std::int64_t GradientCut::item_sums() const {
  return checked_multiply(sum_rows() * sum_columns(), shape.r * shape.s, "the sums");
}

std::int64_t GradientCut::x_bytes() const {
  constexpr std::string_view what = "the copy of x";
  const std::int64_t of_channel =
      checked_multiply(channel(band_rows), static_cast<std::int64_t>(sizeof(std::uint16_t)), what);
  return checked_multiply(checked_multiply(band_images, shape.c, what), of_channel, what);
}
std::int64_t GradientCut::y_bytes() const {
  constexpr std::string_view what = "the copy of y";
  const std::int64_t of_panel =
      checked_multiply(panel(band_rows), static_cast<std::int64_t>(sizeof(kernels::BfloatPair)), what);
  return checked_multiply(checked_multiply(band_images, shape.groups * filters.panels, what), of_panel, what);
}
std::int64_t GradientCut::workspace_bytes() const {
  const std::int64_t sums = checked_multiply(checked_multiply(parts, items(), "the sums"), item_sums(), "the sums");
  return checked_add(checked_add(x_bytes(), y_bytes(), "the workspace"),
                     checked_multiply(sums, static_cast<std::int64_t>(sizeof(float)), "the sums"), "the workspace");
}

// A term is added to those before it of its chain, the chains to each other, then each instruction's to the sum.
double GradientCut::chain() const {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const std::int64_t of_part = divide_up(shape.n * chunks(), parts);
  return real(matrix_side) + real(of_part) * real(pairs(chunk_rows) / matrix_side) + real(parts);
}

// An instruction takes a cycle for each row of its sums; sums are read and written by rows.
double GradientCut::tile_products() const {
  constexpr double above_peak = 1.1, of_row = 4;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double lanes = real(kernels::register_tile(DataType::f32, panel_width).lanes),
               instructions = real(pairs(chunk_rows) / matrix_side) + of_row,
               tiles = real(shape.groups) * real(divide_up(shape.k_group, matrix_side)) * real(shape.r * shape.s);
  return above_peak * 2 * lanes * real(shape.n) * real(chunks()) * instructions * tiles * real(shape.c_group);
}

}  // namespace omniconv::operations
