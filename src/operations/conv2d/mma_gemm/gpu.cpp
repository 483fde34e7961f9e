// Convolution as products of tiles on matrix units that the instructions of a warp feed, through CUDA and OpenCL.
#include <fmt/format.h>

#include "embedded/implicit_combine.kernel.h"
#include "embedded/implicit_definition.kernel.h"
#include "embedded/implicit_positions.kernel.h"
#include "embedded/implicit_sums.kernel.h"
#include "embedded/implicit_weights.kernel.h"
#include "embedded/mma_filters.kernel.h"
#include "embedded/mma_parts.kernel.h"
#include "embedded/mma_pixels.kernel.h"
#include "operations/conv2d/implicit_gemm/definitions.h"
#include "operations/conv2d/mma_gemm/tiles.h"
#include "operations/gemm/gpu_text.h"
#include "operations/warp_units.h"

namespace omniconv::operations {
namespace {

using implicit_gemm::turn_group;
using namespace mma_gemm;

// Loops round each of 16 multiply-adds to the nearest.
split_gemm::Cutting cutting_of(const devices::Device& device, const WarpTile& tile) {
  const double of_instruction = has_warp_units(device) ? devices::cut_of_sixteen(device.facts().matrix_units) : 8;
  const auto sixteens = static_cast<double>(tile.k / 16);
  // Behind the first high products stand those of the stage's other sixteens, three each.
  return {.of_instruction = of_instruction, .instructions = 3 * sixteens - 2};
}

std::vector<devices::Definition> definitions_of(const Conv2dProblem& problem, const devices::Device& device,
                                                const WarpTile& tile) {
  const Numbers numbers = numbers_of(problem.type);
  const Conv2dShape g(problem);
  const bool filter = problem.pass == Pass::backward_filter;
  std::vector<devices::Definition> all = implicit_gemm::product_definitions(
      problem, {tile.m, tile.n, tile.k, tile.parts, part_pixels(problem, tile)}, tile.merged != 0);
  const auto add = [&](const char* symbol, std::int64_t value) { all.push_back({symbol, std::to_string(value)}); };
  add("WARP_M", tile.warp_m), add("WARP_N", tile.warp_n), add("RESIDENT", tile.resident);
  add("PRODUCTS", numbers.products), add("SCALED", numbers.are_scaled ? 1 : 0), add("PRODUCTS_TOGETHER", 1);
  add("SAMPLED", sampling_of(problem, device, Work(problem, tile)).bits());
  add("A_ALONG_K", filter && g.nhwc ? 0 : 1);
  add("B_ALONG_K", filter && implicit_gemm::reads_channels_at_once(g) ? 0 : 1);
  add("MATRIX_UNITS", has_warp_units(device) ? 1 : 0);
  all.push_back({"PART", fmt::format("TYPE_{}", name(numbers.part))});
  return all;
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const WarpTile& tile)
      : Conv2dPlanBody(problem),
        tile_(tile),
        workspace_(problem, tile),
        sampling_(sampling_of(problem, device, Work(problem, tile))) {
    const bool filter = problem.pass == Pass::backward_filter;
    // Of its own accord OpenCL's compiler takes the registers with which these run fastest (README.md).
    const bool limits = device.kind() == devices::DeviceKind::cuda;
    program_ = device.build(
        std::string(kernels::gemm_elements()) + std::string(kernels::scales()) + std::string(kernels::plain_sums()) +
            std::string(kernels::conv2d_shape()) + std::string(implicit_definition_kernel) +
            std::string(kernels::warp_units()) + std::string(kernels::warp_tiles()) +
            std::string(implicit_sums_kernel) +
            std::string(filter ? implicit_weights_kernel : implicit_positions_kernel) + std::string(mma_parts_kernel) +
            std::string(filter ? mma_filters_kernel : mma_pixels_kernel) + std::string(implicit_combine_kernel),
        definitions_of(problem, device, tile),
        {.occupancy = {limits ? tile.resident : 0, tile.group()}, .expected_seconds = 0.9, .starts_quickly = true});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    switch (problem().pass) {
      case Pass::forward: return append_pixels(sequence, run, run.x, run.y, problem().bias ? run.bias : run.w);
      case Pass::backward_data: return append_pixels(sequence, run, run.y, run.x, run.w);
      case Pass::backward_filter: return append_filters(sequence, run);
    }
  }

