#include "operations/conv2d/winograd/blocking.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/checked.h"

namespace omniconv::operations {
namespace {

// Transformed inputs of a block, products of it, and filters that serve one block: the last cache holds these together
// while they are used. Filters of which all come from memory for every block are worth larger ones.
constexpr std::int64_t input_bytes = std::int64_t{4} << 20, product_bytes = std::int64_t{4} << 20,
                       filter_bytes = std::int64_t{4} << 20, filters_for_inputs = 4;
// Tiles of a block, unless the tuning says them: the largest that these caches hold.
constexpr std::array<std::int64_t, 6> tile_limits = {1024, 512, 256, 128, 64, 32};
constexpr std::int64_t most_steps = 512;
// Where tiles are few, sums are cut into shorter runs of steps, of which a thread's cache holds those of all tiles and
// of a panel of filters. An item of work takes panels whose products are so many bytes, one at the least, and no more
// than leaves each thread some items; with fewer panels for each thread they all share every phase.
constexpr std::int64_t few_tiles = 32, few_steps = 128, item_bytes = std::int64_t{128} << 10, least_items = 8,
                       least_panels = 2;

DataType real_of(DataType type) {
  return type == DataType::f64 ? DataType::f64 : DataType::f32;
}

// A cache line or two more than needed: panels whose distance is a power of two would meet in the same sets of caches.
std::int64_t pitch_of(std::int64_t lines, std::int64_t channels) {
  return round_up(lines * channels, 16) + 16;
}

}  // namespace

std::span<const Tunable> winograd_tunables() {
  static const std::array<Tunable, 3> all = {{
      {"tile", {4, 2}},
      {"tiles", {tile_limits.begin(), tile_limits.end()}},
      {"steps", {512, 256, 128}},
  }};
  return all;
}

WinogradBlocking::WinogradBlocking(const Conv2dProblem& problem, WinogradForm of_form, const Tuning& tuning,
                                   std::int64_t workspace_limit, bool prepared_filters, int threads)
    : form(of_form),
      shape(problem, of_form),
      real(real_of(problem.type)),
      tile(kernels::register_tile(real, most_steps)),
      step_limit(tuning.find("steps").value_or(has_few_tiles() ? few_steps : most_steps)),
      prepared(prepared_filters),
      threads_(threads) {
  // Prepared filters are the same of all images.
  const bool has_columns = problem.layout == Layout::nchw && (prepared || shape.tiles > tile.lanes);
  steps = kernels::even_part(shape.source, step_limit);
  const auto side = [&](bool is_columns, std::int64_t lines) {
    const std::int64_t most = is_columns ? tile.columns : tile.rows,
                       widest = is_columns ? round_up(std::min(lines, most), tile.lanes) : std::min(lines, most);
    return WinogradSide{is_columns, tile.lanes, most, widest, pitch_of(widest, shape.source)};
  };
  tiles = side(has_columns, shape.tiles);
  filters = side(!has_columns, shape.target);
  filter_panels = filters.cut(shape.target).panels;

  const std::int64_t size = size_of(real), tile_bytes = form.products() * shape.source * size;
  const std::int64_t room = std::max(input_bytes, prepared_elements() * size / filters_for_inputs);
  const auto fits = [&](std::int64_t limit) { return limit * tile_bytes <= room; };
  const auto* const found = std::find_if(tile_limits.begin(), tile_limits.end() - 1, fits);
  tile_limit = tuning.find("tiles").value_or(*found);
  set_block_tiles(tile_limit);
  keeps_filters = !prepared && block_tiles < shape.tiles;  // those of a single block are needed once
  set_block_filters();

  const auto passes_limit = [&] { return workspace_limit >= 0 && workspace_bytes() > workspace_limit; };
  if (passes_limit()) keeps_filters = false;
  while (passes_limit() && block_filters > 1) block_filters = divide_up(block_filters, 2);
  while (passes_limit() && block_tiles > tiles.most) set_block_tiles(block_tiles / 2);
  // Whether a limit is kept is not the threads' matter: items are taken where it is kept without them.
  if (passes_limit()) return;
  if (!prepared && has_few_tiles() && block_tiles == shape.tiles) set_item_filters();
  set_ranges();
  if (passes_limit()) ranges = 0;
  while (item_filters > 0 && passes_limit()) item_filters /= 2;
}

bool WinogradBlocking::has_few_tiles() const {
  return shape.tiles <= few_tiles;
}

void WinogradBlocking::set_block_tiles(std::int64_t tiles_at_most) {
  const std::int64_t most = std::max(tiles_at_most / tiles.most, std::int64_t{1}) * tiles.most;
  block_tiles = std::min(round_up(kernels::even_part(shape.tiles, most), tiles.most), shape.tiles);
}

void WinogradBlocking::set_block_filters() {
  const std::int64_t size = form.products() * size_of(real),
                     of_products = round_up(block_tiles, tiles.most) * filters.most * size,
                     of_filters = filters.pitch * size;
  block_filters = std::clamp<std::int64_t>(product_bytes / of_products, 1, filter_panels);
  if (!prepared && !keeps_filters)
    block_filters = std::clamp<std::int64_t>(filter_bytes / of_filters, 1, block_filters);
}

void WinogradBlocking::set_item_filters() {
  if (filter_panels < least_panels * threads_) return;
  const std::int64_t of_panel = round_up(block_tiles, tiles.most) * filters.most * form.products() * size_of(real);
  item_filters = std::clamp<std::int64_t>(item_bytes / of_panel, 1, divide_up(filter_panels, least_items * threads_));
}

// A range's inputs take a quarter of its products at most, and stay in its thread's cache.
void WinogradBlocking::set_ranges() {
  constexpr std::int64_t fewest_lines = 16, cached_bytes = std::int64_t{512} << 10;
  const std::int64_t most = std::min<std::int64_t>(threads_, shape.target / fewest_lines);
  if (prepared && tiles.is_columns && most > 1 && block_tiles == shape.tiles && block_filters == filter_panels &&
      tile_elements() * size_of(real) <= cached_bytes)
    ranges = most;
}

std::int64_t WinogradBlocking::item_pitch() const {
  return pitch_of(filters.widest, steps);
}
std::int64_t WinogradBlocking::tile_elements() const {
  return tiles.cut(block_tiles).panels * form.products() * tiles.pitch;
}
std::int64_t WinogradBlocking::filter_elements() const {
  if (prepared) return 0;
  if (item_filters > 0) return form.products() * item_pitch();
  return (keeps_filters ? filter_panels : block_filters) * form.products() * filters.pitch;
}
std::int64_t WinogradBlocking::product_elements() const {
  const std::int64_t panels = item_filters > 0 ? item_filters : block_filters;
  return round_up(block_tiles, tiles.most) * panels * filters.most * form.products();
}
std::int64_t WinogradBlocking::workspace_bytes() const {
  return (tile_slots() * tile_elements() + slots() * (filter_elements() + product_elements())) * size_of(real);
}

PreparedFormat WinogradBlocking::format(const Conv2dProblem& problem) const {
  return {fmt::format("w of {}{} k{}c{}, {} groups, turned {}, in {} panels of {} {}, transformed for F({}x{}, {}x{})",
                      word_of(problem.layout), problem.pass == Pass::forward ? "" : " bwd_data", problem.k, problem.c,
                      problem.groups, shape.turned, filter_panels, filters.most, name(real), form.outputs, form.outputs,
                      form.taps, form.taps),
          checked_multiply(problem.groups * size_of(real), prepared_elements(), "the prepared filters")};
}

Tuning WinogradBlocking::tuning() const {
  return {{"tile", form.outputs}, {"tiles", tile_limit}, {"steps", step_limit}};
}

double WinogradBlocking::chain() const {
  return static_cast<double>(steps + divide_up(shape.source, steps) - 1);
}

}  // namespace omniconv::operations
