// What products of parts have in common, whatever is multiplied: the parts of a type's numbers, tiles and what they
// cost, the workspace, and the constants of parts.kernel, tensor_units.kernel and tile_products.kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/checked.h"
#include "operations/gpu_limits.h"
#include "operations/solver.h"

namespace omniconv::operations::split_gemm {

constexpr std::int64_t pass_group = 256, product_group = 384, maxima = 528;

// How many products of parts make one of numbers, and of which type parts are.
struct Numbers {
  std::int64_t products = 1;
  bool are_scaled = false;
  DataType part = DataType::f16;

  std::int64_t planes() const { return products == 3 ? 2 : 1; }
};
inline Numbers numbers_of(DataType type) {
  switch (type) {
    case DataType::f32: return {.products = 3, .are_scaled = true};
    case DataType::tf32: return {.are_scaled = true};
    default: return {.part = type};
  }
}

struct Tile {
  std::int64_t columns = 128, stages = 0, parts = 1;
  double cycles = 0;  // of a compute unit, for all
};
inline std::int64_t stage_bytes(std::int64_t columns, const Numbers& numbers) {
  return numbers.planes() * (128 + columns) * 128;
}
inline std::int64_t local_bytes(const Tile& tile, const Numbers& numbers) {
  return tile.stages * stage_bytes(tile.columns, numbers) + 1024;
}
inline std::int64_t stages_for(std::int64_t columns, const Numbers& numbers, const devices::Device& device) {
  return std::min<std::int64_t>(8, (device.facts().most_local_memory_bytes - 2048) / stage_bytes(columns, numbers));
}

// Cycles of a compute unit of 9.0, as an H200 takes them, its power included: for 64 terms of a tile, for the rest of a
// tile, for a launch, and for bytes that all of them move.
inline double step_cycles(std::int64_t columns, const Numbers& numbers) {
  const double of_three = columns == 128 ? 1900 : columns == 64 ? 1080 : 680;
  return of_three * static_cast<double>(numbers.products) / 3;
}
inline double tile_cycles(std::int64_t columns) {
  return 600 + 12 * static_cast<double>(columns);
}
constexpr double launch_cycles = 4500;
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
  return {};
}

inline std::vector<devices::Definition> definitions_of(DataType type, const Numbers& numbers, const Tile& tile,
                                                       std::int64_t a_line, bool turned) {
  const std::string stored = fmt::format("TYPE_{}", name(type == DataType::tf32 ? DataType::f32 : type));
  std::vector<devices::Definition> all = {
      {"TYPE", stored}, {"OUTPUT", stored}, {"PART", fmt::format("TYPE_{}", name(numbers.part))}};
  const auto add = [&](const char* symbol, std::int64_t value) { all.push_back({symbol, std::to_string(value)}); };
  add("PRODUCTS", numbers.products), add("SCALED", numbers.are_scaled), add("MAXIMA", maxima);
  add("TILE_N", tile.columns), add("STAGES", tile.stages), add("A_LINE", a_line);
  add("A_TURNED", turned), add("B_TURNED", turned);
  return all;
}

// Of sums of so many steps and parts; `terms` of the definition. README.md derives it.
inline ErrorBound bound_of(DataType type, double steps, double parts, double terms) {
  constexpr double of_instruction = 5, instructions = 4, rest = 7;  // of high products, between two additions
  const double absolute = terms * 0x1p-38;
  if (type == DataType::f32)
    return {.chain = steps + parts, .constant = rest + of_instruction * instructions, .absolute = absolute};
  const double chain = 2 * of_instruction * instructions * steps + parts;  // half of it counts
  if (type == DataType::tf32) return {.chain = chain, .constant = 2 + 0x1p12, .absolute = absolute};
  return {.chain = chain};
}

}  // namespace omniconv::operations::split_gemm
