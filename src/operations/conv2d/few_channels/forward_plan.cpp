#include "operations/conv2d/few_channels/forward_plan.h"

#include <algorithm>

#include "embedded/few_channels_patches.kernel.h"
#include "operations/conv2d/gpu_text.h"

namespace omniconv::operations::few_channels {

namespace split = split_gemm;

Streams streams_of(const Conv2dProblem& problem, const devices::Device& device) {
  const Conv2dElements all = elements_of(problem);
  const auto bytes = [&](std::int64_t elements) { return static_cast<double>(elements * size_of(problem.type)); };
  const double read = bytes(all.x) + bytes(all.w);
  return {.streamed = split::cycles_of_bytes(read + (problem.accumulate ? 2 : 1) * bytes(all.y), device),
          .looked_at = split::cycles_of_bytes(read, device)};
}

Offer forward_offer(const Conv2dProblem& problem, const devices::Device& device, double cycles, std::int64_t bodies,
                    std::int64_t body) {
  const split::Numbers numbers = split::numbers_of(problem.type);
  const Streams streams = streams_of(problem, device);
  const double before = numbers.are_scaled ? 2 * split::launch_cycles + streams.looked_at : split::launch_cycles;
  Offer offer;
  offer.cost = {split::cost_of_cycles(before + std::max(cycles, streams.streamed), device)};
  offer.bound = split::bound_of(
      numbers, static_cast<double>(bodies), 1, longest_sum(problem),
      {.of_instruction = split::cutting_of(device).of_instruction, .instructions = static_cast<double>(body)});
  offer.workspace_bytes = split::Workspace(0, 0, numbers, 0).bytes();
  offer.uses_only_fma = false;
  return offer;
}

std::string extent_refusal(const Conv2dShape& g) {
  constexpr std::int64_t most_extent = std::int64_t{1} << 24, most = std::int64_t{1} << 30;
  for (const std::int64_t extent :
       {g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.p, g.q, g.pad_top, g.pad_left, g.stride_h, g.stride_w, g.dilation_h * g.r,
        g.dilation_w * g.s, g.p * g.stride_h, g.q * g.stride_w})
    if (extent >= most_extent) return fmt::format("an extent of {} passes the {} that it counts", extent, most_extent);
  if (g.h * g.w >= most / g.c) return fmt::format("has images of {} numbers, and it counts {}", g.h * g.w * g.c, most);
  if (g.n * divide_up(g.p, 8) >= most / g.q || g.r * g.s >= 1 << 16) return "has 2^30 pixels, or 2^16 taps";
  return {};
}

ForwardPlan::ForwardPlan(const Conv2dProblem& problem, const devices::Device& device, const Task& task,
                         std::int64_t resident)
    : Conv2dPlanBody(problem),
      ProductLaunches(problem.type, problem.type, split::numbers_of(problem.type), device,
                      split::Tile{.columns = 32, .resident = resident},
                      split::Workspace(0, 0, split::numbers_of(problem.type), 0)),
      task_(task) {}

void ForwardPlan::build(devices::Device& device, std::string_view units, std::string_view text,
                        const std::vector<std::pair<const char*, std::int64_t>>& constants) {
  const std::string before = std::string(kernels::gemm_elements()) + std::string(kernels::tensor_tiles()) +
                             std::string(kernels::tensor_units()) + std::string(kernels::scales()) +
                             std::string(kernels::plain_sums()) + std::string(kernels::parts()),
                    all = before + std::string(units) + std::string(few_channels_patches_kernel) + std::string(text);
  std::vector<devices::Definition> of_passes = definitions_of(problem().type, numbers_, tile_, 32, false, 0),
                                   of_tiles = of_passes;
  of_passes.push_back({"TILES", "0"}), of_tiles.push_back({"TILES", "1"});
  for (const auto& [symbol, value] : constants) of_tiles.push_back({symbol, std::to_string(value)});
  const Conv2dProblem& p = problem();
  for (const auto& [symbol, value] : std::initializer_list<std::pair<const char*, bool>>{
           {"FLIP", p.flip}, {"NHWC", p.layout == Layout::nhwc}, {"ACCUMULATE", p.accumulate}, {"RELU", p.relu}})
    of_tiles.push_back({symbol, value ? "1" : "0"});
  of_tiles.push_back({"BIAS", p.bias ? "2" : "0"});
  const devices::Device::Source sources[] = {{all, of_tiles, {.target = "sm_90a"}},
                                             {before, of_passes, {.target = "sm_90a"}}};
  const auto programs = device.build_all(std::span(sources).first(numbers_.are_scaled ? 2 : 1));
  tiles_ = programs.front(), passes_ = programs.back();
}

void ForwardPlan::append_launch(devices::Sequence& sequence, const Conv2dRun& run, const char* kernel,
                                std::int64_t groups, std::int64_t items, std::int64_t local_bytes,
                                std::vector<devices::KernelArgument> before) const {
  const Operand& bias = problem().bias ? run.bias : run.w;  // without one some array, which is not read
  const split::Product product{.a = run.x, .b = run.w, .out = run.y, .bias = bias, .workspace = {run.workspace}};
  const Conv2dElements all = elements_of(problem());
  append_scan(sequence, product, all.x, all.w, {});
  std::vector<devices::KernelArgument> arguments = std::move(before);
  arguments.emplace_back(std::as_bytes(std::span(&task_, 1)));
  for (const Operand* const each : {&run.x, &run.w, &run.y, &bias})
    arguments.emplace_back(each->buffer.impl().get()), arguments.emplace_back(each->offset_bytes / size());
  arguments.emplace_back(product.workspace.buffer.impl().get());
  arguments.emplace_back((product.workspace.offset_bytes + workspace_.maxima) / 4);
  sequence.launch(tiles_, kernel, {{groups * items, 1}, {items, 1}}, arguments,
                  {.overlaps = numbers_.are_scaled, .local_memory_bytes = local_bytes});
}

}  // namespace omniconv::operations::few_channels
