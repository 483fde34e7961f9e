#include "operations/conv2d/winograd/filter_blocking.h"

#include <algorithm>
#include <array>

#include "core/checked.h"

namespace omniconv::operations {
namespace {

using kernels::PanelCut;

// Transformed tiles of a band, which the last cache holds until they are multiplied.
constexpr std::int64_t band_bytes = std::int64_t{8} << 20;
constexpr std::array<std::int64_t, 6> tile_limits = {1024, 512, 256, 128, 64, 32};
// Tiles that are added up in registers: a panel of these stays in the first cache. Fewer, where more would make the
// smallest band too large.
constexpr std::int64_t most_steps = 256, few_steps = 128, many_chunk_bytes = std::int64_t{12} << 20;
// Panels of a unit: those of filters are read from a near cache for each of channels.
constexpr std::int64_t most_unit_rows = 8, most_unit_columns = 2;
// Items for each thread, so that all end at nearly the same time.
constexpr std::int64_t items_per_thread = 8;
constexpr std::int64_t alignment = 16;  // elements
constexpr std::int64_t many_rows = 64;  // of a tile: what is multiplied is no matrix of few rows

// Even parts of `all`, of at most so many.
std::int64_t even_part(std::int64_t all, std::int64_t most) {
  return divide_up(all, divide_up(all, most));
}
// A cache line more than needed: panels whose distance is a power of two would meet in the same sets of caches.
std::int64_t pitch_of(std::int64_t elements) {
  return round_up(elements, alignment) + alignment;
}

}  // namespace

WinogradFilterBlocking::WinogradFilterBlocking(const Conv2dProblem& problem, WinogradForm of_form, const Tuning& tuning,
                                               int of_threads, std::int64_t workspace_limit)
    : form(of_form),
      shape(problem),
      real(problem.type == DataType::f64 ? DataType::f64 : DataType::f32),
      threads(of_threads),
      tile(kernels::register_tile(real, many_rows)),
      x_cut(PanelCut::full(shape.c_group, tile.columns)),
      y_cut(PanelCut::even(shape.k_group, tile.rows)),
      x_width(round_up(std::min(shape.c_group, tile.columns), tile.lanes)),
      y_width(y_cut.height + (y_cut.taller > 0 ? 1 : 0)),
      tile_rows(divide_up(shape.p, form.taps)),
      tile_columns(divide_up(shape.q, form.taps)) {
  const std::int64_t tile_bytes =
      shape.groups * form.products() * (x_cut.panels * x_width + y_cut.panels * y_width) * size_of(real);
  step_limit = tuning.find("steps").value_or(most_steps * tile_bytes <= many_chunk_bytes ? most_steps : few_steps);
  set_chunks();
  const auto fits = [&](std::int64_t limit) { return limit * tile_bytes <= band_bytes; };
  tile_limit = tuning.find("tiles").value_or(*std::find_if(tile_limits.begin(), tile_limits.end() - 1, fits));
  set_band(tile_limit);
  if (workspace_limit < 0) return;

  // The largest bands that do. Several may need more than one, since sums are kept from one to the next.
  std::int64_t taken = tile_limit, least = workspace_bytes();
  for (std::int64_t tiles = tile_limit / 2; tiles > 0 && least > workspace_limit; tiles /= 2) {
    set_band(tiles);
    if (workspace_bytes() < least) taken = tiles, least = workspace_bytes();
  }
  set_band(taken);
}

void WinogradFilterBlocking::set_chunks() {
  strip_tiles = even_part(tile_columns, step_limit);
  chunk_strips =
      row_strips() == 1 ? even_part(strips(), std::clamp<std::int64_t>(step_limit / strip_tiles, 1, strips())) : 1;
}

void WinogradFilterBlocking::set_band(std::int64_t tiles) {
  band_chunks = even_part(chunks(), std::clamp<std::int64_t>(tiles / (chunk_strips * strip_tiles), 1, chunks()));
  set_units();
}

void WinogradFilterBlocking::set_units() {
  const std::int64_t enough = items_per_thread * threads;
  unit_rows = even_part(y_cut.panels, most_unit_rows);
  unit_columns = even_part(x_cut.panels, most_unit_columns);
  if (units() < enough) unit_columns = 1;
  while (units() < enough && unit_rows > 1) unit_rows = divide_up(unit_rows, 2);
  point_parts = std::clamp<std::int64_t>(divide_up(enough, units()), 1, form.products());
}

std::int64_t WinogradFilterBlocking::row_strips() const {
  return divide_up(tile_columns, strip_tiles);
}
std::int64_t WinogradFilterBlocking::tiles_of(std::int64_t strip) const {
  return std::min(strip_tiles, tile_columns - strip % row_strips() * strip_tiles);
}
std::int64_t WinogradFilterBlocking::chunks() const {
  return divide_up(strips(), chunk_strips);
}
std::int64_t WinogradFilterBlocking::bands() const {
  return divide_up(chunks(), band_chunks);
}
StripRange WinogradFilterBlocking::band(std::int64_t i) const {
  const std::int64_t most = band_chunks * chunk_strips;
  return {i * most, std::min(most, strips() - i * most)};
}
std::int64_t WinogradFilterBlocking::steps_of(const StripRange& range) const {
  return (range.count - 1) * strip_tiles + tiles_of(range.first + range.count - 1);
}

std::int64_t WinogradFilterBlocking::x_units() const {
  return divide_up(x_cut.panels, unit_columns);
}
std::int64_t WinogradFilterBlocking::y_units() const {
  return divide_up(y_cut.panels, unit_rows);
}
std::int64_t WinogradFilterBlocking::x_panel() const {
  return pitch_of(band_chunks * chunk_strips * strip_tiles * x_width);
}
std::int64_t WinogradFilterBlocking::y_panel() const {
  return pitch_of(band_chunks * chunk_strips * strip_tiles * y_width);
}
std::int64_t WinogradFilterBlocking::unit_sums() const {
  return unit_columns * unit_rows * y_width * form.products() * x_width;
}
std::int64_t WinogradFilterBlocking::x_elements() const {
  return shape.groups * x_cut.panels * form.products() * x_panel();
}
std::int64_t WinogradFilterBlocking::y_elements() const {
  return shape.groups * y_cut.panels * form.products() * y_panel();
}
std::int64_t WinogradFilterBlocking::line_elements() const {
  const std::int64_t pixels = strip_tiles * form.taps + form.outputs - 1, width = std::max(x_width, y_width);
  return form.points() * pitch_of(pixels * width + tile.lanes);
}
std::int64_t WinogradFilterBlocking::workspace_bytes() const {
  const std::int64_t panels = x_elements() + y_elements() + threads * line_elements();
  return checked_multiply(checked_add(panels, sum_elements(), "the workspace"), size_of(real), "the workspace");
}

Tuning WinogradFilterBlocking::tuning() const {
  return {{"tile", form.taps}, {"tiles", tile_limit}, {"steps", step_limit}};
}

double WinogradFilterBlocking::chain() const {
  return static_cast<double>(chunk_strips * strip_tiles + chunks() - 1);
}

}  // namespace omniconv::operations
