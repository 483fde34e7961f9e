// Convolution as products of tiles on OpenCL and CUDA devices, whose operands are read out of the arrays as they lie.
#include <fmt/format.h>

#include "embedded/implicit_filters.kernel.h"
#include "embedded/implicit_pixels.kernel.h"
#include "embedded/implicit_sums.kernel.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/implicit_gemm/products.h"
#include "operations/gemm/gpu_text.h"

namespace omniconv::operations {
namespace {

using implicit_gemm::PixelAxis;
using implicit_gemm::PixelProduct;
using implicit_gemm::ProductChoice;

constexpr std::int64_t turn_group = 256;

std::vector<devices::Definition> definitions_of(const Conv2dProblem& problem, const ProductChoice& choice) {
  const Conv2dShape g(problem);
  const GemmTile& tile = choice.tile;
  std::vector<devices::Definition> all = conv2d_definitions(problem);
  const auto add = [&](const std::string& symbol, std::int64_t value) {
    all.push_back({symbol, value < 0 ? fmt::format("({})", value) : std::to_string(value)});
  };
  add("TILE_M", tile.m), add("TILE_N", tile.n), add("TILE_K", tile.k);
  add("QUADS_M", tile.quads_m), add("QUADS_N", tile.quads_n), add("RESIDENT", tile.resident);
  add("PARTS", choice.parts), add("COMBINE_GROUP", combine_group), add("GROUPS", g.groups);
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
    add("A_ALONG_K", g.nhwc ? 0 : 1), add("B_ALONG_K", implicit_gemm::reads_channels_at_once(g) ? 0 : 1);
    add("PART_K", choice.part_k);
    return all;
  }
  const bool data = problem.pass == Pass::backward_data;
  const PixelProduct product(problem);
  add_output(data ? elements.x : elements.y, g.nhwc ? 1 : product.down.out * product.along.out, data ? g.c : g.k);
  add("A_ALONG_K", g.nhwc ? 1 : 0), add("B_ALONG_K", 0);
  add("BACKWARD_DATA", data ? 1 : 0), add("FLAT", product.flat ? 1 : 0);
  add("TURN_GROUP", turn_group), add("PANEL_PITCH", product.panel_pitch(tile));
  add("SOURCE_C", data ? g.k : g.c), add("SOURCE_GROUP", product.source_group);
  add("OUT_C", data ? g.c : g.k), add("OUT_GROUP", product.out_group);
  const auto add_axis = [&](const char* letter, const PixelAxis& axis, std::int64_t taps) {
    const auto named = [&](const char* name) { return fmt::format("{}_{}", name, letter); };
    add(named("SOURCE"), axis.source), add(named("OUT"), axis.out), add(named("TAPS"), taps);
    add(named("POSITIONS"), axis.positions), add(named("CLASSES"), axis.classes);
    add(named("STEP"), axis.step), add(named("APART"), axis.apart);
    add(named("OUT_STEP"), axis.out_step), add(named("TAP_STEP"), axis.tap_step);
  };
  add_axis("H", product.down, g.r), add_axis("W", product.along, g.s);
  return all;
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const ProductChoice& choice)
      : Conv2dPlanBody(problem), choice_(choice) {
    const bool filter = problem.pass == Pass::backward_filter;
    program_ =
        device.build(std::string(kernels::gemm_elements()) + std::string(kernels::conv2d_shape()) +
                         std::string(kernels::register_tiles()) + std::string(implicit_sums_kernel) +
                         std::string(filter ? implicit_filters_kernel : implicit_pixels_kernel),
                     definitions_of(problem, choice), {.occupancy = {choice.tile.resident, choice.tile.group()}});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    switch (problem().pass) {
      case Pass::forward:
        append_pixels(sequence, run.x, run.y, problem().bias ? run.bias : run.w, run);
        return append_sums(sequence, run.y, problem().bias ? run.bias : run.w, run);
      case Pass::backward_data:
        append_pixels(sequence, run.y, run.x, run.w, run);
        return append_sums(sequence, run.x, run.w, run);
      case Pass::backward_filter: append_filters(sequence, run); return append_sums(sequence, run.w, run.x, run);
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
      sequence.launch(program_, kernel, {{groups * group, 1}, {group, 1}}, arguments);
    });
  }

  void launch_tiles(devices::Sequence& sequence, const char* kernel,
                    std::span<const devices::KernelArgument> arguments) const {
    const std::int64_t group = choice_.tile.group();
    sequence.launch(program_, kernel, {{choice_.groups * group, 1}, {group, 1}}, arguments);
  }

  void append_pixels(devices::Sequence& sequence, const Operand& source, const Operand& out, const Operand& bias,
                     const Conv2dRun& run) const {
    const PixelProduct product(problem());
    const devices::Buffer* const panel = run.workspace.impl().get();
    const std::int64_t blocks =
        product.groups * product.panel_rows(choice_.tile) / 8 * (product.panel_pitch(choice_.tile) / 32);
    launch(sequence, "turn", blocks, turn_group, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 5>{run.w.buffer.impl().get(), elements_before(run.w), panel,
                                                    std::int64_t{0}, first};
    });
    const devices::KernelArgument arguments[] = {source.buffer.impl().get(),
                                                 elements_before(source),
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

  void append_sums(devices::Sequence& sequence, const Operand& out, const Operand& bias, const Conv2dRun& run) const {
    if (choice_.parts == 1) return;
    const std::int64_t quads = choice_.parts_bytes / 16 / choice_.parts;
    launch(sequence, "combine", divide_up(quads, combine_group), combine_group, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 7>{out.buffer.impl().get(),
                                                    elements_before(out),
                                                    bias.buffer.impl().get(),
                                                    elements_before(bias),
                                                    run.workspace.impl().get(),
                                                    floats_before_parts() / 4,
                                                    first};
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