 private:
  std::int64_t elements_before(const Operand& operand) const { return operand.offset_bytes / size_of(problem().type); }

  // Of both operands, where they are scaled.
  void append_scan(devices::Sequence& sequence, const Conv2dRun& run, const Operand& first,
                   const Operand& second) const {
    if (!numbers_of(problem().type).are_scaled) return;
    const Work work(problem(), tile_);
    const devices::KernelArgument arguments[] = {first.buffer.impl().get(),
                                                 elements_before(first),
                                                 work.first,
                                                 scan_groups(work.first),
                                                 static_cast<std::int32_t>(sampling_.a),
                                                 second.buffer.impl().get(),
                                                 elements_before(second),
                                                 work.second,
                                                 scan_groups(work.second),
                                                 static_cast<std::int32_t>(sampling_.b),
                                                 run.workspace.impl().get(),
                                                 workspace_.maxima / 4,
                                                 workspace_.largest / 4};
    const std::int64_t items = (scan_groups(work.first) + scan_groups(work.second)) * scan_group;
    sequence.launch(program_, "find_largest", {{items, 1}, {scan_group, 1}}, arguments, {.overlaps = true});
  }
  // Of all tiles, and once more where samples of the operands were looked at.
  void append_tiles(devices::Sequence& sequence, const char* kernel,
                    std::span<const devices::KernelArgument> arguments) const {
    std::vector<devices::KernelArgument> all(arguments.begin(), arguments.end());
    all.emplace_back(std::int32_t{0});
    const devices::Grid grid = {{groups_of(problem(), tile_) * tile_.group(), 1}, {tile_.group(), 1}};
    sequence.launch(program_, kernel, grid, all, {.overlaps = true});
    if (sampling_.bits() == 0) return;
    all.back() = std::int32_t{1};
    sequence.launch(program_, kernel, grid, all, {.overlaps = true});
  }
  // The definition's operands are the first and the second of the pass.
  void append_sums(devices::Sequence& sequence, const Conv2dRun& run, const Operand& out, const Operand& bias,
                   const Operand& operand, const Operand& second) const {
    if (tile_.parts == 1) return;
    launch_groups(divide_up(divide_up(Work(problem(), tile_).out, 4), combine_group), [&](std::int64_t first,
                                                                                          std::int64_t groups) {
      const devices::KernelArgument arguments[] = {
          out.buffer.impl().get(),    elements_before(out),       bias.buffer.impl().get(), elements_before(bias),
          run.workspace.impl().get(), workspace_.parts / 16,      workspace_.largest / 4,   operand.buffer.impl().get(),
          elements_before(operand),   second.buffer.impl().get(), elements_before(second),  first};
      sequence.launch(program_, "combine", {{groups * combine_group, 1}, {combine_group, 1}}, arguments,
                      {.overlaps = true});
    });
  }

