#include "operations/conv2d/few_channels/filter_plan.h"

#include <algorithm>

#include "operations/conv2d/gpu_text.h"

namespace omniconv::operations::few_channels {

namespace split = split_gemm;

std::int64_t filter_sums_of(const FilterTask& task, std::int64_t rows, std::int64_t columns) {
  return std::int64_t{task.parts} * task.sets * rows * columns;
}
split::Workspace filter_workspace_of(DataType type, std::int64_t sums) {
  return {0, 0, split::numbers_of(type), sums};
}
split::Sampling filter_sampling_of(const Conv2dProblem& problem) {
  const Conv2dElements all = elements_of(problem);
  return split::sampling_of(all.x, all.y);
}

std::string filter_task_refusal_of(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  if (problem.pass != Pass::backward_filter) return "convolves backward of the filter alone";
  if (problem.type != DataType::f32 && problem.type != DataType::tf32)
    return fmt::format("is for f32 and tf32, whose numbers are scaled; has {}", name(problem.type));
  constexpr std::int64_t most_extent = std::int64_t{1} << 24, most = std::int64_t{1} << 28;
  for (const std::int64_t extent :
       {g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.p, g.q, g.pad_top, g.pad_left, g.stride_h, g.stride_w, g.dilation_h * g.r,
        g.dilation_w * g.s, g.p * g.stride_h, g.q * g.stride_w})
    if (extent >= most_extent) return fmt::format("an extent of {} passes the {} that it counts", extent, most_extent);
  if (g.h * g.w >= most / g.c || g.p * g.q >= most / g.k)
    return fmt::format("an image has {} numbers, and it counts {}", std::max(g.h * g.w * g.c, g.p * g.q * g.k), most);
  if (std::max(g.p * g.q, g.h * g.w) + 16 >= 16 * most / g.n) return fmt::format("has more than {} pixels", 16 * most);
  return {};
}

std::vector<devices::Definition> filter_constants_of(const Conv2dProblem& problem, bool rows_of_x, bool channels_last) {
  const Conv2dShape g(problem);
  std::vector<devices::Definition> all;
  const auto add = [&](const char* symbol, std::int64_t value) { all.push_back({symbol, std::to_string(value)}); };
  const std::int64_t channels = rows_of_x ? g.k_group : g.c_group;
  add("CHANNELS", channels), add("TAPS_H", g.r), add("TAPS_W", g.s);
  add("STRIDE_H", g.stride_h), add("STRIDE_W", g.stride_w);
  add("DILATION_H", g.dilation_h), add("DILATION_W", g.dilation_w);
  add("NHWC", g.nhwc), add("MIRRORED", g.flip != rows_of_x), add("ROWS_OF_X", rows_of_x);
  add("CHANNELS_LAST", channels_last), add("PIXEL", g.nhwc ? channels * g.groups : 1);
  add("BIAS", 0), add("ACCUMULATE", problem.accumulate), add("RELU", 0);
  return all;
}

FilterPlan::FilterPlan(const Conv2dProblem& problem, devices::Device& device, const FilterLaunch& launch)
    : Conv2dPlanBody(problem),
      ProductLaunches(problem.type, problem.type, split::numbers_of(problem.type), device, launch.tile,
                      filter_workspace_of(problem.type, filter_sums_of(launch.task, launch.rows, launch.columns))),
      launch_(launch),
      sampling_(filter_sampling_of(problem)) {
  const std::string text = std::string(kernels::gemm_elements()) + std::string(kernels::tensor_tiles()) +
                           std::string(kernels::box_copies()) + std::string(kernels::tensor_units()) +
                           std::string(kernels::scales()) + std::string(kernels::plain_sums()) +
                           std::string(kernels::parts()) + launch.text;
  std::vector<devices::Definition> of_passes =
      definitions_of(problem.type, numbers_, tile_, 32, false, sampling_.bits());
  of_passes.insert(of_passes.end(), launch.constants.begin(), launch.constants.end());
  const auto add = [&](const char* symbol, std::int64_t value) {
    of_passes.push_back({symbol, std::to_string(value)});
  };
  add("ROW_COUNT", launch.rows), add("SET_COLUMNS", launch.columns), add("GROUP_ITEMS", launch.items);
  std::vector<devices::Definition> of_tiles = of_passes;
  of_passes.push_back({"TILES", "0"}), of_tiles.push_back({"TILES", "1"});
  const devices::Device::Source sources[] = {
      {text, of_tiles, {.target = "sm_90a", .expected_seconds = 0.6, .starts_quickly = true}},
      {text, of_passes, {.target = "sm_90a", .expected_seconds = 0.1}}};
  const auto programs = device.build_all(sources);
  tiles_ = programs[0], passes_ = programs[1];
}

void FilterPlan::append(devices::Sequence& sequence, const Conv2dRun& run) const {
  const split::Product product{.a = run.x, .b = run.y, .out = run.w, .bias = run.x, .workspace = {run.workspace}};
  const Conv2dElements all = elements_of(problem());
  append_scan(sequence, product, all.x, all.y, sampling_);
  const std::span<const std::byte> task = std::as_bytes(std::span(&launch_.task, 1));
  const auto section = [&](std::int64_t at) { return (product.workspace.offset_bytes + at) / 4; };
  for (std::int32_t mends = 0; mends <= (sampling_.bits() != 0 ? 1 : 0); ++mends) {
    const devices::KernelArgument arguments[] = {task,
                                                 run.x.buffer.impl().get(),
                                                 run.x.offset_bytes / size(),
                                                 run.y.buffer.impl().get(),
                                                 run.y.offset_bytes / size(),
                                                 run.w.buffer.impl().get(),
                                                 run.w.offset_bytes / size(),
                                                 product.workspace.buffer.impl().get(),
                                                 section(workspace_.maxima),
                                                 section(workspace_.largest),
                                                 section(workspace_.parts),
                                                 mends};
    sequence.launch(tiles_, launch_.kernel, {{launch_.groups * launch_.items, 1}, {launch_.items, 1}}, arguments,
                    {.overlaps = true, .local_memory_bytes = launch_.local_bytes});
  }
  const devices::KernelArgument arguments[] = {task,
                                               run.w.buffer.impl().get(),
                                               run.w.offset_bytes / size(),
                                               product.workspace.buffer.impl().get(),
                                               section(workspace_.largest),
                                               section(workspace_.parts)};
  const std::int64_t adding = launch_.task.sets * launch_.rows * launch_.columns / 32;
  sequence.launch(passes_, "add_parts", {{adding * 256, 1}, {256, 1}}, arguments, {.overlaps = true});
}

}  // namespace omniconv::operations::few_channels
