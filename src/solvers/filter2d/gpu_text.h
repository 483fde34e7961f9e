// What the GPU variants of the filter2d solvers share: constants of the task as kernel text, weights on the device,
// and which part of a row is the interior.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/checked.h"
#include "kernels/device_text.h"
#include "solvers/solver.h"

namespace omniconv::solvers {

// Why no GPU variant serves the task or the device; empty if one may.
inline std::string gpu_refusal(const Filter2dTask& task, const devices::Device& device) {
  if (device.kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
  const Filter2dProblem& problem = task.problem;
  if (problem.input == DataType::f64 || problem.output == DataType::f64 || task.weights.accumulate == DataType::f64)
    return "f64 images are filtered on the CPU, since not every GPU has double precision";
  for (const DataType type : {problem.input, problem.output})
    if (type == DataType::bf16 || type == DataType::tf32) return fmt::format("there are no {} images", name(type));
  return {};
}

// The constants of filter2d_pixels.kernel.
inline std::vector<devices::Definition> pixel_definitions(const Filter2dTask& task) {
  const Filter2dProblem& problem = task.problem;
  std::vector<devices::Definition> definitions = {
      {"INPUT", fmt::format("TYPE_{}", name(problem.input))},
      {"OUTPUT", fmt::format("TYPE_{}", name(problem.output))},
      {"BORDER", fmt::format("BORDER_{}", name(problem.border.mode))},
  };
  const auto add = [&](const char* symbol, std::int64_t value) {
    definitions.push_back({symbol, std::to_string(value)});
  };
  add("H", problem.h);
  add("W", problem.w);
  add("C", problem.c);
  add("Q", Q(problem));
  add("R", problem.r);
  add("S", problem.s);
  add("ANCHOR_Y", task.weights.anchor_y);
  add("ANCHOR_X", task.weights.anchor_x);
  return definitions;
}

// Work items of a group, side by side in a row.
constexpr std::int64_t group_items = 128;

// Elements (column * c + channel) of an output row. The interior reads only columns of the image, and is whole groups;
// the rest is what lies left and right of it.
struct RowParts {
  std::int64_t interior = 0, rest = 0;
};
inline RowParts row_parts(const Filter2dTask& task) {
  const std::int64_t columns = Q(task.problem), channels = task.problem.c;
  const std::int64_t inside = std::clamp<std::int64_t>(task.problem.w - task.problem.s + 1, 0, columns) * channels;
  const std::int64_t interior = inside / group_items * group_items;
  return {interior, columns * channels - interior};
}

// Work items for `elements` of `rows` rows.
inline devices::Grid grid_for(std::int64_t elements, std::int64_t rows) {
  return {{round_up(elements, group_items), rows}, {group_items, 1}};
}

// Weights in fp32 on the device; done when this returns.
inline std::shared_ptr<devices::Buffer> upload_weights(devices::Device& device, const std::vector<double>& weights) {
  const std::vector<float> values(weights.begin(), weights.end());
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
  std::shared_ptr<devices::Buffer> buffer = device.allocate(bytes);
  device.make_queue()->upload(buffer, 0, values.data(), bytes).wait();
  return buffer;
}

}  // namespace omniconv::solvers
