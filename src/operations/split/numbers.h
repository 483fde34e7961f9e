// What products of parts have in common, whatever is multiplied: the parts of a type's numbers, tiles and what they
// cost, the workspace, and the constants of parts.kernel, tensor_tiles.kernel and tile_products.kernel. The method and
// its bound: conv2d/split_gemm/README.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/checked.h"
#include "devices/matrix_units.h"
#include "devices/tensor_map.h"
#include "operations/gpu_limits.h"
#include "operations/solver.h"
#include "operations/split/divisor.h"

namespace omniconv::operations::split_gemm {

constexpr std::int64_t pass_group = 256, most_product_group = 384, maxima = 264;

// Of each of two arrays one line in so many is looked at for the largest number: of 2^17 numbers or more, where both
// together are so large that a launch more takes less time than a look at all of them.
struct Sampling {
  std::int64_t a = 1, b = 1;

  std::int64_t bits() const { return (a > 1 ? 1 : 0) | (b > 1 ? 2 : 0); }  // SAMPLED of the text
};
inline Sampling sampling_of(std::int64_t a_elements, std::int64_t b_elements) {
  constexpr std::int64_t least = std::int64_t{1} << 22;
  if (a_elements < least && b_elements < least - a_elements) return {};
  const auto every = [](std::int64_t elements) -> std::int64_t {
    for (const std::int64_t one : {61, 29, 13, 7})
      if (elements >= one << 17) return one;
    return 1;
  };
  return {every(a_elements), every(b_elements)};
}

// How many products of parts make one of numbers, and of which type parts are.
struct Numbers {
  std::int64_t products = 1;
  bool are_scaled = false;
  DataType part = DataType::f16;

  std::int64_t planes() const { return products == 6 ? 3 : products == 3 ? 2 : 1; }
};
// Errors are relative where the bound may have no absolute term.
inline Numbers numbers_of(DataType type, bool is_relative = false) {
  const bool is_scaled = type == DataType::f32 || type == DataType::tf32;
  if (is_scaled && is_relative) return {.products = 6, .are_scaled = true, .part = DataType::bf16};
  switch (type) {
    case DataType::f32: return {.products = 3, .are_scaled = true};
    case DataType::tf32: return {.are_scaled = true};
    default: return {.part = type};
  }
}
// Of parts of bf16 the smallest number is looked for too, which no sample has.
inline Sampling sampling_of(std::int64_t a_elements, std::int64_t b_elements, const Numbers& numbers) {
  return numbers.products == 6 ? Sampling{} : sampling_of(a_elements, b_elements);
}

// A window of a's rows that several steps read: rows of it, of an operation's for 128 of a tile, and bytes of a row of
// a plane. Where all tiles have the same columns, so many, the steps of them all.
struct Window {
  std::int64_t rows = 0, line = 0;
  std::int64_t kept_columns = 0, kept_steps = 0;
};
// Rows of tiles of 64 columns, where an operation can make tiles of fewer: so that they fill rounds.
constexpr std::int64_t tile_heights[] = {112, 104, 96};
// What else an operation's tiles may be: steps of fewer terms where two groups share a compute unit, of fewer rows; and
// whether its columns lie side by side.
struct TileForms {
  std::int64_t terms_of_two = step_terms;
  bool have_heights = false, are_turned = false;
};

// Of rows by so many columns, by groups of which so many share a compute unit; sums in so many parts. Where steps share
// windows, so many of them are in local memory. Where b is kept there, all its steps are, and each warpgroup has tiles
// and windows of its own; paired, each has a half of the rows.
struct Tile {
  std::int64_t columns = 128, resident = 1, parts = 1;
  bool is_shared = false, is_kept = false, is_paired = false;
  bool is_raw = false;     // raw: a's rows are copied as they are, and split in registers
  bool is_turned = false;  // b's columns are copied 64 at a time
  Window window = {};      // without rows, where each step has its own
  std::int64_t windows = 0, stages = 0;
  std::int64_t rows = tile_rows, terms = step_terms;  // terms of a step
  double cycles = 0;                                  // of a compute unit, for all

