// Convolution as products of tiles on OpenCL and CUDA devices, whose operands are read out of the arrays as they lie.
#include <fmt/format.h>

#include "embedded/implicit_combine.kernel.h"
#include "embedded/implicit_definition.kernel.h"
#include "embedded/implicit_filters.kernel.h"
#include "embedded/implicit_pixels.kernel.h"
#include "embedded/implicit_positions.kernel.h"
#include "embedded/implicit_sums.kernel.h"
#include "embedded/implicit_weights.kernel.h"
#include "operations/conv2d/implicit_gemm/definitions.h"
#include "operations/gemm/gpu_text.h"

namespace omniconv::operations {
namespace {

using implicit_gemm::PixelProduct;
using implicit_gemm::ProductChoice;
using implicit_gemm::turn_group;

std::vector<devices::Definition> definitions_of(const Conv2dProblem& problem, const ProductChoice& choice) {
  const Conv2dShape g(problem);
  const GemmTile& tile = choice.tile;
  std::vector<devices::Definition> all =
      implicit_gemm::product_definitions(problem, {tile.m, tile.n, tile.k, choice.parts, choice.part_k});
  const auto add = [&](const char* symbol, std::int64_t value) { all.push_back({symbol, std::to_string(value)}); };
  add("QUADS_M", tile.quads_m), add("QUADS_N", tile.quads_n), add("RESIDENT", tile.resident);
  const bool filter = problem.pass == Pass::backward_filter;
  add("A_ALONG_K", filter != g.nhwc ? 1 : 0);
  add("B_ALONG_K", filter && !implicit_gemm::reads_channels_at_once(g) ? 1 : 0);
  return all;
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const ProductChoice& choice)
      : Conv2dPlanBody(problem), choice_(choice) {
    const bool filter = problem.pass == Pass::backward_filter;
    program_ =
        device.build(std::string(kernels::gemm_elements()) + std::string(kernels::plain_sums()) +
                         std::string(kernels::conv2d_shape()) + std::string(implicit_definition_kernel) +
                         std::string(kernels::register_tiles()) + std::string(implicit_sums_kernel) +
                         (filter ? std::string(implicit_weights_kernel) + std::string(implicit_filters_kernel)
                                 : std::string(implicit_positions_kernel) + std::string(implicit_pixels_kernel)) +
                         std::string(implicit_combine_kernel),
                     definitions_of(problem, choice),
                     {.occupancy = {choice.tile.resident, choice.tile.group()}, .expected_seconds = 0.35});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    switch (problem().pass) {
      case Pass::forward:
        append_pixels(sequence, run.x, run.y, problem().bias ? run.bias : run.w, run);
        return append_sums(sequence, run.y, problem().bias ? run.bias : run.w, run.x, run.w, run);
      case Pass::backward_data:
        append_pixels(sequence, run.y, run.x, run.w, run);
        return append_sums(sequence, run.x, run.w, run.y, run.w, run);
      case Pass::backward_filter:
        append_filters(sequence, run);
        return append_sums(sequence, run.w, run.x, run.y, run.x, run);
    }
  }

 private:
  std::int64_t elements_before(const Operand& operand) const { return operand.offset_bytes / size_of(problem().type); }
  // For the parts' sums; where there are none some buffer stands in their place.
  const devices::Buffer* parts_in(const Conv2dRun& run, const Operand& other) const {
    return (choice_.parts > 1 ? run.workspace : other.buffer).impl().get();
  }
  std::int64_t floats_before_parts() const { return choice_.panel_bytes / 4; }
  template <typename Arguments>
  void launch(devices::Sequence& sequence, const char* kernel, std::int64_t all, std::int64_t group,
              const Arguments& arguments_from) const {
    launch_groups(all, [&](std::int64_t first, std::int64_t groups) {
      const auto arguments = arguments_from(first);
      sequence.launch(program_, kernel, {{groups * group, 1}, {group, 1}}, arguments, {.overlaps = true});
    });
  }