  void append_pixels(devices::Sequence& sequence, const Conv2dRun& run, const Operand& source, const Operand& out,
                     const Operand& bias) const {
    append_scan(sequence, run, source, run.w);
    const Work work(problem(), tile_);
    const devices::Buffer* const workspace = run.workspace.impl().get();
    const std::int64_t items = workspace_.panel_chunks / numbers_of(problem().type).planes();
    launch_groups(divide_up(items, turn_group), [&](std::int64_t first, std::int64_t groups) {
      const devices::KernelArgument arguments[] = {run.w.buffer.impl().get(),
                                                   elements_before(run.w),
                                                   workspace,
                                                   workspace_.panel / 16,
                                                   workspace,
                                                   workspace_.maxima / 4,
                                                   scan_groups(work.first),
                                                   scan_groups(work.second),
                                                   workspace_.largest / 4,
                                                   first};
      sequence.launch(program_, "turn", {{groups * turn_group, 1}, {turn_group, 1}}, arguments, {.overlaps = true});
    });
    const devices::KernelArgument arguments[] = {source.buffer.impl().get(),
                                                 elements_before(source),
                                                 run.w.buffer.impl().get(),
                                                 elements_before(run.w),
                                                 workspace,
                                                 workspace_.panel / 16,
                                                 out.buffer.impl().get(),
                                                 elements_before(out),
                                                 bias.buffer.impl().get(),
                                                 elements_before(bias),
                                                 workspace,
                                                 workspace_.parts / 4,
                                                 workspace_.largest / 4};
    append_tiles(sequence, "pixels", arguments);
    append_sums(sequence, run, out, bias, source, run.w);
  }

  void append_filters(devices::Sequence& sequence, const Conv2dRun& run) const {
    append_scan(sequence, run, run.y, run.x);
    const Work work(problem(), tile_);
    // Where nothing is scaled and sums have one part there is no workspace, and some buffer stands in its place.
    const devices::Buffer* const workspace = (workspace_.bytes() > 0 ? run.workspace : run.w.buffer).impl().get();
    if (numbers_of(problem().type).are_scaled) {
      const devices::KernelArgument arguments[] = {workspace, workspace_.maxima / 4, scan_groups(work.first),
                                                   scan_groups(work.second), workspace_.largest / 4};
      sequence.launch(program_, "settle", {{scan_group, 1}, {scan_group, 1}}, arguments, {.overlaps = true});
    }
    const devices::KernelArgument arguments[] = {run.y.buffer.impl().get(),
                                                 elements_before(run.y),
                                                 run.x.buffer.impl().get(),
                                                 elements_before(run.x),
                                                 run.w.buffer.impl().get(),
                                                 elements_before(run.w),
                                                 workspace,
                                                 workspace_.parts / 4,
                                                 workspace_.largest / 4};
    append_tiles(sequence, "filters", arguments);
    append_sums(sequence, run, run.w, run.x, run.y, run.x);
  }

  WarpTile tile_;
  Workspace workspace_;
  split_gemm::Sampling sampling_;
  std::shared_ptr<devices::Program> program_;
};

class MmaGemmGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/mma_gemm/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, scan_group); !reason.empty()) return reason;
    if (std::string reason = warp_units_refusal(*device); !reason.empty()) return reason;
    if (std::string reason = implicit_gemm::product_refusal(problem); !reason.empty()) return reason;
    if (std::string reason = local_memory_refusal(*device, least_local_bytes(numbers_of(problem.type)));
        !reason.empty())
      return reason;
    const auto chosen = choose_tile(problem, *device, request);
    if (const std::string* const reason = std::get_if<std::string>(&chosen)) return *reason;
    const WarpTile tile = std::get<WarpTile>(chosen);
    return Offer{
        .cost = {cost_of(problem, *device, tile)},
        .bound = split_gemm::bound_of(numbers_of(problem.type), static_cast<double>(stages_of(problem, tile)),
                                      static_cast<double>(tile.parts), longest_sum(problem), cutting_of(*device, tile)),
        .workspace_bytes = Workspace(problem, tile).bytes(),
        .uses_only_fma = false,
        .tuning = tuning_of(tile),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tile); },
    };
  }
  std::span<const Tunable> tunables() const override { return warp_tunables(); }
};

}  // namespace

const Conv2dSolver& conv2d_mma_gemm_gpu() {
  static const MmaGemmGpu solver;
  return solver;
}

}  // namespace omniconv::operations
