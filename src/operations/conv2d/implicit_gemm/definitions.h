// The constants of the kernels that read what pixels do out of the arrays, whatever multiplies it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/implicit_gemm/products.h"

namespace omniconv::operations::implicit_gemm {

// Work items of a group that turns filters, and that adds up parts.
constexpr std::int64_t turn_group = 256;

// A tile of a product, products of a stage, and the parts of sums.
struct Extents {
  std::int64_t m, n, k, parts, part_k;
};

// Of gemm_elements.kernel, conv2d_shape.kernel, implicit_definition.kernel, implicit_sums.kernel, and of
// implicit_positions.kernel or implicit_filters.kernel.
inline std::vector<devices::Definition> product_definitions(const Conv2dProblem& problem, const Extents& tile,
                                                            bool merges = false) {
  const Conv2dShape g(problem);
  std::vector<devices::Definition> all = conv2d_definitions(problem);
  const auto add = [&](const std::string& symbol, std::int64_t value) {
    all.push_back({symbol, value < 0 ? fmt::format("({})", value) : std::to_string(value)});
  };
  add("TILE_M", tile.m), add("TILE_N", tile.n), add("TILE_K", tile.k), add("PARTS", tile.parts);
  add("COMBINE_GROUP", combine_group), add("GROUPS", g.groups), add("PASS", static_cast<int>(problem.pass));
  const auto add_output = [&](std::int64_t elements, std::int64_t channel, std::int64_t channels) {
    all.push_back({"OUT_ELEMENTS", fmt::format("{}L", elements)});
    add("OUT_CHANNEL", channel), add("OUT_CHANNELS", channels);
  };
  const Conv2dElements elements = elements_of(problem);
  // Of what pixels read; beyond the last one, too, numbers stay within 32 bits.
  constexpr std::int64_t most_of_int = std::int64_t{1} << 30;
  all.push_back({"OFFSET", std::max(elements.x, elements.y) < most_of_int ? "int" : "long"});
  if (problem.pass == Pass::backward_filter) {
    add_output(elements.w, 1, 1);
    add("PART_K", tile.part_k);
    return all;
  }
  const bool data = problem.pass == Pass::backward_data;
  const PixelProduct product(problem, merges);
  add_output(data ? elements.x : elements.y, g.nhwc ? 1 : product.down.out * product.along.out, data ? g.c : g.k);
  add("BACKWARD_DATA", data ? 1 : 0), add("FLAT", product.flat ? 1 : 0);
  add("TURN_GROUP", turn_group), add("PANEL_PITCH", product.panel_pitch(tile.m, tile.n));
  add("SOURCE_C", data ? g.k : g.c), add("SOURCE_GROUP", product.source_group);
  add("OUT_C", data ? g.c : g.k), add("OUT_GROUP", product.out_group);
  const auto add_axis = [&](const char* letter, const PixelAxis& axis) {
    const auto named = [&](const char* name) { return fmt::format("{}_{}", name, letter); };
    add(named("SOURCE"), axis.source), add(named("OUT"), axis.out), add(named("TAPS"), axis.taps);
    add(named("POSITIONS"), axis.positions), add(named("CLASSES"), axis.classes);
    add(named("STEP"), axis.step), add(named("APART"), axis.apart);
    add(named("OUT_STEP"), axis.out_step), add(named("TAP_STEP"), axis.tap_step);
    add(named("MERGED"), axis.merged), add(named("FIRST"), axis.first);
    add(named("FILLED"), axis.filled), add(named("OWN"), axis.own);
  };
  add_axis("H", product.down), add_axis("W", product.along);
  return all;
}

}  // namespace omniconv::operations::implicit_gemm