  void launch_tiles(devices::Sequence& sequence, const char* kernel,
                    std::span<const devices::KernelArgument> arguments) const {
    const std::int64_t group = choice_.tile.group();
    sequence.launch(program_, kernel, {{choice_.groups * group, 1}, {group, 1}}, arguments, {.overlaps = true});
  }

  void append_pixels(devices::Sequence& sequence, const Operand& source, const Operand& out, const Operand& bias,
                     const Conv2dRun& run) const {
    const PixelProduct product(problem());
    const devices::Buffer* const panel = run.workspace.impl().get();
    const std::int64_t blocks = product.groups * product.panel_rows(choice_.tile.k) / 8 *
                                (product.panel_pitch(choice_.tile.m, choice_.tile.n) / 32);
    launch(sequence, "turn", blocks, turn_group, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 5>{run.w.buffer.impl().get(), elements_before(run.w), panel,
                                                    std::int64_t{0}, first};
    });
    const devices::KernelArgument arguments[] = {source.buffer.impl().get(),
                                                 elements_before(source),
                                                 run.w.buffer.impl().get(),
                                                 elements_before(run.w),
                                                 panel,
                                                 std::int64_t{0},
                                                 out.buffer.impl().get(),
                                                 elements_before(out),
                                                 bias.buffer.impl().get(),
                                                 elements_before(bias),
                                                 parts_in(run, out),
                                                 floats_before_parts()};
    launch_tiles(sequence, "pixels", arguments);
  }

  void append_filters(devices::Sequence& sequence, const Conv2dRun& run) const {
    const devices::KernelArgument arguments[] = {
        run.y.buffer.impl().get(), elements_before(run.y), run.x.buffer.impl().get(), elements_before(run.x),
        run.w.buffer.impl().get(), elements_before(run.w), parts_in(run, run.w),      floats_before_parts()};
    launch_tiles(sequence, "filters", arguments);
  }

  // The definition's operands are the pass's first and second.
  void append_sums(devices::Sequence& sequence, const Operand& out, const Operand& bias, const Operand& operand,
                   const Operand& second, const Conv2dRun& run) const {
    if (choice_.parts == 1) return;
    const std::int64_t quads = choice_.parts_bytes / 16 / choice_.parts;
    launch(sequence, "combine", divide_up(quads, combine_group), combine_group, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 12>{
          out.buffer.impl().get(),    elements_before(out),       bias.buffer.impl().get(), elements_before(bias),
          run.workspace.impl().get(), floats_before_parts() / 4,  std::int64_t{0},          operand.buffer.impl().get(),
          elements_before(operand),   second.buffer.impl().get(), elements_before(second),  first};
    });
  }

  ProductChoice choice_;
  std::shared_ptr<devices::Program> program_;
};

class ImplicitGemmGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/implicit_gemm/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, turn_group); !reason.empty()) return reason;
    if (std::string reason = implicit_gemm::product_refusal(problem); !reason.empty()) return reason;
    const GemmTile& least = gemm_tiles().back();
    if (std::string reason = local_memory_refusal(*device, least.local_bytes()); !reason.empty()) return reason;
    auto chosen = implicit_gemm::choose_product(problem, *device, request);
    if (std::string* const reason = std::get_if<std::string>(&chosen)) return *reason;
    const ProductChoice choice = std::get<ProductChoice>(chosen);
    return Offer{
        .cost = {device->info().is_gpu ? choice.cost
                                       : launch_cost(*device) + cpu_multiply_add * multiply_adds(problem)},
        .bound = conv2d_bound(problem, product_chain(problem, choice)),
        .workspace_bytes = choice.workspace_bytes(),
        .tuning = tuning_of(choice),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, choice); },
    };
  }
  std::span<const Tunable> tunables() const override { return implicit_gemm::product_tunables(); }

 private:
  static constexpr double cpu_multiply_add = 16;  // PoCL: work items take turns at every barrier
};

}  // namespace

const Conv2dSolver& conv2d_implicit_gemm_gpu() {
  static const ImplicitGemmGpu solver;
  return solver;
}

}  // namespace omniconv::operations