  // A tile of few columns, or of 64 raw rows, is made by one warpgroup, others by two (tensor_tiles.kernel).
  std::int64_t warpgroups() const {
    return !is_kept && !is_paired && (rows < tile_rows || (columns <= 64 && !is_raw)) ? 1 : 2;
  }
  std::int64_t rows_of_warpgroup() const { return is_paired ? rows / 2 : rows; }  // TILE_M of the text
  std::int64_t group() const { return 128 * (1 + warpgroups()); }
};
// Boxes that a tile's results are stored as (tile_boxes.kernel): so many rows of so many bytes.
struct BoxShape {
  std::int64_t line_bytes, rows;
};
inline BoxShape box_of(const Tile& tile, DataType output) {
  const std::int64_t size = size_of(output);
  const bool is_swapped = (tile.columns == 64 || tile.columns == 128) && !tile.is_raw;
  return {tile.columns * size % 128 == 0 ? 128 : 64, is_swapped && size == 4 ? 32 : 64};
}
inline devices::TensorMap::Element box_element(DataType output) {
  using Element = devices::TensorMap::Element;
  return output == DataType::f16 ? Element::f16 : output == DataType::bf16 ? Element::bf16 : Element::f32;
}
// Of lines that the matrix units read, or boxes store.
inline devices::TensorMap::Swizzle swizzle_of(std::int64_t line_bytes) {
  using Swizzle = devices::TensorMap::Swizzle;
  return line_bytes == 128 ? Swizzle::bytes_128 : line_bytes == 64 ? Swizzle::bytes_64 : Swizzle::bytes_32;
}
inline std::int64_t stage_bytes(const Tile& tile, const Numbers& numbers) {
  const std::int64_t rows = tile.is_shared ? 0 : (tile.is_raw ? 2 : numbers.planes()) * tile.rows,
                     columns = tile.is_turned && tile.columns > 64 ? round_up(tile.columns, 64) : tile.columns;
  return (rows + numbers.planes() * columns) * 2 * tile.terms;
}
inline std::int64_t window_bytes(const Tile& tile, const Numbers& numbers) {
  const std::int64_t rings = tile.is_kept ? 2 : 1;
  return rings * tile.windows * numbers.planes() * round_up(tile.window.rows * tile.window.line, 1024);
}
// STAGING of tensor_tiles.kernel.
inline std::int64_t staging_bytes(const Tile& tile) {
  return tile.warpgroups() * 4 * (tile.resident == 1 ? 4096 : 2560);
}
inline std::int64_t local_bytes(const Tile& tile, const Numbers& numbers) {
  return window_bytes(tile, numbers) + tile.stages * stage_bytes(tile, numbers) + 1024 + staging_bytes(tile);
}
inline std::int64_t stages_for(const Tile& tile, const Numbers& numbers, const devices::Device& device) {
  constexpr std::int64_t rest = 2304;  // barriers, the boxes' alignment, and what the device keeps of each group's
  const std::int64_t left =
      device.facts().most_local_memory_bytes / tile.resident - rest - staging_bytes(tile) - window_bytes(tile, numbers);
  if (tile.is_kept) {
    constexpr std::int64_t barriers = 16;
    const std::int64_t steps = tile.window.kept_steps;
    return left >= steps * (stage_bytes(tile, numbers) + barriers) ? steps : 0;
  }
  return std::min<std::int64_t>(8, left / stage_bytes(tile, numbers));
}
// Whether the registers of so many groups hold the sums, and the parts of raw rows.
inline bool fits(const Tile& tile, const Numbers& numbers) {
  if (tile.is_kept)
    return numbers.products == 1 && tile.resident == 1 && tile.parts == 1 && !tile.is_raw &&
           (tile.columns == 32 || tile.columns == 64) && tile.columns >= tile.window.kept_columns &&
           tile.window.kept_steps > 0;
  if (tile.is_paired) return tile.columns == 64 && tile.resident == 1 && !tile.is_raw;
  if (tile.columns == 256) return tile.resident == 1 && numbers.products == 1 && !tile.is_shared && !tile.is_raw;
  if (tile.is_raw)
    return numbers.products < 6 && !tile.is_shared &&
           (tile.columns == 128 || (tile.columns == 64 && tile.resident == 1));
  return tile.resident == 1 || tile.columns <= 64;
}

// Cycles of a compute unit of 9.0, as an H200 takes them, its power included: for 64 terms of a tile, for the rest of a
// tile, for a launch, and for bytes that all of them move.
inline double step_cycles(const Tile& tile, const Numbers& numbers) {
  const auto of = [&](double three, double one) {
    return numbers.products == 6 ? 2 * three : numbers.products == 3 ? three : one;
  };
  if (tile.is_raw && tile.rows < tile_rows) return 800;  // of one product; filters.cpp has those of three
  if (tile.is_raw) return tile.columns == 128 ? of(1750, 900) : of(1300, 900);
  if (tile.columns == 256) return 1350;
  if (tile.is_kept) return tile.columns == 32 ? 220 : 345;
  double cycles = tile.is_shared ? of(700, 340) : of(750, 400);
  if (tile.columns == 128) cycles = tile.is_shared ? of(1750, 850) : of(1750, 730);
  if (tile.columns == 96) cycles = tile.is_shared ? of(1330, 640) : of(1330, 560);
  if (tile.columns == 64) cycles = tile.is_shared ? of(880, 410) : of(1190, 540);
  if (tile.is_paired) cycles = of(820, 380);
  if (tile.columns == 64) cycles *= static_cast<double>(tile.rows) / tile_rows;
  if (!tile.is_shared) {
    const double copies = numbers.products == 6 ? 98400 : of(65600, 22000);
    cycles = std::max(cycles, copies / static_cast<double>(tile.window.line));  // copies of lines
  }
  if (tile.columns <= 64 && tile.resident == 1 && !tile.is_paired)
    cycles += of(250, 85);  // nobody multiplies while sums are added
  return cycles;
}
inline double tile_cycles(const Tile& tile) {
  if (tile.is_raw) return tile.columns == 64 || tile.rows < tile_rows ? 3000 : 5500;
  if (tile.is_paired) return 3300;
  return tile.columns == 256 ? 7200 : tile.columns >= 96 ? 3600 : tile.columns == 64 ? 1650 : 1900;
}
// Groups that a compute unit, and that all of them, have at once.
inline std::int64_t groups_of_unit(const Tile& tile) {
  return tile.is_kept ? 2 : tile.resident;
}
inline std::int64_t groups_at_once(const Tile& tile, const devices::Device& device) {
  return groups_of_unit(tile) * device.info().compute_units;
}
// Tiles whose sums are not cut into parts: rounds of them, before the last ones, which are too few for a round.
inline std::int64_t whole_tiles(const Tile& tile, std::int64_t tiles, const devices::Device& device) {
  const std::int64_t at_once = groups_at_once(tile, device);
  return tile.parts == 1 ? tiles : tiles / at_once * at_once;
}
// The others.
inline std::int64_t cut_tiles(const Tile& tile, std::int64_t tiles, const devices::Device& device) {
  return tiles - whole_tiles(tile, tiles, device);
}

// Tiles, or their parts, that a compute unit makes one after the other, as many as its groups are two at once.
inline double tile_rounds(const Tile& tile, std::int64_t tiles, const devices::Device& device) {
  return static_cast<double>(divide_up(tiles * tile.parts, groups_at_once(tile, device)) * groups_of_unit(tile));
}
// Of so many tiles: where a compute unit makes one, the second cache has time for its copies, or nearly.
inline double step_cycles(const Tile& tile, std::int64_t tiles, const Numbers& numbers, const devices::Device& device) {
  constexpr double unshared = 80;
  if (tile.is_shared || tile.is_raw || tile.columns != 64 || tiles * tile.parts > device.info().compute_units)
    return step_cycles(tile, numbers);
  Tile alone = tile;
  alone.is_shared = true;
  return step_cycles(alone, numbers) + (numbers.products == 1 ? unshared : 0);
}
// All tiles, of so many steps each.
inline double cycles_of(const Tile& tile, std::int64_t tiles, double steps, const Numbers& numbers,
                        const devices::Device& device) {
  return tile_rounds(tile, tiles, device) * (steps * step_cycles(tile, tiles, numbers, device) + tile_cycles(tile));
}
// The same where the last tiles alone are cut into parts: of whole tiles, and of the parts.
inline double cycles_of_cut(const Tile& tile, std::int64_t tiles, double steps, double cycles_of_step,
                            double cycles_of_rest, const devices::Device& device) {
  const std::int64_t whole = whole_tiles(tile, tiles, device);
  Tile one = tile;
  one.parts = 1;
  const double of_whole = tile_rounds(one, whole, device) * (steps * cycles_of_step + cycles_of_rest);
  if (whole == tiles) return of_whole;
  const double of_part = std::ceil(steps / static_cast<double>(tile.parts));
  return of_whole + tile_rounds(tile, tiles - whole, device) * (of_part * cycles_of_step + cycles_of_rest);
}

inline std::span<const Tunable> tile_tunables() {
  static const std::vector<Tunable> all = {{"tile_n", {32, 64, 96, 128, 256}},
                                           {"resident", {1, 2}},
                                           {"parts", {1,  2,  3,  4,  5,  6,  7,  8,  10,  12,  14,  16,  20,  24,
                                                      28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256}},
                                           {"shared", {0, 1, 2, 3}},  // 2: and b is kept; 3: tiles are paired
                                           {"raw", {0, 1}}};
  return all;
}
inline Tuning tuning_of(const Tile& tile) {
  return {{"tile_n", tile.columns},
          {"resident", tile.resident},
          {"parts", tile.parts},
          {"shared", tile.is_kept     ? 2
                     : tile.is_paired ? 3
                                      : tile.is_shared},
          {"raw", tile.is_raw}};
}

// Of all tiles for which `cycles` has an answer the one of the fewest, within the request's limit of what `workspace`
// says of it, where one is; of exactly the tuning, where there is one. Steps can share a window, if it has rows: so
// many for 128 of a tile. Cycles of 0 answer that the tile does not serve. Without columns: none does.
template <typename Cycles, typename WorkspaceBytes>
Tile best_tile(const SolverOptions& request, const Numbers& numbers, const devices::Device& device,
               const Window& window, const Cycles& cycles, const WorkspaceBytes& workspace,
               const TileForms& forms = {}) {
  Tile best{.columns = 0};
  std::int64_t excess_of_best = 0;
  const Tuning wanted = Tuning::parse(request.tuning);
  for_each_tuning(tile_tunables(), [&](const Tuning& each) {
    if (!wanted.is_empty() && !(each == wanted)) return;
    Tile tile{.columns = each.at("tile_n"),
              .resident = each.at("resident"),
              .parts = each.at("parts"),
              .is_shared = each.at("shared") != 0,
              .is_kept = each.at("shared") == 2,
              .is_paired = each.at("shared") == 3,
              .is_raw = each.at("raw") != 0,
              .window = {.line = window.line}};
    if (tile.is_raw && tile.resident == 2) tile.rows /= 2;  // registers hold the parts of so many for each
    if (tile.resident == 2) tile.terms = forms.terms_of_two;
    tile.is_turned = forms.are_turned;
    if (tile.is_shared) tile.window = window, tile.windows = tile.is_kept ? 3 : 2;
    if (tile.is_paired) tile.rows += tile_rows, tile.window.rows += tile_rows;
    if (!fits(tile, numbers) || (tile.is_shared && window.rows == 0)) return;
    const auto consider = [&](Tile one) {
      one.stages = stages_for(one, numbers, device);
      if (one.stages >= 2) one.cycles = cycles(one);
      if (!(one.cycles > 0)) return;
      const std::int64_t limit = request.max_workspace_bytes,
                         excess = limit < 0 ? 0 : std::max<std::int64_t>(workspace(one) - limit, 0);
      if (best.columns != 0 && std::pair(excess, one.cycles) >= std::pair(excess_of_best, best.cycles)) return;
      best = one, excess_of_best = excess;
    };
    consider(tile);
    if (!forms.have_heights || tile.columns != 64 || tile.is_raw || tile.is_kept || tile.parts > 1) return;
    for (const std::int64_t height : tile_heights) {
      Tile low = tile;
      low.rows = tile.is_paired ? 2 * height : height;
      if (tile.is_shared) low.window.rows -= tile.rows - low.rows;
      consider(low);
    }
  });
  return best;
}

// A launch; and that launches one behind the other wait for what they read, whatever they do: by times of 14 small
// layers in every pass, of tiles that meet pixels, and of others.
constexpr double launch_cycles = 4500, pixels_wait = 13000, others_wait = 5500;
// What meeting groups spare, beside other solvers of five small layers.
constexpr double meeting_gain = 2800;
inline double cycles_of_bytes(double bytes, const devices::Device& device) {
  return bytes * byte_cost(device) / (128.0 * device.info().compute_units);
}
// In multiply-adds at the device's peak, whose compute units do 128 in a cycle.
inline double cost_of_cycles(double cycles, const devices::Device& device) {
  return cycles * 128 * device.info().compute_units;
}

// Bytes of a workspace, taken from its beginning on.
class Sections {
 public:
  std::int64_t take(std::int64_t count, std::int64_t size) {
    const std::int64_t at = bytes_;
    bytes_ = checked_add(bytes_, round_up(checked_multiply(count, size, "the workspace"), alignment), "the workspace");
    return at;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t alignment = 256;
  std::int64_t bytes_ = 0;
};

// Why the device cannot multiply so; empty if it can.
inline std::string tensor_refusal(const devices::Device& device) {
  const devices::DeviceFacts& facts = device.facts();
  if (facts.kind != devices::DeviceKind::cuda || facts.compute_capability != 90 || !facts.has_tensor_maps)
    return "multiplies on the matrix units of compute capability 9.0, through CUDA";
  return device.matrix_units_refusal();
}

// Of arrays of these types: what is multiplied, and what is made; turned in local memory or not.
inline std::vector<devices::Definition> definitions_of(DataType type, DataType output, const Numbers& numbers,
                                                       const Tile& tile, std::int64_t a_line, bool a_turned,
                                                       bool b_turned, std::int64_t sampled) {
  const auto stored = [](DataType of) {
    return fmt::format("TYPE_{}", name(of == DataType::tf32 ? DataType::f32 : of));
  };
  std::vector<devices::Definition> all = {
      {"TYPE", stored(type)}, {"OUTPUT", stored(output)}, {"PART", stored(numbers.part)}};
  const auto add = [&](const char* symbol, std::int64_t value) { all.push_back({symbol, std::to_string(value)}); };
  add("PRODUCTS", numbers.products), add("SCALED", numbers.are_scaled), add("MAXIMA", maxima);
  add("SAMPLED", numbers.are_scaled ? sampled : 0);
  add("TILE_M", tile.rows_of_warpgroup()), add("PAIRED", tile.is_paired), add("TILE_N", tile.columns),
      add("TERMS", tile.terms), add("STAGES", tile.stages), add("RESIDENT", tile.resident);
  add("WINDOW", tile.window.rows), add("WINDOWS", tile.windows), add("KEPT", tile.is_kept);
  add("A_LINE", a_line);
  add("A_TURNED", a_turned), add("B_TURNED", b_turned);
  return all;
}
inline std::vector<devices::Definition> definitions_of(DataType type, const Numbers& numbers, const Tile& tile,
                                                       std::int64_t a_line, bool turned, std::int64_t sampled) {
  return definitions_of(type, type, numbers, tile, a_line, turned, turned, sampled);
}

// How matrix units round: what an instruction of 16 products cuts off at most, and how many instructions behind the
// first high products add to a sum before it leaves the unit.
struct Cutting {
  double of_instruction, instructions;
};
// Of a step of 64 terms.
inline Cutting cutting_of(const devices::Device& device) {
  return {.of_instruction = devices::cut_of_sixteen(device.facts().matrix_units), .instructions = 4};
}
// Of sums of so many steps and parts; `terms` of the definition. conv2d/split_gemm/README.md derives it.
inline ErrorBound bound_of(const Numbers& numbers, double steps, double parts, double terms, const Cutting& cutting) {
  constexpr double rest = 7;
  const double absolute = terms * 0x1p-38, of_step = cutting.of_instruction * cutting.instructions;
  if (numbers.products == 6) return {.chain = steps + parts, .constant = rest + of_step};
  if (numbers.products == 3) return {.chain = steps + parts, .constant = rest + of_step, .absolute = absolute};
  const double chain = 2 * of_step * steps + parts;  // half of it counts
  if (numbers.are_scaled) return {.chain = chain, .constant = 2 + 0x1p13, .absolute = absolute};
  return {.chain = chain};
}

}  // namespace omniconv::operations::split_gemm
