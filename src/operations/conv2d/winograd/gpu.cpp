// Winograd's filtering on OpenCL and CUDA devices: transforms, and products of matrices between them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "embedded/winograd.kernel.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/winograd/gpu_blocks.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 256;

// A matrix as the lines of a text that define it.
template <typename Matrix>
std::string matrix_text(const char* symbol, const Matrix& matrix) {
  std::string rows;
  for (const auto& row : matrix) {
    std::string numbers;
    // All digits that fp32 has.
    for (const double value : row) numbers += fmt::format("{:.8e}f, ", static_cast<float>(value));
    rows += fmt::format("{{{}}}, ", numbers);
  }
  return fmt::format("#define {} {{{}}}\n", symbol, rows);
}
template <int outputs, int taps>
std::string matrices_of() {
  constexpr auto& matrices = winograd_matrices<outputs, taps>;
  return matrix_text("INPUT_MATRIX", matrices.input) + matrix_text("FILTER_MATRIX", matrices.filter) +
         matrix_text("OUTPUT_MATRIX", matrices.output);
}
std::string matrices_text(WinogradForm form) {
  if (form.outputs == 3) return form.taps == 4 ? matrices_of<3, 4>() : matrices_of<3, 2>();
  if (form.taps == 5) return matrices_of<2, 5>();
  return form.outputs == 4 ? matrices_of<4, 3>() : matrices_of<2, 3>();
}

std::vector<devices::Definition> definitions_of(const Conv2dProblem& problem, const WinogradGpuBlocks& cut) {
  std::vector<devices::Definition> all = conv2d_definitions(problem);
  const WinogradShape& shape = cut.shape;
  const auto add = [&](const char* symbol, std::int64_t value) { all.push_back({symbol, std::to_string(value)}); };
  const auto add_long = [&](const char* symbol, std::int64_t value) {
    all.push_back({symbol, fmt::format("({}L)", value)});
  };
  add("TILE", cut.form.tile(problem.pass)), add("TURNED", shape.turned);
  add("TO_DATA", problem.pass == Pass::backward_data), add("TO_FILTER", cut.of_filter);
  add_long("TOP", shape.top), add_long("LEFT", shape.left), add_long("GROUPS", cut.groups);
  add("GROUP", group);
  // Numbers of 31 bits where they suffice, a group of work items and a tile beyond the last included.
  constexpr std::int64_t most_of_int = std::int64_t{1} << 30;
  const auto type = [](std::int64_t most) { return most < most_of_int ? "int" : "long"; };
  // Of an image that is read: to the filter also of the target's.
  const auto image = [&](std::int64_t h, std::int64_t w, std::int64_t channels) {
    return h * w * (cut.nhwc ? channels * cut.groups : 1);
  };
  all.push_back({"PLACE", type(std::max({shape.tiles, image(shape.source_h, shape.source_w, shape.source),
                                         cut.of_filter ? image(shape.target_h, shape.target_w, shape.target) : 0,
                                         shape.target_h, shape.target_w, std::abs(shape.top), std::abs(shape.left)}))});
  all.push_back({"ITEM", type(std::max({cut.groups * std::max(shape.source, shape.target) * cut.width(),
                                        cut.groups * shape.source * shape.target}))});
  return all;
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const WinogradGpuBlocks& cut)
      : Conv2dPlanBody(problem), cut_(cut) {
    std::vector<std::function<void()>> builds = {[&] {
      program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::conv2d_shape()) +
                                  matrices_text(cut.form) + std::string(winograd_kernel),
                              definitions_of(problem, cut), {.expected_seconds = 0.3, .starts_quickly = true});
    }};
    for (const auto& [of, offer] : cut.products)
      builds.push_back([&offer, &product = products_[of]] { product = plan_of(offer); });
    build_seconds_ = device.do_builds(builds);
  }
  double compile_seconds() const override {
    double seconds = program_->compile_seconds();
    for (const auto& [of, product] : products_) seconds += product->compile_seconds();
    return std::min(seconds, build_seconds_);
  }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const bool to_data = problem().pass == Pass::backward_data;
    const Operand &source = to_data ? run.y : run.x, &target = to_data ? run.x : run.y, inputs{run.workspace, 0},
                  targets{run.workspace, cut_.targets_at()},
                  filters = cut_.prepared ? run.w : Operand{run.workspace, cut_.filters_at()};
    GemmArrays arrays;
    arrays.workspace = {run.workspace, cut_.rest_at()};
    if (cut_.of_filter) {
      arrays.a = targets, arrays.b = inputs, arrays.c = filters;
      for (std::int64_t i = 0; i < cut_.blocks(); ++i) {
        const WinogradGpuBlock block = cut_.block(i);
        append_tiles(sequence, "transform_inputs", cut_.shape.source, source, inputs, block);
        append_tiles(sequence, "transform_targets", cut_.shape.target, target, targets, block);
        products_.at(block.product())->append(sequence, arrays);
      }
      append_filters(sequence, "transform_sums", filters, run.w);
      return;
    }
    if (!cut_.prepared) append_filters(sequence, "transform_filters", run.w, filters);
    arrays.a = cut_.nhwc ? inputs : filters, arrays.b = cut_.nhwc ? filters : inputs, arrays.c = targets;
    for (std::int64_t i = 0; i < cut_.blocks(); ++i) {
      const WinogradGpuBlock block = cut_.block(i);
      append_tiles(sequence, "transform_inputs", cut_.shape.source, source, inputs, block);
      products_.at(block.product())->append(sequence, arrays);
      append_outputs(sequence, targets, target, problem().bias ? run.bias : source, block);
    }
  }
  void append_prepare(devices::Sequence& sequence, std::size_t, const Operand& from, const Operand& to) const override {
    append_filters(sequence, "transform_filters", from, to);
  }

 private:
  // One work item each; `arguments_from` says those of a launch, by its first group.
  template <typename Arguments>
  void launch(devices::Sequence& sequence, const char* kernel, std::int64_t items,
              const Arguments& arguments_from) const {
    launch_groups(divide_up(items, group), [&](std::int64_t first, std::int64_t groups) {
      const auto arguments = arguments_from(first);
      sequence.launch(program_, kernel, {{groups * group, 1}, {group, 1}}, arguments);
    });
  }
  void append_filters(devices::Sequence& sequence, const char* kernel, const Operand& from, const Operand& to) const {
    launch(sequence, kernel, cut_.groups * cut_.shape.source * cut_.shape.target, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 5>{from.buffer.impl().get(), from.offset_bytes / 4,
                                                    to.buffer.impl().get(), to.offset_bytes / 4, first};
    });
  }
  // A block of images of so many channels a group.
  void append_tiles(devices::Sequence& sequence, const char* kernel, std::int64_t channels, const Operand& images,
                    const Operand& to, const WinogradGpuBlock& block) const {
    launch(sequence, kernel, cut_.groups * channels * block.width, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 8>{images.buffer.impl().get(),
                                                    images.offset_bytes / 4,
                                                    to.buffer.impl().get(),
                                                    to.offset_bytes / 4,
                                                    block.first,
                                                    block.count,
                                                    block.width,
                                                    first};
    });
  }
  // Without a bias some buffer stands in its place, which is not read.
  void append_outputs(devices::Sequence& sequence, const Operand& products, const Operand& target, const Operand& bias,
                      const WinogradGpuBlock& block) const {
    launch(sequence, "transform_outputs", cut_.groups * cut_.shape.target * block.width, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 10>{products.buffer.impl().get(),
                                                     products.offset_bytes / 4,
                                                     target.buffer.impl().get(),
                                                     target.offset_bytes / 4,
                                                     bias.buffer.impl().get(),
                                                     bias.offset_bytes / 4,
                                                     block.first,
                                                     block.count,
                                                     block.width,
                                                     first};
    });
  }

  WinogradGpuBlocks cut_;
  double build_seconds_ = 0;  // in all, of what is built side by side
  std::shared_ptr<devices::Program> program_;
  std::map<std::pair<std::int64_t, bool>, std::shared_ptr<const GemmPlanBody>> products_;  // that blocks take
};

class WinogradGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/winograd/gpu.1"; }
  std::span<const Tunable> tunables() const override { return winograd_gpu_tunables(); }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override;
};

Answer offer_of(const Conv2dProblem& problem, WinogradForm form, const DevicePointer& device,
                const SolverOptions& request, std::int64_t workspace_limit) {
  const bool prepared = !request.prepared.empty();
  const std::int64_t tiles = Tuning::parse(request.tuning).find("tiles").value_or(0);
  const auto answer = WinogradGpuBlocks::cut(problem, form, device, tiles, workspace_limit, prepared);
  if (const auto* const reason = std::get_if<std::string>(&answer)) return *reason;
  const auto& cut = std::get<WinogradGpuBlocks>(answer);
  if (const std::int64_t bytes = cut.workspace_bytes(), most = device->info().max_buffer_bytes; bytes > most)
    return fmt::format("takes {} bytes of workspace, and a buffer has {} at most", bytes, most);
  std::map<std::size_t, PreparedFormat> formats;
  if (prepared) formats[1] = cut.format(problem);
  return Offer{.cost = {cut.cost(problem, *device)},
               .bound = winograd_bound(problem, form, cut.chain()),
               .workspace_bytes = cut.workspace_bytes(),
               .prepared = formats,
               .tuning = cut.tuning(),
               .plan = [=] { return std::make_shared<Plan>(problem, *device, cut); }};
}

Answer WinogradGpu::offer(const Conv2dProblem& problem, const DevicePointer& device,
                          const SolverOptions& request) const {
  if (std::string reason = conv2d_gpu_refusal(problem, *device, group); !reason.empty()) return reason;
  const bool of_filter = problem.pass == Pass::backward_filter;
  if (size_of(problem.type) < 4) return "serves f32 and tf32: transforms of stored halves would round them";
  if (const char* const refusal = winograd_refusal(problem); *refusal != '\0') return refusal;
  if (request.relative_error) return "its errors follow the largest input of a tile, not an element's own terms";
  if (of_filter && problem.r != 3) return "serves bwd_filter of 3 x 3 filters";
  if (of_filter && !request.prepared.empty()) return "has no prepared forms of bwd_filter";
  if (!request.prepared.empty() && request.prepared != std::vector<std::string>{"w"})
    return "has a prepared form of w alone";
  const auto tile = Tuning::parse(request.tuning).find("tile");
  if (problem.r == 5 && tile == 4) return "filters of 5 x 5 have tiles of 2 x 2 outputs";
  const auto of_form = [&](WinogradForm form, std::int64_t workspace_limit) {
    return offer_of(problem, form, device, request, workspace_limit);
  };
  if (problem.r == 5) return of_form({2, 5}, request.max_workspace_bytes);
  const auto tiles_of = [&](int pixels) { return of_filter ? WinogradForm{3, pixels} : WinogradForm{pixels, 3}; };
  if (tile) return of_form(tiles_of(static_cast<int>(*tile)), request.max_workspace_bytes);
  return offer_of_cheaper(tiles_of(4), tiles_of(2), request, of_form);
}

}  // namespace

const Conv2dSolver& conv2d_winograd_gpu() {
  static const WinogradGpu solver;
  return solver;
}

}  // namespace omniconv::operations
