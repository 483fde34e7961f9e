#include "operations/conv2d/mma_gemm/tiles.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "operations/gemm/gpu_text.h"
#include "operations/gpu_limits.h"
#include "operations/warp_units.h"

namespace omniconv::operations::mma_gemm {
namespace {

constexpr auto part_counts = std::to_array<std::int64_t>(
    {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 44, 48, 56, 64});

// Those that the choice is among.
constexpr std::array<WarpTile, 12> warp_tiles = {{{128, 64, 32, 32, 32, 2},
                                                  {128, 64, 32, 64, 32, 2},
                                                  {128, 128, 16, 64, 32, 1},
                                                  {64, 128, 32, 32, 32, 2},
                                                  {64, 128, 32, 32, 64, 2},
                                                  {64, 64, 32, 32, 32, 3},
                                                  {32, 128, 32, 32, 32, 3},
                                                  {128, 32, 32, 32, 32, 3},
                                                  {16, 128, 32, 16, 32, 3},
                                                  {128, 16, 32, 32, 16, 3},
                                                  {32, 64, 32, 32, 16, 4},
                                                  {32, 64, 16, 32, 16, 4}}};

WarpTile tile_of(const Tuning& tuning) {
  return {tuning.at("tile_m"), tuning.at("tile_n"),   tuning.at("tile_k"), tuning.at("warp_m"),
          tuning.at("warp_n"), tuning.at("resident"), tuning.at("parts"),  tuning.at("merged")};
}

double number(std::int64_t value) {
  return static_cast<double>(value);
}

// Instructions of a warp in a stage: as compilers make them, within a tenth (README.md).
double instructions_of(const Conv2dProblem& problem, const WarpTile& tile, const Numbers& numbers) {
  const Conv2dShape g(problem);
  const bool is_split = numbers.products == 3, filter = problem.pass == Pass::backward_filter;
  const std::int64_t sixteens = tile.k / 16;
  const double products = number(tile.warp_m * tile.warp_n / 128 * sixteens * numbers.products),
               loads = number((tile.warp_m + tile.warp_n) / 16 * sixteens * numbers.planes()),
               sums = is_split ? number(tile.warp_m * tile.warp_n / 32) : 0;
  constexpr double rest = 100, of_copy = 4;
  double all = products + loads + sums + rest;
  // What a work item fetches of rows and of columns, each element of which it splits.
  const double rows = number(tile.m * tile.k) / number(tile.group()),
               columns = number(tile.n * tile.k) / number(tile.group()),
               of_element = is_split             ? 9
                            : numbers.are_scaled ? 5
                                                 : 3;
  if (filter) {
    constexpr double of_quad = 6, of_single = 3;
    const double of_own_pixel = is_split ? 23 : numbers.are_scaled ? 16 : 12;
    all += (rows + columns) * of_element;
    if (!g.nhwc && g.p * g.q % 4 != 0) all += rows * of_single;
    return all + columns * (implicit_gemm::reads_channels_at_once(g) ? of_quad : of_own_pixel);
  }
  const PixelProduct product = pixels_of(problem, tile);
  const double pixels = g.nhwc ? rows : columns, filters = g.nhwc ? columns : rows;
  all += filters / 8 * number(numbers.planes()) * of_copy;
  if (!product.flat) return all + pixels * of_element;
  // Each finds its own tap; beyond the last one there is nothing to fetch.
  constexpr double of_own_tap = 33;
  const double there = number(product.source_group * product.taps) / number(product.panel_rows(tile.k));
  return all + there * pixels * (of_element + of_own_tap);
}

// Cycles of a compute unit for all tiles. Neither products nor the instructions of four schedulers hide the other. A
// group by itself takes longer, since it waits for what it fetches.
double cycles_of(const Conv2dProblem& problem, const devices::Device& device, const WarpTile& tile,
                 const Numbers& numbers, const UnitRates& rates) {
  constexpr double of_own = 0.6, of_tile = 300, of_output = 0.34, schedulers = 4;
  // Of fully connected layers through OpenCL a stage takes 2600 cycles (README.md).
  const bool is_connected = problem.h == problem.r && problem.w == problem.s;
  const double alone = device.kind() == devices::DeviceKind::opencl && is_connected ? 1900 : 800;
  const double stage = number(tile.m * tile.n * tile.k * numbers.products) / rates.matrix +
                       instructions_of(problem, tile, numbers) * number(tile.warps()) / schedulers;
  double stages = number(stages_of(problem, tile)) / number(tile.parts);
  if (problem.pass != Pass::backward_filter) stages /= number(pixels_of(problem, tile).classes());
  const Work work(problem, tile);
  const std::int64_t groups = groups_of(problem, tile),
                     resident = resident_groups(device, tile.resident, tile.local_bytes(numbers));
  // Rows and columns beyond the last are multiplied, but not stored.
  const double outputs = number(work.m) * number(work.n) * number(work.batch * tile.parts) / number(groups);
  const auto of_round = [&](std::int64_t at_once) {
    const double sharing = number(at_once);
    return stages * std::max(sharing * stage, alone + of_own * stage) + sharing * (of_tile + of_output * outputs);
  };
  return cycles_of_rounds(device, groups, resident, of_round);
}

// Why there is no such tile; empty if there is.
std::string tile_refusal(const Conv2dProblem& problem, const devices::Device& device, const WarpTile& tile) {
  const Conv2dShape g(problem);
  if (std::string reason = warps_refusal(tile); !reason.empty()) return reason;
  if (std::string reason = resident_refusal(tile); !reason.empty()) return reason;
  if (tile.merged != 0 && problem.pass != Pass::backward_data)
    return "tuning merged=1: classes of pixels are there backward of the data alone";
  // Under nchw a work item fetches four or a multiple of eight products of one pixel.
  const bool filter = problem.pass == Pass::backward_filter;
  const std::int64_t fetches = tile.n * tile.k / tile.group();
  if (!filter && !g.nhwc && (tile.n > tile.group() || (fetches != 4 && fetches % 8 != 0) || fetches == 0))
    return fmt::format("tuning tile_n={} tile_k={}: groups of {} work items do not fetch so many products of a pixel",
                       tile.n, tile.k, tile.group());
  if (std::string reason = group_refusal(device, tile.group()); !reason.empty()) return "tuning: " + reason;
  // The columns of a tile of weights have their places there too.
  const std::int64_t local_bytes = tile.local_bytes(numbers_of(problem.type)) + (filter ? 8 * tile.n : 0);
  if (std::string reason = local_memory_refusal(device, local_bytes); !reason.empty()) return "tuning: " + reason;
  const std::int64_t stages = stages_of(problem, tile) / (filter ? 1 : pixels_of(problem, tile).classes());
  if (tile.parts > 1 && (stages < tile.parts || divide_up(stages, divide_up(stages, tile.parts)) != tile.parts))
    return fmt::format("tuning parts={}: {} stages of {} products are not so many parts", tile.parts, stages, tile.k);
  if (groups_of(problem, tile) > most_groups)
    return fmt::format("a launch has at most {} groups, not {}", most_groups, groups_of(problem, tile));
  return {};
}

}  // namespace

std::span<const Tunable> warp_tunables() {
  static const std::vector<Tunable> all = {{"tile_m", {16, 32, 64, 128}},
                                           {"tile_n", {16, 32, 64, 128}},
                                           {"tile_k", {16, 32}},
                                           {"warp_m", {16, 32, 64}},
                                           {"warp_n", {16, 32, 64}},
                                           {"resident", {1, 2, 3, 4}},
                                           {"parts", {part_counts.begin(), part_counts.end()}},
                                           {"merged", {0, 1}}};
  return all;
}
Tuning tuning_of(const WarpTile& tile) {
  return {{"tile_m", tile.m},      {"tile_n", tile.n},          {"tile_k", tile.k},    {"warp_m", tile.warp_m},
          {"warp_n", tile.warp_n}, {"resident", tile.resident}, {"parts", tile.parts}, {"merged", tile.merged}};
}
std::int64_t least_local_bytes(const Numbers& numbers) {
  return warp_tiles.back().local_bytes(numbers);
}

Work::Work(const Conv2dProblem& problem, const WarpTile& tile) {
  const Conv2dElements elements = elements_of(problem);
  const Conv2dShape g(problem);
  if (problem.pass == Pass::backward_filter) {
    first = elements.y, second = elements.x, out = elements.w;
    m = g.k_group, n = g.c_group * g.r * g.s, k = g.n * g.p * g.q, batch = g.groups;
    return;
  }
  const bool data = problem.pass == Pass::backward_data;
  const PixelProduct product = pixels_of(problem, tile);
  first = data ? elements.y : elements.x, second = elements.w, out = data ? elements.x : elements.y;
  m = product.out_rows, n = product.positions(), batch = product.groups * product.classes();
  if (product.nhwc) std::swap(m, n);
}

split_gemm::Sampling sampling_of(const Conv2dProblem& problem, const devices::Device& device, const Work& work) {
  if (!numbers_of(problem.type).are_scaled || problem.accumulate) return {};
  // Filters are looked at as a whole.
  const std::int64_t second = problem.pass == Pass::backward_filter ? work.second : 0;
  if (has_warp_units(device)) return split_gemm::sampling_of(work.first, second);
  constexpr std::int64_t least = 1 << 13, every = 7;
  return {.a = work.first < least ? 1 : every, .b = second < least ? 1 : every};
}

std::int64_t stages_of(const Conv2dProblem& problem, const WarpTile& tile) {
  if (problem.pass == Pass::backward_filter) return divide_up(Work(problem, tile).k, tile.k);
  return pixels_of(problem, tile).panel_rows(tile.k) / tile.k;
}
std::int64_t part_pixels(const Conv2dProblem& problem, const WarpTile& tile) {
  return problem.pass == Pass::backward_filter ? divide_up(stages_of(problem, tile), tile.parts) * tile.k : 0;
}

Workspace::Workspace(const Conv2dProblem& problem, const WarpTile& tile) {
  const Numbers numbers = numbers_of(problem.type);
  const Work work(problem, tile);
  if (numbers.are_scaled) maxima = take(scan_groups(work.first) + scan_groups(work.second), 4), largest = take(4, 4);
  if (problem.pass != Pass::backward_filter) {
    const PixelProduct product = pixels_of(problem, tile);
    panel_chunks = checked_multiply(
        checked_multiply(product.groups, product.panel_rows(tile.k) / 8, "the filters"),
        checked_multiply(product.panel_pitch(tile.m, tile.n), numbers.planes(), "the filters"), "the filters");
    panel = take(panel_chunks, 16);
  }
  if (tile.parts > 1) parts = take(checked_multiply(tile.parts, round_up(work.out, 4), "the parts"), 4);
}

std::int64_t groups_of(const Conv2dProblem& problem, const WarpTile& tile) {
  const Work work(problem, tile);
  const std::int64_t tiles = checked_multiply(divide_up(work.m, tile.m), divide_up(work.n, tile.n), "the tiles");
  return checked_multiply(checked_multiply(tiles, work.batch, "the tiles"), tile.parts, "the tiles");
}

double cost_of(const Conv2dProblem& problem, const devices::Device& device, const WarpTile& tile) {
  if (!has_warp_units(device)) {
    constexpr double of_multiply_add = 64;  // by loops, which small tiles let compile sooner
    return launch_cost(device) + of_multiply_add * multiply_adds(problem) + number(tile.m * tile.n);
  }
  const Numbers numbers = numbers_of(problem.type);
  const UnitRates rates = unit_rates(device);
  const Workspace workspace(problem, tile);
  const Work work(problem, tile);
  const split_gemm::Sampling sampling = sampling_of(problem, device, work);
  const bool filter = problem.pass == Pass::backward_filter;
  double bytes = number(2 * 16 * workspace.panel_chunks);
  if (numbers.are_scaled) bytes += number((work.first / sampling.a + work.second / sampling.b) * size_of(problem.type));
  if (tile.parts > 1) bytes += number(2 * 4 * tile.parts * work.out);
  // And what launches one behind the other wait: less where they overlap.
  const double waits = filter || !device.facts().has_overlap ? 1 : problem.pass == Pass::forward ? 0.2 : 0.5;
  const double launches = (filter ? 1 : 2) + (numbers.are_scaled ? 1 : 0) + (filter && numbers.are_scaled ? 1 : 0) +
                          (sampling.bits() != 0 ? 1 : 0) + (tile.parts > 1 ? 1 : 0) + waits;
  const double products = cycles_of(problem, device, tile, numbers, rates) * rates.plain * device.info().compute_units;
  return launches * launch_cost(device) + byte_cost(device) * bytes +
         std::max(products, byte_cost(device) * least_bytes(problem));
}

std::variant<WarpTile, std::string> choose_tile(const Conv2dProblem& problem, const devices::Device& device,
                                                const SolverOptions& request) {
  const std::int64_t limit = request.max_workspace_bytes;
  const auto bytes_of = [&](const WarpTile& tile) { return Workspace(problem, tile).bytes(); };
  if (!request.tuning.empty()) {
    const WarpTile tile = tile_of(Tuning::parse(request.tuning));
    if (std::string reason = tile_refusal(problem, device, tile); !reason.empty()) return reason;
    if (limit >= 0 && tile.parts > 1 && bytes_of(tile) > limit)
      return fmt::format("tuning parts={}: the workspace would be {} bytes, and the limit is {}", tile.parts,
                         bytes_of(tile), limit);
    return tile;
  }
  std::optional<WarpTile> best;
  double least = 0;
  const std::int64_t merged = problem.pass == Pass::backward_data ? 1 : 0;
  for (WarpTile tile : warp_tiles)
    for (tile.merged = 0; tile.merged <= merged; ++tile.merged)
      for (const std::int64_t parts : part_counts) {
        tile.parts = parts;
        if (!tile_refusal(problem, device, tile).empty()) continue;
        if (limit >= 0 && parts > 1 && bytes_of(tile) > limit) continue;
        const double cost = cost_of(problem, device, tile);
        if (!best || cost < least) best = tile, least = cost;
      }
  if (!best) return std::string("the device takes none of its tiles, or they would be more groups than a launch has");
  return *best;
}

}  // namespace omniconv::operations::mma_gemm
