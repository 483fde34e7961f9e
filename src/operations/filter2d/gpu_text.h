// What the GPU variants of the filter2d solvers share: constants of the task as kernel text, weights on the device,
// and which part of a row is the interior.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/checked.h"
#include "operations/filter2d/filter2d.h"
#include "operations/gpu_limits.h"
#include "text/device_text.h"

namespace omniconv::operations {

// Work items of a group, side by side in a row.
constexpr std::int64_t group_items = 128;

// Why no GPU variant serves the task or the device; empty if one may.
inline std::string gpu_refusal(const Filter2dTask& task, const devices::Device& device) {
  if (device.kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
  const Filter2dProblem& problem = task.problem;
  if (problem.input == DataType::f64 || problem.output == DataType::f64 || task.weights.accumulate == DataType::f64)
    return "f64 images are filtered on the CPU, since not every GPU has double precision";
  for (const DataType type : {problem.input, problem.output})
    if (type == DataType::bf16 || type == DataType::tf32) return fmt::format("there are no {} images", name(type));
  return group_refusal(device, group_items);
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
  add("FILTER_H", problem.h);
  add("FILTER_W", problem.w);
  add("FILTER_C", problem.c);
  add("FILTER_Q", Q(problem));
  add("FILTER_R", problem.r);
  add("FILTER_S", problem.s);
  add("ANCHOR_Y", task.weights.anchor_y);
  add("ANCHOR_X", task.weights.anchor_x);
  return definitions;
}

// The type of positions in kernel text, for solvers that are faster with narrow ones: other text has 64 bits.
inline devices::Definition narrow_positions(const Filter2dProblem& problem) {
  constexpr std::int64_t most = std::int64_t{1} << 28;  // border_index doubles an extent, and adds a window
  return {"POSITION", problem.h < most && problem.w < most / problem.c ? "int" : "long"};
}

// Rows of groups that one launch may have: CUDA's limit.
constexpr std::int64_t most_group_rows = 65'535;

// The run in parts of at most so many rows, by append_part(const Filter2dRun&).
template <typename AppendPart>
void in_parts_of(std::int64_t most, const Filter2dRun& run, const AppendPart& append_part) {
  if (run.output_rows <= most) return append_part(run);
  for (std::int64_t done = 0; done < run.output_rows; done += most) {
    Filter2dRun part = run;
    part.output_first += done;
    part.output_offset_bytes += done * run.output_stride_bytes;
    part.output_rows = std::min(most, run.output_rows - done);
    append_part(part);
  }
}
// In parts that are not too tall for one launch each.
template <typename AppendPart>
void in_launches(const Filter2dRun& run, std::int64_t rows_per_item, const AppendPart& append_part) {
  in_parts_of(most_group_rows * rows_per_item, run, append_part);
}

// Elements (column * c + channel) of an output row. The interior reads only columns of the image; the rest is what lies
// left and right of it.
struct RowParts {
  std::int64_t interior = 0, rest = 0;
};
// The same in items, where a pixel has so many; the interior is a multiple of so many, which is whole groups where
// nothing else is said.
inline RowParts row_parts(const Filter2dTask& task, std::int64_t pixel_items, std::int64_t multiple = group_items) {
  const std::int64_t columns = Q(task.problem);
  const std::int64_t inside = std::clamp<std::int64_t>(task.problem.w - task.problem.s + 1, 0, columns) * pixel_items;
  const std::int64_t interior = inside / multiple * multiple;
  return {interior, columns * pixel_items - interior};
}
inline RowParts row_parts(const Filter2dTask& task) {
  return row_parts(task, task.problem.c);
}

// Where rows are filtered into a workspace of fp32 rows and columns from there: output rows per chunk, and the
// workspace for them and the r - 1 rows more that they read. At least r - 1 output rows, so that at most half of the
// chains along rows are computed twice.
struct Chunk {
  std::int64_t rows = 0, workspace_bytes = 0, row_bytes = 0;

  // Of runs of so many output rows at most.
  std::int64_t workspace_bytes_for(std::int64_t output_rows) const {
    return workspace_bytes - (rows - std::clamp<std::int64_t>(output_rows, 0, rows)) * row_bytes;
  }
};
inline Chunk chunk_for(const Filter2dTask& task) {
  // Small enough to stay in the larger caches between its writing and its reading, large enough to fill a GPU.
  constexpr std::int64_t usual_workspace_bytes = std::int64_t{32} << 20;
  const Filter2dProblem& problem = task.problem;
  const std::int64_t elements = checked_multiply(Q(problem), problem.c, "an intermediate row");
  const std::int64_t row_bytes = checked_multiply(elements, sizeof(float), "an intermediate row");
  const std::int64_t least = std::max<std::int64_t>(problem.r - 1, 1);
  const std::int64_t most = std::max<std::int64_t>(most_group_rows - (problem.r - 1), 1);
  const std::int64_t usual = std::max(usual_workspace_bytes / row_bytes - (problem.r - 1), least);
  const std::int64_t rows = std::min({usual, most, P(problem)});
  return {rows, checked_multiply(checked_add(rows, problem.r - 1, "the workspace"), row_bytes, "the workspace"),
          row_bytes};
}
// Why no such workspace fits into one buffer of the device; empty if it does.
inline std::string chunk_refusal(const Filter2dTask& task, const devices::Device& device) {
  const std::int64_t workspace = chunk_for(task).workspace_bytes, limit = device.info().max_buffer_bytes;
  if (workspace <= limit) return {};
  return fmt::format("the workspace of {} bytes is larger than a buffer of the device may be ({} bytes)", workspace,
                     limit);
}

// Output rows of a band, where bands of `rows` output rows take `groups_per_band` groups each and `lead` rows more than
// they make: as few waves of groups as fill the device (`resident` at once) and few rows read twice, of
// those with at most `most` rows; `most`, or all rows, where it is not known how many are resident.
inline std::int64_t rows_of_bands(std::int64_t rows, double groups_per_band, std::int64_t resident, std::int64_t lead,
                                  std::int64_t least, std::int64_t most) {
  if (resident < 1) return std::max<std::int64_t>(std::min(most, rows), 1);
  constexpr int most_waves = 16;
  std::int64_t best = most;
  double best_cost = std::numeric_limits<double>::infinity();
  for (int waves = 1; waves <= most_waves; ++waves) {
    const double bands = std::floor(static_cast<double>(waves * resident) / groups_per_band);
    if (bands < 1) continue;
    const std::int64_t band =
        std::clamp(divide_up(rows, static_cast<std::int64_t>(bands)), least, std::max(least, rows));
    if (band > most) continue;
    const double groups = static_cast<double>(divide_up(rows, band)) * groups_per_band;
    const double cost = std::ceil(groups / static_cast<double>(resident)) * static_cast<double>(band + lead);
    if (cost < best_cost) best_cost = cost, best = band;
  }
  return best;
}

// Work items for `elements` of `rows` rows.
inline devices::Grid grid_for(std::int64_t elements, std::int64_t rows) {
  return {{round_up(elements, group_items), rows}, {group_items, 1}};
}

// The arguments with which kernels begin, the images of a run, and a kernel's own behind them.
template <typename... Own>
std::array<devices::KernelArgument, 10 + sizeof...(Own)> image_arguments(const Filter2dRun& run, const Own&... own) {
  return {run.input.impl().get(),
          run.input_offset_bytes,
          run.input_stride_bytes,
          run.input_first,
          run.input_rows,
          run.output.impl().get(),
          run.output_offset_bytes,
          run.output_stride_bytes,
          run.output_first,
          run.output_rows,
          own...};
}

// The kernels of the two parts of a row, of the same arguments but for the last two, parts.interior and parts.rest,
// which only the rest's kernel takes.
struct PartKernels {
  const char *interior, *rest;
};
// Both over so many rows of work items, where they are not empty.
inline void launch_parts(devices::Sequence& sequence, const std::shared_ptr<devices::Program>& program,
                         const PartKernels& kernels, const RowParts& parts, std::int64_t rows,
                         std::span<const devices::KernelArgument> arguments) {
  if (parts.interior > 0)
    sequence.launch(program, kernels.interior, grid_for(parts.interior, rows), arguments.first(arguments.size() - 2));
  if (parts.rest > 0 || parts.interior == 0)
    sequence.launch(program, kernels.rest, grid_for(parts.rest, rows), arguments);
}

// Weights in fp32 on the device; done when this returns.
inline std::shared_ptr<devices::Buffer> upload_weights(devices::Device& device, const std::vector<double>& weights) {
  const std::vector<float> values(weights.begin(), weights.end());
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
  std::shared_ptr<devices::Buffer> buffer = device.allocate(bytes);
  device.make_queue()->upload(buffer, 0, values.data(), bytes).wait();
  return buffer;
}

}  // namespace omniconv::operations
