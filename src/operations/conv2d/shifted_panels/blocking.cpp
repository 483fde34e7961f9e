#include "operations/conv2d/shifted_panels/blocking.h"

#include <algorithm>
#include <string_view>

#include "core/checked.h"
#include "operations/workspace_limit.h"

namespace omniconv::operations {
namespace {

using kernels::PanelCut, kernels::even_part;

// A chunk's pixels, which a tile of dy and x holds in the first cache: 256 x (32 + 14) floats of AVX-512.
constexpr std::int64_t chunk_pixels = 256;
// Panels of a band stay in the last cache until they are multiplied.
constexpr std::int64_t band_bytes = std::int64_t{4} << 20;
// Tiles of an item for one chunk: panels of dy stay in the first cache for so many.
constexpr std::int64_t item_tiles = 8;
// Items that are enough for many threads; parts of the sums make up for fewer. No number of threads is in it, since
// results follow from the parts.
constexpr std::int64_t enough_items = 32;
constexpr std::int64_t alignment = 16;  // elements
constexpr std::int64_t many_rows = 64;  // of a tile: what is multiplied is no matrix of few rows

std::int64_t dilated(std::int64_t taps, std::int64_t dilation) {
  return taps == 1 ? 0 : checked_multiply(taps - 1, dilation, "the reach of the filter");
}

// So many elements, the next of which may begin where vectors do.
std::int64_t aligned(std::int64_t elements, std::string_view what) {
  return checked_add(elements, alignment - 1, what) / alignment * alignment;
}

}  // namespace

PanelAxis::PanelAxis(std::int64_t outputs, std::int64_t taps, std::int64_t stride, std::int64_t of_dilation)
    : step(taps == 1 || outputs == 1 ? 1 : stride),
      reach(dilated(taps, of_dilation)),
      taken(taps == 1 && outputs > 1 ? stride : 1),
      dilation(taps == 1 ? 0 : of_dilation) {}

ShiftedBlocking::ShiftedBlocking(const Conv2dProblem& problem, int of_threads, std::int64_t workspace_limit)
    : shape(problem),
      real(problem.type == DataType::f64 ? DataType::f64 : DataType::f32),
      threads(of_threads),
      down(shape.p, shape.r, shape.stride_h, shape.dilation_h),
      along(shape.q, shape.s, shape.stride_w, shape.dilation_w),
      lanes(0),
      band_images(1),
      band_rows(1) {
  const kernels::RegisterTile tile = kernels::register_tile(real, many_rows);
  lanes = tile.lanes;
  joins_taps = shape.c_group <= tile.rows && shape.s > 1 && along.dilation == 1;
  x_cut = PanelCut::even(shape.c_group, tile.rows);
  y_cut = PanelCut::full(shape.k_group, tile.columns);
  line_cut = joins_taps ? PanelCut::even(shape.s * shape.c_group, tile.rows) : PanelCut{};
  x_width = x_cut.tallest();
  y_width = round_up(std::min(shape.k_group, tile.columns), lanes);
  item_panels = std::clamp<std::int64_t>(item_tiles / (shape.r * shape.s), 1, x_cut.panels);
  set_chunks();
  set_band(band_bytes);
  parts = std::clamp<std::int64_t>(enough_items / units(), 1, all_chunks());
  // Several bands may take more than one: sums are kept from one to the next.
  if (workspace_limit >= 0)
    keep_to_limit(
        workspace_limit, band_bytes, [&](std::int64_t bytes) { set_band(bytes); }, [&] { return workspace_bytes(); });
}

void ShiftedBlocking::set_chunks() {
  const std::int64_t q = shape.q, p = shape.p;
  chunk_columns = q > 2 * chunk_pixels ? even_part(q, chunk_pixels) : q;
  const bool whole_rows = chunk_columns == q;
  chunk_rows = whole_rows ? even_part(p, std::clamp<std::int64_t>(chunk_pixels / q, 1, p)) : 1;
  chunk_images = 1;
  if (whole_rows && chunk_rows == p)
    chunk_images = even_part(shape.n, std::clamp<std::int64_t>(chunk_pixels / (p * q), 1, shape.n));
}

void ShiftedBlocking::set_band(std::int64_t bytes) {
  const auto real_of = [](std::int64_t value) { return static_cast<double>(value); };
  const auto bytes_of = [&](std::int64_t rows) {
    const double x = real_of(shape.groups * x_cut.panels) * real_of(x_width) * real_of(x_rows(rows)) *
                     real_of(x_columns()),
                 y = real_of(shape.groups * y_cut.panels) * real_of(y_width) * real_of(rows) * real_of(shape.q);
    return (x + y) * real_of(size_of(real));
  };
  band_images = 1, band_rows = shape.p;
  const double image = bytes_of(shape.p);
  if (chunk_images > 1 || image <= real_of(bytes)) {
    const std::int64_t all = divide_up(shape.n, chunk_images);
    const double fitting = real_of(bytes) / (image * real_of(chunk_images));
    const std::int64_t chunks = even_part(all, static_cast<std::int64_t>(std::clamp(fitting, 1.0, real_of(all))));
    band_images = std::min(chunks * chunk_images, shape.n);
    return;
  }
  // A first chunk of rows has beside it the rows that its taps reach.
  const std::int64_t all = divide_up(shape.p, chunk_rows);
  std::int64_t chunks = all;
  while (chunks > 1 && bytes_of(std::min(chunks * chunk_rows, shape.p)) > real_of(bytes)) chunks = divide_up(chunks, 2);
  band_rows = std::min(even_part(all, chunks) * chunk_rows, shape.p);
}

std::int64_t ShiftedBlocking::bands() const {
  return divide_up(shape.n, band_images) * divide_up(shape.p, band_rows);
}
PixelBlock ShiftedBlocking::band(std::int64_t i) const {
  const std::int64_t of_image = divide_up(shape.p, band_rows), image = i / of_image * band_images,
                     row = i % of_image * band_rows;
  return {image, std::min(band_images, shape.n - image), row, std::min(band_rows, shape.p - row), 0, shape.q};
}

std::int64_t ShiftedBlocking::chunks(const PixelBlock& band) const {
  return divide_up(band.images, chunk_images) * divide_up(band.rows, chunk_rows) * divide_up(shape.q, chunk_columns);
}
PixelBlock ShiftedBlocking::chunk(const PixelBlock& band, std::int64_t i) const {
  const std::int64_t along_row = divide_up(shape.q, chunk_columns), of_image = divide_up(band.rows, chunk_rows),
                     image = i / along_row / of_image * chunk_images, row = i / along_row % of_image * chunk_rows,
                     column = i % along_row * chunk_columns;
  return {image,  std::min(chunk_images, band.images - image), row, std::min(chunk_rows, band.rows - row),
          column, std::min(chunk_columns, shape.q - column)};
}
std::int64_t ShiftedBlocking::chunks_before(const PixelBlock& band) const {
  return (band.image / chunk_images * divide_up(shape.p, chunk_rows) + band.row / chunk_rows) *
         divide_up(shape.q, chunk_columns);
}
std::int64_t ShiftedBlocking::all_chunks() const {
  return divide_up(shape.n, chunk_images) * divide_up(shape.p, chunk_rows) * divide_up(shape.q, chunk_columns);
}

std::int64_t ShiftedBlocking::item_ranges() const {
  return divide_up(x_cut.panels, item_panels);
}
std::int64_t ShiftedBlocking::x_panel() const {
  constexpr std::string_view what = "a panel of x";
  const std::int64_t rows = checked_multiply(band_images, x_rows(band_rows), what),
                     pixels = checked_multiply(rows, x_columns(), what);
  return checked_add(aligned(checked_multiply(pixels, x_width, what), what), alignment, what);
}
std::int64_t ShiftedBlocking::y_panel() const {
  constexpr std::string_view what = "a panel of y";
  const std::int64_t pixels = band_images * band_rows * shape.q;  // of y
  return checked_add(aligned(checked_multiply(pixels, y_width, what), what), alignment, what);
}
std::int64_t ShiftedBlocking::item_sums() const {
  return aligned(checked_multiply(item_panels * x_width * y_width, shape.r * shape.s, "the sums"), "the sums");
}

std::int64_t ShiftedBlocking::x_elements() const {
  return checked_multiply(shape.groups * x_cut.panels, x_panel(), "the panels of x");
}
std::int64_t ShiftedBlocking::y_elements() const {
  return checked_multiply(shape.groups * y_cut.panels, y_panel(), "the panels of y");
}
std::int64_t ShiftedBlocking::line_elements() const {
  if (along.taken == 1 || shape.nhwc) return 0;
  return aligned(checked_multiply(x_columns(), x_width, "a row of x"), "a row of x");
}
std::int64_t ShiftedBlocking::sum_elements() const {
  const std::int64_t items = keeps_sums() ? checked_multiply(parts, units(), "the parts of the sums") : threads;
  return checked_multiply(items, item_sums(), "the sums");
}
std::int64_t ShiftedBlocking::workspace_bytes() const {
  std::int64_t elements = checked_add(x_elements(), y_elements(), "the panels");
  elements = checked_add(elements, checked_multiply(threads, line_elements(), "the rows of x"), "the panels");
  return checked_multiply(checked_add(elements, sum_elements(), "the workspace"), size_of(real), "the workspace");
}

double ShiftedBlocking::chain() const {
  const std::int64_t steps = chunk_images * chunk_rows * chunk_columns, chunks = divide_up(all_chunks(), parts);
  return static_cast<double>(steps + chunks - 1 + parts - 1);
}

}  // namespace omniconv::operations
